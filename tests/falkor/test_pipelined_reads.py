"""Several queries at once, over several connections."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kg_memory.errors import DatabaseUnavailable, QueryError
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.servers import CONNECTIONS
from kg_memory.falkor.wire import LANES
from tests.falkor.test_connect import ONE, embedded_in, kill
from tests.scripted import At

SLOW = ("UNWIND range(1, 10000000) AS i RETURN sum(i) AS n", {})


def numbers(count: int) -> list[tuple[str, dict[str, Any]]]:
    return [("RETURN $n AS n", {"n": number}) for number in range(count)]


def expected(count: int) -> list[list[dict[str, int]]]:
    return [[{"n": number}] for number in range(count)]


@pytest.fixture
def key(database: Database, namespace: str) -> Iterator[str]:
    made = graph_key(namespace)
    database.query(made, "CREATE (:N)", {}, write=True)
    yield made
    database.delete(made)


@pytest.mark.parametrize("count", [0, 1, 2, LANES, LANES + 1, 3 * LANES - 1])
async def test_read_all_returns_answers_in_order_of_queries(database, key, count):
    assert database.read_all(key, numbers(count)) == expected(count)
    assert await database.aread_all(key, numbers(count)) == expected(count)


def clients(database: Database) -> set[str]:
    return {item["id"] for item in database.client().client_list()}


async def test_read_all_uses_several_connections(server, key):
    fresh = Database(At(server))
    before = clients(fresh)
    fresh.read_all(key, numbers(2 * LANES))
    assert len(clients(fresh) - before) == LANES - 1
    await fresh.aread_all(key, numbers(2 * LANES))
    assert len(clients(fresh) - before) >= 2 * LANES - 1
    await fresh.aclose()


async def test_read_all_error_leaves_connections_usable(database, key):
    requests = [*numbers(3), ("RETURN nonsense(", {}), *numbers(5)]
    for _ in range(2 * CONNECTIONS):
        with pytest.raises(QueryError, match="refused"):
            database.read_all(key, requests)
        with pytest.raises(QueryError, match="refused"):
            await database.aread_all(key, requests)
    assert database.read_all(key, numbers(7)) == expected(7)
    assert await database.aread_all(key, numbers(7)) == expected(7)


async def test_parallel_read_all_calls_exceed_connections(database, key):
    count = 4 * CONNECTIONS
    with ThreadPoolExecutor(count) as pool:
        result = list(pool.map(lambda _: database.read_all(key, numbers(9)), range(5 * count)))
    assert result == [expected(9)] * (5 * count)
    assert await asyncio.gather(*(database.aread_all(key, numbers(9)) for _ in range(5 * count))) == result


async def test_cancelled_read_all_leaves_no_stale_answer(database, key):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(database.aread_all(key, [*numbers(5), SLOW]), 0.2)
    for _ in range(2 * CONNECTIONS):
        assert await database.aread_all(key, numbers(9)) == expected(9)


@pytest.mark.parametrize("is_async", [False, True])
def test_read_all_raises_if_server_is_killed_and_recovers(tmp_path, is_async):
    database = Database(embedded_in(tmp_path / "db"))
    key = ONE[0]
    database.query(*ONE, {}, write=True)
    requests = [*numbers(5), SLOW]

    def read() -> Any:
        return asyncio.run(database.aread_all(key, requests)) if is_async else database.read_all(key, requests)

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        while len(clients(database)) <= LANES and not reading.done():
            pass
        kill(database)
        with pytest.raises(DatabaseUnavailable):
            reading.result(timeout=300)
    assert database.read_all(key, numbers(5)) == expected(5)
    database.close()
