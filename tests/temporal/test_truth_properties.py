"""Properties of `truths` for any input; few instants and few facts, so that all combinations occur."""

from dataclasses import replace
from itertools import pairwise, product
from typing import get_args

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kg_memory.models.graph import ConflictStrategy, Precision, Ruling
from kg_memory.temporal.beliefs import Belief, revise
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.temporal.policy import ConflictPolicy, Verdict
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import Truth
from kg_memory.temporal.truth import truths as compute_truths
from tests.temporal.test_truth import known, on, rivals

FACTS, PRECISIONS = "abcd", get_args(Precision)
RECENCY = ConflictPolicy("recency")
"""The last statement holds, whoever its speaker is."""
MOMENTS = st.sampled_from(
    [on(day) for day in ("2019", "2019-01-02", "2019-02", "2019-03", "2019-06-01", "2020", "2020-03")]
)
COUNTS = st.sampled_from([0.5, 0.9, 1.0])


def truths(statements, verdicts=(), policy=RECENCY):
    return compute_truths(statements, verdicts, policy)


def random_statements(precisions=PRECISIONS, counts=COUNTS, ends=True, corrects=True):
    built = st.builds(
        Statement, st.sampled_from(FACTS), st.sampled_from("123456"), MOMENTS, MOMENTS | st.just(OPEN_START),
        MOMENTS | st.just(OPEN_END) if ends else st.just(OPEN_END), st.sampled_from(precisions),
        confidence=counts, corrects=st.booleans() if corrects else st.just(False),
        end_precision=st.sampled_from(precisions),
    )  # fmt: skip
    exact = built.map(
        lambda each: replace(
            each,
            trust=each.confidence,
            precision="instant" if each.undated else each.precision,
            end_precision=each.end_precision if each.ends else "instant",
        )
    )
    return st.lists(exact.filter(lambda each: each.valid_at < each.invalid_at), max_size=8, unique=True)


def random_verdicts(*rulings):
    pair, one = st.permutations(FACTS), st.sampled_from([0, 1])
    return st.lists(
        st.builds(
            lambda pair, ruling, holds, refused, kind: Verdict(*pair[:2], ruling, pair[holds], pair[refused], kind),
            pair, st.sampled_from(rulings or get_args(Ruling)), one, one, st.sampled_from(["supersedes", "conflicts"]),
        ),
        max_size=6, unique_by=lambda each: frozenset((each.new, each.existing)),
    )  # fmt: skip


STATEMENTS, VERDICTS, POLICY = (
    random_statements(),
    random_verdicts(),
    st.sampled_from(get_args(ConflictStrategy)).map(ConflictPolicy),
)


@settings(max_examples=150)
@given(STATEMENTS, VERDICTS, POLICY, st.randoms(use_true_random=False))
def test_truths_is_independent_of_input_order(statements, verdicts, policy, random):
    found = truths(statements, verdicts, policy)
    turned = [
        replace(each, new=each.existing, existing=each.new) if random.random() < 0.5 else each for each in verdicts
    ]
    random.shuffle(statements)
    random.shuffle(turned)
    assert truths(statements, turned, policy) == found


TWO_ENDS = [Statement(fact, fact, on(day), invalid_at=on("2019")) for fact, day in (("a", "2019-06-01"), ("b", "2020"))]
"""Two statements that have only an end, the same one."""
WEIGHTED = ConflictPolicy("confidence")
TWO_RIVALS = [
    Statement("a", "1", on("2019-01-02"), OPEN_START, on("2019-02"), confidence=0.9),
    Statement("b", "1", on("2019"), on("2019"), confidence=0.5),
    Statement("c", "1", on("2019"), on("2019-01-02"), on("2019-02"), confidence=0.9),
]
"""Two facts end a third at the same time; one of them has more confidence."""
RIVALRY = [Verdict("a", "b", "supersedes"), Verdict("b", "c", "supersedes")]


@settings(max_examples=200)
@example(TWO_RIVALS, RIVALRY, WEIGHTED, "bacd", "123456")
@example(TWO_ENDS, [Verdict("a", "b", "supersedes")], RECENCY, "bacd", "123456")
@given(STATEMENTS, random_verdicts("supersedes"), POLICY, st.permutations(FACTS), st.permutations("123456"))
def test_truths_is_independent_of_ids(statements, verdicts, policy, facts, ids):
    named, of = dict(zip(FACTS, facts, strict=True)), dict(zip("123456", ids, strict=True))
    # Arrival times are unique: they order two statements of the same time.
    told = [replace(one, arrived_at=place) for place, one in enumerate(statements)]
    renamed = [replace(one, fact=named[one.fact], id=of.get(one.id, one.id)) for one in told]
    ruled = [Verdict(named[each.new], named[each.existing], each.ruling) for each in verdicts]
    found = truths(told, [Verdict(each.new, each.existing, each.ruling) for each in verdicts], policy)
    assert truths(renamed, ruled, policy) == {named[fact]: truth for fact, truth in found.items()}


def overlapping(truth_by_fact, verdicts):
    """Yield pairs of (fact, period) of superseding facts that are known to hold at the same time."""
    for verdict in verdicts:
        if verdict.ruling == "supersedes" and {verdict.new, verdict.existing} <= truth_by_fact.keys():
            new, existing = truth_by_fact[verdict.new], truth_by_fact[verdict.existing]
            for first, second in () if new.waits or existing.waits else product(new.periods, existing.periods):
                if first.known_from < second.invalid_at and second.known_from < first.invalid_at:
                    yield (verdict.new, first), (verdict.existing, second)


@settings(max_examples=200)
@given(STATEMENTS, VERDICTS, POLICY)
def test_rivals_overlap_only_by_stated_dates(statements, verdicts, policy):
    last = {one.fact: max(each.stated_at for each in statements if each.fact == one.fact) for one in statements}
    past_ends = {(one.fact, one.invalid_at) for one in statements if one.invalid_at <= last[one.fact]}
    dated = {one.fact for one in statements if one.tells_start or one.ends}
    for (new, first), (existing, second) in overlapping(truths(statements, verdicts, policy), verdicts):
        until = min(first.invalid_at, second.invalid_at)
        assert any(fact in dated and until <= end for other, end in past_ends for fact in {new, existing} - {other})


@settings(max_examples=200)
@given(random_statements(precisions=["instant"]), POLICY, st.randoms(use_true_random=False))
def test_rivals_without_stated_starts_never_overlap(statements, policy, random):
    left = {one.fact for one in statements if one.ends}
    told = [
        replace(one, valid_at=random.choice([OPEN_START, one.stated_at]), invalid_at=OPEN_END)
        if one.fact not in left
        else replace(one, valid_at=OPEN_START, invalid_at=min(one.invalid_at, one.stated_at))
        for one in statements
    ]
    random.shuffle(told)
    assert not list(overlapping(truths(told, rivals(told), policy), rivals(told)))


@settings(max_examples=150)
@given(STATEMENTS, VERDICTS, POLICY)
def test_periods_are_sorted_disjoint_and_not_empty(statements, verdicts, policy):
    for truth in truths(statements, verdicts, policy).values():
        assert all(each.valid_at < each.invalid_at for each in truth.periods)
        assert all(each.valid_at <= each.known_from <= each.invalid_at for each in truth.periods)
        assert all(each.end_precision == "instant" for each in truth.periods if each.invalid_at == OPEN_END)
        assert all(former.invalid_at < later.valid_at for former, later in pairwise(truth.periods))


@settings(max_examples=150)
@given(STATEMENTS, random_verdicts("conflicts"), POLICY)
def test_fact_holds_if_and_only_if_no_conflicting_fact_holds(statements, verdicts, policy):
    found = truths(statements, verdicts, policy)
    against = {fact: set() for fact in found}
    for each in verdicts:
        if {each.new, each.existing} <= found.keys():
            against[each.new].add(each.existing)
            against[each.existing].add(each.new)
    for fact, truth in found.items():
        assert bool(truth.periods) == (not any(found[other].periods for other in against[fact]))


@settings(max_examples=200)
@given(STATEMENTS, VERDICTS, POLICY)
def test_refused_or_waiting_fact_does_not_affect_others(statements, verdicts, policy):
    found = truths(statements, verdicts, policy)
    bearing = [each for each in verdicts if {each.new, each.existing} <= found.keys()]
    aside = {each.refused for each in bearing if each.ruling == "refused"}
    needed = {
        each.new if each.refused == each.existing else each.existing for each in bearing if each.ruling == "refused"
    }
    for fact in (aside | {fact for fact, truth in found.items() if truth.waits}) - needed:
        left = truths([each for each in statements if each.fact != fact], verdicts, policy)
        # A fact that waited only because of this one may no longer wait, and then affects other facts.
        if all(left[other].waits == found[other].waits for other in left):
            assert left == {other: found[other] for other in left}


@settings(max_examples=150)
@given(random_statements(precisions=["instant"]), random_verdicts("supersedes"))
def test_proposed_periods_hold_once_accepted(statements, verdicts):
    [asked] = [replace(each, kind="supersedes") for each in verdicts[:1]] or [Verdict("a", "b", "supersedes")]
    for fact, truth in truths(statements, [*verdicts[1:], replace(asked, ruling="waiting")]).items():
        if truth.waits:
            assert truths(statements, [asked, *verdicts[1:]])[fact].periods == truth.periods


@settings(max_examples=150)
@given(STATEMENTS, VERDICTS, STATEMENTS, VERDICTS, POLICY)
def test_facts_without_common_verdict_do_not_affect_each_other(statements, verdicts, others, more, policy):
    apart = [replace(each, fact=each.fact.upper()) for each in others]
    far = [
        Verdict(
            each.new.upper(),
            each.existing.upper(),
            each.ruling,
            each.preferred.upper(),
            each.refused.upper(),
            each.kind,
        )
        for each in more
    ]
    assert truths(statements + apart, verdicts + far, policy) == (
        truths(statements, verdicts, policy) | truths(apart, far, policy)
    )


@settings(max_examples=150)
@given(random_statements(counts=st.just(0.9)), VERDICTS, POLICY)
def test_strategies_equal_recency_at_equal_confidence_and_trust(statements, verdicts, policy):
    assume(policy.strategy != "incumbent")  # it prefers the fact stated first among equals
    plain = [replace(each, preferred=None) for each in verdicts]
    assert truths(statements, plain, policy) == truths(statements, plain)


def is_out_of_date(one, statements):
    """Return whether *one* is undated and a rival stated later began shortly before it."""
    before = [each for each in statements if not each.undated and each.begin <= one.begin]
    last = max(before, key=lambda each: each.rank, default=one)
    return (
        one.undated
        and last.fact != one.fact
        and last.order > one.order
        and last.begin < last.stated_at
        and last.begin < one.begin <= last.begin + (on("2019-06-01") - on("2019-03-01"))
    )


@settings(max_examples=200)
@given(random_statements(precisions=["instant"], ends=False, corrects=False), MOMENTS)
def test_rival_that_began_last_holds(statements, moment):
    found = truths(statements, rivals(statements))
    begun = [each for each in statements if each.begin <= moment and not is_out_of_date(each, statements)]
    holding = {fact for fact in found for start, end in known(found[fact]) if start <= moment < end}
    assert holding == ({max(begun, key=lambda each: each.rank).fact} if begun else set())


@settings(max_examples=200)
@given(random_statements(corrects=False, precisions=["instant"]), random_verdicts("supersedes"), MOMENTS)
def test_repeating_a_current_fact_changes_nothing(statements, verdicts, moment):
    found = truths(statements, verdicts)
    # A stated end remains valid beside a rival that began before it, so repeating such a fact gives new information.
    ended = {one.fact for one in statements if one.ends}
    for fact, truth in found.items():
        if fact in ended:
            continue
        # A fact with only an end is not known to hold at any earlier time.
        if any(OPEN_START < start <= moment < end for start, end in known(truth)):
            again = truths([*statements, Statement(fact, "0", moment)], verdicts)
            assert all(known(again[each]) == known(found[each]) for each in found.keys() - {fact})
            assert [max(each, (moment, each[1])) for each in known(again[fact]) if each[1] > moment] == [
                max(each, (moment, each[1])) for each in known(truth) if each[1] > moment
            ]


DATED = Statement("b", "1", on("2019"), on("2019-01-02"), on("2019-02"), confidence=0.5, trust=0.5)
SURE = {"confidence": 0.9, "trust": 0.9}
WEAKLY_DATED = [
    DATED,
    replace(DATED, fact="a", stated_at=DATED.invalid_at, **SURE),
    Statement("b", "1", DATED.begin, **SURE),
]


@settings(max_examples=200)
@example(WEAKLY_DATED, [Verdict("a", "b", "supersedes")], WEIGHTED)
@given(
    random_statements(precisions=["instant"]),
    random_verdicts("supersedes"),
    st.sampled_from([ConflictPolicy("confidence"), ConflictPolicy("trust")]),
)
def test_less_trusted_statement_does_not_shorten_a_trusted_one(statements, verdicts, policy):
    # A fact with only an end has no stated start, so its unknown start yields to other facts.
    statements = [each for each in statements if each.trust < 0.6 or not each.only_ends]
    found = truths(statements, verdicts, policy)
    for fact, truth in truths([each for each in statements if each.trust > 0.6], verdicts, policy).items():
        for start, end in known(truth):
            assert any(begin <= start and end <= until for begin, until in known(found[fact]))


@settings(max_examples=150)
@given(STATEMENTS, VERDICTS, STATEMENTS, VERDICTS)
def test_revise_makes_beliefs_equal_to_the_truth(before, verdicts, after, more):
    old, new = truths(before, verdicts), truths(before + after, verdicts + more)
    for fact, truth in new.items():
        was = old.get(fact, Truth())
        held = [Belief(f"{place}", each, was.waits) for place, each in enumerate(was.periods)]
        closed, recorded = revise(held, truth)
        kept = [each for each in held if each.id not in closed]
        believed = [*kept, *(Belief(f"new {place}", each, truth.waits) for place, each in enumerate(recorded))]
        assert revise(believed, truth) == ([], [])
        assert {replace(each.period, stated_at=0) for each in believed} == {
            replace(e, stated_at=0) for e in truth.periods
        }
        assert all(each.proposed == truth.waits for each in believed)
