"""Every query uses an index, and the queries that write are atomic and idempotent."""

import re
from typing import Any

import pytest

from kg_memory.contrib import estimate, maintainer
from kg_memory.contrib.profile import queries as profiles
from kg_memory.contrib.reports import queries as reports
from kg_memory.contrib.server import news
from kg_memory.errors import QueryError
from kg_memory.falkor import queries, schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.ingestion.graph import build
from kg_memory.maintenance import reembedding
from kg_memory.memory.listing import facts_about
from kg_memory.memory.open import open_driver
from kg_memory.runtime.effects import Query
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END
from tests.scripted import HashEmbeddings, Scripted
from tests.whole_graph import every_property

MODULES = (
    queries.communities, queries.episodes, queries.facts, queries.features, queries.identities, queries.ingestion,
    queries.premises, queries.search, queries.usage, estimate, maintainer, news, profiles, reports,
)  # fmt: skip
QUERIES = {
    **{f"{module.__name__.rpartition('.')[2]}.{name}": text
       for module in MODULES for name, text in vars(module).items() if name.isupper() and name[0] != "_"},
    "facts.list_facts": queries.facts.list_facts(queries.facts.ABOUT),
    "schema.READ_META": schema.READ_META,
    "schema.WRITE_META": schema.WRITE_META,
    "schema.WRITE_MODEL": schema.WRITE_MODEL,
    **{
        f"reembedding.{name}_{label}": getattr(reembedding, name).format(source=source)
        for name in ("PAGE", "STORE")
        for label, source in reembedding.VECTORS.items()
    },
}  # fmt: skip
QUERIES = {
    name: text
    for name, text in QUERIES.items()
    if isinstance(text, str)
    and re.search("RETURN|SET|MERGE", text)
    and text != news.COUNT_EPISODES  # which no index serves
    and name not in {"premises.LINK_PREMISES", "facts.ABOUT"}  # parts of ingestion.SAVE and of facts.list_facts
}

SCANS = {
    "facts.LIST_ENTITIES": "a page of all: an order never uses an index",
    "facts.ENTITIES_LIKE": "it looks through all words: no index finds the beginning of one",
    "episodes.EPISODES": "a page of all: an order never uses an index",
    "usage.STATS": "it counts all",
    "search.WORD_STATISTICS": "it looks at the first few hundred of each kind",
    "facts.ALL_PREDICATES": "a page of all: an order never uses an index",
    "communities.COMMUNITIES": "a page of all: an order never uses an index",
    "communities.WHOLES": "it reads all that is above another, once a refresh",
    "communities.FIND": "it looks for the beginning of a name among all",
    "communities.LAST_ENTITY": "it looks at the number of each, once a refresh",
    "communities.LAST_FACT": "it looks at the number of each, once a refresh",
    "communities.STORED": "it compares all",
    "queries.WAITED": "it reads all decisions, for a time in the past",
    "identities.REASONS_ABOUT": "it reads all decisions, when something is forgotten",
}
"""The queries that may scan a label, and why."""
PAGES = {"communities.ENTITIES", "communities.FACTS", "communities.MEMBERSHIPS"}
"""The queries that read all there is, in pages of internal ids."""
BY_MEANING = {name for name in QUERIES if name.endswith("_BY_MEANING")}

VECTOR = [0.1] * 64
ID = "5e0f8c1e-0000-5000-8000-000000000000"
TERM = {"term": "oslo", "idf": 1.0, "f": 1, "key": "k", "id": ID, "in": [{"id": ID, "f": 1}]}
TYPED = {"unreviewed": False, "reading": False, "identity": {"id": ID}, "id": ID, "thread_key": ID}
"""The parameters whose type the plan of a query depends on."""
EPISODE = {"id": ID, "thread_key": "k", "at": 1, "created_at": 1, "status": "new", "content": "x"}
OF_ONE = {"episodes.SAVE_EPISODE": {"episode": EPISODE}, "facts.TELL_FACTS": {"past": True}}
SAVED: dict[str, Any] = {
    "episode": ID, "end": {"status": "done", "plan": "standard", "took": [1.0] * 7}, "embedding": VECTOR,
    "based_on": [{"id": ID, "revision": 0}], "forgotten": 0, "at": 1_700_000_000_000_000, "now": 1_700_000_000_000_000,
    "entities": [{"key": "k", "id": ID, "name": "n", "type": "t", "aliases": [], "alias_keys": ["k"]}],
    "predicates": [{"name": ID, "canonical": ID, "single_valued": True, "origin": "learned"}],
    "before": 0, "most": 10, "latest": 50, "past": 5,
}  # fmt: skip
"""Parameters of `ingestion.SAVE`; the others are empty lists."""


@pytest.fixture(scope="module")
def key(database: Database) -> str:
    """A graph with all kinds of nodes."""
    driver = open_driver(Scripted(), HashEmbeddings(), database)
    graph = build(driver, Settings()).compile()
    for number in range(3):
        graph.invoke({"content": f"I live in Oslo {number}.", "speaker": "Ann", "namespace": "plans"})
    driver.close()
    return graph_key("plans")


def plan(database: Database, key: str, name: str) -> str:
    text = QUERIES[name]
    used = set(re.findall(r"\$(\w+)", text))
    lists = {each: ["x"] for each in used if re.search(rf"IN \${each}\b", text)}
    given = {**TYPED, **lists, **OF_ONE.get(name, {})}
    return database.explain(key, text, {each: given.get(each, 10) for each in used})


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - SCANS.keys()))
def test_query_uses_an_index_and_scans_nothing(database, key, name):
    """The plan of each query uses an index, and scans no label.

    Features: A21, C8.
    """
    shown = plan(database, key, name)
    assert "Label Scan" not in shown, shown
    assert "All Node Scan" not in shown, shown
    assert "Cartesian Product" not in shown or shown.count("Node By Index Scan") >= 2, shown
    by_id = "Node By Label and ID Scan" if name in PAGES else "Node By Index Scan"
    assert ("ProcedureCall" if name in BY_MEANING else by_id) in shown, shown


@pytest.mark.parametrize("name", sorted(SCANS))
def test_query_listed_in_scans_still_scans(database, key, name):
    assert "Label Scan" in plan(database, key, name), f"strike {name} off SCANS"


OF_VECTORS = {"features.EPISODE_VECTORS"}
"""It reads a sample once in a while."""


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_query_returns_no_embedding(name):
    returned = re.split(r"\bRETURN\b", QUERIES[name])[-1]
    assert "embedding" not in returned or name.startswith("reembedding.STORE") or name in OF_VECTORS
    assert not re.search(r"\bRETURN (DISTINCT )?[a-z]\b(?!\s*[.{(])", QUERIES[name].split("}")[-1])


@pytest.fixture
def writes(driver, settings, namespace, monkeypatch):
    """The write queries of one ingestion that runs all of them, with their parameters."""
    kept: list[Query] = []
    perform = driver._perform

    def keeping(key, effect):
        if isinstance(effect, Query) and effect.write:
            kept.append(effect)
        return perform(key, effect)

    graph = build(driver, settings).compile()
    message = {"speaker": "Ann", "namespace": namespace, "thread": "t"}
    graph.invoke({**message, "content": "I live in Oslo.", "at": "2024-01-01"})
    graph.invoke({**message, "content": "I live in Rome.", "at": "2024-01-03"})
    monkeypatch.setattr(driver, "_perform", keeping)
    graph.invoke({**message, "content": "I live in Paris with Bob.", "at": "2024-01-02"})
    return kept


def test_write_queries_are_idempotent(database, namespace, writes):
    key = graph_key(namespace)
    episodes, ingestion = queries.episodes, queries.ingestion
    names = {episodes.SAVE_EPISODE, episodes.KEEP_ANSWER, ingestion.SAVE, ingestion.SAVE_SUMMARIES}
    assert {each.cypher for each in writes} == names
    before = every_property(database, key)
    for each in (*writes, *writes):
        database.query(key, each.cypher, each.params, write=True)
    assert every_property(database, key) == before


def save_params(**given: Any) -> dict[str, Any]:
    """Return parameters of `ingestion.SAVE`."""
    return {**{name: [] for name in re.findall(r"\$(\w+)", queries.ingestion.SAVE)}, **SAVED, **given}


@pytest.mark.parametrize(("expired_at", "saved"), [(OPEN_END, True), (1, False)])
def test_save_query_closes_only_open_beliefs(driver, database, settings, namespace, expired_at, saved):
    key = graph_key(namespace)
    build(driver, settings).compile().invoke({"content": "I live in Oslo.", "namespace": namespace})
    database.query(key, "CREATE (:Episode {id: $id, status: 'saved', at: 1})", {"id": ID}, write=True)
    database.query(key, "CREATE (:Belief {id: 'b', expired_at: $at})", {"at": expired_at}, write=True)
    assert bool(database.query(key, queries.ingestion.SAVE, save_params(closed=["b"]), write=True)) is saved


def test_write_query_that_fails_changes_nothing(driver, database, settings, namespace, rows):
    key = graph_key(namespace)
    graph = build(driver, settings).compile()
    said = {"speaker": "Ann", "thread": "t", "content": "I live in Oslo.", "at": "2024-01-01"}
    graph.invoke({**said, "namespace": namespace})
    before = every_property(database, key)
    # The last clause of each fails: a map is no property.
    broken = "WITH * CREATE (:Alias {key: $map}) RETURN 1 AS one"
    arguments = {
        queries.episodes.SAVE_EPISODE: {
            "episode": EPISODE, "around": [], "postings": [TERM], "lengths": [{"id": ID, "n": 3}], "reading": True,
            "reader": "host/1/2", "begun_at": 1, **queries.usage.NO_LEDGER,
        },
        queries.ingestion.SAVE: save_params(),
    }  # fmt: skip
    for query, params in arguments.items():
        if query == queries.ingestion.SAVE:
            database.query(key, "CREATE (:Episode {id: $id, status: 'saved', at: 1})", {"id": ID}, write=True)
            before = every_property(database, key)
        text = query[: query.rindex("RETURN ")] + broken
        with pytest.raises(QueryError, match="Property values can only be of primitive types"):
            database.query(key, text, {**params, "map": {"a": 1}}, write=True)
        assert every_property(database, key) == before
    database.query(key, queries.ingestion.SAVE, arguments[queries.ingestion.SAVE], write=True)
    assert rows("MATCH (e:Entity {key: 'k'}) RETURN e.name AS name") == [{"name": "n"}]


def test_save_query_skips_finished_episode(driver, database, settings, namespace, rows):
    message = {"speaker": "Ann", "namespace": namespace, "content": "I live in Oslo.", "at": "2024-01-01"}
    params = save_params(episode=build(driver, settings).compile().invoke(message)["episode"]["id"])
    assert database.query(graph_key(namespace), queries.ingestion.SAVE, params, write=True) == []
    assert rows("MATCH (e:Entity {key: 'k'}) RETURN e.key AS key") == []


def test_save_episode_query_reads_labels_before_any_set():
    before = queries.episodes.SAVE_EPISODE[: queries.episodes.SAVE_EPISODE.index("labels(e)")]
    assert "MERGE (e:Episode" in before
    assert "SET" not in before  # else FalkorDB needs milliseconds for each read of the labels of new nodes


def test_facts_about_orders_old_facts_by_date(driver, settings, namespace):
    graph = build(driver, settings).compile()
    message = {"speaker": "Ann", "namespace": namespace, "at": "2024-01-01"}
    graph.invoke({**message, "content": "I know Bob since 1950-01-01"})
    graph.invoke({**message, "content": "I know Carl since 1999-01-01"})
    graph.invoke({**message, "content": "I know Dora since 1940-01-01"})
    texts = [fact.objects[0] for fact in driver.run(facts_about("Ann", 10), namespace)]
    assert texts == ["Carl", "Bob", "Dora"]
