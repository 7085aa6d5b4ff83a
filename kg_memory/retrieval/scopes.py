"""Composed scopes, optional: a question that asks for several things is searched as several questions.

The recipe sets who splits it: ``queries="rule"`` or ``"model"``; ``"one"``, the default, asks it as it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.llm.prompts import SPLIT
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.fuse import DIGITS, RETRIEVERS, Hits, Retriever, Scored, relative_shares, sort_scores
from kg_memory.retrieval.records import QuestionTime, Request, Search
from kg_memory.retrieval.search import find_candidates
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.tokenise import has_words

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


def find_in_scopes(request: Request, time: QuestionTime) -> Flow[Search]:
    """Return the candidates of the question, fused with those of its parts where the recipe has it split."""
    whole = yield from find_candidates(request, time)
    if whole.degraded:
        log.warning("%s", whole.degraded)
    parts = yield from split_question(request)
    if not parts:
        return whole
    others: list[Search] = []
    for part in parts:
        search = yield from find_candidates(replace(request, question=part), time)
        others += [search]
    return merge_searches([whole, *others])


def split_question(request: Request) -> Flow[list[str]]:
    """Return the questions that the question consists of; none where it is asked as it is, or the model fails."""
    if request.recipe.queries == "one":
        return []
    question = replace_unstorable(request.question).strip()
    if request.recipe.queries == "rule":
        return _usable(split_by_rule(question), question)
    try:
        answer = yield from ask(SPLIT, question=question[: 4 * LONGEST_QUERY])
    except (ModelError, BudgetSpent) as error:
        log.warning("the question was not split: %s", describe_error(error))
        return []
    return _usable(answer.questions, question)


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


def merge_searches(searches: Sequence[Search]) -> Search:
    """Return one search of all: each retriever counts a candidate by the best of its relative scores."""
    hits: dict[Kind, Hits] = {}
    for kind in KINDS:
        found = [search.hits[kind] for search in searches]
        hits[kind] = Hits(*(merge_rankings(found, retriever) for retriever in RETRIEVERS))
    named = list(dict.fromkeys(id_ for search in searches for id_ in search.named))
    unread = list(dict.fromkeys(id_ for search in searches for id_ in search.unread))
    known = [search.relevance for search in searches if search.relevance is not None]
    return replace(searches[0], hits=hits, named=named, unread=unread, relevance=max(known, default=None))


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
