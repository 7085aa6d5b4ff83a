"""Replace ids in an export that is imported into another namespace: most ids are hashes of namespace and content."""

from __future__ import annotations

import re

from kg_memory.falkor.wire import Row
from kg_memory.maintenance.transfer.records import NodeLine, Record
from kg_memory.text.identity import entity_id, episode_id, fact_id, verdict_id

REFERENCES = ("id", "new", "known", "refused", "edited", "told_by", "cause", "episode", "origin")
"""The properties that may contain the id of an entity, an episode, a fact or a verdict."""
_PREMISES = '"rests_on"'
_UUID = re.compile(r"(?<=\")[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\")")


class Renaming:
    """Replaces the ids in exported records by the ids that the same content has in another namespace.

    Records must be renamed in the order of the export, because ids refer to earlier records.
    """

    def __init__(self, source: str, target: str) -> None:
        self.target = target
        self._source = source
        self._ids: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._contents: dict[str, str] = {}

    def rename(self, record: Record) -> Record:
        """Return *record* with its id, and the ids that it refers to, replaced by the ids of the new namespace."""
        if self._source == self.target:
            return record
        properties = record.properties
        if isinstance(record, NodeLine) and (ids := self._derive_ids(record)) and properties["id"] == ids[0]:
            self._ids[ids[0]] = ids[1]
        renamed = {name: self._new(properties[name]) for name in REFERENCES if isinstance(properties.get(name), str)}
        update: Row = {"properties": {**properties, **renamed}}
        if not isinstance(record, NodeLine):
            update |= {"source": self._new(record.source), "target": self._new(record.target)}
        elif record.ends:
            update["ends"] = list(map(self._new, record.ends))
        if properties.get("kind") == "fact" and _PREMISES in properties.get("content", ""):
            self._contents[renamed["id"]] = properties["content"]
        return record.model_copy(update=update)

    def renamed_contents(self) -> list[Row]:
        """Return the texts of episodes (messages) with their fact ids replaced: ``[{"id": ..., "content": ...}]``.

        Call this after all records were renamed.
        """
        return [
            {"id": id_, "content": _UUID.sub(lambda found: self._new(found[0]), content)}
            for id_, content in self._contents.items()
        ]

    def _new(self, id_: str) -> str:
        return self._ids.get(id_, id_)

    def _derive_ids(self, node: NodeLine) -> list[str]:
        """Return the ids of *node* in the exported and in the new namespace; [] if these are not hashes of content."""
        properties, namespaces = node.properties, (self._source, self.target)
        match node.label:
            case "Entity":
                self._keys[properties["id"]] = properties["key"]
                return [entity_id(namespace, properties["key"]) for namespace in namespaces]
            case "Episode":
                return [episode_id(namespace, _identity_parts(properties)) for namespace in namespaces]
            case "Fact":
                # A fact with a subject only is stored with the subject as its object too.
                subject, *objects = node.ends
                keys = [self._keys.get(id_, "") for id_ in objects if id_ != subject]
                content = (self._keys.get(subject, ""), properties["predicate"], keys, properties["sentence"])
                return [fact_id(namespace, *content) for namespace in namespaces]
            case "Verdict":
                new, known = properties["new"], properties["known"]
                return [verdict_id(self._source, new, known), verdict_id(self.target, self._new(new), self._new(known))]
            case _:
                return []


def _identity_parts(episode: Row) -> tuple[str | None, ...]:
    if episode.get("source_id"):
        return "id", episode.get("source"), episode["source_id"]
    return episode["kind"], episode["content"], episode.get("speaker"), episode.get("thread"), str(episode["at"])
