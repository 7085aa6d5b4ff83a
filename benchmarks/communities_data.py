"""Synthetic graphs with planted communities, seeded, written to the database in the form that ingestion creates."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from benchmarks.search_scale_load import Writer
from kg_memory.temporal.interval import OPEN_END
from kg_memory.text.identity import alias_key, entity_id, entity_key

SINCE = 1_700_000_000_000_000
ENTITIES = """
UNWIND $rows AS row
CREATE (:Alias {key: row.alias})-[:NAMES]->(n:Entity)
SET n = row.node
"""
FACTS = """
UNWIND $rows AS row
MATCH (s:Entity {id: row.subject})
MATCH (o:Entity {id: row.object})
CREATE (s)-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(o), (f)-[:HELD]->(b:Belief)
SET f = row.node, b = row.belief
"""


@dataclass(frozen=True, slots=True)
class Planted:
    """A synthetic graph of numbered entities: groups of entities, and facts as pairs of entities."""

    groups: Sequence[Sequence[int]]
    facts: Sequence[tuple[int, int]]

    def rows(self, namespace: str) -> tuple[Iterator[Mapping[str, Any]], Iterator[Mapping[str, Any]]]:
        """Return the rows for the queries `ENTITIES` and `FACTS`."""
        count = sum(map(len, self.groups))
        ids = [entity_id(namespace, entity_key(name(each), "Person")) for each in range(count)]
        return (_entity(each, ids[each]) for each in range(count)), (
            _fact(number, ids[one], ids[other], f"{name(one)} knows {name(other)}")
            for number, (one, other) in enumerate(self.facts)
        )


def strangers(data: Planted) -> tuple[int, int]:
    """Return two entities of one group that no fact joins."""
    known = set(data.facts)
    pairs = (pair for group in data.groups for pair in combinations(sorted(group), 2))
    return next(pair for pair in pairs if pair not in known)


def planted(count: int, facts: int, size: int, inside: float = 0.8, seed: int = 1) -> Planted:
    """Return *count* entities in groups of *size*, and random *facts* between two entities each.

    The share *inside* of the facts is within a group. Most others join neighbouring groups, so that there are groups of
    groups. No pair of entities has two facts.
    """
    dice = random.Random(seed)
    order = dice.sample(range(count), count)
    groups = [order[start : start + size] for start in range(0, count, size)]
    found: dict[tuple[int, int], None] = {}
    while len(found) < facts:
        own = dice.randrange(len(groups))
        if dice.random() < inside:
            other = own
        elif dice.random() < 0.8:
            other = min(own // 10 * 10 + dice.randrange(10), len(groups) - 1)
        else:
            other = dice.randrange(len(groups))
        one, two = dice.choice(groups[own]), dice.choice(groups[other])
        if one != two:
            found.setdefault((min(one, two), max(one, two)))
    return Planted(groups, list(found))


def write(writer: Writer, namespace: str, data: Planted) -> None:
    """Write *data* to the graph of *namespace*, whose schema exists, without words and vectors."""
    entities, facts = data.rows(namespace)
    writer.write(ENTITIES, entities)
    writer.write(FACTS, facts)


def name(number: int) -> str:
    """Return the name of the entity with this number, such as "Person000042"."""
    return f"Person{number:06}"


def agreement(one: Iterable[Iterable[Any]], other: Iterable[Iterable[Any]]) -> float:
    """Return the normalised mutual information (0 to 1) of two partitions, over the members that both contain."""
    ours = {member: place for place, group in enumerate(one) for member in group}
    theirs = {member: place for place, group in enumerate(other) for member in group}
    both = ours.keys() & theirs.keys()
    pairs = Counter((ours[each], theirs[each]) for each in both)
    left, right = (Counter(labels[each] for each in both) for labels in (ours, theirs))
    shared = sum(
        count / len(both) * math.log(count * len(both) / (left[here] * right[there]))
        for (here, there), count in pairs.items()
    )
    spread = [-sum(each / len(both) * math.log(each / len(both)) for each in side.values()) for side in (left, right)]
    return 2 * shared / sum(spread) if sum(spread) else 1.0


def _entity(number: int, id_: str) -> Mapping[str, Any]:
    called = name(number)
    node = {
        "id": id_, "key": entity_key(called, "Person"), "name": called, "type": "Person", "aliases": [],
        "summary": f"{called} is one of many.", "first_seen": SINCE, "last_seen": SINCE, "created_at": SINCE + number,
        "n": 0, "revision": 1,
    }  # fmt: skip
    return {"alias": alias_key(called), "node": node}


def _fact(number: int, subject: str, object_: str, sentence: str) -> Mapping[str, Any]:
    node = {
        "id": f"fact {number}", "predicate": "KNOWS", "wording": "knows", "sentence": sentence, "confidence": 1.0,
        "edge_type": "semantic", "created_at": SINCE, "said_at": SINCE, "told_at": SINCE, "n": 0,
    }  # fmt: skip
    belief = {
        "id": f"belief {number}", "valid_at": SINCE, "invalid_at": OPEN_END, "known_from": SINCE, "said_at": SINCE,
        "precision": "instant", "end_precision": "instant", "created_at": SINCE, "expired_at": OPEN_END,
    }  # fmt: skip
    return {"subject": subject, "object": object_, "node": node, "belief": belief}
