"""Similarities of candidates, which a real FalkorDB computes."""

import math
from typing import Any

import pytest

from kg_memory.contrib.variants.zep import ByDiversity, mmr
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.ranking import Instants, QuestionView
from kg_memory.retrieval.rerank import SIMILARITIES, Table, features_of, read_features_of_best
from kg_memory.runtime.effects import fetch, write
from kg_memory.runtime.flow import Flow
from tests.retrieval.conftest import Talk, WordVectors


def cosine(one: str, other: str) -> float:
    return sum(map(math.prod, zip(*WordVectors().embed_documents([one, other]), strict=True)))


def diversified(rankings: Any, by: ByDiversity) -> Flow[Any]:
    """Read the similarities, and rerank each kind."""
    question = QuestionView("?", Instants(0, 1, 0, unreviewed=False))
    table: Table = {}
    yield from read_features_of_best(table, rankings, by, question)
    return {
        kind: by.rerank(ranking, features_of(table, kind), question) for kind, ranking in rankings.items() if ranking
    }


def facts(talk: Talk) -> dict[str, str]:
    rows = talk.driver.run(fetch("MATCH (f:Fact) RETURN f.id AS id, f.sentence AS sentence"), talk.namespace)
    return {row["id"]: row["sentence"] for row in rows}


def test_diversity_orders_by_real_similarities(story):
    said = facts(story)
    ranking = [(id_, 1 - place / 10) for place, id_ in enumerate(sorted(said, key=said.__getitem__))]
    pairs = {one: {other: cosine(said[one], said[other]) for other in said if one != other} for one in said}
    found = story.driver.run(diversified({"facts": ranking, "entities": []}, ByDiversity(balance=0.3)), story.namespace)
    expected = mmr(ranking, pairs, 0.3)
    assert found == {"facts": [(id_, pytest.approx(score, abs=1e-4)) for id_, score in expected]}
    assert [id_ for id_, _ in expected] != [id_ for id_, _ in ranking]


def test_diversity_skips_missing_vectors_and_compares_only_best(talk):
    talk.tell("Mia", "Mia works at Acme.")
    talk.driver.run(write("UNWIND ['x', 'y'] AS id CREATE (:Fact {id: id, sentence: id})"), talk.namespace)
    [worded] = [id_ for id_ in facts(talk) if len(id_) > 1]
    ranking = [("x", 0.9), (worded, 0.8), ("y", 0.7), ("gone", 0.6)]
    found = talk.driver.run(diversified({"facts": ranking}, ByDiversity(depth=3)), talk.namespace)["facts"]
    assert [id_ for id_, _ in found] == ["x", worded, "y", "gone"]
    assert found[3] == ("gone", pytest.approx(0.006))


@pytest.mark.parametrize("kind", KINDS)
def test_similarity_queries_return_no_vector(story, kind):
    ids = [
        row["id"]
        for row in story.driver.run(fetch("MATCH (d) WHERE d.id IS NOT NULL RETURN d.id AS id"), story.namespace)
    ]
    rows = story.driver.run(fetch(SIMILARITIES[kind], ids=ids), story.namespace)  # type: ignore[index]
    assert [len(row["alike"].split()) for row in rows] == list(range(len(rows) - 1, -1, -1))
    assert all(set(row) == {"id", "alike"} for row in rows)
