"""The news of a namespace as server-sent events."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import APIRouter, Header
from starlette.responses import StreamingResponse

from kg_memory.errors import KGMemoryError
from kg_memory.falkor.rows import Row, tell_times
from kg_memory.memory.changes import OVERLAP, Seen, Watch
from kg_memory.models.graph import Change
from kg_memory.runtime.flow import Flow
from kg_memory.server.access import Access, Reading
from kg_memory.server.endpoints import NAMESPACE, describe
from kg_memory.server.problems import ProblemError
from kg_memory.server.service import Service
from kg_memory.temporal.interval import micros

INTERVAL, PAUSE = 1.0, 0.25
"""Seconds between two looks, and after which a stream sends what was seen."""
PING = 15.0
"""Seconds after which a silent stream says that it is there."""
KEPT = 1000
"""The events of a namespace that are kept for those who come back."""
CATCH_UP = 600_000_000
"""Microseconds: an episode that was saved so long before an interruption may have been read within it."""
ID = re.compile(r"(\d{1,18})-(\d{1,9})")
EventId = tuple[int, int]
"""The id of an event: when it was seen (microseconds), and its number then."""
T = TypeVar("T")
COST = ("calls", "input_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Event:
    """An event with its name and content."""

    id: EventId
    name: str
    data: Row

    def encode(self) -> str:
        """Return the event as it is sent."""
        time, number = self.id
        return f"id: {time}-{number}\nevent: {self.name}\ndata: {json.dumps(self.data)}\n\n"


class Feed:
    """The news of *namespace*, looked up once for all that listen, as long as anybody does."""

    def __init__(self, service: Service, namespace: str) -> None:
        self._service, self._memory, self._namespace = service, service.memory, namespace
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._began = (0, 0)
        """From where on no event is missing."""
        self._task: asyncio.Task[None] | None = None

    @property
    def listeners(self) -> int:
        """The number of streams that are open."""
        return self._service.listeners[self._namespace]

    async def listen(self, last: EventId | None) -> AsyncGenerator[Event | None, None]:
        """Yield the events after *last*, or from now on, until the service stops.

        ``None`` comes before what was seen at a look, and where nothing is seen for `PING` seconds.
        """
        self._service.listeners[self._namespace] += 1
        if self._task is None or self._task.done():
            self._began = (self._memory.driver.clock(), 0)
            self._events.clear()
            self._task = asyncio.create_task(self._follow(Watch(self._began[0])))
        try:
            place = last or (self._events[-1].id if self._events else self._began)
            if place < self._began:
                for event in await self._catch_up(place[0]):
                    yield event
                place = self._began
            silent = 0.0
            while not self._service.stopping:
                news = [event for event in self._events if event.id > place]
                silent += PAUSE
                if news or silent >= PING:
                    silent = 0.0
                    yield None
                for event in news:
                    place = event.id
                    yield event
                await asyncio.sleep(PAUSE)
        finally:
            self._service.listeners -= Counter([self._namespace])  # none is left where it was the last

    async def _follow(self, watch: Watch) -> None:
        counts: Row = {}
        begun = False
        while self.listeners:
            with suppress(KGMemoryError):  # the database may be back at the next look
                if not begun:  # from then on the unread are followed, too
                    await self._run(watch.remaining(KEPT))
                    begun = True
                seen = await self._run(watch.look())
                self._keep(_to_events(seen, watch.reached or watch.since, counts))
                counts = dict(seen.counts)
            await asyncio.sleep(INTERVAL)

    def _keep(self, events: Iterator[Event]) -> None:
        for event in events:
            if len(self._events) == KEPT:
                self._began = self._events[0].id
            self._events.append(event)

    async def _catch_up(self, since: int) -> list[Event]:
        """Return what happened after *since*, when nobody looked; some of it may have been told before."""
        watch = Watch(max(0, since - CATCH_UP))
        seen = await self._run(watch.look())
        changes = tuple(change for change in seen.changes if micros(change.at, default=0) >= since - OVERLAP)
        news = Seen(seen.counts, seen.episodes, changes)
        return list(_to_events(news, since, dict(seen.counts)))

    async def _run(self, flow: Flow[T]) -> T:
        return await self._memory.driver.arun(flow, self._namespace)


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the route to *router*."""
    feeds: dict[str, Feed] = {}

    stream = {"description": ABOUT, "content": {"text/event-stream": {}}}

    @router.get(NAMESPACE + "/events", response_class=StreamingResponse, **describe("events", {200: stream}))
    async def events(
        access: Reading,
        last: Annotated[str | None, Header(alias="Last-Event-ID", description="Go on after this event.")] = None,
    ) -> StreamingResponse:
        """Follow the namespace live: episodes, facts and what reading costs."""
        place = _parse_id(last)
        if service.listeners.total() >= service.options.max_streams:
            raise ProblemError(503, "too many streams are open; try again later", headers={"Retry-After": "5"})
        for name in [name for name, feed in feeds.items() if not feed.listeners]:
            if name != access.namespace:
                del feeds[name]
        feed = feeds.setdefault(access.namespace, Feed(service, access.namespace))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_stream(service, access, feed, place), 200, headers, "text/event-stream")


ABOUT = """\
`episode`: it was saved, waits, was read, skipped, or failed, with what that cost. `fact.learned`, `fact.ended`,
`fact.corrected`, `fact.retracted`, `fact.restored`, `fact.doubtful`, `fact.sure`: what is believed now and was before.
`fact.disputed`: it may contradict another one. `counts`: the episodes by their states, and the cost of today. An event
may come twice after an interruption.
"""


async def _stream(service: Service, access: Access, feed: Feed, place: EventId | None) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    async with aclosing(feed.listen(place)) as listening:
        async for event in listening:
            if event is not None:
                yield event.encode()
            elif await service.guard.is_valid(access.key):
                yield ": still here\n\n"
            else:
                return


def _to_events(seen: Seen, time: int, counts: Row) -> Iterator[Event]:
    content: list[tuple[str, Row]] = [("episode", _describe_episode(episode)) for episode in seen.episodes]
    for change in seen.changes:
        content += _describe_change(change)
    if seen.counts != counts:
        content.append(("counts", dict(seen.counts)))
    return (Event((time, number), name, data) for number, (name, data) in enumerate(content, 1))


def _describe_episode(episode: Row) -> Row:
    return {**tell_times(episode), "took": dict(zip(COST, episode["took"] or (), strict=False))}


def _describe_change(change: Change) -> Iterator[tuple[str, Row]]:
    data = change.model_dump(mode="json", exclude_none=True)
    yield f"fact.{change.kind}", data
    if change.kind == "learned" and change.after and change.after.disputed_by:
        yield "fact.disputed", data


def _parse_id(text: str | None) -> EventId | None:
    if text is None:
        return None
    form = ID.fullmatch(text)
    if form is None:
        raise ProblemError(422, "Last-Event-ID must be the id of an event; leave it out to begin now")
    return int(form[1]), int(form[2])
