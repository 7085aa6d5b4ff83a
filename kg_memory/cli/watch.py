"""``kg-memory watch``: follow a namespace live, whichever process writes to it."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kg_memory.cli.command import namespace_of, settings_of
from kg_memory.cli.output import Screen, cell, count_noun, relation
from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.falkor.rows import Row, tell_times
from kg_memory.memory import open as opening
from kg_memory.memory.changes import Seen, Watch
from kg_memory.models.graph import Change
from kg_memory.retrieval.time_window import parse_moment
from kg_memory.runtime.effects import Now, Query, Reads
from kg_memory.runtime.flow import run
from kg_memory.temporal.interval import EPOCH, instant
from kg_memory.text.dated import period_in_figures

STYLES = {"done": "green", "learned": "green", "failed": "bold red", "waiting": "yellow", "ended": "yellow"}


def watch(arguments: Namespace, screen: Screen) -> int:
    """Tell what waits and what failed, then what comes, until it is stopped."""
    now = time.time_ns() // 1000
    settings = replace(settings_of(arguments), replica_url=None)
    # No model is opened, so it works whichever model the others have, and while all is embedded anew.
    database = opening.database(settings, screen.note)
    try:
        watcher = Watcher(database, namespace_of(arguments), parse_moment("since", arguments.since, now), screen)
        watcher.begin(arguments.limit)
        if not arguments.once:
            screen.note(f"Watching {namespace_of(arguments)!r}: Ctrl-C ends it.")
            watcher.go_on(arguments.interval)
    finally:
        database.close()
    return 0


class Watcher:
    """Tells on *screen* what happens in *namespace*."""

    def __init__(self, database: Database, namespace: str, since: int, screen: Screen) -> None:
        self._perform = partial(_perform, database, graph_key(namespace))
        self._watch = Watch(since)
        self._screen = screen
        self._counts: Mapping[str, int] = {}

    def begin(self, limit: int) -> None:
        """Tell the counts, and the latest *limit* of the episodes that are not read."""
        for episode in run(self._watch.remaining(limit), self._perform):
            self._episode(episode, _time_of(episode))
        self._tell(run(self._watch.look(), self._perform), first=True)

    def go_on(self, interval: float) -> None:
        """Look every *interval* seconds, also after the database was away."""
        away = False
        while True:
            time.sleep(interval)
            try:
                seen = run(self._watch.look(), self._perform)
            except DatabaseUnavailable as error:
                if not away:
                    self._screen.note(f"{error} (watching goes on)")
                away = True
            else:
                away = False
                self._tell(seen)

    def _tell(self, seen: Seen, *, first: bool = False) -> None:
        """Print what was seen; what is there at the *first* look came before, and is stamped with when it did."""
        for episode in seen.episodes:
            self._episode(episode, _time_of(episode) if first else datetime.now(UTC))
        for change in seen.changes:
            self._change(change)
        if seen.counts != self._counts:
            self._counts = seen.counts
            self._print("counts", describe_counts(seen.counts), dict(seen.counts), datetime.now(UTC))
        sys.stdout.flush()  # for who reads it through a pipe

    def _episode(self, episode: Row, at: datetime) -> None:
        event = {"event": "episode", **tell_times(episode), "took": cost_of(episode)}
        self._print(episode["status"], describe_episode(episode), event, at)

    def _change(self, change: Change) -> None:
        fact = change.after or change.before
        text = f"{relation(fact)} ({period_in_figures(fact)})" if fact else ""
        event = {"event": "fact", **change.model_dump(mode="json")}
        self._print(change.kind, text, event, change.at)

    def _print(self, kind: str, text: str, event: Mapping[str, Any], at: datetime) -> None:
        """Print one event on one line."""
        if self._screen.as_json:
            print(
                json.dumps({"event": kind, **event, "seen_at": at.isoformat()})
            )  # ASCII: nothing can steer a terminal
        else:
            form = "%H:%M:%S" if at.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M:%S"
            self._screen.line(f"{at:{form}}  {kind:<9}  {cell(text)}", STYLES.get(kind, ""))


def _time_of(episode: Row) -> datetime:
    """Return when *episode* was saved."""
    return instant(episode["created_at"]) or EPOCH


def describe_episode(episode: Row) -> str:
    """Return what *episode* says, and what reading it took, or why it is not read."""
    who = f"{episode['speaker']}: " if episode["speaker"] else ""
    took = cost_of(episode)
    cost = f"{count_noun(took['calls'], 'call')}, {took['input_tokens']:,} tokens in" if took.get("calls") else ""
    step = f"at {episode['step']}" if episode["step"] else ""
    tries = count_noun(episode["attempts"], "attempt") if episode["attempts"] > 1 else ""
    why = ", ".join(part for part in (step, tries, episode["reason"], cost) if part)
    return f"{who}{episode['content']}" + (f"  ({why})" if why else "")


def cost_of(episode: Row) -> dict[str, Any]:
    """Return what reading *episode* took, once it is read."""
    return dict(zip(("calls", "input_tokens", "output_tokens", "seconds"), episode["took"] or (), strict=False))


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return the counts in words."""
    states = ", ".join(f"{counts[name]} {name}" for name in ("saved", "waiting", "working", "failed") if counts[name])
    spent = f"today {count_noun(counts['calls'], 'call')}, {counts['input_tokens']:,} tokens in"
    cached = f" ({counts['cached_tokens']:,} cached)" if counts["cached_tokens"] else ""
    spent = f"{spent}{cached}, {counts['output_tokens']:,} out"
    return f"{count_noun(counts['episodes'], 'episode')}{f': {states}' if states else ', all read'}; {spent}"


def _perform(database: Database, key: str, effect: Any) -> Any:
    """Read from the graph alone: a namespace that is not there yet has no rows."""
    match effect:
        case Query(cypher, params):
            return database.query(key, cypher, params, write=False)
        case Reads(parts):
            return database.read_all(key, [(part.cypher, part.params) for part in parts])
        case Now():
            return time.time_ns() // 1000
    raise TypeError(f"no such effect: {effect!r}")
