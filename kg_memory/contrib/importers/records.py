"""Import the export of another memory product: facts are stored as they are, sentences are saved as messages.

A language model extracts facts from the messages. A first pass checks all records and stores nothing. The second pass
stores them in batches. Each record gets the id from its source, so an interrupted import can be run again and continues
where it stopped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path

from kg_memory.contrib.importers.moving import DiskDictionary, Reading, Record
from kg_memory.errors import InputError
from kg_memory.ingestion.receive import accept, validate_episode
from kg_memory.ingestion.summarise import refresh
from kg_memory.maintenance.review.decide import replace_fact
from kg_memory.memory._verb import Engine
from kg_memory.memory.adding import State, Tally, add_inputs, date_input, read_episode, result_of_saving
from kg_memory.memory.declaring import WINDOW, check_premises, declaration_of, declare_states
from kg_memory.memory.listing import belief_params, list_page
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult, ImportResult
from kg_memory.plugins import load_plugin, plugin_names
from kg_memory.runtime.effects import in_threads, now, without_model, work
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import EVER
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.validation import validate_choice

MOST_REPLACED = 1000
"""The most facts of earlier versions of a message that are compared with its new version."""
CHANGED = "changed in the imported source"
STILL_HELD = "facts of earlier versions that still hold, since the new version states no fact to replace them"
NO_FACT = "sentences without a fact, stored as messages only: found by search, not in the list of facts"
SENTENCES = frozenset({"mem0", "langmem"})
"""The origins whose messages are remembered sentences."""


def import_records(
    engine: Engine,
    origin: str,
    source: str | Path,
    *,
    group: str | None,
    namespace: str,
    read: bool,
    progress: Callable[[int, int], None] | None,
) -> Flow[ImportResult]:
    """Import the records of one owner from another product's export; return how many were imported.

    Errors: `InputError` for an invalid record, before anything is stored.
    """
    validate_choice("origin", origin, plugin_names("importers"))
    place = source if "://" in str(source) else Path(source)
    reading = yield from work(lambda: load_plugin("importers", origin)(place, group))
    total = yield from work(lambda: _check_all(engine, reading, progress))
    counts, left_out = Counter[str](), Counter[str]()
    unread: list[str] = []
    for is_fact, records in groupby(reading(left_out), key=attrgetter("is_fact")):
        while window := list(islice(records, WINDOW)):
            added = yield from in_threads(_store(engine, window, namespace, read=read))
            for record, result in zip(window, added, strict=True):
                if record.replaces and read:
                    yield from _replace_earlier(engine, record, result, namespace, left_out)
            counts["declared fact" if is_fact else "message"] += len(added)
            counts["fact"] += 0 if is_fact else sum(len(result.facts) for result in added)
            counts["repeated"] += sum(not result.new for result in added)
            unread += [result.error for result in added if result.error]
            if read and origin in SENTENCES and not is_fact:
                left_out[NO_FACT] += sum(result.new and not (result.facts or result.error) for result in added)
            if progress:
                progress(counts["message"] + counts["declared fact"], total)
    yield from in_threads(without_model(refresh(since=0, before=(yield from now()))))
    repeated = counts.pop("repeated", 0)
    return ImportResult(
        namespace=namespace, records=+counts, left_out=+left_out, repeated=repeated, unread=tuple(unread)
    )


def _check_all(engine: Engine, reading: Reading, progress: Callable[[int, int], None] | None) -> int:
    """Raise `InputError` for the first record that cannot be stored; return the number of records."""
    count = 0
    contents = DiskDictionary()
    for count, record in enumerate(reading(Counter()), start=1):
        try:
            episode = validate_episode(_to_state(engine, record), engine.settings, 0)
        except InputError as error:
            raise InputError(f"{record.place}: {error}; nothing was imported") from None
        digest = hashlib.sha256(episode.content.encode("utf-8", "backslashreplace")).hexdigest()
        if not contents.put(episode.id, digest) and contents.get(episode.id) != digest:
            problem = f"an earlier record has the id {episode.source_id!r} with another content"
            raise InputError(f"{record.place}: {problem}; remove one of them. Nothing was imported")
        if progress and not count % WINDOW:
            progress(0, count)
    return count


def _to_state(engine: Engine, record: Record) -> State:
    if isinstance(record.value, EpisodeInput):
        return date_input(record.value, engine.driver.today)
    return declaration_of(record.value, engine).state


def _store(engine: Engine, window: Sequence[Record], namespace: str, *, read: bool) -> Flow[list[AddResult]]:
    """Store *window*, records that are all facts or all messages, and return a result for each of them.

    Errors: `InputError` for an invalid record; the records before it stay stored.
    """
    tally = Tally()
    taken: list[Record] = []

    def states() -> Iterator[State]:
        for record in window:
            taken.append(record)
            yield {**_to_state(engine, record), "namespace": namespace}

    if window[0].is_fact:
        yield from check_premises(declaration_of(record.value, engine) for record in window)
    try:
        if window[0].is_fact:
            yield from declare_states(engine, states(), namespace, tally)
            return tally.added
        if read:
            return (yield from add_inputs(engine, states(), namespace, tally))
        for state in states():
            tally.count(result_of_saving((yield from accept(state, engine.settings))))
    except InputError as error:
        raise InputError(f"{taken[-1].place}: {error}; the records before it stay: correct it, import again") from None
    return tally.added


def _replace_earlier(
    engine: Engine, record: Record, result: AddResult, namespace: str, left_out: Counter[str]
) -> Flow[None]:
    """Let the facts of a message, *record*, replace the facts of earlier versions of the message.

    If the new version states no fact, the earlier ones stay, and are counted in *left_out*.
    """
    episode = None if result.error else (yield from read_episode(result.episode))
    if episode is None:
        return
    seen = yield from belief_params(EVER, None)
    facts = yield from list_page(None, record.replaces, MOST_REPLACED, None, None, seen)
    policy = ConflictPolicy.from_settings(engine.settings)
    for fact in facts:
        if fact.invalid_at is None and all(source.at < episode.at for source in fact.sources):
            try:
                yield from replace_fact(fact.id, episode.id, (episode.source or "import", CHANGED), policy, namespace)
            except InputError:  # the new version states no fact
                left_out[STILL_HELD] += 1
