"""Plain text is read as a chat where people speak in it, else as one text; other JSON as records."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kg_memory.contrib.chats import read
from kg_memory.models.graph import EpisodeKind
from tests.readers.files import said, write

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)


def test_a_plain_chat_is_split_by_speakers_and_dated_by_its_stamps(tmp_path: Path) -> None:
    text = "[2024-05-01 10:00] Ann: hello\n  Bob: is not here\nand more\n[2024-05-01 10:00] Bo Li: hi: you\nAnn: bye\n"
    reading = read(write(tmp_path, text))
    assert reading.format == "chat"
    episodes = list(reading)
    assert said(episodes) == [("Ann", "hello\nBob: is not here\nand more"), ("Bo Li", "hi: you"), ("Ann", "bye")]
    ten = datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert [episode.at for episode in episodes] == [ten + timedelta(microseconds=n) for n in range(3)]


def test_a_day_without_a_time_dates_a_line(tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    file.write_text("2024-01-10 Ann: I moved.\n2024-02-11 - Bob: Where to?\n", encoding="utf-8")
    first, second = read(file)
    assert [first.speaker, second.speaker] == ["Ann", "Bob"]
    assert [f"{each.at:%F}" for each in (first, second)] == ["2024-01-10", "2024-02-11"]


def test_a_stamp_on_a_line_of_its_own_dates_what_follows(tmp_path: Path) -> None:
    episodes = list(read(write(tmp_path, "[2024-05-01]\nAnn: a\nBo: b\n[2024-05-02]\nAnn: c\nBo: d")))
    assert [episode.at.day for episode in episodes if episode.at] == [1, 1, 2, 2]
    assert len({episode.at for episode in episodes}) == 4


def test_a_chinese_chat_with_wide_colons_is_read(tmp_path: Path) -> None:
    episodes = list(read(write(tmp_path, "小明：我搬到了上海。\n小红：真的吗？\n小明：真的。\n")))
    assert said(episodes)[0] == ("小明", "我搬到了上海。")
    assert len(episodes) == 3


def test_an_undated_chat_without_stamps_is_read(tmp_path: Path) -> None:
    episodes = list(read(write(tmp_path, "\ufeffAnn: hello\r\nBob: hi\r\n"), at=NOW))
    assert said(episodes) == [("Ann", "hello"), ("Bob", "hi")]
    assert episodes[0].at == NOW


def test_a_chat_line_with_an_impossible_date_is_a_problem_with_its_line(tmp_path: Path) -> None:
    reading = read(write(tmp_path, "[2024-05-01 10:00] Ann: a\n[2024-13-01 10:00] Bo: b\n[2024-05-01 10:02] Ann: c\n"))
    assert [episode.content for episode in reading] == ["a", "c"]
    assert ":2: " in str(reading.problems[0])


@pytest.mark.parametrize(
    "text",
    [
        "My notes.\nI moved to Oslo last year, and it is cold.\nRemember: buy milk.\nThe end.\n",
        "Name: Ann\nCity: Oslo\nAge: 31\nPet: cat\n",
        "# Title\n\nSee https://example.com: it is good.\n",
    ],
)
def test_other_text_is_one_text_episode(tmp_path: Path, text: str) -> None:
    reading = read(write(tmp_path, text))
    assert reading.format == "text"
    [episode] = reading
    assert (episode.kind, episode.content) == (EpisodeKind.TEXT, text)


def test_other_json_is_a_json_episode_a_record(tmp_path: Path) -> None:
    records = [{"id": 1, "company": "Acme"}, {"id": 2, "company": "Bolt"}]
    reading = read(write(tmp_path, json.dumps(records, indent=2)))
    assert reading.format == "json"
    assert [json.loads(episode.content) for episode in reading] == records
    assert {episode.kind for episode in reading} == {EpisodeKind.JSON}
    [one] = read(write(tmp_path, json.dumps(records[0], indent=2)))
    assert json.loads(one.content) == records[0]


def test_a_changed_record_with_the_same_number_is_another_episode(tmp_path: Path) -> None:
    ids = [next(iter(read(write(tmp_path, {"id": 1, "company": name})))).source_id for name in ("Acme", "Bolt")]
    assert ids[0] != ids[1]
