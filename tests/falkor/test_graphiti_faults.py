"""Reports of users of Graphiti on FalkorDB (getzep/graphiti#1840 and related issues), tried with the public API.

Each test names the issues whose symptoms it tests. docs/why.md lists all of them, with the tests of other folders.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.validation import DEFAULT_NAMESPACE
from tests.falkor.test_replica import running
from tests.scripted import HashEmbeddings, Scripted

PLACES = ("Oslo", "Paris", "Rome", "Bergen", "Kyoto")
SCOPES = [
    "00000000-0000-0000-0000-000000000001", "jira-summary", "_", "\\_", "main", "will", "it", "a/b|c", '@group_id:"x"', "-x",
    "ann@example.com", "session-agent:main:main", "用户",
]  # fmt: skip
NAMES = [
    "Cruise / En route", "`add_episode`", "user\\_profile", "a|b", "jira-summary", "a_b_c", "_", "C++", "(x", "@group_id", "it's -x",
    "The Who", "Will", "It", "This Is It",
]  # fmt: skip
EMPTY_QUERIES = ["_", "__", "the", "will the it", "to be or not to be", "()", "`", "-", "_ | _", "%", '"', "\\_"]


def places(facts):
    return {each for fact in facts for each in fact.objects}


def test_reads_use_the_named_namespace_after_any_write(verbs, namespace):
    """#1795, #1331, #1842, #1876: writing to one group moves the reads of the others to its graph."""
    homes = {f"{namespace} {place}": place for place in PLACES[:3]}
    for name, place in homes.items():
        verbs.add(f"I moved to {place}.", speaker="Ann", at="2024-01-01", namespace=name)
        verbs.add("Nothing of note.", speaker="Bob", source=namespace, namespace=DEFAULT_NAMESPACE)
        for other, home in list(homes.items())[: list(homes).index(name) + 1]:
            found = verbs.search("Where does Ann live?", namespace=other)
            assert places(found.facts) == places(verbs.facts.about("Ann", namespace=other)) == {home}
            assert [each.content for each in found.episodes] == [f"I moved to {home}."]
            assert {each.name for each in verbs.entities.list(namespace=other)} == {"Ann", home}
            assert [each.content for each in verbs.episodes.list(namespace=other)] == [f"I moved to {home}."]
            assert f"Ann lives in {home}" in verbs.context("Where does Ann live?", namespace=other)
    verbs.privacy.forget(source=namespace, namespace=DEFAULT_NAMESPACE)


def test_reopened_memory_reads_the_only_named_namespace(opened, namespace):
    """#1325, #1161, #1659: a fresh process that names a single group reads the default graph, and finds nothing."""
    with opened() as writer:
        writer.add("I moved to Oslo.", speaker="Ann", namespace=namespace)
    reader = opened()
    assert places(reader.search("Where does Ann live?", namespace=namespace).facts) == {"Oslo"}
    assert len(reader.episodes.list(namespace=namespace)) == 1
    assert reader.communities.refresh(namespace=namespace)


@pytest.mark.parametrize("way", ["threads", "asyncio"])
def test_parallel_adds_to_many_namespaces_stay_separate(memory, namespace, way):
    """#1676: groups that are written at once by one client end up in the graphs of each other."""
    said = [(f"{namespace} {place}", f"I moved to {place}, and met Friend{n}.") for n in range(4) for place in PLACES]

    async def add_all():
        await asyncio.gather(*(memory.aadd(text, speaker="Ann", namespace=name) for name, text in said))

    if way == "asyncio":
        asyncio.run(add_all())
    else:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda each: memory.add(each[1], speaker="Ann", namespace=each[0]), said))
    for place in PLACES:
        name = f"{namespace} {place}"
        assert {each.content for each in memory.episodes.list(namespace=name)} == {t for n, t in said if n == name}
        people = {each.name for each in memory.entities.list(namespace=name)}
        assert people == {"Ann", place, *(f"Friend{n}" for n in range(4))}
        assert len(people) == memory.stats(namespace=name).entities


def test_episode_is_read_and_forgotten_in_its_namespace_only(verbs, namespace):
    """#1651, #1765: episodes are listed and deleted in the default graph, whatever their group is."""
    one, two = f"{namespace} one", f"{namespace} two"
    mine, yours = (
        verbs.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=name).episode for name in (one, two)
    )
    assert mine != yours
    assert verbs.episodes.get(mine, namespace=one).content == "I moved to Oslo."
    assert verbs.episodes.get(mine, namespace=two) is None
    verbs.privacy.forget(episode=mine, namespace=one)
    assert verbs.episodes.list(namespace=one) == verbs.facts.about("Ann", namespace=one) == []
    assert verbs.episodes.get(yours, namespace=two).content == "I moved to Oslo."
    assert places(verbs.facts.about("Ann", namespace=two)) == {"Oslo"}


@pytest.mark.parametrize("scope", SCOPES, ids=ascii)
def test_search_accepts_any_namespace_source_and_thread(memory, scope):
    """#1483, #1269, #1660, #1845, #1425, #1465, #1517, #1319, #841, #757: ids that are refused, or break the query."""
    where = {"thread": scope, "source": scope}
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=scope, **where)
    memory.add("I moved to Rome.", speaker="Bob", at="2024-01-01", namespace=scope, thread="t", source="s")
    for recipe in ("default", "words", "meaning"):
        found = memory.search("Who moved to Oslo?", namespace=scope, where=where, recipe=recipe)
        assert places(found.facts) == {"Oslo"}
        assert [each.content for each in found.episodes] == ["I moved to Oslo."]
    memory.privacy.forget(everything=True, namespace=scope)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_entity_with_special_name_is_unique_and_found(memory, namespace, name):
    """#1144, #1151, #1440, #1336, #1337, #1590, #1425, #1820: names that break the search for who they are."""
    memory.facts.add(name, "KNOWS", "Ann", at="2024-01-01", namespace=namespace)
    memory.facts.add(name, "ADMIRES", "Bob", at="2024-01-02", namespace=namespace)
    memory.add(f"I like {name} a lot", speaker="Cleo", at="2024-01-03", source_id=name, namespace=namespace)
    assert [each.name for each in memory.entities.list(namespace=namespace)].count(name) == 1
    assert places(memory.facts.about(name, namespace=namespace)) >= {"Ann", "Bob"}
    found = memory.search(f"Who does {name} know?", center=name, namespace=namespace)
    assert "Ann" in places(found.facts)
    assert {each.content for each in memory.search("what is liked a lot", namespace=namespace).episodes} >= {
        f"I like {name} a lot"
    }


def test_search_accepts_questions_of_marks_or_stop_words(memory, namespace):
    """#1820, #1336, #1337, #1440, #1590: tokens that leave an empty or a malformed query behind."""
    memory.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", namespace=namespace)
    for question, recipe in product(EMPTY_QUERIES, ("default", "words")):
        memory.search(question, namespace=namespace, recipe=recipe)
        found = memory.search(f"{question} Oslo", namespace=namespace, recipe=recipe)
        assert places(found.facts) == {"Oslo"}, (question, recipe)
        assert memory.search(f"Oslo {question} Oslo", namespace=namespace, recipe=recipe).episodes, (question, recipe)


def test_search_finds_identifier_by_its_parts(memory, namespace):
    """#1820: text in the form of an identifier makes RediSearch refuse the whole query."""
    told = "The job is export_<3f2a9c1e-77aa-4c1b-9d5e-000000000000>_ of tenant_7."
    memory.add(told, speaker="Ann", namespace=namespace)
    memory.add("I moved to Oslo.", speaker="Bob", namespace=namespace)
    for question in ("export_<3f2a9c1e-77aa-4c1b-9d5e-000000000000>_", "3f2a9c1e", "tenant_7"):
        assert memory.search(question, namespace=namespace, recipe="words").episodes[0].content == told


def test_vector_search_finds_facts_added_in_any_way(memory, namespace):
    """#972, #1100; FalkorDB#2233: vectors that are stored as lists are refused, or silently not indexed."""
    memory.add("I moved to Oslo.", speaker="Ann", namespace=namespace)
    memory.add_many([{"content": "I moved to Rome.", "speaker": "Bob"}], namespace=namespace)
    memory.facts.add("Cleo", "LIVES_IN", "Kyoto", namespace=namespace)
    memory.episodes.save([{"content": "I moved to Paris.", "speaker": "Dan"}], namespace=namespace)
    memory.episodes.resume(namespace=namespace)
    for name, place in {"Ann": "Oslo", "Bob": "Rome", "Cleo": "Kyoto", "Dan": "Paris"}.items():
        found = memory.search(f"{name} lives in {place}", namespace=namespace, recipe="meaning")
        assert (found.facts[0].subject, found.facts[0].objects) == (name, (place,))


def test_search_returns_facts_entities_and_episodes(memory, namespace):
    """#1787: nodes are not found by the question that finds their facts.

    Features: B11.
    """
    memory.add("I moved to Oslo.", speaker="Ann", namespace=namespace)
    for recipe in ("default", "words", "meaning", "hybrid"):
        found = memory.search("Ann Oslo", namespace=namespace, recipe=recipe)
        assert places(found.facts) == {"Oslo"}
        assert {each.name for each in found.entities} == {"Ann", "Oslo"}
        assert [each.content for each in found.episodes] == ["I moved to Oslo."]


TIED = {
    "two": [("Ann", "Bob")],
    "a triangle": [("Ann", "Bob"), ("Bob", "Cleo"), ("Cleo", "Ann")],
    "a hub": [("Ann", f"Friend{n}") for n in range(15)],
}


@pytest.mark.parametrize("pairs", TIED.values(), ids=TIED)
def test_communities_of_doubly_linked_entities_terminate(memory, namespace, pairs):
    """#402, #1397, #1400, #1710, #1719, #1844: label propagation that never ends where votes are tied."""
    rows = [(one, predicate, other) for one, other in pairs for predicate in ("KNOWS", "ADMIRES")]
    memory.facts.add_many(rows, namespace=namespace)
    memory.communities.refresh(namespace=namespace)
    [community] = memory.communities.list(namespace=namespace)
    members = memory.communities.get(community.name, namespace=namespace).community.members
    assert set(members) == {name for pair in pairs for name in pair}


@pytest.mark.system
def test_large_graph_queries_end_within_a_second(tmp_path):
    """#1592, #1272, #1506, #1819; FalkorDB#1826: queries that grow with hits and nodes, and are ended after a second."""
    with running(tmp_path / "server") as node:
        settings = Settings(url=node.url(), merge_threshold=0.98, ask_threshold=0.6)
        with GraphMemory(settings, model=Scripted(), embeddings=HashEmbeddings()) as memory:
            rows = [
                {"subject": f"Person {n}", "predicate": "LIVES_IN", "object": f"Town {n % 100}", "at": "2024-01-01",
                 "sentence": f"Person {n} lives in the town Town {n % 100}"}
                for n in range(1000)
            ]  # fmt: skip
            memory.facts.add_many(rows)
            for name in ("TIMEOUT_MAX", "TIMEOUT_DEFAULT"):
                node.redis.execute_command("GRAPH.CONFIG", "SET", name, 1000)
            for n in range(3):
                added = memory.add(f"I moved to Town {n}, a town where a person lives.", speaker=f"Person {n}")
                assert added.status == "done"
            for recipe in ("default", "words", "meaning", "hybrid", "overview"):
                found = memory.search("Which person lives in the town?", recipe=recipe)
                assert len(found.facts) == len(found.entities) == len(found.episodes) == 10
            assert memory.stats().facts >= 1000
