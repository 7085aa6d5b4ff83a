"""Export and import of the items of a KGStore, with vectors and time to live."""

import io

import pytest

from kg_memory.adapters.store.store import KGStore
from kg_memory.errors import InputError
from tests.transfer import exported, left_aside


def test_items_are_the_same_after_a_round_trip(memory, namespace):
    fields: list[str] = ["text", "more[*]"]
    store = KGStore(
        memory, name=namespace, index={"dims": 64, "embed": memory.driver.embedder.embeddings, "fields": fields}, ttl={}
    )
    store.put(("users", "ann"), "likes", {"text": "Ann likes jazz", "more": ["rock", "pop"]})
    store.put(("users", "bob"), "`x` 奥斯陆", {"text": "Bob likes chess"}, ttl=60)
    store.put(("plain",), "k", {"n": 1}, index=False)
    data = exported(memory, store=namespace)
    done = memory.data.import_(io.BytesIO(data), namespace=f"{namespace} copy")
    assert done.records == {"namespace": 3, "item": 3, "relation": 3}
    assert exported(memory, store=f"{namespace} copy").splitlines()[1:-1] == data.splitlines()[1:-1]
    copy = KGStore(memory, name=f"{namespace} copy", index=store.index_config)
    for place, key in ((("users", "ann"), "likes"), (("users", "bob"), "`x` 奥斯陆"), (("plain",), "k")):
        assert copy.get(place, key) == store.get(place, key)
    assert copy.list_namespaces() == store.list_namespaces()
    for query in ("jazz", "rock", "chess"):
        assert [(each.key, each.score) for each in copy.search(("users",), query=query)] == [
            (each.key, each.score) for each in store.search(("users",), query=query)
        ]
    with pytest.raises(InputError, match="is not empty"):
        memory.data.import_(io.BytesIO(data))
    memory.data.import_(io.BytesIO(data), replace=True, embeddings=False)
    assert [each.score for each in store.search(("users",), query="jazz")] == [None, None]
    with pytest.raises(InputError, match="store 'none' is empty or does not exist"):
        exported(memory, store="none")
    with pytest.raises(InputError, match="form must be jsonl for the items of a store"):
        exported(memory, store=namespace, form="graphml")
    assert left_aside(memory.driver.store.database) == []
