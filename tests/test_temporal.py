from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.temporal import (
    EPOCH,
    OPEN_END,
    OPEN_START,
    Belief,
    Interval,
    Period,
    Statement,
    instant,
    micros,
    periods,
    revise,
)

S, E = OPEN_START, OPEN_END


def said(fact: str, at: int, since: int = S, until: int = E, id_: str = "") -> Statement:
    return Statement(fact, id_ or f"{fact}{at}", at, since, until)


def told(statements: list[Statement], rivals: dict[str, str] | None = None) -> dict[str, list[tuple[int, int]]]:
    """Return the periods of every fact; all facts are rivals unless *rivals* says which letters are."""
    facts = sorted({each.fact for each in statements})
    found = {}
    for fact in facts:
        against = set(rivals.get(fact, "") if rivals is not None else facts) - {fact}
        found[fact] = [(each.valid_at, each.invalid_at) for each in periods(fact, statements, against)]
    return found


def test_a_dated_fact_holds_from_its_date_on():
    assert told([said("oslo", 10, since=5)]) == {"oslo": [(5, E)]}


def test_an_undated_fact_alone_holds_since_nobody_knows_when():
    assert told([said("oslo", 10)]) == {"oslo": [(S, E)]}


def test_a_contradicting_fact_ends_the_former_where_it_begins():
    assert told([said("oslo", 10, 5), said("paris", 20, 15)]) == {"oslo": [(5, 15)], "paris": [(15, E)]}


def test_a_back_dated_fact_takes_its_place_between_the_others():
    moves = [said("oslo", 1, 1), said("rome", 9, 9), said("paris", 20, 6)]
    assert told(moves) == {"oslo": [(1, 6)], "paris": [(6, 9)], "rome": [(9, E)]}


def test_who_moves_away_and_back_again_lived_there_twice():
    moves = [said("oslo", 1, 1), said("paris", 6, 6), said("oslo", 9, 9)]
    assert told(moves) == {"oslo": [(1, 6), (9, E)], "paris": [(6, 9)]}


def test_undated_facts_follow_each_other_in_the_order_in_which_they_were_said():
    moves = [said("oslo", 1), said("paris", 6), said("oslo", 9)]
    assert told(moves) == {"oslo": [(S, 6), (9, E)], "paris": [(6, 9)]}


def test_an_undated_fact_after_a_dated_rival_begins_when_it_was_said():
    assert told([said("oslo", 5, 5), said("paris", 20)]) == {"oslo": [(5, 20)], "paris": [(20, E)]}


def test_an_undated_fact_ends_where_a_dated_rival_begins():
    assert told([said("oslo", 5), said("paris", 20, 15)]) == {"oslo": [(S, 15)], "paris": [(15, E)]}


def test_of_two_dated_facts_that_begin_together_the_one_said_later_holds():
    assert told([said("oslo", 10, 5), said("paris", 11, 5)]) == {"oslo": [], "paris": [(5, E)]}


def test_an_undated_fact_is_not_lost_when_a_rival_begins_at_the_moment_it_was_said():
    assert told([said("oslo", 10), said("paris", 10, 10)]) == {"oslo": [(S, 10)], "paris": [(10, E)]}
    assert told([said("oslo", 10), said("paris", 10)]) == {"oslo": [(S, 10)], "paris": [(10, E)]}


def test_a_fact_with_an_explicit_end_ends_there():
    assert told([said("trip", 10, 5, 8)]) == {"trip": [(5, 8)]}


def test_a_rival_that_begins_within_an_explicit_interval_cuts_it():
    assert told([said("oslo", 10, 5, 30), said("paris", 20, 20)]) == {"oslo": [(5, 20)], "paris": [(20, E)]}


def test_a_gap_after_an_explicit_end_is_filled_by_nobody():
    assert told([said("oslo", 10, 5, 8), said("paris", 20, 20)]) == {"oslo": [(5, 8)], "paris": [(20, E)]}


def test_no_longer_ends_what_held():
    assert told([said("job", 10, 5), said("job", 20, until=20)]) == {"job": [(5, 20)]}
    assert told([said("job", 10), said("job", 20, until=20)]) == {"job": [(S, 20)]}


def test_no_longer_alone_tells_that_it_held_until_then():
    assert told([said("job", 20, until=15)]) == {"job": [(S, 15)]}


def test_an_end_that_was_told_later_ends_an_undated_fact_even_before_it_was_stated():
    assert told([said("job", 20), said("job", 30, until=10)]) == {"job": [(S, 10)]}


def test_a_fact_that_is_stated_again_after_its_end_holds_anew():
    assert told([said("job", 10, 5), said("job", 20, until=20), said("job", 30)]) == {"job": [(5, 20), (30, E)]}
    assert told([said("job", 15, until=15), said("job", 20)]) == {"job": [(S, 15), (20, E)]}
    assert told([said("job", 10, 2, 5), said("job", 20)]) == {"job": [(2, 5), (20, E)]}


def test_a_whole_interval_told_later_ends_the_open_fact_that_began_with_it():
    assert told([said("job", 10, 5), said("job", 40, 5, 30)]) == {"job": [(5, 30)]}


def test_an_end_that_was_only_planned_is_overruled_by_a_statement_after_it():
    assert told([said("job", 10, 5), said("job", 20, until=30), said("job", 40, 5)]) == {"job": [(5, E)]}
    assert told([said("job", 10, 5), said("job", 20, until=30), said("job", 25, 5)]) == {"job": [(5, 30)]}


def test_an_end_does_not_end_its_rivals():
    assert told([said("acme", 10, 5), said("beta", 20, 15), said("acme", 30, until=25)]) == {
        "acme": [(5, 15)],
        "beta": [(15, E)],
    }


def test_what_a_rival_ended_before_is_not_thrown_together_with_an_end_said_alone():
    assert told([said("paris", 25, until=10), said("oslo", 20, 5)]) == {"paris": [(S, 5)], "oslo": [(5, E)]}


def test_the_same_statement_repeated_changes_nothing():
    once = [said("oslo", 1, 1), said("paris", 6, 6)]
    assert told([*once, said("paris", 7, 6), said("paris", 8), said("paris", 9, 9)]) == told(once)


def test_facts_that_are_no_rivals_do_not_touch_each_other():
    both = [said("oslo", 1, 1), said("chess", 6, 6)]
    assert told(both, rivals={}) == {"oslo": [(1, E)], "chess": [(6, E)]}


def test_a_rival_of_a_rival_is_no_rival():
    chain = [said("a", 1, 1), said("b", 5, 5), said("c", 9, 9)]
    assert told(chain, {"a": "b", "b": "ac", "c": "b"}) == {"a": [(1, 5)], "b": [(5, 9)], "c": [(9, E)]}
    assert told(chain, {"a": "b", "b": "a", "c": ""}) == {"a": [(1, 5)], "b": [(5, E)], "c": [(9, E)]}


def test_a_fact_of_which_nothing_was_said_has_no_period():
    assert periods("a", [], []) == ()
    assert periods("a", [said("b", 1)], ["b"]) == ()


def test_only_the_periods_that_changed_are_closed_and_recorded():
    held = [Belief("one", Period(1, 6, 1)), Belief("two", Period(9, E, 9))]
    assert revise(held, [Period(1, 6, 1), Period(9, 12, 12)]) == (["two"], [Period(9, 12, 12)])


def test_a_belief_that_is_held_twice_over_is_closed_once():
    held = [Belief("one", Period(1, E, 1)), Belief("two", Period(1, E, 2))]
    closed, recorded = revise(held, [Period(1, E, 2)])
    assert (len(closed), recorded) == (1, [])


# Few instants and few facts, so that everything meets everything.
MOMENTS = st.integers(0, 6)
STATEMENTS = st.lists(
    st.builds(
        Statement,
        fact=st.sampled_from("abc"),
        id=st.sampled_from(["1", "2", "3", "4"]),
        said_at=MOMENTS,
        valid_at=MOMENTS | st.just(S),
        invalid_at=MOMENTS | st.just(E),
    ).filter(lambda each: each.valid_at < each.invalid_at),
    max_size=7,
    unique=True,
)


@settings(max_examples=150)
@given(STATEMENTS, st.randoms(use_true_random=False))
def test_the_order_in_which_statements_arrive_does_not_matter(statements, random):
    shuffled = list(statements)
    random.shuffle(shuffled)
    assert told(shuffled) == told(statements)


@settings(max_examples=300)
@given(STATEMENTS)
def test_rivals_never_hold_at_the_same_time(statements):
    spans = [(span, fact) for fact, found in told(statements).items() for span in found]
    for ((start, end), one), ((other_start, other_end), other) in combinations(spans, 2):
        assert one == other or end <= other_start or other_end <= start


@settings(max_examples=300)
@given(STATEMENTS, st.booleans())
def test_the_periods_of_a_fact_are_sorted_apart_and_not_empty(statements, all_rivals):
    for found in told(statements, None if all_rivals else {}).values():
        assert all(start < end for start, end in found)
        assert all(end < start for (_, end), (start, _) in pairwise(found))


@settings(max_examples=150)
@given(STATEMENTS)
def test_a_fact_without_rivals_of_which_something_was_said_has_a_period(statements):
    assert all(told(statements, {}).values())


@settings(max_examples=150)
@given(STATEMENTS, STATEMENTS)
def test_revising_a_second_time_changes_nothing(before, after):
    for fact in "abc":
        rivals = set("abc") - {fact}
        held = [Belief(f"{place}", each) for place, each in enumerate(periods(fact, before, rivals))]
        wanted = periods(fact, [*before, *after], rivals)
        closed, recorded = revise(held, wanted)
        kept = [each for each in held if each.id not in closed]
        believed = [*kept, *(Belief(f"new {place}", each) for place, each in enumerate(recorded))]
        assert revise(believed, wanted) == ([], [])
        assert sorted((b.period.valid_at, b.period.invalid_at) for b in believed) == [
            (each.valid_at, each.invalid_at) for each in wanted
        ]


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
