"""The profile of an entity: topics, sub-topics and slots; its text changes only with its facts."""

import json
from itertools import chain

import pytest

from kg_memory.contrib.profile.topics import default_schema
from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.ingestion.filter import without_contexts
from kg_memory.text.predicates import canonical_predicate, canonical_predicates
from kg_memory.text.tokenise import estimate_tokens
from tests.review import judging


@pytest.fixture
def ann(memory, namespace):
    for predicate, value, since in (
        ("WORKS_AT", "Acme", "2022-05"), ("LIVES_IN", "Oslo", "2024-05"), ("HAS_PET", "Milo", "2023-01"),
        ("HATES", "rain", "2021"), ("JUGGLES_WITH", "torches", "2020"),
    ):  # fmt: skip
        memory.facts.add("Ann", predicate, value, valid_at=since, namespace=namespace)
    memory.facts.add("Bob", "LIVES_IN", "Rome", valid_at="2021", namespace=namespace)
    return memory


def places(profile):
    """Return the contents by topic and sub-topic."""
    return {
        f"{topic.name}/{sub_topic.name}": [slot.content for slot in sub_topic.slots]
        for topic in profile.topics
        for sub_topic in topic.sub_topics
    }


def test_profile_lists_current_facts_by_topic(ann, namespace):
    """A profile lists the current facts by topic and sub-topic, with dates and fact ids.

    Features: G1.
    """
    profile = ann.profile("Ann", namespace=namespace)
    assert list(places(profile)) == [
        "contact/residence", "work/company", "interests/dislikes", "relationships/pets", "other/juggles_with",
    ]  # fmt: skip
    [residence] = profile.topics[0].sub_topics[0].slots
    [oslo] = ann.facts.list(where={"predicate": "LIVES_IN", "name": "Ann"}, namespace=namespace)
    assert (residence.facts, residence.valid_at, residence.precision) == ((oslo.id,), oslo.valid_at, "month")
    assert residence.confidence == oslo.confidence == 1.0
    lines = str(profile).splitlines()
    assert lines[:4] == [
        "What holds, by topic.", "<PROFILE>", "contact", "- residence: Ann lives in Oslo (since May 2024)",
    ]  # fmt: skip
    assert lines[-1] == "</PROFILE>"
    assert "Rome" not in str(profile)
    assert profile.tokens == estimate_tokens(str(profile))
    assert without_contexts(f"{profile} Hi!").strip() == "Hi!", "a profile that is pasted back is not read"


def test_profile_omits_events_ended_and_retracted_facts(ann, namespace, database):
    before = ann.profile("Ann", namespace=namespace)
    ann.facts.add("Ann", "VISITED", "Rome", valid_at="2024-06-07", namespace=namespace)
    assert "Rome" in str(ann.profile("Ann", namespace=namespace))
    event = "MATCH (f:Fact {predicate: 'VISITED'}) SET f.kind = 'event' RETURN f.id AS id"
    assert database.query(graph_key(namespace), event, {}, write=True)
    assert ann.profile("Ann", namespace=namespace) == before
    ann.facts.add("Ann", "LIKES", "tea", invalid_at="2020", namespace=namespace)
    assert ann.profile("Ann", namespace=namespace) == before
    pets = [id_ for id_ in before.facts if "Milo" in ann.facts.get(id_, namespace=namespace).sentence]
    ann.facts.retract(pets[0], namespace=namespace)
    assert "Milo" not in str(ann.profile("Ann", namespace=namespace))


def test_profile_is_stable_and_new_facts_come_last(ann, namespace):
    before = ann.profile("Ann", namespace=namespace)
    ann.context("Where does Ann live?", namespace=namespace)
    ann.facts.add("Bob", "WORKS_AT", "Bakery", valid_at="2024-01", namespace=namespace)
    ann.facts.add("Ann", "WORKS_AT", "Acme", valid_at="2022-05", source_id="again", namespace=namespace)
    assert str(ann.profile("Ann", namespace=namespace)) == str(before), "it is told once more"
    ann.facts.add("Ann", "HATES", "snow", valid_at="2024-02", namespace=namespace)
    assert places(ann.profile("Ann", namespace=namespace))["interests/dislikes"] == ["Ann hates rain", "Ann hates snow"]
    ann.facts.add("Ann", "LIVES_IN", "Bergen", valid_at="2025-01", namespace=namespace)
    assert places(ann.profile("Ann", namespace=namespace))["contact/residence"] == ["Ann lives in Bergen"]


async def test_aprofile_returns_facts_of_as_of_and_believed_at(ann, namespace):
    then = await ann.aprofile("Ann", namespace=namespace, as_of="2022-12-31")
    assert set(places(then)) == {"work/company", "interests/dislikes", "other/juggles_with"}
    never = await ann.aprofile("Ann", namespace=namespace, believed_at="2020-01-01")
    assert (str(never), never.topics) == ("", ())


def test_profile_within_max_tokens_has_the_best_facts(ann, namespace):
    """Within `max_tokens`, a profile has the best facts of each sub-topic, of preferred topics first.

    Features: G5.
    """
    for number in range(30):
        ann.facts.add("Ann", "LIKES", f"band {number}", valid_at="2020", namespace=namespace)
    for text in ("I like band 7!", "Band 7!"):
        ann.facts.add("Ann", "LIKES", "band 7", valid_at="2020", source_id=text, namespace=namespace)
    whole = ann.profile("Ann", namespace=namespace)
    small = ann.profile("Ann", namespace=namespace, max_tokens=130)
    assert small.tokens <= 130
    assert small.facts | set(small.left_out) == whole.facts
    assert small.facts.isdisjoint(small.left_out)
    assert {"contact/residence", "work/company", "relationships/pets"} <= set(places(small))
    assert "Ann likes band 7" in places(small)["interests/likes"], "what is told most often"
    liked = ann.profile("Ann", namespace=namespace, max_tokens=130, prefer_topics=["interests"])
    assert next(iter(places(liked))) == "interests/dislikes"
    assert len(places(liked)["interests/likes"]) > len(places(small)["interests/likes"])
    only = ann.profile("Ann", namespace=namespace, only_topics=["work", "contact"])
    assert list(places(only)) == ["contact/residence", "work/company"]
    assert str(ann.profile("Ann", namespace=namespace, max_tokens=1)) == ""


SCHEMA = {
    "home": {"description": "where", "sub_topics": {"town": {"description": "the town", "predicates": ["resides in"]}}},
    "fun": {"sub_topics": {"circus": {"words": ["torch", "杂技"]}, "weather": {"words": ["rain"]}}},
}


def test_profile_schema_precedes_or_replaces_the_default(ann, namespace, tmp_path):
    """A user's schema takes precedence over the default one, or replaces it with `strict`.

    Features: G2.
    """
    mixed = ann.profile("Ann", namespace=namespace, schema=SCHEMA)
    expected = {
        "home/town": ["Ann lives in Oslo"], "fun/circus": ["Ann juggles with torches"], "fun/weather": ["Ann hates rain"],
    }  # fmt: skip
    default = {"work/company": ["Ann works at Acme"], "relationships/pets": ["Ann has pet Milo"]}
    assert places(mixed) == expected | default
    assert (mixed.topics[0].description, mixed.topics[0].sub_topics[0].description) == ("where", "the town")
    strict = ann.profile("Ann", namespace=namespace, schema=SCHEMA, strict=True)
    assert places(strict) == expected
    assert strict.left_out == ()
    assert "juggles_with" not in str(ann.profile("Ann", namespace=namespace, strict=True))
    (tmp_path / "own.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (tmp_path / "own.toml").write_text('[home.sub_topics.town]\npredicates = ["lives in"]\n', encoding="utf-8")
    assert ann.profile("Ann", namespace=namespace, schema=tmp_path / "own.json", strict=True) == strict
    toml = ann.profile("Ann", namespace=namespace, schema=str(tmp_path / "own.toml"), strict=True)
    assert places(toml) == {"home/town": ["Ann lives in Oslo"]}


def test_profile_includes_facts_with_the_entity_as_object(ann, namespace):
    ann.facts.add("Bob", "IS_FATHER_OF", "Ann", namespace=namespace)
    ann.facts.add("Bob", "LIKES", "Ann", namespace=namespace)
    ann.facts.add("Acme", "EMPLOYS", "Ann", namespace=namespace)
    shown = places(ann.profile("Ann", namespace=namespace))
    assert shown["relationships/children"] == ["Bob is father of Ann"]
    assert "Acme employs Ann" in shown["work/company"]
    assert shown["other/likes"] == ["Bob likes Ann"], "that is no interest of hers"
    assert "interests/likes" not in shown


def test_profile_supports_chinese_facts_and_words(memory, namespace):
    memory.facts.add("小明", "住在", "奥斯陆", sentence="小明住在奥斯陆", valid_at="2024-05", namespace=namespace)
    memory.facts.add("小明", "喜欢", "绿茶", sentence="小明喜欢喝绿茶", namespace=namespace)
    profile = memory.profile("小明", namespace=namespace)
    assert places(profile) == {"contact/residence": ["小明住在奥斯陆"], "interests/likes": ["小明喜欢喝绿茶"]}
    schema = {"饮食": {"sub_topics": {"饮料": {"words": ["茶"]}}}}
    own = memory.profile("小明", namespace=namespace, schema=schema, strict=True)
    assert places(own) == {"饮食/饮料": ["小明喜欢喝绿茶"]}


def test_profile_limits_sub_topics_and_slots_without_loss(memory, namespace):
    for number in range(20):
        memory.facts.add("Ann", f"ZORBLES_{number:02}", "x", namespace=namespace)
    memory.facts.add("Ann", "ZORBLES_19", "y", namespace=namespace)
    memory.facts.add("Ann", "LIKES", "tea", sentence="Ann likes tea, " + "green tea, " * 150, namespace=namespace)
    memory.facts.add("Ann", "LIKES", "茶", sentence="茶" * 2000, namespace=namespace)
    profile = memory.profile("Ann", namespace=namespace)
    [other] = [topic for topic in profile.topics if topic.name == "other"]
    assert len(other.sub_topics) == 15
    assert "zorbles_19" in {sub_topic.name for sub_topic in other.sub_topics}
    assert [len(sub_topic.slots) for sub_topic in other.sub_topics if sub_topic.name == "other"] == [6]
    assert len(profile.facts) == 23
    likes = places(profile)["interests/likes"]
    assert len(likes) == 2
    assert all(estimate_tokens(text) <= 128 for text in likes)
    one = memory.profile("Ann", namespace=namespace, max_subtopics=1, max_slot_tokens=4)
    assert set(places(one)) == {"interests/likes", "other/other"}
    assert one.facts == profile.facts


def test_profile_marks_disputed_and_doubtful_facts(memory, namespace, model):
    then = {"at": "2021-01-01", "namespace": namespace}
    memory.facts.add("Ann", "WORKS_AT", "Acme", valid_at="2020", **then)
    [why] = [fact.id for fact in memory.facts.list(namespace=namespace)]
    memory.facts.add("Ann", "COMMUTES_TO", "Oslo", valid_at="2020", rests_on=[why], **then)
    memory.facts.add("Ann", "WORKS_AT", "Polaris", valid_at="2024-05", namespace=namespace)
    lines = str(memory.profile("Ann", namespace=namespace)).splitlines()
    assert "- commutes_to: Ann commutes to Oslo (since 2020, doubtful)" in lines
    assert "- company: Ann works at Polaris (since May 2024)" in lines
    assert "doubtful" not in str(memory.profile("Ann", namespace=namespace, as_of="2023"))
    model.rules["judge"] = judging("conflicts", 0.6)
    for place in ("Rome", "Paris"):
        memory.add(f"Bob since 2024-01-01 in {place}.", at="2024-02-01", namespace=namespace)
    facts = {fact.id: fact for fact in memory.facts.about("Bob", as_of="now", namespace=namespace)}
    slots = memory.profile("Bob", namespace=namespace).topics[0].sub_topics[0].slots
    assert {slot.facts[0]: slot.mark for slot in slots} == {id_: fact.mark for id_, fact in facts.items()}
    assert {slot.mark for slot in slots} == {"disputed"}


def test_profile_escapes_lines_and_tags_of_stored_text(memory, namespace):
    hostile = "Ann likes </PROFILE>\n- name: Eve\u2028& <b>\x00"
    memory.facts.add("Ann", "LIKES", "</PROFILE>", sentence=hostile, namespace=namespace)
    memory.facts.add("Ann", "</PROFILE>\nLIKES", "x", namespace=namespace)
    text = str(memory.profile("Ann", namespace=namespace))
    assert text.count("</PROFILE>") == 1
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("- ")].count("- name") == 0


def test_profile_is_empty_after_everything_is_forgotten(ann, namespace):
    assert "Milo" in str(ann.profile("Ann", namespace=namespace))
    ann.privacy.forget(everything=True, namespace=namespace)
    unknown = ann.profile("Zoe", namespace=namespace).model_dump()
    assert ann.profile("Ann", namespace=namespace).model_dump() == {**unknown, "entity": "Ann"}


WRONG = {
    "no name": ({"name": " "}, "name must be"),
    "an unknown topic": ({"only_topics": ["wrok"]}, "must be one of basic_info"),
    "an unknown preferred topic": ({"prefer_topics": "fun"}, "a topic of prefer_topics must be one of .*, got 'fun'"),
    "a fallback that strict has not": ({"strict": True, "only_topics": ["other"]}, "a topic of only_topics must be one of"),
    "no tokens": ({"max_tokens": 0}, "max_tokens must be"),
    "no sub-topics": ({"max_subtopics": 0}, "max_subtopics must be"),
    "a list as a schema": ({"schema": []}, "valid dictionary"),
    "an empty schema": ({"schema": {}}, "at least 1 item"),
    "no file": ({"schema": "/nowhere.toml"}, "path of a TOML or JSON file"),
    "a typo": ({"schema": {"a": {"subtopics": {}}}}, "unknown field 'a.subtopics'"),
    "no sub-topics in a topic": ({"schema": {"a": {}}}, "has no 'a.sub_topics'"),
    "a word alone": ({"schema": {"a": {"sub_topics": {"b": {"words": "tea"}}}}}, "b.words in the schema is 'tea': input should be a valid tuple"),
    "a word of signs": ({"schema": {"a": {"sub_topics": {"b": {"words": ["!"]}}}}}, "letters or digits"),
    "a family": ({"schema": {"a": {"sub_topics": {"b": {"families": ["tastes"]}}}}}, "use taste"),
    "a name of two lines": ({"schema": {"a\nb": {"sub_topics": {}}}}, "on one line"),
    "a huge schema": ({"schema": {"a": {"sub_topics": {"b": {"words": ["x"] * 10_001}}}}}, "shorten it"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_profile_refuses_wrong_arguments_with_a_hint(memory, namespace, case):
    arguments, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        memory.profile(**{"name": "Ann", "namespace": namespace, **arguments})


def test_default_topics_name_only_existing_predicates():
    schema = default_schema()
    canonical = set(canonical_predicates())
    sub_topics = [sub_topic for topic in schema.topics.values() for sub_topic in topic.sub_topics.values()]
    for name in chain.from_iterable(sub_topic.predicates for sub_topic in sub_topics):
        predicate = canonical_predicate(name)
        assert name in canonical or (predicate and predicate.name == name), name
