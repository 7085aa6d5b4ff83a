"""Step 1, receive: validate the episode (a message, text or record) and save it, before anything else can fail."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from reprlib import repr as short
from typing import Any

from kg_memory.errors import InputError, MemoryPaused, NotFound
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.queries.usage import NO_LEDGER
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.declared import complete_content
from kg_memory.ingestion.filter import BLOCK, Flag, injection_flags, without_contexts
from kg_memory.ingestion.interrupted import READER, REFUSED, count_interruption
from kg_memory.ingestion.postings import NEIGHBOUR_LENGTH, index_words, readable_content
from kg_memory.ingestion.records import EpisodeRecord, Piece, PreviousMessage
from kg_memory.ingestion.state import Draft, Update, spare_loop
from kg_memory.models.graph import EpisodeKind
from kg_memory.models.labels import Labels, encode_labels, read_labels
from kg_memory.runtime.effects import fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import NO_REDACTION, RedactHook, Settings
from kg_memory.temporal.interval import iso, local_time, split_local
from kg_memory.text.identity import episode_id, name_of_speaker, replace_unstorable, thread_key
from kg_memory.text.message_fields import has_more_values
from kg_memory.text.payloads import hide_payloads
from kg_memory.text.redaction import redact_json, redact_text
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace, validate_number, validate_text

FIXED = ("kind", "speaker", "at", "offset", "created_at", "thread", "thread_key", "source", "trust")
"""The fields that keep their stored values when the same episode is added again."""
LONGEST_FIELD = 10_000
"""The most characters of a speaker, thread, source or source id."""
DEEPEST = 200
"""The most nested lists and objects in a JSON record."""
MOST_VALUES = 100_000
"""The most values in a JSON record; parsing more would block all threads for long."""
RECORDS = (EpisodeKind.JSON, EpisodeKind.FACT)
"""The kinds of episodes whose content is JSON."""
FINISHED = ("done", "skipped")
"""The statuses of episodes that are not read again."""
FORGOTTEN = "the episode was forgotten before it was read, and is not stored: add it again to remember it"
PAUSED = "this namespace is paused: nothing new is remembered until memory.unpause(namespace=...)"
JOINTS = ("\n\n", "\n", "。", ". ", "! ", "? ", "; ", ", ", " ")
"""The separators after which a text may be split, best first."""


def receive(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 1 of ingestion: validate and save the episode, and mark it as being processed.

    Errors: `InputError`, `MemoryPaused`, `EpisodeAborted` if too many processes died while they processed it.
    """
    return (yield from _save(draft, settings, reading=True))


def after_receive(state: Row) -> str:
    """Return the name of the step after `receive`: "extract", or "done" if the episode was already processed."""
    return "done" if state["done"] else "extract"


def accept(given: Row, settings: Settings) -> Flow[Update]:
    """Validate and save the message or text in *given*, without extracting facts; errors as for `receive`."""
    draft = Draft.of(given)
    return (yield from spare_loop(draft, _save(draft, settings, reading=False)))


def sketch(given: Row, settings: Settings) -> Flow[Draft]:
    """Validate *given*, an `IngestionInput`, and return its `Draft` without saving."""
    episode = validate_episode(given, settings, (yield from now()))
    before, _ = yield from _read_neighbours(episode, settings)
    return Draft(
        namespace=validate_namespace(given["namespace"]),
        episode=replace(episode, at_iso=iso(local_time(episode.at, episode.offset))),
        previous=_previous_messages(before[: settings.previous_messages]),
        pieces=_pieces_to_read(episode, settings),
    )


def _save(draft: Draft, settings: Settings, *, reading: bool) -> Flow[Update]:
    """Validate and save the input in *draft*; return the new fields of *draft*. Errors as for `receive`."""
    created_at = yield from now()
    reread = draft.retry_from is not None
    # An input without a date keeps the date of its first try.
    state = {**draft.given, "namespace": draft.namespace} | ({"at": draft.episode.at_iso} if reread else {})
    episode = validate_episode(state, settings, created_at)
    saved, before = yield from _store(episode, settings, state, reading=reading)
    finished = saved["status"] in FINISHED
    interrupted = 0
    if reading and not finished and (saved["reader"] or saved["interrupted"]):
        interrupted = yield from count_interruption(saved, episode.id, created_at)
    if saved["content"] != episode.content:
        raise InputError(
            f"source_id {episode.source_id!r} is already stored with another content: stored episodes never change, "
            "give the new text another source_id"
        )
    if not saved["new"]:
        stored = replace(episode, **{name: saved[name] for name in FIXED})
        moved = (stored.at, stored.thread_key) != (episode.at, episode.thread_key)
        if moved or any(row["at"] == stored.at for row in before):
            before, _ = yield from _read_neighbours(stored, settings)
        episode = stored
    episode = replace(episode, at_iso=iso(local_time(episode.at, episode.offset)))
    return {
        "namespace": validate_namespace(draft.namespace),
        "episode": episode,
        "new": saved["new"] or (reread and draft.new),
        "retry_from": None,
        "done": finished,
        "interrupted": interrupted,
        "status": saved["status"],
        "answers": dict(zip(saved["answers"][::2], saved["answers"][1::2], strict=True)),
        "forgotten": saved["forgotten"],
        "previous": _previous_messages(before[: settings.previous_messages]),
        "pieces": _pieces_to_read(episode, settings),
        "entities": (),
        "earlier": (),
        "facts": (),
        "later": (),
        "part": 0,
    }


def _store(episode: EpisodeRecord, settings: Settings, state: Row, *, reading: bool) -> Flow[tuple[Row, list[Row]]]:
    """Store *episode*; return its database row, and rows of earlier messages in its thread, latest first.

    Errors: `InputError` if it was saved before and deleted since; `NotFound`; `MemoryPaused`.
    """
    columns = asdict(episode)
    del columns["at_iso"]
    status = {"status": "skipped", "reason": BLOCK} if episode.kind == EpisodeKind.BLOCK else {"status": "saved"}
    saved_id, based_on = state.get("saved_id"), state.get("based_on") or ()
    needed = [*based_on, *([saved_id] if saved_id is not None else [])]
    while True:
        before, after = yield from _read_neighbours(episode, settings)
        lengths, postings = index_words(columns, before, after)
        around = [neighbour["id"] for neighbour in (*before, *after)]
        rows = yield from write(
            queries.SAVE_EPISODE,
            episode={**columns, **status},
            around=[*around, *needed],
            lengths=lengths,
            postings=postings,
            reading=reading,
            reader=READER.id,
            begun_at=episode.created_at,
            **NO_LEDGER,
        )
        if rows:
            return rows[0], before
        if saved_id is not None and not (yield from fetch(queries.STATUS, id=saved_id)):
            raise InputError(FORGOTTEN)
        for id_ in based_on:
            if not (yield from fetch(queries.STATUS, id=id_)):
                raise NotFound(f"based_on must be the id of a stored episode, got {id_!r}; read the latest version")
        if (yield from fetch(queries.PAUSED)):
            raise MemoryPaused(PAUSED)


def _read_neighbours(episode: EpisodeRecord, settings: Settings) -> Flow[tuple[list[Row], list[Row]]]:
    """Return the database rows of the messages before *episode* in its thread, and after it, nearest first."""
    if episode.kind == EpisodeKind.BLOCK or (episode.is_declared and episode.thread is None):
        return [], []
    rows = yield from fetch(
        queries.NEIGHBOURS,
        id=episode.id,
        thread_key=episode.thread_key,
        at=episode.at,
        created_at=episode.created_at,
        limit=max(settings.previous_messages, 2),
        length=NEIGHBOUR_LENGTH,
        refused=REFUSED,
    )
    before: list[Row] = [row for row in rows if row["side"] < 0]
    after: list[Row] = [row for row in rows if row["side"] > 0]
    return before, after


def _previous_messages(latest_first: Sequence[Row]) -> tuple[PreviousMessage, ...]:
    return tuple(
        PreviousMessage(
            name_of_speaker(row["speaker"]) or None, readable_content(row), iso(local_time(row["at"], row["offset"]))
        )
        for row in reversed(latest_first)
        if not row["withheld"]
    )


def validate_episode(state: Row, settings: Settings, created_at: int) -> EpisodeRecord:
    """Validate and redact the input *state*; return the episode to store, with its id and times.

    Errors: `InputError` for input that cannot be stored.
    """
    # Changed settings would give an episode that was saved before another id.
    hook = NO_REDACTION if state.get("saved_id") else settings.redact
    content = state.get("content")
    if not isinstance(content, str | None):
        raise InputError(
            f"the content is of type {type(content).__name__}: give a string, a record as JSON with kind='json'; "
            "pass several messages to `add_many`"
        )
    if state.get("kind") == EpisodeKind.BLOCK:
        content = content or ""
    elif content is None or not content.strip():
        raise InputError("the content is empty: give a message, a text or a JSON record")
    if len(content) > settings.max_content:
        raise InputError(f"the content has {len(content)} characters, the limit is {settings.max_content}: split it")
    kind = _validate_kind(state.get("kind") or "message", content)
    content = (redact_json if kind in RECORDS else redact_text)(content, hook)
    if not content.strip() and kind != EpisodeKind.BLOCK:
        raise InputError("the content is empty after the redact hook: leave the message out")
    namespace = validate_namespace(state.get("namespace", DEFAULT_NAMESPACE))
    names = ("speaker", "thread", "source", "source_id")
    texts: dict[str, Any] = {name: _validate_text(name, state.get(name)) for name in names}
    texts["speaker"] = redact_text(texts["speaker"] or "", hook) or None
    speaker, thread, source, source_id = texts.values()
    at, offset = parse_at(state.get("at"), created_at)
    content = replace_unstorable(content)
    if kind == EpisodeKind.FACT:
        content = complete_content(content)
    parts = ("id", source, source_id) if source_id else (kind, content, speaker, thread, str(at))
    id_ = episode_id(namespace, parts)
    return EpisodeRecord(
        id=id_,
        kind=kind,
        content=content,
        at=at,
        offset=offset,
        created_at=created_at,
        trust=1.0 if state.get("trust") is None else validate_number("trust", state["trust"], 0, 1),
        labels=_validate_labels(state.get("labels"), hook),
        expires_at=_expiry(state.get("expires_at"), created_at, settings.default_ttl),
        flags=_injection_flags(hide_payloads(content, kind)),
        # Declared facts without a thread are not part of a conversation and have no neighbours.
        thread_key=thread_key(f"fact {id_}" if kind == EpisodeKind.FACT and thread is None else thread),
        **texts,
    )


def _validate_labels(labels: Any, hook: RedactHook | str) -> list[str] | None:
    """Return *labels* as JSON texts, such as ``['tags:"vip"']``, or None if there are none.

    *hook* redacts the texts, for example to remove phone numbers.
    """
    if labels is None or labels == {}:
        return None

    def clean(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(clean, value))
        return redact_text(replace_unstorable(value), hook) if isinstance(value, str) else value

    return encode_labels(Labels({key: clean(value) for key, value in read_labels(labels).items()}))


def _injection_flags(content: str) -> list[Flag]:
    # Marks of contexts (texts that this memory put into a prompt) are no forgeries.
    flags = injection_flags(content)
    if "forged_fence" in flags and "forged_fence" not in injection_flags(without_contexts(content)):
        return [flag for flag in flags if flag != "forged_fence"]
    return list(flags)


def parse_at(at: object, created_at: int, name: str = "at") -> tuple[int, int]:
    """Return *at*, a datetime or ISO 8601 text, as ``(microseconds since the epoch, UTC offset in minutes)``.

    A naive time is UTC; None or "" gives *created_at*. Errors: `InputError` for other values.
    """
    if at is None or at == "":
        return created_at, 0
    with contextlib.suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(moment, datetime):
            return split_local(moment)
    raise InputError(f"{name} is {short(at)}: give a datetime or ISO 8601 text such as 2024-05-01T10:00:00Z")


def _pieces_to_read(episode: EpisodeRecord, settings: Settings) -> tuple[Piece, ...]:
    # Contexts (texts that this memory put into a prompt) are left out, except from JSON.
    content = episode.text if episode.kind in RECORDS else without_contexts(episode.text)
    if settings.read_all and not content.strip():
        content = episode.text
    return tuple(piece for piece in split_content(content, settings.chunk_size) if piece.content.strip())


def split_content(content: str, size: int) -> list[Piece]:
    """Split *content* into pieces of at most *size* characters, if possible between paragraphs or sentences."""
    pieces: list[Piece] = []
    start = 0
    while start < len(content):
        end = min(start + size, len(content))
        if end < len(content):
            window = content[start:end]
            ends = (window.rfind(joint, size // 2) + len(joint) for joint in JOINTS if joint in window[size // 2 :])
            end = start + next(ends, size)
        pieces.append(Piece(content[start:end], start))
        start = end
    return pieces


def _validate_kind(kind: object, content: str) -> str:
    """Return *kind* if it is an `EpisodeKind` and *content* is valid JSON where needed. Errors: `InputError`."""
    try:
        valid = EpisodeKind(str(kind))
    except ValueError:
        raise InputError(f"the kind is {short(kind)}: use one of {', '.join(EpisodeKind)}") from None
    if valid in RECORDS:
        if has_more_values(content, MOST_VALUES):
            raise InputError(f"the JSON has over {MOST_VALUES:,} values: split it, or use kind='text'")
        try:
            depth = measure_depth(json.loads(content))
        except (ValueError, RecursionError) as error:
            raise InputError(f"the content is not valid JSON ({error}): fix it, or store it with kind='text'") from None
        if depth > DEEPEST:
            raise InputError(f"the JSON is nested {depth} deep, the limit is {DEEPEST}: flatten it, or use kind='text'")
    return valid.value


def measure_depth(value: Any) -> int:
    """Return the nesting depth of the JSON *value*: ``1 -> 0``, ``[1] -> 1``, ``{"a": [1]} -> 2``."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, list | dict)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _expiry(expires_at: object, created_at: int, ttl: float | None) -> int | None:
    """Return when the episode expires, in microseconds: at *expires_at*, or *ttl* seconds from now; None: never."""
    if expires_at in (None, ""):
        return None if ttl is None else created_at + int(ttl * 1_000_000)
    return parse_at(expires_at, created_at, "expires_at")[0]


def _validate_text(name: str, value: object) -> str | None:
    if value is None:
        return None
    text = validate_text(name, value)
    if len(text) > LONGEST_FIELD:
        raise InputError(f"{name} has {len(text)} characters, the limit is {LONGEST_FIELD}: give a name, not a text")
    text = replace_unstorable(text)
    return (" ".join(text.split()) if name == "speaker" else text) or None
