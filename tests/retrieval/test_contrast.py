"""Contrast: the vector of a question without the direction that all episodes of a namespace share."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.retrieval.question import without_names
from kg_memory.retrieval.retrievers import DIRECTIONS, LEAST, USUAL, fit_contrast, sharpen
from kg_memory.runtime.effects import Embed, EmbeddingModel, Query
from kg_memory.runtime.flow import run
from kg_memory.text.identity import alias_key
from tests.retrieval.many import QUESTION

LENGTH = 24


def vectors_of(count: int, seed: int = 1) -> list[list[float]]:
    """Return unit vectors that share their first direction, and vary most along the second."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        vector = [3.0, chance.gauss(0, 2), *(chance.gauss(0, 0.3) for _ in range(LENGTH - 2))]
        size = sum(number**2 for number in vector) ** 0.5
        made.append([number / size for number in vector])
    return made


def rows_of(vectors: list[list[float]]) -> list[dict[str, Any]]:
    return [{"vector": vector} for vector in vectors]


def answering(vectors: list[list[float]], asked: list[Any]) -> Any:
    """Answer effects like a driver without a cache. Each embedding is the direction that all episodes share."""

    def answer(effect: Any) -> Any:
        asked.append(effect)
        match effect:
            case EmbeddingModel():
                return "model"
            case Embed():
                return [[1.0] + [0.0] * (LENGTH - 1) for _ in effect.texts]
            case Query(make=make):
                assert make is not None
                return make(rows_of(vectors))

    return answer


def test_sharpen_removes_shared_direction_of_episodes():
    vectors = vectors_of(200)
    meant = [0.0] * (LENGTH - 1) + [1.0]
    question = [0.9, 0.4, *([0.0] * (LENGTH - 3)), 0.15]
    sharp = run(sharpen(question, len(vectors)), answering(vectors, []))

    def nearness(vector: list[float]) -> float:
        return sum(a * b for a, b in zip(vector, meant, strict=True))

    assert nearness(sharp) > 2 * nearness(question)
    assert sum(number**2 for number in sharp) == pytest.approx(1)


def test_sharpen_skips_small_namespace():
    asked: list[Any] = []
    question = [1.0] * LENGTH
    assert run(sharpen(question, LEAST - 1), answering([], asked)) == question
    assert asked == []


@pytest.mark.parametrize(
    ("vectors", "length"),
    [
        ([], LENGTH), (vectors_of(LEAST - 1), LENGTH), (vectors_of(1) * LEAST, LENGTH), ([[0.0] * LENGTH] * LEAST, LENGTH),
        (vectors_of(100), 2),
    ],
    ids=["none", "few", "all the same", "no direction", "of another length"],
)  # fmt: skip
def test_sharpen_returns_vector_unchanged_without_contrast(vectors, length):
    question = [0.5] * length
    assert run(sharpen(question, 500), answering(vectors, [])) == question


def test_contrast_leaves_usual_question_unchanged():
    contrast = fit_contrast(rows_of(vectors_of(100)))
    assert contrast is not None
    usual = contrast.center.tolist()
    assert contrast.apply(usual, usual) == usual


@given(count=st.integers(LEAST, 300), length=st.integers(1, 40), seed=st.integers(0, 5))
def test_learn_returns_orthonormal_directions_and_partial_shares(count, length, seed):
    chance = random.Random(seed)
    contrast = fit_contrast(rows_of([[chance.gauss(0, 1) for _ in range(length)] for _ in range(count)]))
    assert contrast is not None
    assert len(contrast.directions) == len(contrast.shares) <= min(DIRECTIONS, length)
    products = contrast.directions @ contrast.directions.T
    assert abs(products - [[float(a == b) for b in range(len(products))] for a in range(len(products))]).max() < 1e-6
    assert ((contrast.shares > 0) & (contrast.shares < 1)).all()


def test_sharpen_caches_by_size_of_namespace_and_model():
    asked: list[Any] = []
    for count in (100, 101, 200):
        run(sharpen([1.0] * LENGTH, count), answering(vectors_of(100), asked))
    versions = [effect.as_of for effect in asked if isinstance(effect, Query)]
    assert versions[0] == versions[1] != versions[2]
    assert all("model" in version for version in versions)
    assert [effect.texts for effect in asked if isinstance(effect, Embed)] == [(USUAL,)] * 3


@pytest.mark.parametrize(
    ("text", "names", "rest"),
    [
        ("When did Melanie sign up for a class?", ["Melanie"], "When did sign up for a class?"),
        ("What is Ann's favourite food?", ["Ann"], "What is favourite food?"),
        ("What do Ann Smith and bo share?", ["Ann Smith", "Bo"], "What do and share?"),
        ("安娜住在哪里?", ["安娜"], "住在哪里?"),
        ("Who is Ann?", ["Ann"], "Who is Ann?"),
        ("Ann", ["Ann"], "Ann"),
        ("", ["Ann"], ""),
        ("Announce the date of the anniversary", ["Ann"], "Announce the date of the anniversary"),
    ],
)
def test_without_names_removes_names_of_people(text, names, rest):
    """A question that is nothing but a name stays as it is."""
    assert without_names(text, set(map(alias_key, names))) == rest


def test_sharpen_reads_graph_once_until_it_grows(many):
    many.episodes([{"id": f"d{place:03}", "angle": 0.3 + place / 200} for place in range(100)])
    reads: list[str] = []

    def counted(count: int) -> list[float]:
        before = len(reads)
        sharp: list[float] = many.run(sharpen(QUESTION, count))
        assert sharp != QUESTION
        return [*sharp, len(reads) - before]

    perform = many.driver.store.perform
    many.driver.store.perform = lambda key, query: (reads.append(query.cypher), perform(key, query))[1]  # type: ignore[method-assign]
    first, second, grown = counted(100), counted(101), counted(200)
    assert first[:-1] == second[:-1] == grown[:-1]
    assert [first[-1], second[-1], grown[-1]] == [1, 0, 1]
