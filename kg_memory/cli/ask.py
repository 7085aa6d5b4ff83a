"""``kg-memory ask``: answer a question from the memory, with dates and sources."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from kg_memory.cli.command import explain_nothing, namespace_of, open_memory, times_of
from kg_memory.cli.output import Cell, Screen, line, mark_unreviewed, place, since, source, until, when
from kg_memory.errors import ModelError
from kg_memory.models.graph import KINDS, Kind
from kg_memory.models.results import Context, Explanation, SearchResults
from kg_memory.runtime.effects import Ask, Prompt

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

_CONTEXT_TOKENS = 3000
_LINES = 5


class Answer(BaseModel):
    """The answer of the model."""

    sentences: list[str] = Field(min_length=1)


_ANSWER = Prompt(
    "answer",
    """\
Answer the question in one or two sentences, in its own language, from the memory and from nothing else. Give the
dates that matter. What has ended is not so any more. If the memory does not hold the answer, say that.

Memory:
$memory

Question:
$question
""",
    frozenset({"memory", "question"}),
    Answer,
)


def ask(arguments: Namespace, screen: Screen) -> int:
    """Search, and print the best facts and lines; with a chat model, its answer from them too."""
    namespace, options = namespace_of(arguments), {**times_of(arguments), **_how(arguments)}
    if arguments.template:
        return _tell(arguments, namespace, options, screen)
    limit = arguments.limit or _LINES
    with open_memory(arguments, screen) as memory:
        results = memory.search(
            arguments.question, namespace=namespace, limit=limit, explain=arguments.explain, **options
        )
        anything = bool(results.facts or results.episodes) and not results.abstains
        sentence = _answer(memory, arguments.question, namespace, options, screen) if anything else None
        nothing = "" if anything or results.abstains else _explain_nothing(memory, arguments)
    if screen.as_json:
        screen.json({"namespace": namespace, "answer": sentence, **results.model_dump(mode="json")})
        return 0
    _show_time(results, arguments, screen)
    if anything:
        _show_doubt(results, screen.line)
        show(results, sentence, screen, explain=arguments.explain)
    else:
        screen.line(str(results.answerable) if results.abstains else nothing)
    return 0


def show(results: SearchResults, sentence: str | None, screen: Screen, *, explain: bool = False) -> None:
    """Print *results*: an answer, the facts with their time and what was said, and the lines themselves."""
    explanations = reasons(results)

    def why(kind: Kind, id_: str) -> tuple[Cell, ...]:
        return cells(explanations.get((kind, id_))) if explain else ()

    extra, styles = (COLUMNS, STYLES) if explain else ((), ())
    if sentence:
        screen.line(sentence, "bold")
        screen.line()
    if results.facts:
        rows: list[tuple[Cell, ...]] = [
            (mark_unreviewed(fact, fact.sentence), since(fact), until(fact), source(fact), *why("facts", fact.id))
            for fact in results.facts
        ]
        # Offline, one sentence may state several relations: it is shown once.
        once = list({row[:4]: row for row in reversed(rows)}.values())[::-1]
        screen.table(("fact", "since", "until", "source", *extra), once, ("bold", "green", "yellow", "dim", *styles))
        screen.line()
    if results.episodes:
        lines = [
            (episode.at, episode.speaker, line(episode), place(episode), *why("episodes", episode.id))
            for episode in results.episodes
        ]
        screen.table(("said at", "by", "what", "source", *extra), lines, ("cyan", "bold", "", "dim", *styles))
    if explain:
        screen.line()
        show_left_out((episode for episode in results.explanations if episode.rank is None), screen)


def _tell(arguments: Namespace, namespace: str, options: dict[str, Any], screen: Screen) -> int:
    """Print the context in the form that is asked for, alone on stdout unless it is to be explained."""
    form = {"template": arguments.template, "limit": arguments.limit, "explain": arguments.explain}
    with open_memory(arguments, screen) as memory:
        context = memory.context(arguments.question, namespace=namespace, **form, **options)
        nothing = "" if context or context.left_out else _explain_nothing(memory, arguments)
    if screen.as_json:
        header = {"context": context, "tokens": context.tokens, "template": arguments.template}
        screen.json({"namespace": namespace, **header, **context.results.model_dump(mode="json")})
        return 0
    if context:
        screen.line(context)
    elif not context.left_out:
        screen.note(nothing)
    if arguments.explain:
        screen.line()
        _show_time(context.results, arguments, screen)
        show_lines(context, screen)
        show_left_out(context.results.explanations, screen)
    if not context.results.abstains and (context or context.left_out):
        _show_doubt(context.results, screen.note)
    return 0


def _how(arguments: Namespace) -> dict[str, Any]:
    return {"recipe": arguments.recipe, "where": arguments.where, "center": arguments.near, "asker": arguments.asker}


def _explain_nothing(memory: GraphMemory, arguments: Namespace) -> str:
    about = f"Nothing in the memory of {namespace_of(arguments)!r} has to do with this."
    return explain_nothing(memory, arguments, f"{about} Tell it more: kg-memory ingest FILE")


def _show_doubt(results: SearchResults, write: Callable[[str], None]) -> None:
    """Note that the memory may have no answer, and why."""
    if results.degraded:
        write(f"Degraded: {results.degraded}.")
    if results.answerable is not None and not results.answerable:
        reason = f"{results.answerable.reason} (relevance {results.relevance:.2f})"
        write(f"The memory may not know this: {reason}.")


def _show_time(results: SearchResults, arguments: Namespace, screen: Screen) -> None:
    """Print the time that was asked about if the question named it, or all about it with --explain."""
    time = results.time
    if time is None:
        return
    if not arguments.explain:
        if time.words:
            screen.line(f"Asked about {time.reading}, which comes first. --on and --during leave the rest out.", "dim")
            screen.line()
        return
    screen.line(f"Asked about {time.reading}.", "bold")
    option = arguments.on or arguments.during
    why = f'the question: "{time.words}"' if time.words else f"the option: {option}" if option else "nothing named it"
    at = _to_the_second(time.since) == _to_the_second(time.until) != "ever"
    rows = (
        ("named by", why),
        ("so", f"at {_to_the_second(time.since)}" if at else f"from {_to_the_second(time.since)}"),
        *([] if at else [("until", _to_the_second(time.until))]),
        ("believed at", _to_the_second(time.believed_at)),
    )
    screen.table(("time", ""), rows, ("dim", ""))
    screen.line()


def _to_the_second(moment: datetime | None) -> str:
    return when(moment.replace(microsecond=0)) if moment else "ever"


def _answer(memory: GraphMemory, question: str, namespace: str, options: dict[str, Any], screen: Screen) -> str | None:
    """Return the model's sentence, if there is a model; what was found is worth showing without it, too."""
    model = memory.driver.model
    if model.by_rules:
        return None
    context = memory.context(question, namespace=namespace, max_tokens=_CONTEXT_TOKENS, **options)
    try:
        answer = model.answer(Ask(_ANSWER, {"memory": context, "question": question}))
    except ModelError as error:
        screen.note(f"the model gave no sentence: {error}")
        return None
    return " ".join(Answer.model_validate(answer).sentences)


COLUMNS = ("found by", "score")
STYLES = ("dim", "dim")
MOST = 5
"""Left-out results of one kind that are shown, at most."""
LONGEST = 80
"""Characters of the text of each, at most."""
NAMES: Mapping[Kind, str] = {
    "facts": "fact",
    "entities": "entity",
    "communities": "community",
    "episodes": "line",
}
_ID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}\b")
Reasons = Mapping[tuple[Kind, str], Explanation]


def reasons(results: SearchResults) -> Reasons:
    """Return what explains each thing, by its kind and id."""
    return {(explanation.kind, explanation.id): explanation for explanation in results.explanations}


def cells(why: Explanation | None) -> tuple[Cell, Cell]:
    """Return the retrievers with their ranks, and the scores after each step of ranking."""
    if why is None:
        return "", ""
    found_by = ", ".join(f"{hit.retriever} {hit.rank}" for hit in why.hits)
    return found_by, ", ".join(f"{step} {score:.4f}" for step, score in why.scores)


def show_lines(context: Context, screen: Screen) -> None:
    """Print what explains each line of *context*."""
    explanations = reasons(context.results)
    rows = [
        (NAMES[line.kind], _short(line.text.removeprefix("- ")), *cells(explanations.get((line.kind, line.id))))
        for line in context.lines
    ]
    if rows:
        screen.table(("line of", "text", *COLUMNS), rows, ("", "", *STYLES))
        screen.line()


def show_left_out(explanations: Iterable[Explanation], screen: Screen) -> None:
    """Print the best of what was left out, and why."""
    left = [explanation for explanation in explanations if explanation.left_out]
    shown = list(_first(left))
    if not shown:
        return
    rows = [
        (
            NAMES[explanation.kind],
            _short(explanation.text),
            *cells(explanation),
            _ID.sub(r"\1", explanation.left_out or ""),
        )
        for explanation in shown
    ]
    screen.table(("left out", "text", *COLUMNS, "why"), rows, ("", "", *STYLES, ""))
    if len(left) > len(shown):
        screen.line(f"… and {len(left) - len(shown)} more; --json has all of them.", "dim")


def _first(left: Iterable[Explanation]) -> Iterator[Explanation]:
    counts = dict.fromkeys(KINDS, 0)
    for explanation in left:
        counts[explanation.kind] += 1
        if counts[explanation.kind] <= MOST:
            yield explanation


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
