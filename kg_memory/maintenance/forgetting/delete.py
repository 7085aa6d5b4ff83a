"""Delete some messages, with all that only they support, in one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor import schema
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.postings import is_block, line
from kg_memory.ingestion.receive import validate_episode
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting.look import Impact, read_impact
from kg_memory.maintenance.forgetting.plan import Plan, plan_removal
from kg_memory.models.operations import Residue
from kg_memory.runtime.effects import embedding_model, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant

ATTEMPTS = 50
"""The most tries to write while others write about the same things."""
MARK = "[forgotten]"
"""The text in place of characters that were forgotten."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages to delete at once, with how those in *redactions* read then."""

    ids: Sequence[str]
    redactions: Mapping[str, Row] = field(default_factory=dict)


class Searcher(Protocol):
    """Searches a namespace for what is left of forgotten messages: a plug-in of the kind `searches`."""

    def gather(self, impact: Impact, parameters: Row) -> Flow[Any]:
        """Return the traces of what is about to be deleted by a query with *parameters*."""

    def add(self, traces: Any) -> None:
        """Add the *traces* of what was deleted."""

    def search(self) -> Flow[tuple[list[Residue], int]]:
        """Return the traces that are left, and the number of properties that were searched."""


@dataclass(slots=True)
class Deleted:
    """The ids of what went, or changed, in all batches so far, and the words of the messages that went."""

    episodes: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    restored: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    redacted: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    words: set[str] = field(default_factory=set)

    def add(self, impact: Impact, plan: Plan, time: int) -> None:
        """Add what *plan* does at that *time*."""
        parameters, beliefs = plan.parameters, plan.beliefs
        new_ids = [row["new_id"] for row in parameters["redacted"]]
        self.episodes += [episode["id"] for episode in impact.episodes]
        self.facts += plan.gone_facts
        self.entities += parameters["gone_entities"]
        self.restored.update(beliefs.restored)
        self.changed.update(beliefs.changed, (row["id"] for row in parameters["retold"]))
        self.unread.update(parameters["unread"])
        if not all(map(is_block, impact.episodes)):
            self.unread.update(new_ids)
        self.redacted += new_ids
        self.times.append(time)
        self.words |= impact.forgotten.words
        gone = {*self.facts, *self.entities, *(set(self.episodes) - set(new_ids))}
        for ids in (self.restored, self.changed, self.unread):
            ids.difference_update(gone)


def describe(impact: Impact, plan: Plan) -> dict[str, str]:
    """Return the text of everything that goes or changes, by its id."""
    episodes = {episode["id"]: line(episode) for episode in impact.episodes}
    facts = {id_: impact.facts[id_]["sentence"] for id_ in plan.gone_facts}
    entities = {id_: impact.entities[id_]["name"] for id_ in impact.gone_entities}
    return {**episodes, **facts, **entities, **plan.beliefs.sentences}


def plan_batch(batch: Batch, settings: Settings, namespace: str) -> Flow[tuple[Impact, Plan, int] | None]:
    """Return what deleting *batch* affects and does, and the time; nothing if none of its messages is there."""
    for _ in range(ATTEMPTS):
        times = yield from read(cypher.FORGOTTEN)
        try:
            episodes = yield from read(cypher.EPISODES, ids=list(batch.ids))
            if not episodes:
                return None
            impact = yield from read_impact(episodes, settings, batch.redactions)
            time = yield from now()
            plan = yield from plan_removal(impact, settings, namespace, time)
        except KeyError:  # others forget too: one query returned what a later one no longer has
            if (yield from read(cypher.FORGOTTEN)) == times:
                raise
            continue
        return impact, plan, time
    raise _gave_up()


def check_model() -> Flow[str]:
    """Return the embedding model. Errors: `EmbeddingMismatch` for vectors of another, also during a re-embedding."""
    model = yield from embedding_model()
    for meta in (yield from read(schema.READ_META)):
        schema.refuse_other_vectors(meta, model)
    return model


def delete_batch(
    batch: Batch, settings: Settings, namespace: str, deleted: Deleted, searcher: Searcher | None
) -> Flow[set[str]]:
    """Delete the messages of *batch*, and return all ids that went; add these to *deleted*, the traces to *searcher*.

    It is planned again where others changed something of it meanwhile.
    Errors: `EmbeddingMismatch` while the graph is being re-embedded, before anything is deleted.
    """
    for _ in range(ATTEMPTS):
        model = yield from check_model()
        planned = yield from plan_batch(batch, settings, namespace)
        if planned is None:
            return set()
        impact, plan, time = planned
        traces = (yield from searcher.gather(impact, plan.parameters)) if searcher else None
        if (yield from write(cypher.FORGET, **plan.parameters, model=model, now=time)):
            deleted.add(impact, plan, time)
            if searcher:
                searcher.add(traces)
            return find_gone_ids(impact, plan.parameters)
    raise _gave_up()


def _gave_up() -> DatabaseUnavailable:
    return DatabaseUnavailable(f"gave up forgetting after {ATTEMPTS} write conflicts; retry later")


def redact(id_: str, span: tuple[int, int], settings: Settings, namespace: str) -> Flow[dict[str, Row]]:
    """Return, by its id, the episode without the characters of *span*, with a new id: an id may reveal the text.

    Nothing, where another episode says just that already. Errors: `InputError` where it has no such characters.
    """
    rows = yield from read(cypher.WHOLE_EPISODE, id=id_)
    if not rows:
        return {}
    episode = rows[0]["episode"]
    start, end = span
    if episode["content"].startswith(MARK, start):
        raise InputError("the message has nothing left at this span: it is forgotten")
    if end > len(episode["content"]):
        raise InputError(f"span must end within the {len(episode['content'])} characters of the content, got {end}")
    content = episode["content"][:start] + MARK + episode["content"][end:]
    state = {**episode, "content": content, "at": instant(episode["at"]), "namespace": namespace}
    settings = settings.with_(max_content=max(settings.max_content, len(content)))
    try:
        redacted = validate_episode(state, settings, episode["created_at"])
    except InputError as error:
        raise InputError(f"without these characters {error}; of a JSON record give a span within one text") from error
    if redacted.id != id_ and (yield from read(cypher.WHOLE_EPISODE, id=redacted.id)):
        return {}
    return {id_: {"new_id": redacted.id, "content": redacted.content, "flags": redacted.flags}}


def find_gone_ids(impact: Impact, parameters: Row) -> set[str]:
    """Return the ids and keys of what is about to go."""
    kinds = ("episodes", "facts", "entities", "beliefs", "verdicts", "decisions")
    ids = set(chain.from_iterable(parameters[f"gone_{kind}"] for kind in kinds))
    ids.update(row["id"] for row in parameters["redacted"])
    ids.update(impact.entities[id_]["key"] for id_ in impact.gone_entities)
    ids.difference_update(row["new_id"] for row in parameters["redacted"])
    return ids
