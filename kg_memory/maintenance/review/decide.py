"""Decide verdicts, undo decisions, retract facts, and replace them by others.

A decision changes no fact and no statement. It changes the ruling of the verdict, and the beliefs that follow are
closed and recorded like any others. Each decision is kept, with who made it, when and why.
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
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import EPOCH, OPEN_END, instant
from kg_memory.temporal.policy import (
    COMPATIBLE,
    CONTRADICTIONS,
    ConflictPolicy,
    fact_in_question,
    to_ruling,
)
from kg_memory.temporal.truth import Truth, truths
from kg_memory.text.dates import parse_when
from kg_memory.text.identity import decision_id, replace_unstorable, verdict_id
from kg_memory.validation import validate_author

Choice = Literal["accept", "reject", "edit"]
ATTEMPTS = 50
"""The most tries to write while others write about the same entities."""
RETRACTED, REPLACED = "a person retracted it", "a person replaced one by the other"
OPEN = "open"
"""The end of what has not ended, for an edit that takes an end back."""
EDITABLE = ("verdict", "valid_at", "invalid_at")
_Date = tuple[int, Precision]


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A decision to make, and for an edit another *verdict*, or other dates of the pending fact.

    *invalid_at* may be `OPEN`. *seen* is the ruling of the verdict when the person looked at it.
    """

    choice: Choice
    by: str
    reason: str = ""
    verdict: VerdictKind | None = None
    valid_at: date | str | None = None
    invalid_at: date | str | None = None
    seen: Ruling | None = None

    def validate(self) -> None:
        """Check what does not depend on the verdict. Errors: `InputError`."""
        if self.choice not in get_args(Choice):
            raise InputError(f"choice must be one of {', '.join(get_args(Choice))}, got {self.choice!r}")
        validate_author(self.by, self.reason)
        names = [name for name in EDITABLE if getattr(self, name) is not None]
        if self.choice == "edit" and not names:
            raise InputError("nothing is edited: give a verdict, valid_at or invalid_at")
        if self.choice != "edit" and names:
            raise InputError(f"{', '.join(sorted(names))} can be given only to edit")
        if self.seen is not None and self.seen not in get_args(Ruling):
            raise InputError(f"seen must be one of {', '.join(get_args(Ruling))}, got {self.seen!r}")
        self.kind("unrelated")
        self.dates(0)

    def kind(self, default: VerdictKind) -> VerdictKind:
        """Return the verdict, or *default* where it is left out. Errors: `InputError`."""
        kind = default if self.verdict is None else self.verdict
        if default == "admission":
            if self.verdict is not None:
                raise InputError(f"verdict {self.verdict!r} is about two facts, and this is about one; leave it out")
            return default
        if kind not in CONTRADICTIONS + COMPATIBLE:
            raise InputError(f"verdict must be one of {', '.join(CONTRADICTIONS + COMPATIBLE)}, got {kind!r}")
        return kind

    def dates(self, time: int) -> tuple[_Date | None, _Date | None]:
        """Return the start and the end with how exact each is; *time* is now. Errors: `InputError`."""
        end = self.invalid_at
        if isinstance(end, str) and end.strip().lower() == OPEN:
            return _parse_date("valid_at", self.valid_at, time), (OPEN_END, "instant")
        return _parse_date("valid_at", self.valid_at, time), _parse_date("invalid_at", end, time)


def _parse_date(name: str, value: date | str | None, time: int) -> _Date | None:
    if value is None:
        return None
    start = parse_moment(name, value, time)
    return start, parse_when(value, instant(time) or EPOCH).precision


NextState = Callable[[StoredVerdict, History, int], VerdictState]
"""The state of a verdict after a decision, by the history of its facts and the time."""


@dataclass(frozen=True, slots=True)
class Note:
    """A decision as it is kept: what, by whom and why; *before* is what an undo brings back, if not what is so now."""

    decision: Choice | Literal["undo"]
    by: str
    reason: str
    before: VerdictState | None = None


def decide(review: str, request: DecisionRequest, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Decide the verdict with that id, and return it as it is then.

    To accept lets it take effect, to reject refuses the pending fact, to edit gives another verdict, or other dates to
    the pending fact, and accepts it. Errors: `InputError`, also where the ruling is no longer the one that was seen.
    """
    request.validate()

    def next_state(stored: StoredVerdict, history: History, time: int) -> VerdictState:
        _check_seen(stored, request.seen)
        kind: VerdictKind = stored.row["kind"]
        if kind == "retracted":
            raise InputError(f"{stored.id!r} retracts a fact: undo it, or retract the fact again")
        pending = fact_in_question(history.verdicts[stored.id], history.statements_by_fact())
        if request.choice == "reject":
            return refuse(stored.state, pending, time)
        accepted = rule(stored.state, to_ruling(request.kind(kind)))
        return _edit(accepted, pending, request.dates(time), history)

    note = Note(request.choice, request.by, request.reason)
    return (yield from record((yield from read_verdict(review)), next_state, note, policy, namespace))


def undo(review: str, by: str, reason: str, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Undo the last decision about a verdict that is not undone yet, and return it as it is then.

    Errors: `InputError` when there is none.
    """
    validate_author(by, reason)

    def next_state(stored: StoredVerdict, _history: History, _time: int) -> VerdictState:
        standing: list[Row] = []
        for decision in stored.decisions:
            if decision["decision"] == "undo":
                standing.pop()
            else:
                standing.append(decision)
        if not standing:
            raise InputError(f"nothing was decided about {review!r}: there is nothing to undo")
        return VerdictState.from_row(json.loads(standing[-1]["before"]))

    stored = yield from read_verdict(review)
    return (yield from record(stored, next_state, Note("undo", by, reason), policy, namespace))


def refuse(state: VerdictState, fact: str, time: int) -> VerdictState:
    """Return *state* where a person rejected *fact* at that time."""
    return replace(state, ruling="refused", refused=fact, refused_at=time)


def rule(state: VerdictState, ruling: Ruling) -> VerdictState:
    """Return *state* with another *ruling*, by which neither fact is rejected."""
    return replace(state, ruling=ruling, refused=None, refused_at=None)


def _check_seen(stored: StoredVerdict, seen: Ruling | None) -> None:
    ruling = stored.state.ruling
    if seen in (None, ruling):
        return
    change = f"was decided by {stored.decisions[-1]['by']}" if stored.decisions else "was judged anew"
    raise InputError(f"{stored.id!r} {change} meanwhile ({ruling}, not {seen}): look at it again")


def _edit(state: VerdictState, fact: str, dates: tuple[_Date | None, _Date | None], history: History) -> VerdictState:
    """Return *state* with other *dates* of *fact*; a date that is left out stays as it was edited before."""
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
    invalid_at = last.invalid_at if state.edited_until is None else state.edited_until
    if valid_at >= invalid_at:
        raise InputError("invalid_at is not after valid_at: give a later end")
    return state


def record(
    stored: StoredVerdict,
    next_state: NextState,
    note: Note,
    policy: ConflictPolicy,
    namespace: str,
    *,
    new: bool = False,
) -> Flow[Review]:
    """Write a decision and the beliefs that follow from it, and return the verdict as it is then.

    A *new* verdict is written with it. It is computed again where facts about the same entities were changed meanwhile.
    """
    for _ in range(ATTEMPTS):
        based_on = yield from read(queries.REVISIONS_OF_FACTS, ids=list(stored.facts))
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
            **asdict(state),
            decision=decision,
            based_on=list(based_on),
            **revision.to_parameters(),
        )
        if written:
            yield from refresh(since=time, before=time - LEFT)
            changed = yield from read_verdict(stored.id)
            [result] = yield from to_reviews([changed])
            return result
        if (yield from find_verdict(stored.id)) != (None if new else stored):
            raise InputError(f"{stored.id!r} was decided by somebody else meanwhile: look at it again")
    raise DatabaseUnavailable(f"gave up deciding after {ATTEMPTS} write conflicts; retry later")


# Retractions and replacements: a verdict about the fact alone, and one about the old fact and the new one


def retract(fact: str, by: str, reason: str, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Believe the fact with that id no more, and return the verdict that says so.

    Nothing is decided where it is retracted already, and was not stated since. Errors: `InputError`.
    """
    validate_author(by, reason)
    history = yield from require_fact(fact)
    stored, new = yield from _find_or_make(fact, fact, "retracted", RETRACTED, namespace)
    if stored.verdict.is_retraction and not history.beliefs[fact]:
        [review] = yield from to_reviews([stored])
        return review

    def next_state(verdict: StoredVerdict, _history: History, time: int) -> VerdictState:
        return refuse(verdict.state, fact, time)

    return (yield from record(stored, next_state, Note("reject", by, reason), policy, namespace, new=new))


def replace_fact(
    fact: str, episode: str, author: tuple[str, str], policy: ConflictPolicy, namespace: str
) -> Flow[Review]:
    """Let what *episode* states end the fact with that id, and return the verdict about the two.

    *author* is who decides, and why. Where the new fact does not begin later, the old one was wrong, and is refused.
    Errors: `InputError` where the episode states no other fact.
    """
    by, saved_at = yield from _find_successor(fact, episode)
    stored, new = yield from _find_or_make(by, fact, "supersedes", REPLACED, namespace)
    judged = stored.row["created_at"] >= saved_at and not stored.decisions  # by the reading of the episode itself
    before = rule(stored.state, "both") if judged else stored.state

    def next_state(verdict: StoredVerdict, history: History, time: int) -> VerdictState:
        state = rule(verdict.state, "supersedes")
        history.set_verdict(verdict.id, replace(verdict.verdict, ruling="supersedes", refused=None), None)
        truth = truths(history.apply_edits(), list(history.verdicts.values()), policy)
        is_replaced = _takes_place(truth.get(by, Truth()), truth.get(fact, Truth()))
        return state if is_replaced else refuse(verdict.state, fact, time)

    return (yield from record(stored, next_state, Note("accept", *author, before), policy, namespace, new=new))


def _takes_place(truth: Truth, former: Truth) -> bool:
    """Return whether a fact holds from when the *former* one has ended."""
    begin = max((period.known_from for period in truth.periods), default=None)
    return begin is not None and all(period.invalid_at <= begin for period in former.periods)


def _find_successor(fact: str, episode: str) -> Flow[tuple[str, int]]:
    """Return the fact of *episode* nearest to *fact*, by its subject and predicate, and when the episode was saved."""
    stated: Sequence[Row] = yield from read(REPLACING, fact=fact, episode=episode)
    others = [row for row in stated if row["id"] != fact]
    if not others:
        what = "states the same fact" if stated else "no fact was read from it"
        raise InputError(f"the text must state another fact, but {what}; nothing was changed")

    nearest = max(others, key=lambda row: (row["same_subject"], row["same_predicate"], row["id"]))
    return str(nearest["id"]), int(nearest["saved_at"])


def _find_or_make(
    one: str, existing: str, kind: VerdictKind, reason: str, namespace: str
) -> Flow[tuple[StoredVerdict, bool]]:
    """Return the verdict about two facts, and whether it is a new one, which has no effect yet."""
    id_ = verdict_id(namespace, one, existing)
    stored = yield from find_verdict(id_)
    if stored is not None:
        return stored, False
    row = {"id": id_, "kind": kind, "confidence": 1.0, "reason": reason, "created_at": (yield from now())}
    return StoredVerdict({**row, "new": one, "known": existing, "holds": "new", "ruling": "both"}), True
