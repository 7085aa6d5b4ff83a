"""The residue search finds every trace that `forget` leaves, of any kind and anywhere."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from kg_memory.contrib import residue
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.text.identity import alias_key
from tests.meanwhile import around_queries

SAID = "My friend Zebulon, whom I met long ago by the old harbour bridge, lives with me in Kyoto."
PLANTED = {
    "a sentence": ("MATCH (f:Fact) SET f.sentence = 'Ann saw Zebulon'", ("Fact", "sentence", "word")),
    "a summary": ("MATCH (n:Entity {name: 'Oslo'}) SET n.summary = 'kyoto is far'", ("Entity", "summary", "word")),
    "an alias": ("MATCH (n:Entity {name: 'Ann'}) SET n.aliases = ['Zebulon']", ("Entity", "aliases", "word")),
    "a reason": ("CREATE (:Verdict {id: 'v', reason: 'as zebulon said'})", ("Verdict", "reason", "word")),
    "a word of the index": ("MATCH (e:Episode) CREATE (:Term {s: 'zebulon'})-[:IN_EPISODE]->(e)", ("Term", "s", "word")),
    "an answer": ("MATCH (e:Episode) SET e.answers = ['k', '{\"name\": \"Zebulon\"}']", ("Episode", "answers", "word")),
    "a community": ("CREATE (:Community {id: 'c', name: 'x', summary: 'Kyoto'})", ("Community", "summary", "word")),
    "a relation": ("MATCH (e:Episode)-[s:STATES]->() SET s.note = 'zebulon'", ("STATES", "note", "word")),
    "a property of ours": ("MATCH (m:Meta) SET m.last = 'zebulon'", ("Meta", "last", "word")),
    "the id of the message": ("MATCH (b:Belief) SET b.cause = 'THE_ID'", ("Belief", "cause", "id")),
    "an id in a text": ("CREATE (:Note {id: 'x', text: 'see THE_ID, please'})", ("Note", "text", "id")),
    "the message": ("CREATE (:Episode {id: 'THE_ID', content: 'nothing', at: 1, created_at: 1})", ("Episode", "id", "id")),
    "a name": ("CREATE (:Alias {key: '" + alias_key("Zebulon") + "'})", ("Alias", "key", "name")),
    "its vector": ("MATCH (e:Episode) SET e.embedding = vecf32($vector)", ("Episode", "embedding", "vector")),
}  # fmt: skip


@pytest.fixture
def searched() -> None:
    """Allow traces in these tests."""


@pytest.fixture
def broken(world, database, monkeypatch) -> Callable[..., Any]:
    """Return a function that forgets an episode and restores traces right after the deletion."""

    def forget(episode: str, *queries: str, **params: Any) -> Any:
        def plant(text: str) -> None:
            for query in queries if text == cypher.FORGET else ():
                database.query(graph_key(world.namespace), query, params, write=True)
                schema.wait_for_indices(database, graph_key(world.namespace))  # a busy server drops it a bit later

        around_queries(monkeypatch, world.memory, after=plant)
        return world.privacy.forget(episode=episode)

    return forget


def test_residue_lists_each_trace_without_its_text(world, broken, embeddings):
    world.moves("Oslo", "2024-01-01")
    added = world.add(SAID, speaker="Ann", at="2024-02-01")
    queries = [query.replace("THE_ID", added.episode) for query, _ in PLANTED.values()]
    done = broken(added.episode, *queries, vector=embeddings.embed_query(f"Ann: {SAID}"))
    found = {(each.label, each.name, each.trace) for each in done.residue}
    assert {name for name, (_, expected) in PLANTED.items() if expected not in found} == set()
    assert found <= {expected for _, expected in PLANTED.values()} | {("Term", "s", "word")}
    assert "zebulon" not in str(done).lower()
    assert added.episode not in str(done.residue)
    [entry] = world.privacy.audit(limit=1)
    assert entry.residue == len(done.residue)


@pytest.mark.parametrize("searching", [None])
def test_residue_lists_ids_without_a_search(world, broken, searching):
    added = world.add(SAID, speaker="Ann", at="2024-02-01")
    planted = (
        f"CREATE (:Episode {{id: '{added.episode}', content: 'nothing', at: 1, created_at: 1}})",
        "MATCH (e:Episode) SET e.note = 'zebulon'",
    )
    done = broken(added.episode, *planted)
    assert [(each.label, each.name, each.trace) for each in done.residue] == [("Episode", "id", "id")]
    assert done.searched == 0


def test_number_within_id_or_length_is_no_residue(world, broken):
    world.moves("Oslo", "2024-01-01")
    done = broken(
        world.add("I paid 131 euros to 4711 and 86.", speaker="Ann", at="2024-02-01").episode,
        "MATCH (n:Entity {name: 'Oslo'}) SET n.worded = '131 8db93eae53e3f076'",
        "MATCH (f:Fact) CREATE (:Verdict {id: 'v', episode: '6fcf8b2a-89ea-4711-9e66-8ed719f31583'})",
        "MATCH (f:Fact) MERGE (f)-[:RESTS_ON {episode: '6fcf8b2a-89ea-4711-9e66-8ed719f31583'}]->(f)",
    )
    assert done.residue == ()


def test_residue_lists_quote_of_common_words(world, broken):
    said = "the cat sat near a dog and some bird ate an old fish while rain fell on green hills"
    for place, word in enumerate([each for each in said.split() if len(each) > 2]):
        world.episodes.save([{"content": f"{word} {place}", "speaker": "Tom"}])
    world.moves("Oslo", "2024-01-01")
    added = world.episodes.save([{"content": said, "speaker": "Ann"}])[0]
    done = broken(added.episode, "MATCH (n:Entity {name: 'Oslo'}) SET n.summary = $said", said=said)
    assert {(each.label, each.name, each.trace) for each in done.residue} == {("Entity", "summary", "quote")}


def test_forget_returns_receipt_despite_concurrent_reembedding(world, broken):
    added = world.moves("Oslo", "2024-01-01")
    begun = f"MATCH (m:Meta) SET m.model = '{schema.UNDER_WAY}'"
    done = broken(added.episode, begun, "DROP VECTOR INDEX FOR (n:Episode) ON (n.embedding)")
    assert (done.episodes, done.residue, done.searched) == ((added.episode,), (), 0)
    [entry] = world.privacy.audit(limit=1)
    assert (entry.complete, entry.searched, entry.episodes) == (True, 0, 1)


def test_message_added_meanwhile_is_no_residue(world, monkeypatch):
    world.moves("Oslo", "2024-01-01")
    added = world.add("I know Zebulon.", speaker="Ann", at="2024-02-01")
    real, calls = residue.ResidueSearch._drop_shared, count()

    def excuse(self, episodes):
        real(self, episodes)
        if next(calls) == 0:
            world.add("I know Zebulon.", speaker="Tom", at="2024-03-01")

    monkeypatch.setattr(residue.ResidueSearch, "_drop_shared", excuse)
    assert world.privacy.forget(episode=added.episode).residue == ()


def test_residue_is_searched_in_pages(world, monkeypatch):
    monkeypatch.setattr(forgetting, "AT_ONCE", 2)
    monkeypatch.setattr(residue, "PAGE", 40)
    monkeypatch.setattr(residue, "VECTORS_AT_ONCE", 2)
    for day in range(1, 8):
        world.add(f"I know Zebulon{day}.", speaker="Ann", at=f"2024-01-0{day}", thread="t" if day % 2 else "u")
    done = world.privacy.forget(thread="t")
    assert (done.parts, done.residue, len(done.episodes)) == (2, (), 4)
