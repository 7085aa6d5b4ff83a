"""Dates, in words and in figures."""

from datetime import UTC, datetime

import pytest

from kg_memory.text.dated import bounds_in_words, day_in_figures, period_in_figures, period_in_words
from tests.retrieval.findings import JUNE, MAY, NOW, fact

YEAR_2019 = datetime(2019, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "words", "figures"),
    [
        ({"valid_at": MAY}, "since 1 May 2023", "2023-05-01 - now"),
        ({}, "date unknown", "date unknown - now"),
        ({"invalid_at": JUNE}, "until 1 June 2023", "date unknown - 2023-06-01"),
        ({"valid_at": MAY, "invalid_at": JUNE}, "from 1 May 2023 to 1 June 2023", "2023-05-01 - 2023-06-01"),
        ({"valid_at": MAY, "invalid_at": MAY.replace(day=2)}, "on 1 May 2023", "2023-05-01"),
        (
            {"valid_at": MAY.replace(hour=9), "invalid_at": MAY.replace(hour=10)},
            "on 1 May 2023 from 09:00 to 10:00 UTC",
            "2023-05-01 09:00 UTC - 2023-05-01 10:00 UTC",
        ),
        (
            {"valid_at": MAY.replace(hour=22), "invalid_at": MAY.replace(day=2, hour=3)},
            "from 1 May 2023 22:00 UTC to 2 May 2023 03:00 UTC",
            "2023-05-01 22:00 UTC - 2023-05-02 03:00 UTC",
        ),
        ({"valid_at": MAY, "precision": "day"}, "since 1 May 2023", "2023-05-01 - now"),
        ({"valid_at": MAY, "precision": "week"}, "since the week of 1 May 2023", "week of 2023-05-01 - now"),
        ({"valid_at": MAY, "precision": "month"}, "since May 2023", "2023-05 - now"),
        ({"valid_at": JUNE, "precision": "season"}, "since summer 2023", "summer 2023 - now"),
        (
            {"valid_at": datetime(2023, 12, 1, tzinfo=UTC), "precision": "season"},
            "since winter 2023",
            "winter 2023 - now",
        ),
        ({"valid_at": YEAR_2019, "precision": "year"}, "since 2019", "2019 - now"),
        (
            {"valid_at": YEAR_2019, "precision": "year", "invalid_at": MAY},
            "from 2019 to 1 May 2023",
            "2019 - 2023-05-01",
        ),
        (
            {"valid_at": MAY, "invalid_at": JUNE, "end_precision": "month"},
            "from 1 May 2023 to June 2023",
            "2023-05-01 - 2023-06",
        ),
        (
            {"valid_at": MAY, "invalid_at": MAY.replace(day=2), "precision": "month"},
            "from May 2023 to 2 May 2023",
            "2023-05 - 2023-05-02",
        ),
        (
            {
                "valid_at": datetime(2019, 12, 31, tzinfo=UTC),
                "invalid_at": datetime(2020, 1, 1, tzinfo=UTC),
                "end_precision": "year",
            },
            "from 31 December 2019 to 2020",
            "2019-12-31 - 2020",
        ),
        ({"known_from": MAY}, "said on 1 May 2023", "by 2023-05-01 - now"),
        (
            {"known_from": MAY.replace(hour=9), "invalid_at": JUNE},
            "until 1 June 2023",
            "by 2023-05-01 09:00 UTC - 2023-06-01",
        ),
        ({"valid_at": MAY, "reviewed": False}, "since 1 May 2023, not reviewed", "2023-05-01 - now, not reviewed"),
        ({"valid_at": datetime(1, 1, 1, tzinfo=UTC)}, "since 1 January 1", "1-01-01 - now"),
        (
            {"valid_at": datetime(9999, 12, 31, 23, tzinfo=UTC), "precision": "month"},
            "since December 9999",
            "9999-12 - now",
        ),
    ],
)
def test_period_is_as_precise_as_known_in_words_and_figures(times, words, figures):
    assert period_in_words(fact(**times)) == words
    assert period_in_figures(fact(**times)).replace("0001", "1") == figures


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"valid_at": MAY, "invalid_at": JUNE}, "no longer so: from 1 May 2023 to 1 June 2023"),
        ({"invalid_at": JUNE, "end_precision": "month"}, "no longer so: ended June 2023"),
        ({"known_from": MAY, "invalid_at": JUNE}, "no longer so: ended 1 June 2023"),
        ({"valid_at": MAY, "invalid_at": NOW}, "no longer so: from 1 May 2023 to 1 January 2024"),
        ({"valid_at": MAY, "invalid_at": NOW.replace(day=2)}, "from 1 May 2023 to 2 January 2024"),
        ({"invalid_at": NOW.replace(year=2030)}, "until 1 January 2030"),
        ({"valid_at": MAY}, "since 1 May 2023"),
    ],
)
def test_period_in_words_marks_ended_facts(times, words):
    assert period_in_words(fact(**times), NOW) == words


def test_period_in_words_does_not_mark_event_of_a_day():
    assert period_in_words(fact(valid_at=MAY, invalid_at=MAY.replace(day=2)), NOW) == "on 1 May 2023"
    assert (
        period_in_words(fact(valid_at=MAY, invalid_at=MAY.replace(hour=2)), NOW)
        == "on 1 May 2023 from 00:00 to 02:00 UTC"
    )


def test_bounds_in_words_returns_both_ends():
    assert bounds_in_words(fact(valid_at=MAY, precision="month")) == ("May 2023", "present")
    assert bounds_in_words(fact(known_from=MAY, invalid_at=JUNE)) == ("by 1 May 2023", "1 June 2023")
    assert bounds_in_words(fact()) == ("date unknown", "present")


def test_day_in_figures_includes_time_of_day():
    assert day_in_figures(MAY.replace(hour=13, minute=5)) == "2023-05-01 13:05 UTC"
