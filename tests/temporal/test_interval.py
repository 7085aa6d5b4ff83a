"""Instants as the graph stores them (integer microseconds), and intervals."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, Interval, instant, micros


@given(st.datetimes(timezones=st.just(UTC)))
def test_instant_reverses_micros(moment):
    assert instant(micros(moment, default=0)) == moment


def test_instant_returns_none_for_open_ends():
    assert instant(micros(None, default=OPEN_END)) is None
    assert instant(micros(None, default=OPEN_START)) is None
    assert instant(None) is None


def test_micros_counts_in_utc_and_before_the_epoch():
    assert micros(datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), default=1) == 0
    assert micros(EPOCH - timedelta(microseconds=1), default=0) == -1
    assert instant(-1) == EPOCH - timedelta(microseconds=1)


def test_open_ends_enclose_all_python_dates():
    assert micros(datetime.min.replace(tzinfo=UTC), default=0) > OPEN_START
    assert micros(datetime.max.replace(tzinfo=UTC), default=0) < OPEN_END
    assert -(2**63) < OPEN_START < OPEN_END < 2**63


@pytest.mark.parametrize(
    ("interval", "holds"),
    [
        (Interval(), True),
        (Interval(start=EPOCH), True),
        (Interval(end=EPOCH), False),
        (Interval(EPOCH, EPOCH + timedelta(seconds=1)), True),
        (Interval(EPOCH - timedelta(seconds=1), EPOCH), False),
    ],
)
def test_interval_includes_its_start_and_excludes_its_end(interval, holds):
    assert interval.holds(EPOCH) is holds
