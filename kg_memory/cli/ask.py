"""``kg-memory ask``: what is remembered about a question, with dates and sources."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from kg_memory.cli.command import namespace_of, open_memory, times_of
from kg_memory.cli.output import Cell, Screen, line, marked, place, since, source, until, when
from kg_memory.errors import ModelError
from kg_memory.models.context import Context
from kg_memory.models.graph import KINDS, Explanation, Kind, SearchResults
from kg_memory.runtime.effects import Ask, Prompt
from kg_memory.settings import OFFLINE

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

_CONTEXT_TOKENS = 3000
_LINES = 5
_UNLIKELY = 0.2
"""Of what is less relevant it is said that it may not be."""


class Answer(BaseModel):
    """What the model answers."""

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
    namespace, asked = namespace_of(arguments), {**times_of(arguments), **_how(arguments)}
    if arguments.template:
        return _tell(arguments, namespace, asked, screen)
    limit = arguments.limit or _LINES
    with open_memory(arguments, screen) as memory:
        found = memory.search(arguments.question, namespace=namespace, limit=limit, explain=arguments.explain, **asked)
        anything = bool(found.facts or found.episodes)
        sentence = _answered(memory, arguments.question, namespace, asked, screen) if anything else None
    if screen.as_json:
        screen.json({"namespace": namespace, "answer": sentence, **found.model_dump(mode="json")})
        return 0
    _show_asked(found, arguments, screen)
    if anything:
        _show_doubt(found, screen.line)
        show(found, sentence, screen, explain=arguments.explain)
    else:
        screen.line(_nothing(namespace))
    return 0


def show(found: SearchResults, sentence: str | None, screen: Screen, *, explain: bool = False) -> None:
    """Print *found*: an answer, the facts with their time and what was said, and the lines themselves."""
    known = reasons(found)

    def why(kind: Kind, id_: str) -> tuple[Cell, ...]:
        return cells(known.get((kind, id_))) if explain else ()

    extra, styles = (COLUMNS, STYLES) if explain else ((), ())
    if sentence:
        screen.line(sentence, "bold")
        screen.line()
    if found.facts:
        rows: list[tuple[Cell, ...]] = [
            (marked(fact, fact.sentence), since(fact), until(fact), source(fact), *why("facts", fact.id))
            for fact in found.facts
        ]
        # Offline, one sentence may state several relations: it is shown once.
        once = list({row[:4]: row for row in reversed(rows)}.values())[::-1]
        screen.table(("fact", "since", "until", "source", *extra), once, ("bold", "green", "yellow", "dim", *styles))
        screen.line()
    if found.episodes:
        lines = [(each.at, each.speaker, line(each), place(each), *why("episodes", each.id)) for each in found.episodes]
        screen.table(("said at", "by", "what", "source", *extra), lines, ("cyan", "bold", "", "dim", *styles))
    if explain:
        screen.line()
        show_left_out((each for each in found.why if each.place is None), screen)


def _tell(arguments: Namespace, namespace: str, asked: dict[str, Any], screen: Screen) -> int:
    """Print the context in the form that is asked for, alone on stdout unless it is to be explained."""
    given = {"template": arguments.template, "limit": arguments.limit, "explain": arguments.explain}
    with open_memory(arguments, screen) as memory:
        context = memory.context(arguments.question, namespace=namespace, **given, **asked)
    if screen.as_json:
        told = {"context": context, "tokens": context.tokens, "template": arguments.template}
        screen.json({"namespace": namespace, **told, **context.found.model_dump(mode="json")})
        return 0
    if context:
        screen.line(context)
    elif not context.left_out:
        screen.note(_nothing(namespace))
    if arguments.explain:
        screen.line()
        _show_asked(context.found, arguments, screen)
        show_lines(context, screen)
        show_left_out(context.found.why, screen)
    if context or context.left_out:
        _show_doubt(context.found, screen.note)
    return 0


def _how(arguments: Namespace) -> dict[str, Any]:
    return {"recipe": arguments.recipe, "where": arguments.where, "center": arguments.near}


def _nothing(namespace: str) -> str:
    return f"Nothing in the memory of {namespace!r} has to do with this. Tell it more: kg-memory ingest FILE"


def _show_doubt(found: SearchResults, say: Callable[[str], None]) -> None:
    """Say that there may be no answer, where it is likely so."""
    if found.relevance is not None and found.relevance < _UNLIKELY:
        say(f"The memory may hold nothing about this (relevance {found.relevance:.2f}).")


def _show_asked(found: SearchResults, arguments: Namespace, screen: Screen) -> None:
    """Say which time was asked about: where the question's own words told it, or with all that led to it."""
    asked = found.asked
    if asked is None:
        return
    if not arguments.explain:
        if asked.words:
            screen.line(f"Asked about {asked.reading}. --on and --during name another time.", "dim")
            screen.line()
        return
    screen.line(f"Asked about {asked.reading}.", "bold")
    option = arguments.on or arguments.during
    why = f'the question: "{asked.words}"' if asked.words else f"the option: {option}" if option else "nothing named it"
    at = _to_the_second(asked.since) == _to_the_second(asked.until) != "ever"
    rows = (
        ("named by", why),
        ("so", f"at {_to_the_second(asked.since)}" if at else f"from {_to_the_second(asked.since)}"),
        *([] if at else [("until", _to_the_second(asked.until))]),
        ("believed at", _to_the_second(asked.believed_at)),
    )
    screen.table(("time", ""), rows, ("dim", ""))
    screen.line()


def _to_the_second(moment: datetime | None) -> str:
    return when(moment.replace(microsecond=0)) if moment else "ever"


def _answered(memory: GraphMemory, question: str, namespace: str, asked: dict[str, Any], screen: Screen) -> str | None:
    """Return the model's sentence, if there is a model; what was found is worth showing without it, too."""
    model = memory.driver.model
    if model.name == OFFLINE:
        return None
    context = memory.context(question, namespace=namespace, max_tokens=_CONTEXT_TOKENS, **asked)
    try:
        answer = model.answer(Ask(_ANSWER, {"memory": context, "question": question}))
    except ModelError as error:
        screen.note(f"the model gave no sentence: {error}")
        return None
    return " ".join(Answer.model_validate(answer).sentences)


COLUMNS = ("found by", "score")
STYLES = ("dim", "dim")
MOST = 5
"""How many things of one kind that were left out are shown."""
LONGEST = 80
"""Characters of the text of each of them."""
NAMES: Mapping[Kind, str] = {
    "facts": "fact", "entities": "entity", "communities": "community", "episodes": "line",
}  # fmt: skip
_ID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}\b")
Reasons = Mapping[tuple[Kind, str], Explanation]


def reasons(found: SearchResults) -> Reasons:
    """Return what explains each thing, by its kind and id."""
    return {(each.kind, each.id): each for each in found.why}


def cells(why: Explanation | None) -> tuple[Cell, Cell]:
    """Return which searches found it, at which rank each, and its score after each step of ranking."""
    if why is None:
        return "", ""
    found_by = ", ".join(f"{hit.way} {hit.rank}" for hit in why.hits)
    return found_by, ", ".join(f"{step} {score:.4f}" for step, score in why.scores)


def show_lines(context: Context, screen: Screen) -> None:
    """Print what explains each line of *context*."""
    known = reasons(context.found)
    rows = [
        (NAMES[line.kind], _short(line.text.removeprefix("- ")), *cells(known.get((line.kind, line.id))))
        for line in context.lines
    ]
    if rows:
        screen.table(("line of", "text", *COLUMNS), rows, ("", "", *STYLES))
        screen.line()


def show_left_out(whys: Iterable[Explanation], screen: Screen) -> None:
    """Print the best of what was left out, and why."""
    left = [each for each in whys if each.left_out]
    shown = list(_first(left))
    if not shown:
        return
    rows = [(NAMES[each.kind], _short(each.text), *cells(each), _ID.sub(r"\1", each.left_out or "")) for each in shown]
    screen.table(("left out", "text", *COLUMNS, "why"), rows, ("", "", *STYLES, ""))
    if len(left) > len(shown):
        screen.line(f"… and {len(left) - len(shown)} more; --json has all of them.", "dim")


def _first(left: Iterable[Explanation]) -> Iterator[Explanation]:
    counts = dict.fromkeys(KINDS, 0)
    for each in left:
        counts[each.kind] += 1
        if counts[each.kind] <= MOST:
            yield each


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
