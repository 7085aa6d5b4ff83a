"""What `tools.golden` digests: values as plain JSON that is the same in each run, whole graphs, and their hashes."""
# mypy: ignore-errors
# ruff: noqa: C901, E501, PLR0912

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import falkordb
import redis

from tools.golden_api import FIELDS, FIELDS_OF, Plain

CLOCK = int(datetime(2026, 3, 14, 9, tzinfo=UTC).timestamp()) * 1_000_000
TICK = 20_000_000
DAY = 24 * 3600 * 1_000_000


class World:
    """What is put in place of the world: the system's clock, and an ear on the wire of the database."""

    def __init__(self) -> None:
        self.tick, self.sent, self.path = 0, [0, 0], ""
        time.time_ns = lambda: (CLOCK + self.tick * TICK) * 1000
        for module in (redis.connection, importlib.import_module("redis.asyncio.connection")):
            kind = module.AbstractConnection
            kind.send_packed_command = self._heard(kind.send_packed_command)

    def _heard(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def sending(connection: Any, command: Any, *given: Any, **named: Any) -> Any:
            buffer = b"".join(map(bytes, command)) if not isinstance(command, bytes | str) else command
            text = buffer if isinstance(buffer, bytes) else buffer.encode()
            self.path = getattr(connection, "path", self.path)
            # A graph is looked at again after a minute; how often is a matter of the machine.
            looks = text.count(b"RETURN m.version AS version") + text.count(b"CALL db.indexes()")
            self.sent[0] += text.count(b"GRAPH.RO_QUERY\r\n") - looks
            self.sent[1] += text.count(b"GRAPH.QUERY\r\n")
            return send(connection, command, *given, **named)

        return sending

    @contextmanager
    def counted(self, into: list[Any]) -> Iterator[None]:
        """Add what is sent meanwhile to *into*: reads, writes."""
        before = tuple(self.sent)
        yield
        into.append([now - then for now, then in zip(self.sent, before, strict=True)])


PROSE = ("reason", "problem", "skipped", "left_out")
UNSTABLE = ("took", "seconds", "steps", "receipt", "head", "hash", "sha256", "bytes")
_RECORDED = re.compile(r"2026-03-14[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:\+00:00|Z)?")


def plain(value: Any) -> Any:
    """Return *value* as plain JSON by the old names, without what differs from run to run."""
    match value:
        case bool() | None:
            return value
        case Enum():
            return plain(value.value)
        case int():
            return f"@{(value - CLOCK) // TICK}" if CLOCK <= value < CLOCK + DAY else value
        case float():
            return round(value, 6)
        case datetime():
            return (
                plain(int(value.timestamp() * 1_000_000))
                if abs(value.timestamp() * 1e6 - CLOCK) < DAY
                else value.isoformat()
            )
        case str():
            if type(value) is not str and hasattr(value, "lines"):  # a context
                lines = [[each.kind, each.id, each.tokens] for each in value.lines]
                return [str(value), value.tokens, lines, len(value.left_out)]
            return _RECORDED.sub("@", value)
        case Mapping():
            named = {FIELDS.get(str(name), str(name)): each for name, each in value.items()}
            return {
                name: bool(each) if name in PROSE and isinstance(each, str | None) else plain(each)
                for name, each in named.items() if name not in UNSTABLE
            }  # fmt: skip
        case list() | tuple():
            if len(value) > 16 and all(isinstance(each, float) for each in value):
                return "v" + digest(json.dumps([round(each, 4) + 0.0 for each in value]))
            return [plain(each) for each in value]
        case set() | frozenset():
            return sorted(map(plain, value))
    if hasattr(type(value), "model_fields"):
        usage = {"usage": value.usage} if hasattr(value, "usage") else {}
        old = FIELDS_OF.get(type(value).__name__, {})
        return plain({**{old.get(name, name): getattr(value, name) for name in type(value).model_fields}, **usage})
    if dataclasses.is_dataclass(value):
        return plain({each.name: getattr(value, each.name) for each in dataclasses.fields(value)})
    return str(value)


def line(value: Any) -> str:
    """Return *value* as one line of text."""
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True)


def digest(text: str) -> str:
    """Return a short hash of *text*."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


SECTIONS = {
    "entities": "Entity Alias Meaning NAMES MEANS SIMILAR_TO", "facts": "Fact SUBJECT_OF OBJECT_IS STATES",
    "beliefs": "Belief HELD PROPOSED", "episodes": "Episode NEXT MENTIONS", "verdicts": "Verdict Decision JUDGED DECIDED",
    "predicates": "Predicate", "communities": "Community HAS_MEMBER PART_OF",
    "words": "Term IN_EPISODE IN_FACT IN_ENTITY IN_COMMUNITY",
}  # fmt: skip
_SECTION = {name: section for section, names in SECTIONS.items() for name in names.split()}


def dumped(path: str, namespace: str) -> dict[str, list[str]]:
    """Return all nodes and edges of the namespace's graph, a sorted line each, by section."""
    database = falkordb.FalkorDB(connection_pool=redis.BlockingConnectionPool(
        connection_class=redis.UnixDomainSocketConnection, path=path, decode_responses=True, max_connections=2,
    ))  # fmt: skip
    graph = database.select_graph(next(each for each in database.list_graphs() if each.endswith(f":{namespace}")))
    found, names = {section: list[str]() for section in (*SECTIONS, "rest")}, {}
    for id_, labels, node in graph.ro_query("MATCH (n) RETURN id(n), labels(n), n").result_set:
        label, has = "".join(labels), plain(node.properties)
        own = next(
            (has[each] for each in ("id", "key", "name", "s", "day") if has.get(each) is not None), digest(line(has))
        )
        names[id_] = f"{label}:{own}"
        found[_SECTION.get(label, "rest")].append(f"{label} {line(has)}")
    query = "MATCH (a)-[r]->(b) RETURN id(a), type(r), r, id(b)"
    for start, kind, edge, end in graph.ro_query(query).result_set:
        found[_SECTION.get(kind, "rest")].append(f"{names[start]} -{kind}-> {names[end]} {line(edge.properties)}")
    return {section: sorted(lines) for section, lines in found.items()}


class Record:
    """The digests of one graph, and all lines behind them, written to a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.digests: Plain = {}
        self._folder = folder / name

    def put(self, name: str, lines: Iterable[str]) -> None:
        """Record *lines* by their count and digest."""
        lines = list(lines)
        path = self._folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8", errors="surrogatepass")
        self.digests[name] = f"{len(lines)} {digest(chr(10).join(lines))}"

    def put_each(self, name: str, found: Mapping[str, Any]) -> None:
        """Record the values of *found*, each with a digest of its own, in groups by the last word of their keys."""
        lines = {key: line(value) for key, value in found.items()}
        self.put(name, [f"{key}\t{value}" for key, value in lines.items()])
        groups: dict[str, list[str]] = {}
        for key, value in lines.items():
            place, _, what = key.partition(" ")
            groups.setdefault(what or key, []).append(f"{place}:{digest(value)[:5]}" if what else digest(value)[:5])
        self.digests[name] = {what: " ".join(each) for what, each in groups.items()}


def attempt(work: Callable[[], Any]) -> Any:
    """Return what *work* does, or only that it failed: how errors are worded may change."""
    try:
        return work()
    except Exception as error:
        if type(error).__module__.split(".")[0] != "kg_memory":
            raise
        return "failed"
