from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.errors import InputError
from kg_memory.falkor.queries import episodes
from kg_memory.ingestion.postings import LONG, NEIGHBOUR_LENGTH, NEXT_TO, OWN, carry_words, index_words, length, line
from kg_memory.ingestion.receive import local_time, parse_at, split_content, validate_episode
from kg_memory.runtime.effects import Now, Query
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered, receive

NOW = 1_700_000_000_000_000
SETTINGS = Settings()
HOUR = 3600 * 1_000_000
UNTRIED = {"answers": [], "reader": None, "reading_since": 0, "interrupted": 0}


def validated(**given: Any) -> dict[str, Any]:
    return asdict(validate_episode({"content": "Hello.", **given}, SETTINGS, NOW))


def test_receive_saves_the_episode_first():
    """The first write of the ingestion saves the episode.

    Features: A2.
    """
    flow = receive({"content": "Hello.", "speaker": "Ann", "at": "2024-01-01", "thread": "t"}, SETTINGS)
    assert isinstance(next(flow), Now)
    read = flow.send(NOW)
    assert (read.cypher, read.write) == (episodes.NEIGHBOURS, False)
    write = flow.send([])
    assert isinstance(write, Query)
    assert (write.cypher, write.write) == (episodes.SAVE_EPISODE, True)
    with pytest.raises(StopIteration) as ended:
        flow.send([{"new": True, "status": "saved", "content": "Hello.", "forgotten": 0, **UNTRIED}])
    state = ended.value.value
    assert (state["new"], state["done"], state["previous"]) == (True, False, [])
    assert state["episode"]["at_iso"] == "2024-01-01T00:00Z"


REFUSED: list[tuple[str, list[dict[str, Any]]]] = [
    ("content is empty", [{"content": content} for content in ("", " \n\t", None)]),
    ("content is of type int: give a string", [{"content": content} for content in (7, 0)]),
    ("content is of type bool: give a string", [{"content": False}]),
    ("content is of type bytes: give a string", [{"content": content} for content in (b"bytes", b"")]),
    ("content is of type list: give a string", [{"content": content} for content in (["Hello."], [])]),
    ("content is of type dict: give a string", [{"content": content} for content in ({"name": "Ann"}, {})]),
    ("11 characters, the limit is 10", [{"content": "x" * 11}]),
    *((f"{name} must be a string, got 7", [{name: 7}]) for name in ("speaker", "thread", "source", "source_id")),
    ("message, text, json", [{"kind": kind} for kind in ("picture", "None", 7, "MESSAGE")]),
    ("is not valid JSON", [{"kind": "json", "content": content} for content in ("{", "no json", "{'a': 1}")]),
    ("JSON", [{"kind": "json", "content": content} for content in ("[" * 100_000, "1" * 5000)]),
    ("namespace", [{"namespace": namespace} for namespace in ("", 7, b"bytes")]),
    ("trust must be a number from 0 to 1", [{"trust": trust} for trust in (2, -0.1, float("nan"), float("inf"))]),
    ("trust must be a number from 0 to 1", [{"trust": trust} for trust in ("high", True, [0.5])]),
]


@pytest.mark.parametrize(("message", "inputs"), REFUSED)
def test_validate_episode_refuses_invalid_input(message, inputs):
    chosen = Settings(max_content=10) if "limit is 10" in message else SETTINGS
    for wrong in inputs:
        with pytest.raises(InputError, match=message):
            validate_episode({"content": "Hello.", **wrong}, chosen, NOW)


@pytest.mark.parametrize("content", ['{"a": 1}', "[1, 2]", '"text"', "null", '{"a": "\\ud800"}', " [1] \n"])
def test_validate_episode_accepts_any_json_value(content):
    assert validated(kind="json", content=content)["content"] == content


@pytest.mark.parametrize(
    "at", ["yesterday", "2024-13-01", 1_700_000_000, 1.5, date(2024, 1, 1), ["2024-01-01"], "2024-02-30", b"2024"]
)
def test_parse_at_refuses_invalid_times(at):
    with pytest.raises(InputError, match="at is"):
        parse_at(at, NOW)


@pytest.mark.parametrize(
    ("at", "expected", "minutes"),
    [
        (None, NOW, 0),
        ("", NOW, 0),
        ("1970-01-01", 0, 0),
        ("19700102", 24 * HOUR, 0),
        ("1970-01-01T00:00:01", 1_000_000, 0),
        ("1970-01-01T00:00:00Z", 0, 0),
        ("1970-01-01T09:00:00+09:00", 0, 540),
        ("1969-12-31T20:30:00-03:30", 0, -210),
        (datetime(1970, 1, 1), 0, 0),  # noqa: DTZ001 - a naive one is UTC
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0, 120),
        (datetime(1969, 12, 31, 16, tzinfo=timezone(timedelta(hours=-8))), 0, -480),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1, 0),
    ],
)
def test_episode_has_the_time_and_utc_offset_of_its_message(at, expected, minutes):
    """The time zone of a message is stored.

    Features: G5.
    """
    episode = validated(at=at)
    assert (episode["at"], episode["offset"]) == (expected, minutes)
    assert local_time(episode["at"], episode["offset"]).utcoffset() == timedelta(minutes=minutes)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_local_time_handles_the_ends_of_the_calendar(at):
    for offset in (-720, 0, 840):
        assert local_time(validated(at=at)["at"], offset).tzinfo is not None


@pytest.mark.parametrize(("given", "kept"), [(None, 1.0), (0, 0.0), (0.4, 0.4), (1, 1.0)])
def test_episode_has_the_given_trust(given, kept):
    assert validated(trust=given)["trust"] == kept


def test_receive_uses_stored_offset_and_trust_on_retry():
    first = validated(at="2024-01-01T01:00:00+09:00", trust=0.3)
    stored = {**first, "new": False, "status": "saved", "forgotten": 0, **UNTRIED}
    flow = receive({"content": "Hello.", "at": "2024-01-01", "source_id": "m"}, SETTINGS)
    result, _ = answered(flow, [], [stored], [])
    episode = result["episode"]
    assert (episode["at_iso"], episode["trust"]) == ("2024-01-01T01:00+09:00", 0.3)


def test_episode_id_is_determined_by_its_input():
    same = {"content": "Hello.", "speaker": "Ann", "thread": "t", "at": "2024-01-01"}
    known = validated(**same)["id"]
    assert validated(**{**same, "at": "2024-01-01T01:00:00+01:00"})["id"] == known
    assert validated(**{**same, "source": "elsewhere"})["id"] == known
    others = {"content": "Hi.", "speaker": "Bob", "thread": None, "at": "2024-01-02", "kind": "text", "namespace": "x"}
    for name, value in others.items():
        assert validated(**{**same, name: value})["id"] != known


def test_source_and_source_id_identify_an_episode():
    known = validated(source_id="m1", source="chat")["id"]
    assert validated(source_id="m1", source="chat", content="Other.", speaker="Bob", at="2020-01-01")["id"] == known
    assert validated(source_id="m1", source="mail")["id"] != known
    assert validated(source_id="m2", source="chat")["id"] != known


def test_episode_id_is_the_same_for_its_stored_fields():
    odd = {"content": "a\x00b\ud800", "speaker": "A\nB", "thread": "t\tu", "source": "s\r\n", "at": "2024-01-01"}
    first = validated(**odd)
    again = validated(**{name: first[name] for name in ("content", "speaker", "thread", "source")}, at="2024-01-01")
    assert again["id"] == first["id"]
    assert again["speaker"] == first["speaker"] == "A B"


@given(st.text(max_size=400), st.integers(1, 50))
def test_split_content_pieces_join_to_the_whole(content, size):
    """No piece is empty or too long."""
    pieces = split_content(content, size)
    assert "".join(piece.content for piece in pieces) == content
    assert all(0 < len(piece.content) <= size for piece in pieces)
    assert all(content[piece.start :].startswith(piece.content) for piece in pieces)


def test_split_content_splits_at_paragraphs_and_sentences():
    for pieces, size in (
        (["One two. Three four.\n\n", "Five six. Seven"], 24),
        (["今天天气很好。", "我们去了公园。"], 10),
    ):
        assert [piece.content for piece in split_content("".join(pieces), size)] == pieces


def turn(id_: str, content: str, at: int = NOW, speaker: str | None = None) -> dict[str, Any]:
    return {"id": id_, "content": content, "at": at, "speaker": speaker}


def posted(postings: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    return {each["term"]: {place["id"]: place["f"] for place in each["in"]} for each in postings}


def test_index_words_omits_speakers_of_neighbours():
    _, postings = index_words(turn("e", "apple", speaker="Ann"), [turn("b", "berry", speaker="Ben")], [])
    found = posted(postings)
    assert found["ann"] == {"e": 4}
    assert "ben" not in found
    assert found["berri"] == {"e": 2}


def test_index_words_includes_the_date_of_the_episode():
    _, postings = index_words(turn("e", "apple", 0), [], [])
    assert {"1970", "januari", "1"} <= posted(postings).keys()


def test_line_begins_with_the_speaker():
    """A line of the transcript begins with the speaker, if the message has one.

    Features: A10.
    """
    assert line(turn("e", "Hello.", speaker="Ann")) == "Ann: Hello."
    assert line(turn("e", "Hello.")) == "Hello."


PLAIN = st.lists(st.sampled_from("oslo rain ann likes 北京 2024 !".split()), min_size=1, max_size=8).map(" ".join)


def test_long_episode_lends_words_but_borrows_none():
    long = turn("long", "kumquat " * (LONG + 1))
    assert length(long) == LONG + 1
    _, postings = index_words(long, [turn("b", "apple pie")], [])
    found = posted(postings)
    assert "appl" not in found
    assert found["kumquat"] == {"long": OWN * (LONG + 1), "b": NEXT_TO * (LONG + 1)}
    assert carry_words(LONG + 1, {"apple": 1}, NEXT_TO) == {}
    assert carry_words(LONG, {"apple": 1}, NEXT_TO) == {"apple": NEXT_TO}


def test_wordless_episode_is_indexed_by_its_neighbours():
    lengths, postings = index_words(turn("e", "!?"), [turn("b", "apple")], [turn("a", "...")])
    assert posted(postings)["appl"] == {"e": NEXT_TO}
    assert {each["id"]: each["n"] for each in lengths} == {"e": 12 + NEXT_TO, "b": 0, "a": 0}  # a day has three words


def index(lines, order):
    """Return the word index (lengths and postings) of a conversation whose *lines* arrive in *order*."""
    lengths: dict[str, int] = {}
    found: dict[tuple[str, str], int] = {}
    there: list[Any] = []
    for place in order:
        each = lines[place]
        before = sorted((one for one in there if one["at"] < each["at"]), key=lambda one: -one["at"])[:2]
        after = sorted((one for one in there if one["at"] > each["at"]), key=lambda one: one["at"])[:2]
        sums, postings = index_words(each, before, after)
        for one in sums:
            lengths[one["id"]] = lengths.get(one["id"], 0) + one["n"]
        for term, places in posted(postings).items():
            for id_, times in places.items():
                found[term, id_] = found.get((term, id_), 0) + times
        there.append(each)
    return lengths, found


@settings(deadline=None)
@given(st.lists(PLAIN, min_size=3, max_size=3), st.permutations(range(3)))
def test_word_index_is_independent_of_arrival_order(contents, order):
    """The first and last line count as neighbours only if they arrive before the middle one."""
    lines = [turn(str(place), content, NOW + place) for place, content in enumerate(contents)]
    lengths, found = index(lines, order)
    for each, total in lengths.items():
        assert total == sum(times for (_, id_), times in found.items() if id_ == each)
    as_met = (0, 2, 1) if order[-1] == 1 else (0, 1, 2)  # the first and the last may arrive before the middle one
    assert (lengths, found) == index(lines, as_met)


def test_neighbours_get_only_the_first_part_of_an_episode():
    far = turn("e", "x" * NEIGHBOUR_LENGTH + " kumquat")
    _, postings = index_words(far, [turn("b", "apple pie and cake")], [])
    assert posted(postings)["kumquat"] == {"e": OWN}


@pytest.mark.parametrize("name", ["speaker", "thread", "source", "source_id"])
def test_unstorable_characters_of_a_field_are_replaced(name):
    assert validated(**{name: "a\x00b\ud800"})[name] == "a\ufffdb\ufffd"
