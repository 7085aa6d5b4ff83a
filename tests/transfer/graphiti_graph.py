"""A small graph in Graphiti's form, made by hand: as nodes and links in FalkorDB, and as a dump of Neo4j."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

GROUP = "ann"
ENTITIES = {"ann": ("Ann", ["Entity", "Person"]), "oslo": ("Oslo", ["Entity"]), "paris": ("Paris", ["Entity"]),
            "oslo2": ("OSLO", ["Entity"]), "acme": ("Acme", ["Entity"]), "alone": ("Nobody knows", ["Entity"])}  # fmt: skip
EPISODES = {
    "e1": ("Ann: I live in Oslo, undated", "message", "2024-01-01T00:00:00Z", 0),
    "e2": ("Ann: I moved to Paris", "message", "2024-02-01T00:00:00Z", 1),
    "e3": ('{"employer": "Acme"}', "json", "2024-03-01T00:00:00Z", 2),
}
MENTIONS = (("e1", "ann"), ("e1", "oslo"), ("e2", "ann"), ("e2", "paris"), ("e3", "acme"))


def _recorded(minute: int) -> str:
    return f"2025-01-01T10:{minute:02}:00.000000Z"


FACTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "f1": ("ann", "oslo", {
        "name": "LIVES_IN", "fact": "Ann lives in Oslo", "episodes": ["e1"], "created_at": _recorded(0),
        "valid_at": "2024-01-01T00:00:00Z", "invalid_at": "2024-02-01T00:00:00Z", "expired_at": _recorded(1),
    }),
    "f2": ("ann", "paris", {
        "name": "LIVES_IN", "fact": "Ann lives in Paris", "episodes": ["e2", "gone"], "created_at": _recorded(1),
        "valid_at": "2024-02-01T00:00:00Z",
    }),
    "f3": ("ann", "acme", {
        "name": "works at", "fact": "Ann works at Acme", "episodes": ["e3"], "created_at": _recorded(2),
    }),
    "f4": ("acme", "oslo2", {
        "name": "IS_IN", "fact": "Acme was in Oslo", "episodes": [], "created_at": _recorded(3),
        "valid_at": "2020-01-01T00:00:00Z", "invalid_at": "2021-01-01T00:00:00Z",
    }),
}  # fmt: skip


def nodes() -> list[tuple[list[str], dict[str, Any]]]:
    """Return the nodes: labels and properties."""
    own = {"group_id": GROUP, "created_at": _recorded(0)}
    return [
        *((labels, {**own, "uuid": uuid, "name": name, "summary": f"About {name}."})
          for uuid, (name, labels) in ENTITIES.items()),
        *((["Episodic"], {**own, "uuid": uuid, "name": uuid, "content": content, "source": source, "valid_at": at,
                          "source_description": "chat", "created_at": _recorded(minute)})
          for uuid, (content, source, at, minute) in EPISODES.items()),
        (["Community"], {**own, "uuid": "c1", "name": "Ann's places", "summary": "Where Ann was"}),
    ]  # fmt: skip


def links() -> list[tuple[str, str, str, dict[str, Any]]]:
    """Return the links: from, to, type and properties."""
    own = {"group_id": GROUP}
    facts = [(one, other, "RELATES_TO", {**own, "uuid": uuid, **told}) for uuid, (one, other, told) in FACTS.items()]
    mentions = [(one, other, "MENTIONS", {**own, "uuid": f"{one}-{other}"}) for one, other in MENTIONS]
    return [*facts, *mentions, *(("c1", each, "HAS_MEMBER", own) for each in ("ann", "oslo", "paris"))]


def put(query: Callable[..., Any]) -> None:
    """Write the graph by *query*."""
    for labels, properties in nodes():
        query(f"CREATE (n:{':'.join(labels)}) SET n = $told", told=properties)
    for one, other, kind, properties in links():
        write = f"MATCH (a {{uuid: $one}}), (b {{uuid: $other}}) CREATE (a)-[r:{kind}]->(b) SET r = $told"
        query(write, one=one, other=other, told=properties)


def dump(path: Path) -> None:
    """Write the graph as ``apoc.export.json.all`` does."""
    numbers = {told["uuid"]: str(number) for number, (_, told) in enumerate(nodes())}
    lines = [
        {"type": "node", "id": numbers[told["uuid"]], "labels": labels, "properties": told} for labels, told in nodes()
    ]
    for number, (one, other, kind, told) in enumerate(links()):
        ends = {"start": {"id": numbers[one]}, "end": {"id": numbers[other]}}
        lines.append({"id": str(number), "type": "relationship", "label": kind, "properties": told, **ends})
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    path.write_text(text.replace("00.000000Z", "00.000000000Z[UTC]"), "utf-8")
