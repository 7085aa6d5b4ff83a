"""Summaries of conversations: intent, files, decisions, open questions and next steps.

A summary is stored as an episode of kind block in its thread. It is exported, and forgotten together with any message
that it summarises. No search finds it, and no facts are read from it, as its messages have been read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from kg_memory.errors import InputError, NotFound
from kg_memory.ingestion.interrupted import REFUSED
from kg_memory.ingestion.receive import accept
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import MOST
from kg_memory.memory._verb import Engine
from kg_memory.memory.adding import date_input, read_episode
from kg_memory.memory.episodes import read_episodes
from kg_memory.models.graph import SESSION_SOURCE, Episode, EpisodeKind
from kg_memory.runtime.caches import CachedAnswers
from kg_memory.runtime.effects import ask_model
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import iso
from kg_memory.text.payloads import hide_payloads

READ = [str(kind) for kind in (EpisodeKind.MESSAGE, EpisodeKind.TEXT, EpisodeKind.JSON)]
MOST_MESSAGES = 200
LONGEST_MESSAGE, LONGEST = 2_000, 60_000
"""Characters of one message, and of all messages, in one question; beyond that the latest messages are used."""

Item = Annotated[str, Field(max_length=500)]


class SessionNotes(BaseModel):
    """The state of a conversation, as short sentences by heading."""

    intent: list[Item] = Field(max_length=MOST)
    files: list[Item] = Field(max_length=MOST)
    decisions: list[Item] = Field(max_length=MOST)
    open_questions: list[Item] = Field(max_length=MOST)
    next_steps: list[Item] = Field(max_length=MOST)


HEADINGS = {name: name.replace("_", " ").capitalize() for name in SessionNotes.model_fields}
SESSION = load_prompt(__package__, "session", SessionNotes, "notes", "messages")


def choose_new(messages: Sequence[Episode], last: Episode | None) -> list[Episode]:
    """Return the messages that the next summary of a conversation covers, earliest first.

    *messages* are latest first. Only those after the summary *last* are chosen, up to `LONGEST` characters.
    """
    chosen: list[Episode] = []
    room = LONGEST
    for message in messages:
        if (last and message.created_at <= last.created_at) or message.withheld or message.reason == REFUSED:
            continue
        room -= min(len(message.content), LONGEST_MESSAGE)
        if room < 0:
            break
        chosen.append(message)
    return chosen[::-1]


def summarise_session(engine: Engine, thread: str, least: int, namespace: str) -> Flow[Episode | None]:
    """Summarise the new messages of the conversation *thread*, and return the stored summary.

    If fewer than *least* messages are new, the previous summary is returned. None if there is no summary.
    """
    conversation = {"thread": thread}
    summaries = yield from read_episodes(1, 0, where={**conversation, "source": SESSION_SOURCE})
    last = summaries[0] if summaries else None
    new = choose_new((yield from read_episodes(MOST_MESSAGES, 0, where={**conversation, "kind": READ})), last)
    return last if len(new) < least else (yield from _summarise(engine, new, last, namespace))


def _summarise(engine: Engine, new: Sequence[Episode], last: Episode | None, namespace: str) -> Flow[Episode | None]:
    """Ask the model to summarise the *new* messages and the summary *last*; store and return the result.

    None if the model writes no notes, or a message was forgotten meanwhile. Errors: `InputError`.
    """
    if engine.driver.model.by_rules:
        raise InputError("a summary needs a model, but this memory reads offline by rules; open it with a model")
    shown = [_show(message) for message in new]
    asking = CachedAnswers(namespace)
    notes = yield from asking.through(ask_model(SESSION, notes=last.content if last else "", messages=shown))
    content = write_notes(notes)
    if not content:
        return None
    until = new[-1]
    episode = {
        "content": content,
        "kind": EpisodeKind.BLOCK,
        "thread": until.thread,
        "at": until.at,
        "source": SESSION_SOURCE,
    }
    sources = [message.id for message in (*new, *([last] if last else []))]
    state = {**date_input(episode, engine.driver.today), "namespace": namespace, "based_on": sources}
    try:
        saved = yield from accept(state, engine.settings)
    except NotFound:
        return None
    return (yield from read_episode(saved["episode"].id))


def write_notes(notes: SessionNotes) -> str:
    """Return *notes* as text: each heading on a line, followed by its items as "- item"; empty headings are omitted."""
    lines: list[str] = []
    for name, heading in HEADINGS.items():
        items = [" ".join(item.split()) for item in getattr(notes, name)]
        if items := [item for item in items if item]:
            lines += [f"{heading}:", *(f"- {item}" for item in items)]
    return "\n".join(lines)


def _show(message: Episode) -> dict[str, Any]:
    content = hide_payloads(message.content, message.kind)[:LONGEST_MESSAGE]
    return {"speaker": message.speaker, "at": iso(message.at), "content": content}
