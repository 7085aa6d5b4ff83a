"""Convert Graphiti's graph to the records of an export: facts become beliefs with both clocks, without a model.

An edge that Graphiti expired was believed to be open-ended until then, and to have ended since. If another edge of the
same entity begins where it ended, and was created when it expired, that edge ended it, and a verdict records so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

from kg_memory.contrib.importers.graphiti import Edge, Episode, Graph, read_database, read_dump, select_group
from kg_memory.falkor.connect import Database
from kg_memory.falkor.urls import SCHEMES
from kg_memory.falkor.wire import Row
from kg_memory.ingestion.postings import index_words
from kg_memory.ingestion.records import pick
from kg_memory.ingestion.revise import NewBelief
from kg_memory.maintenance.transfer.records import INDEXED, Node, Record, Relation
from kg_memory.memory.open import NamedServer
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.temporal.policy import Verdict
from kg_memory.temporal.statements import Statement
from kg_memory.temporal.truth import Period, truths
from kg_memory.text import predicates
from kg_memory.text.identity import (
    alias_key,
    belief_id,
    community_id,
    display_name,
    entity_id,
    entity_key,
    episode_id,
    fact_id,
    replace_unstorable,
    thread_key,
    verdict_id,
)

SOURCE = "graphiti"
SAME_UPDATE = 3600 * 1_000_000
"""Microseconds within which Graphiti creates an edge and expires those that it ends."""
_SPEAKER = re.compile(r"([^:\n]{1,60}): (.+)", re.DOTALL)


@dataclass(slots=True)
class _Fact:
    """A fact, its edges, and the episodes that state it."""

    subject: str
    object: str
    predicate: predicates.Predicate
    wording: str
    sentence: str
    edges: list[Edge] = field(default_factory=list)
    sources: dict[str, None] = field(default_factory=dict)


def convert_graphiti(source: str | Path, graph: str, group: str | None, namespace: str) -> Conversion:
    """Return Graphiti's *graph* in the database at the URL *source*, or the dump in that file, for *namespace*.

    *group* is the ``group_id`` to take, where there are several. Errors: `InputError`, `DatabaseError`.
    """
    if not str(source).startswith(SCHEMES):
        return Conversion(select_group(read_dump(Path(source)), group), namespace)
    server = Database(NamedServer(str(source)), allow_old=True)
    try:
        return Conversion(select_group(read_database(server, graph), group), namespace)
    finally:
        server.close()


@dataclass(slots=True)
class Conversion:
    """The conversion of *graph* to *namespace*; `left_out` counts elements that have no counterpart there."""

    graph: Graph
    namespace: str
    left_out: Counter[str] = field(default_factory=Counter)
    _keys: dict[str, str] = field(default_factory=dict)
    """The keys of entities by Graphiti's ids."""
    _entities: dict[str, str] = field(default_factory=dict)
    """Our ids of entities by Graphiti's."""
    _episodes: dict[str, Row] = field(default_factory=dict)
    """The fields of episodes by our ids."""
    _episode_ids: dict[str, str] = field(default_factory=dict)
    """Our ids of episodes by Graphiti's."""
    _facts: dict[str, _Fact] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _expired: dict[str, int] = field(default_factory=dict)
    """When facts that another ended expired."""

    def records(self) -> Iterator[Record]:
        """Yield the records: each refers to earlier ones."""
        self._keys = {entity.uuid: entity_key(display_name(entity.name), entity.type) for entity in self.graph.entities}
        self._entities = {uuid: entity_id(self.namespace, key) for uuid, key in self._keys.items()}
        self._convert_episodes()
        self._convert_edges()
        self._derive_verdicts()
        mentions = list(self._mentions())
        yield from self._entity_records(mentions)
        yield from self._episode_nodes()
        for episode, entity in dict.fromkeys(mentions):
            yield _relation("MENTIONS", episode, entity)
        for before, after in pairwise(self._episodes):
            yield _relation("NEXT", before, after)
        yield from self._fact_records()
        yield from self._community_records()

    def _convert_episodes(self) -> None:
        episodes = [
            _from_episode(episode, self.namespace) for episode in self.graph.episodes if (episode.content or "").strip()
        ]
        self.left_out["Episodic"] += len(self.graph.episodes) - len(episodes)
        uuids = {episode["source_id"] for episode in episodes}
        episodes += [_from_edge(edge, self.namespace) for edge in self.graph.edges if not uuids & {*edge.episodes}]
        episodes.sort(key=lambda episode: (episode["at"], episode["created_at"], episode["id"]))
        self._episodes = {episode["id"]: episode for episode in episodes}
        self._episode_ids = {episode["source_id"]: id_ for id_, episode in self._episodes.items()}

    def _convert_edges(self) -> None:
        keys, ids = self._keys, self._episode_ids
        for edge in self.graph.edges:
            if edge.source not in keys or edge.target not in keys:
                self.left_out["RELATES_TO"] += 1
                continue
            wording = predicates.predicate_name(edge.name or "")
            predicate = predicates.canonical_predicate(wording) or predicates.Predicate(wording, None, None)
            sentence = " ".join((edge.fact or edge.name or wording).split())
            id_ = fact_id(self.namespace, keys[edge.source], predicate.name, [keys[edge.target]], sentence)
            ends = (self._entities[edge.source], self._entities[edge.target])
            fact = self._facts.setdefault(id_, _Fact(*ends, predicate, wording, sentence))
            fact.edges.append(edge)
            stating = [ids[uuid] for uuid in edge.episodes if uuid in ids] or [ids[edge.uuid]]
            fact.sources |= dict.fromkeys(stating)

    def _derive_verdicts(self) -> None:
        """Find the facts that ended others."""
        beginning: defaultdict[tuple[str, int], list[tuple[str, Edge]]] = defaultdict(list)
        for id_, fact in self._facts.items():
            for edge in fact.edges:
                for end in {fact.subject, fact.object}:
                    if edge.valid_at is not None:
                        beginning[end, edge.valid_at].append((id_, edge))
        for id_, fact in self._facts.items():
            edge = fact.edges[0]
            until, expired = edge.invalid_at, edge.expired_at
            if len(fact.edges) > 1 or until is None or expired is None or (edge.valid_at or OPEN_START) >= until:
                continue
            delays: dict[str, int] = {}
            for new_id, new_edge in (*beginning[fact.subject, until], *beginning[fact.object, until]):
                delays[new_id] = abs(new_edge.created_at - expired)
            candidates = [(delay, new_id) for new_id, delay in delays.items() if new_id != id_ and delay < SAME_UPDATE]
            if candidates:
                new_id = min(candidates)[1]
                self._verdicts[verdict_id(self.namespace, new_id, id_)] = Verdict(new_id, id_, "supersedes", new_id)
                self._expired[id_] = expired

    def _mentions(self) -> Iterator[tuple[str, str]]:
        """Yield the episode and the entity of each mention: Graphiti's, and those of facts."""
        for mention in self.graph.mentions:
            if mention.source in self._episode_ids and mention.target in self._entities:
                yield self._episode_ids[mention.source], self._entities[mention.target]
        for fact in self._facts.values():
            for source in fact.sources:
                yield source, fact.subject
                yield source, fact.object

    def _entity_records(self, mentions: list[tuple[str, str]]) -> Iterator[Record]:
        times: defaultdict[str, list[int]] = defaultdict(list)
        for episode, entity in mentions:
            times[entity].append(self._episodes[episode]["at"])
        aliases: dict[str, str] = {}
        for node in self.graph.entities:
            id_, name = self._entities[node.uuid], display_name(node.name)
            if id_ in aliases:
                continue  # Graphiti has it twice: same name, same type
            if id_ not in times or not name:
                self.left_out["Entity"] += 1
                continue
            aliases[id_] = alias_key(name)
            yield _node(
                "Entity",
                id=id_,
                key=self._keys[node.uuid],
                name=name,
                type=display_name(node.type),
                aliases=[],
                summary=node.summary or "",
                first_seen=min(times[id_]),
                last_seen=max(times[id_]),
                created_at=node.created_at,
                revision=0,
            )
        for key in dict.fromkeys(aliases.values()):
            yield _node("Alias", key=key)
        for id_, key in aliases.items():
            yield _relation("NAMES", key, id_)

    def _episode_nodes(self) -> Iterator[Record]:
        words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        episodes = list(self._episodes.values())
        for place, episode in enumerate(episodes):
            _, postings = index_words(episode, episodes[max(place - 2, 0) : place][::-1], ())
            for posting in postings:
                for occurrence in posting["in"]:
                    words[occurrence["id"]][posting["term"]] += occurrence["f"]
        for episode in episodes:
            fields = {name: value for name, value in episode.items() if value is not None}
            counts = words[episode["id"]]
            yield _node("Episode", words=dict(sorted(counts.items())), n=counts.total(), **fields)

    def _fact_records(self) -> Iterator[Record]:
        statements = {id_: list(self._statements(id_, fact)) for id_, fact in self._facts.items()}
        truth = truths(chain.from_iterable(statements.values()), [*self._verdicts.values()])
        for id_, fact in self._facts.items():
            yield _fact_node(id_, fact, statements[id_])
        for id_, own in statements.items():
            for statement in own:
                span = {"start": 0, "end": len(self._episodes[statement.id]["content"])}
                dates = pick(statement, "valid_at", "invalid_at", "precision", "end_precision")
                kind = {"latest": statement.valid_at, **pick(statement, "confidence", "corrects"), "refuted": False}
                yield _relation("STATES", statement.id, id_, **span, **dates, **kind)
        beliefs = [
            belief
            for id_, fact in self._facts.items()
            for belief in self._beliefs(id_, fact, truth[id_].periods, statements[id_])
        ]
        for belief in beliefs:
            yield _node("Belief", **belief["belief"])
        for belief in beliefs:
            yield _relation("HELD", belief["fact"], belief["belief"]["id"])
        for id_, verdict in self._verdicts.items():
            yield _node(
                "Verdict",
                id=id_,
                new=verdict.new,
                known=verdict.existing,
                kind="supersedes",
                ruling="supersedes",
                created_at=self._expired[verdict.existing],
                confidence=1.0,
                holds="new",
                reason="Graphiti expired it then",
                episode=next(iter(self._facts[verdict.new].sources)),
            )
        for id_, verdict in self._verdicts.items():
            yield _relation("JUDGED", verdict.new, id_)
            yield _relation("JUDGED", verdict.existing, id_)

    def _statements(self, id_: str, fact: _Fact) -> Iterator[Statement]:
        """Yield the statements of episodes; they did not state an end that another fact brought."""
        for since, until in dict.fromkeys(map(_dates, fact.edges)):
            for source in fact.sources:
                stated_at, arrived_at = (self._episodes[source][name] for name in ("at", "created_at"))
                ends = OPEN_END if id_ in self._expired else until
                yield Statement(id_, source, stated_at, since, ends, arrived_at=arrived_at)

    def _beliefs(
        self, id_: str, fact: _Fact, periods: tuple[Period, ...], statements: list[Statement]
    ) -> Iterator[Row]:
        """Yield the beliefs before Graphiti expired the fact, and those of now."""
        created = min(edge.created_at for edge in fact.edges)
        expired = [edge.expired_at for edge in fact.edges if edge.expired_at is not None]
        changed = min(expired) if len(expired) == len(fact.edges) and min(expired) > created else None
        if changed is not None:
            since = _dates(fact.edges[0])[0]
            stated = [statement.stated_at for statement in statements]
            known_from = min(stated) if since == OPEN_START else since
            former = Period(since, OPEN_END, max(stated), known_from)
            yield self._belief(id_, statements, former, (created, changed))
        for period in periods:
            yield self._belief(id_, statements, period, (changed or created, OPEN_END))

    def _belief(self, id_: str, statements: list[Statement], period: Period, believed: tuple[int, int]) -> Row:
        cause, (created, expired) = _first(statements).id, believed
        times = (period.valid_at, period.invalid_at, created, expired)
        row = NewBelief(id_, belief_id(self.namespace, id_, cause, *times), period, cause).to_row()
        return {**row, "belief": {**row["belief"], "created_at": created, "expired_at": expired}}

    def _community_records(self) -> Iterator[Record]:
        members: defaultdict[str, dict[str, None]] = defaultdict(dict)
        linked = {end for fact in self._facts.values() for end in (fact.subject, fact.object)}
        for membership in self.graph.members:
            if self._entities.get(membership.target) in linked:
                members[membership.source][self._entities[membership.target]] = None
        created = {self._entities[entity.uuid]: entity.created_at for entity in reversed(self.graph.entities)}
        assigned: set[str] = set()
        communities: dict[str, list[str]] = {}
        for community in self.graph.communities:
            own = [entity for entity in members[community.uuid] if entity not in assigned]
            if not own or not display_name(community.name):
                self.left_out["Community"] += 1
                continue
            id_ = community_id(self.namespace, min(own, key=lambda entity: (created[entity], entity)))
            assigned |= {*own}
            communities[id_] = own
            summary, name = " ".join((community.summary or "").split()), display_name(community.name)
            yield _node("Community", id=id_, name=name, summary=summary, fingerprint="", level=0)
        for id_, own in communities.items():
            for entity in own:
                yield _relation("HAS_MEMBER", id_, entity)


def _node(label: str, ends: list[str] | None = None, words: dict[str, float] | None = None, **properties: Any) -> Node:
    embedding: Literal[True] | None = True if label in INDEXED else None
    return Node(label=label, properties=properties, ends=ends or [], words=words, embedding=embedding)


def _relation(type_: str, source: str, target: str, **properties: Any) -> Relation:
    return Relation(type=type_, source=source, target=target, properties=properties)


def _fact_node(id_: str, fact: _Fact, statements: list[Statement]) -> Node:
    first, stated = _first(statements), [statement.stated_at for statement in statements]
    optional: dict[str, Any] = {} if fact.predicate.family is None else {"family": fact.predicate.family}
    return _node(
        "Fact",
        ends=[fact.subject, fact.object],
        id=id_,
        predicate=fact.predicate.name,
        wording=fact.wording,
        sentence=fact.sentence,
        confidence=1.0,
        edge_type="semantic",
        created_at=min(edge.created_at for edge in fact.edges),
        told_at=first.stated_at,
        told_by=first.id,
        said_at=max(stated),
        told_end=False,
        **optional,
    )


def _first(statements: list[Statement]) -> Statement:
    return min(statements, key=lambda statement: statement.order)


def _from_episode(episode: Episode, namespace: str) -> Row:
    kind = episode.source if episode.source in ("text", "json") else "message"
    content = episode.content or ""
    speaker, match = None, _SPEAKER.fullmatch(content.strip())
    content = replace_unstorable(content)
    if kind == "message" and match and not _SPEAKER.search(match[2]):
        speaker, content = " ".join(match[1].split()), match[2]
    fields = {"kind": kind, "speaker": speaker, "created_at": episode.created_at}
    return _episode_fields(episode.uuid, content, episode.valid_at, namespace) | fields


def _from_edge(edge: Edge, namespace: str) -> Row:
    """Return an episode that states a fact for which Graphiti has no episode."""
    at = edge.created_at if edge.valid_at is None else edge.valid_at
    content = edge.fact or edge.name or predicates.predicate_name("")
    fields = {"kind": "text", "created_at": edge.created_at}
    return _episode_fields(edge.uuid, content, at, namespace) | fields


def _episode_fields(uuid: str, content: str, at: int, namespace: str) -> Row:
    return {
        "id": episode_id(namespace, ("id", SOURCE, uuid)),
        "content": content,
        "speaker": None,
        "at": at,
        "offset": 0,
        "source": SOURCE,
        "source_id": uuid,
        "thread_key": thread_key(None),
        "status": "done",
        "plan": SOURCE,
        "trust": 1.0,
        "attempts": 0,
        "flags": [],
    }


def _dates(edge: Edge) -> tuple[int, int]:
    """Return when the fact was true; one that expired without an end ended when it expired."""
    until = edge.invalid_at if edge.invalid_at is not None else edge.expired_at
    since = OPEN_START if edge.valid_at is None else edge.valid_at
    if until is not None and until <= since:
        since = OPEN_START
    return since, OPEN_END if until is None else until
