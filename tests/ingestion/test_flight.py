"""Facts that the episodes of a window will have added, as the next of them is told them."""

from __future__ import annotations

from kg_memory.ingestion.prefetch.in_flight import FactsInFlight
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END
from tests.ingestion.stepping import NOW, state
from tests.ingestion.test_judge import KNOWN, fact, stored

VECTOR = [1.0]


def flight(*said: tuple[dict, dict]) -> FactsInFlight:
    """Return one where facts were said, each with the known one that it is again."""
    found = FactsInFlight(Settings())
    for each, known in said:
        again = {**each, "same_as": known["fact"]["id"]}
        found.add([again], [VECTOR], [{known["fact"]["id"]: known}], state(entities=KNOWN, facts=[again]))
    return found


def told(known: dict) -> tuple:
    return (
        known["fact"]["sentence"], known["fact"]["predicate"], known["told_at"], known["told_by"], known["told_end"],
        known["valid_at"], known["invalid_at"],
    )  # fmt: skip


def later(**given) -> dict:
    return {**stored(objects=("Paris",)), "told_at": NOW + 5, "told_by": "later", **given}


def test_a_stored_fact_that_is_said_again_later_stays_as_it_is():
    known = {**later(), "told_at": NOW - 5}
    assert flight((fact(), known)).related(fact("next"), VECTOR, {"old": known}) == {"old": known}


def test_one_of_which_the_first_words_are_in_flight_is_told_by_these():
    first = fact(sentence="Ann dwells in Paris.", predicate="DWELLS_IN", valid_at=NOW - 9)
    found = flight((first, later())).related(fact("next"), VECTOR, {"old": later()})["old"]
    episode = state()["episode"]["id"]
    assert told(found) == ("Ann dwells in Paris.", "DWELLS_IN", NOW, episode, False, NOW - 9, OPEN_END)
    assert (found["objects"], found["beliefs"]) == (later()["objects"], later()["beliefs"])


def test_one_that_was_told_by_its_end_alone_is_told_by_other_words():
    known = later(told_at=NOW - 5, told_end=True)
    assert not flight((fact(), known)).related(fact("next"), VECTOR, {"old": known})["old"]["told_end"]


def test_one_that_is_in_flight_itself_is_told_by_its_first_words_too():
    found = FactsInFlight(Settings())
    for each, said_at in ((fact(said_at=NOW), NOW), (fact(said_at=NOW - 7, same_as="new"), NOW - 7)):
        known = found.related(each, VECTOR, {})
        found.add([each], [VECTOR], [known], state(entities=KNOWN, facts=[each]))
        assert found.related(fact("next"), VECTOR, {})["new"]["told_at"] == said_at
