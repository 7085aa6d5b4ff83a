"""Retract a fact, or let another one replace it, as a person says: decisions like those about verdicts, and undone so.

A retraction is a verdict about the fact alone. A replacement is the one about the old fact and the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kg_memory.errors import InputError
from kg_memory.falkor.queries.premises import REPLACING
from kg_memory.falkor.rows import Row
from kg_memory.maintenance.review.decide import Note, record, refuse, rule
from kg_memory.maintenance.review.reviews import StoredVerdict, VerdictState, find_verdict, require_fact, to_reviews
from kg_memory.models.graph import Review, VerdictKind
from kg_memory.runtime.effects import now, read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.policy import ConflictPolicy, Verdict
from kg_memory.temporal.truth import Truth, truths
from kg_memory.text.identity import verdict_id
from kg_memory.validation import validate_author

RETRACTED, REPLACED = "a person retracted it", "a person replaced one by the other"


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
    judged = stored.created_at >= saved_at and not stored.decisions  # by the reading of the episode itself
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
    time = yield from now()
    verdict = Verdict(one, existing, "both", one)
    return StoredVerdict(verdict, VerdictState("both"), (), id_, kind, 1.0, reason, time), True
