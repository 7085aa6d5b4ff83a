"""``kg-memory ask``: what is remembered about a question, with dates and sources."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from kg_memory.cli.opening import namespace_of, open_memory
from kg_memory.cli.screen import Screen, counted, day
from kg_memory.effects import Ask, Prompt
from kg_memory.errors import ModelError
from kg_memory.model import Episode, Fact, Found
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
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        found = memory.search(arguments.question, namespace=namespace, limit=arguments.limit, as_of=arguments.on)
        sentence = _answered(memory, arguments, screen) if found.facts or found.episodes else None
    if screen.as_json:
        screen.json({"namespace": namespace, "answer": sentence, **found.model_dump(mode="json")})
    elif found.facts or found.episodes:
        show(found, sentence, screen)
    else:
        screen.line(f"Nothing in the memory of {namespace!r} has to do with this. Tell it more: kg-memory ingest FILE")
    return 0


def show(found: Found, sentence: str | None, screen: Screen) -> None:
    """Print *found*: an answer, the facts with their time and what was said, and the lines themselves."""
    if sentence:
        screen.line(sentence, "bold")
        screen.line()
    if found.facts:
        rows = [(fact.sentence, day(fact.valid_at), day(fact.invalid_at), source(fact)) for fact in found.facts]
        # Offline, one sentence may state several relations: it is shown once.
        screen.table(
            ("fact", "since", "until", "source"), list(dict.fromkeys(rows)), ("bold", "green", "yellow", "dim")
        )
        screen.line()
    if found.episodes:
        lines = [(episode.at, episode.speaker, episode.content, place(episode)) for episode in found.episodes]
        screen.table(("said at", "by", "what", "source"), lines, ("cyan", "bold", "", "dim"))


def relation(fact: Fact) -> str:
    """Return *fact* as subject, predicate and objects."""
    return f"{fact.subject} {fact.predicate.replace('_', ' ').lower()} {', '.join(fact.objects)}"


def said(fact: Fact) -> str:
    """Return the words that first stated *fact*."""
    return fact.sources[0].quote if fact.sources else fact.sentence


def source(fact: Fact) -> str:
    """Return who said *fact* and when, by the source's own id where it has one."""
    if not fact.sources:
        return ""
    first = fact.sources[0]
    name = f" [{first.source_id}]" if first.source_id else ""
    more = f" and {counted(len(fact.sources) - 1, 'time')} more" if len(fact.sources) > 1 else ""
    return f"{first.speaker or 'text'}, {day(first.at)}{name}{more}"


def place(episode: Episode) -> str:
    """Return where *episode* comes from, as far as its source told."""
    return episode.source_id or episode.thread or episode.source or episode.id


def _answered(memory: GraphMemory, arguments: Namespace, screen: Screen) -> str | None:
    """Return the model's sentence, if there is a model; what was found is worth showing without it, too."""
    model = memory.driver.model
    if model.name == OFFLINE:
        return None
    question, namespace = arguments.question, namespace_of(arguments)
    context = memory.context(question, namespace=namespace, max_tokens=_CONTEXT_TOKENS, as_of=arguments.on)
    try:
        answer = model.answer(Ask(_ANSWER, {"memory": context, "question": question}))
    except ModelError as error:
        screen.note(f"the model gave no sentence: {error}")
        return None
    return " ".join(Answer.model_validate(answer).sentences)
