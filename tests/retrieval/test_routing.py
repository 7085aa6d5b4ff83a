"""Which retrievers a question needs, and that only these run (C58)."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.variants.routing import apply_route, find_route
from kg_memory.retrieval.question import SearchQuery
from kg_memory.retrieval.recipe import DEFAULT, MEANING, RECIPES, Weights
from tests.scripted import HashEmbeddings, Scripted

NS = "routing"


ROUTES = {
    "keyword": (
        "error_handling", "src/main.rs", "std::mem::swap in the parser of the second project", "Ann Oslo", "奥斯陆", "", "?!",
    ),
    "hybrid": (
        "how does error_handling work", "Where does Ann live?", "安住在哪里", "the city that Ann moved to last year",
        "Ann and her sister", "我的工作经历介绍",
    ),
    "graph": ("how is Rust related to this project", "connection between Ann and Bob", "安和鲍勃之间是什么关系"),
}  # fmt: skip


@pytest.mark.parametrize(("question", "route"), [(each, name) for name, asked in ROUTES.items() for each in asked])
def test_find_route_depends_on_words_of_question(question, route):
    """The words of a question decide its route.

    Features: C58.
    """
    assert find_route(question) == route


def test_route_changes_only_routed_recipes_and_empties_none():
    parsed = {name: SearchQuery.parse({"question": "Ann Oslo", "recipe": name}).recipe for name in RECIPES}
    assert [name for name, recipe in parsed.items() if recipe is not RECIPES[name]] == ["routed"]
    meaning = MEANING.with_(route=True)
    assert apply_route(meaning, "Ann Oslo") is meaning
    own = DEFAULT.with_(route=True, facts=Weights(words=0.2, meaning=3, graph=0))
    assert apply_route(own, "Ann and her sister").retrievers("facts") == {"words": 0.2, "meaning": 3}


@pytest.fixture(scope="module")
def story(server: Any) -> Iterator[tuple[GraphMemory, HashEmbeddings]]:
    """A memory and its embedding model, which records the embedded texts."""
    embeddings = HashEmbeddings()
    with GraphMemory(Settings(url=server.url), model=Scripted(), embeddings=embeddings) as memory:
        memory.add("I moved to Oslo with Bob", speaker="Ann", at="2024-01-01T10:00:00Z", namespace=NS)
        memory.add("I know Dora, and the rain in Oslo", speaker="Carl", at="2024-01-03T10:00:00Z", namespace=NS)
        yield memory, embeddings


@pytest.mark.parametrize(
    ("question", "skipped"),
    [("Ann Oslo", ("meaning",)), ("Where does Ann live?", ("graph",)), ("How are Ann and Bob related?", ())],
)
def test_search_reports_retrievers_skipped_by_route(story, question, skipped):
    memory, embeddings = story
    before = len(embeddings.embedded)
    routed = memory.search(question, namespace=NS, recipe="routed", explain=True)
    assert routed.skipped == skipped
    assert (len(embeddings.embedded) == before) == ("meaning" in skipped)
    retrievers = {hit.retriever for item in routed.explanations for hit in item.hits}
    assert retrievers
    assert not retrievers & set(skipped)
    assert "Ann lives in Oslo" in [fact.sentence for fact in routed.facts]
    assert asyncio.run(memory.acontext(question, namespace=NS, recipe="routed")).results.skipped == skipped
    assert memory.search(question, namespace=NS).skipped == ()
