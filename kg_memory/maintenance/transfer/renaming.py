"""Ids in another namespace: what is said there again is to be known as the same.

An id is made of the namespace and what identifies the thing, so each that was made so is made anew. Others stay.
"""

from __future__ import annotations

from typing import Any

from kg_memory.maintenance.transfer.lines import Entity, Episode, Fact, Line, Verdict
from kg_memory.text.identity import entity_id, episode_id, fact_id, verdict_id

REFERENCES = (
    "episode", "before", "after", "entity", "other", "subject", "fact", "new", "known", "holds", "refused", "told_by",
    "cause", "verdict",
)  # fmt: skip
"""The fields that may have the id of an entity, an episode, a fact or a verdict."""


class Renaming:
    """Makes the ids of lines anew that go from one namespace to another; it keeps each id that it changed."""

    def __init__(self, source: str, target: str) -> None:
        self._source = source
        self._target = target
        self._ids: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def renamed(self, each: Line) -> Line:
        """Return the line as it is to be stored."""
        if self._source == self._target:
            return each
        self._learn(each)
        changed: dict[str, Any] = {}
        for name in ("id", *REFERENCES):
            value = getattr(each, name, None)
            if isinstance(value, str) and value in self._ids:
                changed[name] = self._ids[value]
        if isinstance(each, Fact):
            changed["objects"] = [self._ids.get(id_, id_) for id_ in each.objects]
        return each.model_copy(update=changed) if changed else each

    def _learn(self, each: Line) -> None:
        """Keep the new id of what a line brings."""
        match each:
            case Entity():
                self._keys[each.id] = each.key
                made = [entity_id(name, each.key) for name in (self._source, self._target)]
            case Episode():
                parts = _parts(each)
                made = [episode_id(name, parts) for name in (self._source, self._target)]
            case Fact():
                subject, *objects = (self._keys.get(id_, "") for id_ in (each.subject, *each.objects))
                said = (subject, each.predicate, objects, each.sentence)
                made = [fact_id(name, *said) for name in (self._source, self._target)]
            case Verdict():
                old = verdict_id(self._source, each.new, each.known)
                made = [old, verdict_id(self._target, *(self._ids.get(id_, id_) for id_ in (each.new, each.known)))]
            case _:
                return
        if each.id == made[0]:
            self._ids[each.id] = made[1]


def _parts(each: Episode) -> tuple[str | None, ...]:
    if each.source_id:
        return "id", each.source, each.source_id
    return each.kind, each.content, each.speaker, each.thread, str(each.at)
