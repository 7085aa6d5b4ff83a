"""`GraphMemory.reviews`: let people decide uncertain relations of facts and of entities, and undo the decisions."""

from __future__ import annotations

import builtins
from datetime import date
from typing import Literal

from kg_memory.maintenance.identities.decisions import decide_doubt, list_identities
from kg_memory.maintenance.review.decide import Choice, DecisionRequest, decide, undo_decision
from kg_memory.maintenance.review.reviews import list_conflicts, list_reviews, list_verdicts
from kg_memory.memory._verb import Group, verb
from kg_memory.models.graph import IdentityDecision, Review, Ruling, VerdictKind
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.validation import DEFAULT_NAMESPACE


class Reviews(Group):
    """`GraphMemory.reviews`: people's decisions whether facts contradict each other, or two entities are the same."""

    _group = "reviews"

    def _list(
        self, *, decided: bool = False, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Review]]:
        """Return the verdicts (how a new fact relates to an existing one) that wait for a person, earliest first.

        Until a decision, both facts are believed and marked as disputed; with `Settings.disputes` set to ``withhold``,
        the later fact is not believed. *decided*: return the verdicts that people have decided instead, latest first.
        """
        return list_reviews(limit, skip, decided=decided)

    list, alist = verb(_list)

    def _conflicts(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Review]]:
        """Return the pairs of facts that cannot both be true, as reviews, earliest first.

        Some were decided automatically, others wait for a person. *limit* is the maximum number; *skip* is how many to
        leave out before.
        """
        return list_conflicts(limit, skip)

    conflicts, aconflicts = verb(_conflicts)

    def _verdicts(
        self, fact: str | None = None, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Review]]:
        """Return all verdicts (how two facts relate) about the fact with the id *fact*, latest first; None is any fact.

        If `decided_by` is ``"auto"``, the verdict took effect automatically; people can still decide it. Raises
        `InputError` if the fact is not stored.
        """
        return list_verdicts(fact, limit, skip)

    verdicts, averdicts = verb(_verdicts)

    def _decide(
        self,
        review: str,
        choice: Choice,
        *,
        by: str = "user",
        reason: str = "",
        verdict: VerdictKind | None = None,
        valid_at: date | str | None = None,
        invalid_at: date | str | None = None,
        seen: Ruling | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[Review]:
        """Decide a verdict (how a new, pending fact relates to an existing one), and return it in its new state.

        *review*: its id. *choice*: ``"accept"`` (the verdict takes effect), ``"reject"`` (the pending fact is not
        believed) or ``"edit"`` (give the right *verdict*, or the right dates). ``complements``, ``temporary`` and
        ``unrelated`` mean that both facts hold. *valid_at* and *invalid_at*: start and end of the pending fact, such as
        ``"2019"``; ``invalid_at="open"`` says that it has not ended. *seen*: the effect (`Review.ruling`) that was
        shown to the person; if it has changed since, `InputError` is raised. `undo` reverses the decision.
        """
        request = DecisionRequest(choice, by, reason, verdict, valid_at, invalid_at, seen)
        return decide(review, request, ConflictPolicy.from_settings(self._engine.settings), namespace)

    decide, adecide = verb(_decide)

    def _undo(
        self, review: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[Review]:
        """Undo the last decision about a verdict (how two facts relate), and return the verdict as it was before.

        *review* is its id. *by* and *reason* (who undoes it, and why) are stored.
        """
        return undo_decision(review, by, reason, ConflictPolicy.from_settings(self._engine.settings), namespace)

    undo, aundo = verb(_undo)

    def _identities(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[IdentityDecision]]:
        """Return the open questions whether a new entity is the same person or thing as an existing one.

        Until a question is decided, the two entities stay separate. `Entities.decisions` lists the decided ones.
        *limit* is the maximum number; *skip* is how many to leave out before.
        """
        return list_identities(("waiting",), limit, skip, kinds=("doubt",))

    identities, aidentities = verb(_identities)

    def _decide_identity(
        self,
        doubt: str,
        choice: Literal["accept", "reject"],
        *,
        by: str = "user",
        reason: str = "",
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[IdentityDecision]:
        """Decide whether two entities are the same: ``"accept"`` merges them, ``"reject"`` keeps them apart.

        *doubt*: the id of the question, from `identities`. *by* (who decides) and *reason* are stored. Returns the
        decision; `Entities.undo` reverses it. Raises `InputError`.
        """
        return decide_doubt(doubt, choice, by, reason)

    decide_identity, adecide_identity = verb(_decide_identity)
