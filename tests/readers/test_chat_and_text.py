"""Plain text becomes chat messages if it has speakers, else one text; other JSON becomes records."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from kg_memory.contrib.chats import read
from kg_memory.models.graph import EpisodeKind
from tests.readers.files import said, write

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)


def test_plain_chat_is_split_by_speakers_and_dated(tmp_path):
    text = "[2024-05-01 10:00] Ann: hello\n  Bob: is not here\nand more\n[2024-05-01 10:00] Bo Li: hi: you\nAnn: bye\n"
    reading = read(write(tmp_path, text))
    assert reading.format == "chat"
    episodes = list(reading)
    assert said(episodes) == [("Ann", "hello\nBob: is not here\nand more"), ("Bo Li", "hi: you"), ("Ann", "bye")]
    ten = datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert [episode.at for episode in episodes] == [ten + timedelta(microseconds=n) for n in range(3)]


CHATS: dict[str, tuple[str, list[tuple[str, str]], list[int]]] = {
    "days before lines": ("2024-01-10 Ann: I moved.\n2024-02-11 - Bob: Where to?\n", [("Ann", "I moved."), ("Bob", "Where to?")], [10, 11]),
    "days on lines": ("[2024-05-01]\nAnn: a\nBo: b\n[2024-05-02]\nAnn: c", [("Ann", "a"), ("Bo", "b"), ("Ann", "c")], [1, 1, 2]),
    "wide colons": ("小明：我搬到了上海。\n小红：真的吗？\n小明：真的。\n", [("小明", "我搬到了上海。"), ("小红", "真的吗？"), ("小明", "真的。")], [1, 1, 1]),
    "no dates": ("\ufeffAnn: hello\r\nBob: hi\r\n", [("Ann", "hello"), ("Bob", "hi")], [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "messages", "days"), CHATS.values(), ids=CHATS.keys())
def test_each_form_of_a_plain_chat_is_read(tmp_path, text, messages, days):
    episodes = list(read(write(tmp_path, text), at=NOW))
    assert said(episodes) == messages
    assert [episode.at.day for episode in episodes if episode.at] == days
    assert len({episode.at for episode in episodes}) == len(episodes)


NO_CHATS = [
    "My notes.\nI moved to Oslo last year, and it is cold.\nRemember: buy milk.\nThe end.\n",
    "Name: Ann\nCity: Oslo\nAge: 31\nPet: cat\n",
    "# Title\n\nSee https://example.com: it is good.\n",
]


@pytest.mark.parametrize("text", NO_CHATS)
def test_other_text_is_one_text_episode(tmp_path, text):
    reading = read(write(tmp_path, text))
    assert reading.format == "text"
    [episode] = reading
    assert (episode.kind, episode.content) == (EpisodeKind.TEXT, text)


def test_other_json_becomes_one_json_episode_per_record(tmp_path):
    records = [{"id": 1, "company": "Acme"}, {"id": 2, "company": "Bolt"}]
    reading = read(write(tmp_path, json.dumps(records, indent=2)))
    assert reading.format == "json"
    assert [json.loads(episode.content) for episode in reading] == records
    assert {episode.kind for episode in reading} == {EpisodeKind.JSON}
    [one] = read(write(tmp_path, json.dumps(records[0], indent=2)))
    assert json.loads(one.content) == records[0]


def test_changed_record_with_same_id_is_another_episode(tmp_path):
    ids = [next(iter(read(write(tmp_path, {"id": 1, "company": name})))).source_id for name in ("Acme", "Bolt")]
    assert ids[0] != ids[1]
