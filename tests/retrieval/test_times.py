"""Dates, in words and in figures."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.models.graph import Fact
from kg_memory.text.dated import bounds_in_words, day_in_figures, period_in_figures, period_in_words
from tests.retrieval.findings import JUNE, MAY, NOW, fact

NINE, NEXT_DAY, YEAR_2019 = MAY.replace(hour=9), MAY.replace(day=2), datetime(2019, 1, 1, tzinfo=UTC)


def held(since: datetime | None = None, until: datetime | None = None, **given: Any) -> Fact:
    return fact(valid_at=since, invalid_at=until, **given)


@pytest.mark.parametrize(
    ("period", "words", "figures"),
    [
        (held(MAY), "since 1 May 2023", "2023-05-01 - now"),
        (held(), "date unknown", "date unknown - now"),
        (held(None, JUNE), "until 1 June 2023", "date unknown - 2023-06-01"),
        (held(MAY, JUNE), "from 1 May 2023 to 1 June 2023", "2023-05-01 - 2023-06-01"),
        (held(MAY, NEXT_DAY), "on 1 May 2023", "2023-05-01"),
        (
            held(NINE, MAY.replace(hour=10)),
            "on 1 May 2023 from 09:00 to 10:00 UTC", "2023-05-01 09:00 UTC - 2023-05-01 10:00 UTC",
        ),
        (
            held(MAY.replace(hour=22), MAY.replace(day=2, hour=3)),
            "from 1 May 2023 22:00 UTC to 2 May 2023 03:00 UTC", "2023-05-01 22:00 UTC - 2023-05-02 03:00 UTC",
        ),
        (held(MAY, precision="day"), "since 1 May 2023", "2023-05-01 - now"),
        (held(MAY, precision="week"), "since the week of 1 May 2023", "week of 2023-05-01 - now"),
        (held(MAY, precision="month"), "since May 2023", "2023-05 - now"),
        (held(JUNE, precision="season"), "since summer 2023", "summer 2023 - now"),
        (held(datetime(2023, 12, 1, tzinfo=UTC), precision="season"), "since winter 2023", "winter 2023 - now"),
        (held(YEAR_2019, precision="year"), "since 2019", "2019 - now"),
        (held(YEAR_2019, MAY, precision="year"), "from 2019 to 1 May 2023", "2019 - 2023-05-01"),
        (held(MAY, JUNE, end_precision="month"), "from 1 May 2023 to June 2023", "2023-05-01 - 2023-06"),
        (held(MAY, NEXT_DAY, precision="month"), "from May 2023 to 2 May 2023", "2023-05 - 2023-05-02"),
        (
            held(datetime(2019, 12, 31, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), end_precision="year"),
            "from 31 December 2019 to 2020", "2019-12-31 - 2020",
        ),
        (held(known_from=MAY), "said on 1 May 2023", "by 2023-05-01 - now"),
        (held(None, JUNE, known_from=NINE), "until 1 June 2023", "by 2023-05-01 09:00 UTC - 2023-06-01"),
        (held(MAY, reviewed=False), "since 1 May 2023, not reviewed", "2023-05-01 - now, not reviewed"),
        (held(datetime(1, 1, 1, tzinfo=UTC)), "since 1 January 1", "1-01-01 - now"),
        (held(datetime(9999, 12, 31, 23, tzinfo=UTC), precision="month"), "since December 9999", "9999-12 - now"),
    ],
)  # fmt: skip
def test_period_is_as_precise_as_known_in_words_and_figures(period, words, figures):
    assert period_in_words(period) == words
    assert period_in_figures(period).replace("0001", "1") == figures


@pytest.mark.parametrize(
    ("period", "words"),
    [
        (held(MAY, JUNE), "no longer so: from 1 May 2023 to 1 June 2023"),
        (held(None, JUNE, end_precision="month"), "no longer so: ended June 2023"),
        (held(None, JUNE, known_from=MAY), "no longer so: ended 1 June 2023"),
        (held(MAY, NOW), "no longer so: from 1 May 2023 to 1 January 2024"),
        (held(MAY, NOW.replace(day=2)), "from 1 May 2023 to 2 January 2024"),
        (held(None, NOW.replace(year=2030)), "until 1 January 2030"),
        (held(MAY), "since 1 May 2023"),
        (held(MAY, NEXT_DAY), "on 1 May 2023"),  # an event of a day
        (held(MAY, MAY.replace(hour=2)), "on 1 May 2023 from 00:00 to 02:00 UTC"),
    ],
)
def test_period_in_words_marks_ended_states(period, words):
    assert period_in_words(period, NOW) == words


def test_bounds_in_words_returns_both_ends():
    assert bounds_in_words(held(MAY, precision="month")) == ("May 2023", "present")
    assert bounds_in_words(held(None, JUNE, known_from=MAY)) == ("by 1 May 2023", "1 June 2023")
    assert bounds_in_words(fact()) == ("date unknown", "present")


def test_day_in_figures_includes_time_of_day():
    assert day_in_figures(MAY.replace(hour=13, minute=5)) == "2023-05-01 13:05 UTC"
