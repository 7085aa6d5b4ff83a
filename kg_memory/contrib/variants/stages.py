"""Stages of a recipe beside the plain search: ``Recipe.route``, ``Recipe.queries`` and ``Recipe.select``.

A route leaves out the retrievers that a question does not need, by its words. A question that asks for several things
is searched as several questions too, which a rule splits with ``queries="rule"``, the model with ``"model"``. With
``select`` the model picks the results that bear on the question, by one call; where the model fails, or the budget is
spent, all results stay.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import to_list
from kg_memory.models.graph import KINDS, Community, Entity, Episode, Fact, Kind
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import tell_episode
from kg_memory.retrieval.question import Found, Question
from kg_memory.retrieval.ranking import DIGITS, RETRIEVERS, Hits, Retriever, Scored, relative_shares, sort_scores
from kg_memory.retrieval.recipe import Recipe, Weights
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text.dated import date_in_words, period_in_words
from kg_memory.text.identity import replace_unstorable, spoken_line
from kg_memory.text.sentences import one_line
from kg_memory.text.tokenise import has_words

# Route a question


Route = Literal["keyword", "hybrid", "graph"]
ROUTES: Mapping[Route, tuple[Retriever, ...]] = {
    "keyword": ("words", "graph"),
    "hybrid": ("words", "meaning"),
    "graph": RETRIEVERS,
}
"""The retrievers of each route. Zeph's keep words alone for keywords and meaning alone for questions, which finds
much less: see `docs/retrieval.md`."""
FEW = 3
"""The most words of a search by keywords."""
CHARACTERS = 2
"""The Chinese characters that count as one word."""
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
    """Return the route of *question*.

    Words for a relation come first, then words that ask, as "how does error_handling work" is no keyword.
    """
    if _RELATION.search(question):
        return "graph"
    if _ASKS.search(question):
        return "hybrid"
    words = len(_WORD.findall(_HAN.sub(" ", question))) + len(_HAN.findall(question)) / CHARACTERS
    return "keyword" if words <= FEW or _CODE.search(question) else "hybrid"


def apply_route(recipe: Recipe, question: str) -> Recipe:
    """Return *recipe* with the retrievers that *question* needs; as it is where none would be left."""
    left_out = [retriever for retriever in RETRIEVERS if retriever not in ROUTES[find_route(question)]]
    weights: dict[str, Weights] = {
        kind: recipe.weights(kind).model_copy(update=dict.fromkeys(left_out, 0.0)) for kind in recipe.kinds
    }
    routed = recipe.model_copy(update=weights)
    return routed if any(routed.retrievers(kind) for kind in KINDS) else recipe


# Split a question


log = logging.getLogger("kg_memory.retrieval")

MOST_QUERIES = 4
LONGEST_QUERY = 500
"""In characters."""
PART = 0.8
"""The score of the best of a part of the question, beside 1 for the best of the question itself."""
TIE = 0.01
"""The weight of the mean over all queries, which orders what is the best of one of them."""
_QUESTIONS = re.compile(
    r"(?<=[?？])\s*|[,;]?\s+and\s+(?=(?:what|where|when|who|whom|whose|which|why|how)\b)|"
    r"[，,；;](?=(?:还有|以及|又)?[^，,；;]{0,8}(?:什么|哪|谁|何时|几时|怎么|为何|多少))",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\b(?P<one>[A-Z][\w'-]+) (?:and|or) (?P<other>[A-Z][\w'-]+)\b")


class Parts(BaseModel):
    """The questions that a question consists of."""

    questions: Annotated[list[str], BeforeValidator(to_list)] = Field(
        description="2 to 4 questions, or none", max_length=20
    )


SPLIT = load_prompt(__package__, "split", Parts, "question")


def search_parts(question: Question, whole: Found, find: Callable[[Question], Flow[Found]]) -> Flow[Found]:
    """Return the candidates of the *whole* question, fused with those that *find* returns for its parts."""
    parts = yield from split_question(question)
    found = [whole]
    for part in parts:
        found += [(yield from find(replace(question, text=part)))]
    return merge_found(found) if parts else whole


def split_question(question: Question) -> Flow[list[str]]:
    """Return the questions that the question consists of; none where it is one question, or the model fails."""
    text = replace_unstorable(question.text).strip()
    if question.recipe.queries == "rule":
        return _usable(split_by_rule(text), text)
    try:
        answer = yield from ask(SPLIT, question=text[: 4 * LONGEST_QUERY])
    except (ModelError, BudgetSpent) as error:
        log.warning("the question was not split: %s", describe_error(error))
        return []
    return _usable(answer.questions, text)


def split_by_rule(question: str) -> list[str]:
    """Return several questions of one text each by itself, and one about two names as one about each of them."""
    parts = [part.strip() for part in _QUESTIONS.split(question) if part and part.strip()]
    if len(parts) > 1:
        return parts
    pair = _PAIR.search(question)
    names = (pair["one"], pair["other"]) if pair else ()
    return [question[: pair.start()] + name + question[pair.end() :] for name in names] if pair else []


def _usable(parts: Sequence[str], question: str) -> list[str]:
    """Return the first of *parts* that have words and differ from the question, cut; fewer than two are none."""
    texts = dict.fromkeys(replace_unstorable(part).strip()[:LONGEST_QUERY] for part in parts)
    usable = [text for text in texts if has_words(text) and text != question]
    return usable[:MOST_QUERIES] if len(usable) > 1 else []


def merge_found(found: Sequence[Found]) -> Found:
    """Return the candidates of all *found*: each retriever counts a candidate by the best of its relative scores."""
    hits: dict[Kind, Hits] = {}
    for kind in KINDS:
        by_kind = [each.hits[kind] for each in found]
        hits[kind] = Hits(*(merge_rankings(by_kind, retriever) for retriever in RETRIEVERS))
    named = list(dict.fromkeys(id_ for each in found for id_ in each.named))
    unread = list(dict.fromkeys(id_ for each in found for id_ in each.unread))
    known = [each.relevance for each in found if each.relevance is not None]
    return replace(found[0], hits=hits, named=named, unread=unread, relevance=max(known, default=None))


def merge_rankings(hits: Sequence[Hits], retriever: Retriever) -> list[Scored]:
    """Return all ids that *retriever* found by the best of their relative scores, from 0 to 1, ties by the mean.

    The first of *hits* are those of the question itself.
    """
    rankings = [found.of(retriever) for found in hits]
    best: dict[str, float] = {}
    for place, ranking in enumerate(rankings):
        for id_, share in relative_shares([ranking], [1.0]).items():
            best[id_] = max(best.get(id_, 0.0), share * PART if place else share)
    mean = relative_shares(rankings, [1.0] * len(rankings))
    return sort_scores((id_, round((share + TIE * mean[id_]) / (1 + TIE), DIGITS)) for id_, share in best.items())


# Select results


log = logging.getLogger("kg_memory.retrieval")

MOST_LINES = 100
"""The results that the model picks from, the best of each kind by turns; those behind them are left out."""
LONGEST_LINE, LONGEST_QUESTION = 600, 2000
"""In characters."""

Place = tuple[Kind, int]
"""A kind, and the place of a result in it: a fact has one for each of its periods."""


class Selection(BaseModel):
    """The lines that bear on a question."""

    lines: Annotated[list[int], BeforeValidator(to_list)] = Field(
        description="the ids of the lines, the most helpful first", max_length=200
    )


SELECT = load_prompt(__package__, "select", Selection, "question", "lines")


def select_results(results: SearchResults) -> Flow[SearchResults]:
    """Return those of *results* that the model picks, in their order; all of them where it gives no usable answer."""
    places = _number(results)
    if not places:
        return results
    values = [getattr(results, kind)[place] for kind, place in places]
    lines = [{"id": number, "text": describe(value)} for number, value in enumerate(values, start=1)]
    question = replace_unstorable(results.question)[:LONGEST_QUESTION]
    try:
        answer = yield from ask(SELECT, question=question, lines=lines)
    except (ModelError, BudgetSpent) as error:
        log.warning("no lines were selected, all %d stay: %s", len(lines), describe_error(error))
        return results
    picked = {places[number - 1] for number in answer.lines if 0 < number <= len(places)}
    if answer.lines and not picked:
        log.warning("no lines were selected, all %d stay: the model gave none of their numbers", len(lines))
        return results
    return results.model_copy(update=_keep(results, picked))


def _number(results: SearchResults) -> list[Place]:
    """Return the places of the results, the best of each kind first."""
    most = max(len(getattr(results, kind)) for kind in KINDS)
    by_turns = product(range(most), KINDS)
    return [(kind, place) for place, kind in by_turns if place < len(getattr(results, kind))][:MOST_LINES]


def _keep(results: SearchResults, picked: set[Place]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for kind in KINDS:
        values: Sequence[Any] = getattr(results, kind)
        kept[kind] = tuple(value for place, value in enumerate(values) if (kind, place) in picked)
    return kept


def describe(value: Any) -> str:
    """Return a result as the model reads it, on one line, with its time."""
    match value:
        case Fact():
            period = period_in_words(value)
            text = f"{value.sentence} ({period})" if period else value.sentence
        case Episode():
            content, speaker = tell_episode(value)
            day = date_in_words(value.at)
            text = spoken_line(f"{day}, {speaker}" if speaker else day, content)
        case Entity() | Community():
            text = f"{value.name}: {value.summary}" if value.summary else value.name
        case _:
            raise TypeError(f"a {type(value).__name__} has no line")
    return one_line(text, length=LONGEST_LINE)
