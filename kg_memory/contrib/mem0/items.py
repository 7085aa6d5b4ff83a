"""Converts facts to Mem0's dicts: memories, events of `add`, and rows of `history`."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import pairwise

from kg_memory.contrib.importers.sentences import ABOUT
from kg_memory.contrib.mem0.filters import FilterGroup, holds
from kg_memory.contrib.mem0.scopes import Entries, Item, Owner, first_ids, to_metadata
from kg_memory.models.graph import Change, Fact, Source
from kg_memory.models.results import Explanation, FactExplanation


def to_memory(fact: Fact, owner: Owner, score: float | None = None) -> Item:
    """Convert *fact* to the dict of a Mem0 memory: "id", "memory" (the text), "metadata" and so on."""
    labels = [source.labels for source in fact.sources]
    first = {name: next((own[name] for own in labels if name in own), None) for name in ABOUT}
    shown = {name: value for name, value in first.items() if value is not None}
    item: Item = {
        "id": fact.id,
        "memory": fact.sentence,
        "hash": hashlib.md5(fact.sentence.encode(), usedforsecurity=False).hexdigest(),
        "metadata": to_metadata(fact.labels) or None,
        "created_at": _to_text(_first_time(fact)),
        "updated_at": _to_text(fact.created_at),
        "valid_at": _to_text(fact.valid_at),
        "invalid_at": _to_text(fact.invalid_at),
        **first_ids(owner, labels),
        **shown,
    }
    return item if score is None else {**item, "score": score}


def _first_time(fact: Fact) -> datetime:
    return min((source.at for source in fact.sources), default=fact.created_at)


def _to_text(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat()


def explain_score(explanation: Explanation) -> Item:
    """Return the ranks and scores of a result: ``{"hits": {"words": {"rank": 1, "score": 0.9}}, "scores": {...}}``."""
    hits = {hit.retriever: {"rank": hit.rank, "score": hit.score} for hit in explanation.hits}
    return {"hits": hits, "scores": dict(explanation.scores)}


# Which memories are shown


def is_live(fact: Fact, now: datetime) -> bool:
    """Return whether *fact* is listed as a memory at the time *now*.

    It is until it ends. A fact that was past when it was stated is listed until it is replaced.
    """
    if fact.invalid_at is None or fact.invalid_at > now:
        return True
    return not fact.superseded_by and fact.invalid_at <= _first_time(fact)


def is_shown(fact: Fact, owner: Owner, filter_: FilterGroup, *, show_expired: bool, today: date) -> bool:
    """Return whether a message that states *fact* matches *filter_* and has not expired by *today*.

    With *show_expired*, expired messages count too, and facts whose messages were all deleted are shown.
    """
    if not fact.sources:
        return show_expired
    return any(
        (show_expired or not _has_expired(source, today)) and holds(filter_, _values_of(fact, source, owner))
        for source in fact.sources
    )


def _values_of(fact: Fact, source: Source, owner: Owner) -> Entries:
    times = {"created_at": _to_text(source.at), "updated_at": _to_text(fact.created_at)}
    return {**source.labels, **times, **owner.constants, "memory": fact.sentence}


def _has_expired(source: Source, today: date) -> bool:
    last = source.labels.get("expiration_date")
    return isinstance(last, str) and last < today.isoformat()


# Events


def to_events(facts: Sequence[Fact], ended: Mapping[str, Fact], episodes: Container[str], owner: Owner) -> list[Item]:
    """Return one event for each memory that a call of `add` changed: ``{"event": "ADD", "memory": ..., ...}``."""
    events: list[Item] = []
    replaced: set[str] = set()
    for fact in facts:
        before = next((ended[id_] for id_ in fact.supersedes if id_ in ended), None)
        is_new = all(source.episode in episodes for source in fact.sources)
        item = to_memory(fact, owner)
        if before is not None:
            replaced.update(fact.supersedes)
            events.append({**item, "event": "UPDATE", "previous_memory": before.sentence, "previous_id": before.id})
        elif is_new or fact.id not in ended:
            events.append({**item, "event": "ADD" if is_new else "NOOP"})
    gone = (fact for id_, fact in ended.items() if id_ not in replaced)
    return events + [{**to_memory(fact, owner), "event": "DELETE"} for fact in gone]


def find_ended(changes: Iterable[Change], sentences: Container[str]) -> dict[str, Fact]:
    """Return the facts in *changes* that ended, were corrected or retracted, and have a text in *sentences*, by id."""
    before = (change.before for change in changes if change.kind in ("ended", "corrected", "retracted"))
    return {fact.id: fact for fact in before if fact is not None and fact.sentence in sentences}


# History


def to_history(memory_id: str, explained: FactExplanation) -> list[Item]:
    """Return the history of a memory as events, earliest first: ADD, UPDATE for each replacement, and DELETE."""
    periods = list(explained.evolution)
    if not periods:
        refuted = next((verdict for verdict in explained.verdicts if verdict.kind == "retracted"), None)
        if refuted is None:
            return []
        when = refuted.decided_at or refuted.created_at
        return [
            _event_row(memory_id, "ADD", None, refuted.existing, refuted.existing.created_at),
            _event_row(memory_id, "DELETE", refuted.existing, None, when, refuted.decided_by),
        ]
    rows = [_event_row(memory_id, "ADD", None, periods[0], _first_time(periods[0]))]
    rows += [_event_row(memory_id, "UPDATE", before, after, _first_time(after)) for before, after in pairwise(periods)]
    last = periods[-1]
    if not is_live(last, datetime.now(UTC)):
        rows.append(_event_row(memory_id, "DELETE", last, None, last.created_at))
    return rows


def _event_row(
    memory_id: str, event: str, before: Fact | None, after: Fact | None, at: datetime, by: str | None = None
) -> Item:
    """Return one event in the history of a memory; *before* and *after* are the fact before and after it."""
    fact = after or before
    source = fact.sources[0] if fact and fact.sources else None
    actor = by or (source and (source.labels.get("actor_id") or source.speaker))
    return {
        "id": f"{fact.id if fact else memory_id}:{event}:{_to_text(at)}",
        "memory_id": memory_id,
        "old_memory": before.sentence if before else None,
        "new_memory": after.sentence if after else None,
        "event": event,
        "created_at": _to_text(at),
        "updated_at": _to_text(at),
        "is_deleted": after is None,
        "actor_id": actor,
        "role": source.labels.get("role") if source else None,
    }
