"""Translate filters such as ``{"speaker": "Ann"}`` to clauses of Cypher, with every value as a query parameter.

The clauses keep the rows of a query whose node ``d`` passes the filter. Parts of a filter that must pass become
matches; parts under ``$or`` and ``$not`` become flags, by ``max(CASE ...)`` over an optional match. Patterns in WHERE
and pattern comprehensions are three times slower, and FalkorDB 4.22.1 refuses the latter after WITH and when nested.
Ends of relations have no label, and a WITH stands before each match: otherwise the plan starts from all nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from kg_memory.falkor.queries import fragments as part
from kg_memory.falkor.wire import Params
from kg_memory.models.filters import LABEL, ORDERS, AllOf, FieldComparison, Fields, Filter, Not, Owner, Plain, field_of
from kg_memory.models.filters import comparisons as compared
from kg_memory.models.graph import Kind
from kg_memory.models.labels import PREFIX, encode_label
from kg_memory.runtime.effects import read_if
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros
from kg_memory.text.identity import alias_key, replace_unstorable, thread_key
from kg_memory.text.predicates import predicate_name

Names = Mapping[str, Sequence[str]]
"""The ids of the entities with a name, by the name's alias key."""

ENTITIES_BY_NAME = """
MATCH (a:Alias)
WHERE a.key IN $keys
MATCH (a)-[:NAMES]->(e)
RETURN a.key AS key, collect(e.id) AS ids
"""
COUNT_CANDIDATES = """
WITH d LIMIT $most
RETURN count(d) AS n
"""
"""The end of a query that counts candidates, up to ``$most``."""

Holder = Owner | Literal["community"]
"""The kind of a node in a query: one that owns filter fields, or a community, which owns none."""
HOLDERS: Mapping[Kind, Holder] = {
    "facts": "fact",
    "entities": "entity",
    "communities": "community",
    "episodes": "episode",
}
LABELS: Mapping[Owner, str] = {"fact": "Fact", "entity": "Entity", "episode": "Episode", "belief": "Belief"}
LINKS: Mapping[tuple[Holder, Holder], str] = {
    ("fact", "episode"): "({a})<-[:STATES]-({b})",
    ("fact", "entity"): "({a})-[:SUBJECT_OF|OBJECT_IS]-({b})",
    ("fact", "belief"): "({a})-[h:HELD|PROPOSED]->({b})",
    ("entity", "episode"): "({a})<-[:MENTIONS]-({b})",
    ("entity", "fact"): "({a})-[:SUBJECT_OF|OBJECT_IS]-({b})",
    ("episode", "fact"): "({a})-[:STATES]->({b})",
    ("episode", "entity"): "({a})-[:MENTIONS]->({b})",
    ("community", "entity"): "({a})-[:HAS_MEMBER]->({b})",
}
BELIEF = "b"
"""The variable of a belief in `fragments.HOLDS`."""
PROPERTIES: Mapping[str, str] = {"thread": "thread_key", "said_at": "at", "name": "id", "fact_kind": "kind"}
SIGNS: Mapping[str, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
INDEXED = ("thread", "name")


@dataclass(frozen=True, slots=True)
class Step:
    """Cypher clauses that filter the rows of a query, and the parameters that they use: ``{"where0": ["Ann"]}``."""

    cypher: str
    params: Params


def read_names(where: Filter) -> Flow[Names]:
    """Read from the graph which entities have the names in the filter *where*: ``{"ann": ["e1", "e7"]}``, by name."""
    names = (value for comparison in compared(where) if comparison.field == "name" for value in _values(comparison))
    keys = sorted({alias_key(str(name)) for name in names})
    rows = yield from read_if(keys, ENTITIES_BY_NAME, keys=keys)  # of several namespaces, one row of each
    return {row["key"]: [id_ for each in rows if each["key"] == row["key"] for id_ in each["ids"]] for row in rows}


def filter_step(where: Filter, kind: Kind, names: Names, carried: Sequence[str] = ("d", "score")) -> Step:
    """Return the Cypher clauses that keep the rows whose node ``d`` (of *kind*) matches the filter *where*."""
    # FalkorDB 4.22.1 would apply a LIMIT before the filter if an ORDER BY came before it.
    writer = _Writer(names)
    writer.require(where, _Node("d", HOLDERS[kind]), carried)
    return Step("".join(writer.lines), writer.params)


def start_step(where: Filter, kind: Kind, names: Names) -> Step | None:
    """Return Cypher that begins a query with the nodes ``d`` matching *where*; None if it has only $or and $not."""
    node = _Node("d", HOLDERS[kind])
    required = list(_mandatory_parts(where))
    fields = [inner for inner in required if isinstance(inner, Fields)]
    if not fields:
        return None
    writer = _Writer(names)
    first = _Node("m", "entity") if kind == "communities" else node
    starts = ((inner, start_kind) for inner in fields for start_kind in _by_node_kind(inner, first.kind))
    start, start_kind = min(starts, key=lambda each: _cost(each[0], each[1], first))
    comparisons = _by_node_kind(start, first.kind)[start_kind]
    writer.start(start_kind, comparisons, first)
    rest = tuple(comparison for comparison in start.comparisons if comparison not in comparisons)
    if rest:
        writer.require(Fields(rest), first, [first.name])
    if first is not node:
        writer.write(f"MATCH {_link(node, first)}", "WITH DISTINCT d")
    for inner in required:
        if inner is not start:
            writer.require(inner, node, ["d"])
    return Step("".join(writer.lines), writer.params)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node in a Cypher query: its variable, such as ``d``, and its kind, such as ``"fact"``."""

    name: str
    kind: Holder


@dataclass(slots=True)
class _Writer:
    """Translates a filter to lines of Cypher, and collects the parameters of these lines in `params`."""

    names: Names
    lines: list[str] = field(default_factory=list)
    params: dict[str, object] = field(default_factory=dict)
    variables: int = 0

    def start(self, start_kind: Owner, comparisons: Sequence[FieldComparison], node: _Node) -> None:
        """Add Cypher that matches the nodes of *start_kind* which pass *comparisons*: *node*, or nodes linked to it."""
        if start_kind == node.kind:
            self.write(f"MATCH ({node.name}:{LABELS[start_kind]})")
            self.write(f"WHERE {self.all_of(comparisons, node)}", f"WITH {node.name}")
            return
        linked = _Node(BELIEF if start_kind == "belief" else "x", start_kind)
        own = [comparison for comparison in comparisons if field_of(comparison).of == start_kind]
        self.write(f"MATCH ({linked.name}:{LABELS[start_kind]})")
        if own:
            self.write(f"WHERE {self.all_of(own, linked)}")
        self.write(f"WITH {linked.name}")
        if start_kind == "fact":
            beliefs = [comparison for comparison in comparisons if comparison not in own]
            self.require_linked("belief", beliefs, linked, [linked.name])
        self.write(f"MATCH {_link(node, linked)}")
        if start_kind == "belief":
            self.write(f"WHERE {part.HOLDS}")
        self.write(f"WITH DISTINCT {node.name}")

    def require(self, where: Filter, node: _Node, carried: Sequence[str]) -> None:
        """Add Cypher that drops rows whose *node* does not match *where*; the variables *carried* stay in scope."""
        if isinstance(where, AllOf):
            for inner in where.parts:
                self.require(inner, node, carried)
        elif not isinstance(where, Fields):
            scope = list(carried)
            truth = self.truth(where, node, scope)
            self.write(f"WITH {', '.join(scope)}", f"WHERE {truth}", f"WITH {', '.join(carried)}")
        elif node.kind == "community":
            member = self.new_node("entity")
            self.write(f"MATCH {_link(node, member)}")
            self.require(where, member, [*carried, member.name])
            self.write(f"WITH DISTINCT {', '.join(carried)}")
        else:
            groups = _by_node_kind(where, node.kind)
            own = groups.pop(node.kind, None)
            if own:
                self.write(f"WITH {', '.join(carried)}", f"WHERE {self.all_of(own, node)}")
            for kind, comparisons in groups.items():
                self.require_linked(kind, comparisons, node, carried)

    def require_linked(
        self, kind: Owner, comparisons: Sequence[FieldComparison], node: _Node, carried: Sequence[str]
    ) -> None:
        """Write Cypher that keeps only rows whose *node* is linked to a node of *kind* that passes *comparisons*."""
        linked = self.linked_node(kind)
        self.write(*(f"MATCH {link}" for link in _links(node, linked)))
        self.write(f"WHERE {self.test_linked(comparisons, linked)}", f"WITH DISTINCT {', '.join(carried)}")

    def truth(self, where: Filter, node: _Node, scope: list[str]) -> str:
        """Return a Cypher condition: *node* matches the filter *where*. Its new variables are added to *scope*."""
        flags = self.write_member_flags if node.kind == "community" else self.write_linked_flags
        return self.condition(where, node, flags(dict.fromkeys(_fields_in(where)), node, scope))

    def condition(self, where: Filter, node: _Node, flags: Mapping[Fields, list[str]]) -> str:
        """Return *where* as a Cypher condition on *node*; *flags*: variables that say whether a linked node matches."""
        if isinstance(where, Not):
            return f"NOT {self.condition(where.part, node, flags)}"
        if not isinstance(where, Fields):
            joint, alone = (" AND ", "true") if isinstance(where, AllOf) else (" OR ", "false")
            return f"({joint.join([self.condition(inner, node, flags) for inner in where.parts]) or alone})"
        own = None if node.kind == "community" else _by_node_kind(where, node.kind).get(node.kind)
        tests = [f"coalesce({self.all_of(own, node)}, false)"] if own else []
        return f"({' AND '.join([*tests, *flags.get(where, ())])})"

    def write_linked_flags(self, fields: Iterable[Fields], node: _Node, scope: list[str]) -> Mapping[Fields, list[str]]:
        """Add Cypher that computes whether nodes linked to *node* match the filters *fields*; return its variables."""
        tests: defaultdict[Owner, dict[Fields, str]] = defaultdict(dict)
        linked: dict[Owner, _Node] = {}
        for each in fields:
            for kind, comparisons in _by_node_kind(each, node.kind).items():
                if kind != node.kind:
                    linked.setdefault(kind, self.linked_node(kind))
                    tests[kind][each] = self.test_linked(comparisons, linked[kind])
        flags: defaultdict[Fields, list[str]] = defaultdict(list)
        for kind, by_fields in tests.items():
            self.write(*(f"OPTIONAL MATCH {link}" for link in _links(node, linked[kind])))
            for each, flag in zip(by_fields, self.write_flags(by_fields.values(), scope), strict=True):
                flags[each].append(flag)
        return flags

    def write_member_flags(self, fields: Iterable[Fields], node: _Node, scope: list[str]) -> Mapping[Fields, list[str]]:
        """As `write_linked_flags`, for the filters that an entity in the community *node* must match."""
        flags: dict[Fields, list[str]] = {}
        for each in fields:
            member = self.new_node("entity")
            self.write(f"OPTIONAL MATCH {_link(node, member)}")
            inner = self.truth(each, member, [*scope, member.name])
            flags[each] = self.write_flags([f"{member.name} IS NOT NULL AND {inner}"], scope)
        return flags

    def write_flags(self, tests: Collection[str], scope: list[str]) -> list[str]:
        """Add Cypher that computes a Boolean variable for each condition in *tests*; return the variables' names."""
        names = [self.new_name() for _ in tests]
        passed = (
            f"max(CASE WHEN {test} THEN 1 ELSE 0 END) = 1 AS {name}" for test, name in zip(tests, names, strict=True)
        )
        self.write(f"WITH {', '.join([*scope, *passed])}")
        scope += names
        return names

    def linked_node(self, kind: Owner) -> _Node:
        return _Node(BELIEF, kind) if kind == "belief" else self.new_node(kind)

    def test_linked(self, comparisons: Sequence[FieldComparison], linked: _Node) -> str:
        """Return a Cypher condition: *linked*, or one of its beliefs (nodes of periods), passes all *comparisons*."""
        own = [comparison for comparison in comparisons if field_of(comparison).of == linked.kind]
        if linked.kind not in ("fact", "belief"):
            return f"{linked.name} IS NOT NULL AND {self.all_of(own, linked)}"
        beliefs = [comparison for comparison in comparisons if field_of(comparison).of == "belief"]
        facts = self.tests(own, linked) if linked.kind == "fact" else []
        return " AND ".join([*facts, part.HOLDS, *self.tests(beliefs, _Node(BELIEF, "belief"))])

    def all_of(self, comparisons: Sequence[FieldComparison], node: _Node) -> str:
        """Return a Cypher condition: *node* passes all *comparisons*."""
        return " AND ".join(self.tests(comparisons, node))

    def tests(self, comparisons: Sequence[FieldComparison], node: _Node) -> list[str]:
        """Return a Cypher condition on *node* for each of *comparisons*: ``["d.kind IN $where0"]``."""
        return [
            self.test_label(comparison, f"coalesce({node.name}.labels, [])")
            if field_of(comparison) is LABEL
            else self.test(comparison, _property_expression(comparison.field, node))
            for comparison in comparisons
        ]

    def test(self, comparison: FieldComparison, place: str) -> str:
        """Return *comparison* as a Cypher condition on *place*, a property: ``"d.kind" -> "d.kind IN $where0"``."""
        values = self.values_in_graph(comparison)
        if comparison.operator in ORDERS:
            return f"{place} {SIGNS[comparison.operator]} {self.param(values[0])}"
        among = f"{place} IN {self.param([value for value in values if value is not None])}"
        if comparison.operator in ("$eq", "$in"):
            return f"({place} IS NULL OR {among})" if None in values else among
        if None in values:
            return f"({place} IS NOT NULL AND NOT {among})"
        return f"({place} IS NULL OR NOT {among})" if field_of(comparison).optional else f"NOT {among}"

    def test_label(self, comparison: FieldComparison, labels: str) -> str:
        """Return *comparison* as a Cypher condition on *labels*, an expression for a list like ``['tags:"vip"']``."""
        key = comparison.field.removeprefix(PREFIX)
        begins = f"label STARTS WITH {self.param(f'{key}:')}"
        if comparison.operator in ORDERS:
            number = f"toFloat(substring(label, {self.param(len(key) + 1)}))"
            passes = f"{number} {SIGNS[comparison.operator]} {self.param(comparison.value)}"
            return f"size([label IN {labels} WHERE {begins} AND {passes}]) > 0"
        values = _values(comparison)
        texts = [encode_label(key, _to_stored(comparison, value)) for value in values if value is not None]
        none = f"size([label IN {labels} WHERE {begins}]) = 0"
        among = f"size([label IN {labels} WHERE label IN {self.param(texts)}]) > 0"
        if comparison.operator in ("$eq", "$in"):
            return f"({none} OR {among})" if None in values else among
        return f"NOT ({none} OR {among})" if None in values else f"NOT {among}"

    def values_in_graph(self, comparison: FieldComparison) -> list[Any]:
        """Return the values of *comparison* as the graph stores them: times in microseconds, names as entity ids."""
        if comparison.field == "name":
            keys = [alias_key(str(name)) for name in _values(comparison)]
            return sorted({id_ for key in keys for id_ in self.names.get(key, ())})
        return [_to_stored(comparison, value) for value in _values(comparison)]

    def param(self, value: Any) -> str:
        name = f"where{len(self.params)}"
        self.params[name] = value
        return f"${name}"

    def new_node(self, kind: Owner) -> _Node:
        return _Node(self.new_name(), kind)

    def new_name(self) -> str:
        self.variables += 1
        return f"w{self.variables}"

    def write(self, *lines: str) -> None:
        self.lines += [f"\n{line}" for line in lines]


def _link(a: _Node, b: _Node) -> str:
    return LINKS[a.kind, b.kind].format(a=a.name, b=b.name)


def _links(node: _Node, linked: _Node) -> list[str]:
    return [_link(node, linked), *([_link(linked, _Node(BELIEF, "belief"))] if linked.kind == "fact" else [])]


def _fields_in(where: Filter) -> Iterator[Fields]:
    if isinstance(where, Fields):
        yield where
    else:
        for inner in (where.part,) if isinstance(where, Not) else where.parts:
            yield from _fields_in(inner)


def _property_expression(name: str, node: _Node) -> str:
    place = f"{node.name}.{PROPERTIES.get(name, name)}"
    return f"coalesce({place}, 'state')" if name == "fact_kind" else place


def _by_node_kind(fields: Fields, kind: Holder) -> dict[Owner, list[FieldComparison]]:
    """Group the comparisons of *fields* by the kind of node with the field: ``{"fact": [...], "episode": [...]}``."""
    groups: defaultdict[Owner, list[FieldComparison]] = defaultdict(list)
    for comparison in fields.comparisons:
        of = field_of(comparison).of
        groups["fact" if of == "belief" and kind != "fact" else of].append(comparison)
    return dict(groups)


def _cost(fields: Fields, start_kind: Owner, node: _Node) -> int:
    """Return the relative cost, 0 (an indexed field) to 3, of a query that finds *node* from nodes of *start_kind*."""
    comparisons = _by_node_kind(fields, node.kind)[start_kind]
    if any(comparison.field in INDEXED and comparison.operator in ("$eq", "$in") for comparison in comparisons):
        return 0
    return 1 if start_kind == node.kind else 2 if start_kind != "belief" else 3


def _mandatory_parts(where: Filter) -> Iterator[Filter]:
    if isinstance(where, AllOf):
        for inner in where.parts:
            yield from _mandatory_parts(inner)
    else:
        yield where


def _values(comparison: FieldComparison) -> tuple[Plain, ...]:
    return comparison.value if isinstance(comparison.value, tuple) else (comparison.value,)


def _to_stored(comparison: FieldComparison, value: Plain) -> Any:
    """Convert *value* to its form in the graph: a time to microseconds since the epoch, a thread name to a hash."""
    name, owned = comparison.field, field_of(comparison)
    if owned.holds == "time":
        open_end = OPEN_START if name == "valid_at" else OPEN_END
        return micros(datetime.fromisoformat(value) if isinstance(value, str) else None, default=open_end)
    if not isinstance(value, str):
        return thread_key(None) if name == "thread" else value
    text = replace_unstorable(value)
    if name == "thread":
        return thread_key(text)
    if name == "predicate":
        return predicate_name(text)
    if name == "speaker":
        text = " ".join(text.split())
    return text or None if owned.optional and owned is not LABEL else text
