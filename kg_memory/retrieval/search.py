"""Step 1, search: find candidates of each kind by words, by meaning and along the graph.

Only facts are found that are true now, or at the time that the caller gives. Words are ranked by Okapi BM25 over the
postings in the graph, meaning by cosine similarity. The walk along the graph starts from the entities that the question
names or `center` gives, from those that the other retrievers found, and from those that the conversation mentioned
last.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

from kg_memory.errors import EmbeddingError, EmbeddingMismatch, InputError, SettingsError
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.filters import Names, read_names
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval import answerable, retrievers
from kg_memory.retrieval.clocks import find_time
from kg_memory.retrieval.question import Found, QuestionTime, SearchQuery, asker_keys, name_keys, without_names
from kg_memory.retrieval.ranking import NO_HITS, RETRIEVERS, Hits, Instants, sort_scores
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.traversal import HIT_SEEDS, Origins, Surroundings, add_graph_hits, look_around
from kg_memory.runtime.effects import EmbeddingModel, Vector, embed, fetch, in_step, read_if
from kg_memory.runtime.flow import GRAPHS_AT_ONCE, Flow, at, every
from kg_memory.settings import Settings
from kg_memory.text.identity import alias_key, is_subject, name_asker, replace_unstorable, thread_key
from kg_memory.text.tokenise import has_words, terms

log = logging.getLogger("kg_memory.retrieval")

LONGEST_QUESTION = 2000
MOST_TERMS = 256
DEPTH: Mapping[Kind, int] = {"facts": 60, "entities": 20, "communities": 20, "episodes": 60}
"""The fewest hits of each retriever that are read for fusion."""
DEEPEST = 1000
RECENT = 4
"""The number of latest episodes of the conversation whose entities are starts of the walk."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The data that is read before a search: embeddings, word statistics, and the entities that the question names.

    `episode_vector`: the question's embedding without names of people. `centers`, `known`: hashes of names.
    """

    text: str
    asked: answerable.QuestionStatistics
    lengths: Mapping[Kind, float | None]
    centers: Sequence[str]
    known: AbstractSet[str]
    origins: Origins
    names: Names
    sizes: Mapping[Kind, int]
    any_unread: bool
    vector: Vector | None = None
    episode_vector: Vector | None = None
    degraded: str | None = None


class Searched(NamedTuple):
    """The results of the search of one namespace by words and by meaning: `hits`, by kind."""

    scopes: Mapping[Kind, retrievers.Scope]
    hits: Mapping[Kind, Hits]
    baseline: Row | None


def search(values: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Found]]:  # noqa: ARG001 - a step
    """Step 1 of retrieval: return candidate facts, entities, communities and messages as ``{"found": Found(...)}``."""
    question: SearchQuery = values["question"]
    time = yield from find_time(question)
    found = yield from find_candidates(question, time, question.namespaces(values["namespace"]))
    if found.degraded:
        log.warning("%s", found.degraded)
    return {"found": found}


def find_candidates(question: SearchQuery, time: QuestionTime, namespaces: Sequence[str]) -> Flow[Found]:
    """Return the facts, entities, communities and messages that may answer *question*, and how probably they do.

    Several *namespaces* are ranked as if one namespace held the data of all.
    """
    read = yield from every([at(namespace, _look_up(question, time)) for namespace in namespaces], GRAPHS_AT_ONCE)
    found = {namespace: lookup for namespace, lookup in zip(namespaces, read, strict=True) if lookup}
    if not found:
        nothing = Found(time.instants, time.time, time.past, dict.fromkeys(KINDS, NO_HITS))
        return nothing if _searchable_text(question) else replace(nothing, doubt=answerable.WORDLESS)
    _require_centers(question, found.values())
    namespace, largest = max(found.items(), key=lambda item: item[1].sizes["episodes"])
    largest = yield from at(namespace, _embed(largest, question.recipe))
    lookups = dict(zip(found, share_statistics(list(found.values()), largest), strict=True))
    searches = [at(namespace, _search_namespace(question, time, lookup)) for namespace, lookup in lookups.items()]
    searched = dict(zip(lookups, (yield from every(searches, GRAPHS_AT_ONCE)), strict=True))
    best = _merge_hits([one.hits for one in searched.values()])
    flows = [at(name, _follow_graph(question, time, lookups[name], one, best)) for name, one in searched.items()]
    merged = merge_found((yield from every(flows, GRAPHS_AT_ONCE)))
    return replace(merged, namespaces=tuple(lookups)) if question.recall_from else merged


def _require_centers(question: SearchQuery, lookups: Collection[Lookup]) -> None:
    known = {key for lookup in lookups for key in lookup.known}
    unknown = [name for name in question.center if alias_key(replace_unstorable(name)) not in known]
    if unknown:
        raise InputError(f"center must be the name of an entity, got {unknown[0]!r}; `entities` lists the names")


def share_statistics(lookups: Sequence[Lookup], embedded: Lookup) -> list[Lookup]:
    """Return *lookups*, one for each namespace, with the word counts of all and one embedding of the question."""
    counts = {kind: sum(one.sizes[kind] for one in lookups) for kind in KINDS}
    frequencies: dict[Kind, Counter[str]] = {}
    for one in lookups:
        for kind, often in one.asked.frequencies.items():
            frequencies.setdefault(kind, Counter()).update(often)
    lengths = {kind: _mean_length(kind, lookups) for kind in KINDS}
    return [
        replace(
            one,
            asked=replace(one.asked, frequencies=frequencies, counts=counts),
            vector=embedded.vector,
            episode_vector=embedded.episode_vector,
            degraded=embedded.degraded,
            lengths=lengths,
            origins=replace(one.origins, episodes=counts["episodes"]),
        )
        for one in lookups
    ]


def _mean_length(kind: Kind, lookups: Sequence[Lookup]) -> float | None:
    known = [one for one in lookups if one.lengths.get(kind)]
    return fmean([one.lengths[kind] or 0.0 for one in known], [one.sizes[kind] for one in known]) if known else None


def merge_found(founds: Sequence[Found]) -> Found:
    """Join the candidates found in several namespaces: one ranking by words, one by meaning, one by graph distance."""
    best = max(founds, key=lambda found: found.relevance or 0.0)
    lists: dict[str, Any] = {
        name: [id_ for found in founds for id_ in getattr(found, name)] for name in ("named", "centers", "unread")
    }
    return replace(best, hits=_merge_hits([found.hits for found in founds]), **lists)


def _merge_hits(hits: Sequence[Mapping[Kind, Hits]]) -> dict[Kind, Hits]:
    return {
        kind: Hits(*(sort_scores(hit for each in hits for hit in each[kind].of(way)) for way in RETRIEVERS))
        for kind in KINDS
    }


def _depth(kind: Kind, limit: int) -> int:
    return min(max(DEPTH[kind], limit), DEEPEST)


def _search_namespace(question: SearchQuery, time: QuestionTime, lookup: Lookup) -> Flow[Searched]:
    """Search one namespace by words and by meaning."""
    recipe, asked = question.recipe, lookup.asked
    scopes = yield from _measure_scopes(lookup, question, time)
    searches: list[Flow[Any]] = []
    for kind, scope in scopes.items():
        weights = recipe.weights(kind)
        frequencies, length = (asked.frequencies[kind], lookup.lengths[kind]) if weights.words else ({}, None)
        vector = lookup.episode_vector if kind == "episodes" else lookup.vector
        words = retrievers.search_words(scope, frequencies, asked.counts[kind], length)
        searches.append(
            retrievers.search_both(words, retrievers.search_meaning(scope, vector if weights.meaning else None))
        )
    if lookup.vector is not None or (asked.subjects and not asked.named):
        model = yield EmbeddingModel()
        searches.append(answerable.read_baseline(model, lookup.sizes["episodes"], all_read=not lookup.any_unread))
    results = yield from in_step(searches)
    hits = dict.fromkeys(KINDS, NO_HITS)
    hits |= {kind: Hits(words, meaning, []) for kind, (words, meaning) in zip(scopes, results, strict=False)}
    baseline = results[len(scopes)] if len(results) > len(scopes) else None
    return Searched(scopes, hits, baseline)


def _follow_graph(
    question: SearchQuery, time: QuestionTime, lookup: Lookup, searched: Searched, best: Mapping[Kind, Hits]
) -> Flow[Found]:
    """Return the results of one namespace that are among *best*, and those found from them along the graph."""
    recipe, scopes = question.recipe, searched.scopes
    hits = {kind: _keep_best(own, best[kind], _depth(kind, question.limit)) for kind, own in searched.hits.items()}
    asked, named = lookup.asked, lookup.origins.named
    origins = replace(lookup.origins, seeds=_keep_best(hits["entities"], best["entities"], HIT_SEEDS))
    needs = {"statements": bool(asked.subjects), "episode_details": lookup.any_unread or lookup.vector is not None}
    around = yield from look_around(hits, recipe, scopes, origins, lookup.vector, time.instants, **needs)
    hits = yield from add_graph_hits(hits, recipe, scopes, origins, around)
    centers = [row["id"] for row in named if not set(lookup.centers).isdisjoint(row["keys"])]
    unread = _find_unread(hits["episodes"], around) if lookup.any_unread else []
    found = Found(time.instants, time.time, time.past, hits, [row["id"] for row in named], centers, unread)
    found = replace(found, degraded=lookup.degraded)
    if not any(recipe.weights(kind).words for kind in answerable.EVIDENCE):
        return replace(found, relevance=None, doubt="")
    stated = {id_: around.links[id_].statements or {} for id_ in hits["facts"].searched if id_ in around.links}
    tellers = {id_: tuple(speakers.values()) for id_, speakers in stated.items()} if asked.subjects else {}
    near = {id_: row["nearness"] for id_, row in around.episodes.items() if row["nearness"] is not None}
    evidence = answerable.weigh_evidence(asked, hits, tellers, near, searched.baseline)
    doubt = answerable.explain_doubt(_searchable_text(question), asked, evidence)
    return replace(found, relevance=answerable.probability(evidence), doubt=doubt, evidence=evidence)


def _keep_best(own: Hits, best: Hits, most: int) -> Hits:
    kept = {*best.words[:most], *best.meaning[:most]}
    return Hits(*([hit for hit in own.of(way) if hit in kept] for way in RETRIEVERS))


def _find_unread(episodes: Hits, around: Surroundings) -> list[str]:
    near = {id_ for id_, _ in episodes.meaning}
    ids = [id_ for id_, _ in episodes.words if id_ not in near]  # only the search by words finds unread messages
    return [id_ for id_ in ids if id_ in around.episodes and around.episodes[id_]["unread"]]


def _searchable_text(question: SearchQuery) -> str:
    text = replace_unstorable(question.text)[:LONGEST_QUESTION]
    return text if has_words(text) or terms(text) else ""


def _look_up(question: SearchQuery, time: QuestionTime) -> Flow[Lookup | None]:
    """Read word counts and named entities before the search of one namespace; None if there is nothing to search."""
    text = _searchable_text(question)
    if not text:
        return None
    recipe = question.recipe
    asker = asker_keys(text, question.asker)
    about_asker = name_asker(text, question.asker) if asker and question.asker and is_subject(text) else text
    words = list(dict.fromkeys([*terms(text), *terms(about_asker)]))[:MOST_TERMS]
    keys = [*name_keys(text), *asker] if _needs_named_entities(recipe) else []
    centers = [alias_key(replace_unstorable(name)) for name in question.center]
    keys += centers
    thread = thread_key(replace_unstorable(question.thread or ""))
    recent_entities = read_if(question.thread, cypher.RECENT_ENTITIES, thread_key=thread, limit=RECENT)
    statistics = _read_statistics(recipe, words, keys, time.instants)
    filters = [read_names(question.where)] if question.where else []
    results = yield from in_step((*statistics, recent_entities, *filters))
    rows = [row for part in results[: len(statistics)] for row in part]
    recent, *filter_names = results[len(statistics) :]
    if len(rows) < len(statistics):
        return None
    named = rows[0]["named"]
    known = {key for entity in named for key in entity["keys"]}
    named = _without_asker(text, asker, centers, named)
    unused: set[str] = set()
    if known.issuperset(asker):
        text = about_asker  # so that "I live" finds "Ann lives"
    else:
        unused = set(words) - set(terms(text))
    words = [word for word in words if word not in unused]
    counts: dict[Kind, int] = {kind: rows[0]["labels"].get(label, 0) for kind, label in cypher.LABELS.items()}
    subjects = frozenset(key for entity in named for key in entity["keys"]).union(asker)
    return Lookup(
        text=text,
        asked=answerable.QuestionStatistics(words, frequencies_of(rows, unused), counts, subjects, bool(named)),
        lengths={kind: length for row in rows for kind, length in row["lengths"].items()},
        centers=centers,
        known=known,
        origins=Origins(named, recent, {row["id"]: row["parts"] for row in rows[0]["parts"]}, counts["episodes"]),
        names=dict(*filter_names),
        sizes=counts,
        any_unread=any(row["unread"] for row in rows),
    )


def _embed(lookup: Lookup, recipe: Recipe) -> Flow[Lookup]:
    """Return *lookup* with the embeddings of its question, or with `degraded`, the error of the model.

    Errors: `EmbeddingMismatch`; the error of the model if *recipe* searches only by meaning.
    """
    if not any(recipe.weights(kind).meaning for kind in KINDS):
        return lookup
    weights = recipe.weights("episodes")
    # Names of people are in so many messages that they hide the topic; the search along the graph finds these messages.
    people = {key for row in lookup.origins.named if row["type"] == "Person" for key in row["keys"]}
    about = without_names(lookup.text, people) if weights.meaning and weights.graph else lookup.text
    try:
        vectors = yield from embed(list(dict.fromkeys([lookup.text, about])), role="query")
        episode_vector = yield from retrievers.sharpen(vectors[-1], lookup.sizes["episodes"] if weights.meaning else 0)
    except EmbeddingMismatch:
        raise
    except (EmbeddingError, SettingsError) as error:
        if not any(recipe.weights(kind).words or recipe.weights(kind).graph for kind in recipe.kinds):
            raise
        return replace(lookup, degraded=f"searched by words and graph only, without embedding vectors: {error}")
    return replace(lookup, vector=vectors[0], episode_vector=episode_vector)


def _without_asker(question: str, asker: Sequence[str], centers: Sequence[str], named: Sequence[Row]) -> Sequence[Row]:
    """Return the entities *named* in *question*, without the asker if others are the subject ("my sister Lily")."""
    others = [row for row in named if not set(row["keys"]) <= {*asker} - {*centers}]
    return others if asker and others and not is_subject(question) else named


def frequencies_of(rows: Sequence[Row], unused: Collection[str]) -> retrievers.Frequencies:
    """Return how many nodes of each kind contain each word: ``{"facts": {"paris": 3}}``."""
    frequencies: dict[Kind, dict[str, int]] = {}
    for kind, pairs in (item for row in rows for item in row["often"].items()):
        frequencies[kind] = {word: often for word, often in pairs if word not in unused}
    return frequencies


def _read_statistics(recipe: Recipe, words: list[str], keys: list[str], instants: Instants) -> list[Flow[Any]]:
    """Return one or two queries that count the nodes with each of *words*, of the kinds found by words.

    The first also reads the entities named by *keys*; the last, whether facts of some messages are not extracted yet.
    """
    kinds = [kind for kind in KINDS if recipe.weights(kind).words]
    others: list[Kind] = [kind for kind in kinds if kind != "episodes"]
    parts = [("episodes",), tuple(others)] if 0 < len(others) < len(kinds) else [tuple(kinds)]
    names = {"keys": keys, **instants.params} if keys else {}
    first, *rest = [
        cypher.word_statistics(part, unread=part is parts[-1], names=bool(keys) and part is parts[0]) for part in parts
    ]
    return [fetch(first, terms=words, **names), *(fetch(query, terms=words) for query in rest)]


def _needs_named_entities(recipe: Recipe) -> bool:
    walks = any(recipe.weights(kind).graph for kind in KINDS)
    return walks or any("hops" in reranker.features.all_features for reranker in recipe.rerankers)


def _measure_scopes(lookup: Lookup, question: SearchQuery, time: QuestionTime) -> Flow[dict[Kind, retrievers.Scope]]:
    scopes = []
    for kind in KINDS:
        if kind in question.recipe.kinds:
            limit, size = _depth(kind, question.limit), lookup.sizes[kind]
            scopes.append(retrievers.Scope(kind, size, limit, time.instants, question.where, lookup.names))
    return {scope.kind: scope for scope in (yield from in_step(map(retrievers.narrow_scope, scopes)))}
