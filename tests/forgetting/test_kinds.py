"""Whole threads, speakers, sources, people and namespaces are forgotten, and what others said stays."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from kg_memory.errors import InputError
from kg_memory.falkor.connect import graph_key
from kg_memory.maintenance.forgetting import forget as forgetting
from kg_memory.text.identity import alias_key
from tests.forgetting import residue

TALK = [
    {"content": "I moved to Oslo.", "speaker": "Ann", "thread": "a", "source": "mail"},
    {"content": "I know Bob.", "speaker": "Ann", "thread": "a", "source": "chat"},
    {"content": "I moved to Paris.", "speaker": "Bob", "thread": "b", "source": "chat"},
    {"content": "I met Bob in Rome.", "speaker": "ann", "thread": "b", "source": "mail"},
    {"content": "Bobby tables are fun.", "speaker": "Tom", "thread": "c", "source": "chat"},
]


def said(verbs: Any) -> list[str]:
    """Return the contents of the stored episodes, earliest first."""
    return [each.content for each in reversed(verbs.episodes.list())]


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ({"thread": "a"}, [2, 3, 4]),
        ({"speaker": "ANN"}, [2, 4]),
        ({"source": "chat"}, [0, 3]),
        ({"entity": "bob"}, [0, 4]),
        ({"entity": "Paris"}, [0, 1, 3, 4]),
    ],
    ids=str,
)
def test_forget_deletes_all_messages_of_a_kind(world, rows, monkeypatch, named, left):
    at_once = 1 if "entity" in named else 50
    monkeypatch.setattr(forgetting, "AT_ONCE", at_once)
    world.add_many([{**each, "at": f"2024-01-0{day}"} for day, each in enumerate(TALK, 1)])
    look = world.privacy.forget(**named, dry_run=True)
    assert len(said(world)) == len(TALK)
    progress: list[tuple[int, int]] = []
    done = world.privacy.forget(**named, progress=lambda part, whole: progress.append((part, whole)))
    gone = len(TALK) - len(left)
    assert said(world) == [TALK[place]["content"] for place in left]
    assert (set(done.episodes), set(done.entities)) == (set(look.episodes), set(look.entities))
    assert progress == [(part, gone) for part in (range(1, gone + 1) if at_once == 1 else [gone])]
    assert (done.parts, done.residue) == (len(progress), ())
    assert residue(rows, *done.episodes, *done.facts, *done.entities) == []
    with pytest.raises(InputError, match="forgotten"):
        world.privacy.forget(**named)


def test_forget_entity_deletes_waiting_messages_that_name_it(world, rows, model):
    world.add("I know Zoe.", speaker="Ann", at="2024-01-01")
    world.episodes.save(
        [{"content": "ask Zoe, not Zoella", "speaker": "Tom"}, {"content": "zoe? Zoella!", "speaker": "Tom"}]
    )
    assert len(world.privacy.forget(entity="Zoe").episodes) == 2
    assert [each.content for each in world.episodes.list()] == ["zoe? Zoella!"]


def test_forget_raises_for_ambiguous_name_and_accepts_id(world, database):
    world.add("I know Bob.", speaker="Ann", at="2024-01-01")
    other = world.add("I know Robert.", speaker="Ann", at="2024-01-02")
    named = "MATCH (n:Entity {name: 'Robert'}), (a:Alias {key: $key}) MERGE (a)-[:NAMES]->(n) SET n.aliases = ['Bob']"
    database.query(graph_key(world.namespace), named, {"key": alias_key("Bob")}, write=True)
    with pytest.raises(InputError, match="name of several entities"):
        world.privacy.forget(entity="Bob")
    [id_] = [each.id for each in world.entities.list() if each.name == "Robert"]
    assert world.privacy.forget(entity=id_).episodes == (other.episode,)
    assert [each.content for each in world.episodes.list()] == ["I know Bob."]


def test_forget_everything_deletes_graph_and_checkpoints(verbs, memory, namespace):
    added = verbs.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", thread="t")
    look = verbs.privacy.forget(everything=True, dry_run=True)
    assert (look.episodes, len(look.facts), len(look.entities)) == ((added.episode,), 1, 2)
    saver = InMemorySaver()
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, _checkpoint(), {}, {})
    done = verbs.privacy.forget(everything=True, checkpointer=saver)
    assert (done.kind, done.episodes, done.checkpoints) == ("everything", (added.episode,), ("t",))
    assert namespace not in memory.data.namespaces()
    assert list(saver.list(None)) == []
    assert len(memory.driver.embedder.vectors._values) == 0
    with pytest.raises(InputError, match="forgotten"):
        verbs.privacy.forget(everything=True)
    assert verbs.add("I moved to Oslo.", speaker="Ann", at="2024-01-01", thread="t").episode == added.episode
    assert len(verbs.facts.about("Ann")) == 1


def _checkpoint() -> Any:
    return {"v": 1, "id": "1", "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}
