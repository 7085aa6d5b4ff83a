"""Built queries of retrieval start at an index and return no embedding: on a real FalkorDB."""

import re
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.queries import episodes, features, search
from kg_memory.falkor.queries.filters import COUNT_CANDIDATES, filter_step, start_step
from kg_memory.models.filters import parse_filter
from kg_memory.models.graph import KINDS, Kind
from kg_memory.text.identity import alias_key
from tests.retrieval.conftest import DIMENSION, Talk

PARAMETERS: dict[str, Any] = {
    "ids": ["1"], "keys": ["1"], "terms": [{"term": "ann", "idf": 1.0}], "leading": [{"term": "ann", "idf": 1.0}],
    "rare": ["ann"], "pairs": [["ann", "oslo"]], "entities": ["1"], "thread_key": "1",
    "since": 1, "until": 2, "believed_at": 1, "unreviewed": False, "facts": ["1"], "episodes": ["1"],
    "subjects": ["1"], "predicate": "LIVES_IN", "object": "1", "limit": 5, "depth": 5, "most": 5, "sources": 5,
    "base": 0.5, "length": 0.01, "weights": {"ann": 1.0}, "examined": 20, "looked": 20, "hub": 5, "share": 0.3, "gap": 1,
    "vector": [0.1] * DIMENSION, "sample": 5, "compared": 20, "neighbours": 5, "around": 1, "things": ["1"], "nearest": ["1"],
    **{f"{name}{hop}": 5 for name in ("limit", "depth") for hop in (1, 2, 3)},
}  # fmt: skip
BUILT = {
    "SPREAD": features.SPREAD,
    "EPISODES_WITH_REMARKS": episodes.EPISODES_WITH_REMARKS,
    "NAMES": search.word_statistics((), names=True),
    "WALK": features.walk(3),
    "FACTS_WITH_LINKS": features.facts_with_links(things=True),
    "EPISODE_DETAILS": features.episode_details(mentions=True, nearness=True),
    "JOINED": search.join_searches(
        search.bm25("facts", search.find_by_rare_words("facts"), ""), search.vector_search("facts", "")
    ),
}
FILTERS = {
    "plain": None,
    "of a thread": {"thread": "t", "speaker": "Ann"},
    "of a name": {"name": "Ann", "predicate": "P", "valid_at": {"$gt": "2020-01-01"}},
    "without a start": {"$or": [{"type": "A", "trust": {"$gte": 0.5}}, {"$not": {"source": "web"}}]},
}
NAMES = {alias_key("Ann"): ["1"]}


def made(kinds: Iterable[Kind], *, doubtful: bool) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every form of built query with the parameters of its filter."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for kind, (name, given) in product(kinds, FILTERS.items()):
        where = parse_filter(given)
        believed = search.belief_step(kind, unreviewed=doubtful)
        first = where and start_step(where, kind, NAMES)
        if first:
            start, params = first.cypher, dict(first.params)
            found[f"{kind} by words, few {name}"] = search.bm25_among(kind, start, believed), params
            found[f"{kind} by exact meaning, few {name}"] = (search.exact_vector_search(kind, believed, start), params)
            found[f"{kind} counted, {name}"] = start + COUNT_CANDIDATES, params
        by_words = filter_step(where, kind, NAMES) if where else None
        by_meaning = filter_step(where, kind, NAMES, search.CARRIED) if where else None
        words, word_params = (by_words.cypher, dict(by_words.params)) if by_words else ("", {})
        meaning, meaning_params = (by_meaning.cypher, dict(by_meaning.params)) if by_meaning else ("", {})
        for looked_at in (search.find_by_rare_words(kind), search.find_by_most_words(kind, tied=True)):
            query = search.bm25(kind, looked_at, words + believed)
            found[f"{kind} by words, {'rare' if 'rare' in looked_at else 'most'}, {name}"] = query, word_params
        found[f"{kind} by meaning, {name}"] = search.vector_search(kind, meaning + believed), meaning_params
        query = search.exact_vector_search(kind, meaning + believed)
        found[f"{kind} by exact meaning, {name}"] = query, meaning_params
        found[f"{kind} among, {name}"] = search.filter_ids(kind, words), word_params
    return found


DOUBTFUL = {f"doubtful {name}": each for name, each in made(("facts",), doubtful=True).items()}
MADE = made(KINDS, doubtful=False) | DOUBTFUL


def plan_of(story: Talk, cypher: str, **params: Any) -> str:
    return story.driver.store.database.explain(graph_key(story.namespace), cypher, PARAMETERS | params)  # type: ignore[attr-defined,no-any-return]


def rows(story: Talk, cypher: str, **params: Any) -> list[dict[str, Any]]:
    key = graph_key(story.namespace)
    return story.driver.store.database.query(key, cypher, PARAMETERS | params, write=False)  # type: ignore[attr-defined,no-any-return]


def has_embedding(found: list[dict[str, Any]]) -> bool:
    return any(
        "embedding" in str(row) or any(isinstance(value, list) and len(value) == DIMENSION for value in row.values())
        for row in found
    )


@pytest.mark.parametrize("name", sorted(BUILT))
def test_query_starts_at_index_and_returns_no_embedding(story, name):
    plan = plan_of(story, BUILT[name])
    assert "Node By Index Scan" in plan
    assert not re.search("Label Scan|All Node Scan", plan)
    ids = {
        "FACTS": "MATCH (n:Fact) RETURN collect(n.id) AS ids",
        "EPISO": "MATCH (n:Episode) RETURN collect(n.id) AS ids",
    }.get(name[:5], "MATCH (n:Entity) RETURN collect(n.id) AS ids")
    [known] = rows(story, ids)
    assert not has_embedding(rows(story, BUILT[name], **known))


@pytest.mark.parametrize("name", sorted(MADE))
def test_built_query_has_the_expected_plan(story, name):
    cypher, params = MADE[name]
    plan = plan_of(story, cypher, **params)
    assert "All Node Scan" not in plan, plan
    if "by exact meaning" in name and "few" not in name:  # for a kind with few items, or if no index helps
        assert plan.count("Label Scan") == 1, plan
    elif "by meaning" in name:
        assert plan.count("ProcedureCall") == 1, plan
        assert not re.search("Label Scan|Index Scan", plan), plan
    else:
        assert "Node By Index Scan" in plan, plan
        assert "Label Scan" not in plan, plan


def test_built_query_returns_only_ids_and_scores(story):
    now = {"since": 1_750_000_000_000_000, "until": 1_750_000_000_000_001, "believed_at": 10**16}
    for name, (cypher, params) in MADE.items():
        found = rows(story, cypher, **params, **now)
        assert all(row.keys() <= {"id", "score", "n"} for row in found), name
        assert not has_embedding(found), name
        if name.endswith("by meaning, plain") and not name.startswith("communities"):
            assert len(found) == PARAMETERS["limit"], name


def test_built_query_text_contains_no_values():
    assert not any(re.search("Ann|'t'|web|2020", cypher) for cypher, _ in MADE.values())
