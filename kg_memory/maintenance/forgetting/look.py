"""What bears on forgetting some messages: read before anything is removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kg_memory.falkor.queries import facts as belief_cypher
from kg_memory.ingestion.receive import line
from kg_memory.maintenance.forgetting import cypher, sharing
from kg_memory.maintenance.forgetting.wording import Gone, forgotten, in_fact, in_names, names_left
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.tokenise import terms

Row = Mapping[str, Any]


@dataclass(slots=True)
class Ground:
    """What there is: the `episodes` that go, and what they or their neighbours mention and state.

    `names` are those that each entity has left, none where it goes too, and `said` the words that others than `gone`
    say of an entity or a fact. `redacted` are those of the episodes that stay, but for some characters, by their ids,
    as they are said then. `places` are the neighbours with the words that they carry from then on, and
    `threads` the stretches of conversation that were looked at, with how many episodes each has.
    """

    episodes: Sequence[Row]
    gone: Gone
    entities: dict[str, Row] = field(default_factory=dict)
    facts: dict[str, Row] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    said: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    redacted: Mapping[str, Row] = field(default_factory=dict)
    places: list[dict[str, Any]] = field(default_factory=list)
    threads: list[dict[str, Any]] = field(default_factory=list)

    @property
    def leaving(self) -> set[str]:
        """The entities that go: those that nobody mentions any more, or by no name that is left."""
        return {id_ for id_, names in self.names.items() if not names}

    def own(self, link: str) -> set[str]:
        """Return the entities that the episodes themselves `mention`, or the facts that they `state`."""
        return {id_ for each in self.episodes for id_ in each[link]}


def look(episodes: Sequence[Row], settings: Settings, redacted: Mapping[str, Row] | None = None) -> Flow[Ground]:
    """Return what bears on forgetting *episodes*, of which those *redacted* are said otherwise from then on."""
    gone = forgotten(episodes)
    ids = sorted(gone.ids)
    ground = Ground(episodes, gone, redacted=redacted or {})
    lines = yield from _neighbours(ground)
    places = [{name: each[name] for name in ("id", "thread_key", "at")} for each in episodes]
    followed = yield from read(cypher.READ_WITH, places=places, going=ids, limit=settings.previous_messages)
    near = sorted({*ids, *lines, *(row["id"] for row in followed)})
    mentioned = yield from read(cypher.MENTIONED, ids=near)
    stated = yield from read(cypher.STATED, ids=near)
    ground.episodes = [
        {**each, "mention": _links(mentioned, each["id"]), "state": _links(stated, each["id"])} for each in episodes
    ]
    for row in (*mentioned, *stated):
        ground.said[row["id"]].update(terms(line(lines[row["episode"]])) if row["episode"] in lines else ())
    aside = sorted({*ids, *lines})
    facts = {row["id"] for row in stated}
    yield from _entities(ground, {row["id"] for row in mentioned}, facts, aside)
    fewer = sorted(id_ for id_, names in ground.names.items() if names != _names(ground.entities[id_]))
    about = {row["id"] for row in (yield from read(cypher.ABOUT, ids=fewer))}
    yield from _entities(ground, (), about, aside)
    yield from _facts(ground, facts | about, aside)
    return ground


def add_ends(ground: Ground, facts: Iterable[str]) -> Flow[set[str]]:
    """Add the entities at the ends of *facts*, with all their names, and return them."""
    ends = {row["id"] for row in (yield from read(belief_cypher.REVISIONS_OF_FACTS, ids=sorted(facts)))}
    for row in (
        yield from read(cypher.ENTITIES, ids=sorted(ends - ground.entities.keys()), going=sorted(ground.gone.ids))
    ):
        ground.entities[row["id"]] = row
        ground.names[row["id"]] = _names(row)
    return ends


def _links(rows: Iterable[Row], episode: str) -> list[str]:
    return [row["id"] for row in rows if row["episode"] == episode]


def _names(entity: Row) -> list[str]:
    return [entity["name"], *entity["aliases"]]


def _neighbours(ground: Ground) -> Flow[dict[str, Row]]:
    """Find what the neighbours in each thread carry from then on, and return those neighbours by their ids."""
    by_thread: defaultdict[str, list[int]] = defaultdict(list)
    for each in ground.episodes:
        by_thread[each["thread_key"]].append(each["at"])
    found: dict[str, Row] = {}
    for key, times in sorted(by_thread.items()):
        stretch = {"key": key, "since": min(times) - sharing.REACH, "until": max(times) + sharing.REACH}
        thread = yield from read(cypher.THREAD, **stretch)
        ground.threads.append({**stretch, "size": len(thread)})
        if ground.redacted:
            carried = sharing.beside(thread, ground.redacted)
        else:
            carried = sharing.carriers(thread, ground.gone.ids)
        wanted = sorted({*carried, *(giver for own in carried.values() for giver in own)})
        lines = {row["id"]: row for row in (yield from read(cypher.EPISODES, ids=wanted))}
        lines |= {id_: {**lines[id_], "content": row["content"]} for id_, row in ground.redacted.items()}
        for id_, givers in carried.items():
            shared = [(lines[giver], weight, later) for giver, (weight, later) in sorted(givers.items())]
            ground.places.append(sharing.place(lines[id_], shared))
            if id_ not in ground.redacted:
                found[id_] = lines[id_]
    return found


def _entities(ground: Ground, mentioned: Iterable[str], facts: Iterable[str], aside: Sequence[str]) -> Flow[None]:
    """Add the entities that are *mentioned*, and those at the ends of *facts*, with the names that they have left."""
    ends = yield from read(belief_cypher.REVISIONS_OF_FACTS, ids=sorted(facts))
    missing = sorted({*mentioned, *(row["id"] for row in ends)} - ground.entities.keys())
    rows = yield from read(cypher.ENTITIES, ids=missing, going=sorted(ground.gone.ids))
    doubtful = {row["id"]: in_names(row, ground.gone) for row in rows}
    yield from _said(ground, cypher.SAID_OF_ENTITIES, doubtful, aside)
    for row in rows:
        ground.entities[row["id"]] = row
        left = names_left(row, ground.gone, ground.said)
        ground.names[row["id"]] = left if row["last_seen"] is not None else []


def _facts(ground: Ground, facts: Iterable[str], aside: Sequence[str]) -> Flow[None]:
    rows = yield from read(cypher.FACTS, ids=sorted(facts))
    ground.facts = {row["id"]: row for row in rows}
    doubtful = {row["id"]: in_fact(row, ground.gone) for row in rows}
    yield from _said(ground, cypher.SAID_OF_FACTS, doubtful, aside)


def _said(ground: Ground, query: str, doubtful: Mapping[str, set[str]], aside: Sequence[str]) -> Flow[None]:
    """Add which of the *doubtful* words of each others say too."""
    asked = [{"id": id_, "word": word} for id_, among in doubtful.items() for word in sorted(among)]
    for row in (yield from read(query, words=asked, aside=aside)):
        ground.said[row["id"]].add(row["word"])
