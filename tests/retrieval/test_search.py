"""The step `search`, with effects that the test answers."""

from typing import Any

import pytest

from kg_memory.falkor.queries import search as cypher
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.recipe import RECIPES
from kg_memory.retrieval.search import DEEPEST, DEPTH, LONGEST_QUESTION, MOST_TERMS, search
from kg_memory.runtime.effects import Embed, EmbeddingModel, Now, Query, Reads
from kg_memory.text.identity import alias_key
from tests.retrieval.findings import take

NOW = 1_700_000_000_000_000
WORD_STATISTICS = [{
    "unread": False, "labels": {"Fact": 5, "Entity": 4, "Community": 1, "Episode": 3},
    "lengths": dict.fromkeys(KINDS, 10.0), "often": {kind: [["oslo", 1]] for kind in KINDS}, "named": [], "parts": [],
}]  # fmt: skip
LIVES = "Where does Ann live?"
BEGINNINGS = {"WORD_STATISTICS": cypher.WORD_STATISTICS.partition("CALL {")[0]}
"""The beginnings of queries that differ by kind."""


class Database:
    """Answers queries with the rows given for them or with none, and records them."""

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
        """Return the rows that answer *query*."""
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
def test_search_of_text_without_letters_runs_no_query(question):
    database = full()
    assert asked(question, database)["relevance"] == 0.0
    assert database.queries == database.embedded == []


def test_search_embeds_question_once_with_role_query():
    database = full()
    asked(LIVES, database)
    assert database.embedded == [Embed((LIVES,), role="query")]


def test_search_of_empty_namespace_takes_one_trip_no_embedding():
    database = Database()
    state = asked(LIVES, database, center="Ann", thread="t", where={"name": "Ann"})
    assert state["hits"] == {kind: {"words": [], "meaning": [], "graph": []} for kind in KINDS}
    assert (state["named"], state["relevance"]) == ([], 0.0)
    assert database.embedded == []
    assert len(database.trips) == 1


def test_search_runs_only_retrievers_of_recipe():
    words, meaning = full(), full()
    asked(LIVES, words, recipe=RECIPES["words"].with_(kinds=KINDS))
    asked(LIVES, meaning, recipe=RECIPES["meaning"].with_(kinds=KINDS))
    assert words.embedded == []
    assert len(words.searches()) == len(meaning.searches()) == len(KINDS)
    assert all("vector" not in query.params for query in words.searches())
    assert all("terms" not in query.params for query in meaning.searches())


def test_search_reads_only_kinds_of_recipe():
    database = full()
    asked(LIVES, database, recipe={"kinds": ["facts"]})
    [search] = database.searches()
    assert "(d:Fact)" in search.cypher
    assert not any(label in search.cypher for label in ("Entity", "Community", "Episode"))


def test_search_runs_words_and_vectors_in_one_round_trip():
    """Word and vector search of all kinds of items take one round trip.

    Features: A34, D27.
    """
    database = full()
    asked("Oslo", database, recipe="overview")
    searching = [trip for trip in database.trips if any("compared" in query.params for query in trip)]
    assert [len(trip) for trip in searching] == [len(KINDS) + 1], "and how far apart episodes are"


def test_search_cuts_very_long_question():
    database = full()
    asked(" ".join(f"word{number}" for number in range(10_000)), database)
    [embedded] = database.embedded
    assert len(embedded.texts[0]) == LONGEST_QUESTION
    assert all(len(each.params.get("terms", ())) <= MOST_TERMS for each in database.queries)


@pytest.mark.parametrize(("limit", "wanted"), [(None, DEPTH["facts"]), (5, 60), (200, 200), (10**30, DEEPEST)])
def test_search_depth_grows_with_limit_within_bounds(limit, wanted):
    database = full()
    asked("Oslo", database, limit=limit, recipe="facts")
    assert {query.params["limit"] for query in database.searches()} == {wanted}


def test_search_returns_named_entities_and_finds_center():
    row = {"id": "ann", "keys": [alias_key("Ann")], "mentions": 2, "type": "Person"}
    database = Database(WORD_STATISTICS=[{**WORD_STATISTICS[0], "named": [row]}])
    assert asked("Oslo?", database, center="ANN")["named"] == ["ann"]
    [looked_up] = [query for query in database.queries if "keys" in query.params]
    assert looked_up.params["keys"][-1] == alias_key("Ann")


def test_search_never_writes():
    database = full()
    asked("Where in Oslo does Ann live?", database, thread="t", where={"$not": {"speaker": "Ann"}})
    assert database.searches()
    assert not any(each.write for each in database.queries)
