from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.ingestion.date import date
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END, OPEN_START, instant
from tests.ingestion.stepping import ended, state

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def dated(
    content: str = "I live in Oslo.", said_from: str | None = None, said_until: str | None = None
) -> tuple[Any, Any]:
    """Return the interval of a fact that all of *content*, said on 1 January 2024, states."""
    fact = {"start": 0, "end": len(content), "quoted": True, "said_from": said_from, "said_until": said_until}
    [found] = ended(date(state(content, facts=[fact]), Settings()))["facts"]
    assert OPEN_START <= found["valid_at"] < found["invalid_at"] <= OPEN_END
    return instant(found["valid_at"]), instant(found["invalid_at"])


def test_the_models_dates_are_taken_in_utc():
    assert dated(said_from="2024-05-01") == (datetime(2024, 5, 1, tzinfo=UTC), None)
    assert dated(said_from="2024-05-01T02:00:00+02:00", said_until="2025") == (
        datetime(2024, 5, 1, tzinfo=UTC),
        datetime(2025, 1, 1, tzinfo=UTC),
    )
    assert dated(said_until="2023-12-01") == (None, datetime(2023, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", ["soon", "2024-13-01", "0000-00-00", "99999", "2024-02-30", "now", "\x00", "-" * 50])
def test_a_date_that_is_none_is_no_date(text):
    assert dated(said_from=text, said_until=text) == (None, None)


def test_where_the_model_gave_none_the_words_that_state_the_fact_may_name_one():
    assert dated("I moved to Oslo on 5 May 2023.") == (datetime(2023, 5, 5, tzinfo=UTC), None)
    assert dated("I moved to Oslo yesterday.") == (datetime(2023, 12, 31, tzinfo=UTC), None)


def test_two_dates_in_the_words_are_no_date_as_nobody_knows_which():
    assert dated("I was in Oslo on 5 May 2023 and in Rome on 6 June 2023.") == (None, None)


def test_a_date_in_other_words_of_the_episode_is_not_the_facts():
    fact = {"start": 0, "end": 15, "quoted": True, "said_from": None, "said_until": None}
    given = state("I live in Oslo. We met on 5 May 2023.", facts=[fact])
    [found] = ended(date(given, Settings()))["facts"]
    assert found["valid_at"] == OPEN_START


def test_words_that_were_not_found_or_that_state_several_facts_give_none_a_date():
    content = "I work with Acme. My sister was born in 1990."
    fact = {"start": 0, "end": len(content), "quoted": True, "said_from": None, "said_until": None}
    for facts in ([{**fact, "quoted": False}], [fact, fact]):
        found = ended(date(state(content, facts=facts), Settings()))["facts"]
        assert {each["valid_at"] for each in found} == {OPEN_START}


@pytest.mark.parametrize("until", ["2024-04-01", "2024-05-01"])
def test_an_end_that_is_not_after_the_start_is_dropped(until):
    assert dated(said_from="2024-05-01", said_until=until) == (datetime(2024, 5, 1, tzinfo=UTC), None)


def test_an_end_given_by_the_model_is_not_given_a_start_from_the_words():
    assert dated("I left Oslo on 5 May 2023.", said_until="2023-05-05") == (None, datetime(2023, 5, 5, tzinfo=UTC))
