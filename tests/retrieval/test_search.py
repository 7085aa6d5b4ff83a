"""The search step, driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kg_memory.errors import InputError
from kg_memory.falkor.queries import search as cypher
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.graph import STEPS
from kg_memory.retrieval.recipe import RECIPES
from kg_memory.retrieval.search import DEEPEST, DEPTH, LONGEST_QUESTION, MOST_TERMS, search
from kg_memory.runtime.effects import Embed, EmbeddingModel, Now, Query, Reads
from kg_memory.text.identity import alias_key
from tests.retrieval.conftest import Talk
from tests.retrieval.findings import take

NOW = 1_700_000_000_000_000
WORD_STATISTICS = [
    {
        "unread": False,
        "labels": {"Fact": 5, "Entity": 4, "Community": 1, "Episode": 3},
        "lengths": dict.fromkeys(KINDS, 10.0),
        "often": {kind: [["oslo", 1]] for kind in KINDS},
        "named": [],
        "parts": [],
    }
]
LIVES = "Where does Ann live?"
BEGINNINGS = {"WORD_STATISTICS": cypher.WORD_STATISTICS.partition("CALL {")[0]}
"""How a query begins that differs by the kinds that it is about."""


class Database:
    """Answers queries by rows given for them, else by none, and keeps what was asked of it."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self.answers = {BEGINNINGS.get(name, getattr(cypher, name)): rows for name, rows in answers.items()}
        self.trips: list[tuple[Query, ...]] = []
        self.embedded: list[Embed] = []

    def __call__(self, effect: Any) -> Any:
        if isinstance(effect, Embed):
            self.embedded.append(effect)
            return [[1.0] for _ in effect.texts]
        if isinstance(effect, Now):
            return NOW
        if isinstance(effect, EmbeddingModel):
            return "fixed"
        queries = effect.queries if isinstance(effect, Reads) else (effect,)
        self.trips.append(queries)
        rows = [(query.make or list)(self.rows(query)) for query in queries]
        return rows if isinstance(effect, Reads) else rows[0]

    def rows(self, query: Query) -> list[dict[str, Any]]:
        """Return what is answered to *query*."""
        return next((rows for beginning, rows in self.answers.items() if query.cypher.startswith(beginning)), [])

    @property
    def queries(self) -> list[Query]:
        return [query for trip in self.trips for query in trip]

    def searches(self) -> list[Query]:
        """Return the queries that search by words or by meaning."""
        return [query for query in self.queries if query.params.keys() & {"examined", "compared"}]


def asked(question: Any, database: Database, **given: Any) -> dict[str, Any]:
    return take(search, {"question": question, **given}, database)


def full() -> Database:
    return Database(WORD_STATISTICS=WORD_STATISTICS)


@pytest.mark.parametrize("question", ["", "?!", "\ud800\x00"])
def test_a_question_without_letters_costs_no_query_and_no_embedding(question: Any) -> None:
    database = full()
    assert asked(question, database)["relevance"] == 0.0
    assert database.queries == database.embedded == []


def test_a_question_is_embedded_once_as_a_question() -> None:
    database = full()
    asked(LIVES, database)
    assert database.embedded == [Embed((LIVES,), role="query")]


def test_where_nothing_was_ever_stored_nothing_is_embedded_and_one_round_trip_tells() -> None:
    database = Database()
    state = asked(LIVES, database, center="Ann", thread="t", where={"name": "Ann"})
    assert state["hits"] == {kind: {"words": [], "meaning": [], "graph": []} for kind in KINDS}
    assert (state["named"], state["relevance"]) == ([], 0.0)
    assert database.embedded == []
    assert len(database.trips) == 1


def test_a_recipe_without_meaning_embeds_nothing_and_one_without_words_looks_for_none() -> None:
    words, meaning = full(), full()
    asked(LIVES, words, recipe=RECIPES["words"].with_(kinds=KINDS))
    asked(LIVES, meaning, recipe=RECIPES["meaning"].with_(kinds=KINDS))
    assert words.embedded == []
    assert len(words.searches()) == len(meaning.searches()) == len(KINDS)
    assert all("vector" not in query.params for query in words.searches())
    assert all("terms" not in query.params for query in meaning.searches())


def test_only_the_kinds_of_the_recipe_are_searched() -> None:
    database = full()
    asked(LIVES, database, recipe={"kinds": ["facts"]})
    [search] = database.searches()
    assert "(d:Fact)" in search.cypher
    assert not any(label in search.cypher for label in ("Entity", "Community", "Episode"))


def test_words_and_meaning_of_all_kinds_take_one_round_trip() -> None:
    """Word and vector search of all kinds of items take one round trip.

    Features: A34, D27.
    """
    database = full()
    asked("Oslo", database, recipe="overview")
    searching = [trip for trip in database.trips if any("compared" in query.params for query in trip)]
    assert [len(trip) for trip in searching] == [len(KINDS) + 1], "and how far apart episodes are"


def test_a_default_search_asks_twelve_queries_in_four_round_trips(story: Talk) -> None:
    trips: list[Any] = []

    def perform(effect: Any) -> Any:
        if isinstance(effect, Query | Reads):
            trips.append(effect.queries if isinstance(effect, Reads) else (effect,))
        return story.driver.run(once(effect), story.namespace)

    state: dict[str, Any] = {"question": "Where does Ann live?", "max_tokens": 0}
    for step in STEPS:
        state |= take(step, state, perform)
    assert state["results"]["facts"][0]["sentence"] == "Ann lives in Oslo"
    assert [len(trip) for trip in trips] == [2, 4, 3, 3]


def once(effect: Any) -> Any:
    return (yield effect)


def test_a_very_long_question_is_cut() -> None:
    database = full()
    asked(" ".join(f"word{number}" for number in range(10_000)), database)
    [embedded] = database.embedded
    assert len(embedded.texts[0]) == LONGEST_QUESTION
    assert all(len(each.params.get("terms", ())) <= MOST_TERMS for each in database.queries)


@pytest.mark.parametrize(("limit", "wanted"), [(None, DEPTH["facts"]), (5, 60), (200, 200), (10**30, DEEPEST)])
def test_as_many_are_looked_for_as_are_to_be_served_within_bounds(limit: int | None, wanted: int) -> None:
    database = full()
    asked("Oslo", database, limit=limit, recipe="facts")
    assert {query.params["limit"] for query in database.searches()} == {wanted}


def test_named_entities_are_told_and_make_the_center_known() -> None:
    row = {"id": "ann", "keys": [alias_key("Ann")], "mentions": 2, "type": "Person"}
    database = Database(WORD_STATISTICS=[{**WORD_STATISTICS[0], "named": [row]}])
    assert asked("Oslo?", database, center="ANN")["named"] == ["ann"]
    [looked_up] = [query for query in database.queries if "keys" in query.params]
    assert looked_up.params["keys"][-1] == alias_key("Ann")


def test_a_center_that_nothing_is_called_is_refused() -> None:
    with pytest.raises(InputError, match=r"center must be the name of an entity, got 'Nobody'"):
        asked(LIVES, full(), center="Nobody")


def test_nothing_is_ever_written() -> None:
    database = full()
    asked("Where in Oslo does Ann live?", database, thread="t", where={"$not": {"speaker": "Ann"}})
    assert database.searches()
    assert not any(each.write for each in database.queries)


def test_words_find_an_episode_while_none_is_embedded(memory, namespace):
    memory.episodes.save([{"content": "I moved to Oslo.", "speaker": "Ann"}], namespace=namespace)
    for recipe in ("default", "words"):
        found = memory.search("Oslo", namespace=namespace, recipe=recipe)
        assert [each.content for each in found.episodes] == ["I moved to Oslo."]
