"""Instants as the graph stores them, and intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, Interval, instant, micros


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_survives_the_way_through_the_graph(moment):
    assert instant(micros(moment, default=0)) == moment


def test_open_ends_survive_the_way_through_the_graph():
    assert instant(micros(None, default=OPEN_END)) is None
    assert instant(micros(None, default=OPEN_START)) is None
    assert instant(None) is None


def test_instants_are_counted_in_utc_and_before_the_epoch_too():
    assert micros(datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), default=1) == 0
    assert micros(EPOCH - timedelta(microseconds=1), default=0) == -1
    assert instant(-1) == EPOCH - timedelta(microseconds=1)


def test_every_date_that_python_knows_lies_between_the_open_ends():
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
def test_an_interval_holds_from_its_start_up_to_but_not_at_its_end(interval, holds):
    assert interval.holds(EPOCH) is holds
