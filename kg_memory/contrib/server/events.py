"""Server-sent events: a stream of the changes in one namespace."""

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
from kg_memory.contrib.server.limits import STREAMS, LimitedResponse
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
"""Seconds between two database reads of a feed, and between two checks of a stream for new events."""
PING = 15.0
"""Seconds after which a stream without events sends a comment, to keep the connection open."""
END = ": still here\n\n"
SLOWEST = 30
"""Database reads during which a client may take no event before its stream is ended."""
MOST = 1000
"""Unread episodes whose status is watched from the start."""
CATCH_UP = 600_000_000
"""Microseconds: after an interruption, episodes saved up to this long before it are checked again for a new status."""
ID = re.compile(r"(\d{1,18})-(\d{1,9})")
EventId = tuple[int, int]
"""The id of an event: when the database was read (microseconds since the epoch), and the number within that read."""
T = TypeVar("T")
COST = ("calls", "input_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event: its `id`, its `name`, such as "fact.ended", and its JSON `data`."""

    id: EventId
    name: str
    data: Row

    def encode(self) -> str:
        """Return the event in the text format of server-sent events."""
        time, number = self.id
        return f"id: {time}-{number}\nevent: {self.name}\ndata: {json.dumps(self.data)}\n\n"


class Listener:
    """The queue of events to send over one open event stream."""

    def __init__(self) -> None:
        self.ended = False
        self._news: deque[Event] = deque()
        self._looks = 0

    def put(self, events: Sequence[Event]) -> None:
        """Append *events*, all found by one read of the database, to the queue.

        If the client reads too slowly (`SLOWEST`), the queue is cleared, and the stream ends.
        """
        self._looks = self._looks + 1 if self._news else 0
        if self._looks > SLOWEST:
            self.drop()
        if not self.ended:
            self._news.extend(events)

    def begin(self, events: Sequence[Event]) -> None:
        """Insert *events*, which a reconnected client has missed, at the front of the queue."""
        self._news.extendleft(reversed(events))

    def take(self) -> str:
        """Remove the first event from the queue and return it as text; return an empty text if the queue is empty."""
        self._looks = 0
        return self._news.popleft().encode() if self._news else ""

    def drop(self) -> None:
        """Remove all events from the queue. If there were any, mark the stream as ended; the client then reconnects."""
        self.ended = self.ended or bool(self._news)
        self._news.clear()

    def __bool__(self) -> bool:
        return bool(self._news)


class Feed:
    """Reads the changes in *namespace* once a second, and queues them as events for all open event streams."""

    def __init__(self, service: Service, namespace: str) -> None:
        self._service, self._memory, self._namespace = service, service.memory, namespace
        # Sent events are not stored, because their data may be deleted at any time.
        self._listeners: list[Listener] = []
        self._cleared = 0
        self._task: asyncio.Task[None] | None = None
        clear_with_all(self)

    @property
    def is_open(self) -> bool:
        """True if at least one event stream of the namespace is open."""
        return bool(self._listeners)

    def clear(self) -> None:
        """Remove the queued events of all streams. Called after data was deleted, which these events may contain."""
        self._cleared += 1
        for listener in list(self._listeners):
            listener.drop()

    async def listen(self, last: EventId | None) -> AsyncGenerator[str | None, None]:
        """Yield the text of each event after the id *last* (None: only new events) until the stream ends.

        None is yielded before each batch, at least every `PING` seconds, so that the caller can check the key.
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
            while not (self._service.stopping or listener.ended or self._task.done()):
                silent += PAUSE
                if listener or silent >= PING:
                    silent = 0.0
                    yield None
                    while text := listener.take():
                        yield text
                    yield END  # so that proxies send the last event without delay
                await asyncio.sleep(PAUSE)
        finally:
            self._listeners.remove(listener)
            self._service.listeners -= Counter([self._namespace])  # removes the namespace at zero

    async def _follow(self, watch: Watch) -> None:
        """While a stream is open, read the changes every `INTERVAL` seconds and queue them as events."""
        counts: Row = {}
        begun = False
        while self._listeners:
            with suppress(KGMemoryError):  # try again: the database may be back then
                if not begun:  # also watch the episodes that are unread now
                    await self._run(watch.list_unread(MOST))
                    begun = True
                cleared, since = self._cleared, watch.reached or watch.since
                seen = await self._run(watch.look())
                if cleared != self._cleared:  # something was forgotten: the watch may still remember it
                    watch, begun = Watch(since), False
                else:
                    events = list(_to_events(seen, since, counts))
                    for listener in self._listeners:
                        listener.put(events)
                    counts = dict(seen.counts)
            await asyncio.sleep(INTERVAL)

    async def _catch_up(self, listener: Listener, since: int) -> None:
        """Queue the events since *since* (microseconds since the epoch) for a client that has reconnected.

        The client may receive some events a second time.
        """
        cleared = -1
        while cleared != self._cleared:  # read again if something was forgotten meanwhile
            cleared, watch = self._cleared, Watch(max(0, since - CATCH_UP))
            seen = await self._run(watch.look())
        changes = tuple(change for change in seen.changes if micros(change.at, default=0) >= since - OVERLAP)
        listener.begin(list(_to_events(Seen(seen.counts, seen.episodes, changes), since, dict(seen.counts))))

    async def _run(self, flow: Flow[T]) -> T:
        return await self._memory.driver.arun(flow, self._namespace)


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the route ``GET /v1/namespaces/{namespace}/events``, a stream of server-sent events, to *router*."""
    feeds: dict[str, Feed] = {}

    stream = {"description": ABOUT, "content": {"text/event-stream": {}}}

    @router.get(NAMESPACE + "/events", response_class=StreamingResponse, **describe("events", {200: stream}))
    async def events(
        access: Reading,
        last: Annotated[str | None, Header(alias="Last-Event-ID", description="Continue after this event.")] = None,
    ) -> Response:
        """Stream changes of a namespace as server-sent events: episodes, facts, and the cost of reading."""
        place = _parse_id(last)
        for name in [name for name, feed in feeds.items() if not feed.is_open]:
            if name != access.namespace:
                del feeds[name]
        feed = feeds.setdefault(access.namespace, Feed(service, access.namespace))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = StreamingResponse(_stream(service, access, feed, place), 200, headers, "text/event-stream")
        return LimitedResponse(response, service.shares.hold(STREAMS, access.key.id))


ABOUT = """\
`episode`: the new status of an episode (saved, waiting, read, skipped or failed), with the cost of reading.
`fact.learned`, `fact.ended`, `fact.corrected`, `fact.retracted`, `fact.restored`, `fact.doubtful`, `fact.sure`: a
change, with the fact before and after it. `fact.disputed`: a new fact may contradict another. `counts`: the number of
episodes by status, and today's cost. After an interruption, some events may come twice.
"""


async def _stream(service: Service, access: Access, feed: Feed, place: EventId | None) -> AsyncIterator[str]:
    """Yield the texts of events until the server stops or the API key in *access* is no longer valid."""
    yield "retry: 2000\n\n"
    async with aclosing(feed.listen(place)) as listening:
        async for text in listening:
            if text is not None:
                yield text
            elif not await service.guard.is_valid(access.key):
                return


def _to_events(seen: Seen, time: int, counts: Row) -> Iterator[Event]:
    """Convert the changes *seen* by one database read to events with the ids ``(time, 1)``, ``(time, 2)`` and so on."""
    content: list[tuple[str, Row]] = [("episode", _describe_episode(episode)) for episode in seen.episodes]
    content += (event for change in seen.changes for event in _describe_change(change))
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
    """Parse the event id in a ``Last-Event-ID`` header: ``"1715679000000000-3" -> (1715679000000000, 3)``.

    Raises `ProblemError` 422 for an invalid text.
    """
    if text is None:
        return None
    form = ID.fullmatch(text)
    if form is None:
        raise ProblemError(422, "Last-Event-ID must be the id of a received event; leave it out to start from now")
    return int(form[1]), int(form[2])
