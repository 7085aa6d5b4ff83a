"""Query routing (``Recipe.route``): skips retrievers that a question does not need, to judge by its words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from kg_memory.models.graph import KINDS
from kg_memory.retrieval.ranking import RETRIEVERS, Retriever
from kg_memory.retrieval.recipe import Recipe, Weights

Route = Literal["keyword", "hybrid", "graph"]
ROUTES: Mapping[Route, tuple[Retriever, ...]] = {
    "keyword": ("words", "graph"),
    "hybrid": ("words", "meaning"),
    "graph": RETRIEVERS,
}
"""The retrievers of each route. Zeph uses fewer, and finds much less: see `docs/retrieval.md`."""
FEW = 3
"""The most words of a keyword search."""
CHARACTERS = 2
"""The number of Chinese characters that count as one word."""
_RELATION = re.compile(
    r"\b(?:relat(?:ed|es?|ion|ions|ionship)|connect(?:ed|s|ion|ions)|link(?:ed|s)? (?:to|with|between)"
    r"|opinions? (?:on|of|about)|knows? about|in common|between)\b"
    r"|关系|關係|有关|有關|关联|關聯|联系|聯繫|之间|之間",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:what|who|whom|whose|when|where|which|why|how)\b|什么|什麼|谁|誰|哪|怎|为何|為何|几|幾|多少|吗|嗎|呢",
    re.IGNORECASE,
)
_CODE = re.compile(r"::|[\w.-]/[\w.-]|\w_\w|\w\(\)|\b\w+\.\w{1,4}\b")
_HAN = re.compile("[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+")


def find_route(question: str) -> Route:
    """Return the search route for *question*: ``"graph"``, ``"hybrid"`` or ``"keyword"``, a key of `ROUTES`."""
    if _RELATION.search(question):
        return "graph"
    if _ASKS.search(question):
        return "hybrid"
    words = len(_WORD.findall(_HAN.sub(" ", question))) + len(_HAN.findall(question)) / CHARACTERS
    return "keyword" if words <= FEW or _CODE.search(question) else "hybrid"


def apply_route(recipe: Recipe, question: str) -> Recipe:
    """Return *recipe* with only the retrievers that *question* needs; unchanged if no retriever would be left."""
    left_out = [retriever for retriever in RETRIEVERS if retriever not in ROUTES[find_route(question)]]
    weights: dict[str, Weights] = {
        kind: recipe.weights(kind).model_copy(update=dict.fromkeys(left_out, 0.0)) for kind in recipe.kinds
    }
    routed = recipe.model_copy(update=weights)
    return routed if any(routed.retrievers(kind) for kind in KINDS) else recipe
