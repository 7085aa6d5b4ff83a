"""Remembering many episodes at once: read side by side, and added to the graph in their order."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from kg_memory.errors import InputError, KGMemoryError
from kg_memory.ingestion.batching import all_waiting, wait
from kg_memory.ingestion.graph import course
from kg_memory.ingestion.prefetch.ahead import Window, ask_ahead
from kg_memory.ingestion.receive import receive
from kg_memory.ingestion.records import on_state
from kg_memory.ingestion.summarise import refresh
from kg_memory.memory import calls
from kg_memory.memory.calls import Tally
from kg_memory.memory.verbs import Verbs
from kg_memory.models.graph import AddResult
from kg_memory.models.usage import StepUsage
from kg_memory.runtime import telemetry
from kg_memory.runtime.answer_cache import Asking, Kept
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.graph import Course
from kg_memory.runtime.telemetry.episodes import log_failure


class Remembering(Verbs):
    """How a memory reads many episodes of a namespace.

    They are received one by one, so each is durable, and knows what was said before it. What a window of them asks is
    asked ahead, side by side; then each goes through the ingestion graph in its turn, and the summaries follow.
    """

    def _wait(self, given: dict[str, Any], namespace: str) -> AddResult:
        """Save an episode to be read with others of its thread, and read them if they are due."""
        state, due = self._run(wait(_told(given, namespace), self.settings), namespace)
        tally = Tally(None, None)
        self._remember_all(map(calls.again, due), namespace, tally)
        return _of(state, tally)

    def _read_waiting(self, namespace: str) -> None:
        """Read what waits for others: what comes next does not wait, and is not to be read before it."""
        if self.settings.plan == "economy":
            self._remember_all(map(calls.again, self._run(all_waiting(), namespace)), namespace, Tally(None, None))

    async def _await(self, given: dict[str, Any], namespace: str) -> AddResult:
        """`_wait`, for asyncio."""
        state, due = await self._arun(wait(_told(given, namespace), self.settings), namespace)
        tally = Tally(None, None)
        await self._aremember_all(map(calls.again, due), namespace, tally)
        return _of(state, tally)

    async def _aread_waiting(self, namespace: str) -> None:
        """`_read_waiting`, for asyncio."""
        if self.settings.plan == "economy":
            waiting = await self._arun(all_waiting(), namespace)
            await self._aremember_all(map(calls.again, waiting), namespace, Tally(None, None))

    @cached_property
    def _finishing(self) -> Course:
        return course(self.driver, self.settings, received=True)

    def _remember_all(self, episodes: Iterable[dict[str, Any]], namespace: str, tally: Tally) -> None:
        """Remember *episodes*, dated inputs, and count each; those before one that is refused are remembered first."""
        window = Window(self.settings.parallel)
        try:
            for given in episodes:
                try:
                    state = self._run(self._received(given, namespace), namespace)
                except InputError as error:
                    self._read(window.take(), namespace, tally)
                    tally.count(self._run(self._refused(given, error), namespace))
                    continue
                if window.holds(state):
                    self._read(window.take(), namespace, tally)
                    state = self._run(self._received(given, namespace), namespace)
                if window.is_full_for(state):
                    self._read(window.take(), namespace, tally)
                window.put(state)
        except Exception:
            self._read(window.take(), namespace, tally)
            raise
        self._read(window.take(), namespace, tally)

    def _read(self, window: Sequence[dict[str, Any]], namespace: str, tally: Tally) -> None:
        if not window:
            return
        *others, last = self._run(self._ahead(window, namespace), namespace)
        for state in others:
            tally.count(self._finished(state, namespace))
        added = self._finished(last, namespace)
        tally.count(_with(added, self._run(self._summaries(namespace), namespace)))

    def _finished(self, state: dict[str, Any], namespace: str) -> AddResult:
        try:
            return calls.added(self._finishing.invoke(state))
        except KGMemoryError as error:
            return self._run(self._unread(state, error), namespace)

    async def _aremember_all(self, episodes: Iterable[dict[str, Any]], namespace: str, tally: Tally) -> None:
        """`_remember_all`, for asyncio."""
        window = Window(self.settings.parallel)
        try:
            for given in episodes:
                try:
                    state = await self._arun(self._received(given, namespace), namespace)
                except InputError as error:
                    await self._aread(window.take(), namespace, tally)
                    tally.count(await self._arun(self._refused(given, error), namespace))
                    continue
                if window.holds(state):
                    await self._aread(window.take(), namespace, tally)
                    state = await self._arun(self._received(given, namespace), namespace)
                if window.is_full_for(state):
                    await self._aread(window.take(), namespace, tally)
                window.put(state)
        except Exception:
            await self._aread(window.take(), namespace, tally)
            raise
        await self._aread(window.take(), namespace, tally)

    async def _aread(self, window: Sequence[dict[str, Any]], namespace: str, tally: Tally) -> None:
        if not window:
            return
        *others, last = await self._arun(self._ahead(window, namespace), namespace)
        for state in others:
            tally.count(await self._afinished(state, namespace))
        added = await self._afinished(last, namespace)
        tally.count(_with(added, await self._arun(self._summaries(namespace), namespace)))

    async def _afinished(self, state: dict[str, Any], namespace: str) -> AddResult:
        try:
            return calls.added(await self._finishing.ainvoke(state))
        except KGMemoryError as error:
            return await self._arun(self._unread(state, error), namespace)

    def _received(self, given: dict[str, Any], namespace: str) -> Flow[dict[str, Any]]:
        told = _told(given, namespace)
        began = time.perf_counter()
        try:
            update = yield from telemetry.spanned(
                "ingestion", "receive", namespace, on_state(receive)(told, self.settings)
            )
        except KGMemoryError as error:
            log_failure(namespace, told, StepUsage(step="receive", seconds=time.perf_counter() - began), error, None)
            raise
        return {**told, **update}

    def _ahead(self, window: Sequence[dict[str, Any]], namespace: str) -> Flow[list[dict[str, Any]]]:
        asked = ask_ahead(window, self.settings, self.driver.model_name)
        return telemetry.spanned("ingestion", "ahead", namespace, asked)

    def _refused(self, given: dict[str, Any], error: InputError) -> Flow[AddResult]:
        return calls.unread(given, self.settings, self.driver.clock(), error)

    def _unread(self, state: dict[str, Any], error: KGMemoryError) -> Flow[AddResult]:
        began = state["episode"]["created_at"] + (not state["new"])
        return calls.unread({"saved_id": state["episode"]["id"]}, self.settings, began, error)

    def _summaries(self, namespace: str) -> Flow[StepUsage]:
        """Refresh the summaries that are old, and return what that took."""
        asking, began = Asking(namespace, Kept()), time.perf_counter()
        old = refresh(since=0, before=self.driver.clock())
        yield from telemetry.spanned("ingestion", "summarise", namespace, asking.through(old))
        return asking.took("summarise", began)


def _told(given: dict[str, Any], namespace: str) -> dict[str, Any]:
    return {**given, "namespace": namespace}


def _of(state: Mapping[str, Any], tally: Tally) -> AddResult:
    """Return what became of the episode of *state*, if it is among those that were read."""
    saved = calls.saved(state)
    read = (each for each in tally.added if each.episode == saved.episode)
    return next((each.model_copy(update={"new": saved.new}) for each in read), saved)


def _with(added: AddResult, took: StepUsage) -> AddResult:
    """Return *added*, the last one of a window, with what the summaries after it took."""
    return added.model_copy(update={"steps": (*added.steps, took)})
