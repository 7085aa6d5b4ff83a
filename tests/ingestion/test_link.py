"""Step 11, link: similar names are linked if enabled, within limits; a failure does not affect the episode."""

import logging
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from kg_memory import GraphMemory
from kg_memory.contrib.embedded import Server
from kg_memory.contrib.variants.link import LINK_ENTITIES, NEAR_ENTITIES, link
from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.queries.facts import SIMILAR_TO
from kg_memory.ingestion.state import Draft, decode
from kg_memory.settings import Settings
from tests.ingestion.stepping import answered
from tests.meanwhile import around_queries
from tests.scripted import HashEmbeddings, Scripted

NAMES = ("Big Red Barn Door", "Big Red Barn Gate", "Blue Sea")
NEW = [{"name": "E", "type": "Entity", "id": f"e{number}"} for number in range(25)]


def reading(names: tuple[str, ...] = NAMES) -> Callable[[Any], Any]:
    """Return a rule that reads those of *names* that the message contains."""
    return lambda fields: {
        "entities": [{"name": each, "type": "Entity"} for each in names if each in fields["episode"]["content"]]
    }


@pytest.fixture
def linking(server: Server) -> Iterator[GraphMemory]:
    linked = Settings(note_linking=True, note_link_threshold=0.7, merge_threshold=1.0, ask_threshold=0.99)
    model = Scripted(extract_message=reading(), facts=lambda _: {"facts": []})
    with GraphMemory(linked.with_(url=server.url), model=model, embeddings=HashEmbeddings()) as memory:
        yield memory


def names(memory: GraphMemory, name: str, namespace: str) -> list[str]:
    return [each.name for each in memory.entities.similar(name, namespace=namespace)]


@pytest.mark.parametrize("at_once", [False, True])
def test_similar_names_get_one_link_with_their_similarity(linking, namespace, rows, at_once):
    """Entities with similar names get one link, with the similarity as its score.

    Features: C50.
    """
    if at_once:
        linking.add_many([f"{each}." for each in NAMES], namespace=namespace)
    else:
        for each in (*NAMES, NAMES[0]):
            linking.add(f"{each}.", namespace=namespace, source_id=each)
    assert names(linking, NAMES[0], namespace) == [NAMES[1]]
    [found] = linking.entities.similar(NAMES[1], namespace=namespace)
    assert (found.name, found.score) == (NAMES[0], 0.75)
    assert names(linking, NAMES[2], namespace) == []
    assert len(rows("MATCH ()-[s:SIMILAR_TO]->() RETURN s.similarity")) == 1


def test_links_are_deleted_with_entity_or_embedding(linking, namespace, rows):
    gone, _ = (linking.add(f"{each}.", namespace=namespace) for each in NAMES[:2])
    linking.data.reembed(namespace=namespace)
    assert names(linking, NAMES[0], namespace) == []
    third = "Big Red Barn Wall"
    linking.driver.model.rules["extract_message"] = reading((*NAMES, third))
    linking.add(f"{third}.", namespace=namespace)
    assert sorted(names(linking, third, namespace)) == list(NAMES[:2])
    linking.privacy.forget(episode=gone.episode, namespace=namespace)
    assert names(linking, third, namespace) == [NAMES[1]]
    linking.privacy.evict(orphans=True, expired_days=0, namespace=namespace)
    assert rows("MATCH ()-[s:SIMILAR_TO]->() RETURN s.similarity") == []


def test_episode_is_done_when_linking_fails(linking, namespace, monkeypatch, caplog):
    def refuse(text):
        if text == NEAR_ENTITIES:
            raise DatabaseUnavailable("no")

    around_queries(monkeypatch, linking, before=refuse)
    given = {"content": f"{NAMES[0]}.", "namespace": namespace}
    with caplog.at_level(logging.WARNING):
        news = list(linking.graphs.ingestion.stream(given, stream_mode="custom"))
    assert (news[-1]["step"], news[-1]["linked"], news[-1]["unlinked"]) == ("link", 0, 1)
    assert "1 entities were not linked" in caplog.text
    [episode] = linking.episodes.list(namespace=namespace)
    assert episode.status == "done"


def test_link_stops_at_its_time_limit(caplog):
    ticks = count(0.0, 2.0)
    found = [{"one": "e1", "other": "e0", "similarity": 0.9}, {"one": "e0", "other": "e1", "similarity": 0.9}]
    flow = link(Draft.of(decode({"entities": NEW})), Settings(), lambda: next(ticks))
    update, effects = answered(flow, found, [{"n": 1}], [])
    assert update == {"linked": 1, "unlinked": 5}
    assert [len(each.params["ids"]) for each in effects if each.cypher == NEAR_ENTITIES] == [10, 10]
    assert effects[1].params["links"] == [{"one": "e0", "other": "e1", "similarity": 0.9}]
    assert "raise note_link_seconds" in caplog.text


def test_link_step_is_absent_when_disabled(memory, namespace, monkeypatch):
    assert "link" not in memory.graphs.ingestion.get_graph().nodes
    memory.add("I know Eve.", speaker="Ann", namespace=namespace)
    texts: list[str] = []
    around_queries(monkeypatch, memory, before=texts.append)
    memory.add("I know Bob.", speaker="Ann", namespace=namespace)
    assert texts
    assert not set(texts) & {NEAR_ENTITIES, LINK_ENTITIES}


def test_link_queries_use_an_index(linking, namespace):
    linking.add(f"{NAMES[0]}.", namespace=namespace)
    [entity] = linking.entities.list(namespace=namespace)
    asked = {
        NEAR_ENTITIES: {"ids": [entity.id], "limit": 2, "threshold": 0.5},
        LINK_ENTITIES: {"links": [{"one": entity.id, "other": entity.id, "similarity": 1.0}]},
        SIMILAR_TO: {"alias": "a", "limit": 1},
    }
    for query, params in asked.items():
        plan = linking._database.explain(graph_key(namespace), query, params)
        assert "Node By Index Scan" in plan, plan
        assert "Label Scan" not in plan, plan
