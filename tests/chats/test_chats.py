"""Chat exports are read once, with speakers, times and threads; unknown formats are refused."""

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kg_memory.contrib.chats import DATE_ORDERS, read
from kg_memory.contrib.chats.files import LARGEST
from kg_memory.errors import InputError
from tests.chats import exports
from tests.cli_home import Run, home_of_the_module, result, run_here  # noqa: F401 - fixtures
from tests.readers.files import said, write

TEN = datetime(2024, 5, 1, 10, tzinfo=UTC)
LIMA = datetime(2024, 6, 1, 21, 30, tzinfo=timezone(timedelta(hours=-5)))
CUSCO = "I moved to Cusco today."
LRM, NARROW = "\u200e", "\u202f"
IPHONE = f"""\
[31.12.23, 21:40:00] Hütte: {LRM}Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.
[31.12.23, 21:41:05] Anna: Ich ziehe um.
Nach Kiel: im Mai.
{LRM}[31.12.23, 21:42:05] ~{NARROW}Ben: {LRM}<Anhang: 00000012-PHOTO-2023-12-31-21-42-05.jpg>
[31.12.23, 21:43:05] Anna: {LRM}Diese Nachricht wurde gelöscht.
[31.12.23, 21:44:05] Anna: {LRM}Bild weggelassen
"""
ANDROID = f"""\
12/31/23, 9:40{NARROW}PM - Messages and calls are end-to-end encrypted. Learn more.
12/31/23, 9:41{NARROW}PM - Ann created group "Trip: May"
12/31/23, 9:41{NARROW}PM - Ann: I live in Turku.
12/31/23, 9:41{NARROW}PM - \u202a+358 40 123\u202c: <Media omitted>
12/31/23, 9:42{NARROW}PM - Ann: This message was deleted
"""

# the name, the file, then: format, conversations, messages, speakers, first time, a message with its speaker
CASES: list[tuple[str, Any, str, int, int, set[str], datetime, tuple[str | None, str]]] = [
    ("conversations.json", exports.CHATGPT, "chatgpt", 2, 4, {"user", "assistant"}, TEN + timedelta(seconds=0.5), ("user", "I live in Kotka.\n[attachment: loaf.jpg]")),
    ("conversations.json", exports.CLAUDE, "claude", 1, 3, {"user", "assistant"}, TEN, ("user", "I moved to Vaasa.\n[attachment: plan.txt]")),
    ("chat-export.json", exports.OPEN_WEBUI, "open-webui", 1, 2, {"user", "assistant"}, TEN, ("assistant", "A fine name.")),
    ("result.json", exports.TELEGRAM_CHAT, "telegram", 1, 2, {"Bo Lind", "user8"}, LIMA, ("user8", "[attachment: photo_1.jpg]")),
    ("result.json", exports.TELEGRAM, "telegram", 2, 4, {"Bo Lind", "user8"}, LIMA, ("Bo Lind", CUSCO)),
    ("makers.json", exports.DISCORD, "discord", 1, 2, {"Ina Berg", "tick"}, TEN - timedelta(hours=2, seconds=-0.5), ("Ina Berg", "I roast tea.\n[attachment: tin.png]")),
    ("message_1.json", exports.FACEBOOK, "facebook", 1, 2, {"Jörg", "Ann"}, TEN, ("Jörg", "In Köln!\n[attachment: dom.jpg]")),
    ("share.json", exports.SHAREGPT, "sharegpt", 2, 3, {"user", "assistant"}, TEN, ("assistant", "Lovely.")),
    ("thread.json", exports.ASSISTANTS, "assistants", 1, 2, {"user", "assistant"}, TEN, ("user", "I keep bees.\n[attachment: file-9]")),
    ("MyActivity.json", exports.GEMINI, "gemini", 1, 2, {"user", "assistant"}, TEN, ("assistant", "Which boats?\n- small")),
    ("list.json", exports.MESSAGES, "messages", 2, 2, {"user"}, TEN, ("user", "I ski.")),
    ("_chat.txt", IPHONE, "whatsapp", 1, 3, {"Anna", "Ben"}, datetime(2023, 12, 31, 21, 41, 5, tzinfo=UTC), ("Anna", "Ich ziehe um.\nNach Kiel: im Mai.")),
    ("WhatsApp Chat with Ann.txt", ANDROID, "whatsapp", 1, 2, {"Ann", "+358 40 123"}, datetime(2023, 12, 31, 21, 41, tzinfo=UTC), ("Ann", "I live in Turku.")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[2]}-{case[4]}")
@pytest.mark.parametrize("packed", [False, True])
def test_read_returns_speakers_times_and_threads_of_an_export(tmp_path, case, packed):
    name, content, format_, conversations, count, speakers, start, message = case
    path = write(tmp_path, content, name)
    if packed:
        path = pack(tmp_path / "export.zip", {name: content, "user.json": {"id": 1}, "notes.txt": "No chat."})
    reading = read(path, at=TEN)
    episodes = list(reading)
    assert (reading.format, len(episodes)) == (format_, count)
    assert [str(problem).count("notes.txt contains no conversation") for problem in reading.problems] == [1] * packed
    assert len({each.thread for each in episodes}) == conversations
    assert len({(each.thread, each.at) for each in episodes}) == count, "messages of the same time are ordered"
    assert {each.speaker for each in episodes} - {None} == speakers
    assert min(each.at for each in episodes if each.at) == start
    assert message in said(episodes)


def test_read_slack_returns_names_threads_and_user_time(run, tmp_path):
    for name, content in exports.SLACK.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / "work", content, name)
    for path in (tmp_path / "work", pack(tmp_path / "slack.zip", exports.SLACK)):
        episodes = list(read(path))
        text = "@Helper I moved to Cusco & bought a house (https://a.invalid)"
        assert said(episodes) == [("Ana Ruiz", text), ("Helper", "Good!"), ("Ana Ruiz", "[attachment: a.pdf]")]
        root = "general/1717295400.000200"
        assert [each.thread for each in episodes] == [root, root, "random"]
        assert episodes[0].at == LIMA + timedelta(microseconds=200)


@pytest.mark.parametrize(
    "case", [*CASES, ("slack.zip", exports.SLACK, "slack", 2, 3)], ids=lambda case: f"{case[2]}-{case[4]}"
)
def test_ingest_counts_each_format_and_adds_it_once(run, tmp_path, case):
    name, content, format_, conversations, count, *_ = case
    path = tmp_path / name
    path = pack(path, content) if name.endswith(".zip") else write(tmp_path, content, name)
    namespace = f"{format_}-{count}"
    [file] = result(run, "ingest", path, "-n", namespace, "--dry-run")["files"]
    assert (file["format"], file["conversations"], file["messages"]) == (format_, conversations, count)
    _, out, _ = run("ingest", path, "--dry-run", "-n", namespace)
    assert f"{format_}; {conversations} conversation" in out
    assert "speakers: " in out
    assert result(run, "ingest", path, "-n", namespace)["new"] == count
    assert result(run, "ingest", path, "-n", namespace)["new"] == 0


UNKNOWN = [
    [{"userName": "ann", "body": "I moved.", "sentAt": "2024-05-01"}],
    {"dialog": [["Hello you", "Hello there"], ["How are you?"]]},
    [{"from": {"id": 1}, "msg": "I moved.", "ts": 1714557600}],
    {"room": {"events": [{"sender": "@ann:x", "content": {"body": "I moved."}, "origin_server_ts": 1}]}},
    [{"comment": "I moved.", "created_at": "2024-05-01", "likes": 3}],
]


@pytest.mark.parametrize("document", UNKNOWN)
def test_unknown_chat_json_is_refused_unless_read_as_records(run, tmp_path, document):
    path = write(tmp_path, document, "x.json")
    code, _, err = run("ingest", path, "-n", "unknown", "--dry-run")
    assert code != 0
    assert "telegram" in err
    assert "--records" in err
    assert result(run, "ingest", path, "-n", "unknown", "--dry-run", "--records")["files"][0]["format"] == "records"


STAMPS = [  # each is of 9:05 pm on 31 December 2023
    "[31/12/23, 21:05:09] ", "31/12/2023, 21:05 - ", "31.12.23, 21:05 - ", "31/12/2023 21:05 - ", "31-12-2023 21:05 - ",
    "2023-12-31 21:05 - ", "[2023/12/31 21:05:09] ", "2023/12/31, 9:05 pm - ", "2023-12-31, 9:05 p.m. - ",
    "31/12/23, 9:05 p.\xa0m. - ", "31.12.2023 klo 21.05 - ", "[31.12.2023 klo 21.05.09] ", "[2023. 12. 31. 오후 9:05:09] ",
    "2023년 12월 31일 오후 9:05, ", "[2023/12/31 下午9:05:09] ", "31/12/2023 à 21:05 - ", "31.12.2023 г., 21:05 - ",
    "2023. 12. 31. 21:05 - ", "31. 12. 2023. 21:05 - ", "\u200f٣١\u200f/١٢\u200f/٢٠٢٣، ٩:٠٥ م - ", "31/12/2566 21:05 - ",
    "[21:05, 31/12/2023] ", "31/12/23, 9:05 μ.μ. - ", "31/12/23 21.05 - ", "12/31/23, 21:05 - ", "31/12/23, 21:05:09: ", "31.12.23, 9:05 odp. - ",
    "2023-12-31 21 h 05 - ", "[2023-12-31 21 h 05 min 09 s] ",
]  # fmt: skip


@pytest.mark.parametrize("stamp", STAMPS)
def test_read_parses_whatsapp_timestamps_of_many_languages(tmp_path, stamp):
    reading = read(write(tmp_path, f"{stamp}Ann: Hi\r\n{stamp}Bo : Yes: no\r\nmore\r\n"))
    assert reading.format == "whatsapp"
    episodes = list(reading)
    assert said(episodes) == [("Ann", "Hi"), ("Bo", "Yes: no\nmore")]
    assert f"{episodes[0].at:%Y-%m-%d %H:%M}" == "2023-12-31 21:05"


ORDERS = [
    ("1/2/24, 10:00 - A: x\n1/3/24, 10:00 - B: y\n", None),
    ("1/2/24, 10:00 - A: x\n13/2/24, 10:00 - B: y\n", (2024, 2, 1)),
    ("1/2/24, 10:00 - A: x\n1/13/24, 10:00 - B: y\n", (2024, 1, 2)),
    ("5/1/24, 10:00 - A: x\n6/1/24, 10:00 - B: y\n1/2/24, 10:00 - A: z\n", (2024, 1, 5)),
    ("1/2/24, 10:00 - A: IMG-20240102-WA0001.jpg (file attached)\n", (2024, 1, 2)),
    ("3/3/24, 10:00 - A: x\n", (2024, 3, 3)),
    ("1.2.24, 10:00 - A: x\n", (2024, 2, 1)),
]


@pytest.mark.parametrize(("text", "day"), ORDERS)
def test_date_order_is_inferred_or_required(tmp_path, text, day):
    path = write(tmp_path, text)
    if day is None:
        with pytest.raises(InputError, match="--date-order dmy or --date-order mdy"):
            list(read(path))
        for order in DATE_ORDERS[:2]:
            assert f"{next(iter(read(path, date_order=order))).at:%m}" == {"dmy": "02", "mdy": "01"}[order]
    else:
        at = next(iter(read(path))).at
        assert at
        assert (at.year, at.month, at.day) == day


DAY = "13/05/2024, 10:01 - "
ODD = [
    (f"{DAY}Ann “Boss” Lee: I live in Rome\n", ("Ann “Boss” Lee", "I live in Rome"), 0),
    (f'{DAY}Robert "Bob" Ek: Hi\n{DAY}Ann named the group "Trip: Rome"\n', ('Robert "Bob" Ek', "Hi"), 0),
    (f"[13/05/2024, 10:01:00] Ann: I moved :) {LRM}<This message was edited>\n", ("Ann", "I moved :)"), 0),
    (f"the end of a message\n{DAY}Ann: I live in Rome\n", ("Ann", "I live in Rome"), 1),
    ("2024-05-13 08:01:30.25+02:00 Ann: Hi\n2024-05-13T10:01:00Z Bo: Yes\n", ("Ann", "Hi"), 0),
    ("[2024-05-13 10:00] Ann: I have news\nPS: I moved\n[2024-05-13 10:02] Bo: Oh\n", ("Ann", "I have news\nPS: I moved"), 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "problems"), ODD)
def test_odd_lines_are_read_or_reported(tmp_path, text, message, problems):
    reading = read(write(tmp_path, text))
    assert said(list(reading))[0] == message
    assert len(reading.problems) == problems


def test_conversations_that_begin_alike_stay_apart(tmp_path):
    talks = [[{"role": "user", "content": text} for text in ("Hi", f"I live in {city}")] for city in ("Oslo", "Rome")]
    path = write(tmp_path, "".join(json.dumps({"messages": talk}) + "\n" for talk in talks), "talks.jsonl")
    assert len({episode.source_id for episode in read(path)}) == 4


OTHERS = [("a.csv", "who,text\nAnn,Hi\n"), ("a.mbox", "From ann@x\nFrom: Ann\nTo: Bo\n\nHi\n")]


@pytest.mark.parametrize(("name", "text"), OTHERS)
def test_files_of_other_formats_are_refused_unless_wanted_as_text(tmp_path, name, text):
    with pytest.raises(InputError, match="--format text"):
        list(read(write(tmp_path, text, name)))
    assert [episode.content for episode in read(tmp_path / name, format="text")] == [text]


def test_folder_reports_the_files_that_cannot_be_read(run, tmp_path):
    write(tmp_path, "Ann: Hi\nBo: Hello\nAnn: I live in Rome\nBo: Fine\n", "a.txt")
    write(tmp_path, '{"broken": ', "b.json")
    write(tmp_path, "# A note\nAnn moved to Oslo.\n", "c.txt")
    for _ in range(2):
        broken, note = result(run, "ingest", tmp_path, "-n", "folder")["problems"]
        assert ("b.json" in broken, "c.txt contains no conversation" in note) == (True, True)
    assert "left out" in run("ingest", tmp_path, "-n", "folder", "--dry-run")[2]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_read_accepts_utf_16_and_byte_order_marks(tmp_path, encoding):
    mark = "\ufeff" if encoding[-2] in "lb" else ""
    for name, text in (("x.json", json.dumps(exports.CLAUDE)), ("x.txt", IPHONE)):
        assert len(list(read(write(tmp_path, (mark + text).encode(encoding), name)))) == 3


@pytest.mark.parametrize("document", [case[1] for case in CASES[:10]], ids=[case[2] for case in CASES[:10]])
def test_damaged_export_gives_messages_or_an_input_error(tmp_path, document):
    for path in paths_in(document):
        for value in (None, {}, [[None]], {"text": {}}):
            damaged = json.loads(json.dumps(document))
            inside = damaged
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
            try:
                assert all(each.content for each in read(write(tmp_path, damaged, "x.json")))
            except InputError:
                continue


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key)
        yield from paths_in(inner, (*path, key))


def test_hostile_zips_are_refused_with_the_reason(tmp_path):
    chat = json.dumps(exports.CLAUDE)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("conversations.json", chat)
    encrypted = pack(tmp_path / "e.zip", {"conversations.json": chat}).read_bytes()
    encrypted = encrypted.replace(b"PK\x03\x04\x14\0\0\0", b"PK\x03\x04\x14\0\1\0")
    encrypted = encrypted.replace(b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0")
    cases: list[tuple[bytes, str]] = [
        (pack(tmp_path / "a.zip", {"../conversations.json": chat}).read_bytes(), "outside the archive"),
        (pack(tmp_path / "b.zip", {"x.json": " " * (20 << 20)}).read_bytes(), "times its size"),
        (pack(tmp_path / "c.zip", {"inner.zip": inner.getvalue()}).read_bytes(), "only other zip files"),
        (pack(tmp_path / "d.zip", {"user.json": {"id": 1}}).read_bytes(), "no chat export found"),
        (encrypted, "encrypted"),
        (b"PK\x03\x04 and nothing else", "cannot be unpacked"),
    ]
    assert LARGEST < 1 << 32
    for content, problem in cases:
        with pytest.raises(InputError, match=problem):
            list(read(write(tmp_path, content, "x.zip")))


def pack(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


PARTS = {"role": "assistant", "parts": [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Nice!"}]}
EITHER = "5/6/24, 10:00 AM - Ann: Hi\n5/7/24, 10:00 AM - Bo: Ho\n"
LINE = "[LINE] Chat history with Bo\n2024/05/13(Mon)\n10:00\tAnn\tI moved to Oslo.\n10:01\tBo\tOh!\n"
TEXTS = {
    "half a day": ('{"timestamp": "May 13, 2024 10:05 PM", "speaker": "Ann", "text": "Hi"}\n', [("Ann", "Hi")]),
    "a link of a note": ("[[Ann]] moved to Oslo.\n", [(None, "[[Ann]] moved to Oslo.")]),
    "a list in a message": ("Ann: Buy:\n- Milk: 2\nBo: Yes\nAnn: Now\n", [("Ann", "Buy:\n- Milk: 2"), ("Bo", "Yes"), ("Ann", "Now")]),
    "a picture": ('[{"role": "user", "content": [{"type": "image_url"}]}, {"role": "user", "content": [{"type": "tool_result"}]}]', [("user", "[attachment: image]")]),
    "a named agent": ('[{"role": "assistant", "name": "Max", "content": "Ann lives in Oslo."}]', [("Max (assistant)", "Ann lives in Oslo.")]),
    "clocks alone": ("[10:02 AM]Ann: Hi\nall\n[10:03 AM]Bo: Ho\n[10:04 AM]Ann: Ok\n", [("Ann", "Hi\nall"), ("Bo", "Ho"), ("Ann", "Ok")]),
    "parts": (json.dumps({"id": "c", "messages": [PARTS]}), [("assistant", "Nice!")]),
    "a list of parts": (json.dumps([PARTS]), [("assistant", "Nice!")]),
    "thoughts of Gemini": (json.dumps([{"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Nice!"}]}] * 2), [("assistant", "Nice!")] * 2),
    "lines of parts": (f"{json.dumps(PARTS)}\n{json.dumps(PARTS)}\n", [("assistant", "Nice!")] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_read_returns_messages_of_unusual_texts(tmp_path, name):
    content, spoken = TEXTS[name]
    episodes = list(read(write(tmp_path, content), strict=True))
    assert [(episode.speaker, episode.content.strip()) for episode in episodes] == spoken
    assert len({episode.thread for episode in episodes}) == 1
    assert name != "half a day" or episodes[0].at == datetime(2024, 5, 13, 22, 5, tzinfo=UTC)


@pytest.mark.parametrize(("content", "advice"), [(LINE, "--format text"), (EITHER, "--date-order")])
def test_read_refuses_chats_that_it_would_misread(tmp_path, content, advice):
    with pytest.raises(InputError, match=advice):
        list(read(write(tmp_path, content)))
    pasted = read(write(tmp_path, f"{EITHER}5/14/24, 10:00 AM - Bo: See:\n31/05/24, 10:00 - Cy: pasted\n"))
    assert [each.at.month for each in pasted] == [5, 5, 5], "the order that most stamps fit"
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat" / "a.txt").write_text(content)
    (tmp_path / "chat" / "b.txt").write_text("Ann: Hi\nBo: Ho\n")
    reading = read(tmp_path / "chat")
    assert [episode.content for episode in reading] == ["Hi", "Ho"]
    assert [advice in str(problem) for problem in reading.problems] == [True]


def test_notes_of_messengers_are_left_out_and_blocks_are_read(tmp_path):
    said = ("Liked a message", "Ann named the group Trip.", "You missed a call from Bo.", "I moved to Oslo.")
    messages = [
        {"sender_name": "Ann", "timestamp_ms": 1_714_557_600_000 + n, "content": each} for n, each in enumerate(said)
    ]
    facebook = {"participants": [{"name": "Ann"}], "title": "Ann", "messages": messages}
    assert [each.content for each in read(write(tmp_path, json.dumps(facebook)))] == ["I moved to Oslo."]
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": "I ski."}]}
    blocks = [{"type": "rich_text", "elements": [section]}]
    slack = [{"ts": "1714557600.1", "user": "U1", "text": "", "blocks": blocks}]
    assert [each.content for each in read(write(tmp_path, json.dumps(slack)))] == ["I ski."]
