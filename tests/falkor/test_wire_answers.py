"""Answers read cell by cell, as the client itself reads them."""

from typing import Any

import pytest
import redis
from falkordb import FalkorDB

from kg_memory.falkor.connect import Database
from kg_memory.falkor.wire import decode_rows

HARD = "'\"\\\n\u2028 数据 🎉 {}[]"
KEY = "kg:replies"


@pytest.fixture
def graph(database: Database) -> Any:
    """A graph of its own."""
    made = FalkorDB(connection_pool=database.client().connection_pool).select_graph(KEY)
    made.query("CREATE (:Thing {name: 'a'})")
    yield made
    made.delete()


@pytest.mark.parametrize(
    "returned",
    [
        "null AS a, true AS b, false AS c, 1 AS d, -9223372036854775807 AS e",
        "1.5 AS a, -0.0 AS b, 1e300 AS c, 0.1 AS d, '' AS e, 'true' AS f",
        "[] AS a, [1, 'x', null, [2.5, true]] AS b, {} AS c, {k: {l: [1, {m: null}]}} AS d",
        "$hard AS a, [$hard] AS b, {k: $hard} AS c, t.name AS `a name`, vecf32([1.5, -2]) AS v",
    ],
)
def test_decoded_values_equal_those_of_the_client(database, graph, returned):
    query, params = f"MATCH (t:Thing) RETURN {returned}", {"hard": HARD}
    expected = graph.ro_query(query, params)
    names = [name for _, name in expected.header]
    [result] = database.read_all(KEY, [(query, params)])
    assert result == [dict(zip(names, expected.result_set[0], strict=True))]
    assert [type(value) for value in result[0].values()][:1] == [type(expected.result_set[0][0])]


def test_decode_rows_of_answer_without_columns_is_empty():
    assert decode_rows([["Cached execution: 0"]]) == []
    assert decode_rows([[[1, "a"]], [], ["Cached execution: 0"]]) == []


@pytest.mark.parametrize("place", [0, 2])
def test_decode_rows_raises_error_of_query(place):
    answer: list[Any] = [[[1, "a"]], [[[3, 1]]], ["Cached execution: 0"]]
    answer[place] = redis.ResponseError("division by zero")
    with pytest.raises(redis.ResponseError, match="division"):
        decode_rows(answer)


def test_decode_rows_refuses_nodes_with_advice():
    with pytest.raises(TypeError, match="return properties, not nodes"):
        decode_rows([[[1, "n"]], [[[8, [0, [], []]]]], []])
