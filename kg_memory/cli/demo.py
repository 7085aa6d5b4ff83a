"""``kg-memory demo``: a story goes in, and what is known now and was known then comes out."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path

from kg_memory.cli.command import namespace_of, settings_of
from kg_memory.cli.output import (
    FACT_STYLES,
    FACTS,
    Screen,
    count_noun,
    day,
    fact_row,
    first_quote,
    relation,
    since,
    source,
)
from kg_memory.cli.setup import fetch_database
from kg_memory.falkor import binaries
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput, Fact
from kg_memory.models.results import SearchResults
from kg_memory.plugins import load_plugin
from kg_memory.settings import OFFLINE, Settings
from kg_memory.temporal.interval import Interval

_PEOPLE = ("Nora", "Tom", "小美")
_THEN_ASKED = "Where does Nora live?"
_NOW = ("Where does Nora live?", "Does Nora take coffee or tea?", "小美住在哪里？")
_THEN = datetime(2023, 12, 24, tzinfo=UTC)
_LINES = 3


def read_story() -> list[EpisodeInput]:
    """Return the messages of the demo's story: friends who write to each other over two years."""
    with as_file(files("kg_memory.cli").joinpath("story.jsonl")) as path:
        return list(load_plugin("readers", "files").read(path, strict=True))


def demo(arguments: Namespace, screen: Screen) -> int:
    """Tell the story to a memory in a folder of its own, and ask it about now and about then.

    If there is no FalkorDB on this machine, it is downloaded first, as by ``kg-memory setup``.
    """
    settings, where = _settings(arguments)
    namespace = namespace_of(arguments)
    story = read_story()
    fetch_database(settings, screen)
    began = time.monotonic()
    with GraphMemory.open(settings=settings, on_wait=screen.note) as memory:
        opened = time.monotonic()
        added = memory.add_many(story, namespace=namespace)
        read_at = time.monotonic()
        facts = [fact for name in _PEOPLE for fact in memory.facts.about(name, namespace=namespace)]
        answers = [memory.search(question, namespace=namespace, limit=_LINES) for question in _NOW]
        then = memory.search(_THEN_ASKED, namespace=namespace, limit=_LINES, as_of=_THEN)
        counts = memory.stats(namespace=namespace)
    believed = {fact.id: fact for fact in facts if fact.expired_at is None}
    facts = sorted(believed.values(), key=_began)
    if screen.as_json:
        screen.json(
            {
                "data": where,
                "new": sum(result.new for result in added),
                **counts.model_dump(),
                "facts": [fact.model_dump(mode="json") for fact in facts],
                "answers": [results.model_dump(mode="json") for results in answers],
                "then": then.model_dump(mode="json"),
            }
        )
        return 0
    screen.line("Three friends write to each other for two years, in English and in Chinese.", "bold")
    screen.line(f"Read offline, by rules; no model, no key, no network. The memory lies in {where}")
    _show_story(story, screen)
    stored = len(story) - sum(result.new for result in added)
    again = f" ({stored} were there from the last time: the same message is stored once)" if stored else ""
    screen.line(f"{len(story)} messages{again}; opened in {opened - began:.1f} s, read in {read_at - opened:.1f} s.")
    screen.line(f"The graph has {count_noun(counts.entities, 'entity')} and {count_noun(counts.facts, 'fact')}.")
    _show_ended(facts, screen)
    for results in answers:
        _show_answer("Asked about now", results, screen)
    _show_answer(f"Asked as of {day(_THEN)}", then, screen)
    _show_then(facts, screen)
    _show_next(arguments, where, screen)
    return 0


def _settings(arguments: Namespace) -> tuple[Settings, str]:
    """Return offline settings, and where the memory lies: a folder of its own unless the user names a place."""
    offline = replace(settings_of(arguments), model=OFFLINE, embedding_model=OFFLINE)
    if getattr(arguments, "url", None):
        return offline, str(offline.url)
    folder: Path = getattr(arguments, "data_dir", None) or binaries.data_home(offline.xdg_data_home) / "demo"
    return replace(offline, url=None, data_dir=folder), str(folder)


def _show_story(story: list[EpisodeInput], screen: Screen) -> None:
    _title("What was said", screen)
    rows = [(episode.at, episode.speaker, episode.content) for episode in story]
    screen.table(("when", "who", "what"), rows, ("cyan", "bold", ""))


def _show_ended(facts: list[Fact], screen: Screen) -> None:
    _title("What was so, and is not any more: a later message ended it", screen)
    screen.table(FACTS, [fact_row(fact) for fact in facts if fact.invalid_at], FACT_STYLES)


def _show_answer(title: str, results: SearchResults, screen: Screen) -> None:
    _title(f"{title}: {results.question}", screen)
    rows = [(relation(fact), since(fact), first_quote(fact), source(fact)) for fact in results.facts]
    screen.table(("found", "since", "said", "source"), rows, ("bold", "green", "", "dim"))


def _show_then(facts: list[Fact], screen: Screen) -> None:
    """Compare then and now, in what is known to have changed."""
    _title(f"Then and now: what was so on {day(_THEN)}, and what is so now?", screen)
    changed = {fact.predicate for fact in facts if fact.invalid_at}
    now = datetime.now(UTC)
    rows = []
    for subject, predicate in dict.fromkeys((fact.subject, fact.predicate) for fact in facts):
        if predicate in changed and subject in _PEOPLE:
            same = [fact for fact in facts if (fact.subject, fact.predicate) == (subject, predicate)]
            then, today = ([fact for fact in same if holds_on(fact, moment)] for moment in (_THEN, now))
            what = predicate.replace("_", " ").lower()
            if then:
                rows.append((subject, what, _objects(then), _objects(today), _ids([*then, *today])))
    screen.table(("who", "what", day(_THEN), "now", "source"), sorted(rows), ("bold", "", "yellow", "green", "dim"))


def holds_on(fact: Fact, moment: datetime) -> bool:
    """Tell whether *fact* was so at *moment*, as far as is believed now."""
    return fact.expired_at is None and Interval(fact.valid_at or fact.known_from, fact.invalid_at).holds(moment)


def _objects(facts: list[Fact]) -> str:
    return ", ".join(dict.fromkeys(name for fact in facts for name in fact.objects)) or "-"


def _ids(facts: list[Fact]) -> str:
    return ", ".join(dict.fromkeys(source_.source_id or "" for fact in facts for source_ in fact.sources))


def _show_next(arguments: Namespace, where: str, screen: Screen) -> None:
    place = f"--url {shlex.quote(where)}" if getattr(arguments, "url", None) else f"--data-dir {shlex.quote(where)}"
    # In a virtual environment that is not active, the command is found only by its path.
    command = "kg-memory" if shutil.which("kg-memory") else shlex.quote(os.path.relpath(sys.argv[0]))
    _title("What to do next", screen)
    screen.line(f'{command} ask "Who works at Polaris Robotics?" {place}')
    screen.line(f"{command} facts Nora --on 2024-06-01 {place}")
    screen.line(f"{command} serve {place}   then http://127.0.0.1:8420/explorer/ shows it (extra: server)")
    screen.line(f"{command} ingest FILE   your own conversation: JSON Lines, message lists, plain text chats")
    screen.line(f"{command} doctor        which model reads, and how to have a better one")


def _title(text: str, screen: Screen) -> None:
    screen.line()
    screen.line(text, "bold magenta")


def _began(fact: Fact) -> tuple[bool, datetime]:
    return fact.valid_at is not None, fact.valid_at or fact.created_at
