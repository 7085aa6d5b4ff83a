"""Facts that the episodes of a window will have added, as the next of them is told them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kg_memory.ingestion.codec import from_plain
from kg_memory.ingestion.in_flight import FactsInFlight
from kg_memory.ingestion.records import CandidateFact, StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END
from tests.ingestion.stepping import NOW, state
from tests.ingestion.test_contradictions import KNOWN, fact, stored

VECTOR = [1.0]


def new(**given: Any) -> StatedFact:
    return from_plain(StatedFact, fact(**given))


def later(**given: Any) -> CandidateFact:
    """Return a stored fact that was stated after `NOW`."""
    row = stored(objects=("Paris",), **{"stated_at": NOW + 5, "stated_by": "later", **given})
    return from_plain(CandidateFact, row["value"])


def draft(*facts: StatedFact) -> Draft:
    return Draft(state(entities=KNOWN), facts=facts)


def flight(repeat: StatedFact, candidate: CandidateFact) -> FactsInFlight:
    """Return one where *repeat* was stated, which says the same as the stored *candidate*."""
    facts, again = FactsInFlight(Settings()), replace(repeat, same_as=candidate.id)
    facts.add([again], [VECTOR], [{candidate.id: candidate}], draft(again))
    return facts


def test_a_stored_fact_that_is_said_again_later_stays_as_it_is():
    candidate = later(stated_at=NOW - 5)
    assert flight(new(), candidate).find_related(new(id_="next"), VECTOR, {"old": candidate}) == {"old": candidate}


def test_one_of_which_the_first_words_are_in_flight_is_told_by_these():
    first = new(sentence="Ann dwells in Paris.", predicate="DWELLS_IN", valid_at=NOW - 9)
    related = flight(first, later()).find_related(new(id_="next"), VECTOR, {"old": later()})["old"]
    assert related == replace(
        later(), sentence="Ann dwells in Paris.", predicate="DWELLS_IN", stated_at=NOW, stated_by="e", only_ends=False,
        valid_at=NOW - 9, invalid_at=OPEN_END,
    )  # fmt: skip


def test_one_that_was_told_by_its_end_alone_is_told_by_other_words():
    candidate = later(stated_at=NOW - 5, only_ends=True)
    assert not flight(new(), candidate).find_related(new(id_="next"), VECTOR, {"old": candidate})["old"].only_ends


def test_one_that_is_in_flight_itself_is_told_by_its_first_words_too():
    facts = FactsInFlight(Settings())
    for stated, stated_at in ((new(stated_at=NOW), NOW), (new(stated_at=NOW - 7, same_as="new"), NOW - 7)):
        candidates = facts.find_related(stated, VECTOR, {})
        facts.add([stated], [VECTOR], [candidates], draft(stated))
        assert facts.find_related(new(id_="next"), VECTOR, {})["new"].stated_at == stated_at
