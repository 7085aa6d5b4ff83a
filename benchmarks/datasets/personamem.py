"""Load PersonaMem (Jiang et al. 2025): which of four answers suits a user whose preferences change between sessions?

A question is asked at a place in a history that several questions share. The questions of one place are asked about one
conversation that ends there. The data has no dates: the first session is dated 1 January 2025, each further one a day
later.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import Any

from kg_memory.contrib.evaluation.datasets.reading import JsonRecords, find_file, malformed, messages, require_data
from kg_memory.contrib.evaluation.records import Conversation, Criterion, Dataset, Question
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

_PERSONAMEM = (
    "questions_SIZE.csv with question_id, question_type, user_question_or_message, all_options, correct_answer, "
    "shared_context_id and end_index_in_shared_context, beside shared_contexts_SIZE.jsonl"
)
_SIZES = ("32k", "128k", "1M")
FIRST_SESSION = datetime(2025, 1, 1, 9, tzinfo=UTC)
_OPTION = re.compile(r"\s*\(([a-z])\)", re.IGNORECASE)


def load_personamem(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return one conversation for each place in a history at which questions are asked.

    *path* is a file of questions, or a folder with the file of *variant*. Raises: `InputError` if it is not such a
    file.
    """
    path = find_file(path, "personamem", f"questions_{variant or _SIZES[0]}.csv")
    contexts = path.with_name(path.stem.replace("questions", "shared_contexts", 1) + ".jsonl")
    asked = _multiple_choice(path)

    def build(_: int, raw: Mapping[str, Any]) -> list[Conversation]:
        [(context, turns)] = raw.items()
        places = asked.pop(context, {})
        said = _sessions(context, turns[: max(places, default=0)])
        return [
            Conversation(f"{context}-{end}", [message for place, message in said if place < end], questions)
            for end, questions in sorted(places.items())
        ]

    lines = JsonRecords(require_data(contexts, "personamem", _PERSONAMEM), _PERSONAMEM, build)
    conversations = [*chain.from_iterable(lines)]
    if asked:
        raise InputError(f"{contexts} has no context {min(asked)}, which {path.name} asks about: give {_PERSONAMEM}")
    return conversations


def _multiple_choice(path: Path) -> dict[str, dict[int, list[Question]]]:
    """Return the questions of a file by context id and by their place in the context."""
    asked: dict[str, dict[int, list[Question]]] = defaultdict(lambda: defaultdict(list))
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), start=1):
                with malformed(path, f"record {number}", _PERSONAMEM):
                    place = int(row["end_index_in_shared_context"])
                    asked[row["shared_context_id"]][place].append(_choice_question(row))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV file ({error}): give {_PERSONAMEM}") from None
    if not asked:
        raise InputError(f"{path} has no questions: give {_PERSONAMEM}")
    return asked


def _choice_question(row: Mapping[str, str]) -> Question:
    choices = tuple(str(option) for option in ast.literal_eval(row["all_options"]))
    right = row["correct_answer"].strip("() ").lower()
    answers = [option for option in choices if (match := _OPTION.match(option)) and match[1].lower() == right]
    if len(answers) != 1:
        raise ValueError(f"correct_answer is {row['correct_answer']!r}, which is none of all_options")
    # In an older version of the data, the key of the text is "question".
    text = row["user_question_or_message"] if "user_question_or_message" in row else row["question"]
    return Question(
        id=row["question_id"],
        text=text,
        category=row["question_type"],
        answer=answers[0],
        choices=choices,
        asker="user",
    )


def _sessions(context: str, turns: list[dict[str, Any]]) -> list[tuple[int, EpisodeInput]]:
    """Return (place, message) for the messages of a history; a message with the role ``system`` begins a session."""
    numbers = list(accumulate(turn["role"] == "system" for turn in turns))
    said: list[tuple[int, EpisodeInput]] = []
    for number, several in groupby(range(len(turns)), key=lambda place: numbers[place]):
        session = list(several)
        at = FIRST_SESSION + timedelta(days=max(0, number - 1))
        spoken = messages([turns[place] for place in session], f"{context}/{number}", at)
        said += [(session[0] + place, message) for place, message in spoken]
    return said


PERSONAMEM = Dataset(
    name="personamem",
    title="PersonaMem",
    licence="none is stated in its repository: see the page of the data",
    source="https://huggingface.co/datasets/bowen-upenn/PersonaMem",
    load=load_personamem,
    criteria={"": Criterion("rules")},
    variants=_SIZES,
)
