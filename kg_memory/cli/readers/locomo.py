"""LoCoMo files (Maharana et al. 2024): long conversations of two people, in dated sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from kg_memory.cli.readers.place import Item
from kg_memory.cli.readers.record import build
from kg_memory.cli.readers.times import parse_time
from kg_memory.errors import InputError

_SESSION = re.compile(r"session_(\d+)")


def samples(document: Any) -> list[Mapping[str, Any]] | None:
    """Return the conversations of *document*, or ``None`` if it has none."""
    found = [document] if isinstance(document, Mapping) else document
    if not isinstance(found, list) or not found or not all(_is_sample(each) for each in found):
        return None
    return found


def _is_sample(value: Any) -> bool:
    conversation = value.get("conversation") if isinstance(value, Mapping) else None
    return isinstance(conversation, Mapping) and any(_SESSION.fullmatch(key) for key in conversation)


def read_locomo(document: Any, thread: str) -> Iterator[Item]:
    """Yield all turns of all conversations, in the order of their sessions.

    Thread ``<sample_id>/session_<n>``, id ``<sample_id>/<dia_id>``; turn i is i minutes after the
    session's time. The caption of a shared photo follows the text.
    """
    for number, sample in enumerate(samples(document) or [], start=1):
        name = str(sample.get("sample_id") or f"{thread}-{number}")
        conversation = sample["conversation"]
        for session in sorted(filter(_SESSION.fullmatch, conversation), key=lambda key: int(key.split("_")[1])):
            yield from _session(conversation[session], conversation.get(f"{session}_date_time"), f"{name}/{session}")


def _session(turns: Any, time: Any, thread: str) -> Iterator[Item]:
    try:
        start = None if time is None else parse_time(time)
    except InputError as error:
        yield InputError(f"{thread}: {error}")
        start = None
    for index, turn in enumerate(turns if isinstance(turns, list) else []):
        try:
            yield build(
                content=_words(turn),
                speaker=turn.get("speaker"),
                at=None if start is None else start + timedelta(minutes=index),
                thread=thread,
                source_id=f"{thread.rpartition('/')[0]}/{turn['dia_id']}" if turn.get("dia_id") else None,
            )
        except InputError as error:
            yield InputError(f"{thread}, turn {index + 1}: {error}")


def _words(turn: Any) -> str:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("text"), str):
        raise InputError("it has no text: add it, or take the turn out")
    caption = turn.get("blip_caption")
    return f"{turn['text']}\n[photo: {caption}]" if caption else str(turn["text"])
