"""The third retriever: find candidates along the graph, around the entities of a question.

A walk follows the facts that hold at the time of the question, in both directions, and reaches each entity once, in one
database read. A fact that a retriever found scores the sum of the weights of its entities. An episode scores by the
facts that it states, by its speaker, and by the entities that it mentions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from kg_memory.falkor.queries import features as cypher
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import Kind
from kg_memory.retrieval.answerable import NEAREST
from kg_memory.retrieval.ranking import (
    NO_HITS,
    Activity,
    Hits,
    Hops,
    Instants,
    Link,
    Links,
    Part,
    Walk,
    ids_of,
    positive,
    sort_scores,
)
from kg_memory.retrieval.retrievers import Scope, filter_hits, rarity
from kg_memory.runtime.effects import Vector, fetch, in_step, read_if
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import OPEN_END, OPEN_START
from kg_memory.text.identity import alias_key, is_assistant

if TYPE_CHECKING:
    from kg_memory.retrieval.recipe import Recipe

HIT_SEEDS = 3
"""The number of best entities by words, and by meaning, from which the walk starts: see `Origins.seeds`."""
HIT_WEIGHT = 0.25
"""The weight of a start that was found or mentioned recently; a start that the question names has 1."""
PART_WEIGHT = 0.8
"""The weight of entities inside a named place or thing, relative to it: of Montmartre if the question names Paris."""
SELDOM = 50
"""The most mentions of an entity whose name is looked for in the sentences of facts."""
STATED_SHARE = 0.5
"""The share of the best stated fact in the score of an episode; the rest is its speaker and mentions."""
MENTIONED = 0.25
"""The weight of an episode that mentions a named entity; an episode that the entity itself spoke has 1."""
PERSON = 0.6
"""The weight of an episode that a person spoke, if assistants speak too: these seldom say anything about a person."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The entities from which a graph search starts: named in the question, or mentioned in the latest messages.

    *parts*: ids of the entities in a place, by its id (Paris -> Montmartre). *seeds*: the best entities found.
    """

    named: Sequence[Row]
    recent: Sequence[Row]
    parts: Mapping[str, Sequence[str]]
    episodes: int
    seeds: Hits = NO_HITS

    @property
    def name_hashes(self) -> dict[str, Sequence[str]]:
        """Hashes of the names by which the question names each entity, by id; () for one in a place that it names."""
        inner = {part: () for row in self.named for part in self.parts.get(row["id"], ())}
        return inner | {row["id"]: row["keys"] for row in self.named}

    @property
    def things(self) -> list[str]:
        """The ids of the named entities that are not people, and of the entities located in named places."""
        people = {row["id"] for row in self.named if row["type"] == "Person"}
        return [id_ for id_ in self.name_hashes if id_ not in people]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts, entities, communities and episodes in the graph near the first search results.

    `activity`, `communities`: how near entities and communities are to the start, as weights by id.
    """

    links: Links
    activity: Activity
    communities: Mapping[str, float]
    named: Mapping[str, Sequence[str]]
    episodes: Mapping[str, Row]


def look_around(
    hits: Mapping[Kind, Hits],
    recipe: Recipe,
    scopes: Mapping[Kind, Scope],
    origins: Origins,
    vector: Vector | None,
    instants: Instants,
    *,
    statements: bool = True,
    episode_details: bool = True,
) -> Flow[Surroundings]:
    """Return the facts, entities, communities and episodes in the graph near the search results *hits*."""
    walks = any(recipe.weights(kind).graph for kind in scopes)
    start: dict[str, float] = {}
    if walks:
        start = find_seeds(origins)
        if find_starts := getattr(recipe.traversal, "find_starts", None):
            found = yield from find_starts(hits)
            start = found | {id_: max(weight, found.get(id_, 0.0)) for id_, weight in start.items()}
    by_community = start if recipe.weights("communities").graph else {}
    facts = hits["facts"].searched if walks or statements else ()
    episodes = hits["episodes"] if walks or episode_details else NO_HITS
    (links, named), details, walked, communities = yield from in_step(
        (
            read_fact_links(facts, origins.things if walks else (), instants),
            _read_details(episodes, origins.name_hashes if walks else {}, vector),
            walk_from(recipe.traversal, start, instants),
            score_communities(by_community),
        )
    )
    near, activity = walked
    return Surroundings({**links, **near}, activity, communities, named, details)


def add_graph_hits(
    hits: Mapping[Kind, Hits], recipe: Recipe, scopes: Mapping[Kind, Scope], origins: Origins, around: Surroundings
) -> Flow[dict[Kind, Hits]]:
    """Return *hits*, search results by kind, with the results of the search along the graph added."""
    hits = dict(hits)
    kinds = [kind for kind in scopes if recipe.weights(kind).graph]
    if not kinds:
        return hits
    facts = weigh_facts(around.links, around.activity)
    for id_, entities in around.named.items():
        facts[id_] = facts.get(id_, 0.0) + sum(around.activity.get(entity, 0.0) for entity in entities)
    near: dict[Kind, Mapping[str, float]] = {
        "facts": facts,
        "entities": around.activity,
        "communities": around.communities,
    }
    passed = yield from filter_hits(scopes, {kind: positive(near[kind]) for kind in kinds if kind in near})
    hits |= {kind: replace(hits[kind], graph=scores) for kind, scores in passed.items()}
    if "episodes" in kinds:
        stating = dict(recipe.fuse("facts", hits["facts"])[: scopes["episodes"].limit])
        statements = yield from _read_statements(stating, around.links)
        scores = score_episodes(stating, statements, origins.name_hashes, around.episodes)
        passed = yield from filter_hits(scopes, {"episodes": positive(scores)})
        hits["episodes"] = replace(hits["episodes"], graph=passed["episodes"])
    return hits


def find_seeds(origins: Origins) -> dict[str, float]:
    """Return the start entities of a graph search, ``{id: weight}``: rare entities named in the question weigh most."""
    rare = {row["id"]: rarity(row["mentions"], origins.episodes) for row in (*origins.recent, *origins.named)}
    named = {row["id"] for row in origins.named}
    weights = {id_: weight * (1.0 if id_ in named else HIT_WEIGHT) for id_, weight in rare.items()}
    for whole in named & origins.parts.keys():
        for part in origins.parts[whole]:
            weights[part] = max(weights.get(part, 0.0), weights[whole] * PART_WEIGHT)
    for id_ in origins.seeds.searched:
        weights.setdefault(id_, HIT_WEIGHT)
    return weights


def walk_from(walk: Walk, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
    """Follow facts from the entities *start*; return the facts and the weights of entities reached, by id."""
    return (yield from walk.walk(start, instants)) if start else ({}, {})


def read_fact_links(
    ids: Sequence[str], things: Sequence[str], instants: Instants
) -> Flow[tuple[Links, dict[str, Sequence[str]]]]:
    """Return the facts *ids* and the facts whose sentence names one of *things*; and the entities named, by fact id."""
    if not ids and not things:
        return {}, {}
    params = {"things": list(things), "most": SELDOM, **instants.params} if things else {}
    rows = yield from fetch(cypher.facts_with_links(things=bool(things)), ids=list(ids), **params)
    row: Row = rows[0] if rows else {"links": "", "statements": "", "named": ()}
    statements = parse_statements(row["statements"])
    links, named = parse_links(row["links"], statements), dict(row["named"])
    unlinked = {id_: Link("", (), statements.get(id_, {})) for id_ in named if id_ not in links}
    return {**unlinked, **links}, named


def _read_details(episodes: Hits, named: Mapping[str, Sequence[str]], vector: Vector | None) -> Flow[dict[str, Row]]:
    """Return a database row for each of the found messages *episodes*, by id: ``{"m1": {"speaker": "Ann", ...}}``."""
    nearest = ids_of(episodes.meaning)[:NEAREST]
    query = cypher.episode_details(mentions=bool(named), nearness=vector is not None and bool(nearest))
    params = {"entities": list(named), "nearest": nearest, "vector": vector}
    return {row["id"]: row for row in (yield from read_if(episodes.searched, query, ids=episodes.searched, **params))}


def _read_statements(facts: Iterable[str], links: Links) -> Flow[Mapping[str, Mapping[str, str | None]]]:
    """Return the messages that state each of *facts*, with their speakers: ``{fact id: {message id: speaker}}``."""
    known = {id_: links[id_].statements for id_ in facts if id_ in links}
    missing = [id_ for id_ in facts if known.get(id_) is None]
    rows = yield from read_if(missing, cypher.facts_with_links(), ids=missing)
    more = parse_statements(rows[0]["statements"]) if rows else {}
    return {**{id_: stated for id_, stated in known.items() if stated is not None}, **more}


def weigh_facts(links: Links, weights: Mapping[str, float]) -> dict[str, float]:
    """Return ``{fact id: score}`` for *links* (facts by id): the sum of the *weights* of its entities, if above 0."""
    scores = {}
    for id_, link in links.items():
        score = sum([weights[entity] for entity in link.entities if entity in weights])
        if score > 0:
            scores[id_] = score
    return scores


def score_communities(start: Mapping[str, float]) -> Flow[dict[str, float]]:
    """Return ``{community id: score}``: for each community, the sum of the weights of its members in *start*."""
    rows = yield from read_if(start, cypher.COMMUNITIES_OF, ids=list(start))
    return {row["id"]: sum(start[id_] for id_ in row["entities"]) for row in rows}


def score_episodes(
    facts: Mapping[str, float],
    statements: Mapping[str, Mapping[str, str | None]],
    named: Mapping[str, Sequence[str]],
    candidates: Mapping[str, Row],
) -> dict[str, float]:
    """Return ``{episode id: score}`` for the episodes that state *facts* or concern a *named* entity."""
    shares: dict[str, float] = {}
    speaker_of = {id_: row["speaker"] for id_, row in candidates.items()}
    for fact, score in facts.items():
        for episode, speaker in statements.get(fact, {}).items():
            shares[episode] = max(shares.get(episode, 0.0), score)
            speaker_of.setdefault(episode, speaker)
    mentioning = {id_ for id_, row in candidates.items() if row["mentions"]}
    spoken = _find_spoken(named, speaker_of)
    people = _find_people(speaker_of)
    scores = {}
    for id_ in {*shares, *mentioning, *spoken, *people}:
        by = 1.0 if id_ in spoken else PERSON if id_ in people else MENTIONED if id_ in mentioning else 0.0
        scores[id_] = STATED_SHARE * shares.get(id_, 0.0) + (1 - STATED_SHARE) * by
    return scores


def _find_spoken(named: Mapping[str, Sequence[str]], speakers: Mapping[str, str | None]) -> set[str]:
    """Return the ids of messages with a speaker in *named* (name hashes by id); *speakers*: by message id."""
    keys = {key for own in named.values() for key in own}
    ours = {speaker for speaker in set(speakers.values()) if keys and speaker and alias_key(speaker) in keys}
    return {id_ for id_, speaker in speakers.items() if speaker in ours}


def _find_people(speakers: Mapping[str, str | None]) -> set[str]:
    """Return the ids of messages not said by an assistant; none if no assistant spoke, as it would be all of them."""
    assistants = {speaker for speaker in set(speakers.values()) if is_assistant(speaker)}
    return {id_ for id_, speaker in speakers.items() if speaker not in assistants} if assistants else set()


# Walks

NEIGHBOURS = 10
"""The number of entities from which each further step starts: those that share most facts with the step before."""
FACTS_A_STEP = 50
"""The default number of facts of one entity along which a walk goes."""
LOOKED_THROUGH = 3
"""How many facts, nearest in time, are checked for those that hold, for each fact along which a walk goes."""
HUB = 200
"""Through an entity with more facts a walk does not go on, unless it is a start: a hub says little, and is slow."""
MOST_SORTED = 50_000
"""The most facts of one entity that are sorted to find the nearest in time, which takes the server 30 ms."""

Statements = Mapping[str, Mapping[str, str | None]]


class BreadthFirst(Part):
    """The default way to search along facts: breadth first from the entities of a question, up to `max_hops` steps."""

    method: Literal["bfs"] = "bfs"
    max_hops: Hops = 2
    facts_a_hop: Annotated[int, Field(ge=1, le=1000)] = FACTS_A_STEP
    """How many facts of each entity, nearest to the question's time, the walk follows; at each further hop, half as
    many of the latest."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        """Return the facts up to `max_hops` steps away from *start*, and the weights of all entities reached."""
        row = yield from _read_walk(list(start), instants, self.max_hops, self.facts_a_hop, NEIGHBOURS)
        statements = parse_statements(row.get("statements", ""))
        links: Links = {}
        weights, origins = dict(start), dict(start)
        for hop in range(1, self.max_hops + 1):
            near = parse_links(row.get(f"links{hop}", ""), statements)
            links |= near
            origins = _neighbours(near, origins, weights)
            weights |= {id_: weight / (1 + hop) for id_, weight in origins.items()}
        return links, weights


def read_near(ids: Sequence[str], instants: Instants, facts: int, max_sorted: int = MOST_SORTED) -> Flow[Links]:
    """Return up to *facts* true facts about each of the entities *ids*, nearest to the question's time, by fact id."""
    row = yield from _read_walk(ids, instants, 1, facts, 0, max_sorted)
    return parse_links(row.get("links1", ""), parse_statements(row.get("statements", "")))


def _read_walk(
    ids: Sequence[str], instants: Instants, hops: int, facts: int, neighbours: int, most: int = MOST_SORTED
) -> Flow[Row]:
    """Follow facts from the entities *ids* for *hops* steps, and return a row with a text of the facts of each step."""
    limits = {f"limit{hop}": max(facts >> (hop - 1), 1) for hop in range(1, hops + 1)}
    depths = {name.replace("limit", "depth"): limit * LOOKED_THROUGH for name, limit in limits.items()}
    around = instants.since if instants.since > OPEN_START and instants.until < OPEN_END else instants.until
    bounds = {"most": most, "hub": HUB, "neighbours": neighbours, "around": around, **limits, **depths}
    rows = yield from fetch(cypher.walk(hops, unreviewed=instants.unreviewed), ids=ids, **bounds, **instants.params)
    return rows[0] if rows else {}


def _neighbours(near: Links, origins: Mapping[str, float], reached: Mapping[str, float]) -> Activity:
    """Return the `NEIGHBOURS` entities that share the most facts with *origins*: ``{entity id: weight}``."""
    shared = Counter([id_ for link in near.values() for id_ in link.entities if id_ not in reached])
    weights = {id_: 0.0 for id_, _ in sort_scores(shared.items())[:NEIGHBOURS]}
    for link in near.values():
        best = max((origins[id_] for id_ in link.entities if id_ in origins), default=0.0)
        for id_ in link.entities:
            if best > weights.get(id_, best):
                weights[id_] = best
    return weights


def parse_links(links: str, statements: Statements) -> Links:
    """Parse tab-separated lines (fact id, edge type, subject id, object id); return the facts, with *statements*."""
    parsed: Links = {}
    for line in links.split("\n"):
        match line.split("\t"):
            case [id_, type_, subject, object_]:  # other lines come from imported ids with tabs or newlines
                ends = (subject,) if subject == object_ else (subject, object_)
                if id_ in parsed:  # the fact has several objects
                    ends = tuple(dict.fromkeys((*parsed[id_].entities, *ends)))
                parsed[id_] = Link(type_, ends, statements.get(id_, {}))
    return parsed


def parse_statements(text: str) -> Statements:
    """Parse lines "fact id, episode id, speaker", with tabs, to ``{fact id: {episode id: speaker or None}}``."""
    statements: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    for line in text.split("\n"):
        match line.split("\t", 2):
            case [id_, episode, speaker]:
                statements[id_][episode] = speaker or None
    return statements
