"""``kg-memory demo``: read a story into a memory, and ask what is true now, what was then, and what was believed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from kg_memory.cli.command import namespace_of, settings_of
from kg_memory.cli.output import Screen, count_noun, width
from kg_memory.contrib.chats import read
from kg_memory.contrib.embedded.binaries import data_home
from kg_memory.contrib.setup.doctor import fetch_database
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.templates import fact_line
from kg_memory.settings import OFFLINE, Settings
from kg_memory.text.dated import date_in_words

_SHOWN = ("m01", "m04", "m06", "m10", "m14", "m18", "m24")
_NOW = ("Where does Nora live?", "Where does Nora work?", "Where does Tom live?", "小美住在哪里？")
_THEN = datetime(2023, 12, 24, tzinfo=UTC)
_NEWS = "m18"
"""The message that tells of a move some days after it."""
_BETWEEN = datetime(2024, 9, 18, tzinfo=UTC)
"""A day after the move and before the message."""


def read_story() -> list[EpisodeInput]:
    """Return the messages of the demo story, which three friends write to each other over two years."""
    with as_file(files("kg_memory.contrib.demo").joinpath("story.jsonl")) as path:
        return list(read(path, strict=True))


def demo(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory demo``: store a story in a separate memory, and print answers about present and past."""
    settings, where = _settings(arguments)
    space: dict[str, Any] = {"namespace": namespace_of(arguments)}
    story = read_story()
    fetch_database(settings, screen)
    with GraphMemory.open(settings=settings, on_wait=screen.note) as memory:
        added = memory.add_many(story, **space)
        answers = [memory.search(question, limit=3, **space) for question in _NOW]
        then = [memory.search(question, limit=3, as_of=_THEN, **space) for question in _NOW]
        present = memory.facts.list(as_of="now", **space)
        learned = [fact.created_at for fact in present if _NEWS in {source.source_id for source in fact.sources}]
        before = min(learned, default=datetime.now(UTC)) - timedelta(milliseconds=1)
        between = [
            memory.search(_NOW[0], limit=3, as_of=_BETWEEN, believed_at=clock, **space) for clock in (before, None)
        ]
        counts = memory.stats(**space)
    if screen.as_json:
        told = {"answers": answers, "then": then, "believed": between}
        screen.json({"data": where, "new": sum(result.new for result in added), **counts.model_dump(), **told})
        return 0
    reader = "by rules, without an API key" if settings.model == OFFLINE else f"by {settings.model}"
    screen.line("kg-memory keeps facts from conversations for agents: when each was true, and when it was learned.")
    screen.line(f"\nThree friends write {len(story)} messages over two years, in English and Chinese. Some:", "bold")
    for said in story:
        if said.source_id in _SHOWN:
            screen.line(f"  {said.at or _THEN:%Y-%m-%d}  {said.speaker}: {said.content} [{said.source_id}]")
    screen.line(f"Read {reader}: {count_noun(counts.entities, 'entity')}, {counts.facts} facts.")
    _show_answers("What is true now?", zip(_NOW, answers, strict=True), screen)
    _show_answers(f"What was true on {date_in_words(_THEN)}?", zip(_NOW, then, strict=True), screen)
    title = f"Where did Nora live on {date_in_words(_BETWEEN)}? She had moved; her friends first heard it in {_NEWS}."
    _show_answers(title, zip((f"as known before {_NEWS}", "as known now"), between, strict=True), screen)
    _show_next(arguments, where, screen)
    return 0


def _settings(arguments: Namespace) -> tuple[Settings, str]:
    """Return the settings of the demo, and the place of its memory: the URL of a database, or a folder."""
    settings = settings_of(arguments)
    if not settings.api_key:
        settings = replace(settings, model=OFFLINE, embedding_model=OFFLINE)
    if getattr(arguments, "url", None):
        return settings, str(settings.url)
    name = "demo" if settings.model == OFFLINE else f"demo-{settings.model}"
    folder: Path = getattr(arguments, "data_dir", None) or data_home(settings.xdg_data_home) / name
    return replace(settings, url=None, data_dir=folder), str(folder)


def _show_answers(title: str, answers: Iterable[tuple[str, SearchResults]], screen: Screen) -> None:
    screen.line()
    screen.line(title, "bold")
    for question, results in answers:
        best = fact_line(results.facts[0], set()).removeprefix("- ") if results.facts else "not known"
        screen.line(f"  {question}{' ' * (27 - width(question))}{best}")


def _show_next(arguments: Namespace, where: str, screen: Screen) -> None:
    place = f"--url {shlex.quote(where)}" if getattr(arguments, "url", None) else f"--data-dir {shlex.quote(where)}"
    # If the virtual environment is not active, the command is found only by its path.
    command = "kg-memory" if shutil.which("kg-memory") else shlex.quote(os.path.relpath(sys.argv[0]))
    screen.line()
    screen.line("What to do next", "bold")
    screen.line(f"  {command} serve {place}   then open http://127.0.0.1:8420/explorer/: the graph at any time")
    screen.line(f'  {command} ask "Who works at Polaris Robotics?" {place}')
    screen.line(f"  {command} ingest FILE   your own conversation: JSON Lines, message lists, plain text chats")
    screen.line(f"  {command} doctor        which model is used, and how to use a better one")
