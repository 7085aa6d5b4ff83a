import pytest

from kg_memory.contrib.offline import OfflineModel
from kg_memory.errors import ModelError
from kg_memory.llm import prompts
from kg_memory.llm.prompts.answers import Reflection
from kg_memory.runtime.effects import Ask, PromptTemplate

MODEL = OfflineModel()


def fact(id_, predicate, *objects, subject="Ann", sentence="", **times):
    told = {"id": id_, "subject": subject, "predicate": predicate, "objects": list(objects)}
    sentence = sentence or f"Ann: {predicate} {' '.join(objects)}"
    return {**told, "sentence": sentence, "valid_at": None, "invalid_at": None, **times}


def judged(new, *known):
    """Return the verdicts on *new* and its related facts of *known*, by id."""
    answer = MODEL.answer(Ask(prompts.JUDGE, {"facts": [{"quote": "", **new, "existing": list(known)}]}))
    assert all(each.fact == new["id"] for each in answer.verdicts)
    return {each.known: each for each in answer.verdicts}


def same_as(new, *known):
    return next((id_ for id_, each in judged(new, *known).items() if each.verdict == "duplicate"), None)


def superseded(new, *known):
    return [id_ for id_, each in judged(new, *known).items() if each.verdict == "supersedes"]


def resolved(name, type_, *candidates):
    known = [
        {"id": place, "name": each, "type": type_, "summary": "", "aliases": [], "score": 0.9}
        for place, each in enumerate(candidates)
    ]
    entity = {"id": 3, "name": name, "type": type_, "candidates": known}
    (answer,) = MODEL.answer(Ask(prompts.RESOLVE, {"episode": {}, "previous": [], "entities": [entity]})).resolutions
    return answer.entity, answer.same_as, answer.name


@pytest.mark.parametrize(
    ("name", "type_", "candidates", "expected"),
    [
        ("marianne", "Person", ["Marianne"], (3, 0, "marianne")),
        ("Marianne", "Person", ["Judith", "Marianne Smith"], (3, 1, "Marianne Smith")),
        ("Marianne Smith", "Person", ["Marianne"], (3, 0, "Marianne Smith")),
        ("Marianne", "Person", ["Marianne Smith", "Marianne Jones"], (3, None, "Marianne")),
        ("Marianne Smith", "Person", ["Marianne Jones"], (3, None, "Marianne Smith")),
        ("Ann", "Person", ["Ann's mother"], (3, None, "Ann")),
        ("Anna", "Person", ["Ann"], (3, None, "Anna")),
        ("WHO", "Organization", ["World Health Organization"], (3, 0, "World Health Organization")),
        ("The pottery classes", "Topic", ["pottery class"], (3, 0, "The pottery classes")),
        ("dance studio", "Topic", ["dance"], (3, None, "dance studio")),
        ("小明", "Person", ["小明的妈妈"], (3, None, "小明")),
    ],
)
def test_resolve_merges_names_only_if_surely_the_same(name, type_, candidates, expected):
    answer = resolved(name, type_, *candidates)

    assert answer[:2] == expected[:2]
    assert answer[2].casefold() in (expected[2].casefold(), candidates[expected[1] or 0].casefold())


def test_general_fact_is_duplicate_only_in_nearly_same_words():
    known = fact(7, "SAYS_ABOUT", "pottery", sentence="Ann: Pottery calms me after a long day at work.")

    same = fact(0, "SAYS_ABOUT", "pottery", sentence="Ann: pottery calms me after a long day at work!")
    assert same_as(same, known) == 7
    assert same_as(fact(0, "SAYS_ABOUT", "pottery", sentence="Ann: My pottery broke in the kiln."), known) is None


def test_two_visits_on_two_days_are_two_facts():
    known = fact(7, "VISITED", "Rome", valid_at="2023-01-01T00:00:00Z")

    assert same_as(fact(0, "VISITED", "Rome", valid_at="2023-05-01T00:00:00Z"), known) is None


def test_single_valued_field_supersedes_old_value_unlike_list():
    def status(id_, value):
        return fact(id_, "STATUS", value, subject="order 7", sentence=f"order 7: status is {value}.")

    def tag(id_, value):
        return fact(id_, "TAGS", value, subject="order 7", sentence=f"order 7: tags include {value}.")

    assert superseded(status(0, "shipped"), status(4, "open")) == [4]
    assert superseded(tag(0, "vip"), tag(4, "eu")) == []


def test_reflection_finds_nothing_missed_or_unsupported():
    assert MODEL.answer(Ask(prompts.REFLECT, {"entities": []})) == Reflection(missed=[], unsupported=[])


def test_summary_is_short_and_made_of_sentences_of_facts():
    facts = [f"Ann: I painted picture number {number} of the harbour." for number in range(20)]
    facts.append("Ann: I live in Oslo with my sister Lily.")
    entity = {"id": 0, "name": "Ann", "type": "Person", "summary": "", "facts": facts}

    (summary,) = MODEL.answer(Ask(prompts.SUMMARISE, {"entities": [entity]})).summaries

    assert len(summary.summary) <= 300
    assert "Oslo" in summary.summary
    assert all(f"{sentence}." in facts for sentence in summary.summary.rstrip(".").split(". "))


def test_summary_cuts_one_long_fact():
    entity = {"id": 0, "name": "Ann", "type": "Person", "summary": "", "facts": ["word " * 200]}

    assert len(MODEL.answer(Ask(prompts.SUMMARISE, {"entities": [entity]})).summaries[0].summary) <= 300


async def test_aanswer_equals_answer():
    new = {**fact(0, "LIVES_IN", "Oslo"), "quote": "", "existing": [fact(7, "LIVES_IN", "Oslo")]}
    ask = Ask(prompts.JUDGE, {"facts": [new]})

    assert await MODEL.aanswer(ask) == MODEL.answer(ask)


def test_record_field_is_single_valued_and_predicate_unchanged():
    asked = [{"name": name, "sentence": ""} for name in ("ORDER_STATUS", "JUGGLES", "状态")]

    answer = MODEL.answer(Ask(prompts.PREDICATES, {"predicates": asked, "known": ["LIVES_IN"]}))

    found = [(each.name, each.canonical, each.one_at_a_time) for each in answer.predicates]
    assert found == [("ORDER_STATUS", "ORDER_STATUS", True), ("JUGGLES", "JUGGLES", False), ("状态", "状态", True)]


def test_answer_raises_for_unknown_prompt():
    with pytest.raises(ModelError, match="use one of"):
        MODEL.answer(Ask(PromptTemplate("translate", "", frozenset(), Reflection), {}))
