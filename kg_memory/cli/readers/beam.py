"""BEAM chats: batches of turns between a user and an assistant, each batch with a day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kg_memory.cli.readers.place import Item, digest
from kg_memory.cli.readers.record import build, plain_text, to_json
from kg_memory.cli.readers.times import parse_time
from kg_memory.errors import InputError

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
