"""Filters in the database pass the same nodes as a plain evaluation in Python."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.queries.filters import COUNT_CANDIDATES, ENTITIES_BY_NAME, filter_step, read_names, start_step
from kg_memory.models.filters import CHOICES, FIELDS, parse_filter
from kg_memory.models.graph import KINDS
from kg_memory.models.labels import encode_labels, read_labels
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.text.identity import alias_key, canonical_name, replace_unstorable, thread_key
from tests.plain_filters import NOW, ORDERS, Plainly, cleaned

LABELS = {"facts": "Fact", "entities": "Entity", "communities": "Community", "episodes": "Episode"}
INSTANTS = {"since": NOW, "until": NOW + 1, "believed_at": NOW, "unreviewed": False}
HOSTILE = (
    "O'Brien \"x\" \\", "`n`", "'}) DETACH DELETE n //", "$where0", "CYPHER a=1 RETURN 1", "a\x00b", "\ud800", "\x01\x1b",
    "李明", " padded ", "the", "x" * 100_000, "İSTANBUL ﬁ", "\u2028",
)  # fmt: skip
TEXTS = ("Ann", "ann", "Bob", *HOSTILE[:8], "李明", " padded ")
LABEL_KEYS = ("tags", "tag", "plan")
TYPES = ("Person", "Place", "Person'")
PREDICATES = ("LIVES_IN", "KNOWS", "住在")
NUMBERS = (0, 0.25, 0.5, 1)
LABEL_VALUES = ("vip", "李明", "'}) DETACH DELETE n //", 'a"b', "3", 3, 1.5, True, "")
TIMES = (500, 900, 1000, 1500, 2000)

LINK = {
    "MENTIONS": "MATCH (a:Episode {id: row[0]}), (b:Entity {id: row[1]}) CREATE (a)-[:MENTIONS]->(b)",
    "STATES": "MATCH (a:Episode {id: row[0]}), (b:Fact {id: row[1]}) CREATE (a)-[:STATES]->(b)",
    "SUBJECT_OF": "MATCH (a:Entity {id: row[0]}), (b:Fact {id: row[1]}) CREATE (a)-[:SUBJECT_OF]->(b)",
    "OBJECT_IS": "MATCH (a:Fact {id: row[0]}), (b:Entity {id: row[1]}) CREATE (a)-[:OBJECT_IS]->(b)",
    "HAS_MEMBER": "MERGE (a:Community {id: row[0]}) WITH a, row MATCH (b:Entity {id: row[1]}) CREATE (a)-[:HAS_MEMBER]->(b)",
    "NAMES": "MATCH (e:Entity {id: row[0]}) MERGE (a:Alias {key: row[1]}) MERGE (a)-[:NAMES]->(e)",
    "HELD": "MATCH (f:Fact {id: row.fact}) CREATE (b:Belief) SET b = row.belief CREATE (f)-[:HELD]->(b)",
    "PROPOSED": "MATCH (f:Fact {id: row.fact}) CREATE (b:Belief) SET b = row.belief CREATE (f)-[:PROPOSED]->(b)",
}

texts = st.sampled_from(TEXTS)
maybe = st.one_of(st.none(), texts)
instants = st.sampled_from(TIMES)


labels = st.sampled_from(LABEL_VALUES)
values_of_labels = st.one_of(labels, st.lists(labels, min_size=1, max_size=2))


@st.composite
def graphs(draw):
    """A small graph, as plain values; names of entities are lists, and every time is in microseconds."""
    episodes = [
        {
            "id": f"x{i}", "thread": draw(maybe), "source": draw(maybe), "speaker": draw(maybe), "source_id": f"s{i}",
            "kind": draw(st.sampled_from(("message", "json"))), "trust": draw(st.sampled_from(NUMBERS)),
            "at": draw(instants),
            "labels": draw(st.dictionaries(st.sampled_from(LABEL_KEYS), values_of_labels, max_size=2)),
        }
        for i in range(draw(st.integers(1, 4)))
    ]  # fmt: skip
    entities = [
        {"id": f"e{i}", "type": draw(st.sampled_from(TYPES)), "names": draw(st.lists(texts, min_size=1, max_size=2))}
        for i in range(draw(st.integers(1, 4)))
    ]
    facts = [
        {
            "id": f"f{i}", "predicate": draw(st.sampled_from(PREDICATES)), "confidence": draw(st.sampled_from(NUMBERS)),
            "kind": draw(st.sampled_from((None, "state", "event"))),
        }
        for i in range(draw(st.integers(1, 4)))
    ]  # fmt: skip
    beliefs = [
        {
            "fact": fact["id"], "relation": draw(st.sampled_from(("HELD", "HELD", "PROPOSED"))),
            "belief": {
                "id": f"b{fact['id']}{i}", "valid_at": (start := draw(st.sampled_from((OPEN_START, 500, 900, 1500)))),
                "known_from": max(start, 0), "invalid_at": draw(st.sampled_from((950, 1500, OPEN_END))),
                "created_at": draw(st.sampled_from((500, 900))),
                "expired_at": draw(st.sampled_from((950, 2000, OPEN_END))),
            },
        }
        for fact in facts
        for i in range(draw(st.integers(0, 2)))
    ]  # fmt: skip

    def links(some, others):
        pairs = [(one["id"], other["id"]) for one in some for other in others]
        return sorted(draw(st.sets(st.sampled_from(pairs), max_size=6))) if pairs else []

    return {
        "episodes": episodes, "entities": entities, "facts": facts, "beliefs": beliefs,
        "MENTIONS": links(episodes, entities), "STATES": links(episodes, facts),
        "SUBJECT_OF": links(entities, facts), "OBJECT_IS": links(facts, entities),
        "HAS_MEMBER": links([{"id": "c0"}, {"id": "c1"}], entities),
    }  # fmt: skip


def conditions(values, *, orders=False):
    """Return a strategy for the condition of one field."""
    lists = st.lists(values, max_size=3)
    kinds = [values, st.fixed_dictionaries({"$ne": values}), lists, st.fixed_dictionaries({"$nin": lists})]
    if orders:
        order = values.filter(lambda value: value is not None)
        kinds += [st.dictionaries(st.sampled_from(tuple(ORDERS)), order, min_size=1, max_size=2)]
    return st.one_of(kinds)


def iso(value):
    return None if value is None else datetime.fromtimestamp(0, UTC).replace(microsecond=value).isoformat()


dates = instants.map(iso)
open_dates = st.one_of(st.none(), dates)
fields = {
    "thread": conditions(maybe), "source": conditions(maybe), "speaker": conditions(maybe),
    "source_id": conditions(st.sampled_from(("s0", "s1"))), "kind": conditions(st.sampled_from(("message", "json"))),
    "trust": conditions(st.sampled_from(NUMBERS), orders=True), "said_at": conditions(dates, orders=True),
    "type": conditions(st.sampled_from(TYPES)), "name": conditions(texts),
    "predicate": conditions(st.sampled_from((*PREDICATES, "lives in"))),
    "fact_kind": conditions(st.sampled_from(("state", "event", "plan"))),
    "confidence": conditions(st.sampled_from(NUMBERS), orders=True),
    "valid_at": conditions(open_dates, orders=True), "invalid_at": conditions(open_dates, orders=True),
    "created_at": conditions(dates, orders=True), "expired_at": conditions(open_dates, orders=True),
    "labels.tags": conditions(st.one_of(st.none(), labels)), "labels.tag": conditions(labels),
    "labels.plan": st.one_of(
        conditions(labels), st.dictionaries(st.sampled_from(tuple(ORDERS)), st.sampled_from((1, 1.5, 2)), min_size=1)
    ),
}  # fmt: skip
leaves = st.lists(st.sampled_from(tuple(fields)), min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: fields[name] for name in names})
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, max_size=2)}),
        st.fixed_dictionaries({"$or": st.lists(inner, max_size=2)}),
        st.fixed_dictionaries({"$not": inner}),
        st.tuples(inner, st.fixed_dictionaries({"$not": inner})).map(lambda both: {**both[0], **both[1]}),
    ),
    max_leaves=4,
)


@pytest.fixture
def filled(database, namespace):
    """Return a function that replaces the namespace's graph by plain values."""
    key = graph_key(namespace)
    schema.ensure(database, key, 4, "hash")

    def fill(graph):
        database.query(key, "MATCH (n) WHERE NOT n:Meta DETACH DELETE n", {}, write=True)
        rows = {
            "Episode": [
                {
                    **item,
                    "thread_key": thread_key(item["thread"]),
                    "labels": encode_labels(read_labels(item.get("labels"))),
                }
                for item in graph["episodes"]
            ],
            "Entity": [{"id": item["id"], "key": item["id"], "type": item["type"]} for item in graph["entities"]],
            "Fact": [{**item, "edge_type": "semantic"} for item in graph["facts"]],
        }
        for label, nodes in rows.items():
            database.query(key, f"UNWIND $rows AS row CREATE (d:{label}) SET d = row", {"rows": nodes}, write=True)
        names = [[item["id"], alias_key(name)] for item in graph["entities"] for name in item["names"]]
        beliefs = {how: [item for item in graph["beliefs"] if item["relation"] == how] for how in ("HELD", "PROPOSED")}
        linked = {**graph, **beliefs, "NAMES": names}
        for relation, cypher in LINK.items():
            database.query(key, f"UNWIND $rows AS row {cypher}", {"rows": list(linked[relation])}, write=True)

    return fill


@pytest.fixture
def passing(driver, namespace, rows):
    """Return a function that lists the nodes of a kind that pass a filter; it compares step, candidates and count."""

    def ask(where, kind):
        target = parse_filter(where)
        names = driver.run(read_names(target), namespace)
        step = filter_step(target, kind, names)
        result = rows(
            f"MATCH (d:{LABELS[kind]}) WITH d, 0.5 AS score{step.cypher}\nRETURN d.id AS id, score",
            **step.params, **INSTANTS,
        )  # fmt: skip
        assert all(row["score"] == 0.5 for row in result)
        ids = sorted(row["id"] for row in result)
        start = start_step(target, kind, names)
        if start is not None:
            again = rows(f"{start.cypher}\nRETURN d.id AS id", **start.params, **INSTANTS)
            assert sorted(row["id"] for row in again) == ids
            for most in (1, 100):
                [count] = rows(f"{start.cypher}{COUNT_CANDIDATES}", most=most, **start.params, **INSTANTS)
                assert count["n"] == min(most, len(ids))
        return ids

    return ask


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(graph=graphs(), asked=st.lists(filters, min_size=4, max_size=4))
def test_filter_passes_exactly_what_plain_evaluation_passes(filled, passing, graph, asked):
    graph = cleaned(graph)
    filled(graph)
    graph["communities"] = [{"id": item} for item in sorted({community for community, _ in graph["HAS_MEMBER"]})]
    plainly = Plainly(graph)
    for where in asked:
        for kind in KINDS:
            expected = sorted(item["id"] for item in graph[kind] if plainly.passes(kind, item, where))
            assert passing(where, kind) == expected, (kind, where)


EMPTY = {name: [] for name in ("episodes", "entities", "facts", "beliefs", *LINK)}
EPISODE = {**dict.fromkeys(("thread", "source", "speaker", "source_id")), "kind": "message", "trust": 1.0, "at": 500}


def test_filter_treats_hostile_values_as_data(filled, passing):
    """NUL and lone surrogates are stored as U+FFFD, also in the values of filters."""
    names = list(dict.fromkeys(replace_unstorable(item) for item in HOSTILE))
    episodes = [{**EPISODE, "id": f"x{i}", **dict.fromkeys(("thread", "source"), name)} for i, name in enumerate(names)]
    entities = [{"id": f"e{i}", "type": name, "names": [name]} for i, name in enumerate(names)]
    filled({**EMPTY, "episodes": episodes, "entities": entities})
    for i, name in enumerate(names):
        same = sorted(f"e{place}" for place, other in enumerate(names) if canonical_name(other) == canonical_name(name))
        for target in (name, [name, "nobody"], {"$in": [name]}):
            assert passing({"thread": target}, "episodes") == [f"x{i}"]
            assert passing({"source": target}, "episodes") == [f"x{i}"]
            assert passing({"type": target}, "entities") == [f"e{i}"]
            assert passing({"name": target}, "entities") == same
        assert len(passing({"$not": {"name": name}}, "entities")) == len(names) - len(same)
        assert len(passing({"source": {"$ne": name}}, "episodes")) == len(names) - 1
    assert passing({"source": "\ud800"}, "episodes") == passing({"source": "\ufffd"}, "episodes") != []
    assert passing({"source": list(HOSTILE)}, "episodes") == sorted(item["id"] for item in episodes)


def test_filter_of_empty_graph_or_empty_conditions_returns(filled, passing):
    filled(EMPTY)
    everything = ({"$and": []}, {"$not": {"$or": []}}, {"$not": {"thread": []}}, {"$not": {"name": "nobody"}})
    nothing = ({"$or": []}, {"thread": []}, {"$not": {"$and": []}}, {"name": "nobody"}, {"predicate": []})
    for where in (*everything, *nothing):
        assert [passing(where, kind) for kind in KINDS] == [[]] * 4
    filled({**EMPTY, "episodes": [{**EPISODE, "id": "x"}], "entities": [{"id": "e", "type": "A", "names": ["Ann"]}]})
    assert [passing(where, kind) for where in everything for kind in ("episodes", "entities")] == [["x"], ["e"]] * 4
    assert [passing(where, kind) for where in nothing for kind in ("episodes", "entities")] == [[]] * 10


def test_filter_not_passes_nodes_without_property(filled, passing):
    filled({**EMPTY, "episodes": [{"id": "x", "thread": None}]})
    assert passing({"trust": {"$gte": 0.5}}, "episodes") == []
    assert passing({"$not": {"trust": {"$gte": 0.5}}}, "episodes") == ["x"]


def test_filter_fields_of_one_dict_apply_to_one_node(filled, passing):
    episodes = [{**EPISODE, "id": "x0", "thread": "t", "speaker": "Bob"}, {**EPISODE, "id": "x1", "speaker": "Ann"}]
    facts = [{"id": "f", "predicate": "LIVES_IN", "confidence": 1.0}]
    filled({**EMPTY, "episodes": episodes, "facts": facts, "STATES": [("x0", "f"), ("x1", "f")]})
    assert passing({"thread": "t", "speaker": "Ann"}, "facts") == []
    assert passing({"$and": [{"thread": "t"}, {"speaker": "Ann"}]}, "facts") == ["f"]
    assert passing({"speaker": {"$ne": "Ann"}}, "facts") == ["f"]
    assert passing({"$not": {"speaker": "Ann"}}, "facts") == []


def test_filter_names_are_looked_up_by_alias(driver, database, filled, namespace):
    filled({**EMPTY, "entities": [{"id": "e", "type": "A", "names": ["Ann", "Anna"]}]})
    assert driver.run(read_names(parse_filter({"name": ["ANN", "nobody"]})), namespace) == {alias_key("Ann"): ["e"]}
    with pytest.raises(StopIteration) as stop:
        next(read_names(parse_filter({"$not": {"thread": "t"}})))
    assert stop.value.value == {}
    assert "Index Scan | (a:Alias)" in database.explain(graph_key(namespace), ENTITIES_BY_NAME, {"keys": ["k"]})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("where", "start"),
    [
        ({"thread": "t"}, "Index Scan | ({}:Episode)"),
        ({"$and": [{"type": "A"}, {"thread": ["t", "u"], "speaker": "Ann"}]}, "Index Scan | ({}:Episode)"),
        ({"name": "Ann", "trust": {"$gt": 0.5}, "predicate": "A"}, "Index Scan | ({}:Entity)"),
    ],
)
def test_filter_candidates_start_at_an_index(database, filled, namespace, kind, where, start):
    filled(EMPTY)
    step = start_step(parse_filter(where), kind, {alias_key("Ann"): ["e"]})
    plan = database.explain(
        graph_key(namespace), step.cypher + COUNT_CANDIDATES, {**step.params, **INSTANTS, "most": 10}
    )
    assert not re.search("Label Scan|All Node Scan", plan)
    assert any(start.format(name) in plan for name in ("d", "x", "m"))


@pytest.mark.parametrize("kind", KINDS)
def test_filter_step_reads_only_linked_nodes(database, filled, namespace, kind):
    filled(EMPTY)
    fields = {"thread": "t", "type": "A", "predicate": "A", "valid_at": None}
    for where in (fields, {"$or": [fields, {"$not": fields}]}):
        step = filter_step(parse_filter(where), kind, {})
        begin = f"MATCH (d:{LABELS[kind]} {{id: 'i'}}) WITH d, 0.5 AS score"
        plan = database.explain(graph_key(namespace), f"{begin}{step.cypher}\nRETURN d.id", {**step.params, **INSTANTS})
        assert not re.search("Label Scan|All Node Scan", plan)
        assert plan.count("Index Scan") == 1


def test_filter_values_are_never_part_of_query_text():
    where = {"$or": [{key: CHOICES.get(key, ("2024-01-01",))[0]} for key in FIELDS if FIELDS[key].holds != "number"]}
    for kind in KINDS:
        step = filter_step(parse_filter(where), kind, {alias_key("2024-01-01"): ["secret"]})
        assert not any(value in step.cypher for value in ("2024", "message", "secret"))
        assert len(step.params) == len(where["$or"])


def test_filter_without_plain_field_has_no_candidates():
    for where in ({"$not": {"thread": "t"}}, {"$or": [{"thread": "t"}, {"type": "A"}]}, {"$and": []}):
        assert all(start_step(parse_filter(where), kind, {}) is None for kind in KINDS)


def test_filter_operators_are_exact_at_their_bounds(filled, passing):
    filled({**EMPTY, "episodes": [{**EPISODE, "id": f"x{i}", "trust": i / 4, "at": i} for i in range(3)]})
    kept = {"$eq": "1", "$ne": "02", "$gt": "2", "$gte": "12", "$lt": "0", "$lte": "01"}
    for name, border in (("trust", 0.25), ("said_at", iso(1))):
        for sign, expected in kept.items():
            assert passing({name: {sign: border}}, "episodes") == [f"x{i}" for i in expected]
