"""The whole ingestion graph on a real database, with a model that answers by rules."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kg_memory.errors import InputError, ModelUnavailable
from kg_memory.ingestion.graph import build
from kg_memory.memory.entities import read_entities
from kg_memory.memory.episodes import read_episodes, read_stats
from kg_memory.memory.listing import facts_about
from kg_memory.settings import Settings
from tests import scripted
from tests.scripted import raising

Rows = Callable[..., list[dict[str, Any]]]


def test_add_creates_episode_entities_and_sourced_fact(add, look):
    """Features: A1."""
    given = {"thread": "t", "source": "chat", "source_id": "m1"}
    added = add("I have moved to Oslo, 你好 🎉!", "2024-05-01T10:00:00+02:00", **given)
    assert added["new"]
    assert added["done"]
    [fact] = look(facts_about("Ann", 10))
    assert (fact.subject, fact.predicate, fact.objects) == ("Ann", "LIVES_IN", ("Oslo",))
    assert fact.valid_at == datetime(2024, 5, 1, 8, tzinfo=UTC)
    assert fact.invalid_at is fact.expired_at is None
    [source] = fact.sources
    assert (source.quote, source.speaker, source.at) == ("Oslo", "Ann", fact.valid_at)
    [episode] = look(read_episodes(10, 0, None))
    assert (episode.id, episode.status) == (source.episode, "done")
    assert episode.content[source.start : source.end] == "Oslo"
    assert (episode.thread, episode.source, episode.source_id) == ("t", "chat", "m1")
    entities = {each.name: each for each in look(read_entities(10, 0))}
    assert {name: each.type for name, each in entities.items()} == {"Ann": "Person", "Oslo": "Place"}
    assert entities["Ann"].summary == "Ann lives in Oslo (since 2024-05-01)."


def test_quote_is_exact_after_astral_plane_characters(add, look):
    add("🎉🎉 𝔘 奥斯陆 and e\u0301 then Oslo", "2024-05-01")
    quotes = {fact.objects[0]: fact.sources[0].quote for fact in look(facts_about("Ann", 10))}
    assert quotes == {"Oslo": "Oslo", "奥斯陆": "奥斯陆"}


def test_repeated_message_is_one_episode(add, look, model):
    first, *again = [add("I live in Oslo.") for _ in range(3)]
    assert [first["new"], *(each["new"] for each in again)] == [True, False, False]
    assert {each["episode"]["id"] for each in again} == {first["episode"]["id"]}
    assert (look(read_stats()).episodes, look(read_stats()).facts) == (1, 1)
    assert len(model.asks("facts")) == 1


def test_same_words_at_other_time_add_a_source_to_the_fact(add, look):
    add("I live in Oslo.", "2024-01-01")
    add("I live in Oslo.", "2024-02-01")
    assert look(read_stats()).episodes == 2
    [fact] = look(facts_about("Ann", 10))
    assert f"{fact.valid_at:%F}" == "2024-01-01"
    assert [f"{each.at:%F}" for each in sorted(fact.sources, key=lambda each: each.at)] == ["2024-01-01", "2024-02-01"]


def test_source_id_with_other_content_is_refused(add, look):
    add("I live in Oslo.", source_id="m1")
    with pytest.raises(InputError, match="m1"):
        add("I live in Paris.", source_id="m1")
    assert [each.content for each in look(read_episodes(10, 0, None))] == ["I live in Oslo."]


def links(rows: Rows) -> list[tuple[str, str]]:
    """Return the contents of each two messages that follow each other."""
    found = rows("MATCH (a:Episode)-[:NEXT]->(b:Episode) RETURN a.content AS a, b.content AS b")
    return sorted((each["a"], each["b"]) for each in found)


def test_late_message_is_linked_by_its_time(add, rows):
    for content, at in (("one", "2024-01-01"), ("three", "2024-01-03"), ("four", "2024-01-04"), ("two", "2024-01-02")):
        add(content, at, thread="t")
    add("zero", "2023-12-31", thread="t")
    add("elsewhere", "2024-01-02", thread="other")
    assert links(rows) == [("one", "two"), ("three", "four"), ("two", "three"), ("zero", "one")]


def test_messages_of_one_time_form_one_chain_under_clock_skew(add, rows, driver, monkeypatch):
    add("one", "2024-01-01", thread="t")
    add("four", "2024-01-03", thread="t")
    clock = driver.clock
    monkeypatch.setattr(driver, "clock", lambda: clock() - 60_000_000)
    add("three", "2024-01-03", thread="t")
    add("two", "2024-01-02", thread="t")
    assert links(rows) == [("one", "two"), ("three", "four"), ("two", "three")]


def test_extract_prompt_has_previous_messages_oldest_first(add, model, settings):
    """Features: A14."""
    for hour in range(6):
        add(f"message {hour}", f"2024-01-01T0{hour}:00", thread="t")
    add("elsewhere", "2024-01-01T07:00", thread="other")
    told = [each["content"] for each in model.asks("extract_message")[5]["previous"]]
    assert told == [f"message {hour}" for hour in range(1, 5)]
    assert len(told) == settings.previous_messages
    assert model.asks("extract_message")[6]["previous"] == []


def postings(rows: Rows, term: str) -> dict[str, int]:
    query = "MATCH (:Term {s: $term})-[p:IN_EPISODE]->(e:Episode) RETURN e.content AS e, coalesce(p.f, 1) AS f"
    found = rows(query, term=term)
    return {each["e"]: each["f"] for each in found}


def test_episode_is_indexed_by_neighbours_words_at_less_weight(add, rows):
    for minute, content in enumerate(("apple", "berry", "cherry", "damson")):
        add(content, f"2024-01-01T00:0{minute}", thread="t")
    add("elder", "2024-01-01T00:05", thread="other")
    add("fig", "2024-01-02T00:00", thread="t")
    assert postings(rows, "appl") == {"apple": 4, "berry": 2, "cherry": 1}
    assert postings(rows, "cherri") == {"apple": 1, "berry": 2, "cherry": 4, "damson": 2}
    assert postings(rows, "elder") == {"elder": 4}
    assert postings(rows, "fig") == {"fig": 4}


def test_postings_of_facts_and_entities_add_up_to_their_lengths(add, rows):
    """The word counts of each fact and entity add up to its stored length.

    Features: A41.
    """
    add("I live in Oslo with Bob.", "2024-01-01")
    add("I live in Paris with Bob.", "2024-02-01")
    for relation, label in (("IN_FACT", "Fact"), ("IN_ENTITY", "Entity")):
        total = "RETURN d.id AS id, d.n AS n, sum(coalesce(p.f, 1)) AS total"
        sums = rows(f"MATCH (:Term)-[p:{relation}]->(d:{label}) {total}")
        assert len(sums) == 3 + (1 if label == "Entity" else 0)
        assert all(each["n"] == each["total"] for each in sums)


unavailable = raising(ModelUnavailable("the model is down: try again later"))


def test_retry_reads_the_episode_as_first_stored(add, look, model):
    rule, model.rules["facts"] = model.rules["facts"], unavailable
    with pytest.raises(ModelUnavailable):
        add("I live in Oslo.", "2020-01-01", source_id="m1", thread="a")
    model.rules["facts"] = rule
    assert not add("I live in Oslo.", None, source_id="m1", speaker="Bob", thread="b")["new"]
    [fact] = look(facts_about("Oslo", 10))
    assert (fact.subject, fact.valid_at) == ("Ann", datetime(2020, 1, 1, tzinfo=UTC))
    assert (fact.sources[0].speaker, fact.sources[0].at) == ("Ann", fact.valid_at)


def test_a_json_record_is_read_with_its_own_prompt(add, look, model):
    """Features: A13."""
    content = '{"customer": "Carol", "city": "Oslo"}'
    add(content, kind="json", speaker=None)
    assert len(model.asks("extract_json")) == 1
    assert "previous" not in model.asks("extract_json")[0]
    [fact] = look(facts_about("Carol", 10))
    assert fact.sources[0].quote == "Oslo"
    [episode] = look(read_episodes(10, 0, None))
    assert (episode.kind, episode.content, episode.speaker) == ("json", content, None)


def test_long_text_is_read_in_pieces_with_quotes_of_the_whole(driver, namespace, look, model):
    graph = build(driver, Settings(merge_threshold=0.98, ask_threshold=0.6, chunk_size=200, plan="thorough")).compile()
    filler = "nothing of note happened on that day. " * 20
    content = f"Ann came.\n\n{filler}\n\nShe went to Oslo. {filler} She met Bob in Paris."
    done = graph.invoke({"content": content, "kind": "text", "at": "2024-01-01", "namespace": namespace})
    assert "".join(piece["content"] for piece in done["pieces"]) == content
    assert len(model.asks("extract_text")) == len(done["pieces"]) > 5
    assert {fact["sentence"] for fact in done["facts"]} >= {"Ann lives in Oslo", "Ann lives in Paris", "Ann knows Bob"}
    for fact in look(facts_about("Ann", 20)):
        [source] = fact.sources
        assert source.quote == fact.objects[0] == content[source.start : source.end]


def test_old_fact_among_many_of_its_pair_is_matched(add, look, model, settings):
    def did(fields: Any) -> Any:
        return {"facts": [scripted.stated(0, "did", [1], fields["episode"]["content"], "Bob")]}

    model.rules["facts"] = did
    model.rules["judge"] = lambda _: {"verdicts": []}
    many = settings.candidates + 2
    for number in range(many):
        add(f"Bob and I did thing {number}", f"2024-01-{number + 1:02}")
    add("Bob and I did thing 0", "2024-02-01")
    facts = look(facts_about("Bob", 100))
    assert len({fact.id for fact in facts}) == len(facts) == many
    assert len(next(fact for fact in facts if fact.sentence.endswith("thing 0")).sources) == 2
