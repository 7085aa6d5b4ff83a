"""LongMemEval and BEAM: chats of a user with an assistant.

LongMemEval (Wu et al. 2024) has 500 questions, each with its own history of dated sessions: about 50 in variant ``s``,
about 500 in ``m``, and only the sessions with evidence in ``oracle``.

BEAM (Tavakoli et al. 2025) has chats of 100K to 10M tokens, and ten kinds of questions with rubrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kg_memory.contrib.chats import read
from kg_memory.contrib.evaluation.datasets import reading
from kg_memory.contrib.evaluation.records import ABSTAIN, LENIENT, STRICT, Conversation, Criterion, Dataset, Question
from kg_memory.contrib.importers.moving import read_json
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

_LONGMEMEVAL = (
    "a JSON list of questions with question_id, question_type, question, answer, question_date, haystack_session_ids, "
    "haystack_dates, haystack_sessions and answer_session_ids"
)
_HISTORIES = ("s", "m", "oracle")
_UPDATE = " An answer may tell what was so before, if it says which is so now."
_DURATION = " A number of days, weeks or months may be off by one."
_PREFERENCE = (
    "The expected answer describes what a good reply respects. The answer is right if it recalls the user's own wishes "
    "and experiences correctly and uses them; it need not cover every point."
)


def load_longmemeval(path: Path | None, variant: str | None = None) -> Iterable[Conversation]:
    """Return the conversations in a LongMemEval file, one for each question; each is loaded when iterated."""
    path = reading.find_file(path, "longmemeval", f"longmemeval_{variant or _HISTORIES[0]}*.json")
    return reading.JsonRecords(path, _LONGMEMEVAL, _longmemeval_conversation)


def _longmemeval_conversation(_: int, raw: Mapping[str, Any]) -> Conversation:
    """Convert *raw*, a record in a LongMemEval file, to a conversation: all of its sessions, and its one question."""
    name = str(raw["question_id"])
    sessions = zip(raw["haystack_session_ids"], raw["haystack_dates"], raw["haystack_sessions"], strict=True)
    answers = set(raw["answer_session_ids"])
    names = reading.Names()
    episodes: list[EpisodeInput] = []
    marked: set[str] = set()
    told: set[str] = set()
    # In the variant `oracle`, sessions are not sorted.
    for session, day, turns in sorted(sessions, key=lambda entry: reading.moment(entry[1])):
        for place, message in reading.messages(
            turns, names.unique(session), reading.following(reading.moment(day), episodes)
        ):
            episodes.append(message)
            source = str(message.source_id)
            if turns[place].get("has_answer"):
                marked.add(source)
            if session in answers:
                told.add(source)
    answerable = not name.endswith("_abs")
    question = Question(
        id=name,
        text=raw["question"],
        category=raw["question_type"] if answerable else "abstention",
        answer=str(raw["answer"]),
        evidence=frozenset(marked or told) if answerable else frozenset(),
        asked_at=reading.moment(raw["question_date"]),
        asker="user",
        answerable=answerable,
    )
    return Conversation(name, episodes, [question])


LONGMEMEVAL = Dataset(
    name="longmemeval",
    title="LongMemEval",
    licence="MIT",
    source="https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned",
    load=load_longmemeval,
    criteria={
        "": Criterion(),
        "knowledge-update": Criterion(strict=STRICT + _UPDATE, lenient=LENIENT + _UPDATE),
        "temporal-reasoning": Criterion(strict=STRICT + _DURATION, lenient=LENIENT + _DURATION),
        "single-session-preference": Criterion(strict=_PREFERENCE, lenient=_PREFERENCE),
        "abstention": Criterion(strict=ABSTAIN, lenient=ABSTAIN),
    },
    variants=_HISTORIES,
)


_LENGTHS = ("100K", "500K", "1M")
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")


def load_beam(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return the chats in *path*, the folder of the BEAM data set, with their questions.

    Errors: `InputError`.
    """
    path = reading.require_data(path, "beam", "the folder `chats`")
    found = beam_chats(path / variant if variant else path) or beam_chats(path / _LENGTHS[0])
    if not found:
        raise InputError(f"no BEAM chat in {path}: give a folder that has a folder with a chat.json for each chat")
    return [_beam_conversation(chat) for chat in found]


def beam_chats(data: Path) -> list[Path]:
    """Return the folders of the BEAM chats in the folder *data*, in numeric order."""
    return sorted((path.parent for path in data.glob("*/chat.json")), key=lambda path: (len(path.name), path.name))


def beam_questions(chat: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the questions about a BEAM chat by kind, as they are in the file: ``{"abstention": [{...}], ...}``.

    *chat* is the folder of the chat.
    """
    path = chat / "probing_questions" / "probing_questions.json"
    found: dict[str, list[dict[str, Any]]] = read_json(reading.require_data(path, "beam", "a folder with questions"))
    return found


def beam_name(chat: Path) -> str:
    """Return the name of the conversation in *chat*, the folder of a BEAM chat: ``"beam-1"``."""
    return f"beam-{chat.name}"


def _beam_conversation(chat: Path) -> Conversation:
    episodes = list(read(chat / "chat.json"))
    known = {(episode.source_id or "").rpartition("/")[2]: episode.source_id or "" for episode in episodes}
    questions = []
    for kind, entries in beam_questions(chat).items():
        for place, entry in enumerate(entries, start=1):
            with reading.malformed(chat, f"question {place} of {kind}", "a question of BEAM"):
                questions.append(_rubric_question(entry, kind, place, known))
    return Conversation(beam_name(chat), episodes, questions)


def _rubric_question(entry: Mapping[str, Any], kind: str, place: int, known: Mapping[str, str]) -> Question:
    evidence = frozenset(known[number] for number in _ids(entry.get("source_chat_ids")) if number in known)
    answer = next((str(entry[name]) for name in _ANSWERS if entry.get(name)), None)
    rubric = tuple(str(item) for item in entry.get("rubric") or ())
    answerable = kind != "abstention"
    return Question(
        f"{kind}-{place}", str(entry["question"]), kind, answer, evidence, rubric=rubric, answerable=answerable
    )


def _ids(given: Any) -> Iterator[str]:
    """Yield all message ids in nested lists or dicts of lists: ``{"a": [1, [2]]}`` -> ``"1"``, ``"2"``."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list):
        for part in given:
            yield from _ids(part)
    elif given is not None:
        yield str(given)


BEAM = Dataset(
    name="beam",
    title="BEAM",
    licence="CC BY-SA 4.0",
    source="https://github.com/mohammadtavakoli78/BEAM, folder chats",
    load=load_beam,
    criteria={"": Criterion("rubric"), "event_ordering": Criterion("rubric", ordered=True)},
    variants=_LENGTHS,
)
