"""The verbs by which persons review what memory may believe."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from kg_memory.maintenance.review import decide as deciding
from kg_memory.maintenance.review import predicates as vocabulary
from kg_memory.maintenance.review.decide import Choice
from kg_memory.maintenance.review.graph import build
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import PredicateInfo, Review, Ruling, VerdictKind
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import DEFAULT_NAMESPACE


class Reviewing(Verbs):
    """Verdicts that wait for a person, decisions and their undoing, and the vocabulary."""

    def reviews(
        self, *, decided: bool = False, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> list[Review]:
        """Return the verdicts that wait for a person, earliest first.

        The fact that waits is stored, but not believed: no search or list has it unless asked for (`unreviewed`). A
        verdict about two facts that both wait is asked later, when the one said before waits no more. *decided*: those
        about which persons decided instead, the latest decision first, to be looked at and undone.
        """
        return self._run(deciding.reviews(limit, skip, decided=decided), namespace)

    async def areviews(
        self, *, decided: bool = False, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> list[Review]:
        """`reviews`, for asyncio."""
        return await self._arun(deciding.reviews(limit, skip, decided=decided), namespace)

    def conflicts(self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0) -> list[Review]:
        """Return the facts that cannot both be true, those settled by the strategy and those that wait."""
        return self._run(deciding.conflicts(limit, skip), namespace)

    async def aconflicts(self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0) -> list[Review]:
        """`conflicts`, for asyncio."""
        return await self._arun(deciding.conflicts(limit, skip), namespace)

    def decide(
        self,
        review: str,
        choice: Choice,
        *,
        by: str = "user",
        reason: str = "",
        verdict: VerdictKind | None = None,
        valid_at: datetime | str | None = None,
        invalid_at: datetime | str | None = None,
        seen: Ruling | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Review:
        """Decide about the verdict with that id, and return it as it is then.

        ``"accept"``: it takes effect. ``"reject"``: the fact that waits is not believed. ``"edit"``: with another
        *verdict* (``complements``, ``temporary`` and ``unrelated`` let both facts hold), or with other dates of the
        fact that waits, it takes effect. Dates are as exact as they are written: ``"2019"`` is told as 2019, and
        *invalid_at* ``"open"`` takes an end back. A verdict that took effect by itself can be decided about too. *seen*
        is the `ruling` at which the decision was made, which must still be so. Who, when and why is kept. Errors:
        `InputError`.
        """
        edit = {"verdict": verdict, "valid_at": valid_at, "invalid_at": invalid_at}
        flow = deciding.decide(review, choice, by=by, reason=reason, edit=edit, seen=seen, **self._how(namespace))
        return self._run(flow, namespace)

    async def adecide(
        self,
        review: str,
        choice: Choice,
        *,
        by: str = "user",
        reason: str = "",
        verdict: VerdictKind | None = None,
        valid_at: datetime | str | None = None,
        invalid_at: datetime | str | None = None,
        seen: Ruling | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Review:
        """`decide`, for asyncio."""
        edit = {"verdict": verdict, "valid_at": valid_at, "invalid_at": invalid_at}
        flow = deciding.decide(review, choice, by=by, reason=reason, edit=edit, seen=seen, **self._how(namespace))
        return await self._arun(flow, namespace)

    def undo(self, review: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE) -> Review:
        """Undo the last decision about the verdict with that id; it does again what it did before."""
        return self._run(deciding.undo(review, by=by, reason=reason, **self._how(namespace)), namespace)

    async def aundo(
        self, review: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Review:
        """`undo`, for asyncio."""
        return await self._arun(deciding.undo(review, by=by, reason=reason, **self._how(namespace)), namespace)

    def predicates(self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0) -> list[PredicateInfo]:
        """Return the predicates that this namespace learned or was told; what the rules know goes without saying."""
        return self._run(vocabulary.listed(limit, skip), namespace)

    async def apredicates(
        self, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, skip: int = 0
    ) -> list[PredicateInfo]:
        """`predicates`, for asyncio."""
        return await self._arun(vocabulary.listed(limit, skip), namespace)

    def correct_predicate(
        self,
        name: str,
        *,
        canonical: str | None = None,
        one_at_a_time: bool | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> PredicateInfo:
        """Say under which *canonical* name a predicate is kept, and whether a subject has one object of it at a time.

        It counts for what is read from now on. Errors: `InputError`.
        """
        return self._run(vocabulary.correct(name, canonical, one_at_a_time=one_at_a_time), namespace)

    async def acorrect_predicate(
        self,
        name: str,
        *,
        canonical: str | None = None,
        one_at_a_time: bool | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> PredicateInfo:
        """`correct_predicate`, for asyncio."""
        return await self._arun(vocabulary.correct(name, canonical, one_at_a_time=one_at_a_time), namespace)

    @cached_property
    def review(self) -> Any:
        """The review graph, to be compiled with a checkpointer of yours: it stops for a person's decisions."""
        return build(self.driver, self.settings)

    def _how(self, namespace: str) -> dict[str, Any]:
        return {"policy": ConflictPolicy.from_settings(self.settings), "namespace": namespace}
