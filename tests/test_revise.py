"""What is written when the truth about facts changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kg_memory.temporal.beliefs import Belief, revise
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.truth import Period, Truth


def test_only_the_periods_that_changed_are_closed_and_recorded():
    held = [Belief("one", Period(1, 6, 1, 1)), Belief("two", Period(9, OPEN_END, 9, 9))]
    truth = Truth((Period(1, 6, 7, 1), Period(9, 12, 12, 9)))
    assert revise(held, truth) == (["two"], [Period(9, 12, 12, 9)])


@pytest.mark.parametrize(
    "change", [{"valid_at": 0}, {"invalid_at": 8}, {"known_from": 3}, {"precision": "day"}, {"end_precision": "day"}]
)
def test_a_period_that_is_another_in_any_way_is_recorded_anew(change):
    held, truth = Period(1, 6, 1, 2), Truth((replace(Period(1, 6, 1, 2), **change),))
    assert revise([Belief("one", held)], truth) == (["one"], list(truth.periods))


def test_a_belief_that_is_held_twice_over_is_closed_once():
    held = [Belief(id_, Period(1, OPEN_END, 1, 1)) for id_ in ("one", "two")]
    assert revise(held, Truth((Period(1, OPEN_END, 2, 1),))) == (["two"], [])


def test_what_was_proposed_is_closed_and_recorded_when_it_is_believed_and_back():
    period = Period(1, OPEN_END, 1, 1)
    for waits in (True, False):
        assert revise([Belief("one", period, proposed=not waits)], Truth((period,), waits)) == (["one"], [period])
        assert revise([Belief("one", period, proposed=waits)], Truth((period,), waits)) == ([], [])


def test_a_fact_that_no_longer_stands_keeps_no_belief():
    assert revise([Belief("one", Period(1, 6, 1, 1))], Truth()) == (["one"], [])
