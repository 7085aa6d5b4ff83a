"""Let a person decide how two facts relate: accept, reject, edit or undo a verdict, retract or replace a fact.

A verdict is a stored relation of a new and an existing fact, such as "the new fact supersedes the existing one". A
decision changes the effect (the ruling) of the verdict. Facts and the episodes that state them stay; the periods in
which the facts are believed are computed again. Each decision is stored with its author, time and reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Literal, get_args

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.queries.premises import REPLACING
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.invalidate import read_history, revise_beliefs, to_edit
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.review.reviews import (
    StoredVerdict,
    VerdictState,
    find_verdict,
    read_verdict,
    require_fact,
    to_reviews,
)
from kg_memory.models.graph import Precision, Review, Ruling, VerdictKind
from kg_memory.retrieval.clocks import parse_moment
from kg_memory.runtime.effects import fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import EPOCH, OPEN_END, instant
from kg_memory.temporal.policy import COMPATIBLE, CONTRADICTIONS, ConflictPolicy, fact_in_question, to_ruling
from kg_memory.temporal.truth import Truth, truths
from kg_memory.text.dates import parse_when
from kg_memory.text.identity import decision_id, replace_unstorable, verdict_id
from kg_memory.validation import validate_author, validate_choice

Choice = Literal["accept", "reject", "edit"]
ATTEMPTS = 50
"""The number of tries to write a decision while other writers change facts about the same entities."""
RETRACTED, REPLACED = "a person retracted it", "a person replaced one by the other"
OPEN = "open"
"""The value of ``invalid_at`` in an edit that says the fact has not ended."""
EDITABLE = ("verdict", "valid_at", "invalid_at")
_Date = tuple[int, Precision]


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A person's decision about a verdict (how a new, pending fact relates to an existing one).

    *invalid_at* may be `OPEN` (not ended). *seen*: the effect that the person saw; if it has changed, the decision is
    refused.
    """

    choice: Choice
    by: str
    reason: str = ""
    verdict: VerdictKind | None = None
    valid_at: date | str | None = None
    invalid_at: date | str | None = None
    seen: Ruling | None = None

    def validate(self) -> None:
        """Raise `InputError` if a field is invalid, or is given with a `choice` that does not allow it."""
        validate_choice("choice", self.choice, get_args(Choice))
        validate_author(self.by, self.reason)
        names = [name for name in EDITABLE if getattr(self, name) is not None]
        if self.choice == "edit" and not names:
            raise InputError("nothing is edited: give a verdict, valid_at or invalid_at")
        if self.choice != "edit" and names:
            raise InputError(f"{', '.join(sorted(names))} can be given only with choice='edit'; leave it out")
        if self.seen is not None:
            validate_choice("seen", self.seen, get_args(Ruling))
        self.kind("unrelated")
        self.dates(0)

    def kind(self, default: VerdictKind) -> VerdictKind:
        """Return how the two facts relate: as the person says in this request, or else *default*.

        Errors: `InputError` for an unknown relation, or for any relation if the verdict is about one fact.
        """
        kind = default if self.verdict is None else self.verdict
        if default == "admission":
            if self.verdict is not None:
                raise InputError(f"verdict {self.verdict!r} needs two facts, this review is about one; leave it out")
            return default
        return validate_choice("verdict", kind, CONTRADICTIONS + COMPATIBLE)

    def dates(self, now: int) -> tuple[_Date | None, _Date | None]:
        """Return the start and end that the person gave, each as (microseconds, precision) or None.

        ``valid_at="2019"`` gives ``((1546300800000000, "year"), None)``. Errors: `InputError`.
        """
        end = self.invalid_at
        if isinstance(end, str) and end.strip().lower() == OPEN:
            return _parse_date("valid_at", self.valid_at, now), (OPEN_END, "instant")
        return _parse_date("valid_at", self.valid_at, now), _parse_date("invalid_at", end, now)


def _parse_date(name: str, value: date | str | None, time: int) -> _Date | None:
    if value is None:
        return None
    return parse_moment(name, value, time), parse_when(value, instant(time) or EPOCH).precision


NextState = Callable[[StoredVerdict, History, int], VerdictState]
"""A function from a verdict, the history of its facts and the time in microseconds to the verdict's new state."""


@dataclass(frozen=True, slots=True)
class DecisionNote:
    """A person's decision about a verdict (how two facts relate), as it is stored.

    *before*: the state that an undo restores; None means the state at the time of the decision.
    """

    decision: Choice | Literal["undo"]
    by: str
    reason: str
    before: VerdictState | None = None


def decide(review: str, request: DecisionRequest, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Apply a person's decision about a verdict (how two facts relate), and return the verdict.

    Errors: `NotFound`, `InputError`.
    """
    request.validate()

    def next_state(stored: StoredVerdict, history: History, time: int) -> VerdictState:
        """Return the state of the verdict *stored* after the person's decision."""
        _check_seen(stored, request.seen)
        kind: VerdictKind = stored.row["kind"]
        if kind == "retracted":
            raise InputError(f"review {stored.id!r} is a retraction: undo it, or retract the fact again")
        pending = fact_in_question(history.verdicts[stored.id], history.statements_by_fact())
        if request.choice == "reject":
            return refuse(stored.state, pending, time)
        return _edit(rule(stored.state, to_ruling(request.kind(kind))), pending, request.dates(time), history)

    note = DecisionNote(request.choice, request.by, request.reason)
    return (yield from record((yield from read_verdict(review)), next_state, note, policy, namespace))


def undo_decision(review: str, by: str, reason: str, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Undo the latest decision about a verdict, and return the verdict as it was before.

    Errors: `NotFound`; `InputError` if no decision is left.
    """
    validate_author(by, reason)

    def next_state(stored: StoredVerdict, _history: History, _time: int) -> VerdictState:
        """Return the state of the verdict *stored* before the latest decision on it that was not undone."""
        standing: list[Row] = []
        for decision in stored.decisions:
            standing = standing[:-1] if decision["decision"] == "undo" else [*standing, decision]
        if not standing:
            raise InputError(f"nothing was decided about {review!r}: there is nothing to undo")
        return VerdictState.from_row(json.loads(standing[-1]["before"]))

    stored = yield from read_verdict(review)
    return (yield from record(stored, next_state, DecisionNote("undo", by, reason), policy, namespace))


def refuse(state: VerdictState, fact: str, time: int) -> VerdictState:
    """Return the new state of a verdict (how two facts relate) when a person rejects one of the facts."""
    return replace(state, ruling="refused", refused=fact, refused_at=time)


def rule(state: VerdictState, ruling: Ruling) -> VerdictState:
    """Return a verdict's *state* with the effect *ruling*, and with no fact marked as rejected."""
    return replace(state, ruling=ruling, refused=None, refused_at=None)


def _check_seen(stored: StoredVerdict, seen: Ruling | None) -> None:
    ruling = stored.state.ruling
    if seen in (None, ruling):
        return
    change = f"was decided by {stored.decisions[-1]['by']}" if stored.decisions else "was judged again"
    raise InputError(f"{stored.id!r} {change} meanwhile: it is {ruling}, not {seen}; look again with reviews.list")


def _edit(state: VerdictState, fact: str, dates: tuple[_Date | None, _Date | None], history: History) -> VerdictState:
    """Return the state of a verdict (how two facts relate) after a person set new dates for one of the facts.

    Errors: `InputError`.
    """
    start, end = dates
    if start is None and end is None:
        return state
    if state.edited != fact:
        state = VerdictState(state.ruling, state.refused, state.refused_at, edited=fact)
    if start is not None:
        state = replace(state, edited_from=start[0], edited_precision=start[1])
    if end is not None:
        state = replace(state, edited_until=end[0], edited_end_precision=end[1])
    last = history.last_statement(fact)
    valid_at = last.valid_at if state.edited_from is None else state.edited_from
    if valid_at >= (last.invalid_at if state.edited_until is None else state.edited_until):
        raise InputError("invalid_at must be after valid_at: give a later end")
    return state


def record(
    stored: StoredVerdict,
    next_state: NextState,
    note: DecisionNote,
    policy: ConflictPolicy,
    namespace: str,
    *,
    new: bool = False,
) -> Flow[Review]:
    """Store a decision about a verdict (how two facts relate), and return the verdict as a `Review`.

    Errors: `InputError`, `DatabaseUnavailable`.
    """
    for _ in range(ATTEMPTS):
        based_on = yield from fetch(queries.REVISIONS_OF_FACTS, ids=list(stored.facts))
        history = yield from read_history(stored.facts)
        time = yield from now()
        state = next_state(stored, history, time)
        id_ = decision_id(namespace, stored.id, time)
        verdict = replace(stored.verdict, ruling=state.ruling, refused=state.refused, refused_at=state.refused_at)
        history.set_verdict(stored.id, verdict, to_edit(asdict(state)))
        revision = revise_beliefs(history, policy, namespace, id_)
        decision = {
            "id": id_,
            "decision": note.decision,
            "by": replace_unstorable(note.by),
            "at": time,
            "reason": replace_unstorable(note.reason),
            "before": json.dumps(asdict(note.before or stored.state)),
            "ruling": state.ruling,
        }
        written = yield from write(
            queries.DECIDE,
            judged=[stored.to_row()],
            expected=stored.state.ruling,
            now=time,
            state=asdict(state),
            decision=decision,
            based_on=list(based_on),
            **revision.to_parameters(),
        )
        if written:
            yield from refresh(since=time, before=time - LEFT)
            [result] = yield from to_reviews([(yield from read_verdict(stored.id))])
            return result
        if (yield from find_verdict(stored.id)) != (None if new else stored):
            raise InputError(f"review {stored.id!r} was decided by somebody else meanwhile: read it again first")
    raise DatabaseUnavailable(f"gave up deciding after {ATTEMPTS} write conflicts; try again later")


# Retractions (verdicts about one fact) and replacements (verdicts about an old and a new fact)


def retract(fact: str, by: str, reason: str, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Stop believing the fact with the id *fact*; return the stored record of this, a verdict about one fact.

    Errors: `NotFound`, `InputError`.
    """
    validate_author(by, reason)
    history = yield from require_fact(fact)
    stored, new = yield from _find_or_make(fact, fact, "retracted", RETRACTED, namespace)
    if stored.verdict.is_retraction and not history.beliefs[fact]:
        [review] = yield from to_reviews([stored])
        return review

    def next_state(verdict: StoredVerdict, _history: History, time: int) -> VerdictState:
        return refuse(verdict.state, fact, time)

    return (yield from record(stored, next_state, DecisionNote("reject", by, reason), policy, namespace, new=new))


def replace_fact(
    fact: str, episode: str, author: tuple[str, str], policy: ConflictPolicy, namespace: str
) -> Flow[Review]:
    """Replace a fact by the fact that a stored message states; return how the two facts relate.

    Errors: `InputError`.
    """
    by, saved_at = yield from _find_successor(fact, episode)
    stored, new = yield from _find_or_make(by, fact, "supersedes", REPLACED, namespace)
    judged = stored.row["created_at"] >= saved_at and not stored.decisions  # made by reading this episode
    before = rule(stored.state, "both") if judged else stored.state

    def next_state(verdict: StoredVerdict, history: History, time: int) -> VerdictState:
        state = rule(verdict.state, "supersedes")
        history.set_verdict(verdict.id, replace(verdict.verdict, ruling="supersedes", refused=None), None)
        truth = truths(history.apply_edits(), list(history.verdicts.values()), policy)
        is_replaced = _begins_after(truth.get(by, Truth()), truth.get(fact, Truth()))
        return state if is_replaced else refuse(verdict.state, fact, time)

    return (yield from record(stored, next_state, DecisionNote("accept", *author, before), policy, namespace, new=new))


def _begins_after(truth: Truth, former: Truth) -> bool:
    begin = max((period.known_from for period in truth.periods), default=None)
    return begin is not None and all(period.invalid_at <= begin for period in former.periods)


def _find_successor(fact: str, episode: str) -> Flow[tuple[str, int]]:
    """Return the id of the fact that a message states in place of *fact*, and the message's save time.

    The time is in microseconds. Errors: `InputError` if the message states no other fact.
    """
    stated: Sequence[Row] = yield from fetch(REPLACING, fact=fact, episode=episode)
    others = [row for row in stated if row["id"] != fact]
    if not others:
        what = "it states the same fact" if stated else "no fact was read from it"
        raise InputError(f"the text must state another fact, but {what}; reword it (nothing was changed)")

    nearest = max(others, key=lambda row: (row["same_subject"], row["same_predicate"], row["id"]))
    return str(nearest["id"]), int(nearest["saved_at"])


def _find_or_make(
    one: str, existing: str, kind: VerdictKind, reason: str, namespace: str
) -> Flow[tuple[StoredVerdict, bool]]:
    """Return ``(verdict, is_new)``: the stored verdict about the two facts, or a new one, not stored yet."""
    id_ = verdict_id(namespace, one, existing)
    stored = yield from find_verdict(id_)
    if stored is not None:
        return stored, False
    row = {"id": id_, "kind": kind, "confidence": 1.0, "reason": reason, "created_at": (yield from now())}
    return StoredVerdict({**row, "new": one, "known": existing, "holds": "new", "ruling": "both"}), True
