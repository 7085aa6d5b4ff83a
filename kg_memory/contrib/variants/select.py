"""Let the model pick the results that bear on the question, by one call: ``Recipe.select``.

Where the model fails, or the budget is spent, all results stay.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from kg_memory.errors import BudgetSpent, ModelError
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import to_list
from kg_memory.models.graph import KINDS, Community, Entity, Episode, Fact, Kind
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.lines import tell_episode
from kg_memory.runtime.effects import ask
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text.dated import date_in_words, period_in_words
from kg_memory.text.identity import replace_unstorable, spoken_line
from kg_memory.text.sentences import one_line

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
