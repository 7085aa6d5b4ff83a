"""Filters as steps of queries: fixed pieces of Cypher, with every value as a parameter.

A step takes the rows of a query, in which ``d`` is a node of the kind, and leaves those whose node passes. What the
filter demands is matched; what stands in ``$or`` and ``$not`` is counted, by ``max(CASE ...)`` over an optional match.
Patterns in WHERE and pattern comprehensions take three times as long, and FalkorDB 4.22.1 refuses the latter after a
WITH and within each other. Neighbours have no label and a WITH stands before each match, or it begins at all nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from kg_memory.falkor.queries import fragments as part
from kg_memory.models.filters import FIELDS, ORDERS, AllOf, Comparison, Fields, Filter, Not, Owner, Plain, compared
from kg_memory.models.graph import Kind
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros
from kg_memory.text.identity import alias_key, replace_unstorable, thread_key
from kg_memory.text.predicates import predicate_name

Names = Mapping[str, Sequence[str]]
"""The ids of the entities with a name, by its alias key."""

NAMED = """
MATCH (a:Alias)
WHERE a.key IN $keys
MATCH (a)-[:NAMES]->(e)
RETURN a.key AS key, collect(e.id) AS ids
"""
COUNT = """
WITH d LIMIT $most
RETURN count(d) AS n
"""
"""The end of a query that counts candidates, `most` of them at most."""

Holder = Owner | Literal["community"]
"""What may stand in a query: a community has no field of its own."""
HOLDERS: Mapping[Kind, Holder] = {
    "facts": "fact", "entities": "entity", "communities": "community", "episodes": "episode",
}  # fmt: skip
LABELS: Mapping[Owner, str] = {"fact": "Fact", "entity": "Entity", "episode": "Episode", "belief": "Belief"}
LINKS: Mapping[tuple[Holder, Holder], str] = {
    ("fact", "episode"): "({one})<-[:STATES]-({other})",
    ("fact", "entity"): "({one})-[:SUBJECT_OF|OBJECT_IS]-({other})",
    ("fact", "belief"): "({one})-[h:HELD|PROPOSED]->({other})",
    ("entity", "episode"): "({one})<-[:MENTIONS]-({other})",
    ("entity", "fact"): "({one})-[:SUBJECT_OF|OBJECT_IS]-({other})",
    ("episode", "fact"): "({one})-[:STATES]->({other})",
    ("episode", "entity"): "({one})-[:MENTIONS]->({other})",
    ("community", "entity"): "({one})-[:HAS_MEMBER]->({other})",
}
BELIEF = "b"
"""What `fragments.HOLDS` calls a belief."""
PROPERTIES: Mapping[str, str] = {"thread": "thread_key", "said_at": "at", "name": "id"}
SIGNS: Mapping[str, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
INDEXED = ("thread", "name")


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a query, and the parameters that it needs beside those of `fragments.HOLDS`."""

    cypher: str
    params: Mapping[str, Any]


def called(where: Filter) -> Flow[Names]:
    """Return the entities that *where* names, as the other functions want them; it reads only if there are names."""
    texts = (text for each in compared(where) if each.field == "name" for text in _values(each))
    keys = sorted({alias_key(str(text)) for text in texts})
    if not keys:
        return {}
    rows = yield from read(NAMED, keys=keys)
    return {row["key"]: row["ids"] for row in rows}


def condition(where: Filter, kind: Kind, names: Names, carried: Sequence[str] = ("d", "score")) -> Step:
    """Return the step that leaves those rows of *carried* whose ``d`` passes.

    It must stand after a WITH, and ends in one, of *carried*. Order after it, not before: FalkorDB 4.22.1 moves a LIMIT
    up to an ORDER BY above a filter.
    """
    step = _Step(names)
    step.require(where, _Node("d", HOLDERS[kind]), carried)
    return Step("".join(step.lines), step.params)


def candidates(where: Filter, kind: Kind, names: Names) -> Step | None:
    """Return the beginning of a query that finds as ``d``, once each, all that pass; from an index where it can.

    ``None`` where everything of the kind would have to be followed: *where* is only ``$or`` and ``$not``.
    """
    node = _Node("d", HOLDERS[kind])
    demanded = list(_demanded(where))
    fields = [each for each in demanded if isinstance(each, Fields)]
    if not fields:
        return None
    step = _Step(names)
    first = _Node("m", "entity") if kind == "communities" else node
    starts = [(_rank(each, group, first), each, group) for each in fields for group in _groups(each, first.owner)]
    _, chosen, group = min(starts, key=lambda start: start[0])
    step.start(group, _groups(chosen, first.owner)[group], first)
    rest = tuple(each for each in chosen.comparisons if each not in _groups(chosen, first.owner)[group])
    if rest:
        step.require(Fields(rest), first, [first.name])
    if first is not node:
        step.write(f"MATCH {_link(node, first)}", "WITH DISTINCT d")
    for each in demanded:
        if each is not chosen:
            step.require(each, node, ["d"])
    return Step("".join(step.lines), step.params)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a query."""

    name: str
    owner: Holder


@dataclass(slots=True)
class _Step:
    """A step that is being written."""

    names: Names
    lines: list[str] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    made: int = 0

    def start(self, group: Owner, comparisons: Sequence[Comparison], node: _Node) -> None:
        """Match as *node*, once each, all that have *comparisons*: by themselves, or by one thing of *group*."""
        if group == node.owner:
            found = f"MATCH ({node.name}:{LABELS[group]})"
            self.write(found, f"WHERE {self.tests(comparisons, node)}", f"WITH {node.name}")
            return
        other = _Node(BELIEF if group == "belief" else "x", group)
        own = [each for each in comparisons if FIELDS[each.field].of == group]
        self.write(f"MATCH ({other.name}:{LABELS[group]})")
        if own:
            self.write(f"WHERE {self.tests(own, other)}")
        self.write(f"WITH {other.name}")
        if group == "fact":
            beliefs = [each for each in comparisons if each not in own]
            self.require_linked("belief", beliefs, other, [other.name])
        self.write(f"MATCH {_link(node, other)}")
        if group == "belief":
            self.write(f"WHERE {part.HOLDS}")
        self.write(f"WITH DISTINCT {node.name}")

    def require(self, where: Filter, node: _Node, carried: Sequence[str]) -> None:
        """Leave the rows of *carried* whose *node* passes."""
        if isinstance(where, AllOf):
            for each in where.parts:
                self.require(each, node, carried)
        elif not isinstance(where, Fields):
            known = list(carried)
            truth = self.truth(where, node, known)
            self.write(f"WITH {', '.join(known)}", f"WHERE {truth}", f"WITH {', '.join(carried)}")
        elif node.owner == "community":
            member = self.new("entity")
            self.write(f"MATCH {_link(node, member)}")
            self.require(where, member, [*carried, member.name])
            self.write(f"WITH DISTINCT {', '.join(carried)}")
        else:
            groups = _groups(where, node.owner)
            own = groups.pop(node.owner, None)
            if own:
                self.write(f"WITH {', '.join(carried)}", f"WHERE {self.tests(own, node)}")
            for group, comparisons in groups.items():
                self.require_linked(group, comparisons, node, carried)

    def require_linked(
        self, group: Owner, comparisons: Sequence[Comparison], node: _Node, carried: Sequence[str]
    ) -> None:
        """Leave the rows of *carried* whose *node* is linked to one thing of *group* that has *comparisons*."""
        links, test = self.followed(group, comparisons, node)
        self.write(*(f"MATCH {link}" for link in links), f"WHERE {test}", f"WITH DISTINCT {', '.join(carried)}")

    def truth(self, where: Filter, node: _Node, known: list[str]) -> str:
        """Return an expression that tells whether *node* passes, never null; *known* grows by what it stands on."""
        if isinstance(where, Not):
            return f"NOT {self.truth(where.part, node, known)}"
        if not isinstance(where, Fields):
            joint, alone = (" AND ", "true") if isinstance(where, AllOf) else (" OR ", "false")
            return f"({joint.join([self.truth(each, node, known) for each in where.parts]) or alone})"
        if node.owner == "community":
            member = self.new("entity")
            self.write(f"OPTIONAL MATCH {_link(node, member)}")
            inner = self.truth(where, member, [*known, member.name])
            return self.counted(f"{member.name} IS NOT NULL AND {inner}", known)
        groups = _groups(where, node.owner)
        own = groups.pop(node.owner, None)
        found = [f"coalesce({self.tests(own, node)}, false)"] if own else []
        for group, comparisons in groups.items():
            links, test = self.followed(group, comparisons, node)
            self.write(*(f"OPTIONAL MATCH {link}" for link in links))
            found.append(self.counted(test, known))
        return f"({' AND '.join(found)})"

    def counted(self, test: str, known: list[str]) -> str:
        """Return the name of whether one of the rows that share what is *known* has the *test*."""
        flag = self.name()
        self.write(f"WITH {', '.join(known)}, max(CASE WHEN {test} THEN 1 ELSE 0 END) = 1 AS {flag}")
        known.append(flag)
        return flag

    def followed(self, group: Owner, comparisons: Sequence[Comparison], node: _Node) -> tuple[list[str], str]:
        """Return the links from *node* to a thing of *group*, and the test that it must pass, null if there is none."""
        if group == "belief":
            belief = _Node(BELIEF, "belief")
            return [_link(node, belief)], " AND ".join([part.HOLDS, *self.each(comparisons, belief)])
        other = self.new(group)
        own = [each for each in comparisons if FIELDS[each.field].of == group]
        if group != "fact":
            return [_link(node, other)], f"{other.name} IS NOT NULL AND {self.tests(own, other)}"
        links, holds = self.followed("belief", [each for each in comparisons if each not in own], other)
        return [_link(node, other), *links], " AND ".join([*self.each(own, other), holds])

    def tests(self, comparisons: Sequence[Comparison], node: _Node) -> str:
        """Return the expression that *node* has all *comparisons*."""
        return " AND ".join(self.each(comparisons, node))

    def each(self, comparisons: Sequence[Comparison], node: _Node) -> list[str]:
        """Return an expression for each of *comparisons*."""
        return [self.comparison(each, f"{node.name}.{PROPERTIES.get(each.field, each.field)}") for each in comparisons]

    def comparison(self, given: Comparison, place: str) -> str:
        """Return the expression that what stands in *place* compares as *given*."""
        values = self.stored(given)
        if given.operator in ORDERS:
            return f"{place} {SIGNS[given.operator]} {self.param(values[0])}"
        among = f"{place} IN {self.param([value for value in values if value is not None])}"
        if given.operator in ("$eq", "$in"):
            return f"({place} IS NULL OR {among})" if None in values else among
        if None in values:
            return f"({place} IS NOT NULL AND NOT {among})"
        return f"({place} IS NULL OR NOT {among})" if FIELDS[given.field].optional else f"NOT {among}"

    def stored(self, given: Comparison) -> list[Any]:
        """Return the values of *given* as the graph holds them."""
        if given.field == "name":
            return sorted({id_ for text in _values(given) for id_ in self.names.get(alias_key(str(text)), ())})
        return [_stored(given.field, value) for value in _values(given)]

    def param(self, value: Any) -> str:
        name = f"where{len(self.params)}"
        self.params[name] = value
        return f"${name}"

    def new(self, owner: Owner) -> _Node:
        return _Node(self.name(), owner)

    def name(self) -> str:
        self.made += 1
        return f"w{self.made}"

    def write(self, *lines: str) -> None:
        self.lines += [f"\n{line}" for line in lines]


def _link(node: _Node, other: _Node) -> str:
    return LINKS[node.owner, other.owner].format(one=node.name, other=other.name)


def _groups(fields: Fields, owner: Holder) -> dict[Owner, list[Comparison]]:
    """Return the comparisons by what one thing must have them; those of a linked fact are those of its belief too."""
    groups: defaultdict[Owner, list[Comparison]] = defaultdict(list)
    for each in fields.comparisons:
        of = FIELDS[each.field].of
        groups["fact" if of == "belief" and owner != "fact" else of].append(each)
    return dict(groups)


def _rank(fields: Fields, group: Owner, node: _Node) -> int:
    """Return how dear it is to start from *group*: an index, then what the node itself has, then what is linked."""
    comparisons = _groups(fields, node.owner)[group]
    if any(each.field in INDEXED and each.operator in ("$eq", "$in") for each in comparisons):
        return 0
    return 1 if group == node.owner else 2 if group != "belief" else 3


def _demanded(where: Filter) -> Iterator[Filter]:
    """Yield the parts of *where* that must all pass."""
    if isinstance(where, AllOf):
        for each in where.parts:
            yield from _demanded(each)
    else:
        yield where


def _values(given: Comparison) -> tuple[Plain, ...]:
    return given.value if isinstance(given.value, tuple) else (given.value,)


def _stored(name: str, value: Plain) -> Any:
    """Return *value* as the graph holds it in the field *name*."""
    if FIELDS[name].holds == "time":
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
    return text or None if FIELDS[name].optional else text
