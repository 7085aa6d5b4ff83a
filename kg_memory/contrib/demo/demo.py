"""``kg-memory demo``: read a story into a memory, and show what is true now and what was true at a past date."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from kg_memory.cli.command import namespace_of, settings_of
from kg_memory.cli.output import Screen, count_noun
from kg_memory.contrib.chats import read
from kg_memory.contrib.embedded.binaries import data_home
from kg_memory.contrib.setup.doctor import fetch_database
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput, Fact
from kg_memory.settings import OFFLINE, Settings

_PEOPLE = ("Nora", "Tom", "小美")
_THEN_ASKED = "Where does Nora live?"
_NOW = ("Where does Nora live?", "Does Nora take coffee or tea?", "小美住在哪里？")
_THEN = datetime(2023, 12, 24, tzinfo=UTC)
_LINES = 3


def read_story() -> list[EpisodeInput]:
    """Return the messages of the demo story, which three friends write to each other over two years."""
    with as_file(files("kg_memory.contrib.demo").joinpath("story.jsonl")) as path:
        return list(read(path, strict=True))


def demo(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory demo``: store a story in a memory of its own, and print answers as of today and of a past date.

    FalkorDB is downloaded first if it is not installed, like in ``kg-memory setup``. Returns the exit status 0.
    """
    settings, where = _settings(arguments)
    space: dict[str, Any] = {"namespace": namespace_of(arguments)}
    story = read_story()
    fetch_database(settings, screen)
    with GraphMemory.open(settings=settings, on_wait=screen.note) as memory:
        added = memory.add_many(story, **space)
        known = {fact.id: fact for name in _PEOPLE for fact in memory.facts.about(name, **space)}
        held = [fact for name in _PEOPLE for fact in memory.facts.about(name, as_of=_THEN, **space)]
        answers = [memory.search(question, limit=_LINES, **space) for question in _NOW]
        then = memory.search(_THEN_ASKED, limit=_LINES, as_of=_THEN, **space)
        counts = memory.stats(**space)
    new, facts = sum(result.new for result in added), sorted(known.values(), key=_start)
    if screen.as_json:
        told = {"facts": facts, "answers": answers, "then": then}
        screen.json({"data": where, "new": new, **counts.model_dump(), **told})
        return 0
    screen.line("Three friends write to each other for two years, in English and in Chinese.", "bold")
    screen.line(f"Read offline, by rules, without a model, key or network. The memory is stored in {where}")
    _title("What was said", screen)
    screen.table(("when", "who", "what"), [(said.at, said.speaker, said.content) for said in story])
    screen.line(f"{len(story)} messages, {new} of them new: the same message is stored once.")
    screen.line(f"The graph has {count_noun(counts.entities, 'entity')} and {count_noun(counts.facts, 'fact')}.")
    _title("Facts that were true and have been ended by a later message", screen)
    screen.values([fact for fact in facts if fact.invalid_at])
    for title, results in (*(("now", results) for results in answers), (f"as of {_THEN:%Y-%m-%d}", then)):
        _title(f"Asked {'about ' if title == 'now' else ''}{title}: {results.question}", screen)
        screen.values(results.facts)
    _show_then(facts, held, screen)
    _show_next(arguments, where, screen)
    return 0


def _settings(arguments: Namespace) -> tuple[Settings, str]:
    """Return settings without a model, and where the memory is stored: the user's database URL or folder, or "demo"."""
    offline = replace(settings_of(arguments), model=OFFLINE, embedding_model=OFFLINE)
    if getattr(arguments, "url", None):
        return offline, str(offline.url)
    folder: Path = getattr(arguments, "data_dir", None) or data_home(offline.xdg_data_home) / "demo"
    return replace(offline, url=None, data_dir=folder), str(folder)


def _show_then(facts: list[Fact], held: list[Fact], screen: Screen) -> None:
    """Print a table of what changed since a past date.

    *held* are the facts that were true at that date. *facts* are all facts, with those that have ended.
    """
    _title(f"Then and now: what was true on {_THEN:%Y-%m-%d}, and what is true now?", screen)
    rows = []
    for subject, predicate in sorted({(fact.subject, fact.predicate) for fact in facts if fact.invalid_at}):
        same = (subject, predicate)
        then = [fact for fact in held if (fact.subject, fact.predicate) == same]
        now = [fact for fact in facts if (fact.subject, fact.predicate) == same and fact.invalid_at is None]
        if then and subject in _PEOPLE:
            ids = dict.fromkeys(source.source_id or "" for fact in (*then, *now) for source in fact.sources)
            rows.append((subject, predicate.replace("_", " ").lower(), _objects(then), _objects(now), ", ".join(ids)))
    screen.table(("who", "what", f"{_THEN:%Y-%m-%d}", "now", "source"), rows)


def _objects(facts: list[Fact]) -> str:
    return ", ".join(dict.fromkeys(name for fact in facts for name in fact.objects)) or "-"


def _show_next(arguments: Namespace, where: str, screen: Screen) -> None:
    """Print commands to try next, with the option that makes them use the memory at *where*."""
    place = f"--url {shlex.quote(where)}" if getattr(arguments, "url", None) else f"--data-dir {shlex.quote(where)}"
    # If the virtual environment is not active, the command is found only by its path.
    command = "kg-memory" if shutil.which("kg-memory") else shlex.quote(os.path.relpath(sys.argv[0]))
    _title("What to do next", screen)
    screen.line(f'{command} ask "Who works at Polaris Robotics?" {place}')
    screen.line(f"{command} facts Nora --on 2024-06-01 {place}")
    screen.line(f"{command} serve {place}   then http://127.0.0.1:8420/explorer/ shows it (extra: server)")
    screen.line(f"{command} ingest FILE   your own conversation: JSON Lines, message lists, plain text chats")
    screen.line(f"{command} doctor        which model is used, and how to use a better one")


def _title(text: str, screen: Screen) -> None:
    screen.line()
    screen.line(text, "bold")


def _start(fact: Fact) -> tuple[bool, datetime]:
    return fact.valid_at is not None, fact.valid_at or fact.created_at
