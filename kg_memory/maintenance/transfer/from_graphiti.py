"""Graphiti's graph as the lines of an export: its facts become beliefs with both clocks, without asking a model.

An edge that Graphiti expired was believed to go on until then, and to have ended since. Where another edge of the same
entity begins where it ended, and came at that time, that is what ended it: a verdict says so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kg_memory.ingestion.receive import indexed
from kg_memory.maintenance.transfer.graphiti import Edge, Episode, Graph
from kg_memory.maintenance.transfer.lines import LINES, Line
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
SOON = 3600 * 1_000_000
"""Microseconds within which Graphiti writes down an edge and what it ends."""
_SPOKEN = re.compile(r"([^:\n]{1,60}): (.+)", re.DOTALL)


@dataclass(slots=True)
class _Fact:
    """A fact, the edges that tell it, and the episodes that state it."""

    subject: str
    object: str
    predicate: predicates.Predicate
    wording: str
    sentence: str
    edges: list[Edge] = field(default_factory=list)
    sources: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Conversion:
    """The lines of *graph* in *namespace*; `left_out` counts what has no place there."""

    graph: Graph
    namespace: str
    left_out: Counter[str] = field(default_factory=Counter)
    _entities: dict[str, str] = field(default_factory=dict)
    """Our ids by Graphiti's."""
    _episodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    _facts: dict[str, _Fact] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _ended: dict[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[Line]:
        """Yield the lines in the order of an export."""
        keyed = {each.uuid: entity_key(display_name(each.name), each.type) for each in self.graph.entities}
        self._entities = {uuid: entity_id(self.namespace, key) for uuid, key in keyed.items()}
        self._read_episodes()
        self._read_facts(keyed)
        self._link()
        mentions = self._mentions()
        yield from self._entity_lines(keyed, mentions)
        yield from self._episode_lines()
        for episode, entity in dict.fromkeys(mentions):
            yield _line("mention", episode=episode, entity=entity)
        ids = list(self._episodes)
        for before, after in pairwise(ids):
            yield _line("next", before=before, after=after)
        yield from self._fact_lines()
        yield from self._community_lines()

    def _read_episodes(self) -> None:
        told = [_episode(each, self.namespace) for each in self.graph.episodes if (each.content or "").strip()]
        self.left_out["Episodic"] += len(self.graph.episodes) - len(told)
        known = {each["source_id"] for each in told}
        told += [_made_up(edge, self.namespace) for edge in self.graph.edges if not known & {*edge.episodes}]
        told.sort(key=lambda each: (each["at"], each["created_at"], each["id"]))
        self._episodes = {each["id"]: each for each in told}

    def _read_facts(self, keyed: Mapping[str, str]) -> None:
        ours = {each["source_id"]: id_ for id_, each in self._episodes.items()}
        for edge in self.graph.edges:
            if edge.one not in keyed or edge.other not in keyed:
                self.left_out["RELATES_TO"] += 1
                continue
            wording = predicates.predicate_name(edge.name or "")
            known = predicates.canonical_predicate(wording) or predicates.Predicate(wording, None, None)
            sentence = " ".join((edge.fact or edge.name or wording).split())
            id_ = fact_id(self.namespace, keyed[edge.one], known.name, [keyed[edge.other]], sentence)
            ends = (self._entities[edge.one], self._entities[edge.other])
            fact = self._facts.setdefault(id_, _Fact(*ends, known, wording, sentence))
            fact.edges.append(edge)
            stating = [ours[uuid] for uuid in edge.episodes if uuid in ours] or [ours[edge.uuid]]
            fact.sources |= dict.fromkeys(stating)

    def _link(self) -> None:
        """Find what ended what."""
        begun: defaultdict[tuple[str, int], list[tuple[str, Edge]]] = defaultdict(list)
        for id_, fact in self._facts.items():
            for edge in fact.edges:
                for end in {fact.subject, fact.object}:
                    if edge.valid_at is not None:
                        begun[end, edge.valid_at].append((id_, edge))
        for id_, fact in self._facts.items():
            edge = fact.edges[0]
            until, expired = edge.invalid_at, edge.expired_at
            if len(fact.edges) > 1 or until is None or expired is None or (edge.valid_at or OPEN_START) >= until:
                continue
            new = {other: abs(each.created_at - expired)
                   for end in (fact.subject, fact.object) for other, each in begun[end, until]}  # fmt: skip
            near = [(apart, other) for other, apart in new.items() if other != id_ and apart < SOON]
            if near:
                by = min(near)[1]
                self._verdicts[verdict_id(self.namespace, by, id_)] = Verdict(by, id_, "supersedes", by)
                self._ended[id_] = expired

    def _mentions(self) -> list[tuple[str, str]]:
        ours = {each["source_id"]: id_ for id_, each in self._episodes.items()}
        told = [(ours[each.one], self._entities[each.other]) for each in self.graph.mentions
                if each.one in ours and each.other in self._entities]  # fmt: skip
        stated = [(source, end) for fact in self._facts.values() for source in fact.sources
                  for end in (fact.subject, fact.object)]  # fmt: skip
        return [*told, *stated]

    def _entity_lines(self, keyed: Mapping[str, str], mentions: list[tuple[str, str]]) -> Iterator[Line]:
        seen: defaultdict[str, list[int]] = defaultdict(list)
        for episode, entity in mentions:
            seen[entity].append(self._episodes[episode]["at"])
        written: dict[str, str] = {}
        for each in self.graph.entities:
            id_ = self._entities[each.uuid]
            if id_ in written:
                continue  # Graphiti has it twice: same name, same type
            if id_ not in seen or not display_name(each.name):
                self.left_out["Entity"] += 1
                continue
            written[id_] = alias_key(display_name(each.name))
            yield _line(
                "entity", id=id_, key=keyed[each.uuid],
                name=display_name(each.name), type=display_name(each.type), aliases=[],
                summary=each.summary or "", first_seen=min(seen[id_]), last_seen=max(seen[id_]),
                created_at=each.created_at, revision=0, embedding=True,
            )  # fmt: skip
        for id_, key in written.items():
            yield _line("alias", key=key, entity=id_)

    def _episode_lines(self) -> Iterator[Line]:
        words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        told = list(self._episodes.values())
        for place, each in enumerate(told):
            _, postings = indexed(each, told[max(place - 2, 0) : place][::-1], ())
            for posting in postings:
                for there in posting["in"]:
                    words[there["id"]][posting["term"]] += there["f"]
        for each in told:
            fields = {name: value for name, value in each.items() if value is not None}
            yield _line("episode", **fields, words=dict(sorted(words[each["id"]].items())), embedding=True)

    def _fact_lines(self) -> Iterator[Line]:
        stated = {id_: list(self._statements(id_, fact)) for id_, fact in self._facts.items()}
        held = truths((each for own in stated.values() for each in own), [*self._verdicts.values()])
        for id_, fact in self._facts.items():
            first = min(stated[id_], key=lambda each: each.order)
            optional = {} if fact.predicate.family is None else {"family": fact.predicate.family}
            yield _line(
                "fact", id=id_, subject=fact.subject, objects=[fact.object], predicate=fact.predicate.name,
                wording=fact.wording, sentence=fact.sentence, confidence=1.0, edge_type="semantic",
                created_at=min(each.created_at for each in fact.edges), told_at=first.stated_at, told_by=first.id,
                said_at=max(each.stated_at for each in stated[id_]), told_end=False, embedding=True, **optional,
            )  # fmt: skip
        for id_, own in stated.items():
            for each in own:
                yield _line(
                    "statement", episode=each.id, fact=id_, start=0, end=len(self._episodes[each.id]["content"]),
                    valid_at=each.valid_at, invalid_at=each.invalid_at, latest=each.valid_at, confidence=1.0,
                    corrects=False, refuted=False, precision="instant", end_precision="instant",
                )  # fmt: skip
        for id_, fact in self._facts.items():
            yield from self._beliefs(id_, fact, held[id_].periods, stated[id_])
        for id_, verdict in self._verdicts.items():
            yield _line(
                "verdict", id=id_, new=verdict.new, known=verdict.existing, kind="supersedes", ruling="supersedes",
                created_at=self._ended[verdict.existing], confidence=1.0, holds="new",
                reason="Graphiti expired it then",
                episode=next(iter(self._facts[verdict.new].sources)),
            )  # fmt: skip

    def _statements(self, id_: str, fact: _Fact) -> Iterator[Statement]:
        """Yield what the episodes say; an end that another fact brought is not what they said."""
        for since, until in dict.fromkeys(_dates(each) for each in fact.edges):
            for source in fact.sources:
                said_at = self._episodes[source]["at"]
                yield Statement(id_, source, said_at, since, OPEN_END if id_ in self._ended else until)

    def _beliefs(
        self, id_: str, fact: _Fact, periods: tuple[Period, ...], stated: list[Statement]
    ) -> Iterator[Line]:  # fmt: skip
        """Yield what was believed before Graphiti expired the fact, and what is now."""
        created = min(each.created_at for each in fact.edges)
        expired = [each.expired_at for each in fact.edges if each.expired_at is not None]
        changed = min(expired) if len(expired) == len(fact.edges) and min(expired) > created else None
        if changed is not None:
            since = _dates(fact.edges[0])[0]
            known = min(each.stated_at for each in stated) if since == OPEN_START else since
            said_at = max(each.stated_at for each in stated)
            yield self._belief(id_, stated, Period(since, OPEN_END, said_at, known), (created, changed))
        for period in periods:
            yield self._belief(id_, stated, period, (changed or created, OPEN_END))

    def _belief(self, id_: str, stated: list[Statement], period: Period, clock: tuple[int, int]) -> Line:
        cause = min(stated, key=lambda each: each.order).id
        return _line(
            "belief", id=belief_id(self.namespace, id_, cause, period.valid_at, period.invalid_at, *clock), fact=id_,
            proposed=False, valid_at=period.valid_at, invalid_at=period.invalid_at, known_from=period.known_from,
            said_at=period.stated_at, precision=period.precision, end_precision=period.end_precision,
            created_at=clock[0], expired_at=clock[1], cause=cause,
        )  # fmt: skip

    def _community_lines(self) -> Iterator[Line]:
        members: defaultdict[str, dict[str, None]] = defaultdict(dict)
        known = {end for fact in self._facts.values() for end in (fact.subject, fact.object)}
        for each in self.graph.members:
            if self._entities.get(each.other) in known:
                members[each.one][self._entities[each.other]] = None
        created = {self._entities[each.uuid]: each.created_at for each in reversed(self.graph.entities)}
        taken: dict[str, str] = {}
        told: dict[str, list[str]] = {}
        for community in self.graph.communities:
            own = [each for each in members[community.uuid] if each not in taken]
            if not own or not display_name(community.name):
                self.left_out["Community"] += 1
                continue
            id_ = community_id(self.namespace, min(own, key=lambda each: (created[each], each)))
            taken |= dict.fromkeys(own, id_)
            told[id_] = own
            summary = " ".join((community.summary or "").split())
            yield _line("community", id=id_, name=display_name(community.name), summary=summary, fingerprint="",
                        embedding=True)  # fmt: skip
        for id_, own in told.items():
            for entity in own:
                yield _line("member", community=id_, entity=entity)


def _line(record: str, **fields: Any) -> Line:
    return LINES[record].model_construct(record=record, **fields)


def _episode(each: Episode, namespace: str) -> dict[str, Any]:
    kind = each.source if each.source in ("text", "json") else "message"
    content, spoken = replace_unstorable(each.content or ""), _SPOKEN.fullmatch((each.content or "").strip())
    speaker = None
    if kind == "message" and spoken and not _SPOKEN.search(spoken[2]):
        speaker, content = " ".join(spoken[1].split()), spoken[2]
    return _stored(each.uuid, content, each.valid_at, namespace) | {
        "kind": kind, "speaker": speaker, "created_at": each.created_at,
    }  # fmt: skip


def _made_up(edge: Edge, namespace: str) -> dict[str, Any]:
    """Return an episode that states a fact for which Graphiti has none."""
    at = edge.created_at if edge.valid_at is None else edge.valid_at
    content = edge.fact or edge.name or predicates.predicate_name("")
    return _stored(edge.uuid, content, at, namespace) | {"kind": "text", "created_at": edge.created_at}


def _stored(uuid: str, content: str, at: int, namespace: str) -> dict[str, Any]:
    return {
        "id": episode_id(namespace, ("id", SOURCE, uuid)), "content": content, "speaker": None, "at": at, "offset": 0,
        "source": SOURCE, "source_id": uuid, "thread_key": thread_key(None), "status": "done", "plan": SOURCE,
        "trust": 1.0, "attempts": 0, "flags": [],
    }  # fmt: skip


def _dates(edge: Edge) -> tuple[int, int]:
    """Return when the fact was so; one that was expired without an end ended then."""
    until = edge.invalid_at if edge.invalid_at is not None else edge.expired_at
    since = OPEN_START if edge.valid_at is None else edge.valid_at
    if until is not None and until <= since:
        since = OPEN_START
    return since, OPEN_END if until is None else until
