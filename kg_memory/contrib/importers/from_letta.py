"""Import a Letta agent file (``.af``), in its old or new form: memory blocks, messages, archival passages and files.

In every agent file, ids count from 0. So each imported record gets a hash of its content as its id.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kg_memory.contrib.importers import moving
from kg_memory.errors import InputError
from kg_memory.falkor.wire import Row
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from kg_memory.text.identity import block_thread

SOURCE = "letta"
LONGEST = 1 << 26
"""The most bytes of a file. It is one JSON document, parsed in memory."""
PASSAGES = ("passages", "archival_passages", "archival_memory")
SPEAKING = "letta_v1_agent"
"""The agent type whose text is meant for the user even beside tool calls; for other types it is a thought."""
EVENTS = ("heartbeat", "login", "system_alert")
"""Types of events that Letta servers write as user messages."""
HINT = "pass a file exported by Letta"


def read_letta(path: Path, group: str | None = None) -> moving.Reading:
    """Return a function that yields one agent's records in a Letta agent file, to import them.

    Errors: `InputError`.
    """
    document = _load_json_object(path)
    agents = dict(_agents(path, document))
    name = moving.choose_owner(agents, group, "agent")
    return partial(_records, path, document, name, agents[name])


def _load_json_object(path: Path) -> Row:
    try:
        if path.stat().st_size > LONGEST:
            raise InputError(f"{path} has over {LONGEST:,} bytes; export each agent to a file of its own")
        document = moving.parse_json(path.read_bytes())
        if isinstance(document, str):  # some files are JSON inside a JSON string
            document = moving.parse_json(document.encode())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path} as JSON ({error}); {HINT}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path} must have a JSON object, got {type(document).__name__}; {HINT}")
    return document


def _agents(path: Path, document: Row) -> Iterator[tuple[str, Row]]:
    """Yield (name, agent) for each agent in a parsed Letta file; an id makes equal names unique: "bot (agent-1)".

    Errors: `InputError` if there are none.
    """
    if "agents" not in document and ("core_memory" in document or "messages" in document):
        document = {"agents": [document]}
    agents = list(_rows(str(path), document, "agents"))
    if not agents:
        raise InputError(f"{path} has no agents; {HINT}")
    names = [moving.read_text(place, agent, "name", "id") or "agent" for place, agent in agents]
    for name, (_, agent) in zip(names, agents, strict=True):
        yield (name if names.count(name) == 1 else f"{name} ({agent.get('id')})"), agent


def _rows(place: str, record: Row, *names: str) -> Iterator[tuple[str, Row]]:
    """Yield (place, object) for each JSON object in the lists under the keys *names* of *record*."""
    for name in names:
        rows = record.get(name) or []
        if not isinstance(rows, list):
            raise InputError(f"{place}: {name} must be a list, got {type(rows).__name__}; {HINT}")
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise InputError(f"{place}: {name} {number} must be an object, got {type(row).__name__}; {HINT}")
            yield f"{place}, {name} {number}", row


def _records(path: Path, document: Row, name: str, agent: Row, left_out: Counter[str]) -> Iterator[moving.Record]:
    for place, block in _blocks(str(path), document, agent):
        yield from _block(place, name, block, left_out)
    for place, message in _rows(str(path), agent, "messages"):
        yield from _message(place, name, agent, message, left_out)
    for place, passage in (*_rows(str(path), document, *PASSAGES[:2]), *_rows(str(path), agent, *PASSAGES)):
        if passage.get("agent_id") in (None, agent.get("id")):
            yield from _passage(place, name, passage)
    attached = [link.get("file_id") for _, link in _rows(str(path), agent, "files_agents")]
    for place, file in _rows(str(path), document, "files"):
        if file.get("id") in attached:
            yield from _file(place, name, file, left_out)


def _blocks(path: str, document: Row, agent: Row) -> Iterator[tuple[str, Row]]:
    """Yield (place, block) for each memory block of *agent*, including the shared blocks."""
    yield from _rows(path, agent, "core_memory", "memory_blocks")
    ids = agent.get("block_ids") or []
    if not isinstance(ids, list):
        raise InputError(f"{path}: block_ids must be a list, got {type(ids).__name__}; {HINT}")
    if document is not agent:
        yield from ((place, block) for place, block in _rows(path, document, "blocks") if block.get("id") in ids)


def _block(place: str, name: str, block: Row, left_out: Counter[str]) -> Iterator[moving.Record]:
    label, value = moving.require_text(place, block, "label", hint=HINT), moving.read_text(place, block, "value")
    if value is None:
        left_out["empty blocks"] += 1
        return
    thread = block_thread(re.sub(r"[^\w-]", "_", label)[:64])
    at = moving.read_time(place, block, "updated_at", "created_at")
    yield _record(place, name, value, kind=EpisodeKind.BLOCK, speaker=name, thread=thread, at=at)


def _message(place: str, name: str, agent: Row, message: Row, left_out: Counter[str]) -> Iterator[moving.Record]:
    """Yield a record for each text in a message of a user or an assistant; count others in *left_out*."""
    role = message.get("role")
    at = moving.read_time(place, message, "created_at")
    thread = moving.read_text(place, message, "conversation_id") or name
    if role == "user":
        texts, speaker = [_unpack(_text(place, message))], moving.read_text(place, message, "name") or "user"
        if texts == [None]:
            left_out["events of Letta, such as heartbeats"] += 1
            return
    elif role == "assistant":
        texts, speaker = list(_answers(place, agent, message)), "assistant"
    else:
        left_out[f"messages of the role {role!s:.20}"] += 1
        return
    if not any(texts):
        left_out["messages without a text for the user"] += 1
    for text in filter(None, texts):
        yield _record(place, name, text, speaker=speaker, thread=thread, at=at)


def _text(place: str, message: Row) -> str:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or moving.read_text(place, message, "text") or ""
    parts = ((at, part) for at, part in _rows(place, message, "content") if part.get("type") == "text")
    return "\n".join(filter(None, (moving.read_text(at, part, "text") for at, part in parts)))


def _unpack(text: str) -> str | None:
    """Return the text of a user message, which may be wrapped in JSON; None for an event.

    ``{"type": "user_message", "message": "Hi"}`` -> "Hi".
    """
    packed = _parse(text)
    kind = packed.get("type") if isinstance(packed, dict) else None
    if kind == "user_message" and isinstance(packed.get("message"), str):
        return str(packed["message"])
    return None if kind in EVENTS else text


def _answers(place: str, agent: Row, message: Row) -> Iterator[str]:
    """Yield the texts of an assistant message that the user saw: those sent by the tool "send_message".

    Before them comes its own text if it calls no tool, or if the agent's type is `SPEAKING`.
    """
    calls = list(_rows(place, message, "tool_calls"))
    if not calls or agent.get("agent_type") == SPEAKING:
        yield _text(place, message)
    for _, call in calls:
        function = call.get("function")
        if isinstance(function, dict) and function.get("name") == "send_message":
            yield _sent(function.get("arguments"))


def _parse(text: str) -> Any:
    """Return the JSON value in *text*; None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _sent(arguments: Any) -> str:
    values = _parse(arguments) if isinstance(arguments, str) else arguments
    text = values.get("message") if isinstance(values, dict) else None
    return text if isinstance(text, str) else ""


def _passage(place: str, name: str, passage: Row) -> Iterator[moving.Record]:
    text, tags = moving.require_text(place, passage, "text", hint=HINT), passage.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"{place}: tags must be a list of texts, got {tags!r:.80}; {HINT}")
    at = moving.read_time(place, passage, "created_at")
    yield _record(place, name, text, kind=EpisodeKind.TEXT, at=at, labels={"tags": tags} if tags else {})


def _file(place: str, name: str, file: Row, left_out: Counter[str]) -> Iterator[moving.Record]:
    text = moving.read_text(place, file, "content")
    if text is None:
        left_out["files without their text"] += 1
        return
    thread = moving.read_text(place, file, "file_name", "original_file_name", "id")
    at = moving.read_time(place, file, "file_last_modified_date", "file_creation_date")
    yield _record(place, name, text, kind=EpisodeKind.TEXT, thread=thread, at=at)


def _record(place: str, name: str, content: str, **fields: Any) -> moving.Record:
    """Return a message as a record to import, with a hash of its content as its id: a second import adds nothing."""
    own = json.dumps([name, content, *(str(fields.get(field)) for field in ("kind", "speaker", "thread", "at"))])
    id_ = hashlib.sha256(own.encode()).hexdigest()[:24]
    return moving.Record(place, EpisodeInput(content=content, source=SOURCE, source_id=f"af/{id_}", **fields))
