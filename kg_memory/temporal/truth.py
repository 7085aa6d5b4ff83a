"""Compute when each fact holds, from all statements (what single messages say) and verdicts (how two facts relate).

Statements never change. All periods are computed again from all statements. So the result does not depend on the order
in which messages arrive.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from kg_memory.models.graph import OUTCOMES, Precision
from kg_memory.temporal.interval import OPEN_START, WIDTH
from kg_memory.temporal.policy import ConflictPolicy, Verdict, facts_in_review, facts_to_admit, find_refused, rivals_by
from kg_memory.temporal.statements import Rank, Statement, reconcile

T = TypeVar("T")
_Rivals = Mapping[str, Collection[str]]
_DEFAULT_POLICY = ConflictPolicy()
# The trust that statements of assistants lose where people speak of themselves: it only decides between equals.
_DISCOUNT = 1e-6
# The most time by which a start, stated later, may precede an undated statement and still correct it.
_OUT_OF_DATE = WIDTH["season"]


@dataclass(frozen=True, slots=True)
class Period:
    """A period in which a fact holds, from `valid_at` up to `invalid_at`, in microseconds since the epoch.

    `stated_at`: when it was last stated. `known_from`: when the fact surely holds; later than `valid_at` if the start
    is unknown, and earlier for a plan, which exists before its date.
    """

    valid_at: int
    invalid_at: int
    stated_at: int
    known_from: int
    precision: Precision = "instant"
    end_precision: Precision = "instant"


@dataclass(frozen=True, slots=True)
class Truth:
    """The periods in which one fact is true, earliest first, and whether a person must review the fact.

    `waits`: a review is needed, and the fact counts as false until then. `disputed`: a review is needed, and the fact
    counts as true until then.
    """

    periods: tuple[Period, ...] = ()
    waits: bool = False
    disputed: bool = False


def truths(
    statements: Iterable[Statement], verdicts: Collection[Verdict] = (), policy: ConflictPolicy = _DEFAULT_POLICY
) -> dict[str, Truth]:
    """Compute the periods of each fact, ``{fact id: Truth}``, from *statements* and *verdicts* (how facts relate).

    If two statements contradict each other, the one with less weight by *policy* gets only the time that the other
    leaves.
    """
    by_fact: dict[str, list[Statement]] = defaultdict(list)
    retractions = {verdict.new: verdict for verdict in verdicts if verdict.is_retraction}
    retracted: dict[str, Truth] = {}
    for statement in statements:
        if statement.fact in retractions and retractions[statement.fact].retracts(statement):
            retracted[statement.fact] = Truth()
        else:
            by_fact[statement.fact].append(statement)
    to_admit = facts_to_admit(verdicts) & by_fact.keys()
    verdicts = [verdict for verdict in verdicts if _links_two_known_facts(verdict, by_fact)]
    by_fact = _prefer_subjects(by_fact, verdicts)
    in_review = facts_in_review(verdicts, by_fact, to_admit)
    waiting = in_review if policy.withhold else to_admit
    believed = _settle_conflicts(by_fact.keys() - find_refused(verdicts) - waiting, by_fact, verdicts, policy)
    reconciled = {fact: reconcile(own, policy.may_change) for fact, own in by_fact.items()}
    reconciled |= _resolve_plans(believed, reconciled, verdicts, policy)
    superseding = rivals_by(verdicts, "supersedes")
    periods = _place_periods(believed, reconciled, superseding, policy)
    result = {fact: Truth(tuple(periods.get(fact, ())), disputed=fact in in_review) for fact in by_fact}
    # If accepted, a conflicting fact wins or does not hold at all; only a superseding fact shortens periods.
    proposing = rivals_by([verdict for verdict in verdicts if verdict.kind == "supersedes"], "waiting")
    for fact in waiting:
        rivals: dict[str, Collection[str]] = {fact: (proposing[fact] | superseding[fact]) & believed}
        rivals |= {rival: {fact} for rival in rivals[fact]}
        result[fact] = Truth(tuple(_place_periods(rivals.keys(), reconciled, rivals, policy)[fact]), waits=True)
    return retracted | result


def _links_two_known_facts(verdict: Verdict, by_fact: Mapping[str, object]) -> bool:
    return verdict.new in by_fact and verdict.existing in by_fact and verdict.new != verdict.existing


def _prefer_subjects(by_fact: Mapping[str, list[Statement]], verdicts: Iterable[Verdict]) -> dict[str, list[Statement]]:
    """Return *by_fact*, statements by fact id, with less trust in an assistant's statements if the person spoke too.

    This concerns the facts that people state about themselves, and the facts linked to these by *verdicts* (how two
    facts relate): where assistant and person disagree, the person wins.
    """
    own = {one.fact for one in _gather(by_fact, by_fact) if one.teller == "subject"}
    pairs = [{verdict.new, verdict.existing} for verdict in verdicts]
    result = dict(by_fact)
    for fact in own.union(*(pair for pair in pairs if pair & own)):
        lesser = (replace(one, trust=one.trust - _DISCOUNT * (one.teller == "assistant")) for one in by_fact[fact])
        result[fact] = list(lesser)
    return result


def _settle_conflicts(
    facts: Collection[str],
    by_fact: Mapping[str, Sequence[Statement]],
    verdicts: Sequence[Verdict],
    policy: ConflictPolicy,
) -> set[str]:
    """Return those of *facts* (ids) that win all their conflicts, or have none.

    A fact that has lost a conflict does not defeat others. *by_fact*: statements by fact id. *verdicts*: which facts
    are in conflict, and which of two the model prefers.
    """
    against = rivals_by(verdicts, "conflicts")
    claims = {fact: policy.claim(fact, by_fact[fact]) for fact in facts}
    preferred: defaultdict[frozenset[str], set[str | None]] = defaultdict(set)
    for verdict in verdicts:
        preferred[frozenset((verdict.new, verdict.existing))].add(verdict.preferred)

    def loses(fact: str, remaining: set[str]) -> bool:
        return any(
            policy.beats(claims[rival], claims[fact], preferred[frozenset((rival, fact))])
            for rival in against[fact] & remaining
        )

    remaining, standing = set(facts), set[str]()
    while remaining:
        unbeaten = {fact for fact in remaining if not loses(fact, remaining)}
        # If the facts beat each other in a circle, the strongest stands.
        unbeaten = unbeaten or {max(remaining, key=lambda fact: claims[fact].order)}
        standing |= unbeaten
        remaining -= unbeaten.union(*(against[fact] for fact in unbeaten))
    return standing


def _resolve_plans(
    facts: Collection[str],
    by_fact: Mapping[str, Sequence[Statement]],
    verdicts: Iterable[Verdict],
    policy: ConflictPolicy,
) -> dict[str, list[Statement]]:
    """Return the statements of plans that were fulfilled, dropped or replaced, now with an end, by fact id.

    "Ann will move to Oslo" ends when "Ann moved to Oslo" is stated. *facts*: the facts that may end a plan. *by_fact*:
    statements by fact id. *verdicts*: how two facts relate, such as "fulfilled".
    """
    later: defaultdict[str, list[Statement]] = defaultdict(list)
    back: defaultdict[str, list[Statement]] = defaultdict(list)  # statements of plans that may replace these again
    for verdict in verdicts:
        if verdict.ruling in OUTCOMES and verdict.preferred and verdict.preferred in facts:
            later[verdict.plan] += by_fact[verdict.preferred]
            if verdict.ruling == "replaced" and verdict.plan in facts:
                back[verdict.preferred] += by_fact[verdict.plan]
    return {
        plan: [
            _end_plan(one, [*later[plan], *(each for each in back[plan] if policy.may_change(each, one))])
            for one in by_fact[plan]
        ]
        for plan in {**later, **back}
    }


def _end_plan(plan: Statement, statements: Iterable[Statement]) -> Statement:
    """Return *plan*, a statement of a plan, as valid from when it was made until the outcome of the plan.

    *statements*: those of the outcome, of which the first after *plan* counts. The outcome has the date that this
    statement gives if that is past, else the time at which it was made.
    """
    after = min((one for one in statements if one.order > plan.order), key=lambda one: one.order, default=None)
    if after is None:
        return plan
    is_dated = after.tells_start and plan.stated_at < after.valid_at <= after.stated_at
    until, precision = (after.valid_at, after.precision) if is_dated else (after.stated_at, "by")
    return replace(plan, valid_at=plan.stated_at, precision="instant", invalid_at=until, end_precision=precision)


def _place_periods(
    facts: Collection[str], by_fact: Mapping[str, Sequence[Statement]], rivals: _Rivals, policy: ConflictPolicy
) -> dict[str, list[Period]]:
    """Return the periods of each of *facts* (ids) such that contradicting facts do not hold at the same time.

    Statements of more weight by *policy* get their periods first, the others only the time that is left. *by_fact*:
    reconciled statements by fact id. *rivals*: the ids of the facts that contradict a fact, by its id.
    """
    near = {fact: set(rivals.get(fact, ())).intersection(facts) for fact in facts}
    placed: dict[str, list[Statement]] = {}
    for fact in facts:
        own, against = by_fact[fact], list(_gather(near[fact], by_fact))
        placed[fact] = [_place(statement, own, against, policy) for statement in own]
    first = {fact: min(statement.rank for statement in _gather({fact, *near[fact]}, placed)) for fact in facts}
    periods: dict[str, list[Period]] = {fact: [] for fact in facts}
    for weight in sorted({policy.weigh(statement) for statement in _gather(facts, placed)}, reverse=True):
        level = {fact: [one for one in own if policy.weigh(one) == weight] for fact, own in placed.items()}
        added: dict[str, list[Period]] = {}
        for fact in facts:
            taken = sorted(_gather(near[fact], periods), key=_period_order)
            stated = _periods(level[fact], list(_gather(near[fact], level)), first[fact])
            added[fact] = [free for period in stated if (free := _first_free_part(period, taken)) is not None]
        periods = {fact: _join_overlapping([*periods[fact], *added[fact]]) for fact in facts}
    return periods


def _gather(facts: Iterable[str], by_fact: Mapping[str, Iterable[T]]) -> Iterator[T]:
    return chain.from_iterable(by_fact[fact] for fact in facts)


def _place(
    statement: Statement, own: Iterable[Statement], against: Sequence[Statement], policy: ConflictPolicy
) -> Statement:
    """Return *statement* with its dates corrected by *against*, the statements of contradicting facts.

    "I live in Oslo" and later "I left Rome in June" mean Oslo since June. *own*: all statements of the same fact.
    """
    if statement.only_ends:
        return statement
    if not statement.tells_start:
        correction = _find_correction(statement, own, against, policy) if statement.undated else None
        if correction is not None:  # "I moved to Bergen last week" after "I live in Oslo": Oslo ended last week
            return replace(statement, over_at=correction.begin)
        dated = [one for one in own if one.tells_start and policy.may_change(one, statement)]
        is_within = any(one.begin <= statement.begin < one.invalid_at for one in dated)
        return statement if is_within else _start_after_rivals(statement, against, policy)
    if not statement.width:
        return statement
    # "I moved to Paris in March", and later "I moved to Oslo in 2019": Oslo began after March. Of two moves in 2019,
    # the later told one began after the other was told. "I left Acme in May 2023" lets a job of 2023 begin in May.
    date = (statement.valid_at, statement.precision)
    stated = min(same.order for same in own if (same.valid_at, same.precision) == date)
    limit = min(statement.latest, statement.stated_at, statement.invalid_at)
    rivals = [rival for rival in against if policy.may_change(rival, statement)]
    finer = [(rival, rival.latest) for rival in rivals if rival.width < statement.width]
    alike = [(one, min(one.latest, one.stated_at)) for one in rivals if (one.valid_at, one.precision) == date]
    starts = [
        rival.invalid_at if rival.invalid_at < limit else latest + 1
        for rival, latest in (*finer, *alike)
        if not rival.only_ends and rival.order < stated and statement.valid_at <= rival.begin and latest + 1 < limit
    ]
    starts += [
        rival.invalid_at
        for rival in rivals
        if (rival.only_ends or rival.end_stands)
        and rival.end_width < statement.width
        and statement.valid_at < rival.invalid_at < limit
    ]
    return replace(statement, valid_at=max(starts, default=statement.valid_at))


def _find_correction(
    statement: Statement, own: Iterable[Statement], against: Iterable[Statement], policy: ConflictPolicy
) -> Statement | None:
    """Return the later statement of a contradicting fact that proves *statement*, which has no date, wrong, or None.

    "I moved to Bergen last week" proves "I live in Oslo", said yesterday, wrong. *own*: all statements of the same
    fact. *against*: those of contradicting facts.
    """
    begun = (one for one in (*own, *against) if not one.undated and one.begin <= statement.begin)
    last = max((one for one in begun if policy.may_change(one, statement)), key=lambda one: one.rank, default=None)
    if last is None or last.fact == statement.fact or last.order <= statement.order:
        return None
    holds_as_told = last.tells_start and last.stated_at < last.invalid_at
    return last if holds_as_told and 0 < statement.begin - last.latest <= _OUT_OF_DATE else None


def _start_after_rivals(statement: Statement, against: Iterable[Statement], policy: ConflictPolicy) -> Statement:
    """Return *statement*, which has no start date, with its start moved past the periods of contradicting facts.

    "I left Rome in June" moves the start of "I live in Oslo", said in May, to June. *against*: statements of these
    facts. A start that would leave no time is not moved.
    """
    ends = [rival for rival in against if rival.end_stands and policy.may_change(rival, statement)]
    moved = statement
    for rival in sorted(ends, key=lambda rival: (rival.invalid_at, rival.end_width)):
        if rival.begin <= moved.begin < rival.invalid_at:
            moved = replace(moved, valid_at=rival.invalid_at, precision=rival.end_precision)
    return moved if moved.begin < statement.invalid_at else statement


def _periods(own: Iterable[Statement], against: Sequence[Statement], first: Rank) -> Iterator[Period]:
    """Yield the periods in which a fact holds by its *own* statements; those *against* it, of equal weight, end them.

    "In Oslo since 2019" ends when "in Rome since 2021" begins. *first*: the sort key of the earliest statement of all;
    if undated, its start is unknown.
    """
    lasting = sorted((rival.rank, _vagueness(_start_precision(rival))) for rival in against if not rival.only_ends)
    former = [_end_key(rival) for rival in against if rival.only_ends or rival.end_stands]
    for statement in own:
        ends = [(statement.invalid_at, _vagueness(statement.end_precision))]
        if not statement.end_stands:  # "from 2019 to 2022", said after 2022, stays as it is
            place = bisect(lasting, statement.rank, key=itemgetter(0))
            ends += [(rank[0], vagueness) for rank, vagueness in lasting[place : place + 1]]
        end, (*_, end_precision) = min(ends)
        start, known_from, precision = statement.begin, statement.begin, _start_precision(statement)
        if statement.only_ends:
            # Its start is unknown, but not before the end of an earlier rival.
            known_from = max((key[0] for key in former if key < _end_key(statement)), default=OPEN_START)
        elif statement.undated and (statement.begin, statement.fact) == (first[0], first[-1]):
            start, precision = OPEN_START, statement.precision
        if statement.is_plan:
            known_from = min(known_from, statement.stated_at)
        if start < end:
            yield Period(start, end, statement.stated_at, known_from, precision, end_precision)


def _end_key(statement: Statement) -> tuple[int, bool, int, int, str]:
    return (statement.invalid_at, statement.only_ends, -statement.stated_at, -statement.arrived_at, statement.fact)


def _start_precision(statement: Statement) -> Precision:
    # Without a start date, the fact began when the statement was made, or before.
    return "by" if statement.undated and not statement.only_ends else statement.precision


def _vagueness(precision: Precision) -> tuple[bool, int, Precision]:
    return (precision == "by", WIDTH[precision], precision)


def _period_order(period: Period) -> tuple[Any, ...]:
    return (period.known_from, _vagueness(period.precision), period.invalid_at, _vagueness(period.end_precision))


def _first_free_part(period: Period, taken: Iterable[Period]) -> Period | None:
    """Return the first part of *period* that overlaps with none of *taken*, or None. *taken* must be sorted by start.

    2019 to 2023, with 2021 taken, gives 2019 to 2021.
    """
    for weightier in taken:
        begin = period.known_from
        if weightier.known_from <= begin < weightier.invalid_at:
            end = weightier.invalid_at
            period = replace(period, valid_at=end, known_from=end, precision=weightier.end_precision)
        elif begin < weightier.known_from < period.invalid_at:
            period = replace(period, invalid_at=weightier.known_from, end_precision=weightier.precision)
    return period if period.valid_at < period.invalid_at else None


def _join_overlapping(periods: Iterable[Period]) -> list[Period]:
    joined: list[Period] = []
    for period in sorted(periods, key=lambda one: (one.valid_at, one.known_from, _vagueness(one.precision))):
        if joined and period.valid_at <= joined[-1].invalid_at:
            joined[-1] = _merge(joined[-1], period)
        else:
            joined.append(period)
    return joined


def _merge(first: Period, second: Period) -> Period:
    end = min(first, second, key=lambda period: (-period.invalid_at, _vagueness(period.end_precision)))
    return replace(
        first,
        invalid_at=end.invalid_at,
        end_precision=end.end_precision,
        stated_at=max(first.stated_at, second.stated_at),
        known_from=min(first.known_from, second.known_from),
    )
