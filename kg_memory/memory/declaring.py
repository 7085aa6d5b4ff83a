"""Declare facts: store rows and JSON records of an application as facts, without asking a model.

Each row is stored as an episode of the kind ``fact``, and goes through the same ingestion steps as a message. All rows
are validated before the first is saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from itertools import chain
from reprlib import repr as short
from typing import Any, NamedTuple, TypedDict

from kg_memory.errors import InputError
from kg_memory.falkor.queries.premises import STORED
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.declared import DeclaredFact, to_content, validate_fact
from kg_memory.ingestion.receive import validate_episode
from kg_memory.ingestion.windows import ROUNDS, Window
from kg_memory.memory._verb import Engine
from kg_memory.memory.adding import State, Tally, read_inputs, to_result
from kg_memory.models.graph import EpisodeKind
from kg_memory.models.labels import read_labels
from kg_memory.models.operations import AddResult
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import fetch, run_graph, without_model, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant, iso_or_text

WINDOW = 256
"""The number of declared facts whose texts are embedded in one request."""
MOST_SHOWN = 5
"""The most invalid rows that an error message lists."""
EPISODE_FIELDS = frozenset("source source_id trust at expires_at labels".split())
"""The fields of a `FactRow` that belong to the episode which states the fact; `FACT_FIELDS` has the others."""
FactTime = date | int | str
"""When a fact begins or ends: a date, ISO 8601 text as exact as it is known (``"2024-05"``), or a year as a number."""
FactMapping = Row | Sequence[Row]
"""A mapping from a JSON record to one fact, or a list of such mappings; see `docs/declared.md` for their paths."""


class FactRow(TypedDict, total=False):
    """A fact that an application declares, as a dict; only `subject` and `predicate` are required.

    ``{"subject": "Ann", "predicate": "works at", "object": "Acme", "valid_at": "2024-05"}``. `valid_at` and
    `invalid_at`: when the fact began and ended. `at`: when it is stated; now if left out. `rests_on`: ids of facts on
    which it is based; when one of them ends, this fact becomes doubtful.
    """

    subject: str
    predicate: str
    object: str | Sequence[str] | None
    valid_at: FactTime | None
    invalid_at: FactTime | None
    sentence: str | None
    source: str | None
    source_id: str | None
    confidence: float
    trust: float
    at: date | str | None
    expires_at: date | str | None
    labels: Mapping[str, Any] | None
    subject_type: str | None
    object_type: str | None
    rests_on: Sequence[str] | None


FACT_FIELDS = FactRow.__annotations__.keys() - EPISODE_FIELDS
"""The fields of a `FactRow` that belong to the fact itself."""


class Declaration(NamedTuple):
    """Facts from an application, validated and ready to store."""

    state: State
    unmapped: tuple[str, ...] = ()
    premises: tuple[str, ...] = ()


class MappedRecord(NamedTuple):
    """The facts extracted from one JSON record."""

    facts: tuple[DeclaredFact, ...]
    unmapped: tuple[str, ...]
    episode: Row


ApplyMapping = Callable[[Any], MappedRecord]
"""A function that applies a mapping to one record."""


def declare_one(engine: Engine, row: Row, namespace: str) -> Flow[AddResult]:
    """Store one fact from an application without calling a model; return the changes of the graph."""
    return _add_declaration(engine, declaration_of(row, engine), namespace)


def _add_declaration(engine: Engine, declaration: Declaration, namespace: str) -> Flow[AddResult]:
    yield from check_premises([declaration])
    added = to_result((yield from run_graph(engine.ingestion, {**declaration.state, "namespace": namespace})))
    return added.model_copy(update={"unmapped": declaration.unmapped})


def declare_many(
    engine: Engine, rows: Iterable[Any], mapping: FactMapping | None, namespace: str, tally: Tally
) -> Flow[list[AddResult]]:
    """Store the facts of *rows*, and return one result for each row, in order.

    Errors: `InputError`.
    """
    apply = None if mapping is None else (yield from _open_mapping(mapping))
    declarations = yield from work(lambda: _validate_rows(rows, apply, engine))
    yield from check_premises(declarations)
    tally.unmapped = (declaration.unmapped for declaration in declarations)
    yield from declare_states(engine, (declaration.state for declaration in declarations), namespace, tally)
    return tally.added


def declare_states(engine: Engine, states: Iterable[State], namespace: str, tally: Tally) -> Flow[None]:
    """Store facts from an application without asking a model, and add each result to *tally*.

    Errors: `InputError`.
    """
    yield from without_model(read_inputs(engine, states, namespace, tally, Window(WINDOW // ROUNDS)))


def add_record(
    engine: Engine, content: str, kind: EpisodeKind | str, mapping: FactMapping, episode: Row, namespace: str
) -> Flow[AddResult]:
    """Store a JSON record and the facts that *mapping* extracts from it; return the changes of the graph.

    Errors: `InputError`.
    """
    if kind != EpisodeKind.JSON:
        raise InputError(f"kind must be 'json' with a mapping, got {short(str(kind))}; a mapping needs a JSON record")
    try:
        record = json.loads(content)
    except (ValueError, RecursionError, TypeError) as error:
        raise InputError(f"content must be JSON with a mapping, got {short(content)} ({error})") from None
    declaration = _map_record(record, (yield from _open_mapping(mapping)), episode, engine)
    return (yield from _add_declaration(engine, declaration, namespace))


# Rows


def _open_mapping(mapping: FactMapping) -> Flow[ApplyMapping]:
    record_mapping = yield from work(lambda: load_plugin("verbs", "mapping"))
    apply: ApplyMapping = record_mapping(mapping).apply
    return apply


def _validate_rows(rows: Iterable[Any], apply: ApplyMapping | None, engine: Engine) -> list[Declaration]:
    """Convert *rows* of facts to declarations, ready to store; raise one `InputError` for all invalid rows."""
    declarations: list[Declaration] = []
    problems: list[str] = []
    for number, row in enumerate(rows, start=1):
        try:
            declarations.append(_map_record(row, apply, {}, engine) if apply else declaration_of(row, engine))
        except InputError as error:
            problems.append(f"row {number}: {error}")
    if problems:
        left = len(problems) - MOST_SHOWN
        more = f"; and {left} more" if left > 0 else ""
        listed = "; ".join(problems[:MOST_SHOWN])
        raise InputError(f"rows must be valid facts: {listed}{more}; nothing was saved, correct these rows")
    return declarations


def declaration_of(row: Any, engine: Engine) -> Declaration:
    """Convert one *row*, a `FactRow` or a tuple ``(subject, predicate, object)``, to a validated episode.

    Errors: `InputError`.
    """
    if isinstance(row, tuple):
        row = dict(zip(("subject", "predicate", "object"), row, strict=False)) if len(row) in (2, 3) else None
    if not isinstance(row, Mapping):
        raise InputError(f"a fact must be a dict or a tuple (subject, predicate, object), got {short(row)}")
    if unknown := row.keys() - FACT_FIELDS - EPISODE_FIELDS:
        valid = ", ".join(sorted(FACT_FIELDS | EPISODE_FIELDS))
        raise InputError(f"a fact has unknown fields {sorted(map(str, unknown))}; use {valid}")
    fact = validate_fact(row)
    _check_entity_types(fact, engine.settings)
    return Declaration(
        _to_state([fact], None, {name: row.get(name) for name in EPISODE_FIELDS}, engine), (), fact.rests_on
    )


def _map_record(record: Any, apply: ApplyMapping, episode: Row, engine: Engine) -> Declaration:
    mapped = apply(record)
    for fact in mapped.facts:
        _check_entity_types(fact, engine.settings)
    fields = {**mapped.episode, **{name: value for name, value in episode.items() if value is not None}}
    premises = tuple(chain.from_iterable(fact.rests_on for fact in mapped.facts))
    return Declaration(_to_state(mapped.facts, record, fields, engine), mapped.unmapped, premises)


def check_premises(declarations: Iterable[Declaration]) -> Flow[None]:
    """Raise `InputError` if a fact on which one of *declarations* is based (an id in `rests_on`) is not stored."""
    ids = list(dict.fromkeys(chain.from_iterable(declaration.premises for declaration in declarations)))
    if not ids:
        return
    stored = {row["id"] for row in (yield from fetch(STORED, ids=ids))}
    if missing := [id_ for id_ in ids if id_ not in stored]:
        raise InputError(f"rests_on must be ids of stored facts, got {short(missing[0])}; add that fact first")


def _to_state(facts: Sequence[DeclaredFact], record: Any, episode: Row, engine: Engine) -> State:
    """Return the input of the ingestion graph for an episode that declares *facts*. Errors: `InputError`."""
    trust, at = episode.get("trust"), episode.get("at")
    state = {
        **episode,
        "content": to_content(facts, record),
        "kind": EpisodeKind.FACT.value,
        "at": (at.isoformat() if isinstance(at, date) else at) or iso_or_text(instant(engine.driver.today())),
        "expires_at": iso_or_text(episode.get("expires_at")),
        "trust": 1.0 if trust is None else trust,
        "labels": dict(read_labels(episode.get("labels"))) or None,
    }
    validate_episode(state, engine.settings, 0)
    return state


def _check_entity_types(fact: DeclaredFact, settings: Settings) -> None:
    names = {declared.name.casefold(): declared.name for declared in settings.entity_types}
    for field in ("subject_type", "object_type"):
        name = getattr(fact, field)
        if name is not None and name.casefold() not in names:
            valid = ", ".join(names.values())
            raise InputError(f"{field} must be one of {valid}, got {name!r}; declare it in Settings.entity_types")
