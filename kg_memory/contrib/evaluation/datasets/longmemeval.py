"""LongMemEval (Wu et al. 2024): 500 questions, each with its own history of dated sessions with an assistant.

A history of S has about 50 sessions, one of M about 500, and one of the oracle only those with evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kg_memory.contrib.evaluation.datasets._files import require
from kg_memory.contrib.evaluation.datasets._records import JsonList
from kg_memory.contrib.evaluation.datasets._sessions import Names, following, messages, moment
from kg_memory.contrib.evaluation.records import ABSTAIN, LENIENT, STRICT, Conversation, Criterion, Dataset, Question
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

FORM = (
    "a JSON list of questions with question_id, question_type, question, answer, question_date, haystack_session_ids, "
    "haystack_dates, haystack_sessions and answer_session_ids"
)
VARIANTS = ("s", "m", "oracle")
_UPDATE = " An answer may tell what was so before, if it says which is so now."
_DURATION = " A number of days, weeks or months may be off by one."
_PREFERENCE = (
    "The expected answer describes what a good reply respects. The answer is right if it recalls the user's own wishes "
    "and experiences correctly and uses them; it need not cover every point."
)


def load(path: Path | None, variant: str | None = None) -> Sequence[Conversation]:
    """Return a conversation for each question of a file, or of the file of *variant* in a folder; none is held.

    The evidence is the turns with ``has_answer``, or where none is marked all turns of the sessions with the answer.
    A question whose id ends with ``_abs`` has no answer and no evidence.

    Raises: `InputError` if it is no such file.
    """
    path = require(path, "longmemeval", "longmemeval_s_cleaned.json, or the folder that it is in")
    if path.is_dir():
        path = _file(path, variant or VARIANTS[0])
    return JsonList(path, FORM, _conversation)


def _file(folder: Path, variant: str) -> Path:
    found = sorted(folder.glob(f"longmemeval_{variant}*.json"))
    if not found:
        raise InputError(f"{folder} has no file longmemeval_{variant}*.json: download it, or give another variant")
    return found[0]


def _conversation(raw: Mapping[str, Any]) -> Conversation:
    name = str(raw["question_id"])
    sessions = zip(raw["haystack_session_ids"], raw["haystack_dates"], raw["haystack_sessions"], strict=True)
    answers = set(raw["answer_session_ids"])
    names = Names()
    episodes: list[EpisodeInput] = []
    marked: set[str] = set()
    told: set[str] = set()
    # The sessions of the oracle are in no order.
    for session, day, turns in sorted(sessions, key=lambda entry: moment(entry[1])):
        at = following(moment(day), episodes)
        for place, message in messages(turns, names.unique(session), at):
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
        asked_at=moment(raw["question_date"]),
        asker="user",
        answerable=answerable,
    )
    return Conversation(name, episodes, [question])


DATASET = Dataset(
    name="longmemeval",
    title="LongMemEval",
    licence="MIT",
    source="https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned",
    load=load,
    criteria=MappingProxyType(
        {
            "": Criterion(),
            "knowledge-update": Criterion(strict=STRICT + _UPDATE, lenient=LENIENT + _UPDATE),
            "temporal-reasoning": Criterion(strict=STRICT + _DURATION, lenient=LENIENT + _DURATION),
            "single-session-preference": Criterion(strict=_PREFERENCE, lenient=_PREFERENCE),
            "abstention": Criterion(strict=ABSTAIN, lenient=ABSTAIN),
        }
    ),
    variants=VARIANTS,
)
