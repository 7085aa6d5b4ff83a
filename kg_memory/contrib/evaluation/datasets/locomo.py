"""LoCoMo (Maharana et al. 2024): ten long conversations of two people in dated sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kg_memory.contrib.chats import formats
from kg_memory.contrib.evaluation.datasets import _files
from kg_memory.contrib.evaluation.records import ABSTAIN, Conversation, Criterion, Dataset, Question
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

EVENTS = "event_summary"
CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
_TURN = re.compile(r"D:?(\d+):(\d+)")


def load(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return the conversations of a LoCoMo file.

    Raises: `InputError` if it is no such file.
    """
    del variant
    path = _files.require(path, "locomo", "locomo10.json")
    samples = formats.samples(_files.read_json(path))
    if not samples or not all(isinstance(sample.get("qa"), list) for sample in samples):
        raise InputError(f"{path} is no LoCoMo file: give a JSON list of objects with a `conversation` and a `qa`")
    return [_sample(sample, number, path) for number, sample in enumerate(samples, start=1)]


def _sample(sample: Mapping[str, Any], number: int, path: Path) -> Conversation:
    name = str(sample.get("sample_id") or f"locomo-{number}")
    items = formats.read_locomo({**sample, "sample_id": name}, name)
    episodes = [item for item in items if isinstance(item, EpisodeInput)]
    known = {episode.source_id for episode in episodes if episode.source_id}
    questions = []
    for place, entry in enumerate(sample["qa"], start=1):
        try:
            questions.append(_question(entry, f"{place}", name, known))
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"{path}: question {place} of {name} is malformed ({error!r}); correct it") from None
    try:
        questions += _event_questions(sample.get("event_summary") or {})
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: the event_summary of {name} is malformed ({error!r}); correct it") from None
    return Conversation(name, episodes, questions)


def _event_questions(sessions: Mapping[str, Any]) -> Iterator[Question]:
    """Yield a question about the events of each person around each session; each event is an item of its rubric."""
    for session, people in sessions.items():
        for person, events in people.items():
            if person != "date" and events:
                text = f"Sum up what happened in the life of {person} around {people['date']}: list each event."
                rubric = tuple(map(str, events))
                yield Question(f"{session}-{person}", text, EVENTS, "; ".join(rubric), rubric=rubric)


def _question(entry: Mapping[str, Any], number: str, name: str, known: set[str]) -> Question:
    # The data set writes a few ids in other ways, as "D:11:26" or several in one string.
    turns = _TURN.findall(" ".join(entry.get("evidence") or ()))
    evidence = known.intersection(f"{name}/D{session}:{int(place)}" for session, place in turns)
    category = CATEGORIES[entry["category"]]
    answerable = category != "adversarial"
    answer = str(entry["answer"]) if answerable else None
    return Question(number, str(entry["question"]), category, answer, frozenset(evidence), answerable=answerable)


DATASET = Dataset(
    name="locomo",
    title="LoCoMo",
    licence="CC BY-NC 4.0: evaluation only",
    source="https://github.com/snap-research/locomo, file data/locomo10.json",
    load=load,
    criteria={
        "": Criterion(),
        "adversarial": Criterion(strict=ABSTAIN, lenient=ABSTAIN),
        EVENTS: Criterion("rubric"),
    },
    left_out=frozenset({"adversarial", EVENTS}),
)
