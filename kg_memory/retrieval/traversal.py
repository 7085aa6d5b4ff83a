"""The third retriever: candidates along the graph, around the entities of a question (Zep 3.1).

A walk follows the facts that hold at the time of the question, both ways, and reaches each entity once. It takes one
read, whatever the size of the graph. A fact that the walk or another search found counts what its entities count in
all. An episode counts by the facts that it states, and by whom it is by or about.
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
from kg_memory.runtime.effects import Vector, in_step, read, read_if
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, is_assistant

if TYPE_CHECKING:
    from kg_memory.retrieval.recipe import Recipe

HIT_SEEDS = 3
"""The entities of each other search that are walked from."""
HIT_WEIGHT = 0.25
"""The weight of a start that was found or recently spoken of, beside 1 for one that is named."""
PART_WEIGHT = 0.8
"""The weight of what lies in a named place, or belongs to a named thing, beside 1 for that itself."""
SELDOM = 50
"""The most mentions of an entity whose name is looked for in sentences."""
STATED_SHARE = 0.5
"""The share in an episode's score of the best fact that it states; the rest is whom it is by or about."""
MENTIONED = 0.25
"""The weight of an episode that mentions a named entity, beside 1 for one that the entity itself spoke."""
PERSON = 0.6
"""The weight of what a person says beside what an assistant says, which seldom tells anything of the person."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The rows of the entities that a question *named* or its thread spoke of; *parts* lie in those that it may name.

    *episodes* is how many there are in all.
    """

    named: Sequence[Row]
    recent: Sequence[Row]
    parts: Mapping[str, Sequence[str]]
    episodes: int

    @property
    def keys(self) -> dict[str, Sequence[str]]:
        """The alias keys of the named entities, by id; what lies in them has none."""
        inner = {part: () for row in self.named for part in self.parts.get(row["id"], ())}
        return inner | {row["id"]: row["keys"] for row in self.named}

    @property
    def things(self) -> list[str]:
        """The named entities but people, and what lies in them."""
        people = {row["id"] for row in self.named if row["type"] == "Person"}
        return [id_ for id_ in self.keys if id_ not in people]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the graph has around the hits of words and meaning, by ids.

    `links` are the facts among the hits, those that the walk passed and those of `named`; `activity` has the entities
    that the walk reached. `named` has the places and things that the sentence of a fact names, and `episodes` the signs
    of the episodes among the hits.
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
    signs: bool = True,
) -> Flow[Surroundings]:
    """Return the surroundings of *hits* and *origins*; without a walk where the recipe does not go by the graph.

    Without one, the *statements* of facts and the *signs* of episodes are read only if they are asked for.
    """
    walks = any(recipe.weights(kind).graph for kind in scopes)
    start: dict[str, float] = {}
    if walks:
        start = find_seeds(origins, hits["entities"])
        if find_starts := getattr(recipe.traversal, "find_starts", None):
            found = yield from find_starts(hits)
            start = found | {id_: max(weight, found.get(id_, 0.0)) for id_, weight in start.items()}
    by_community = start if recipe.weights("communities").graph else {}
    facts = hits["facts"].searched if walks or statements else ()
    episodes = hits["episodes"] if walks or signs else NO_HITS
    (links, named), found_signs, walked, communities = yield from in_step(
        (
            read_facts(facts, origins.things if walks else (), instants),
            _read_signs(episodes, origins.keys if walks else {}, vector),
            walk_from(recipe.traversal, start, instants),
            find_communities(by_community),
        )
    )
    near, activity = walked
    return Surroundings({**links, **near}, activity, communities, named, found_signs)


def add_graph_hits(
    hits: Mapping[Kind, Hits], recipe: Recipe, scopes: Mapping[Kind, Scope], origins: Origins, around: Surroundings
) -> Flow[dict[Kind, Hits]]:
    """Return *hits* with those along the graph, by what is *around*."""
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
        scores = score_episodes(stating, statements, origins.keys, around.episodes)
        passed = yield from filter_hits(scopes, {"episodes": positive(scores)})
        hits["episodes"] = replace(hits["episodes"], graph=passed["episodes"])
    return hits


def find_seeds(origins: Origins, entities: Hits) -> dict[str, float]:
    """Return where to start, with weights: entities named (by rarity), what lies in them, spoken of, and found."""
    rare = {row["id"]: rarity(row["mentions"], origins.episodes) for row in (*origins.recent, *origins.named)}
    named = {row["id"] for row in origins.named}
    weights = {id_: weight * (1.0 if id_ in named else HIT_WEIGHT) for id_, weight in rare.items()}
    for whole in named & origins.parts.keys():
        for part in origins.parts[whole]:
            weights[part] = max(weights.get(part, 0.0), weights[whole] * PART_WEIGHT)
    for id_, _ in (*entities.words[:HIT_SEEDS], *entities.meaning[:HIT_SEEDS]):
        weights.setdefault(id_, HIT_WEIGHT)
    return weights


def walk_from(walk: Walk, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
    """Return the facts and entities that *walk* reaches from the entities *start*, which have weights."""
    if not start:
        return {}, {}
    links, weights = yield from walk.walk(start, instants)
    return links, weights


def read_facts(
    ids: Sequence[str], things: Sequence[str], instants: Instants
) -> Flow[tuple[Links, dict[str, Sequence[str]]]]:
    """Return the facts *ids*, and those whose sentences name the *things* that are not among their ends, with these."""
    if not ids and not things:
        return {}, {}
    params = {"things": list(things), "most": SELDOM, **instants.params} if things else {}
    rows = yield from read(cypher.facts_with_links(things=bool(things)), ids=list(ids), **params)
    row: Row = rows[0] if rows else {"links": "", "statements": "", "named": ()}
    statements = parse_statements(row["statements"])
    links, named = parse_links(row["links"], statements), dict(row["named"])
    unlinked = {id_: Link("", (), statements.get(id_, {})) for id_ in named if id_ not in links}
    return {**unlinked, **links}, named


def _read_signs(episodes: Hits, named: Mapping[str, Sequence[str]], vector: Vector | None) -> Flow[dict[str, Row]]:
    """Return the signs of the *episodes* that words and meaning found; see `queries.features.episode_signs`."""
    nearest = ids_of(episodes.meaning)[:NEAREST]
    query = cypher.episode_signs(mentions=bool(named), nearness=vector is not None and bool(nearest))
    params = {"entities": list(named), "nearest": nearest, "vector": vector}
    rows = yield from read_if(episodes.searched, query, ids=episodes.searched, **params)
    return {row["id"]: row for row in rows}


def _read_statements(facts: Iterable[str], links: Links) -> Flow[Mapping[str, Mapping[str, str | None]]]:
    """Return the episodes that state *facts*, with their speakers; those that a walk did not bring are read."""
    known = {id_: links[id_].statements for id_ in facts if id_ in links}
    missing = [id_ for id_ in facts if known.get(id_) is None]
    rows = yield from read_if(missing, cypher.facts_with_links(), ids=missing)
    more = parse_statements(rows[0]["statements"]) if rows else {}
    return {**{id_: stated for id_, stated in known.items() if stated is not None}, **more}


def weigh_facts(links: Links, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the facts that have an entity among *weights*, each with the sum of the weights of its entities."""
    scores = {}
    for id_, link in links.items():
        score = sum([weights[entity] for entity in link.entities if entity in weights])
        if score > 0:
            scores[id_] = score
    return scores


def find_communities(start: Mapping[str, float]) -> Flow[dict[str, float]]:
    """Return the communities that have members among *start*."""
    rows = yield from read_if(start, cypher.COMMUNITIES_OF, ids=list(start))
    return {row["id"]: sum(start[id_] for id_ in row["entities"]) for row in rows}


def score_episodes(
    facts: Mapping[str, float],
    statements: Mapping[str, Mapping[str, str | None]],
    named: Mapping[str, Sequence[str]],
    candidates: Mapping[str, Row],
) -> dict[str, float]:
    """Return the scores of the episodes that state *facts*, and of the *candidates* that the entities *named* concern.

    *facts* have scores from 0 to 1, *named* the alias keys of each entity. A candidate counts if one of these spoke it,
    or is mentioned in it. Where an assistant speaks too, what people say counts more.
    """
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
    """Return the episodes whose speaker is one of the entities *named*."""
    keys = {key for own in named.values() for key in own}
    ours = {speaker for speaker in set(speakers.values()) if keys and speaker and alias_key(speaker) in keys}
    return {id_ for id_, speaker in speakers.items() if speaker in ours}


def _find_people(speakers: Mapping[str, str | None]) -> set[str]:
    """Return the episodes that no assistant speaks; none where no assistant speaks at all."""
    assistants = {speaker for speaker in set(speakers.values()) if is_assistant(speaker)}
    return {id_ for id_, speaker in speakers.items() if speaker not in assistants} if assistants else set()


# Walks

NEIGHBOURS = 10
"""The entities that each further step starts from: those that share most facts with the step before."""
FACTS_A_STEP = 50
"""The facts of one entity that are walked along, by default."""
LOOKED_THROUGH = 3
"""The latest facts that are checked for those that hold, for each that is walked along."""
HUB = 200
"""A start apart, an entity with more facts is not walked through: proximity to a hub carries no signal, and is slow."""
MOST_SORTED = 50_000
"""The facts of one entity that are sorted for the latest, at most: it takes the server 30 ms."""

Statements = Mapping[str, Mapping[str, str | None]]


class BreadthFirst(Part):
    """Walk step by step from the entities that the question is about (Zep 3.1, C16)."""

    method: Literal["bfs"] = "bfs"
    max_hops: Hops = 2
    facts_a_hop: Annotated[int, Field(ge=1, le=1000)] = FACTS_A_STEP
    """The facts of one entity that are walked along, the latest ones; half as many at each further hop."""

    def walk(self, start: Mapping[str, float], instants: Instants) -> Flow[tuple[Links, Activity]]:
        links, weights = yield from walk_breadth_first(start, instants, self.max_hops, self.facts_a_hop, NEIGHBOURS)
        return links, weights


def walk_breadth_first(
    start: Mapping[str, float], instants: Instants, hops: int, facts: int, neighbours: int
) -> Flow[tuple[Links, Activity]]:
    """Walk along the latest *facts* of each start, and half as many at each further step, from *neighbours* entities.

    An entity has the weight of the start that it was reached from times ``1 / (1 + hop)``.
    """
    row = yield from _read_walk(list(start), instants, hops, facts, neighbours)
    statements = parse_statements(row.get("statements", ""))
    links: Links = {}
    weights, origins = dict(start), dict(start)
    for hop in range(1, hops + 1):
        near = parse_links(row.get(f"links{hop}", ""), statements)
        links |= near
        origins = _neighbours(near, origins, weights, neighbours)
        weights |= {id_: weight / (1 + hop) for id_, weight in origins.items()}
    return links, weights


def read_near(ids: Sequence[str], instants: Instants, facts: int, most: int = MOST_SORTED) -> Flow[Links]:
    """Return the latest *facts* of each of *ids* that hold; of an entity with more than *most* facts, any of these."""
    row = yield from _read_walk(ids, instants, 1, facts, 0, most)
    return parse_links(row.get("links1", ""), parse_statements(row.get("statements", "")))


def _read_walk(
    ids: Sequence[str], instants: Instants, hops: int, facts: int, neighbours: int, most: int = MOST_SORTED
) -> Flow[Row]:
    limits = {f"limit{hop}": max(facts >> (hop - 1), 1) for hop in range(1, hops + 1)}
    depths = {name.replace("limit", "depth"): limit * LOOKED_THROUGH for name, limit in limits.items()}
    bounds = {"most": most, "hub": HUB, "neighbours": neighbours, **limits, **depths}
    rows = yield from read(cypher.walk(hops, unreviewed=instants.unreviewed), ids=ids, **bounds, **instants.params)
    return rows[0] if rows else {}


def _neighbours(near: Links, origins: Mapping[str, float], reached: Mapping[str, float], most: int) -> Activity:
    """Return the entities not yet *reached* that share most facts with *origins*, with the best weight of these."""
    shared = Counter([id_ for link in near.values() for id_ in link.entities if id_ not in reached])
    weights = {id_: 0.0 for id_, _ in sort_scores(shared.items())[:most]}
    for link in near.values():
        best = max((origins[id_] for id_ in link.entities if id_ in origins), default=0.0)
        for id_ in link.entities:
            if best > weights.get(id_, best):
                weights[id_] = best
    return weights


def parse_links(links: str, statements: Statements) -> Links:
    """Return the facts of a text of links, as `queries.features` makes it, with their *statements*."""
    parsed: Links = {}
    for line in links.split("\n"):
        match line.split("\t"):
            case [id_, type_, subject, object_]:  # an imported id may contain anything
                ends = (subject,) if subject == object_ else (subject, object_)
                if id_ in parsed:  # it has several objects
                    ends = tuple(dict.fromkeys((*parsed[id_].entities, *ends)))
                parsed[id_] = Link(type_, ends, statements.get(id_, {}))
    return parsed


def parse_statements(text: str) -> Statements:
    """Return the speakers of the episodes that state facts, by the ids of the facts and the episodes."""
    statements: defaultdict[str, dict[str, str | None]] = defaultdict(dict)
    for line in text.split("\n"):
        match line.split("\t", 2):
            case [id_, episode, speaker]:
                statements[id_][episode] = speaker or None
    return statements
