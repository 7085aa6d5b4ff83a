"""The verb by which memory makes room."""

from __future__ import annotations

from collections.abc import Callable

from kg_memory.maintenance.eviction import EvictionRequest
from kg_memory.maintenance.eviction import evict as evicting
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import EvictionResult
from kg_memory.text.identity import DEFAULT_NAMESPACE


class Evicting(Verbs):
    """What is over, or of which nothing is known any more, makes room."""

    def evict(
        self,
        *,
        expired_days: float | None = None,
        orphans: bool = False,
        max_entities: int | None = None,
        expired_episodes: bool = False,
        dry_run: bool = False,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[EvictionResult], None] | None = None,
    ) -> EvictionResult:
        """Let go of what is asked, and return what went; nothing goes that is not asked for. See `docs/eviction.md`.

        *expired_days*: what is not believed any more, and facts that have ended, both for so many days at least: what
        is so now, or was at any time since then, stays as it is told. *orphans*: entities that were last seen so long
        ago, or 90 days, and have no fact but such. *max_entities*: so many entities are left; those go first that
        have the fewest facts that hold, and of these the longest not seen; their facts go with them.
        *expired_episodes*: messages that are past their `expires_at` are forgotten; see `forget`.

        Messages stay as they were said, but for those that expired. What is evicted is not found any more; what was
        said about it still bears on what is said later or late, and told anew it comes back. *dry_run* changes nothing
        and returns what would go. *progress* is told what went so far. It may be broken off and called again.
        Errors: `InputError`, `DatabaseError`.
        """
        asked = EvictionRequest(expired_days, orphans, max_entities, expired_episodes, dry_run, progress)
        return self._run(evicting(asked, self.settings, namespace), namespace)

    async def aevict(
        self,
        *,
        expired_days: float | None = None,
        orphans: bool = False,
        max_entities: int | None = None,
        expired_episodes: bool = False,
        dry_run: bool = False,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[EvictionResult], None] | None = None,
    ) -> EvictionResult:
        """`evict`, for asyncio."""
        asked = EvictionRequest(expired_days, orphans, max_entities, expired_episodes, dry_run, progress)
        return await self._arun(evicting(asked, self.settings, namespace), namespace)
