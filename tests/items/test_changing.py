"""Changes of items: split over several queries, and by concurrent writers."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from langgraph.store.base import PutOp

from kg_memory.adapters import KGStore
from kg_memory.adapters.store import write
from kg_memory.runtime.effects import Embed, Now
from kg_memory.runtime.flow import run


@pytest.mark.parametrize("dimensions", [1, 300])
def test_apply_changes_splits_writes_by_size_of_embeddings(monkeypatch, dimensions):
    monkeypatch.setattr(write, "LARGEST_AT_ONCE", 10_000)
    puts = [PutOp(("a",), str(each), {"x": [f"{each} {word}" for word in "ab"]}, index=["x[*]"]) for each in range(6)]
    written = []

    def answer(effect):
        match effect:
            case Embed(texts):
                return [[1.0] * dimensions for _ in texts]
            case Now():
                return 1
        written.append(len(effect.params["puts"]))
        return []

    run(write.apply_changes([write.to_item_change(put, ["$"]) for put in puts]), answer)
    assert written == ([6] if dimensions == 1 else [1] * 6)


def test_emptying_a_namespace_deletes_no_concurrent_items(memory):
    name = str(uuid4())
    stores = [KGStore(memory, name=name) for _ in range(4)]

    def put_and_delete(number):
        store, key = stores[number], str(number)
        for each in range(25):
            store.put(("a",), key, {"n": each})
            assert store.get(("a",), key).value == {"n": each}
            assert key in {item.key for item in store.search(("a",), query=str(each))}
            assert store.list_namespaces() == [("a",)]
            store.delete(("a",), key)
            assert store.get(("a",), key) is None

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(put_and_delete, range(len(stores))))
    database, key = memory.driver.store.database, stores[0]._driver.key(name)
    left = database.query(key, "MATCH (n) RETURN labels(n)[0] AS label", {}, write=False)
    assert left == [{"label": "Meta"}]
