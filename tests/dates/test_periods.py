from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.temporal.interval import Interval, parse_instant, parse_period


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2023-06-09T10:30:15Z", datetime(2023, 6, 9, 10, 30, 15, tzinfo=UTC)),
        ("2023-06-09T10:30:15.123456789Z", datetime(2023, 6, 9, 10, 30, 15, 123456, tzinfo=UTC)),
        ("2023-06-09T10:30:15.5+08:00", datetime(2023, 6, 9, 2, 30, 15, 500000, tzinfo=UTC)),
        ("2023-06-09 10:30 -0530", datetime(2023, 6, 9, 16, 0, tzinfo=UTC)),
        ("2023-06-09T10:30", datetime(2023, 6, 9, 10, 30, tzinfo=UTC)),
        ("2023-06-09", datetime(2023, 6, 9, tzinfo=UTC)),
        (" 2023/6/9 ", datetime(2023, 6, 9, tzinfo=UTC)),
        ("2023-06", datetime(2023, 6, 1, tzinfo=UTC)),
        ("2023", datetime(2023, 1, 1, tzinfo=UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_parse_instant_returns_utc(written, meant):
    assert parse_instant(written) == meant


NO_INSTANTS = (
    "null | None | unknown | N/A | soon | last week | 0000 | 0000-01-01 | 10000-01-01 | 2023-13-01 | 2023-02-30 | "
    "2023-06-09T25:00 | 2023-06-09T10:30:15+99:00 | 0001-01-01T00:00:00+14:00 | 9999-12-31T23:59:59-12:00 | "
    "٢٠٢٣-٠٦-٠٩ | 2023-06-09T10:30:15Z or so | 20230609123 | -2023-01-01"
).split(" | ")


@pytest.mark.parametrize("written", [*NO_INSTANTS, None, ""])
def test_parse_instant_returns_none_for_other_text(written):
    assert parse_instant(written) is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_parse_instant_reverses_isoformat(instant):
    assert parse_instant(instant.isoformat()) == instant


@pytest.mark.parametrize(
    ("written", "start", "end", "precision"),
    [
        ("2019", datetime(2019, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), "year"),
        ("2019-05", datetime(2019, 5, 1, tzinfo=UTC), datetime(2019, 6, 1, tzinfo=UTC), "month"),
        ("2019-12", datetime(2019, 12, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), "month"),
        ("2019-W01", datetime(2018, 12, 31, tzinfo=UTC), datetime(2019, 1, 7, tzinfo=UTC), "week"),
        ("2019W12", datetime(2019, 3, 18, tzinfo=UTC), datetime(2019, 3, 25, tzinfo=UTC), "week"),
        ("2019-W12-3", datetime(2019, 3, 20, tzinfo=UTC), datetime(2019, 3, 21, tzinfo=UTC), "day"),
        ("2019-05-03", datetime(2019, 5, 3, tzinfo=UTC), datetime(2019, 5, 4, tzinfo=UTC), "day"),
        (" 2019/5/3 ", datetime(2019, 5, 3, tzinfo=UTC), datetime(2019, 5, 4, tzinfo=UTC), "day"),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC), "day"),
        ("9999", datetime(9999, 1, 1, tzinfo=UTC), None, "year"),
        ("9999-12-31", datetime(9999, 12, 31, tzinfo=UTC), None, "day"),
    ],
)
def test_parse_period_length_follows_the_written_precision(written, start, end, precision):
    assert parse_period(written) == Interval(start, end, precision)


@pytest.mark.parametrize(
    ("written", "start"),
    [
        ("2019-05-03T00:00:00Z", datetime(2019, 5, 3, tzinfo=UTC)),
        ("2019-05-03T00:00", datetime(2019, 5, 3, tzinfo=UTC)),
        ("2019-05-03T10:00:00.5+08:00", datetime(2019, 5, 3, 2, 0, 0, 500000, tzinfo=UTC)),
    ],
)
def test_parse_period_returns_an_instant_for_a_time_of_day(written, start):
    assert parse_period(written) == Interval(start, start + timedelta(microseconds=1), "instant")


@pytest.mark.parametrize(
    "written",
    [None, "", "soon", "0000", "10000", "2023-13", "2023-02-30", "2019-W54", "2019-W00", "2019-W12-8", "W12", "٢٠٢٣"],
)
def test_parse_period_returns_none_for_other_text(written):
    assert parse_period(written) is None


@given(st.text() | st.from_regex(r"\d{1,5}(-W?\d{1,3}){0,2}(T\d\d:\d\d(Z|\+\d\d:\d\d)?)?", fullmatch=True))
def test_parse_period_starts_at_the_parsed_instant(text):
    period, instant = parse_period(text), parse_instant(text)

    assert instant is None or (period is not None and period.start == instant)
    assert period is None or period.end is None or period.start < period.end
