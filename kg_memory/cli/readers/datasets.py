"""LoCoMo files (Maharana et al. 2024): long conversations of two people, in dated sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kg_memory.cli.readers.records import Item, build, digest, to_json
from kg_memory.errors import InputError
from kg_memory.text.message_fields import parse_time, plain_text

_SESSION = re.compile(r"session_(\d+)")


def samples(document: Any) -> list[Mapping[str, Any]] | None:
    """Return the conversations of *document*, or ``None`` if it has none."""
    samples_ = [document] if isinstance(document, Mapping) else document
    if not isinstance(samples_, list) or not samples_ or not all(_is_sample(sample) for sample in samples_):
        return None
    return samples_


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


# The data set marks the end of each user message with the numbers of its plan, as in "->-> 1,4" or "->-> 2,N/A".
_MARK = re.compile(r"\s*->->\s*(?:\d+|N/A)(?:\s*,\s*(?:\d+|N/A))*\s*$")


def is_beam(document: Any) -> bool:
    """Tell whether *document* is a list of batches with turns."""
    return (
        isinstance(document, list)
        and bool(document)
        and all(isinstance(batch, Mapping) and isinstance(batch.get("turns"), list) for batch in document)
    )


def read_beam(document: Any, thread: str) -> Iterator[Item]:
    """Yield all messages; thread ``<chat>/session_<batch>``, id ``<chat>/<id>``, message i is i minutes into the day.

    All chats of the set lie in files of one name, so *thread* gets a digest of the first words behind it.
    """
    thread = f"{thread}-{digest(to_json(document[0]['turns'][:1]))[:8]}"
    for number, batch in enumerate(document, start=1):
        session = f"{thread}/session_{batch.get('batch_number', number)}"
        messages = [message for group in batch["turns"] for message in (group if isinstance(group, list) else [group])]
        day: datetime | None = None
        minutes = 0
        for index, message in enumerate(messages, start=1):
            try:
                anchor = _anchor(message, batch if index == 1 else {})
                day, minutes = (anchor, 0) if anchor is not None else (day, minutes + 1)
                yield build(
                    content=_MARK.sub("", plain_text(message.get("content"))),
                    speaker=message.get("role"),
                    at=None if day is None else day + timedelta(minutes=minutes),
                    thread=session,
                    source_id=None if message.get("id") is None else f"{thread}/{message['id']}",
                )
            except InputError as error:
                yield InputError(f"{session}, message {index}: {error}")


def _anchor(message: Any, batch: Mapping[str, Any]) -> datetime | None:
    if not isinstance(message, Mapping):
        raise InputError("this is no message: write it as an object with role and content")
    anchor = message.get("time_anchor") or batch.get("time_anchor")
    return None if anchor is None else parse_time(anchor)
