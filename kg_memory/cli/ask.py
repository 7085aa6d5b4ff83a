"""``kg-memory ask``: answer a question from the memory, with dates and sources."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from kg_memory.cli.command import explain_nothing, namespace_of, open_memory, verb_arguments
from kg_memory.cli.output import Columns, Screen
from kg_memory.cli.views import EPISODE, FACT, when
from kg_memory.errors import ModelError
from kg_memory.llm.prompts import load_prompt
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Kind
from kg_memory.models.results import Explanation, SearchResults
from kg_memory.runtime.effects import Ask
from kg_memory.text.sentences import is_quote

_CONTEXT_TOKENS = 3000
_LINES = 5
# The number of left-out results of one kind that --explain shows.
_MOST = 5
# The number of characters of each left-out result that are shown.
_LONGEST = 80
_KINDS: Mapping[Kind, str] = {"facts": "fact", "entities": "entity", "communities": "community", "episodes": "line"}
_ID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}\b")


class Answer(BaseModel):
    """The model's answer to a question, in one or more sentences."""

    sentences: list[str] = Field(min_length=1)


_ANSWER = load_prompt(__package__, "answer", Answer, "memory", "question")


def ask(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory ask``: search the memory, and print the results and, if there is a model, its answer.

    With ``--template``, print the search results as text for a prompt instead. Return the exit code.
    """
    with open_memory(arguments, screen) as memory:
        given = verb_arguments(memory, arguments)
        if arguments.recall_from:
            given["namespace"] = [given["namespace"], *arguments.recall_from]
        if arguments.template:
            return _print_context(memory, given, arguments, screen)
        results = memory.search(**{**given, "limit": arguments.limit or _LINES})
        anything = bool(results.facts or results.episodes) and not results.abstains
        sentence = _answer(memory, given, screen) if anything else None
        nothing = (
            "" if anything else str(results.answerable) if results.abstains else _explain_nothing(memory, arguments)
        )
    if screen.prints_json({"namespace": given["namespace"], "answer": sentence, **results.model_dump(mode="json")}):
        return 0
    _show_time(results, arguments, screen)
    if not anything:
        screen.line(nothing)
        return 0
    for text in _describe_doubt(results):
        screen.line(text)
    if sentence:
        screen.line(sentence, "bold")
        screen.line()
    _show_results(results, screen, explain=arguments.explain)
    return 0


def _show_results(results: SearchResults, screen: Screen, *, explain: bool) -> None:
    extra = _columns({each.id: each for each in results.explanations}) if explain else {}
    messages = {episode.id for episode in results.episodes}
    facts = [fact for fact in results.facts if not (is_quote(fact) and fact.sources[0].episode in messages)]
    if facts:
        screen.values(facts, {**FACT, **extra})
        screen.line()
    if results.episodes:
        screen.values(results.episodes, {**EPISODE, **extra})
    if explain:
        screen.line()
        _show_left_out(results.explanations, screen)


def _print_context(memory: GraphMemory, given: dict[str, Any], arguments: Namespace, screen: Screen) -> int:
    """Print the search results as text for a prompt, in the format of ``--template``, and return the exit code.

    *given*: the arguments of the search.
    """
    context = memory.context(**given, template=arguments.template)
    results = context.results
    if screen.as_json:
        header = {"context": context, "tokens": context.tokens, "template": arguments.template}
        screen.json({"namespace": given["namespace"], **header, **results.model_dump(mode="json")})
        return 0
    if context:
        screen.line(context)
    elif not context.left_out:
        screen.note(_explain_nothing(memory, arguments))
    if arguments.explain:
        screen.line()
        _show_time(results, arguments, screen)
        _show_results(results, screen, explain=True)
    if not results.abstains and (context or context.left_out):
        for text in _describe_doubt(results):
            screen.note(text)
    return 0


def _answer(memory: GraphMemory, given: dict[str, Any], screen: Screen) -> str | None:
    """Return the model's answer from a search with the arguments *given*; None if there is no model or it fails."""
    model = memory.driver.model
    if model.by_rules:
        return None
    context = memory.context(**{**given, "limit": None, "explain": False}, max_tokens=_CONTEXT_TOKENS)
    try:
        answer = model.answer(Ask(_ANSWER, {"memory": context, "question": given["question"]}))
    except ModelError as error:
        screen.note(f"the model gave no answer: {error}")
        return None
    return " ".join(Answer.model_validate(answer).sentences)


def _explain_nothing(memory: GraphMemory, arguments: Namespace) -> str:
    about = f"Nothing in the memory of {namespace_of(arguments)!r} is about this."
    return explain_nothing(memory, arguments, f"{about} Add more conversations: kg-memory ingest FILE")


def _describe_doubt(results: SearchResults) -> list[str]:
    texts = [f"Degraded: {results.degraded}."] if results.degraded else []
    if results.answerable is not None and not results.answerable:
        reason = f"{results.answerable.reason} (relevance {results.relevance:.2f})"
        texts.append(f"The memory may not know this: {reason}.")
    return texts


def _show_time(results: SearchResults, arguments: Namespace, screen: Screen) -> None:
    time = results.time
    if time is None or not (time.words or arguments.explain):
        return
    hint = " --on and --during leave the rest out." if time.words else ""
    believed = f" Known at {when(time.believed_at)}." if arguments.explain and time.believed_at else ""
    screen.line(f"Asked about {time.reading}{', which comes first' if hint else ''}.{hint}{believed}", "dim")
    screen.line()


# Explanations


def _columns(explanations: Mapping[str, Explanation]) -> Columns:
    """Return the table columns "found by" (rank in each search method) and "score" (after each ranking step).

    *explanations*: how each search result was found, by the id of the result.
    """

    def found_by(value: Any) -> str:
        hits = explanations[value.id].hits if value.id in explanations else ()
        return ", ".join(f"{hit.retriever} {hit.rank}" for hit in hits)

    def scores(value: Any) -> str:
        steps = explanations[value.id].scores if value.id in explanations else ()
        return ", ".join(f"{step} {score:.4f}" for step, score in steps)

    return {"found by": found_by, "score": scores}


def _show_left_out(explanations: Sequence[Explanation], screen: Screen) -> None:
    left = [each for each in explanations if each.left_out]
    shown = [each for kind in _KINDS for each in [one for one in left if one.kind == kind][:_MOST]]
    if not shown:
        return
    columns = _columns({each.id: each for each in shown})
    why: Columns = {"why": lambda each: _ID.sub(r"\1", each.left_out)}
    screen.values(
        shown, {"left out": lambda each: _KINDS[each.kind], "text": lambda each: _cut(each.text), **columns, **why}
    )
    if len(left) > len(shown):
        screen.line(f"… and {len(left) - len(shown)} more; --json has all of them.", "dim")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]} …"
