from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.dates import parse_instant


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
def test_an_iso_instant_is_read_in_utc(written, meant):
    assert parse_instant(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        None, "", "null", "None", "unknown", "N/A", "soon", "last week", "0000", "0000-01-01", "10000-01-01", "2023-13-01", "2023-02-30",
        "2023-06-09T25:00", "2023-06-09T10:30:15+99:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "٢٠٢٣-٠٦-٠٩",
        "2023-06-09T10:30:15Z or so", "20230609123", "-2023-01-01",
    ],
)  # fmt: skip
def test_what_is_no_instant_is_none(written):
    assert parse_instant(written) is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_python_writes_is_read_back(instant):
    assert parse_instant(instant.isoformat()) == instant


@given(st.text())
def test_no_text_raises(text):
    assert parse_instant(text) is None or parse_instant(text).tzinfo is UTC
