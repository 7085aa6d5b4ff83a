"""The news of a namespace as server-sent events."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import APIRouter, Header
from starlette.responses import Response, StreamingResponse

from kg_memory.contrib.server.access import Access, Reading
from kg_memory.contrib.server.endpoints import NAMESPACE, describe
from kg_memory.contrib.server.limits import STREAMS, Held
from kg_memory.contrib.server.news import OVERLAP, Seen, Watch
from kg_memory.contrib.server.problems import ProblemError
from kg_memory.contrib.server.service import Service
from kg_memory.errors import KGMemoryError
from kg_memory.falkor.rows import Row, tell_times
from kg_memory.models.graph import Change
from kg_memory.runtime.caches import clear_with_all
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import micros

INTERVAL, PAUSE = 1.0, 0.25
"""Seconds between two looks, and after which a stream sends what was seen."""
PING = 15.0
"""Seconds after which a silent stream says that it is there."""
END = ": still here\n\n"
SLOWEST = 30
"""Looks within which a client must take an event."""
MOST = 1000
"""Unread episodes that are followed from the beginning."""
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


class Listener:
    """The news that an open stream has not sent yet.

    It is `ended` where some were dropped: its client comes back, and catches up by what the graph has then.
    """

    def __init__(self) -> None:
        self.ended = False
        self._news: deque[Event] = deque()
        self._looks = 0

    def put(self, events: Sequence[Event]) -> None:
        """Add the *events* of a look; end after too many looks in which the client took nothing."""
        self._looks = self._looks + 1 if self._news else 0
        if self._looks > SLOWEST:
            self.drop()
        if not self.ended:
            self._news.extend(events)

    def begin(self, events: Sequence[Event]) -> None:
        """Have *events* come before the news."""
        self._news.extendleft(reversed(events))

    def take(self) -> str:
        """Return the next event as it is sent, and keep it no longer; empty if there is none."""
        self._looks = 0
        return self._news.popleft().encode() if self._news else ""

    def drop(self) -> None:
        """Drop the news that are not sent."""
        self.ended = self.ended or bool(self._news)
        self._news.clear()

    def __bool__(self) -> bool:
        return bool(self._news)


class Feed:
    """The news of *namespace*, looked up once for all that listen, as long as anybody does.

    An event is held until the open streams have sent it, and no longer, as it may be forgotten by any process; what
    came before a stream is read from the graph.
    """

    def __init__(self, service: Service, namespace: str) -> None:
        self._service, self._memory, self._namespace = service, service.memory, namespace
        self._listeners: list[Listener] = []
        self._cleared = 0
        self._task: asyncio.Task[None] | None = None
        clear_with_all(self)

    @property
    def is_open(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def clear(self) -> None:
        """Drop all events that are not sent yet, as something was forgotten."""
        self._cleared += 1
        for listener in list(self._listeners):
            listener.drop()

    async def listen(self, last: EventId | None) -> AsyncGenerator[str | None, None]:
        """Yield the events after *last*, or from now on, until the service stops or the listener is ended.

        ``None`` comes before what was seen at a look, and where nothing is seen for `PING` seconds; `END` after it, so
        that nobody on the way holds an event until the next.
        """
        listener = Listener()
        self._listeners.append(listener)
        self._service.listeners[self._namespace] += 1
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._follow(Watch(self._memory.driver.clock())))
            if last is not None:
                await self._catch_up(listener, last[0])
            silent = 0.0
            while not (self._service.stopping or listener.ended):
                silent += PAUSE
                if listener or silent >= PING:
                    silent = 0.0
                    yield None
                    while text := listener.take():
                        yield text
                    yield END
                await asyncio.sleep(PAUSE)
        finally:
            self._listeners.remove(listener)
            self._service.listeners -= Counter([self._namespace])  # none is left where it was the last

    async def _follow(self, watch: Watch) -> None:
        counts: Row = {}
        begun = False
        while self._listeners:
            with suppress(KGMemoryError):  # the database may be back at the next look
                if not begun:  # from then on the unread are followed, too
                    await self._run(watch.remaining(MOST))
                    begun = True
                cleared, since = self._cleared, watch.reached or watch.since
                counts = await self._look(watch, counts)
                if cleared != self._cleared:  # begin again, without what the watch knows
                    watch, begun = Watch(since), False
            await asyncio.sleep(INTERVAL)

    async def _look(self, watch: Watch, counts: Row) -> Row:
        """Give the listeners the news, unless something was forgotten while they were read; return the counts."""
        cleared, since = self._cleared, watch.reached or watch.since
        seen = await self._run(watch.look())
        if cleared != self._cleared:
            return counts
        events = list(_to_events(seen, since, counts))
        for listener in self._listeners:
            listener.put(events)
        return dict(seen.counts)

    async def _catch_up(self, listener: Listener, since: int) -> None:
        """Give *listener* what happened after *since*, when it was away; some of it may have been told before."""
        cleared = -1
        while cleared != self._cleared:  # what was read before may be forgotten by now
            cleared, watch = self._cleared, Watch(max(0, since - CATCH_UP))
            seen = await self._run(watch.look())
        changes = tuple(change for change in seen.changes if micros(change.at, default=0) >= since - OVERLAP)
        news = Seen(seen.counts, seen.episodes, changes)
        listener.begin(list(_to_events(news, since, dict(seen.counts))))

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
    ) -> Response:
        """Follow the namespace live: episodes, facts and what reading costs."""
        place = _parse_id(last)
        for name in [name for name, feed in feeds.items() if not feed.is_open]:
            if name != access.namespace:
                del feeds[name]
        feed = feeds.setdefault(access.namespace, Feed(service, access.namespace))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = StreamingResponse(_stream(service, access, feed, place), 200, headers, "text/event-stream")
        return Held(response, service.shares.hold(STREAMS, access.key.id))


ABOUT = """\
`episode`: it was saved, waits, was read, skipped, or failed, with what that cost. `fact.learned`, `fact.ended`,
`fact.corrected`, `fact.retracted`, `fact.restored`, `fact.doubtful`, `fact.sure`: what is believed now and was before.
`fact.disputed`: it may contradict another one. `counts`: the episodes by their states, and the cost of today. An event
may come twice after an interruption.
"""


async def _stream(service: Service, access: Access, feed: Feed, place: EventId | None) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    async with aclosing(feed.listen(place)) as listening:
        async for text in listening:
            if text is not None:
                yield text
            elif not await service.guard.is_valid(access.key):
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
