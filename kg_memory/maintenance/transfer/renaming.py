"""The ids of an export that is imported into another namespace."""

from __future__ import annotations

import re

from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer.line import Line
from kg_memory.maintenance.transfer.lines import Entity, Episode, Fact, Verdict
from kg_memory.text.identity import entity_id, episode_id, fact_id, verdict_id

REFERENCES = (
    *("episode", "before", "after", "entity", "other", "subject", "fact", "new", "known", "holds", "refused"),
    *("told_by", "cause", "verdict", "origin", "second", "premise"),
)
"""The fields that may hold the id of an entity, an episode, a fact or a verdict."""
_PREMISES = '"rests_on"'
_UUID = re.compile(r"(?<=\")[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\")")


class Renaming:
    """Derives new ids for lines that move to another namespace, so that the same content keeps the same identity.

    An id is derived from the namespace and the content. Ids that were not derived so stay. The contents of declared
    facts have ids of facts, which later lines define: see `renamed_contents`.
    """

    def __init__(self, source: str, target: str) -> None:
        self.target = target
        self._source = source
        self._ids: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._contents: dict[str, str] = {}

    def rename(self, item: Line) -> Line:
        """Return the line as it is to be stored."""
        if self._source == self.target:
            return item
        self._learn(item)
        changes: Row = {}
        for name in ("id", *REFERENCES):
            value = getattr(item, name, None)
            if isinstance(value, str) and value in self._ids:
                changes[name] = self._ids[value]
        if isinstance(item, Fact):
            changes["objects"] = [self._ids.get(id_, id_) for id_ in item.objects]
        item = item.model_copy(update=changes) if changes else item
        if isinstance(item, Episode) and item.kind == "fact" and _PREMISES in item.content:
            self._contents[item.id] = item.content
        return item

    def renamed_contents(self) -> list[Row]:
        """Return the contents to write once all lines were read, with the new ids of the facts that they rest on.

        All ids have one length, so the characters of statements stay where they are.
        """
        return [
            {"id": id_, "content": _UUID.sub(lambda found: self._ids.get(found[0], found[0]), content)}
            for id_, content in self._contents.items()
        ]

    def _learn(self, item: Line) -> None:
        """Remember the new id of the thing that a line defines."""
        namespaces = (self._source, self.target)
        match item:
            case Entity():
                self._keys[item.id] = item.key
                old, new = (entity_id(namespace, item.key) for namespace in namespaces)
            case Episode():
                parts = _identity_parts(item)
                old, new = (episode_id(namespace, parts) for namespace in namespaces)
            case Fact():
                # A fact about one entity is stored with that entity as its object.
                objects = [self._keys.get(id_, "") for id_ in item.objects if id_ != item.subject]
                content = (self._keys.get(item.subject, ""), item.predicate, objects, item.sentence)
                old, new = (fact_id(namespace, *content) for namespace in namespaces)
            case Verdict():
                old = verdict_id(self._source, item.new, item.known)
                new = verdict_id(self.target, *(self._ids.get(id_, id_) for id_ in (item.new, item.known)))
            case _:
                return
        if item.id == old:
            self._ids[item.id] = new


def _identity_parts(episode: Episode) -> tuple[str | None, ...]:
    if episode.source_id:
        return "id", episode.source, episode.source_id
    return episode.kind, episode.content, episode.speaker, episode.thread, str(episode.at)
