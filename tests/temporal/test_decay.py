"""Decay as a pure function of the times at which a fact was last stated and used (D23)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.variants.decay import DECAYS, DEFAULT_SPANS, DecaySpans, decay_of, find_decay
from kg_memory.errors import InputError
from kg_memory.models.graph import Fact

DAY = 24 * 3600 * 1_000_000
TIMES = st.integers(-(10**17), 10**17)
USES = st.none() | TIMES
SPANS = st.builds(DecaySpans, *[st.floats(0, 1000, allow_nan=False)] * 3)


@pytest.mark.parametrize(
    ("days", "decay"),
    [
        (-5, "fresh"),
        (0, "fresh"),
        (89.99, "fresh"),
        (90, "dim"),
        (119.99, "dim"),
        (120, "soft_forgotten"),
        (209.99, "soft_forgotten"),
        (210, "forgotten"),
        (10_000, "forgotten"),
    ],
)
def test_find_decay_changes_after_90_120_and_210_days(days, decay):
    """The decay levels of a fact change 90, 120 and 210 days after its last statement.

    Features: D23.
    """
    assert find_decay(0, None, int(days * DAY)) == decay


@given(TIMES, USES, TIMES, SPANS)
def test_find_decay_uses_the_later_of_both_times(said, used, now, spans):
    last = said if used is None else max(said, used)
    found = find_decay(said, used, now, spans)
    assert found == find_decay(last, None, now, spans) == find_decay(last, last, now, spans)


@given(TIMES, USES, TIMES, st.integers(0, 10**16), SPANS)
def test_find_decay_rises_with_time_and_falls_with_use(said, used, now, passed, spans):
    before = DECAYS.index(find_decay(said, used, now, spans))
    assert DECAYS.index(find_decay(said, used, now + passed, spans)) >= before
    assert DECAYS.index(find_decay(said, now if used is None else max(used, now), now, spans)) <= before
    if spans.ends[0]:
        assert find_decay(said, now, now, spans) == "fresh"


@given(TIMES, USES, TIMES, st.integers(-(10**12), 10**12))
def test_find_decay_depends_only_on_elapsed_time(said, used, now, shift):
    shifted = None if used is None else used + shift
    assert find_decay(said + shift, shifted, now + shift) == find_decay(said, used, now)


def test_decay_of_uses_times_of_the_fact_and_a_utc_now():
    said = datetime(2024, 1, 1, tzinfo=UTC)
    fact = Fact(id="f", subject="Ann", predicate="LIKES", objects=("tea",), sentence="?", created_at=said)
    later = said + timedelta(days=100)
    assert decay_of(fact, later) == decay_of(fact, later.replace(tzinfo=None)) == "dim"
    assert decay_of(fact.model_copy(update={"last_said": later}), later) == "fresh"
    assert decay_of(fact.model_copy(update={"last_said": said, "last_used": later}), later) == "fresh"
    assert decay_of(fact, later, DecaySpans(10, 10, 10)) == "forgotten"
    assert decay_of(fact) == "forgotten"
    assert DecaySpans(90, 30, 90) == DEFAULT_SPANS


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf"), "90", True, None])
def test_decay_spans_refuse_invalid_numbers_of_days(days):
    with pytest.raises(InputError, match="dim_days must be a number from 0 to"):
        DecaySpans(dim_days=days)
