"""Read a graph of Graphiti from its FalkorDB, or from a dump of its Neo4j (``apoc.export.json``).

Its vectors are left out, as they are of another model, and so are the attributes of its own entity types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.falkor.rows import list_pages
from kg_memory.falkor.wire import Row
from kg_memory.temporal.interval import parse_iso
from kg_memory.text.identity import replace_unstorable

PAGE = 2_000
_ZONE = re.compile(r"\[[^\]]*\]$")
_FINER = re.compile(r"(\.\d{6})\d+")
LAST = "MATCH (n) RETURN max(id(n)) AS last"
NODES = """
MATCH (n:{label})
WHERE id(n) >= $first AND id(n) < $end
RETURN n {{.*, name_embedding: NULL, labels: labels(n)}} AS row
ORDER BY id(n)
"""
LINKS = """
MATCH (n:{label})
WHERE id(n) >= $first AND id(n) < $end
WITH n
MATCH (n)-[r:{kind}]->(m)
RETURN r {{.*, fact_embedding: NULL, source: n.uuid, target: m.uuid}} AS row
ORDER BY id(n), id(m), id(r)
"""
E = TypeVar("E", bound="Element")


def _parse_time(value: object) -> object:
    """Return an instant in microseconds; Neo4j writes nanoseconds and the name of a time zone."""
    if not isinstance(value, str):
        return value
    return parse_iso(_FINER.sub(r"\1", _ZONE.sub("", value)))


def _split_list(value: object) -> object:
    return [part for part in re.split(r"[,|]", value) if part] if isinstance(value, str) else value


def _clean_text(value: object) -> object:
    return replace_unstorable(value) if isinstance(value, str) else value


At = Annotated[int, BeforeValidator(_parse_time)]
Text = Annotated[str, BeforeValidator(_clean_text)]


class Element(BaseModel):
    """A node or a link of Graphiti's, with the fields that are imported."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    uuid: Text = ""
    group_id: Text | None = ""


class Entity(Element):
    """A node that is not an episode, of a custom type or none."""

    name: Text
    summary: Text | None = ""
    created_at: At
    labels: list[Text] = []

    @property
    def type(self) -> str:
        """The custom type, if it has one."""
        return next((label for label in self.labels if label != "Entity"), "Entity")


class Episode(Element):
    """A message, text or record; `valid_at` is when it was said."""

    content: Text | None = ""
    source: Text | None = "message"
    valid_at: At
    created_at: At


class Edge(Element):
    """A fact between two entities; `expired_at` is when Graphiti learned that it had ended."""

    source: str
    target: str
    name: Text | None = ""
    fact: Text | None = ""
    episodes: Annotated[list[str], BeforeValidator(_split_list)] = []
    created_at: At
    expired_at: At | None = None
    valid_at: At | None = None
    invalid_at: At | None = None


class Community(Element):
    """A cluster of entities."""

    name: Text
    summary: Text | None = ""


class Link(Element):
    """A mention of an entity in an episode, or its membership in a community."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole graph of Graphiti."""

    entities: list[Entity]
    episodes: list[Episode]
    edges: list[Edge]
    mentions: list[Link]
    communities: list[Community]
    members: list[Link] = field(default_factory=list)

    @classmethod
    def from_rows(cls, rows: Callable[[str], Iterable[Row]], path: Path | None = None) -> Self:
        """Return the graph that has the *rows* of each label and relation, those of the file *path*."""
        return cls(
            entities=_validate(Entity, rows("Entity"), path),
            episodes=_validate(Episode, rows("Episodic"), path),
            edges=_validate(Edge, rows("RELATES_TO"), path),
            mentions=_validate(Link, rows("MENTIONS"), path),
            communities=_validate(Community, rows("Community"), path),
            members=_validate(Link, rows("HAS_MEMBER"), path),
        )


def read_database(database: Database, name: str) -> Graph:
    """Return Graphiti's graph *name* of *database* as it is at one moment.

    Errors: `InputError` if there is none.
    """

    def take(key: str) -> Graph:
        last = database.query(key, LAST, {}, write=False)
        if not last or last[0]["last"] is None:
            raise InputError(f"there is no graph {name!r} on that server, or it is empty; name Graphiti's (--graph)")

        def rows(name: str) -> Iterator[Row]:
            query = NODES.format(label=name) if name in _LABELS else LINKS.format(label=_KINDS[name], kind=name)
            for page in list_pages(last[0]["last"], PAGE):
                for row in database.query(key, query, page, write=False):
                    yield row["row"]

        return Graph.from_rows(rows)

    return read_snapshot(database, name, take)


def read_dump(path: Path) -> Graph:
    """Return the graph in a dump of Neo4j: one node or relationship a line, nodes first.

    Errors: `InputError` with the number of the invalid line.
    """
    rows: dict[str, list[Row]] = {name: [] for name in (*_LABELS, *_KINDS)}
    uuids: dict[str, str] = {}
    for number, element in _read_elements(path):
        properties = element.get("properties") or {}
        if element.get("type") == "node":
            uuids[str(element.get("id"))] = str(properties.get("uuid"))
            labels = [str(label) for label in element.get("labels") or ()]
            for label in _LABELS & {*labels}:
                rows[label].append({**properties, "labels": labels, "line": number})
        elif element.get("label") in _KINDS:
            ends = {name: uuids.get(str((element.get(end) or {}).get("id"))) for name, end in _ENDS}
            rows[element["label"]].append({**properties, **ends, "line": number})
    return Graph.from_rows(rows.__getitem__, path)


_LABELS = {"Entity", "Episodic", "Community"}
_KINDS = {"RELATES_TO": "Entity", "MENTIONS": "Episodic", "HAS_MEMBER": "Community"}
"""The relations, with the label of the node at which they start."""
_ENDS = (("source", "start"), ("target", "end"))


def select_group(graph: Graph, group: str | None) -> Graph:
    """Return the part of *graph* that belongs to *group*, by default the only one.

    Errors: `InputError` if there are several, or *group* is not among them: each is one person's own memory.
    """
    groups = sorted({element.group_id or "" for element in (*graph.entities, *graph.episodes)})
    if not groups:
        raise InputError("there are no entities and no episodes of Graphiti's; check where the file comes from")
    if group is None and len(groups) > 1:
        raise InputError(f"there are {len(groups)} groups, such as {groups[:5]}; choose one with --group")
    if group is not None and group not in groups:
        raise InputError(f"there is no group {group!r}, but {groups[:5]}; choose one of them")
    selected = groups[0] if group is None else group

    def is_selected(element: Element) -> bool:
        return (element.group_id or "") == selected

    return Graph(*(list(filter(is_selected, getattr(graph, part.name))) for part in fields(graph)))


def _read_elements(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    element = json.loads(line) if line.strip() else {}
                except (ValueError, RecursionError):
                    element = None
                if not isinstance(element, dict):
                    raise InputError(
                        f"{path}:{number}: the line must be a node or relationship in JSON; use apoc.export.json.all"
                    )
                yield number, element
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror}); check its name and permissions") from None


def _validate(model: type[E], rows: Iterable[Row], path: Path | None = None) -> list[E]:
    elements = []
    for row in rows:
        try:
            elements.append(model.model_validate(row))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = f"{path}:{row['line']}" if path else f"{model.__name__} {row.get('uuid')!r:.60}"
            field = ".".join(str(part) for part in first["loc"][:2])
            raise InputError(f"{place}: {field}: {first['msg']}; fix or remove this record") from None
    return elements
