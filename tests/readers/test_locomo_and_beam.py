"""The turns of LoCoMo and BEAM files become episodes with dates and speakers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.contrib.chats import read
from tests.readers.files import said, write

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)


def locomo(sample_id: str = "c-1") -> dict[str, Any]:
    turn = {"speaker": "Ida", "dia_id": "D1:1", "text": "I bought a boat."}
    photo = {"speaker": "Tom", "dia_id": "D1:2", "text": "Look", "blip_caption": "a red boat"}
    return {
        "sample_id": sample_id,
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Tom",
            "session_10_date_time": "9:05 am on 2 June, 2023",
            "session_10": [{"speaker": "Tom", "dia_id": "D10:1", "text": "Later."}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [turn, photo],
            "session_11_date_time": "9:05 am on 3 June, 2023",
        },
        "qa": [],
    }


def test_locomo_file_gives_all_turns_in_order_of_sessions(tmp_path):
    reading = read(write(tmp_path, [locomo("c-1"), locomo("c-2")]))
    assert reading.format == "locomo"
    episodes = list(reading)
    assert [episode.source_id for episode in episodes[:4]] == ["c-1/D1:1", "c-1/D1:2", "c-1/D10:1", "c-2/D1:1"]
    assert episodes[1].content == "Look\n[photo: a red boat]"
    assert episodes[1].at == datetime(2023, 5, 8, 13, 57, tzinfo=UTC)
    assert [episode.thread for episode in episodes[:3]] == ["c-1/session_2", "c-1/session_2", "c-1/session_10"]


def test_locomo_file_skips_broken_turn_and_odd_date(tmp_path):
    sample = locomo()
    sample["conversation"]["session_2"].insert(1, {"speaker": "Ida", "dia_id": "D1:9"})
    sample["conversation"]["session_10_date_time"] = "some day"
    reading = read(write(tmp_path, sample), at=NOW)
    assert [episode.content for episode in reading][-1] == "Later."
    assert len(reading.problems) == 2


def beam() -> list[dict[str, Any]]:
    batches = []
    for number, day in ((1, "March-15-2024"), (2, "April-05-2024")):
        asked = {"role": "user", "id": number * 2, "index": "1,1", "content": f"Plan {number}? ->-> 1,1"}
        answered = {"role": "assistant", "id": number * 2 + 1, "content": "A plan -> done."}
        turns = [[{**asked, "time_anchor": day}, answered]]
        batches.append({"batch_number": number, "time_anchor": None, "turns": turns})
    return batches


def test_beam_chat_loses_marks_and_gets_dates(tmp_path):
    reading = read(write(tmp_path, beam(), "chat.json"))
    assert reading.format == "beam"
    episodes = list(reading)
    assert said(episodes)[:2] == [("user", "Plan 1?"), ("assistant", "A plan -> done.")]
    times = [datetime(2024, 3, 15, 0, 1, tzinfo=UTC), datetime(2024, 4, 5, tzinfo=UTC)]
    assert [episode.at for episode in episodes[1:3]] == times
    assert [str(episode.source_id).rpartition("/")[2] for episode in episodes] == ["2", "3", "4", "5"]
    assert len({episode.thread for episode in episodes}) == 2


@pytest.mark.parametrize("mark", ["->-> 1,1", " ->-> 2,N/A", "->->  10,3", "->-> 2"])
def test_every_form_of_beam_mark_is_removed(tmp_path, mark):
    chat = beam()[:1]
    chat[0]["turns"][0][0]["content"] = f"Hello{mark}"
    assert next(iter(read(write(tmp_path, chat)))).content == "Hello"
