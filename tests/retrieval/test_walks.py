"""Walks along the graph: with rows that the test gives, and on a real FalkorDB."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.contrib.variants.walks import Synapse, activate
from kg_memory.falkor.queries import features as cypher
from kg_memory.retrieval.ranking import Instants, Link
from kg_memory.retrieval.traversal import NEIGHBOURS, BreadthFirst, read_fact_links, walk_from, weigh_facts
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Query, in_step, write
from kg_memory.runtime.flow import Flow, run
from kg_memory.temporal.interval import OPEN_END

NOW = Instants(500, 501, 500, unreviewed=False)
WAYS = (BreadthFirst(), Synapse(timeout_ms=60_000))
"""Synapse has its longest timeout: with the default one, a walk ends early on a busy machine."""

MAKE = f"""
UNWIND $facts AS row
MERGE (s:Entity {{key: row.subject}})
ON CREATE SET s.id = row.subject
CREATE (s)-[:SUBJECT_OF]->(f:Fact {{id: row.id, said_at: row.at, edge_type: row.type}})
CREATE (f)-[:HELD]->(:Belief {{id: row.id, created_at: row.at, expired_at: {OPEN_END}, valid_at: row.at, known_from: row.at,
  invalid_at: row.ended}})
WITH f, row
UNWIND row.objects AS object
MERGE (o:Entity {{key: object}})
ON CREATE SET o.id = object
CREATE (f)-[:OBJECT_IS]->(o)
"""
MAKE_MANY = f"""
UNWIND range(0, $facts - 1) AS i
MATCH (s:Entity {{id: 'e' + (i % $hubs)}})
MATCH (o:Entity {{id: 'e' + (7919 * i % $entities)}})
CREATE (s)-[:SUBJECT_OF]->(f:Fact {{id: 'f' + i, said_at: i, edge_type: 'semantic'}})-[:OBJECT_IS]->(o)
CREATE (f)-[:HELD]->(:Belief {{id: 'b' + i, created_at: 1, expired_at: {OPEN_END}, valid_at: 1, known_from: 1,
  invalid_at: {OPEN_END}}})
"""
ENTITIES = "UNWIND range(0, $entities - 1) AS i CREATE (:Entity {id: 'e' + i, key: 'e' + i})"
GROUP = """
MATCH (e:Entity)
WHERE e.id IN $members
MERGE (c:Community {id: 'group'})
CREATE (c)-[:HAS_MEMBER]->(e)
"""


def fact(id_: str, subject: str, *objects: str, type: str = "semantic", at: int = 1, ended: int = OPEN_END) -> Any:  # noqa: A002
    return {"id": id_, "type": type, "subject": subject, "objects": list(objects), "at": at, "ended": ended}


def linked(facts: list[dict[str, Any]]) -> str:
    """Return the text that a query returns for *facts*."""
    ends = [(each, object_) for each in facts for object_ in each["objects"] or [each["subject"]]]
    return "\n".join("\t".join((each["id"], each["type"], each["subject"], object_)) for each, object_ in ends)


@dataclass
class Reached:
    """The facts and entities that a walk reached, with their weights."""

    facts: dict[str, float]
    entities: dict[str, float]


class Asked:
    """Answers hops with *steps* and queries for communities with *groups*, and records all queries."""

    def __init__(self, *steps: list[dict[str, Any]], groups: list[dict[str, Any]] = ()) -> None:  # type: ignore[assignment]
        self.steps, self.groups = list(steps), list(groups)
        self.queries: list[Query] = []

    def __call__(self, effect: Query) -> list[dict[str, Any]]:
        self.queries.append(effect)
        if effect.cypher == cypher.COMMUNITIES_OF:
            return self.groups
        row = {"statements": ""}
        for hop in range(1, 6):
            if f"limit{hop}" in effect.params:
                row[f"links{hop}"] = linked(self.steps.pop(0) if self.steps else [])
        return [row]

    def near(self) -> list[Mapping[str, Any]]:
        return [each.params for each in self.queries if "limit1" in each.params]


def walked(asked: Asked, start: Mapping[str, float], recipe: Any = WAYS[0]) -> Reached:
    return run(reach(recipe, start, NOW), asked)


def reach(recipe: Any, start: Mapping[str, float], instants: Instants) -> Flow[Reached]:
    links, weights = yield from walk_from(recipe, start, instants)
    return Reached(weigh_facts(links, weights), weights)


@pytest.fixture
def graph(driver: Driver, namespace: str) -> Callable[..., Reached]:
    """Writes facts, or walks: ``graph(facts)``, or ``graph(None, recipe, start)``."""

    def use(facts: Any, recipe: Any = None, start: Any = None, instants: Instants = NOW) -> Any:
        if facts:
            driver.run(write(MAKE, facts=facts), namespace)
        return driver.run(reach(recipe, start, instants), namespace) if recipe else None

    return use


# Breadth-first


def test_breadth_first_scores_facts_between_seeds_higher():
    """Facts between two seeds score higher than facts of one seed.

    Features: A40.
    """
    near = [fact("f1", "ann", "oslo"), fact("f2", "ann", "bob")]
    found = walked(Asked(near), {"ann": 1.0, "bob": 1.0})
    assert found == Reached({"f1": 1.5, "f2": 2.0}, {"ann": 1.0, "bob": 1.0, "oslo": 0.5})


def test_breadth_first_scores_fall_with_hops():
    """The score of a fact or an entity falls with its number of hops.

    Features: C17.
    """
    steps = [[fact("f1", "ann", "mia")], [fact("f2", "mia", "acme")], [fact("f3", "acme", "zoe")]]
    found = walked(Asked(*steps), {"ann": 2.0}, BreadthFirst(max_hops=3))
    assert found.entities == pytest.approx({"ann": 2.0, "mia": 1.0, "acme": 2 / 3, "zoe": 0.5})
    assert found.facts == pytest.approx({"f1": 3.0, "f2": 1 + 2 / 3, "f3": 2 / 3 + 0.5})


def test_breadth_first_weighs_entity_by_heaviest_seed():
    near = [fact("f1", "bob", "mia"), fact("f2", "ann", "mia"), fact("f3", "mia", "mia")]
    assert walked(Asked(near), {"bob": 1.0, "ann": 3.0}).entities["mia"] == 1.5


def test_breadth_first_continues_from_best_linked_entities():
    near = [fact(f"f{number}", "ann", f"e{number:02}") for number in range(30)]
    found = walked(Asked([*near, fact("again", "ann", "e29")]), {"ann": 1.0})
    assert found.entities.keys() == {"ann", "e29", *(f"e{number:02}" for number in range(NEIGHBOURS - 1))}
    assert len(found.facts) == 31


def test_breadth_first_reads_fewer_facts_at_each_hop():
    asked = Asked(*[[fact(f"f{number}", f"e{number}", f"e{number + 1}")] for number in range(9)])
    walked(asked, {"e0": 1.0}, BreadthFirst(max_hops=5, facts_a_hop=9))
    [params] = asked.near()
    assert [params[f"limit{hop}"] for hop in range(1, 6)] == [9, 4, 2, 1, 1]


@pytest.mark.parametrize("recipe", WAYS, ids=lambda recipe: recipe.method)
def test_walk_without_seeds_runs_no_query(recipe):
    """A walk from a seed without facts runs one query."""
    asked = Asked()
    assert walked(asked, {}, recipe) == Reached({}, {})
    assert asked.queries == []
    assert walked(asked, {"ann": 1.0}, recipe) == Reached({}, {"ann": 1.0})
    assert len(asked.near()) == 1


@pytest.mark.parametrize("hops", range(1, 6))
@pytest.mark.parametrize("way", [BreadthFirst, partial(Synapse, timeout_ms=60_000)])
def test_walk_runs_at_most_max_hops_plus_one_queries(way, hops):
    """A walk needs at most `max_hops` + 1 queries, and a breadth-first walk one query for its neighbours.

    Features: C16.
    """
    asked = Asked(*([fact(f"f{number}", f"e{number}", f"e{number + 1}")] for number in range(20)))
    walked(asked, {"e0": 1.0, "x": 1.0}, way(max_hops=hops))
    assert len(asked.near()) == (1 if way is BreadthFirst else hops)
    assert len(asked.queries) <= hops + 1


# Activation


def test_synapse_weighs_activation_by_fact_type_and_hops():
    """Activation is weighted by the type of each fact, and fades with each hop.

    Features: C6, C24, C29.
    """
    near = [fact("f1", "ann", "mia"), fact("f2", "ann", "oslo", type="co_occurrence")]
    found = walked(Asked(near, [fact("f3", "mia", "acme")]), {"ann": 7.0}, Synapse(inhibition_threshold=1))
    assert found.entities == pytest.approx({"ann": 1, "mia": 0.85, "oslo": 0.34, "acme": 0.85**2})
    assert sorted(found.facts, key=lambda id_: -found.facts[id_]) == ["f1", "f3", "f2"]


def test_synapse_limits_seeds_per_community():
    """At most `seed_community_cap` seeds of the walk are of one community.

    Features: C23.
    """
    start = {"a": 1.0, "b": 2.0, "c": 3.0}
    groups = [{"id": "g", "entities": ["a", "b", "c"]}]
    assert walked(Asked(groups=groups), start, Synapse(seed_community_cap=2)).entities == {"c": 1.0, "b": 1.0}
    asked = Asked(groups=groups)
    assert walked(asked, start, Synapse(seed_community_cap=0)).entities == dict.fromkeys("abc", 1.0)
    assert [each.cypher for each in asked.queries] == [cypher.walk(1)]


def test_synapse_returns_what_it_reached_at_timeout():
    """After `timeout_ms`, spreading activation returns what it has reached.

    Features: C28.
    """
    asked = Asked([fact("f1", "ann", "mia")], [fact("f2", "mia", "acme")])
    assert walked(asked, {"ann": 1.0}, Synapse(timeout_ms=1e-6)) == Reached({"f1": 1.0}, {"ann": 1.0})
    assert [(each["limit1"], each["most"]) for each in asked.near()] == [(1, 1)]


class Slow:
    """A server three times as slow as an idle one, where each entity has *facts* facts."""

    def __init__(self, facts: int) -> None:
        self.facts = facts
        self.seconds = 0.0

    def __call__(self, effect: Query) -> list[dict[str, Any]]:
        ids = effect.params["ids"]
        if effect.cypher != cypher.walk(1):
            self.seconds += 50e-6 * len(ids)
            return []
        near = range(min(self.facts, effect.params["limit1"]))
        rows = [fact(f"{id_} {number}", id_, f"{(int(id_) * 31 + number) % 20_000}") for id_ in ids for number in near]
        self.seconds += 100e-6 * len(rows) + len(ids) * (600e-6 + 2e-6 * min(self.facts, effect.params["most"]))
        return [{"links1": linked(rows), "statements": ""}]

    def clock(self) -> float:
        """Return the time; each call takes a microsecond."""
        self.seconds += 1e-6
        return self.seconds


@settings(deadline=None, max_examples=30)
@given(
    timeout=st.integers(10, 500), hops=st.integers(1, 5), most=st.integers(1, 10_000), starts=st.integers(1, 20),
    facts=st.sampled_from((10, 5000, 10**6)),
)  # fmt: skip
def test_activate_ends_within_timeout(timeout, hops, most, starts, facts):
    """Spreading activation ends within `timeout_ms`, and returns links.

    Features: C21.
    """
    recipe = Synapse(timeout_ms=timeout, max_hops=hops, max_activated_nodes=most, activation_threshold=0)
    server = Slow(facts)
    start = {str(number): 1.0 for number in range(starts)}
    links, active = run(activate(recipe, start, NOW, server.clock), server)
    assert server.seconds <= (timeout + 2) / 1000
    assert links
    assert min(starts, most) <= len(active) <= most


# Hits of other retrievers


def test_fact_without_reached_entity_has_no_weight():
    rows = linked([fact("f1", "ann", "oslo", "ann"), fact("f2", "zoe")])
    stated = "f1\tm1\tAnn\nf1\tm2\t\nf3\tm1\tAnn"
    row = {"links": rows, "statements": stated, "named": [["f3", ["zoe"]]]}
    links, named = run(read_fact_links(["f1", "f2"], ["zoe"], NOW), lambda _: [row])
    assert links == {
        "f1": Link("semantic", ("ann", "oslo"), {"m1": "Ann", "m2": None}),
        "f2": Link("semantic", ("zoe",), {}),
        "f3": Link("", (), {"m1": "Ann"}),
    }
    assert named == {"f3": ["zoe"]}
    assert weigh_facts(links, {"ann": 1.0}) == {"f1": 1.0}


# On a real FalkorDB


def test_walk_continues_from_entities_with_most_shared_facts(graph):
    names = [f"e{number:02}" for number in range(NEIGHBOURS + 5)]
    told = [fact(f"to {name}", "ann", name) for name in names]
    told += [fact("again", names[-1], "ann"), *(fact(f"from {name}", name, f"leaf of {name}") for name in names)]
    walked_from = {names[-1], *names[: NEIGHBOURS - 1]}
    found = graph(told, BreadthFirst(facts_a_hop=100), {"ann": 1.0})
    assert {id_ for id_ in found.facts if id_.startswith("from")} == {f"from {name}" for name in walked_from}
    deeper = graph(None, BreadthFirst(facts_a_hop=100, max_hops=4), {f"leaf of {names[0]}": 1.0})
    assert {f"from {names[0]}", f"to {names[0]}", "again", f"to {names[1]}"} <= deeper.facts.keys()


@pytest.mark.parametrize("recipe", WAYS, ids=lambda recipe: recipe.method)
def test_walk_follows_facts_both_ways_through_cycles(graph, recipe):
    """The facts include loops and parallel facts."""
    told = [
        fact("f1", "ann", "mia"), fact("f2", "mia", "ann"), fact("f3", "ann", "mia"), fact("f4", "mia", "mia"),
        fact("f5", "mia", "acme", "oslo"), fact("f6", "acme", "ann"), fact("f7", "zoe", "bob"),
    ]  # fmt: skip
    found = graph(told, recipe, {"acme": 1.0})
    assert found.facts.keys() == {f"f{number}" for number in range(1, 7)}
    assert found.entities.keys() == {"ann", "mia", "acme", "oslo"}
    assert found.entities["acme"] == max(found.entities.values())
    assert found == graph(None, recipe, {"acme": 1.0})


@pytest.mark.parametrize("recipe", WAYS, ids=lambda recipe: recipe.method)
def test_walk_follows_only_facts_valid_at_requested_time(graph, recipe):
    """A walk follows only facts that are valid at the requested time.

    Features: C31.
    """
    told = [fact("over", "ann", "bergen", ended=400), fact("now", "ann", "oslo"), fact("later", "ann", "rome", at=600)]
    told += [fact("behind", "bergen", "hans")]
    assert graph(told, recipe, {"ann": 1.0}).facts.keys() == {"now"}
    assert graph(None, recipe, {"ann": 1.0}).entities.keys() == {"ann", "oslo"}
    then = replace(NOW, since=300, until=301)
    assert graph(None, recipe, {"ann": 1.0}, then).facts.keys() == {"over", "now", "behind"}


def test_walk_follows_latest_facts_first(graph):
    told = [fact(f"f{number}", "ann", f"e{number}", at=number + 1) for number in range(20)]
    assert graph(told, BreadthFirst(facts_a_hop=2, max_hops=1), {"ann": 1.0}).facts.keys() == {"f18", "f19"}


def test_synapse_limits_seeds_per_stored_community(graph, driver, namespace):
    graph([fact("f1", "ann", "bob"), fact("f2", "cem", "dora")])
    driver.run(write(GROUP, members=["ann", "bob"]), namespace)
    start = {"ann": 2.0, "bob": 1.0, "cem": 1.0}
    found = graph(None, Synapse(seed_community_cap=1, decay_lambda=0.5), start)
    assert found.entities == {"ann": 1.0, "cem": 1.0, "bob": 0.5, "dora": 0.5}


def test_walk_finds_nothing_for_unknown_or_hostile_ids(graph):
    strange = {"": 1.0, "' OR 1=1 //": 1.0, "安娜": 1.0, "x" * 5000: 1.0, "$ids": 1.0}
    for recipe in WAYS:
        assert graph([fact(f"f {recipe.method}", "ann", "mia")], recipe, strange).facts == {}


async def test_walks_run_in_step_with_other_flows(graph, driver, namespace):
    graph([fact("f1", "ann", "mia"), fact("f2", "mia", "acme")])

    def both() -> Flow[list[Any]]:
        return in_step((*(reach(way, {"ann": 1.0}, NOW) for way in WAYS), read_fact_links(["f2", "gone"], (), NOW)))

    *walks, (links, _) = await driver.arun(both(), namespace)
    assert all(each.facts.keys() == {"f1", "f2"} for each in walks)
    assert links == {"f2": Link("semantic", ("mia", "acme"), {})}


@pytest.fixture(scope="module")
def dense(driver: Driver) -> str:
    """A hub of 5,000 facts, and 20 entities of about a thousand each."""
    driver.run(write(ENTITIES, entities=3000), "dense")
    driver.run(write(MAKE_MANY, facts=5000, hubs=1, entities=3000), "dense")
    driver.run(write(MAKE_MANY.replace("'f' + i", "'g' + i"), facts=10_000, hubs=20, entities=23), "dense")
    return "dense"


def test_walk_reads_only_part_of_a_hub_with_its_latest_facts(driver, dense):
    found = driver.run(reach(BreadthFirst(), {"e0": 1.0}, replace(NOW, since=10_000, until=10_001)), dense)
    assert "g9980" in found.facts
    assert len(found.facts) <= 50 + NEIGHBOURS * 25


def test_walk_does_not_pass_through_a_hub(driver, dense):
    told = [fact("to a hub", "ann", "e0"), fact("on", "ann", "mia"), fact("past", "mia", "oslo")]
    driver.run(write(MAKE, facts=told), dense)
    found = driver.run(reach(BreadthFirst(), {"ann": 1.0}, NOW), dense)
    assert found.facts.keys() == {"to a hub", "on", "past"}
    assert found.entities.keys() == {"ann", "e0", "mia", "oslo"}


@pytest.mark.parametrize("most", [50, 10_000])
def test_synapse_stops_within_timeout_on_dense_graph(driver, dense, most):
    recipe = Synapse(max_hops=5, max_activated_nodes=most, timeout_ms=300, activation_threshold=0)
    start = {f"e{number}": 1.0 for number in range(15)}
    began = time.monotonic()
    found = driver.run(reach(recipe, start, NOW), dense)
    taken = time.monotonic() - began
    assert start.keys() <= found.entities.keys()
    assert len(found.entities) <= most
    assert all(0 <= each <= 1 for each in found.entities.values())
    assert taken < 0.3 + 15, "it ends in time, with something on top for a busy machine"


def test_synapse_reaches_max_activated_nodes_given_time(driver, dense):
    recipe = Synapse(max_activated_nodes=20, timeout_ms=60_000, activation_threshold=0)
    found = driver.run(reach(recipe, {"e0": 1.0, "e1": 1.0}, NOW), dense)
    assert len(found.entities) == 20
    assert found == driver.run(reach(recipe, {"e1": 1.0, "e0": 1.0}, NOW), dense)
