"""Numbered messages, and checks of all accepted ones, by Cypher on the servers.

Each message of a namespace ends the home that the message before it stated, and adds an acquaintance of its own. So
the graph shows which messages were read, and in which order.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from kg_memory.falkor.connect import KEY_PREFIX, graph_key
from kg_memory.temporal.interval import OPEN_END, OPEN_START, micros
from tests.cluster.nodes import Node, until
from tests.faults.whole import ALL_FLAWS

PLACES = ("Oslo", "Paris", "Rome", "Bergen", "Kyoto")
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)

EPISODES = "MATCH (e:Episode) RETURN e.source_id AS name, e.status AS status, e.content AS content"
UNREAD = "MATCH (e:Episode) WHERE NOT e.status IN ['done', 'skipped', 'failed'] RETURN count(e) AS n"
SEQUENCE = "MATCH (a:Episode)-[:NEXT]->(b:Episode) RETURN a.source_id AS before, b.source_id AS after"
ACQUAINTANCES = """
MATCH (e:Episode)-[:STATES]->(f:Fact {predicate: 'KNOWS'})-[:OBJECT_IS]->(o:Entity)
RETURN e.source_id AS name, o.name AS other, f.created_at AS read_at"""
HOMES = f"""
MATCH (f:Fact {{predicate: 'LIVES_IN'}})-[:HELD]->(b:Belief)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WHERE b.expired_at = {OPEN_END}
RETURN o.name AS place, b.valid_at AS since, b.invalid_at AS until
ORDER BY since"""


class Problem(NamedTuple):
    """A message or a graph that is not as it should be."""

    kind: str
    namespace: str
    what: str


def message(number: int) -> dict[str, str]:
    """Return message *number* of any namespace."""
    return {
        "content": f"Ann moved to {PLACES[number % len(PLACES)]} and knows P{number}.",
        "at": said_at(number).isoformat(),
        "source_id": f"m{number}",
        "thread": "t",
    }


def said_at(number: int) -> datetime:
    """Return the time of the message with this number."""
    return BEGIN + timedelta(hours=number)


def look(node: Node, key: str, cypher: str) -> list[dict[str, Any]]:
    """Return the rows of the graph *key* on that server."""
    header, rows, _ = node.redis.execute_command("GRAPH.RO_QUERY", key, cypher)
    names = [name if isinstance(name, str) else name[-1] for name in header]
    return [dict(zip(names, row, strict=True)) for row in rows]


def masters(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that are masters."""
    return [node for node in nodes if node.redis.info("replication")["role"] == "master"]


def holders(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """Return the masters that hold each graph of a namespace; one each if all is well."""
    found: defaultdict[str, list[Node]] = defaultdict(list)
    for node in masters(nodes):
        for key in node.graphs():
            if key.startswith(KEY_PREFIX):
                found[key].append(node)
    return found


def wait_until_read(nodes: Sequence[Node], namespaces: Iterable[str], seconds: float) -> None:
    """Wait until nothing is unread in these namespaces."""
    left = set(map(graph_key, namespaces))

    def done() -> bool:
        for key, [node, *_] in holders(nodes).items():
            if key in left and not look(node, key, UNREAD)[0]["n"]:
                left.remove(key)
        return not left

    until(done, seconds)


def problems(
    nodes: Sequence[Node],
    accepted: Mapping[str, AbstractSet[int]],
    late: Mapping[str, AbstractSet[int]] = MappingProxyType({}),
) -> list[Problem]:
    """Return what is wrong after all messages are read; *accepted* has their numbers by namespace.

    *late* has the numbers, by graph key, of messages that were read again after later ones.
    """
    held, wrong = holders(nodes), []
    for name, numbers in accepted.items():
        holding = held.get(graph_key(name), [])
        if len(holding) > 1:
            wrong.append(Problem("doubled", name, f"graph on {len(holding)} servers"))
        if holding:
            wrong += _problems(holding[0], name, numbers, late.get(graph_key(name), frozenset()))
        else:
            wrong += [Problem("lost", name, f"m{number}") for number in sorted(numbers)]
    return wrong


def _problems(node: Node, namespace: str, accepted: AbstractSet[int], late: AbstractSet[int]) -> Iterator[Problem]:
    key = graph_key(namespace)
    episodes = look(node, key, EPISODES)
    stored = Counter(int(row["name"][1:]) for row in episodes)
    for number in sorted(accepted - stored.keys()):
        yield Problem("lost", namespace, f"m{number}")
    for number, count in stored.items():
        if count > 1:
            yield Problem("doubled", namespace, f"m{number}, {count} times")
    for row in episodes:
        if row["content"] != message(int(row["name"][1:]))["content"]:
            yield Problem("changed", namespace, f"{row['name']}: {row['content']}")
        if row["status"] != "done":
            yield Problem("unread", namespace, f"{row['name']} is {row['status']}")
    for flaw in look(node, key, ALL_FLAWS):
        yield Problem("doubled" if flaw["flaw"].endswith(" twice") else "dangling", namespace, f"{flaw}")
    yield from _disorder(node, namespace, sorted(stored), late)
    yield from _wrong_homes(node, namespace, sorted(stored))


def _disorder(node: Node, namespace: str, stored: Sequence[int], late: AbstractSet[int]) -> Iterator[Problem]:
    """Yield messages that were not linked or not read in the order of acceptance."""
    links = {(row["before"], row["after"]) for row in look(node, graph_key(namespace), SEQUENCE)}
    if links != {(f"m{before}", f"m{after}") for before, after in pairwise(stored)}:
        yield Problem("out of order", namespace, f"linked as {sorted(links)}")
    read = {int(row["name"][1:]): row for row in look(node, graph_key(namespace), ACQUAINTANCES)}
    for number in stored:
        if number not in read or read[number]["other"] != f"P{number}":
            yield Problem("unread", namespace, f"nothing was learned from m{number}")
    for before, after in pairwise(sorted(read.keys() - late)):
        if read[before]["read_at"] > read[after]["read_at"]:
            yield Problem("out of order", namespace, f"m{after} was read before m{before}")


def _wrong_homes(node: Node, namespace: str, stored: Sequence[int]) -> Iterator[Problem]:
    """Yield homes that overlap in time, and homes that do not follow from the messages."""
    homes = look(node, graph_key(namespace), HOMES)
    for before, after in pairwise(homes):
        if before["until"] > after["since"]:
            yield Problem("overlapping", namespace, f"{before} and {after}")
    told = [next(same) for _, same in groupby(stored, lambda number: number % len(PLACES))]
    moved = [micros(said_at(number), default=0) for number in told[1:]]
    due = zip((PLACES[number % len(PLACES)] for number in told), [OPEN_START, *moved], [*moved, OPEN_END], strict=True)
    if [(home["place"], home["since"], home["until"]) for home in homes] != list(due):
        yield Problem("out of order", namespace, f"homes are {homes}")
