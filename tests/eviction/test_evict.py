"""Eviction on a real database: what it deletes, what restores it, and that it survives interruption."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from kg_memory.contrib import eviction
from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.queries import ingestion
from kg_memory.falkor.queries.ingestion import SAVE
from kg_memory.maintenance.forgetting.cypher import FORGET
from kg_memory.runtime.effects import Query
from kg_memory.settings import Settings
from tests.eviction import told
from tests.meanwhile import around_queries, once_before
from tests.queries import queries
from tests.whole_graph import whole

MOVES = (("Oslo", "2020-01-01"), ("Paris", "2021-01-01"), ("Rome", "2022-01-01"))
TRACES = {
    "words": "MATCH (t:Term)-[]->(d) WHERE d.evicted IS NOT NULL RETURN t.s AS found",
    "lost words": "MATCH (t:Term) WHERE outdegree(t) = 0 RETURN t.s AS found",
    "vectors": "MATCH (d) WHERE d.evicted IS NOT NULL AND d.embedding IS NOT NULL RETURN d.id AS found",
    "meanings": "MATCH (v:Meaning) OPTIONAL MATCH (d)-[:MEANS]->(v) WITH d WHERE d.evicted > 0 OR d IS NULL RETURN d.id AS found",
    "beliefs of nothing": "MATCH (b:Belief) WHERE indegree(b) = 0 RETURN b.id AS found",
    **{
        f"lengths of {label}": f"""
        MATCH (d:{label}) WHERE d.evicted IS NULL
        OPTIONAL MATCH (t:Term)-[p:IN_{label.upper()}]->(d)
        WITH d, sum(coalesce(p.f, 1)) AS n
        WHERE n <> d.n
        RETURN d.id AS found"""
        for label in ("Entity", "Fact")
    },
}


@pytest.fixture
def moved(world):
    """A namespace in which Ann moved twice, and knows Bob."""
    for place, at in MOVES:
        world.moves(place, at)
    world.add("I know Bob.", speaker="Ann", at="2019-05-01")
    return world


def traces(rows):
    return {name: found for name, query in TRACES.items() if (found := rows(query))}


def test_evict_deletes_words_and_vectors_of_ended_facts(moved, rows, verbs):
    """Evicted facts lose their words and vectors; lists of current and past facts are unchanged.

    Features: C41.
    """
    before, lived = told(moved.memory, moved.namespace, ["Ann", "Oslo", "Paris", "Rome", "Bob"]), moved.lived()
    look = verbs.privacy.evict(expired_days=0, orphans=True, dry_run=True)
    assert moved.stats().facts == 4
    done = verbs.privacy.evict(expired_days=0, orphans=True)
    assert (done.facts, done.entities, done.beliefs) == (look.facts, look.entities, look.beliefs)
    assert sorted(done.texts.values()) == ["Ann lives in Oslo", "Ann lives in Paris", "Oslo", "Paris"]
    assert done.beliefs == 2
    assert told(moved.memory, moved.namespace, ["Ann", "Oslo", "Paris", "Rome", "Bob"]) == before
    assert moved.lived() == lived
    assert [each.name for each in verbs.entities.list()] == ["Ann", "Rome", "Bob"]
    stats = verbs.stats()
    assert (stats.episodes, stats.entities, stats.facts, stats.current_facts) == (4, 3, 4, 2)
    found = verbs.search("Paris or Oslo?", recipe="words", during=("2020-01-01", "2022-01-01"))
    assert not {"Oslo", "Paris"} & {name for each in found.facts for name in each.objects}
    assert not {"Oslo", "Paris"} & {each.name for each in found.entities}
    assert {each.content for each in found.episodes} >= {"I moved to Paris.", "I moved to Oslo."}
    assert traces(rows) == {}
    assert verbs.privacy.evict(expired_days=0, orphans=True).facts == ()


def test_late_message_is_ended_by_evicted_facts(moved):
    moved.privacy.evict(expired_days=0, orphans=True)
    moved.moves("Bergen", "2019-01-01")
    assert moved.lived() == [
        ("Ann lives in Bergen", "2019-01-01", "2020-01-01"), ("Ann knows Bob", "2019-05-01", None),
        ("Ann lives in Oslo", "2020-01-01", "2021-01-01"), ("Ann lives in Paris", "2021-01-01", "2022-01-01"),
        ("Ann lives in Rome", "2022-01-01", None),
    ]  # fmt: skip


@pytest.mark.parametrize("meanwhile", [False, True])
def test_evicted_fact_said_again_is_found_with_its_history(moved, rows, monkeypatch, meanwhile):
    evict = partial(moved.privacy.evict, expired_days=0, orphans=True)
    waiting = once_before(monkeypatch, moved.memory, SAVE, evict)
    if not meanwhile:
        waiting.pop()()
    moved.moves("Oslo", "2023-01-01")
    assert not waiting
    assert [each for each in moved.lived() if "Oslo" in each[0]] == [
        ("Ann lives in Oslo", "2020-01-01", "2021-01-01"), ("Ann lives in Oslo", "2023-01-01", None),
    ]  # fmt: skip
    for recipe in ("words", "meaning"):
        found = moved.search("Ann lives in Oslo", recipe=recipe)
        assert found.facts[0].sentence == "Ann lives in Oslo"
        assert "Oslo" in {each.name for each in found.entities}
    assert traces(rows) == {}


def test_next_evict_indexes_fact_whose_reader_was_killed(moved, rows, monkeypatch):
    moved.privacy.evict(expired_days=0)

    def kill(text):
        if text == ingestion.INDEX_AGAIN:
            raise DatabaseUnavailable("killed")

    with monkeypatch.context() as patch:
        around_queries(patch, moved.memory, before=kill)
        with pytest.raises(DatabaseUnavailable):
            moved.moves("Oslo", "2023-01-01")
    assert "Ann lives in Oslo" in {each.sentence for each in moved.facts.about("Ann", as_of="2024")}
    assert {each.sentence for each in moved.search("Oslo", recipe="words").facts} == set()
    moved.privacy.evict(orphans=True)
    assert moved.search("Ann lives in Oslo", recipe="words").facts[0].sentence == "Ann lives in Oslo"
    assert traces(rows) == {}


def test_fact_restored_by_forget_is_found_after_next_evict(world, rows):
    world.moves("Oslo", "2020-01-01")
    ended = world.add("I lived in Oslo until 2021-02-01.", speaker="Ann", at="2022-01-01")
    world.privacy.evict(expired_days=0)
    assert world.lived() == [("Ann lives in Oslo", "2020-01-01", "2021-02-01")]
    world.privacy.forget(episode=ended.episode)
    assert world.lived() == [("Ann lives in Oslo", "2020-01-01", None)]
    world.privacy.evict(orphans=True)
    assert world.search("Ann lives in Oslo", recipe="words").facts[0].sentence == "Ann lives in Oslo"
    assert traces(rows) == {}


def test_evict_preserves_recent_and_pending_facts(world):
    world.moves("Oslo", "2020-01-01")
    world.moves("Paris", "2021-01-01")
    assert world.privacy.evict(expired_days=1, orphans=True).facts == ()
    world.doubts()
    world.moves("Rome", "2022-01-01")
    assert world.privacy.evict(expired_days=0, orphans=True, max_entities=1).facts == ()
    while found := world.reviews.list():
        world.reviews.decide(found[0].id, "accept", by="Ann")
    assert world.lived()[-1] == ("Ann lives in Rome", "2022-01-01", None)
    assert sorted(world.privacy.evict(expired_days=0).texts.values()) == ["Ann lives in Oslo", "Ann lives in Paris"]
    assert world.lived()[-1] == ("Ann lives in Rome", "2022-01-01", None)


def test_evict_deletes_entities_with_fewest_facts_first(moved, rows):
    """Beyond `max_entities`, the entities with the fewest facts, least recently mentioned, are evicted first.

    Features: C43.
    """
    assert moved.privacy.evict(max_entities=5).entities == ()
    look = moved.privacy.evict(max_entities=2, dry_run=True)
    done = moved.privacy.evict(max_entities=2)
    assert (done.entities, done.facts) == (look.entities, look.facts)
    assert [done.texts[id_] for id_ in done.entities] == ["Oslo", "Paris", "Bob"]
    assert [each.name for each in moved.entities.list()] == ["Ann", "Rome"]
    assert traces(rows) == {}
    assert "Ann knows Bob" in {each.sentence for each in moved.facts.about("Ann")}
    assert moved.search("Bob", recipe="words").facts == ()
    moved.add("I know Bob, still.", speaker="Ann", at="2024-05-01")
    assert "Ann knows Bob" in {each.sentence for each in moved.search("Bob", recipe="words").facts}


def test_evict_deletes_entity_without_facts_and_its_name(world, rows):
    """Eviction removes entities without facts, with their names.

    Features: C42.
    """
    world.add("Zed.", at="2020-01-01")
    assert list(world.privacy.evict(orphans=True, expired_days=0).texts.values()) == ["Zed"]
    assert rows("MATCH (e:Entity) RETURN e.name AS name") == rows("MATCH (a:Alias) RETURN a.key AS key") == []
    assert world.add("Zed knows Ann.", at="2024-01-01").facts == ("Zed knows Ann",)
    assert traces(rows) == {}


@pytest.mark.parametrize(
    "asked", [{"expired_days": -1}, {"expired_days": float("nan")}, {"expired_days": "90"}, {"max_entities": 0}]
)
def test_evict_raises_for_invalid_input(world, asked):
    with pytest.raises(InputError):
        world.privacy.evict(**asked)


def test_evict_of_empty_namespace_deletes_nothing(verbs):
    done = verbs.privacy.evict(expired_days=0, orphans=True, max_entities=1, expired_episodes=True)
    assert (done.beliefs, done.facts, done.entities, done.episodes) == (0, (), (), ())
    assert verbs._namespace not in verbs.data.namespaces()


def test_killed_evict_changes_no_fact_and_can_be_completed(memory, namespace, monkeypatch):
    monkeypatch.setattr(eviction, "AT_ONCE", 1)
    monkeypatch.setattr(eviction, "BELIEFS_AT_ONCE", 1)
    names = ["Ann", "Bob", *(place for place, _ in MOVES)]
    database, ask = memory._database, memory._database.query_flow
    ends = []
    for last in (0, 1, 3, 4, 6):
        space, left = f"{namespace} {last}", [last or 1000]
        for place, at in MOVES:
            memory.add(f"I moved to {place}.", speaker="Ann", at=at, namespace=space)
        before = told(memory, space, names)

        def dying(key, text, params, *, write, left=left):
            left[0] -= write
            if left[0] < 0:
                raise DatabaseUnavailable("killed")
            return ask(key, text, params, write=write)

        with monkeypatch.context() as patch:
            patch.setattr(database, "query_flow", dying)
            try:
                memory.privacy.evict(expired_days=0, orphans=True, namespace=space)
            except DatabaseUnavailable:
                assert last
        assert told(memory, space, names) == before
        memory.privacy.evict(expired_days=0, orphans=True, namespace=space)
        ends.append(whole(lambda query, space=space: database.query(graph_key(space), query, {}, write=False)))
    assert all(each == ends[0] for each in ends)


def test_message_added_during_evict_is_stored(moved):
    with ThreadPoolExecutor(4) as pool:
        sweeping = [pool.submit(moved.privacy.evict, expired_days=0, orphans=True, max_entities=3) for _ in range(6)]
        moves = (("Oslo", "2023-01-01"), ("Kyoto", "2023-02-01"))
        adding = [pool.submit(moved.moves, place, at) for place, at in moves]
        for each in (*sweeping, *adding):
            each.result()
    assert moved.search("Ann lives in Kyoto", recipe="words").facts[0].sentence == "Ann lives in Kyoto"
    assert [each[0] for each in moved.lived(as_of="2024") if "lives" in each[0]] == ["Ann lives in Kyoto"]


def test_fact_evicted_during_forget_holds_again(world, monkeypatch):
    world.moves("Oslo", "2020-01-01")
    world.moves("Paris", "2021-01-01")
    gone = world.moves("Rome", "2022-01-01")
    sweeps = once_before(monkeypatch, world.memory, FORGET, lambda: world.privacy.evict(expired_days=0))
    world.privacy.forget(episode=gone.episode)
    assert not sweeps
    assert world.lived()[-1] == ("Ann lives in Paris", "2021-01-01", None)
    world.privacy.evict(orphans=True)
    assert world.search("Paris", recipe="words").facts[0].sentence == "Ann lives in Paris"


# Expired messages


def test_expired_message_is_hidden_and_evict_forgets_it(world, rows, verbs):
    world.moves("Oslo", "2020-01-01")
    gone = world.moves("Paris", "2021-01-01", " zebulon", expires_at=datetime.now(UTC) - timedelta(hours=1))
    kept = world.moves("Rome", "2019-01-01", " zebulon", expires_at="2999-01-01")
    assert [each.id for each in verbs.search("zebulon", recipe="words").episodes] == [kept.episode]
    served = verbs.search("Where does Ann live?", during=("2000-01-01", "2030-01-01"))
    assert {fact.sentence for fact in served.facts} == {"Ann lives in Oslo", "Ann lives in Rome"}
    assert "Paris zebulon" not in str(verbs.context("Where did Ann live? Paris zebulon"))
    assert "Paris" not in str(verbs.profile("Ann", as_of="2021-06-01"))
    assert "Rome" in str(verbs.profile("Ann", as_of="2019-06-01"))
    assert world.episodes.list(limit=3)[0].expires_at < datetime.now(UTC)
    assert verbs.privacy.evict(expired_episodes=True, dry_run=True).texts == {gone.episode: "I moved to Paris zebulon."}
    done = verbs.privacy.evict(expired_episodes=True)
    assert (done.episodes, done.texts[gone.episode]) == ((gone.episode,), "")
    assert world.lived()[-1] == ("Ann lives in Oslo", "2020-01-01", None)
    assert verbs.privacy.evict(expired_episodes=True).episodes == ()


def test_message_expires_by_default_ttl_or_its_own_time(opened, namespace):
    memory = opened(default_ttl=3600)
    for each in ({"content": "One."}, {"content": "Two.", "expires_at": "2999-01-01T02:00+02:00"}):
        memory.add_many([each], namespace=namespace)
    two, one = memory.episodes.list(namespace=namespace)
    assert one.expires_at - one.created_at == timedelta(hours=1)
    assert two.expires_at == datetime(2999, 1, 1, tzinfo=UTC)
    with pytest.raises(InputError, match="expires_at"):
        memory.add("Three.", expires_at="soon", namespace=namespace)


# The queries

QUERIES = {
    text: name
    for name, text in vars(eviction).items()
    if name.isupper() and not name.startswith("_") and isinstance(text, str) and text.startswith("\n")
} | {ingestion.EVICTED: "EVICTED", ingestion.INDEX_AGAIN: "INDEX_AGAIN"}
SCANS = {"LAST", "KEPT", "FACTS_OVER", "ENTITIES"}
"""The queries that read everything: counts, or pages of internal ids."""


def test_eviction_queries_use_an_index_or_pages(memory, driver, database, namespace):
    for place, at in (*MOVES, ("Oslo", "2023-01-01")):
        memory.add(f"I moved to {place}.", speaker="Ann", at=at, namespace=namespace)
    memory.privacy.evict(expired_days=0, namespace=namespace)
    key = graph_key(namespace)
    every = {"expired_days": 0.0, "orphans": True, "max_entities": 1, "expired_episodes": True}
    flows = [eviction.evict(Settings(), namespace, **every, dry_run=dry) for dry in (False, True)]
    flows.append(eviction.index_again(["f"]))
    found: dict[str, Query] = {}
    for flow in flows:
        found |= {QUERIES[each.cypher]: each for each in queries(flow, driver, key) if each.cypher in QUERIES}
    assert found.keys() == set(QUERIES.values())
    for name, query in found.items():
        plan = database.explain(key, query.cypher, query.params)
        assert "All Node Scan" not in plan, plan
        assert name in SCANS or "Label Scan" not in plan, plan
        assert name in SCANS or "Node By Index Scan" in plan, plan
        assert not re.search(r"Cartesian", plan), plan
