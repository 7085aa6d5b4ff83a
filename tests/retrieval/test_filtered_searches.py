"""Filters of `search` on a real memory: no recipe returns an item that does not pass."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.falkor.connect import graph_key
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.recipe import RECIPES
from tests.plain_filters import Plainly

NAMESPACE = "filtered searches"
QUESTION = "Where do Ann, Bob and Carl live, in Oslo, Paris or Rome?"
SAID = (
    ("Ann", "t1", "I live in Rome", 1.0), ("Ann", "t1", "I know Bob", 0.9), ("Bob", "t1", "I live in Paris", 0.5),
    ("Bob", "t2", "I know Carl", 0.2), (None, "t2", "Carl lives in Oslo", 1.0), ("Carl", "t3", "I know Ann and Dora", 0.7),
    ("Ann", "t3", "I live in Oslo", 1.0), (None, None, "it rains in Oslo", 0.4),
)  # fmt: skip
NODES = {
    "episodes": "MATCH (d:Episode) RETURN d {.id, .thread, .source, .source_id, .speaker, .kind, .trust, .at} AS d",
    "entities": "MATCH (d:Entity) RETURN d {.id, .type, names: [d.name] + d.aliases} AS d",
    "facts": "MATCH (d:Fact) RETURN d {.id, .predicate, .confidence} AS d",
    "communities": "MATCH (d:Community) RETURN d {.id} AS d",
    "beliefs": """
      MATCH (f:Fact)-[h:HELD|PROPOSED]->(b:Belief)
      RETURN {fact: f.id, relation: type(h), belief: b {.valid_at, .invalid_at, .known_from, .created_at, .expired_at}} AS d
    """,
}
LINKS = ("MENTIONS", "STATES", "SUBJECT_OF", "OBJECT_IS", "HAS_MEMBER")


class Stored(Plainly):
    """Evaluates a filter in plain Python on what is stored now."""

    now = 0

    def holds(self, held):
        belief = held["belief"]
        return (
            held["relation"] == "HELD" and belief["created_at"] <= self.now < belief["expired_at"]
            and belief["invalid_at"] > self.now and belief["known_from"] <= self.now
        )  # fmt: skip


@pytest.fixture(scope="module")
def memory(scripted):
    for place, (speaker, thread, content, trust) in enumerate(SAID):
        scripted.add(
            content, speaker=speaker, thread=thread, trust=trust, source="chat" if place % 2 else None,
            at=f"2024-01-0{place + 1}T10:00:00Z", namespace=NAMESPACE,
        )  # fmt: skip
    scripted.communities.refresh(namespace=NAMESPACE)
    return scripted


@pytest.fixture(scope="module")
def stored(memory):
    """All that is stored, as plain values."""
    key = graph_key(NAMESPACE)

    def look(cypher):
        return [row["d"] for row in memory._database.query(key, cypher, {}, write=False)]

    found = {name: look(cypher) for name, cypher in NODES.items()}
    found |= {name: look(f"MATCH (a)-[:{name}]->(b) RETURN [a.id, b.id] AS d") for name in LINKS}
    plainly = Stored({name: [tuple(each) for each in found[name]] if name in LINKS else found[name] for name in found})
    plainly.now = time.time_ns() // 1000
    return plainly


def one_of(*values):
    """Return a strategy of conditions for a field with *values*."""
    chosen = st.sampled_from(values)
    lists = st.lists(chosen, max_size=2)
    kinds = (chosen, lists, st.fixed_dictionaries({"$ne": chosen}), st.fixed_dictionaries({"$nin": lists}))
    return st.one_of(kinds)


def between(*values):
    return st.dictionaries(st.sampled_from(("$gt", "$gte", "$lt", "$lte")), st.sampled_from(values), min_size=1)


DATES = between("2024-01-01T10:00:00Z", "2024-01-03T10:00:00Z", "2024-01-05T10:00:00Z", "2024-01-07T10:00:00Z")
FIELDS = {
    "thread": one_of("t1", "t2", "t3", None), "speaker": one_of("Ann", "Bob", "Carl", None),
    "source": one_of("chat", None), "trust": between(0.2, 0.5, 0.9, 1.0), "said_at": DATES,
    "type": one_of("Person", "Place"), "name": one_of("ann", "Bob", "OSLO", "nobody"),
    "predicate": one_of("LIVES_IN", "KNOWS", "lives in"), "valid_at": DATES,
}  # fmt: skip
SIMPLE = st.lists(st.sampled_from(tuple(FIELDS)), min_size=1, max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)
FILTERS = st.one_of(
    SIMPLE,
    st.fixed_dictionaries({"$not": SIMPLE}),
    st.fixed_dictionaries({"$or": st.lists(SIMPLE, max_size=2)}),
    st.tuples(SIMPLE, SIMPLE).map(lambda both: {**both[0], "$not": both[1]}),
)


def wrong(found, stored, where):
    """Return the items of *found* that do not pass."""
    return [
        (kind, each)
        for kind in KINDS
        for each in getattr(found, kind)
        if not any(thing["id"] == each.id and stored.passes(kind, thing, where) for thing in stored.graph[kind])
    ]


@settings(max_examples=40, deadline=None)
@given(where=FILTERS, recipe=st.sampled_from(list(RECIPES)))
def test_filtered_search_returns_only_items_that_pass(memory, stored, where, recipe):
    found = memory.search(QUESTION, namespace=NAMESPACE, where=where, recipe=recipe, limit=50)
    assert wrong(found, stored, where) == []


@settings(max_examples=15, deadline=None)
@given(where=FILTERS)
def test_filtered_search_returns_all_matches_in_small_graph(memory, stored, where):
    found = memory.search(QUESTION, namespace=NAMESPACE, where=where, limit=50)
    holding = {each["fact"] for each in stored.graph["beliefs"] if stored.holds(each)}
    facts = {each["id"] for each in stored.graph["facts"] if stored.passes("facts", each, where)} & holding
    episodes = {each["id"] for each in stored.graph["episodes"] if stored.passes("episodes", each, where)}
    assert {each.id for each in found.facts} == facts
    assert {each.id for each in found.episodes} == episodes


def test_filter_excludes_episode_that_ends_a_found_fact(memory):
    question, moved = "Ann lives in Rome", "I live in Oslo"
    for where, follows in ((None, True), ({"thread": ["t1", "t3"]}, True), ({"thread": "t1"}, False)):
        said = memory.search(question, namespace=NAMESPACE, where=where, limit=2, recipe="words").episodes
        assert said[0].remarks
        assert (said[1].content == moved) is follows
