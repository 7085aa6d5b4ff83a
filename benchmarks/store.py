"""Compare LangGraph stores: latency of their operations, sync and async, and operations per second.

``python -m benchmarks.store`` (from the root of the repository) measures `KGStore`, `InMemoryStore`, `SqliteStore` and
`PostgresStore`, as far as they are installed, with the same items, one after another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from benchmarks import postgres
from kg_memory.adapters import KGStore
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.memory.memory import GraphMemory
from kg_memory.settings import Settings
from tests.scripted import Scripted

DIMS = 64
BATCH = 100
USER_ITEMS = 100
"""Items in one namespace."""
Index = dict[str, Any]
Reopen = Callable[[], AbstractAsyncContextManager[BaseStore]]
Opening = Callable[[Path, Index | None], AbstractContextManager[tuple[BaseStore, Reopen]]]
"""A function that opens a store in a folder; yields the store, and a way to open it for async calls."""
Call = tuple[str, int, Callable[[random.Random], list[Op]]]
"""A call to measure: its name, its number in a round, and a function that returns its operations."""
Row = dict[str, float]


class Hashed(Embeddings):
    """Embeddings by a hash of the text."""

    def embed_query(self, text: str) -> list[float]:
        source = random.Random(text)
        vector = [source.gauss(0, 1) for _ in range(DIMS)]
        length = math.hypot(*vector)
        return [number / length for number in vector]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


@contextmanager
def kg(folder: Path, index: Index | None) -> Iterator[tuple[BaseStore, Reopen]]:
    """Open a `KGStore` on an embedded server, with each write synced to disk; yield it and a way to open it async."""
    with (
        embedded.join(folder, binaries.download_missing(), idle_seconds=0) as server,
        GraphMemory(Settings(url=server.url), model=Scripted(), embeddings=Hashed()) as memory,
    ):
        store = KGStore(memory, index=index or False)
        yield store, lambda: nullcontext(store)
    while embedded.is_running(folder):  # it saves, and ends by itself
        time.sleep(0.1)


@contextmanager
def in_memory(_: Path, index: Index | None) -> Iterator[tuple[BaseStore, Reopen]]:
    """Open an `InMemoryStore`, which is not persistent."""
    store = InMemoryStore(index=index)  # type: ignore[arg-type]
    yield store, lambda: nullcontext(store)


@contextmanager
def sqlite(folder: Path, index: Index | None) -> Iterator[tuple[BaseStore, Reopen]]:
    """Open a `SqliteStore` on a file with SQLite's defaults: a rollback journal, fully synchronised."""
    path = str(folder / "store.db")

    @asynccontextmanager
    async def reopen() -> AsyncIterator[BaseStore]:
        async with AsyncSqliteStore.from_conn_string(path, index=index) as store:  # type: ignore[arg-type]
            await store.setup()
            yield store

    with SqliteStore.from_conn_string(path, index=index) as store:  # type: ignore[arg-type]
        store.setup()
        yield store, reopen


@contextmanager
def postgresql(_: Path, index: Index | None) -> Iterator[tuple[BaseStore, Reopen]]:
    """Open a `PostgresStore` on a Unix socket with the defaults: fsync and synchronous commits."""
    with postgres.run_server() as server:
        url = postgres.create_database(server)

        @asynccontextmanager
        async def reopen() -> AsyncIterator[BaseStore]:
            pool = {"min_size": 8, "max_size": 8}
            async with AsyncPostgresStore.from_conn_string(url, pool_config=pool, index=index) as store:  # type: ignore[arg-type]
                yield store

        with PostgresStore.from_conn_string(url, index=index) as store:  # type: ignore[arg-type]
            store.setup()
            yield store, reopen


STORES: dict[str, Opening] = {
    "KGStore": kg,
    "InMemoryStore": in_memory,
    "SqliteStore": sqlite,
    "PostgresStore": postgresql,
}


def place(number: int) -> tuple[str, ...]:
    """Return the store namespace of the item with this number: ("users", "user 3")."""
    return ("users", f"user {number // USER_ITEMS}")


def put(number: int) -> PutOp:
    """Return the store operation that puts the item with this number."""
    value = {"text": f"memory number {number}", "kind": f"kind {number % 10}", "number": number}
    return PutOp(place(number), str(number), value)


def calls(items: int, repeats: int) -> list[Call]:
    """Return the calls to measure on a store with *items* items."""

    def any_one(source: random.Random) -> int:
        return source.randrange(items)

    def get(source: random.Random) -> GetOp:
        number = any_one(source)
        return GetOp(place(number), str(number))

    few = max(3, repeats // 10)
    return [
        ("get", repeats, lambda source: [get(source)]),
        (f"get, batches of {BATCH}", few, lambda source: [get(source) for _ in range(BATCH)]),
        ("put", repeats, lambda source: [put(any_one(source))]),
        (f"put, batches of {BATCH}", few, lambda source: [put(n) for n in source.sample(range(items), BATCH)]),
        (
            "filter in a namespace",
            repeats,
            lambda s: [SearchOp(place(any_one(s)), {"kind": f"kind {any_one(s) % 10}"})],
        ),
        ("filter over all items", few, lambda s: [SearchOp(("users",), {"number": any_one(s)})]),
        ("list namespaces", few, lambda _: []),
    ]


def vector_calls(items: int, repeats: int) -> list[Call]:
    """Return the calls to measure on a store with *items* items and vectors."""

    def query(source: random.Random) -> str:
        return f"question number {source.randrange(items)}"

    few = max(3, repeats // 10)
    return [
        ("put, with its vector", repeats, lambda source: [put(source.randrange(items))]),
        ("query in a namespace", repeats, lambda s: [SearchOp(place(s.randrange(items)), query=query(s))]),
        ("query over all items", few, lambda s: [SearchOp(("users",), query=query(s))]),
    ]


def fill(store: BaseStore, items: int) -> float:
    """Put all items in batches, and return the items per second."""
    begin = time.perf_counter()
    for first in range(0, items, BATCH):
        store.batch([put(number) for number in range(first, min(items, first + BATCH))])
    return items / (time.perf_counter() - begin)


def sync_call(store: BaseStore, ops: list[Op]) -> None:
    """Run *ops* in one batch; list namespaces if there are none."""
    if ops:
        store.batch(ops)
    else:
        store.list_namespaces(prefix=("users",))


async def async_call(store: BaseStore, ops: list[Op]) -> None:
    """Run *ops* like `sync_call`, by the async methods."""
    if ops:
        await store.abatch(ops)
    else:
        await store.alist_namespaces(prefix=("users",))


def round_of(call: Call, seed: int) -> list[list[Op]]:
    """Return the operations of each call in one round, drawn with *seed*."""
    _, repeats, ops = call
    source = random.Random(seed)
    return [ops(source) for _ in range(repeats)]


def timed_sync(store: BaseStore, call: Call, seed: int) -> list[float]:
    """Return the seconds of each call in a round."""
    taken = []
    for ops in round_of(call, seed):
        begin = time.perf_counter()
        sync_call(store, ops)
        taken.append(time.perf_counter() - begin)
    return taken


async def timed_async(store: BaseStore, call: Call, seed: int) -> list[float]:
    """Return the seconds of each call in a round, run one after another."""
    taken = []
    for ops in round_of(call, seed):
        begin = time.perf_counter()
        await async_call(store, ops)
        taken.append(time.perf_counter() - begin)
    return taken


async def timed_gather(store: BaseStore, call: Call, seed: int) -> list[float]:
    """Return the seconds of each group of 100 concurrent calls."""
    taken = []
    work = round_of(call, seed)
    for first in range(0, len(work), BATCH):
        begin = time.perf_counter()
        await asyncio.gather(*(async_call(store, ops) for ops in work[first : first + BATCH]))
        taken.append(time.perf_counter() - begin)
    return taken


def summary(rounds: list[list[float]]) -> Row:
    """Return medians over *rounds*: of the median and 95th percentile in milliseconds, and of calls per second."""

    def median(figure: Callable[[list[float]], float]) -> float:
        return statistics.median(figure(each) for each in rounds)

    return {
        "p50": 1000 * median(statistics.median),
        "p95": 1000 * median(lambda each: sorted(each)[min(len(each) - 1, round(0.95 * len(each)))]),
        "per_second": median(lambda each: len(each) / sum(each)),
    }


def measure(opening: Opening, items: int, repeats: int, rounds: int, *, vectors: bool) -> dict[str, Row]:
    """Return the figures of one store: by sync calls, by async calls, and by 100 async calls at once."""
    index = {"dims": DIMS, "embed": Hashed(), "fields": ["text"]} if vectors else None
    found: dict[str, Row] = {}
    work = (vector_calls if vectors else calls)(items, repeats)
    with tempfile.TemporaryDirectory(prefix="store-") as folder, opening(Path(folder), index) as (store, reopen):
        found["fill"] = {"per_second": fill(store, items)}
        for call in work:
            found[f"{call[0]} | sync"] = summary([timed_sync(store, call, seed) for seed in range(rounds)])

        async def by_async() -> None:
            async with reopen() as opened:
                for call in work:
                    taken = [await timed_async(opened, call, rounds + seed) for seed in range(rounds)]
                    found[f"{call[0]} | async"] = summary(taken)
                for call in (each for each in work if each[0] in {"get", "put"}):
                    together = (call[0], max(BATCH, repeats), call[2])
                    taken = [await timed_gather(opened, together, 2 * rounds + seed) for seed in range(rounds)]
                    found[f"{call[0]}, {BATCH} at once | async"] = summary(taken)

        run(by_async())
    return found


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run *work* in an event loop of its own."""
    with asyncio.Runner() as runner:
        runner.run(work)


def attempt(opening: Opening, *sizes: int, vectors: bool) -> dict[str, Row] | str:
    """Return the figures of one store, or a text that says why it cannot be measured."""
    try:
        return measure(opening, *sizes, vectors=vectors)
    except pytest.skip.Exception as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a store lacks is told in the table
        return f"{type(error).__name__}: {error}".splitlines()[0]


def table(title: str, stores: dict[str, dict[str, Row] | str]) -> str:
    """Return a Markdown table: operations by store."""
    lines = [f"{title}, milliseconds (median / 95th percentile):", "", f"| | {' | '.join(stores)} |"]
    lines.append("| --- |" + " --- |" * len(stores))
    names = dict.fromkeys(name for figures in stores.values() if not isinstance(figures, str) for name in figures)
    for name in names:
        cells = ("-" if isinstance(figures, str) else cell(figures[name]) for figures in stores.values())
        lines.append(f"| {name.replace(' | ', ', ')} | {' | '.join(cells)} |")
    lines += [f"\n{store}: {figures}" for store, figures in stores.items() if isinstance(figures, str)]
    return "\n".join(lines) + "\n"


def cell(row: Row) -> str:
    """Return the table cell for one operation of one store."""
    if "p50" not in row:
        return f"{row['per_second']:,.0f} items a second"
    return f"{row['p50']:.2f} / {row['p95']:.2f}"


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[1000, 100_000], help="sizes of the stores")
    parser.add_argument("--vectors", type=int, nargs="*", default=[1000, 10_000], help="sizes of those with vectors")
    parser.add_argument("--stores", nargs="+", choices=list(STORES), default=list(STORES))
    parser.add_argument("--repeats", type=int, default=300, help="calls of a round; a tenth of that for slow ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="1,000 items and few calls")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    asked = parser.parse_args()
    if asked.quick:
        asked.items, asked.vectors, asked.repeats = [1000], [1000], 50
    kept: dict[str, Any] = {}
    for vectors, sizes in ((False, asked.items), (True, asked.vectors)):
        for items in sizes:
            title = f"{items:,} items" + (f" with a vector of {DIMS} numbers each" if vectors else "")
            sizes_of = (items, asked.repeats, asked.rounds)
            kept[title] = {name: attempt(STORES[name], *sizes_of, vectors=vectors) for name in asked.stores}
            print(table(title, kept[title]), flush=True)
    if asked.out:
        asked.out.write_text(json.dumps(kept, indent=2))


if __name__ == "__main__":
    main()
