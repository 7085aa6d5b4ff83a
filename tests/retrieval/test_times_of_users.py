"""Times that users give to a search, parsed by pure functions."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.errors import InputError
from kg_memory.retrieval.clocks import parse_moment, parse_window
from kg_memory.temporal.interval import EPOCH, EVER, OPEN_END, OPEN_START
from tests.retrieval.findings import us

NOW = us(2024, 5, 15, 12, 30)

MOMENTS = {
    "a datetime": (datetime(2024, 1, 2, 3, tzinfo=UTC), us(2024, 1, 2, 3)),
    "a naive datetime is UTC": (datetime(2024, 1, 2, 3), us(2024, 1, 2, 3)),  # noqa: DTZ001
    "a datetime of another zone": (datetime(2024, 1, 2, 3, tzinfo=timezone(timedelta(hours=8))), us(2024, 1, 1, 19)),
    "a day": ("2024-01-02", us(2024, 1, 2)),
    "a month": ("2024-01", us(2024, 1, 1)),
    "a year": ("2019", us(2019, 1, 1)),
    "an instant": ("2024-01-02T03:04:05.000006+08:00", us(2024, 1, 1, 19, 4, 5, 6)),
    "last March": ("last March", us(2024, 3, 1)),
    "last year": ("last year", us(2023, 1, 1)),
    "yesterday": ("yesterday", us(2024, 5, 14)),
    "last month, in Chinese": ("上个月", us(2024, 4, 1)),
    "last year, in Chinese": ("去年", us(2023, 1, 1)),
    "now": ("now", NOW),
    "now, in Chinese": ("现在", NOW),
    "nothing": (None, NOW),
}


@pytest.mark.parametrize(("given_", "expected"), MOMENTS.values(), ids=MOMENTS.keys())
def test_parse_moment_returns_first_instant(given_, expected):
    assert parse_moment("as_of", given_, NOW) == expected
    assert parse_window(given_, None, NOW) == (None if given_ is None else (expected, expected + 1))


WINDOWS = {
    "a year": ("2019", (us(2019, 1, 1), us(2020, 1, 1))),
    "a month": ("2024-02", (us(2024, 2, 1), us(2024, 3, 1))),
    "a day": ("2024-02-29", (us(2024, 2, 29), us(2024, 3, 1))),
    "last March": ("last March", (us(2024, 3, 1), us(2024, 4, 1))),
    "last month, in Chinese": ("上个月", (us(2024, 4, 1), us(2024, 5, 1))),
    "two times": (("2019", "2021"), (us(2019, 1, 1), us(2021, 1, 1))),
    "a list of two": (["2019", datetime(2021, 1, 1, tzinfo=UTC)], (us(2019, 1, 1), us(2021, 1, 1))),
    "from a time on, without the + of a URL": (("2019-01-01T02:00 02:00", None), (us(2019, 1, 1), OPEN_END + 1)),
    "until a time": ((None, "2019"), (OPEN_START, us(2019, 1, 1))),
    "ever": ((None, None), EVER),
    "words with an open end": ("since 2016", (us(2016, 1, 1), OPEN_END + 1)),
}


@pytest.mark.parametrize(("during", "expected"), WINDOWS.values(), ids=WINDOWS.keys())
def test_parse_window_covers_the_whole_period(during, expected):
    assert parse_window(None, during, NOW) == expected


BAD = [
    "", " ", "soon", "2024-02-30", "\x00", "\ud800", "last March\u202e", "x" * 10_000, "2024-01-01T25:00", "NaN",
    7, 1.5, float("nan"), True, b"2019", ["2019"], {"at": "2019"}, object,
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_invalid_time_raises_with_name_of_parameter(bad):
    with pytest.raises(InputError, match=r"^believed_at must be "):
        parse_moment("believed_at", bad, NOW)
    with pytest.raises(InputError, match=r"^as_of must be "):
        parse_window(bad, None, NOW)
    with pytest.raises(InputError, match=r"^during must be "):
        parse_window(None, (bad, None), NOW)


@given(st.datetimes(), st.datetimes())
def test_parse_window_of_datetimes_is_half_open(one, other):
    since, until = sorted((one, other))
    if since == until:
        with pytest.raises(InputError):
            parse_window(None, (since, until), NOW)
        return
    window = parse_window(None, (since, until), NOW)
    assert window == tuple((each.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for each in (since, until))
    assert parse_window(since, None, NOW) == (window[0], window[0] + 1)
    assert OPEN_START < window[0] < window[1] < OPEN_END
    last = "9999-12-31T23:59:59.999999Z"
    assert parse_window(last, None, NOW) == parse_window(last.replace("9Z", "8Z"), None, NOW)


@given(st.text(max_size=60))
def test_parse_moment_of_any_text_returns_time_or_raises(text):
    try:
        found = parse_moment("as_of", text, NOW)
    except InputError as error:
        assert str(error).startswith("as_of must be ")  # noqa: PT017
    else:
        assert OPEN_START <= found < OPEN_END
