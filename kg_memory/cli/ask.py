"""``kg-memory ask``: what is remembered about a question, with dates and sources."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from kg_memory.cli.opening import namespace_of, open_memory, times_of
from kg_memory.cli.screen import Cell, Screen
from kg_memory.cli.wording import line, marked, place, since, source, until, when
from kg_memory.effects import Ask, Prompt
from kg_memory.errors import ModelError
from kg_memory.model import AskedTime, Found
from kg_memory.settings import OFFLINE

if TYPE_CHECKING:
    from kg_memory.memory import GraphMemory

_CONTEXT_TOKENS = 3000


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
    namespace, times = namespace_of(arguments), times_of(arguments)
    with open_memory(arguments, screen) as memory:
        found = memory.search(arguments.question, namespace=namespace, limit=arguments.limit, **times)
        anything = bool(found.facts or found.episodes)
        sentence = _answered(memory, arguments.question, namespace, times, screen) if anything else None
    if screen.as_json:
        screen.json({"namespace": namespace, "answer": sentence, **found.model_dump(mode="json")})
        return 0
    if found.asked is not None:
        _show_asked(found.asked, arguments, screen)
    if anything:
        show(found, sentence, screen, scores=arguments.explain)
    else:
        screen.line(f"Nothing in the memory of {namespace!r} has to do with this. Tell it more: kg-memory ingest FILE")
    return 0


def show(found: Found, sentence: str | None, screen: Screen, *, scores: bool = False) -> None:
    """Print *found*: an answer, the facts with their time and what was said, and the lines themselves."""
    if sentence:
        screen.line(sentence, "bold")
        screen.line()
    extra = ("score",) if scores else ()
    if found.facts:
        rows: list[tuple[Cell, ...]] = [
            (marked(fact, fact.sentence), since(fact), until(fact), source(fact), *_score(fact.score, scores=scores))
            for fact in found.facts
        ]
        # Offline, one sentence may state several relations: it is shown once.
        once = list({row[:4]: row for row in reversed(rows)}.values())[::-1]
        screen.table(("fact", "since", "until", "source", *extra), once, ("bold", "green", "yellow", "dim", "dim"))
        screen.line()
    if found.episodes:
        lines = [
            (each.at, each.speaker, line(each), place(each), *_score(each.score, scores=scores))
            for each in found.episodes
        ]
        screen.table(("said at", "by", "what", "source", *extra), lines, ("cyan", "bold", "", "dim", "dim"))


def _show_asked(asked: AskedTime, arguments: Namespace, screen: Screen) -> None:
    """Say which time was asked about: where the question's own words told it, or with all that led to it."""
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


def _score(score: float | None, *, scores: bool) -> tuple[Cell, ...]:
    return (("" if score is None else f"{score:.4f}"),) if scores else ()


def _answered(memory: GraphMemory, question: str, namespace: str, times: dict[str, Any], screen: Screen) -> str | None:
    """Return the model's sentence, if there is a model; what was found is worth showing without it, too."""
    model = memory.driver.model
    if model.name == OFFLINE:
        return None
    context = memory.context(question, namespace=namespace, max_tokens=_CONTEXT_TOKENS, **times)
    try:
        answer = model.answer(Ask(_ANSWER, {"memory": context, "question": question}))
    except ModelError as error:
        screen.note(f"the model gave no sentence: {error}")
        return None
    return " ".join(Answer.model_validate(answer).sentences)
