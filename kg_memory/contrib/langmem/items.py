"""Memories as episodes: the value of an item as a text or a JSON record, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import Item, SearchItem

from kg_memory.adapters.store.codec import key_of, to_json
from kg_memory.models.graph import Episode, EpisodeKind, Fact

SOURCE = "langmem/"
"""The source of an episode that is a version of a memory, before the key of the memory."""
FACT = "fact:"
"""The prefix of the keys of facts."""
Labels = tuple[str, ...]
Record = dict[str, Any]
"""A plain JSON object."""


class Content(NamedTuple):
    """The content of an episode, and the kind of memory that it is, "" where the value names none."""

    text: str
    kind: EpisodeKind
    schema: str

    def source_id(self, former: Episode | None) -> str:
        """Return the id of this version, which follows on *former*."""
        return key_of([former and former.id, *self])


def encode(value: Mapping[str, Any]) -> Content:
    """Return the *value* of an item as an episode keeps it: its text, if it has just one, else a JSON record."""
    text = to_json(dict(value))
    schema = value.get("kind")
    content = value.get("content")
    if value.keys() == {"content"} and isinstance(content, str):
        return Content(content, EpisodeKind.MESSAGE, "")
    if value.keys() == {"kind", "content"} and isinstance(schema, str) and schema and isinstance(content, Mapping):
        inner = content.get("content")
        if content.keys() == {"content"} and isinstance(inner, str):
            return Content(inner, EpisodeKind.MESSAGE, schema)
        return Content(to_json(dict(content)), EpisodeKind.JSON, schema)
    return Content(text, EpisodeKind.JSON, "")


def decode(episode: Episode) -> Record:
    """Return the value of the item whose version *episode* is."""
    schema = schema_of(episode)
    if episode.kind is EpisodeKind.JSON:
        record = json.loads(episode.content)
        return {"kind": schema, "content": record} if schema else record
    content = {"content": episode.content}
    return {"kind": schema, "content": content} if schema else content


def schema_of(episode: Episode) -> str:
    """Return the kind of memory that *episode* is a version of, "" if it has none."""
    return str(episode.labels.get("schema", ""))


def key_of_episode(episode: Episode) -> str | None:
    """Return the key of the memory that *episode* is a version of; None if it is another one's."""
    source = episode.source or ""
    return source.removeprefix(SOURCE) if source.startswith(SOURCE) else None


def id_of_fact(key: str) -> str | None:
    """Return the id of the fact that *key* names, or None."""
    return key.removeprefix(FACT) if key.startswith(FACT) else None


def to_item(namespace: Labels, key: str, versions: Sequence[Episode], score: float | None = None) -> SearchItem:
    """Return the item whose *versions*, the latest first, are episodes."""
    stamps = (versions[-1].created_at, versions[0].created_at)
    return SearchItem(namespace, key, decode(versions[0]), *stamps, score)


def fact_item(namespace: Labels, fact: Fact) -> SearchItem:
    """Return *fact* as an item: its sentence, and when it was so."""
    times = fact.model_dump(mode="json", include={"valid_at", "invalid_at"})
    value = {"content": fact.sentence, **times}
    return SearchItem(namespace, FACT + fact.id, value, fact.created_at, fact.created_at, fact.score)


def without_score(item: SearchItem) -> Item:
    """Return *item* as `BaseStore.get` does."""
    return Item(
        value=item.value,
        key=item.key,
        namespace=item.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )
