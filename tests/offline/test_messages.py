import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.contrib.offline import OfflineModel, chinese
from kg_memory.llm import prompts
from kg_memory.runtime.effects import Ask
from tests.offline import asking
from tests.offline.asking import entities, episode, facts

SAID = "2023-05-25"

# What Ann says on 25 May 2023, and the facts as (predicate, object, since, until).
CHANGES = [
    ("I moved to Oslo in May.", [("LIVES_IN", "Oslo", "2023-05", None)]),
    ("I now live in Bergen.", [("LIVES_IN", "Bergen", None, None)]),
    ("I used to live in Paris.", [("LIVES_IN", "Paris", None, SAID)]),
    ("I moved from Berlin to Madrid in 2019.", [("LIVES_IN", "Berlin", None, "2019"), ("LIVES_IN", "Madrid", "2019", None)]),
    ("I lived in Rome from 2016 to 2019.", [("LIVES_IN", "Rome", "2016", "2020-01-01")]),
    ("I left Brightwave last month.", [("WORKS_AT", "Brightwave", None, "2023-04")]),
    ("I just got promoted to senior engineer.", [("WORKS_AS", "senior engineer", None, None)]),
    ("We switched from Slack to Zulip last week.", [("USES", "Slack", None, "2023-05-15"), ("USES", "Zulip", "2023-05-15", None)]),
    ("I broke up with Tom yesterday.", [("IS_IN_RELATIONSHIP_WITH", "Tom", None, "2023-05-24")]),
    ("I've been married to John for 5 years.", [("IS_MARRIED_TO", "John", "2018-01-01", None)]),
    ("I turned 40 last week", [("HAS_AGE", "40", "2023-05-15", None)]),
    ("I'm worried about my resume, I'm 60.", [("SAYS_ABOUT", "resume", None, None), ("HAS_AGE", "60", None, None)]),
    ("I quit smoking.", [("DOES", "smoking", None, SAID)]),
    ("I enjoy cooking Italian food.", [("LIKES", "Italian food", None, None)]),
    ("I just left for our European vacation!", [("SAYS_ABOUT", "European vacation", None, None)]),
    ("My dog is called Rex.", [("HAS_DOG", "Rex", None, None)]),
    ("I was born in 1990.", [("BORN_ON", "1990", "1990", None)]),
    ("I was born in 1990 in Rome.", [("IS_FROM", "Rome", "1990", None)]),
    ("I speak a little Dutch.", [("SPEAKS", "Dutch", None, None)]),
    ("I prefer tea over coffee.", [("PREFERS", "tea", None, None)]),
    ("I'm allergic to peanuts.", [("IS_ALLERGIC_TO", "peanuts", None, None)]),
    ("I have a severe allergy to penicillin.", [("IS_ALLERGIC_TO", "penicillin", None, None)]),
    ("I don't like mushrooms anymore.", [("DISLIKES", "mushrooms", None, None)]),
    ("I bought a Tesla Model 3 yesterday", [("BOUGHT", "Tesla Model 3", "2023-05-24", None)]),
    ("i moved to oslo last year", [("LIVES_IN", "Oslo", "2022", None)]),
    ("我上个月从上海搬到了北京。", [("LIVES_IN", "上海", None, "2023-04"), ("LIVES_IN", "北京", "2023-04", None)]),
    ("我以前住在成都。", [("LIVES_IN", "成都", None, SAID)]),
    ("我上周五加入了腾讯。", [("WORKS_AT", "腾讯", "2023-05-19", None)]),
    ("我已经从百度离职了。", [("WORKS_AT", "百度", None, SAID)]),
    ("我们团队从Jira换成了Linear。", [("USES", "Jira", None, SAID), ("USES", "Linear", None, None)]),
    ("我不再喝咖啡了，改喝绿茶。", [("DOES", "喝咖啡", None, SAID), ("DOES", "喝绿茶", None, None)]),
    ("我对花生过敏。", [("IS_ALLERGIC_TO", "花生", None, None)]),
]  # fmt: skip


# A date belongs to its own clause, and a past state held during it.
DATED = [
    ("I was born in Rome in 1990 and I work at Acme Corp.", [("Rome", "1990", None), ("Acme Corp", None, None)]),
    ("I was born in Rome in 1990 and work at Acme Corp.", [("Rome", "1990", None), ("Acme Corp", None, None)]),
    ("I was born in May 1990.", [("May 1990", "1990-05", None)]),
    ("My brother died in 2010 and I live in Oslo.", [("Oslo", None, None)]),
    ("I live in Oslo and, since 2019, work at Acme.", [("Oslo", None, None), ("Acme", "2019", None)]),
    ("I was born in Rome, in 1990, and I work at Acme.", [("Rome", "1990", None), ("Acme", None, None)]),
    ("I left Acme in 2020 because I moved to Rome in 2021.", [("Acme", None, "2020"), ("Rome", "2021", None)]),
    ("I joined Acme in 2015, but now I live in Oslo.", [("Acme", "2015", None), ("Oslo", None, None)]),
    ("In 2019, I moved to Oslo.", [("Oslo", "2019", None)]),
    ("I moved to Oslo when I joined Acme in 2019.", [("Oslo", "2019", None), ("Acme", "2019", None)]),
    ("Last year I moved to Oslo and work at Acme.", [("Oslo", "2022", None), ("Acme", None, None)]),
    ("I met Tom in May. My sister was born in Rome in 1990.", [("Tom", "2023-05", None), ("Rome", "1990", None)]),
    ("我1990年出生在罗马，也在腾讯工作。", [("罗马", "1990", None), ("腾讯", None, None)]),
    ("2019年，我搬到了北京。", [("北京", "2019", None)]),
    ("I lived in Oslo in 2019.", [("Oslo", "2019", "2020-01-01")]),
    ("I worked at Acme this year.", [("Acme", "2023", SAID)]),
    ("I studied at MIT in 2015.", [("MIT", "2015", "2016-01-01")]),
    ("I lived in Oslo before 2019.", [("Oslo", None, "2019")]),
    ("I lived in Oslo after 2019.", [("Oslo", "2020-01-01", SAID)]),
    ("I've lived in Oslo since 2019.", [("Oslo", "2019", None)]),
    ("我2015年以前住在成都，现在住在深圳。", [("成都", None, "2015"), ("深圳", None, None)]),
]


@pytest.mark.parametrize(("said", "expected"), DATED)
def test_fact_has_only_dates_of_its_own_clause(said, expected):
    assert [(one.objects[0], one.since, one.until) for one in facts(said)] == expected


@pytest.mark.parametrize(
    ("said", "predicate", "since", "until"),
    [
        ("I quit Acme before Christmas.", "WORKS_AT", None, "by 2022-12-25"),
        ("By April I had left Acme.", "WORKS_AT", None, "by 2023-04"),
        ("I bought a Tesla before March.", "BOUGHT", "by 2023-03", None),
        ("I moved to Oslo in May and quit Acme before Easter.", "WORKS_AT", None, "by 2023-04-09"),
        ("I left Acme in 2019, before my birthday.", "WORKS_AT", None, "2019"),
    ],
)
def test_before_a_date_means_by_that_date(said, predicate, since, until):
    told = next(one.raw for one in facts(said) if one.predicate == predicate)

    assert (told.valid_at, told.invalid_at) == (since, until)


# The facts as (subject, predicate, first object, sentence).
SENTENCES = [
    ("My name is Ana.", [("Ann", "IS_NAMED", "Ana", "Ann is called Ana")]),
    ("Hi there, my name's Ana.", [("Ann", "IS_NAMED", "Ana", "Ann is called Ana: Hi there, my name's Ana.")]),
    ("I'm 34 years old.", [("Ann", "HAS_AGE", "34", "Ann: I'm 34 years old.")]),
    ("I turned 40.", [("Ann", "HAS_AGE", "40", "Ann: I turned 40.")]),
    ("I'm 34 weeks pregnant.", [("Ann", "SAYS_ABOUT", "weeks pregnant", "Ann: I'm 34 weeks pregnant.")]),
    ("I'm married.", [("Ann", "IS_A", "married", "Ann is married")]),
    ("Enjoys hiking.", [("Ann", "LIKES", "hiking", "Ann likes hiking")]),
    ("Drinks coffee every day", [("Ann", "DRINKS", "coffee", "Ann drinks coffee: Drinks coffee every day")]),
    ("My name is on the list of Acme.", [("Ann", "SAYS_ABOUT", "name", "Ann: My name is on the list of Acme.")]),
    ("I eat at Noma.", [("Ann", "SAYS_ABOUT", "Noma", "Ann: I eat at Noma.")]),
    ("I no longer eat meat.", [("Ann", "EATS", "meat", "Ann ate meat")]),
    ("I used to drink tea.", [("Ann", "DOES", "drinking tea", "Ann was drinking tea")]),
    ("I like salsa, no longer tango.", [("Ann", "LIKES", "salsa", "Ann likes salsa: I like salsa, no longer tango.")]),
    ("Acme is based in Berlin.", [("Acme", "LIVES_IN", "Berlin", "Acme is based in Berlin")]),
    ("Acme is a shipping company based in Hamburg.", [
        ("Acme", "IS_A", "shipping company", "Acme is a shipping company based in Hamburg"),
        ("Acme", "LIVES_IN", "Hamburg", "Acme is based in Hamburg: Acme is a shipping company based in Hamburg."),
    ]),
    ("Tom works at Acme as a cook.", [("Tom", "WORKS_AT", "Acme", "Tom works at Acme as a cook")]),
    ("I'm in Paris this week.", [("Ann", "STAYS_IN", "Paris", "Ann is staying in Paris")]),
    ("I'm planning to visit Rome next month.", [("Ann", "PLANS", "Rome", "Ann: I'm planning to visit Rome next month.")]),
    ("I signed up for a pottery class yesterday.", [("Ann", "JOINED", "pottery class", "Ann: I signed up for a pottery class yesterday.")]),
]  # fmt: skip


@pytest.mark.parametrize(("said", "expected"), SENTENCES)
def test_statements_about_self_and_others_become_facts(said, expected):
    assert [(one.subject, one.predicate, one.objects[0], one.raw.sentence) for one in facts(said)] == expected


@pytest.mark.parametrize(("said", "expected"), CHANGES)
def test_change_states_what_it_begins_and_ends(said, expected):
    found = facts(said)

    assert [(predicate, *objects, since, until) for _, predicate, objects, since, until in found] == expected
    assert {one.subject for one in found} == {"Ann"}


WITHOUT_FACTS = (
    "How are you? | Thanks so much, Bo! | Hey Bo! Good to see you! | Wow, that's awesome! | "
    "Do you still live in Oslo? | Keep it up! | You'd be a great teacher. | 你好！ | 你最近怎么样？ | 谢谢你！ | ... | "
    "😀😀 | 你住在哪里？ | Let's do it! | 谢谢你的建议！"
).split(" | ")


@pytest.mark.parametrize("said", [*WITHOUT_FACTS, ""])
def test_questions_greetings_thanks_and_praise_state_nothing(said):
    assert facts(said, previous=[{"speaker": "Bo", "content": "Hi", "at": "2023-05-25T11:00:00Z"}]) == []


def test_entities_start_with_speaker_and_have_types():
    found = entities("My brother Erik works at Google in Dublin.")

    assert found[0] == ("Ann", "Person")
    assert dict(found) == {"Ann": "Person", "Erik": "Person", "Google": "Organization", "Dublin": "Place"}


# The facts as (subject, predicate, objects).
WORDINGS = [
    ("My brother is called Tom and lives in Rome.", [("Ann", "HAS_BROTHER", "Tom"), ("Tom", "LIVES_IN", "Rome")]),
    ("My brother Erik works at Google in Dublin.", [("Ann", "HAS_BROTHER", "Erik"), ("Erik", "WORKS_AT", "Google")]),
    ("My sister Lily lives in Rome and works at Google.", [("Ann", "HAS_SISTER", "Lily"), ("Lily", "LIVES_IN", "Rome"), ("Lily", "WORKS_AT", "Google")]),
    ("My mother was called Monday morning.", [("Ann", "SAYS_ABOUT", "Ann's mother")]),
    ("I was born in London 1990.", [("Ann", "IS_FROM", "London")]),
    ("I left after five years at Google.", [("Ann", "WORKS_AT", "Google")]),
    ("Bob speaks Friday at the conference.", [("Ann", "SAYS_ABOUT", "Bob", "conference")]),
    # "practice" and "study" may be nouns.
    ("The practice is in Wroclaw.", [("Ann", "SAYS_ABOUT", "practice", "Wroclaw")]),
    ("The study at MIT took years.", [("Ann", "SAYS_ABOUT", "study", "MIT")]),
    ("I practice piano.", [("Ann", "LEARNS", "piano")]),
    # A thing ends before its verb, and an aside is none.
    ("I love how coffee smells in the morning.", [("Ann", "LIKES", "coffee")]),
    ("I stopped eating meat btw", [("Ann", "DOES", "eating meat")]),
    # A subject, or an object, belongs to its own verb; a pronoun is somebody named before, and never the speaker.
    ("Erik moved to Oslo and works at Nordlys.", [("Erik", "LIVES_IN", "Oslo"), ("Erik", "WORKS_AT", "Nordlys")]),
    ("I'm allergic to peanuts and my daughter is allergic to cats.", [("Ann", "IS_ALLERGIC_TO", "peanuts"), ("Ann's daughter", "IS_ALLERGIC_TO", "cats")]),
    ("I don't live in Paris, Rome is my home.", [("Ann", "NOT_LIVES_IN", "Paris")]),
    ("My dog Toby is great. He's a German Shepherd.", [("Ann", "HAS_DOG", "Toby"), ("Toby", "IS_A", "German Shepherd")]),
    ("I have a copper teapot. It reminds me of my grandmother.", [("Ann", "HAS", "copper teapot", "Ann's grandmother")]),
    ("She's a nurse.", []),
    ("Must be tough living in the city without a car.", []),
    ("我姐姐李娜在上海交通大学工作。", [("李娜", "WORKS_AT", "上海交通大学")]),
    ("我女儿今年上小学，她很喜欢画画。", [("Ann的女儿", "LIKES", "画画")]),
    # Code is not prose.
    ("I use Flask for my shop.\n```python\nI moved to Oslo. from Rome import Tom\n```\n", [("Ann", "USES", "Flask")]),
]  # fmt: skip


@pytest.mark.parametrize(("said", "expected"), WORDINGS)
def test_similar_wordings_state_different_facts(said, expected):
    assert [(one.subject, one.predicate, *one.objects) for one in facts(said)] == expected


def test_pronoun_refers_to_person_of_previous_message():
    before = [{"speaker": "Ann", "content": "My brother Erik called.", "at": "2023-05-25T11:00:00Z"}]

    found = facts(
        "He moved to Lisbon.", previous=before, given=[("Ann", "Person"), ("Erik", "Person"), ("Lisbon", "Place")]
    )

    assert [(one.subject, one.predicate, one.objects) for one in found] == [("Erik", "LIVES_IN", ["Lisbon"])]


def test_entity_names_exclude_verbs_and_vague_times():
    names = [name for name, _ in entities("my boss Hannah says matcha tastes like grass, so we meet sometime in May")]

    assert names == ["Ann", "Hannah", "matcha", "grass"]


def test_full_name_and_later_surname_are_one_person():
    found = entities("Marie Duval was born in Lyon. Later Duval won a prize.", speaker=None, kind="text")

    assert ("Marie Duval", "Person") in found
    assert "Duval" not in [name for name, _ in found]


def test_text_states_facts_about_people_it_names():
    text = "Marie Duval was born in Lyon in 1867. She moved to Paris in 1891. In 1895 she married Pierre Blanc."

    assert [tuple(one) for one in facts(text, speaker=None, kind="text")] == [
        ("Marie Duval", "IS_FROM", ["Lyon"], "1867", None),
        ("Marie Duval", "LIVES_IN", ["Paris"], "1891", None),
        ("Marie Duval", "IS_MARRIED_TO", ["Pierre Blanc"], "1895", None),
    ]


def test_entity_with_full_name_in_graph_is_found_by_first_name():
    given = [("Ann", "Person"), ("Thomas Berg", "Person")]

    assert facts("I met Thomas yesterday.", given=given)[0].objects == ["Thomas Berg"]


def test_custom_types_and_predicates_are_used():
    types = {"Thing": "", "Location": ""}

    assert entities("I moved to Oslo.", types=types) == [("Ann", "Thing"), ("Oslo", "Location")]
    (fact,) = facts("I moved to Oslo.", fact_types=[{"name": "livesIn", "signature": [], "description": ""}])
    assert fact.predicate == "livesIn"


@pytest.mark.parametrize(
    "said", ["x" * 100_000, "I moved to Oslo. " * 5000, "我搬到了北京。" * 5000, "A. " * 30_000, "my my my " * 20_000]
)
def test_huge_message_gives_at_most_50_entities_and_facts(said):
    assert len(entities(said)) <= 50
    assert len(facts(said)) <= 50


WORDS = st.sampled_from(
    "I we my sister Tom Ann moved to from Oslo left Acme and no longer work at , . ! ? switched use like don't he she last week in May \n 'x “A B” "
    "Dr. U.S. ... 我 从 上海 搬到了 北京 不再 用 喜欢 。 ， 和 姐姐 李娜 在 工作 《书》 Jira".split(" ")
)


async def test_aanswer_does_not_block_the_event_loop():
    text = "Ann moved to Oslo with Bo. " * 2000
    fields = {"episode": episode(text, kind="text"), "previous": [], "entity_types": {}, "instructions": ""}
    reading = asyncio.create_task(OfflineModel().aanswer(Ask(prompts.EXTRACT_TEXT, fields)))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0.001)
        turns += 1

    assert reading.result().entities
    assert turns > 5


@settings(max_examples=300, deadline=None)
@given(
    said=st.lists(WORDS, max_size=20).map(" ".join) | st.lists(WORDS, max_size=20).map("".join) | st.text(max_size=120),
    speaker=st.none() | st.sampled_from(["Ann", "小明", "", "Will", "a.b (c)", "\\"]),
)
def test_facts_of_any_message_join_entities_and_have_quotes(said, speaker):
    for fact in facts(said, speaker=speaker):
        assert fact.raw.quote
        assert fact.raw.quote in said
        assert fact.raw.objects
        assert fact.raw.subject not in fact.raw.objects
        assert fact.raw.sentence.strip()


def test_assistant_message_states_no_fact_about_the_assistant():
    advice = "I recommend PostgreSQL for your orders, and I moved the index to Oslo."

    assert facts(advice, speaker="Assistant") == []
    assert ("PostgreSQL", "Product") in entities(advice, speaker="Assistant")


def test_chinese_changes_are_read_without_jieba_too(monkeypatch):
    monkeypatch.setattr(chinese, "_jieba", lambda: None)

    for said, *expected in (
        ("我上个月从上海搬到了北京。", ("LIVES_IN", ["上海"]), ("LIVES_IN", ["北京"])),
        ("我们团队从Jira换成了Linear。", ("USES", ["Jira"]), ("USES", ["Linear"])),
    ):
        assert [tuple(one)[1:3] for one in facts(said)] == expected
    assert ("上海交通大学", "Organization") in entities("我姐姐在上海交通大学工作。")


@pytest.mark.parametrize(
    ("at", "said", "since"),
    [
        # A local calendar day that does not start at midnight UTC stays a day.
        ("2023-05-25T01:00:00+08:00", "I moved to Oslo yesterday.", "2023-05-24"),
        ("2023-05-25T23:00:00-05:00", "I moved to Oslo yesterday.", "2023-05-24"),
        ("2023-05-25T12:00:00+00:00", "I moved to Oslo last summer.", "2022-06-01T00:00:00+00:00"),
        ("2023-05-25T12:00:00+00:00", "I moved to Oslo last week.", "2023-05-15T00:00:00+00:00"),
        ("2023-05-25T12:00:00+00:00", "I moved to Oslo on 3 May 2019.", "2019-05-03"),
        ("2023-05-25T12:00:00+00:00", "I live in Oslo.", None),
    ],
)
def test_date_is_written_with_its_stated_precision(monkeypatch, at, said, since):
    monkeypatch.setattr(asking, "AT", at)

    assert facts(said)[0].raw.valid_at == since
