"""`GraphMemory.reviews`: uncertain verdicts that wait for a person, decisions, and undoing them."""

from __future__ import annotations

import builtins
from datetime import date
from typing import Literal

from kg_memory.maintenance.identities.decisions import decide_doubt, list_identities
from kg_memory.maintenance.review.decide import Choice, DecisionRequest, decide, undo
from kg_memory.maintenance.review.reviews import list_conflicts, list_reviews, list_verdicts
from kg_memory.memory._verb import Group, verb
from kg_memory.models.graph import IdentityDecision, Review, Ruling, VerdictKind
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.validation import DEFAULT_NAMESPACE


class Reviews(Group):
    """Verdicts about facts that may contradict each other."""

    _group = "reviews"

    def _list(
        self, *, decided: bool = False, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Review]]:
        """Return the verdicts that wait for a person, earliest first.

        Until then both facts are believed, and disputed. With `Settings.disputes` ``withhold`` the pending one is
        stored but not believed: searches and lists leave it out unless asked (`unreviewed`). A verdict about two
        pending facts comes later, once the earlier fact is decided. *decided* returns the verdicts that persons
        decided instead, the latest decision first, to be looked at and undone.
        """
        return list_reviews(limit, skip, decided=decided)

    list, alist = verb(_list)

    def _conflicts(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Review]]:
        """Return the facts that cannot both be true, those settled by the strategy and those that wait."""
        return list_conflicts(limit, skip)

    conflicts, aconflicts = verb(_conflicts)

    def _verdicts(
        self, fact: str | None = None, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[Review]]:
        """Return all verdicts about the fact with that id, or about any, the latest first.

        Those that took effect by themselves are among them, with `decided_by` ``auto`` and the model's reason; each can
        be decided and undone by its id. Errors: `InputError` when there is no such fact.
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
        """Decide the verdict with that id, and return it as it is then.

        ``"accept"``: it takes effect. ``"reject"``: the pending fact is not believed. ``"edit"``: it takes effect with
        another *verdict* (``complements``, ``temporary`` and ``unrelated`` let both facts hold), or with other dates
        of the pending fact. Dates are as exact as they are written: ``"2019"`` is shown as 2019, and *invalid_at*
        ``"open"`` takes an end back. A verdict that took effect by itself can be decided too. *seen* is the `ruling`
        on which the decision was based, which must still hold. Who, when and why is kept. Errors: `InputError`.
        """
        request = DecisionRequest(choice, by, reason, verdict, valid_at, invalid_at, seen)
        return decide(review, request, ConflictPolicy.from_settings(self._engine.settings), namespace)

    decide, adecide = verb(_decide)

    def _undo(
        self, review: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[Review]:
        """Undo the last decision about the verdict with that id; it takes effect again as before."""
        return undo(review, by, reason, ConflictPolicy.from_settings(self._engine.settings), namespace)

    undo, aundo = verb(_undo)

    def _identities(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> Flow[builtins.list[IdentityDecision]]:
        """Return the doubts that wait: new entities of which a reading was not sure whether they are known ones.

        Until one is decided, the two are kept apart. See also `Entities.decisions`, which has those decided.
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
        """Decide a doubt about who is who: ``"accept"`` merges the two, ``"reject"`` keeps them apart for good.

        `Entities.undo` takes it back: then it waits again. Who, when and why is kept. Errors: `InputError`.
        """
        return decide_doubt(doubt, choice, by, reason)

    decide_identity, adecide_identity = verb(_decide_identity)
