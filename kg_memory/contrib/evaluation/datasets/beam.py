"""BEAM (Tavakoli et al. 2025): chats with an assistant, 100K to 10M tokens, and ten kinds of questions with rubrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kg_memory.contrib.chats import read
from kg_memory.contrib.evaluation.datasets import _files
from kg_memory.contrib.evaluation.records import Conversation, Criterion, Dataset, Question
from kg_memory.errors import InputError

VARIANTS = ("100K", "500K", "1M")
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")


def load(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return the chats of a folder that has a folder with a ``chat.json`` for each, or such folders by variant.

    Raises: `InputError` if there is none.
    """
    path = _files.require(path, "beam", "the folder `chats`")
    found = chats(path / variant if variant else path) or chats(path / VARIANTS[0])
    if not found:
        raise InputError(f"{path} has no BEAM chat: give the folder of folders with a chat.json each")
    return [_chat(chat) for chat in found]


def chats(data: Path) -> list[Path]:
    """Return the folders of the chats in *data*, in their order."""
    found = [path.parent for path in data.glob("*/chat.json")]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def probing(chat: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the questions about a chat by their kind, as the data set has them."""
    path = chat / "probing_questions" / "probing_questions.json"
    found: dict[str, list[dict[str, Any]]] = _files.read_json(_files.require(path, "beam", "a folder with questions"))
    return found


def namespace(chat: Path) -> str:
    """Return the name of the conversation in the folder *chat*."""
    return f"beam-{chat.name}"


def _chat(chat: Path) -> Conversation:
    episodes = list(read(chat / "chat.json"))
    known = {(episode.source_id or "").rpartition("/")[2]: episode.source_id or "" for episode in episodes}
    questions = []
    for kind, entries in probing(chat).items():
        for place, entry in enumerate(entries, start=1):
            try:
                questions.append(_question(entry, kind, place, known))
            except (AttributeError, KeyError, TypeError) as error:
                raise InputError(f"{chat}: question {place} of {kind} is malformed ({error!r}); correct it") from None
    return Conversation(namespace(chat), episodes, questions)


def _question(entry: Mapping[str, Any], kind: str, place: int, known: Mapping[str, str]) -> Question:
    evidence = frozenset(known[number] for number in _ids(entry.get("source_chat_ids")) if number in known)
    answer = next((str(entry[name]) for name in _ANSWERS if entry.get(name)), None)
    rubric = tuple(str(item) for item in entry.get("rubric") or ())
    answerable = kind != "abstention"
    return Question(
        f"{kind}-{place}", str(entry["question"]), kind, answer, evidence, rubric=rubric, answerable=answerable
    )


def _ids(given: Any) -> Iterator[str]:
    """Yield the ids in a list, in lists of it, or in groups by name."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list):
        for part in given:
            yield from _ids(part)
    elif given is not None:
        yield str(given)


DATASET = Dataset(
    name="beam",
    title="BEAM",
    licence="CC BY-SA 4.0",
    source="https://github.com/mohammadtavakoli78/BEAM, folder chats",
    load=load,
    criteria={"": Criterion("rubric"), "event_ordering": Criterion("rubric", ordered=True)},
    variants=VARIANTS,
)
