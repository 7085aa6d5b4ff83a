"""`in_step`: the next reads of all flows are sent in one round trip."""

import pytest

from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.schema import MEMORY
from kg_memory.runtime.effects import Query, Reads, fetch, in_step, make_once, read_once
from kg_memory.runtime.flow import run


def counting(*names):
    total = 0
    for name in names:
        rows = yield from fetch(name)
        total += len(rows)
    return total


def test_in_step_joins_the_reads_of_all_flows():
    asked = []

    def answer(effect):
        assert isinstance(effect, Reads)
        asked.append([query.cypher for query in effect.queries])
        return [[{}] * len(query.cypher) for query in effect.queries]

    flow = in_step([counting("a", "bb", "ccc"), counting(), counting("dddd"), counting("e", "ff")])
    assert run(flow, answer) == [6, 0, 4, 3]
    assert asked == [["a", "dddd", "e"], ["bb", "ff"], ["ccc"]]
    asked.clear()
    assert run(in_step([in_step([counting("a", "bb"), counting("ccc")]), counting("d")]), answer) == [[3, 3], 1]
    assert asked == [["a", "ccc", "d"], ["bb"]]


def test_in_step_reuses_results_cached_by_version(driver, database, namespace):
    key = graph_key(namespace)
    database.query(key, "CREATE (:N {x: 1})", {}, write=True)
    count = "MATCH (n:N) RETURN count(n) AS n"

    def counted(version):
        made = make_once(version, count + " LIMIT 1", lambda rows: rows[0]["n"])
        flows = [read_once(version, count), fetch(count), made]
        return [each if isinstance(each, int) else each[0]["n"] for each in driver.run(in_step(flows), namespace)]

    first = counted("first")
    database.query(key, "CREATE (:N {x: 2})", {}, write=True)
    assert (first, counted("first"), counted("second")) == ([1, 1, 1], [1, 2, 1], [2, 2, 2])
    database.query(key, "CREATE (:N {x: 3})", {}, write=True)
    assert counted(None) == [3, 3, 3]
    database.delete(key)


def test_in_step_reads_nothing_without_queries():
    assert run(in_step([]), pytest.fail) == []
    assert run(in_step([counting()]), pytest.fail) == [0]


MISSING = ("MATCH (n:None) RETURN n.x AS x", {})


async def test_read_all_returns_no_rows_for_a_missing_graph(database):
    assert database.read_all("kg:none-such", [MISSING, MISSING]) == [[], []]
    assert await database.aread_all("kg:none-such", [MISSING]) == [[]]


async def test_driver_returns_no_rows_after_graph_deletion(driver, database, namespace):
    def flow():
        return (yield Reads((Query("MATCH (m:Meta) RETURN m.id AS id"), Query("RETURN 1 AS one"))))

    assert driver.run(flow(), namespace) == [[], []]
    meta = f"CREATE (:Meta {{id: 'schema', version: {MEMORY.version}, dimension: 64, model: 'hash', words: 0}})"
    database.query(graph_key(namespace), meta, {}, write=True)
    assert driver.run(flow(), namespace) == await driver.arun(flow(), namespace) == [[{"id": "schema"}], [{"one": 1}]]
    database.delete(graph_key(namespace))
    assert await driver.arun(flow(), namespace) == [[], []]
