"""The verbs that look at memory over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kg_memory.memory import cards, past
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import Change, Fact, TimelineEvent
from kg_memory.models.surroundings import EntityCard, Neighbourhood
from kg_memory.retrieval.time_window import EVER, Window, asked_window, moment
from kg_memory.text.identity import DEFAULT_NAMESPACE

Time = datetime | str
During = str | Sequence[Time | None]
"""Two times, each of which may be open (``None``), or one period in words such as ``"last March"``."""


class LookingBack(Verbs):
    """What was so, in which order, and what changed.

    Times are datetimes (naive ones are UTC), ISO 8601 text or plain words, English or Chinese: ``"last March"`` stands
    for its first instant, and in `during` for its whole length. `as_of` and `during` ask about the world, `believed_at`
    about what was believed then. Errors: `InputError` for what is no time.
    """

    def facts_about(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
    ) -> list[Fact]:
        """Return the facts about the entity called *name*, latest first: each period of each, past ones too.

        With *as_of* only what was so then, with *during* what was so at some time in it. *unreviewed* takes in what
        waits for review, which is not believed yet.
        """
        window, believed = self._times(as_of, during, believed_at)
        flow = past.facts_about(name, limit, window, believed, unreviewed=unreviewed)
        return self._run(flow, namespace)

    async def afacts_about(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
    ) -> list[Fact]:
        """`facts_about`, for asyncio."""
        window, believed = self._times(as_of, during, believed_at)
        flow = past.facts_about(name, limit, window, believed, unreviewed=unreviewed)
        return await self._arun(flow, namespace)

    def history(
        self,
        name: str,
        predicate: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        believed_at: Time | None = None,
    ) -> list[Fact]:
        """Return the periods of what the entity called *name* was, did or had, newest first, with their sources.

        *predicate* takes those of one relation, in any of its wordings ("lives in", ``RESIDES_IN``).
        """
        _, believed = self._times(None, None, believed_at)
        return self._run(past.facts_about(name, limit, EVER, believed, predicate=predicate), namespace)

    async def ahistory(
        self,
        name: str,
        predicate: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        believed_at: Time | None = None,
    ) -> list[Fact]:
        """`history`, for asyncio."""
        _, believed = self._times(None, None, believed_at)
        return await self._arun(past.facts_about(name, limit, EVER, believed, predicate=predicate), namespace)

    def timeline(
        self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, believed_at: Time | None = None
    ) -> list[TimelineEvent]:
        """Return what began, ended and was said of the entity called *name*, earliest first; of *limit* periods."""
        _, believed = self._times(None, None, believed_at)
        return self._run(past.timeline(name, limit, believed), namespace)

    async def atimeline(
        self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, believed_at: Time | None = None
    ) -> list[TimelineEvent]:
        """`timeline`, for asyncio."""
        _, believed = self._times(None, None, believed_at)
        return await self._arun(past.timeline(name, limit, believed), namespace)

    def changes(
        self, since: Time, until: Time | None = None, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 1000
    ) -> list[Change]:
        """Return what was learned, ended, corrected, retracted and restored in ``[since, until)``, earliest first.

        Here the times are those of the system's clock: when it came to be believed.
        """
        begin, end = self._moments(since, until)
        return self._run(past.changes(begin, end, limit), namespace)

    async def achanges(
        self, since: Time, until: Time | None = None, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 1000
    ) -> list[Change]:
        """`changes`, for asyncio."""
        begin, end = self._moments(since, until)
        return await self._arun(past.changes(begin, end, limit), namespace)

    def evolution(self, fact: str, *, namespace: str = DEFAULT_NAMESPACE) -> list[Fact]:
        """Return what took the place of what, earliest first: the fact with that id, and all that superseding links.

        At most `past.LONGEST_CHAIN` periods around it. Errors: `InputError` when there is no such fact.
        """
        return self._run(past.evolution(fact), namespace)

    async def aevolution(self, fact: str, *, namespace: str = DEFAULT_NAMESPACE) -> list[Fact]:
        """`evolution`, for asyncio."""
        return await self._arun(past.evolution(fact), namespace)

    def around(
        self,
        name: str,
        steps: int = 2,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> Neighbourhood:
        """Return what lies within *steps* of the entity called *name*, breadth-first, by what was so then, else now."""
        window, believed = self._times(as_of, during, believed_at)
        return self._run(past.around(name, steps, limit, window, believed), namespace)

    async def aaround(
        self,
        name: str,
        steps: int = 2,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> Neighbourhood:
        """`around`, for asyncio."""
        window, believed = self._times(as_of, during, believed_at)
        return await self._arun(past.around(name, steps, limit, window, believed), namespace)

    def card(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 10,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> EntityCard | None:
        """Return the entity called *name* at a glance, with *limit* of each: latest facts, neighbours and mentions."""
        window, believed = self._times(as_of, during, believed_at)
        return self._run(cards.card(name, limit, window, believed), namespace)

    async def acard(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 10,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
    ) -> EntityCard | None:
        """`card`, for asyncio."""
        window, believed = self._times(as_of, during, believed_at)
        return await self._arun(cards.card(name, limit, window, believed), namespace)

    def _times(
        self, as_of: Time | None, during: During | None, believed_at: Time | None
    ) -> tuple[Window | None, int | None]:
        time = self.driver.clock()
        return asked_window(as_of, during, time), moment("believed_at", believed_at, time)

    def _moments(self, since: Time, until: Time | None) -> tuple[int, int | None]:
        time = self.driver.clock()
        return moment("since", since, time), None if until is None else moment("until", until, time)
