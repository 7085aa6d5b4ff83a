"""Search a question that asks for several things as several questions too: ``Recipe.queries``.

A rule splits it with ``queries="rule"``, the model with ``"model"``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import to_list
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.question import Found, Question
from kg_memory.retrieval.ranking import DIGITS, RETRIEVERS, Hits, Retriever, Scored, relative_shares, sort_scores
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
