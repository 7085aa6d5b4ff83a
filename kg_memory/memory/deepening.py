"""The verb that reads again by a better plan what a cheaper one read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as cypher
from kg_memory.ingestion.records import IngestionContext
from kg_memory.ingestion.summarise import refresh
from kg_memory.memory import calls
from kg_memory.memory.calls import Progress
from kg_memory.memory.reading import MOST, counted
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import AddResult, Episode, EpisodeStatus
from kg_memory.runtime.effects import read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE, PLANS, Settings
from kg_memory.text.identity import DEFAULT_NAMESPACE

DEEPER = PLANS[PLANS.index("standard") :]
"""The plans that read one episode at a time, and so may read one again."""
UNKNOWN = ""
"""The plan of what was read before plans were noted: it counts as the cheapest."""


class Deepening(Verbs):
    """What was read cheaply is read again, with more care."""

    def deepen(
        self,
        to: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int | None = None,
        skipped: bool = False,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[AddResult]:
        """Read again, by the plan *to* or this memory's own, what a cheaper plan read, earliest first; see `add_many`.

        At most *limit* episodes; with *skipped* also those that were not to be read, but for suspects. Known facts are
        found again and not doubled, new ones are added; what the better reading does not find stays, with its source.
        Called again, it goes on where it stopped. *dry_run* changes nothing and returns what would be read.
        Errors: `InputError` for a plan that there is not, and where the memory has no model; those of `add`.
        """
        wanted = chosen(to, self.settings, skipped=skipped, reads=not dry_run)
        found = self._run(wanted.episodes(limit), namespace)
        if dry_run:
            return found
        tally = calls.Tally(len(found), progress)
        for each in found:
            episode = self._run(wanted.reopened(each.episode), namespace)
            if episode is not None:
                tally.count(self._remember(calls.again(episode), namespace, wanted.context))
        self._run(refresh(since=0, before=self.driver.clock()), namespace)
        return tally.added

    async def adeepen(
        self,
        to: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int | None = None,
        skipped: bool = False,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> list[AddResult]:
        """`deepen`, for asyncio."""
        wanted = chosen(to, self.settings, skipped=skipped, reads=not dry_run)
        found = await self._arun(wanted.episodes(limit), namespace)
        if dry_run:
            return found
        tally = calls.Tally(len(found), progress)
        for each in found:
            episode = await self._arun(wanted.reopened(each.episode), namespace)
            if episode is not None:
                tally.count(await self._aremember(calls.again(episode), namespace, wanted.context))
        await self._arun(refresh(since=0, before=self.driver.clock()), namespace)
        return tally.added

    def _remember(self, given: dict[str, Any], namespace: str, context: IngestionContext | None) -> AddResult:
        raise NotImplementedError

    async def _aremember(self, given: dict[str, Any], namespace: str, context: IngestionContext | None) -> AddResult:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which episodes are to be read again: those in some states that one of the cheaper `plans` read; and how."""

    statuses: tuple[str, ...]
    plans: tuple[str, ...]
    context: IngestionContext

    def episodes(self, limit: int | None) -> Flow[list[AddResult]]:
        """Return them as they are, earliest first."""
        most = MOST if limit is None else counted("limit", limit)
        found = yield from read(cypher.SHALLOW, statuses=self.statuses, plans=self.plans, limit=most)
        return [AddResult(episode=row["id"], new=False, status=EpisodeStatus(row["status"])) for row in found]

    def reopened(self, id_: str) -> Flow[Episode | None]:
        """Mark one of them as to be read, and return it; ``None`` if somebody else reads it, or it was forgotten."""
        found = yield from write(cypher.REOPEN_SHALLOW, id=id_, statuses=self.statuses, plans=self.plans)
        return rows.to_episode(found[0]["episode"]) if found else None


def chosen(to: str | None, settings: Settings, *, skipped: bool, reads: bool) -> Wanted:
    """Return what is to be read again so that all is read by the plan *to*; who *reads* needs a model.

    Errors: `InputError`.
    """
    if reads and settings.model == OFFLINE:
        raise InputError("this memory reads offline, by rules: name a model, which reads better, to deepen it")
    plan = to or (settings.plan if settings.plan in DEEPER else DEEPER[0])
    if plan not in DEEPER:
        raise InputError(f"the plan to deepen to is {to!r}: use {' or '.join(DEEPER)}")
    statuses = (EpisodeStatus.DONE, *([EpisodeStatus.SKIPPED] if skipped else []))
    context = IngestionContext(plan=plan, read_all=True)  # what was read before is, whatever is skipped by now
    return Wanted(tuple(map(str, statuses)), (UNKNOWN, *PLANS[: PLANS.index(plan)]), context)
