from dataclasses import asdict

from kg_memory.ingestion.records import EntityMention
from kg_memory.llm.prompts.answers import Reflection
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered, ended, reflect, state

KNOWN = [{"name": "Ann", "type": "Person"}, {"name": "Oslo", "type": "Place"}]
TWO = [{"content": "One. ", "start": 0}, {"content": "Two.", "start": 5}]


def thought(missed: tuple[str, ...] = (), unsupported: tuple[str, ...] = ()) -> Reflection:
    return Reflection(missed=[{"name": name, "type": "Person"} for name in missed], unsupported=list(unsupported))


def names(*answers: Reflection, **given) -> list[str]:
    settings = Settings(reflections=given.pop("reflections", 1))
    result, _ = answered(reflect(state(mentions=KNOWN, **given), settings), *answers)
    return [each["name"] for each in result["mentions"]]


def test_reflect_adds_missed_and_drops_unsupported_entities():
    """Reflection adds missed entities and drops unsupported ones.

    Features: A16.
    """
    assert names(thought(("Bob",), ("oslo",))) == ["Ann", "Bob"]


def test_reflect_drops_only_names_unsupported_by_all_pieces():
    """It never drops the speaker, and does not add what is missed and unsupported at once."""
    assert names(thought((), ("ANN", "Oslo"))) == ["Ann"]
    assert names(thought(("Bob",), ("Bob",))) == ["Ann", "Oslo"]
    assert names(thought((), ("Oslo",)), thought(), pieces=TWO) == ["Ann", "Oslo"]
    assert names(thought((), ("Oslo",)), thought((), ("OSLO",)), pieces=TWO) == ["Ann"]


def test_reflect_stops_when_nothing_changes():
    assert names(thought(("Bob",)), thought(), reflections=5) == ["Ann", "Oslo", "Bob"]
    assert names(thought(), reflections=5) == ["Ann", "Oslo"]


def test_reflect_round_gets_entities_of_earlier_rounds():
    """Each round of reflection gets the entities found by the earlier rounds.

    Features: B5.
    """
    flow = reflect(state(mentions=KNOWN), Settings(reflections=2))
    _, asked = answered(flow, thought(("Bob",)), thought(("Carl",)))
    given = [[each["name"] for each in ask.fields["entities"]] for ask in asked]
    assert given == [["Ann", "Oslo"], ["Ann", "Oslo", "Bob"]]


def test_reflect_asks_nothing_with_zero_rounds():
    mentions = [asdict(EntityMention(**each)) for each in KNOWN]
    assert ended(reflect(state(mentions=KNOWN), Settings(reflections=0))) == {"mentions": mentions, "dropped": []}
