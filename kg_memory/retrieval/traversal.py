"""The third retriever: candidates along the graph, around the entities of a question (Zep 3.1).

The recipe's walk finds entities and facts; a fact counts what its entities count in all, so that facts which other
searches found compare with those that the walk reached. An episode counts by the facts that it states, and by whom it
is by or about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import Kind
from kg_memory.retrieval.fuse import Hits, Scored, positive
from kg_memory.retrieval.plugins import Instants, Links, Walk
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.retrievers import Scope, filter_hits, rarity
from kg_memory.retrieval.walks import links_of
from kg_memory.runtime.effects import in_step, read, read_if
from kg_memory.runtime.flow import Flow
from kg_memory.text.identity import alias_key, is_assistant

HIT_SEEDS = 3
"""The entities of each other search that are walked from."""
HIT_WEIGHT = 0.25
"""The weight of a start that was found or recently spoken of, beside 1 for one that is named."""
PART_WEIGHT = 0.8
"""The weight of what lies in a named place, or belongs to a named thing, beside 1 for that itself."""
SELDOM = 50
"""The most mentions of an entity whose name is looked for in sentences."""
WORD_SEEDS = 10
"""The facts and episodes found by words whose entities activation starts from."""
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
class Reached:
    """The facts and entities that a walk reached, with how much each has to do with where it started."""

    facts: dict[str, float]
    entities: dict[str, float]


def add_graph_hits(
    hits: Mapping[Kind, Hits], recipe: Recipe, scopes: Mapping[Kind, Scope], origins: Origins
) -> Flow[dict[Kind, Hits]]:
    """Return *hits* with those along the graph: from *origins*, and from entities that the other retrievers found."""
    hits = dict(hits)
    kinds = [kind for kind in scopes if recipe.weights(kind).graph]
    if not kinds:
        return hits
    start = find_seeds(origins, hits["entities"])
    if getattr(recipe.traversal, "starts_by_words", False):
        by_words = yield from weigh_by_words(hits)
        start = by_words | {id_: max(weight, by_words.get(id_, 0.0)) for id_, weight in start.items()}
    instants = next(iter(scopes.values())).instants
    reached, links, communities, only_named = yield from in_step(
        (
            walk_from(recipe.traversal, start, instants),
            read_links(hits["facts"].searched),
            find_communities(start),
            find_only_named(origins.things, instants),
        )
    )
    facts = reached.facts | weigh_facts(links, reached.entities)
    for id_, entities in only_named.items():
        facts[id_] = facts.get(id_, 0.0) + sum(reached.entities.get(entity, 0.0) for entity in entities)
    near: dict[Kind, dict[str, float]] = {
        "facts": facts,
        "entities": reached.entities,
        "communities": communities,
    }
    passed = yield from filter_hits(scopes, {kind: positive(near[kind]) for kind in kinds if kind in near})
    hits |= {kind: replace(hits[kind], graph=scores) for kind, scores in passed.items()}
    if "episodes" in kinds:
        stating = dict(recipe.fuse("facts", hits["facts"])[: scopes["episodes"].limit])
        scores = yield from score_episodes(stating, origins.keys, hits["episodes"].searched)
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


def weigh_by_words(hits: Mapping[Kind, Hits]) -> Flow[dict[str, float]]:
    """Return the entities of the facts and episodes that are the best by words, up to `HIT_WEIGHT` (C22, HippoRAG)."""
    facts, episodes = (_parts_of_best(hits[kind].words[:WORD_SEEDS]) for kind in ("facts", "episodes"))
    links, mentions = yield from in_step((read_links(list(facts)), read(cypher.MENTIONED_BY, ids=list(episodes))))
    weights: Counter[str] = Counter()
    for id_, link in links.items():
        weights.update(dict.fromkeys(link.entities, facts[id_]))
    for row in mentions:
        weights.update(dict.fromkeys(row["entities"], episodes[row["id"]]))
    most = max(weights.values(), default=1.0)
    return {id_: HIT_WEIGHT * weight / most for id_, weight in weights.items()}


def _parts_of_best(hits: Sequence[Scored]) -> dict[str, float]:
    """Return each score as a part of the best."""
    best = max((score for _, score in hits), default=0.0)
    return {id_: score / best for id_, score in hits} if best > 0 else {}


def find_only_named(ids: Sequence[str], instants: Instants) -> Flow[dict[str, Sequence[str]]]:
    """Return the facts whose sentences name the places and things *ids* that are not among their ends, with these."""
    rows = yield from read_if(ids, cypher.NAMED_IN_FACTS, ids=list(ids), most=SELDOM, **instants.params)
    return {row["id"]: row["entities"] for row in rows}


def walk_from(walk: Walk, start: Mapping[str, float], instants: Instants) -> Flow[Reached]:
    """Return what *walk* reaches from the entities *start*, which have weights."""
    if not start:
        return Reached({}, {})
    links, weights = yield from walk.walk(start, instants)
    return Reached(weigh_facts(links, weights), weights)


def read_links(facts: Sequence[str]) -> Flow[Links]:
    """Return *facts*, which other searches found, with their entities."""
    rows = yield from read(cypher.FACT_LINKS, ids=list(facts))
    return links_of(rows)


def weigh_facts(links: Links, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the facts that have an entity among *weights*, each with the sum of the weights of its entities."""
    scores = {}
    for id_, link in links.items():
        score = sum(weights.get(entity, 0.0) for entity in link.entities)
        if score > 0:
            scores[id_] = score
    return scores


def find_communities(start: Mapping[str, float]) -> Flow[dict[str, float]]:
    """Return the communities that have members among *start*."""
    rows = yield from read(cypher.COMMUNITIES_OF, ids=list(start))
    scores = {}
    for row in rows:
        scores[row["id"]] = sum(start[id_] for id_ in row["entities"])
    return scores


def score_episodes(
    facts: Mapping[str, float], named: Mapping[str, Sequence[str]], candidates: Sequence[str]
) -> Flow[dict[str, float]]:
    """Return the episodes that state *facts*, and which *candidates* the entities *named* spoke, or are mentioned in.

    *facts* have scores from 0 to 1, *named* the alias keys of each entity. Where an assistant speaks too, what people
    say counts more.
    """
    reads = [read(cypher.STATING, ids=list(facts)), read(cypher.SPEAKERS, ids=list(candidates))]
    if named:
        reads.append(read(cypher.MENTIONING, ids=list(candidates), entities=list(named)))
    stating, speakers, mentions = [*(yield from in_step(reads)), []][:3]
    shares: dict[str, float] = {}
    for row in stating:
        shares[row["id"]] = max(shares.get(row["id"], 0.0), facts[row["fact"]])
    mentioning = {row["id"] for row in mentions}
    speaker_of = {row["id"]: row["speaker"] for row in (*stating, *speakers)}
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
