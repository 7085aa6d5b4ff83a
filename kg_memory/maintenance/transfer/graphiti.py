"""What a graph of Graphiti holds: read from its FalkorDB, or from a dump of its Neo4j (``apoc.export.json``).

Its vectors are left: they are of another model, and made anew. So are the attributes of its own entity types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.falkor.graph_swap import read_snapshot
from kg_memory.temporal.interval import micros
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
RETURN r {{.*, fact_embedding: NULL, one: n.uuid, other: m.uuid}} AS row
ORDER BY id(n), id(m), id(r)
"""
Row = dict[str, Any]
M = TypeVar("M", bound=BaseModel)


def _instant(value: object) -> object:
    """Return an instant in microseconds; Neo4j writes nanoseconds, and the name of a time zone."""
    if not isinstance(value, str):
        return value
    told = datetime.fromisoformat(_FINER.sub(r"\1", _ZONE.sub("", value)))
    return micros(told.astimezone(UTC) if told.tzinfo else told.replace(tzinfo=UTC), default=0)


def _listed(value: object) -> object:
    return [each for each in re.split(r"[,|]", value) if each] if isinstance(value, str) else value


def _cleaned(value: object) -> object:
    return replace_unstorable(value) if isinstance(value, str) else value


At = Annotated[int, BeforeValidator(_instant)]
Text = Annotated[str, BeforeValidator(_cleaned)]


class Told(BaseModel):
    """A node or a link of Graphiti's, as far as it is taken over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    uuid: Text = ""
    group_id: Text | None = ""


class Entity(Told):
    """A node that is not an episode, of its own type or none."""

    name: Text
    summary: Text | None = ""
    created_at: At
    labels: list[Text] = []

    @property
    def type(self) -> str:
        """Its own type, if it has one."""
        return next((each for each in self.labels if each != "Entity"), "Entity")


class Episode(Told):
    """A message, text or record; `valid_at` is when it was said."""

    name: Text | None = ""
    content: Text | None = ""
    source: Text | None = "message"
    source_description: Text | None = ""
    valid_at: At
    created_at: At


class Edge(Told):
    """A fact between two entities; `expired_at` is when it was found to be over."""

    one: str
    other: str
    name: Text | None = ""
    fact: Text | None = ""
    episodes: Annotated[list[str], BeforeValidator(_listed)] = []
    created_at: At
    expired_at: At | None = None
    valid_at: At | None = None
    invalid_at: At | None = None


class Community(Told):
    """A cluster of entities."""

    name: Text
    summary: Text | None = ""


class Link(Told):
    """That an episode mentions an entity, or a community has it."""

    one: str
    other: str


class Graph(BaseModel):
    """All of it."""

    entities: list[Entity]
    episodes: list[Episode]
    edges: list[Edge]
    mentions: list[Link]
    communities: list[Community]
    members: list[Link] = Field(default_factory=list)


def from_database(database: Database, name: str) -> Graph:
    """Return what Graphiti keeps in the graph *name* of *database*, as it is at one moment.

    Errors: `InputError` where there is none.
    """

    def taken(key: str) -> Graph:
        found = database.query(key, LAST, {}, write=False)
        if not found or found[0]["last"] is None:
            raise InputError(f"there is no graph {name!r} on that server, or it is empty: name Graphiti's (--graph)")

        def rows(query: str) -> Iterator[Row]:
            for first in range(0, found[0]["last"] + 1, PAGE):
                for row in database.query(key, query, {"first": first, "end": first + PAGE}, write=False):
                    yield row["row"]

        return Graph(
            entities=_read(Entity, rows(NODES.format(label="Entity"))),
            episodes=_read(Episode, rows(NODES.format(label="Episodic"))),
            edges=_read(Edge, rows(LINKS.format(label="Entity", kind="RELATES_TO"))),
            mentions=_read(Link, rows(LINKS.format(label="Episodic", kind="MENTIONS"))),
            communities=_read(Community, rows(NODES.format(label="Community"))),
            members=_read(Link, rows(LINKS.format(label="Community", kind="HAS_MEMBER"))),
        )

    return read_snapshot(database, name, taken)


def from_dump(path: Path) -> Graph:
    """Return what a dump of Neo4j holds: a line each node and relationship, nodes first.

    Errors: `InputError` with the number of a line that is wrong.
    """
    rows: dict[str, list[Row]] = {name: [] for name in (*_LABELS, *_KINDS)}
    uuids: dict[str, str] = {}
    for number, told in _dumped(path):
        properties = told.get("properties") or {}
        if told.get("type") == "node":
            uuids[str(told.get("id"))] = str(properties.get("uuid"))
            labels = [str(each) for each in told.get("labels") or ()]
            for label in _LABELS & {*labels}:
                rows[label].append({**properties, "labels": labels, "line": number})
        elif told.get("label") in _KINDS:
            ends = {name: uuids.get(str((told.get(end) or {}).get("id"))) for name, end in _ENDS}
            rows[told["label"]].append({**properties, **ends, "line": number})
    return Graph(
        entities=_read(Entity, rows["Entity"], path), episodes=_read(Episode, rows["Episodic"], path),
        edges=_read(Edge, rows["RELATES_TO"], path), mentions=_read(Link, rows["MENTIONS"], path),
        communities=_read(Community, rows["Community"], path), members=_read(Link, rows["HAS_MEMBER"], path),
    )  # fmt: skip


_LABELS = {"Entity", "Episodic", "Community"}
_KINDS = {"RELATES_TO", "MENTIONS", "HAS_MEMBER"}
_ENDS = (("one", "start"), ("other", "end"))


def only(graph: Graph, group: str | None) -> Graph:
    """Return what of *graph* belongs to *group*; to the only one if none is given.

    Errors: `InputError` where there are several, or not that one: a group is somebody's own memory.
    """
    groups = sorted({each.group_id or "" for each in (*graph.entities, *graph.episodes)})
    if not groups:
        raise InputError("there are no entities and no episodes of Graphiti's: check what it was exported from")
    if group is None and len(groups) > 1:
        raise InputError(f"there are {len(groups)} groups, such as {groups[:5]}: say which is meant (--group)")
    if group is not None and group not in groups:
        raise InputError(f"there is no group {group!r}, but {groups[:5]}: name one of them")
    meant = groups[0] if group is None else group
    kept = {
        name: [each for each in getattr(graph, name) if (each.group_id or "") == meant] for name in Graph.model_fields
    }
    return Graph(**kept)


def _dumped(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    told = json.loads(line) if line.strip() else {}
                except (ValueError, RecursionError):
                    told = None
                if not isinstance(told, dict):
                    raise InputError(f"{path}:{number}: no node or relationship in JSON: use apoc.export.json.all")
                yield number, told
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check its name and permissions") from None


def _read(model: type[M], rows: Iterable[Row], path: Path | None = None) -> list[M]:
    found = []
    for row in rows:
        try:
            found.append(model.model_validate(row))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = f"{path}:{row['line']}" if path else f"{model.__name__} {row.get('uuid')!r:.60}"
            where = ".".join(str(each) for each in first["loc"][:2])
            raise InputError(f"{place}: {where}: {first['msg']}: mend it there, or take it out") from None
    return found
