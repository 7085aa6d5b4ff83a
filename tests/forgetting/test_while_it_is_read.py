"""What is forgotten during an ingestion does not come back."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from kg_memory.falkor.queries import episodes
from kg_memory.ingestion.graph import build
from tests.forgetting import once, residue
from tests.meanwhile import once_before


@pytest.mark.parametrize("step", ["extract_message", "facts"])
def test_episode_read_with_forgotten_context_is_read_again(verbs, world, rows, model, guessing, step):
    first = world.moves("Oslo", "2024-01-01")
    model.rules[step] = once(lambda: world.privacy.forget(episode=first.episode), model.rules[step])
    second = verbs.add("I like it there.", speaker="Ann", at="2024-01-01T00:01")
    assert (second.new, second.entities, second.facts) == (True, ("Ann",), ())
    assert residue(rows, "oslo", first.episode) == []
    assert rows("MATCH (e:Episode) RETURN e.status AS status") == [{"status": "done"}]


def test_reread_episode_has_its_first_time(world, model):
    first = world.moves("Oslo", "2024-01-01")
    model.rules["facts"] = once(lambda: world.privacy.forget(episode=first.episode), model.rules["facts"])
    second = world.add("I know Bob.", speaker="Ann")
    [episode] = world.episodes.list()
    assert (episode.id, second.new, second.facts) == (second.episode, True, ("Ann knows Bob",))
    assert episode.at == episode.created_at


def test_run_at_breakpoint_is_read_again_after_forget(world, rows, guessing):
    first = world.moves("Oslo", "2024-01-01")
    graph = build(world.memory.driver, world.memory.settings)
    run = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["save"])
    thread = {"configurable": {"thread_id": "1"}}
    given = {"content": "I like it there.", "speaker": "Ann", "at": "2024-01-01T00:01", "namespace": world.namespace}
    run.invoke(given, thread)
    world.privacy.forget(episode=first.episode)
    ended = [run.invoke(None, thread) for _ in range(2)][1]
    assert (ended["done"], ended["new"]) == (True, True)
    assert residue(rows, "oslo", first.episode) == []


def test_episode_saved_during_forget_gets_no_forgotten_words(world, rows, monkeypatch):
    first = world.add("zebulon here", speaker="Ann", at="2024-01-01")
    once_before(monkeypatch, world.memory, episodes.SAVE_EPISODE, lambda: world.privacy.forget(episode=first.episode))
    world.add("hello all", speaker="Ann", at="2024-01-01T00:01")
    assert residue(rows, "zebulon", first.episode) == []


def test_communities_summarised_during_forget_are_redone(world, rows, model):
    for friend in ("Bob", "Eve"):
        world.add(f"I know {friend}.", speaker="Ann", at="2024-01-01")
    gone = world.add("I know Zebulon.", speaker="Ann", at="2024-01-02")
    model.rules["community"] = once(lambda: world.privacy.forget(episode=gone.episode), model.rules["community"])
    done = world.communities.refresh()
    assert (done.communities, done.questions) == (1, 2)
    assert residue(rows, "zebulon", gone.episode) == []
    assert [set(each.members) for each in world.communities.list()] == [{"Ann", "Bob", "Eve"}]


def test_dry_run_changes_nothing(verbs, world, rows):
    world.moves("Oslo", "2024-01-01")
    told = world.moves("Paris", "2024-06-01", ", zebulon")
    world.moves("Paris", "2024-07-01")
    world.communities.refresh()
    everything = (
        "MATCH (n) RETURN id(n) AS id, labels(n) AS what, properties(n) AS held ORDER BY id",
        "MATCH (a)-[r]->(b) RETURN id(a) AS a, id(b) AS b, id(r) AS id, type(r) AS what, properties(r) AS held ORDER BY id",
    )
    before = [rows(query) for query in everything]
    [fact] = [each for each in world.facts.about("Ann") if "Paris" in each.objects]
    for asked in ({"episode": told.episode}, {"fact": fact.id}):
        assert verbs.privacy.forget(**asked, dry_run=True).dry_run
    assert [rows(query) for query in everything] == before
