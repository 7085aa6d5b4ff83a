"""``kg-memory watch``: follow a namespace live, whichever process writes to it."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kg_memory.cli.command import namespace_of, open_without_models, settings_of
from kg_memory.cli.output import Screen, cell, count_noun
from kg_memory.cli.views import describe_fact
from kg_memory.contrib.watch.news import Seen, Watch
from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.rows import Row, tell_times
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Change
from kg_memory.retrieval.time_window import parse_moment
from kg_memory.temporal.interval import EPOCH, instant
from kg_memory.text.dated import period_in_figures

_STYLES = {"done": "green", "learned": "green", "failed": "bold red", "waiting": "yellow", "ended": "yellow"}
_COSTS = ("calls", "input_tokens", "output_tokens", "seconds")


def watch(arguments: Namespace, screen: Screen) -> int:
    """Print the unread episodes, then the news, until it is stopped."""
    namespace = namespace_of(arguments)
    with open_without_models(replace(settings_of(arguments), replica_url=None), screen) as memory:
        since = parse_moment("since", arguments.since, memory.driver.clock())
        watcher = Watcher(memory, namespace, since, screen)
        watcher.begin(arguments.limit)
        if not arguments.once:
            screen.note(f"Watching {namespace!r}: Ctrl-C ends it.")
            watcher.go_on(arguments.interval)
    return 0


class Watcher:
    """Prints the events in *namespace* on *screen*."""

    def __init__(self, memory: GraphMemory, namespace: str, since: int, screen: Screen) -> None:
        self._driver, self._namespace, self._screen = memory.driver, namespace, screen
        self._watch = Watch(since)
        self._counts: Mapping[str, int] = {}

    def begin(self, limit: int) -> None:
        """Print the latest *limit* of the unread episodes, the news and the counts."""
        for episode in self._driver.run(self._watch.remaining(limit), self._namespace):
            self._print_episode(episode, _saved_at(episode))
        self._print_news(self._driver.run(self._watch.look(), self._namespace), first=True)

    def go_on(self, interval: float) -> None:
        """Look every *interval* seconds, also after the database was away."""
        away = False
        while True:
            time.sleep(interval)
            try:
                seen = self._driver.run(self._watch.look(), self._namespace)
            except DatabaseUnavailable as error:
                if not away:
                    self._screen.note(f"{error} (watching goes on)")
                away = True
            else:
                away = False
                self._print_news(seen)

    def _print_news(self, seen: Seen, *, first: bool = False) -> None:
        """Print the news; those of the *first* look have the time when they came."""
        for episode in seen.episodes:
            self._print_episode(episode, _saved_at(episode) if first else datetime.now(UTC))
        for change in seen.changes:
            self._print_change(change)
        if seen.counts != self._counts:
            self._counts = seen.counts
            self._print("counts", _describe_counts(seen.counts), dict(seen.counts), datetime.now(UTC))
        sys.stdout.flush()  # for who reads it through a pipe

    def _print_episode(self, episode: Row, at: datetime) -> None:
        event = {"event": "episode", **tell_times(episode), "took": _cost_of(episode)}
        self._print(episode["status"], _describe_episode(episode), event, at)

    def _print_change(self, change: Change) -> None:
        fact = change.after or change.before
        text = f"{describe_fact(fact)} ({period_in_figures(fact)})" if fact else ""
        self._print(change.kind, text, {"event": "fact", **change.model_dump(mode="json")}, change.at)

    def _print(self, kind: str, text: str, event: Mapping[str, Any], at: datetime) -> None:
        """Print one event on one line."""
        if self._screen.as_json:
            self._screen.line(json.dumps({"event": kind, **event, "seen_at": at.isoformat()}))
        else:
            form = "%H:%M:%S" if at.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M:%S"
            self._screen.line(f"{at:{form}}  {kind:<9}  {cell(text)}", _STYLES.get(kind, ""))


def _saved_at(episode: Row) -> datetime:
    return instant(episode["created_at"]) or EPOCH


def _describe_episode(episode: Row) -> str:
    """Return the content of *episode*, and the cost of reading it, or why it is not read."""
    who = f"{episode['speaker']}: " if episode["speaker"] else ""
    took = _cost_of(episode)
    cost = f"{count_noun(took['calls'], 'call')}, {took['input_tokens']:,} tokens in" if took.get("calls") else ""
    step = f"at {episode['step']}" if episode["step"] else ""
    tries = count_noun(episode["attempts"], "attempt") if episode["attempts"] > 1 else ""
    why = ", ".join(filter(None, (step, tries, episode["reason"], cost)))
    return f"{who}{episode['content']}" + (f"  ({why})" if why else "")


def _cost_of(episode: Row) -> dict[str, Any]:
    """Return the cost of reading *episode*, once it is read."""
    return dict(zip(_COSTS, episode["took"] or (), strict=False))


def _describe_counts(counts: Mapping[str, int]) -> str:
    states = ", ".join(f"{counts[name]} {name}" for name in ("saved", "waiting", "working", "failed") if counts[name])
    cached = f" ({counts['cached_tokens']:,} cached)" if counts["cached_tokens"] else ""
    spent = f"today {count_noun(counts['calls'], 'call')}, {counts['input_tokens']:,} tokens in{cached}"
    read = f": {states}" if states else ", all read"
    return f"{count_noun(counts['episodes'], 'episode')}{read}; {spent}, {counts['output_tokens']:,} out"
