"""Mem0's and LangMem's sentences become episodes, dated and by their owners."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kg_memory.contrib.importers.sentences import read_langmem, read_mem0
from kg_memory.errors import InputError
from tests.transfer import put

MEMORY = {
    "id": "m1", "memory": "Lives in Oslo", "hash": "x", "metadata": {"category": "home"}, "score": None,
    "created_at": "2024-01-01T10:00:00-07:00", "updated_at": None, "user_id": "ann", "run_id": "chat 1",
}  # fmt: skip
CHANGED = {**MEMORY, "id": "m2", "memory": "Lives in Paris", "updated_at": "2024-05-01T10:00:00Z", "metadata": None}
HISTORY = [
    {"id": "h1", "memory_id": "a", "old_memory": None, "new_memory": "Likes jazz", "event": "ADD", "created_at": "2024-01-01T00:00:00Z"},
    {"id": "h2", "memory_id": "a", "old_memory": "Likes jazz", "new_memory": "Likes rock", "event": "UPDATE",
     "created_at": "2024-01-01T00:00:00Z", "updated_at": "2024-02-01T00:00:00Z", "actor_id": "ann"},
    {"id": "h3", "memory_id": "b", "old_memory": None, "new_memory": "A secret", "event": "ADD", "created_at": "2024-01-01T00:00:00Z"},
    {"id": "h4", "memory_id": "b", "old_memory": "A secret", "new_memory": None, "event": "DELETE", "created_at": "2024-01-01T00:00:00Z"},
]  # fmt: skip
ITEM = {
    "namespace": ["memories", "ann"], "key": "k1", "created_at": "2024-01-01T10:00:00+00:00", "updated_at": "2024-01-02T10:00:00+00:00",
    "value": {"kind": "Memory", "content": {"content": "Ann lives in Oslo"}},
}  # fmt: skip
SAID = {**ITEM, "key": "k2", "value": {"content": "Ann knows Bob"}}
TYPED = {**ITEM, "key": "k3", "value": {"kind": "Profile", "content": {"name": "Ann", "age": 40}}}


def episodes(read: Any, path: Path, group: str | None = None) -> list[Any]:
    return [record.value for record in read(path, group)(Counter())]


@pytest.mark.parametrize("form", [{"results": [MEMORY, CHANGED], "relations": []}, [MEMORY, CHANGED], None])
def test_mem0_memory_has_date_of_last_change_and_user_speaker(tmp_path, form):
    path = put(tmp_path / "m.json", form or [MEMORY, CHANGED], a_line_each=form is None)
    first, second = episodes(read_mem0, path)
    about = (first.content, first.speaker, first.thread, first.source, first.source_id)
    assert about == ("Lives in Oslo", "user", "chat 1", "mem0", "m1")
    times = [each.at and each.at.isoformat() for each in (first, second)]
    assert times == ["2024-01-01T10:00:00-07:00", "2024-05-01T10:00:00+00:00"]


def test_mem0_history_gives_each_change_but_no_deleted_memory(tmp_path):
    found = episodes(read_mem0, put(tmp_path / "h.json", HISTORY))
    assert [(each.content, each.at and each.at.month, each.source_id) for each in found] == [
        ("Likes jazz", 1, "h1"),
        ("Likes rock", 2, "h2"),
    ]


def test_deleted_mem0_memory_removes_no_other(tmp_path):
    gone = {**MEMORY, "id": "m2", "memory": "Lives in Paris", "is_deleted": True}
    nameless = {key: value for key, value in MEMORY.items() if key != "id"}
    told = [MEMORY, gone, {**nameless, "memory": "Likes tea"}, {**nameless, "memory": "A secret", "is_deleted": True}]
    found = episodes(read_mem0, put(tmp_path / "m.json", told))
    assert [each.content for each in found] == ["Lives in Oslo", "Likes tea"]


def test_langmem_items_are_messages_or_records(tmp_path):
    found = episodes(read_langmem, put(tmp_path / "l.json", [ITEM, SAID, TYPED]))
    assert [each.content for each in found] == ["Ann lives in Oslo", "Ann knows Bob", '{"age": 40, "name": "Ann"}']
    assert [each.kind for each in found] == ["message", "message", "json"]
    assert {(each.thread, each.source, each.at and each.at.day) for each in found} == {("memories/ann", "langmem", 2)}
    assert found[0].source_id == "memories/ann/k1"


def test_memories_of_several_users_are_not_mixed(tmp_path):
    both = put(tmp_path / "m.json", [MEMORY, {**MEMORY, "id": "m3", "user_id": "bob", "memory": "Is Bob"}])
    with pytest.raises(InputError, match=r"2 users; choose one with --group, such as one of \['ann', 'bob'\]"):
        read_mem0(both)
    assert [each.content for each in episodes(read_mem0, both, "bob")] == ["Is Bob"]
    with pytest.raises(InputError, match="no user 'eve'"):
        read_mem0(both, "eve")
    spaces = put(tmp_path / "l.json", [ITEM, {**SAID, "namespace": ["memories", "bob"]}])
    assert [each.content for each in episodes(read_langmem, spaces, "memories/bob")] == ["Ann knows Bob"]


@pytest.mark.parametrize(
    ("read", "told", "said"),
    [
        (read_mem0, [], "has no records"),
        (read_mem0, ["text"], "record 1: a record must be an object"),
        (read_mem0, [{"id": "x"}], "record 1: the record has no memory; pass the result of get_all or history of Mem0"),
        (read_mem0, [{**MEMORY, "created_at": "soon"}], "record 1: created_at is not a time .*write it like 2024"),
        (read_mem0, [{**MEMORY, "metadata": "x"}], "record 1: the record has no memory"),
        (read_langmem, [{"key": "x"}], "record 1: the record has no value; pass items as Item.dict"),
        (read_langmem, [{**ITEM, "updated_at": []}, {**ITEM, "updated_at": "x"}], "record 2: updated_at is not a time"),
    ],
)
def test_wrong_record_raises_with_its_number(tmp_path, read, told, said):
    with pytest.raises(InputError, match=said):
        episodes(read, put(tmp_path / "x.json", told))
