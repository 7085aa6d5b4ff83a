"""LoCoMo (Maharana et al. 2024) and BEAM (Tavakoli et al. 2025) as conversations with questions and their evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kg_memory.cli.readers import formats, read
from kg_memory.models.graph import EpisodeInput

LOCOMO_CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop"}
"""Category 5 has no answer."""
_TURN = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the turns that hold its answer."""

    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, which is read into a namespace of its name, and what is asked about it."""

    name: str
    episodes: list[EpisodeInput]
    questions: list[Question]

    @property
    def turns(self) -> list[str]:
        """The names of the turns, in their order."""
        return [turn(each.source_id) for each in self.episodes]


def turn(source_id: str | None) -> str:
    """Return a turn's name in its conversation: what follows the last slash of its id."""
    return (source_id or "").rpartition("/")[2]


def locomo_conversations(path: Path) -> list[Conversation]:
    """Return the conversations of a LoCoMo file with the questions that have evidence; none if it is no such file."""
    samples = formats.samples(json.loads(path.read_text(encoding="utf-8"))) or []
    return [_sample(each, number) for number, each in enumerate(samples, start=1)]


def _sample(sample: Mapping[str, Any], number: int) -> Conversation:
    name = str(sample.get("sample_id") or f"locomo-{number}")
    episodes = [each for each in formats.read_locomo(sample, name) if isinstance(each, EpisodeInput)]
    known = {turn(each.source_id) for each in episodes if each.source_id}
    questions = []
    for each in sample.get("qa", ()):
        # The data set writes a few ids in other ways, as "D:11:26" or several in one string.
        named = _TURN.findall(" ".join(each.get("evidence", ())))
        evidence = known.intersection(f"D{session}:{int(place)}" for session, place in named)
        if each.get("category") in LOCOMO_CATEGORIES and evidence:
            questions.append(Question(each["question"], LOCOMO_CATEGORIES[each["category"]], frozenset(evidence)))
    return Conversation(name, episodes, questions)


def beam_conversations(data: Path, wanted: str | None = None) -> list[Conversation]:
    """Return the BEAM chats of a folder with the questions that have evidence."""
    return [_chat(each) for each in beam_chats(data, wanted)]


def beam_chats(data: Path, wanted: str | None = None) -> list[Path]:
    """Return the folders of the chats in their order; only those *wanted* by name, as in ``1,2``."""
    names = wanted.split(",") if wanted else None
    found = [path.parent for path in data.glob("*/chat.json") if names is None or path.parent.name in names]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def beam_probing(chat: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the questions about a chat by their kind, as the data set has them."""
    path = chat / "probing_questions" / "probing_questions.json"
    probing: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return probing


def beam_namespace(chat: Path) -> str:
    """Return the namespace that a chat is read into."""
    return f"beam-{chat.name}"


def _chat(chat: Path) -> Conversation:
    episodes = list(read(chat / "chat.json"))
    known = {turn(each.source_id) for each in episodes}
    questions = []
    for kind, several in beam_probing(chat).items():
        for each in several:
            evidence = known.intersection(_ids(each.get("source_chat_ids")))
            if evidence:
                questions.append(Question(each["question"], kind, frozenset(evidence)))
    return Conversation(beam_namespace(chat), episodes, questions)


def _ids(given: Any) -> Iterator[str]:
    """Yield the ids in a list, in lists of it, or in groups by name."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list):
        for each in given:
            yield from _ids(each)
    elif given is not None:
        yield str(given)
