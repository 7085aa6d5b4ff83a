"""The retrieval graph on a real FalkorDB."""

import json
from typing import Any

from kg_memory.models.results import SearchResults


def sentences(state: dict[str, Any]) -> list[str]:
    return [each["sentence"] for each in state["results"]["facts"]]


def test_search_finds_facts_entities_and_episodes(story):
    found = SearchResults.model_validate(story.ask("Where does Ann live?")["results"])
    assert found.facts[0].sentence == "Ann lives in Oslo"
    assert found.facts[0].objects == ("Oslo",)
    assert found.entities[0].name == "Ann"
    assert "I moved to Oslo" in " ".join(each.content for each in found.episodes[:3])
    assert [each.score for each in found.episodes] == sorted((each.score for each in found.episodes), reverse=True)
    assert all(0 < (each.score or 0) <= 1 for each in (*found.facts, *found.entities, *found.episodes))


def test_search_finds_episode_by_its_neighbours(story):
    episodes = [each["content"] for each in story.ask("How is the weather in Oslo?")["results"]["episodes"]]
    assert "Rainy, but I like it." in episodes[:3]


def test_search_finds_fact_two_hops_away(story):
    hits = story.ask("What does the sister of Ann do?")["hits"]["facts"]["graph"]
    [works] = [each["id"] for each in story.ask("Mia Acme")["results"]["facts"] if "Acme" in each["sentence"]]
    assert works in [name for name, _ in hits]


def test_a_chinese_question_finds_a_chinese_line(story):
    found = story.ask("谁住在北京？")["results"]
    assert found["episodes"][0]["content"] == "我搬到了北京。"
    assert found["facts"][0]["objects"] == ["北京"]


def test_a_speaker_called_will_is_found(story):
    found = story.ask("What is the name of Will's cat?")["results"]
    assert found["facts"][0]["sentence"] == "Will has a cat called Milo"
    assert "Will" in [each["name"] for each in found["entities"][:2]]


def test_search_ranks_episodes_of_named_speaker_first(talk):
    talk.tell("Bob", "The mountains are lovely", "2024-01-01T10:00:00Z", "one")
    talk.tell("Ann", "The mountains are lovely", "2024-01-02T10:00:00Z", "two")
    found = talk.ask("Who did Ann say the mountains are?")["results"]["episodes"]
    assert [each["speaker"] for each in found] == ["Ann", "Bob"]


def test_search_finds_communities_by_members_and_names(talk):
    talk.tell("Ann", "I live in Bergen")
    query = """
    MATCH (e:Entity {name: 'Ann'})
    CREATE (:Community {id: 'c1', name: 'People of the fjord', summary: 'They like rain.', n: 3})-[:HAS_MEMBER]->(e)
    """
    talk.driver.store.database.query(f"kg:{talk.namespace}", query, {}, write=True)
    assert talk.ask("What about Ann?")["results"]["communities"] == []
    state = talk.ask("What about Ann?", recipe="overview")
    assert [each["name"] for each in state["results"]["communities"]] == ["People of the fjord"]
    assert "They like rain." in state["context"]
    then = talk.ask("What about Ann?", as_of="2023-01-01", recipe="overview")
    assert [each["summary"] for each in then["results"]["communities"]] == [""]  # a summary tells what is true now
    assert "They like rain." not in then["context"]


def test_search_treats_null_as_omitted(story):
    nothing = dict.fromkeys(("limit", "max_tokens", "as_of", "believed_at", "thread"))
    assert story.ask("Where does Ann live?", **nothing)["context"] == story.ask("Where does Ann live?")["context"]


def test_state_of_search_is_json_without_vectors(story):
    text = json.dumps(story.ask("Where does Ann live?"))
    assert "embedding" not in text
    assert "vector" not in text
