"""Workers: one at a time reads the saved episodes of a namespace, in order, also after a kill."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.leases import Leases, lease_key
from kg_memory.contrib.server.worker import KEPT_SECONDS, STREAM, Outbox, Worker
from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting.erase import find_cached_functions
from kg_memory.runtime.caches import clear_caches
from tests import waiting
from tests.cli_home import COMMAND, home_of_the_module  # noqa: F401 - a fixture

NAMESPACES = [f"tenant{number}" for number in range(3)]
CITIES = "Oslo Bergen Paris Rome Madrid Berlin Vienna Prague".split()
SAID = len(CITIES)


def messages(count: int) -> list[dict[str, str]]:
    """Return messages that each end the fact of the one before."""
    return [
        {"content": f"I moved to {city}.", "speaker": "Ann", "at": f"2024-01-{day:02}", "thread": "t"}
        for day, city in enumerate(CITIES[:count], 1)
    ]


async def until(true: Callable[[], object]) -> None:
    await asyncio.to_thread(waiting.until, true)


@pytest.fixture
def memory(home) -> Iterator[GraphMemory]:
    settings = Settings(data_dir=home, idle_seconds=0, model="offline")
    with GraphMemory.open(settings=settings, embeddings="offline") as opened:
        yield opened
        opened.driver.store.database.command("DEL", STREAM)
        for namespace in opened.data.namespaces():
            opened.driver.store.database.delete(graph_key(namespace))


@contextmanager
def working() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*COMMAND, "worker"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "Reading saved episodes" in process.stderr.readline()
            yield process
        finally:
            process.kill()


def done(memory: GraphMemory, namespace: str) -> int:
    return len(memory.episodes.list(namespace=namespace, status="done", limit=1000))


def periods(memory: GraphMemory, namespace: str) -> list[tuple[object, ...]]:
    facts = memory.facts.list(namespace=namespace, limit=100)
    return [(fact.sentence, fact.valid_at, fact.invalid_at, len(fact.sources)) for fact in facts]


async def test_killed_worker_loses_and_repeats_nothing(memory):
    outbox = Outbox(memory.driver.store.database)
    with working() as first, working() as second:
        for namespace in NAMESPACES:
            memory.episodes.save(messages(SAID), namespace=namespace)
            outbox.wake(namespace)
        await outbox.stop(60)
        await until(lambda: any(done(memory, namespace) for namespace in NAMESPACES))
        first.kill()
        await until(lambda: all(done(memory, namespace) == SAID for namespace in NAMESPACES))
        second.send_signal(signal.SIGTERM)
        assert second.wait(120) == 0
    assert {result.status for result in memory.add_many(messages(SAID), namespace="alone")} == {"done"}
    assert len(expected := periods(memory, "alone")) == SAID
    for namespace in NAMESPACES:
        assert periods(memory, namespace) == expected
        assert len(memory.episodes.list(namespace=namespace, limit=100)) == SAID


async def test_lease_allows_one_reader_until_it_expires(memory):
    database = memory.driver.store.database
    mine, other = Leases(database, 0.3), Leases(database, 0.3)
    async with mine.hold("ann") as lease:
        await asyncio.sleep(0.5)  # long enough for a renewal
        async with other.hold("ann") as refused, other.hold("bob") as free:
            assert refused is None
            assert free is not None
        assert not lease.lost
        database.command("DEL", lease_key("ann"))  # as if it expired while the process was suspended
        async with other.hold("ann") as taken:
            assert taken is not None
            await until(lambda: lease.lost)
    async with other.hold("ann") as again:
        assert again is not None, "the first holder does not release a lease that another took over"
    database.command("SET", lease_key("ann"), mine._holder, "PX", 5000)  # as if its release had failed
    async with other.hold("ann") as refused, mine.hold("ann") as own:
        assert refused is None
        assert own is not None


async def test_worker_hint_survives_lease_of_killed_worker(memory):
    database = memory.driver.store.database
    worker = Worker(memory, look_seconds=3600, lease_seconds=0.5)
    running = asyncio.create_task(worker.run())
    await until(lambda: worker._reader._start and worker._reader._start.done())
    database.command("SET", lease_key("ann"), "killed", "PX", 1500)
    memory.episodes.save(messages(2), namespace="ann")
    outbox = Outbox(database)
    outbox.wake("ann")
    await outbox.stop(60)
    await asyncio.sleep(0.5)
    assert done(memory, "ann") == 0
    await until(lambda: done(memory, "ann") == 2)
    assert 0 < database.command("TTL", STREAM) <= KEPT_SECONDS, "the names of namespaces expire"
    assert any(cached.cache_info().currsize for cached in find_cached_functions())
    outbox.start()
    await asyncio.to_thread(clear_caches)  # as whenever this process deletes data; the worker clears the functions
    await until(lambda: not any(cached.cache_info().currsize for cached in find_cached_functions()))
    worker.stop()
    await running
