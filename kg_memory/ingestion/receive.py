"""Step 1, receive: check the episode and save it, before anything else can fail (Zep 2.1)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import takewhile
from operator import itemgetter
from reprlib import repr as short
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.queries import episodes as cypher
from kg_memory.falkor.queries.usage import NO_LEDGER
from kg_memory.ingestion.echo import without_contexts
from kg_memory.ingestion.injection import Flag, injection_flags
from kg_memory.ingestion.records import IngestionState, Piece
from kg_memory.models.graph import EpisodeKind
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import EPOCH, SESSION_GAP, instant, iso, micros
from kg_memory.text import tokenise
from kg_memory.text.identity import episode_id, replace_unstorable, thread_key, validate_namespace
from kg_memory.text.redaction import redact as redacted
from kg_memory.text.redaction import redact_json

OWN, NEXT_TO, NEAR = 4, 2, 1
"""How much a word counts for its own episode, for those next to it and for those two away."""
NEIGHBOUR_LENGTH = 2000
LONG = 60
"""Words of an episode that has its context in itself: it carries nobody else's. Talk has 5 to 40, essays hundreds."""
STORED = ("kind", "speaker", "at", "offset", "created_at", "thread", "thread_key", "source", "trust")
LONGEST_FIELD = 10_000
"""Characters of a speaker, a thread, a source or its own id."""
DEEPEST = 200
"""How many lists and objects of a JSON record may lie in each other."""
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
READ = ("done", "skipped")
"""The states of episodes that are not read again."""
FORGOTTEN = "the episode was forgotten before it was read: nothing of it is kept"
JOINTS = ("\n\n", "\n", "。", ". ", "! ", "? ", "; ", ", ", " ")


Neighbour = dict[str, Any]


def receive(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Save the episode, readable and searchable by its words at once, and note that it is being read.

    The same one again changes nothing. Errors: `InputError` says what is wrong with the input.
    """
    update = yield from accept(state, settings, reading=True)
    return update


def accept(state: IngestionState, settings: Settings, *, reading: bool = False) -> Flow[dict[str, Any]]:
    """Save the episode, to be read later if not now, and return what is known of it."""
    created_at = yield from now()
    again = bool(state.get("again"))
    told = {**state, "at": state["episode"]["at_iso"]} if again else state  # what has no date was said at first
    given = checked(told, settings, created_at)
    saved, before = yield from _saved(given, settings, state.get("known"), reading=reading)
    if saved["content"] != given["content"]:
        raise InputError(
            f"source_id {given['source_id']!r} is already stored with another content: an episode never changes, "
            "give the new text a source_id of its own"
        )
    # It is read as it was first stored, whatever time or speaker a later call gives to the same id.
    episode = given if saved["new"] else {**given, **{name: saved[name] for name in STORED}}
    if (episode["at"], episode["thread_key"]) != (given["at"], given["thread_key"]):
        before, _ = yield from _around(episode, settings)
    previous = [
        {"speaker": each["speaker"], "content": each["content"], "at": iso(instant(each["at"]) or EPOCH)}
        for each in reversed(before[: settings.previous_messages])
        if not each["withheld"]
    ]
    return {
        "namespace": validate_namespace(state.get("namespace")),
        "episode": {**episode, "at_iso": iso(local(episode))},
        "new": saved["new"] or (again and state["new"]),
        "again": False,
        "done": saved["status"] in READ,
        "status": saved["status"],
        "answers": dict(zip(saved["answers"][::2], saved["answers"][1::2], strict=True)),
        "forgotten": saved["forgotten"],
        "predicates_at": saved["predicates_at"],
        "previous": previous,
        "skips": len(list(takewhile(itemgetter("skipped"), before))),
        "pieces": _news(episode, settings),
        "entities": [],
        "facts": [],
    }


def _saved(
    given: Mapping[str, Any], settings: Settings, known: str | None, *, reading: bool
) -> Flow[tuple[dict[str, Any], list[Neighbour]]]:
    """Save the episode, and return what is stored, and the episodes before it; none is forgotten meanwhile.

    Of one that was saved before, *known* is the id. Errors: `InputError` where that was forgotten since.
    """
    while True:
        before, after = yield from _around(given, settings)
        lengths, postings = indexed(given, before, after)
        around = [each["id"] for each in (*before, *after)] + ([] if known is None else [known])
        episode = {**given, "status": "new"}
        found = yield from write(
            cypher.SAVE_EPISODE,
            episode=episode,
            around=around,
            lengths=lengths,
            postings=postings,
            reading=reading,
            **NO_LEDGER,
        )
        if found:
            return found[0], before
        if known is not None and not (yield from read(cypher.STATUS, id=known)):
            raise InputError(FORGOTTEN)


def _around(episode: Mapping[str, Any], settings: Settings) -> Flow[tuple[list[Neighbour], list[Neighbour]]]:
    """Return the episodes of the thread before this one, latest first, and those after it, earliest first."""
    around = yield from read(
        cypher.NEIGHBOURS,
        id=episode["id"],
        thread_key=episode["thread_key"],
        at=episode["at"],
        limit=max(settings.previous_messages, 2, settings.max_skip_turns if settings.surprise_threshold else 0),
        length=NEIGHBOUR_LENGTH,
    )
    return [each for each in around if each["side"] < 0], [each for each in around if each["side"] > 0]


def checked(state: Mapping[str, Any], settings: Settings, created_at: int) -> dict[str, Any]:
    """Return the episode as it is stored: cleaned, identified and dated."""
    content = state.get("content")
    if not isinstance(content, str | None):
        raise InputError(
            f"the content is of type {type(content).__name__}: give a string, a record as JSON with kind='json'; "
            "several messages go to `add_many`"
        )
    if content is None or not content.strip():
        raise InputError("the content is empty: give a message, a text or a JSON record")
    if len(content) > settings.max_content:
        raise InputError(f"the content has {len(content)} characters, the limit is {settings.max_content}: split it")
    kind = _kind(state.get("kind") or "message", content)
    redact = redact_json if kind == EpisodeKind.JSON else redacted
    content = redact(content, settings.redact)
    if not content.strip():
        raise InputError("the content is empty once the redact hook was there: leave the message out")
    namespace = validate_namespace(state.get("namespace"))
    texts = {name: _text(name, state.get(name)) for name in ("speaker", "thread", "source", "source_id")}
    texts["speaker"] = redacted(texts["speaker"] or "", settings.redact) or None
    at, offset = parse_at(state.get("at"), created_at)
    content = replace_unstorable(content)
    source_id = texts["source_id"]
    parts = (
        ("id", texts["source"], source_id) if source_id else (kind, content, texts["speaker"], texts["thread"], str(at))
    )
    return {
        "id": episode_id(namespace, parts), "kind": kind, "content": content, "at": at, "offset": offset,
        "created_at": created_at, "trust": _trust(state.get("trust")),
        "expires_at": _expiry(state.get("expires_at"), created_at, settings.default_ttl),
        "flags": _flags(content), "thread_key": thread_key(texts["thread"]), **texts,
    }  # fmt: skip


def _flags(content: str) -> list[Flag]:
    """Return what of a prompt injection is in *content*; the tags of a context that the memory supplied are none."""
    found = injection_flags(content)
    own = injection_flags(without_contexts(content)) if "forged_fence" in found else found
    return [each for each in found if each != "forged_fence" or each in own]


def local(episode: Mapping[str, Any]) -> datetime:
    """Return when the episode was said, by the clock of where it was said: "yesterday" is the day before that one."""
    moment = instant(episode["at"]) or EPOCH
    try:
        return moment.astimezone(timezone(timedelta(minutes=episode["offset"])))
    except OverflowError:
        return moment  # the first and the last day of the calendar


def parse_at(at: object, created_at: int, name: str = "at") -> tuple[int, int]:
    """Return the reference time in microseconds and its offset from UTC in minutes.

    A naive one is UTC, a missing one is now.

    Errors: `InputError` for anything that is no date.
    """
    if at is None or at == "":
        return created_at, 0
    with contextlib.suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(moment, datetime):
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            offset = aware.utcoffset() or timedelta()
            return micros(aware.astimezone(UTC), default=0), offset // timedelta(minutes=1)
    raise InputError(f"{name} is {short(at)}: give a datetime or ISO 8601 text such as 2024-05-01T10:00:00Z")


def _news(episode: Mapping[str, Any], settings: Settings) -> list[Piece]:
    """Return the pieces of the content, without what the memory itself supplied; a record is taken as it is."""
    content = str(episode["content"])
    news = content if episode["kind"] == EpisodeKind.JSON else without_contexts(content)
    if settings.read_all and not news.strip():
        news = content
    return [each for each in pieces(news, settings.chunk_size) if each["content"].strip()]


def pieces(content: str, size: int) -> list[Piece]:
    """Split *content* into pieces of at most *size* characters, each at the best joint in its second half."""
    found: list[Piece] = []
    start = 0
    while start < len(content):
        end = min(start + size, len(content))
        if end < len(content):
            window = content[start:end]
            places = (window.rfind(joint, size // 2) + len(joint) for joint in JOINTS if joint in window[size // 2 :])
            end = start + next(places, size)
        found.append({"content": content[start:end], "start": start})
        start = end
    return found


def indexed(
    episode: Mapping[str, Any], before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the lengths and postings that the episode adds to the word index: its own, and its neighbours'.

    Each of two neighbours carries the other's words too, so that a line finds its context; see `carried`.
    """
    own = tokenise.count_terms(line(episode) + " " + date_words(episode["at"]))
    places: dict[str, dict[str, int]] = {}
    lengths: dict[str, int] = {}

    def add(counts: Mapping[str, int], place: str) -> None:
        for term, frequency in counts.items():
            there = places.setdefault(term, {})
            there[place] = there.get(place, 0) + frequency
        lengths[place] = lengths.get(place, 0) + sum(counts.values())

    add({term: OWN * frequency for term, frequency in own.items()}, episode["id"])
    shared, size = tokenise.count_terms(line(episode)[:NEIGHBOUR_LENGTH]), length(episode)
    for side in (before, after):
        for weight, other in zip((NEXT_TO, NEAR), side, strict=False):
            if abs(other["at"] - episode["at"]) <= SESSION_GAP:
                lent = tokenise.count_terms(line(other))
                add(carried(size, lent, weight), episode["id"])
                add(carried(length(other), shared, weight), other["id"])
    postings = [
        {"term": term, "in": [{"id": place, "f": f} for place, f in sorted(there.items())]}
        for term, there in sorted(places.items())
    ]
    return [{"id": place, "n": n} for place, n in lengths.items()], postings


def carried(length: int, lent: Mapping[str, int], weight: int) -> dict[str, int]:
    """Return what an episode of *length* words carries of those that a neighbour has.

    A long one carries none: its own words say what it is about, and those of others would drown them.
    """
    return {} if length > LONG else {term: weight * frequency for term, frequency in lent.items()}


def length(episode: Mapping[str, Any]) -> int:
    """Return how many words the episode has, as far as neighbours see it."""
    return sum(tokenise.count_terms(line({**episode, "content": episode["content"][:NEIGHBOUR_LENGTH]})).values())


def line(episode: Mapping[str, Any]) -> str:
    """Return the episode as one line of conversation (Zep 2.1: ``speaker: utterance``)."""
    return f"{episode['speaker']}: {episode['content']}" if episode["speaker"] else str(episode["content"])


def date_words(at: int) -> str:
    """Return the day of an instant in words, as the index has them."""
    moment = instant(at) or EPOCH
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def _kind(kind: object, content: str) -> str:
    try:
        known = EpisodeKind(str(kind))
    except ValueError:
        kinds = ", ".join(EpisodeKind)
        raise InputError(f"the kind is {short(kind)}: use one of {kinds}") from None
    if known is EpisodeKind.JSON:
        try:
            depth = nesting(json.loads(content))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"the content is not valid JSON ({error}): mend it, or store it with kind='text'"
            ) from None
        if depth > DEEPEST:
            raise InputError(f"the JSON is nested {depth} deep, the limit is {DEEPEST}: flatten it, or use kind='text'")
    return known.value


def nesting(value: Any) -> int:
    """Return how many lists and objects of the JSON *value* lie in each other, at most."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [one for each in level for one in (each.values() if isinstance(each, dict) else each)]
    return depth


def _expiry(expires_at: object, created_at: int, ttl: float | None) -> int | None:
    """Return when the episode expires, in microseconds, if it does."""
    if expires_at in (None, ""):
        return None if ttl is None else created_at + int(ttl * 1_000_000)
    return parse_at(expires_at, created_at, "expires_at")[0]


def _trust(trust: object) -> float:
    if trust is None:
        return 1.0
    if isinstance(trust, bool) or not isinstance(trust, int | float) or not 0 <= trust <= 1:
        raise InputError(f"trust is {trust!r}: give a number from 0 to 1")
    return float(trust)


def _text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{name} is {short(value)}: give a string")
    if len(value) > LONGEST_FIELD:
        raise InputError(f"{name} has {len(value)} characters, the limit is {LONGEST_FIELD}: give a name, not a text")
    cleaned = replace_unstorable(value)
    return (" ".join(cleaned.split()) if name == "speaker" else cleaned) or None
