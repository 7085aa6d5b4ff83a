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
from itertools import chain
from statistics import fmean
from typing import Any

from kg_memory.errors import EmbeddingError, EmbeddingMismatch, InputError, SettingsError
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.filters import Names, read_names
from kg_memory.falkor.rows import Row
from kg_memory.models.filters import Filter
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval import answerable, retrievers
from kg_memory.retrieval.clocks import find_time
from kg_memory.retrieval.question import Found, QuestionTime, SearchQuery, asker_keys, name_keys, without_names
from kg_memory.retrieval.ranking import NO_HITS, RETRIEVERS, Hits, Instants, sort_scores
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.traversal import Origins, Surroundings, add_graph_hits, look_around
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

    - `asked`: how often the question's words are stored. `lengths`: the mean length of texts by kind.
    - `vector`: the question's embedding. `episode_vector`: a variant of it for searching messages.
    - `centers`: name hashes of the option `center`. `known`: hashes of those names of the question that are stored.
    - `origins`: the entities from which to follow facts. `names`: ids of the entities in `where`, by name hash.
    - `sizes`: the number of stored nodes by kind; the counts in `asked` are those of all namespaces that are searched.
    - `any_unread`: whether some messages await extraction. `degraded`: the embedding error, or None.
    """

    asked: answerable.QuestionStatistics
    vector: Vector | None
    episode_vector: Vector | None
    lengths: Mapping[Kind, float | None]
    centers: Sequence[str]
    known: AbstractSet[str]
    origins: Origins
    names: Names
    sizes: Mapping[Kind, int]
    any_unread: bool
    degraded: str | None


def search(values: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Found]]:  # noqa: ARG001 - a step
    """Step 1 of retrieval: return candidate facts, entities, communities and messages as ``{"found": Found(...)}``.

    *values*: ``{"question": SearchQuery(...), "namespace": "ann"}``. Errors: `InputError` if a time cannot be parsed,
    or an entity in `center` is unknown.
    """
    question: SearchQuery = values["question"]
    time = yield from find_time(question)
    if question.recall_from:
        found = yield from find_in_all(question, time, question.namespaces(values["namespace"]))
    else:
        found = yield from find_candidates(question, time)
    if found.degraded:
        log.warning("%s", found.degraded)
    return {"found": found}


def find_candidates(question: SearchQuery, time: QuestionTime) -> Flow[Found]:
    """Return the facts, entities, communities and messages that may answer *question*, and how probably they do.

    *time*: the time that the question is about. The probability is None if facts and messages are not searched by
    words. Errors: `InputError` if an entity in `center` is unknown.
    """
    lookup = yield from _look_up(question, time)
    _require_centers(question, [lookup] if lookup else [])
    return (yield from _find(question, time, lookup))


def find_in_all(question: SearchQuery, time: QuestionTime, namespaces: Sequence[str]) -> Flow[Found]:
    """Return the candidates of all *namespaces*, as if one namespace held the data of all.

    Words weigh by how often all namespaces contain them, and messages are compared with one embedding of the question,
    so that scores are comparable. Errors: `InputError` if no namespace knows an entity in `center`.
    """
    read = yield from every([at(namespace, _look_up(question, time)) for namespace in namespaces], GRAPHS_AT_ONCE)
    lookups = {namespace: lookup for namespace, lookup in zip(namespaces, read, strict=True) if lookup}
    _require_centers(question, lookups.values())
    if not lookups:
        return (yield from _find(question, time, None))
    shared = share_statistics(list(lookups.values()))
    flows = [at(namespace, _find(question, time, one)) for namespace, one in zip(lookups, shared, strict=True)]
    return replace(merge_found((yield from every(flows, GRAPHS_AT_ONCE)), question.limit), namespaces=tuple(lookups))


def _require_centers(question: SearchQuery, lookups: Collection[Lookup]) -> None:
    """Raise `InputError` if a name in `center` is unknown in all namespaces, of which *lookups* have the names."""
    known = {key for lookup in lookups for key in lookup.known}
    unknown = [name for name in question.center if alias_key(replace_unstorable(name)) not in known]
    if lookups and unknown:
        raise InputError(f"center must be the name of an entity, got {unknown[0]!r}; `entities` lists the names")


def share_statistics(lookups: Sequence[Lookup]) -> list[Lookup]:
    """Return *lookups*, one for each namespace, with the statistics of all namespaces together."""
    counts = {kind: sum(one.sizes[kind] for one in lookups) for kind in KINDS}
    frequencies: dict[Kind, Counter[str]] = {}
    for one in lookups:
        for kind, often in one.asked.frequencies.items():
            frequencies.setdefault(kind, Counter()).update(often)
    lengths = {kind: _mean_length(kind, lookups) for kind in KINDS}
    largest = max(lookups, key=lambda one: one.sizes["episodes"])
    return [
        replace(
            one,
            asked=replace(one.asked, frequencies=frequencies, counts=counts),
            vector=largest.vector,
            episode_vector=largest.episode_vector,
            lengths=lengths,
            origins=replace(one.origins, episodes=counts["episodes"]),
        )
        for one in lookups
    ]


def _mean_length(kind: Kind, lookups: Sequence[Lookup]) -> float | None:
    """Return the mean length of the texts of one *kind* in all namespaces of *lookups*; None if there are none."""
    known = [one for one in lookups if one.lengths.get(kind)]
    return fmean([one.lengths[kind] or 0.0 for one in known], [one.sizes[kind] for one in known]) if known else None


def merge_found(founds: Sequence[Found], limit: int) -> Found:
    """Join the candidates found in several namespaces: one ranking by words, one by meaning, one by graph distance.

    The probability that the search found an answer is the highest of theirs. *limit*: the most results of each kind
    that the search will return; several times as many candidates are kept.
    """
    best = max(founds, key=lambda found: found.relevance or 0.0)
    hits = {kind: _merge_hits([found.hits[kind] for found in founds], _most(kind, limit)) for kind in KINDS}
    return replace(
        best,
        hits=hits,
        named=[id_ for found in founds for id_ in found.named],
        centers=[id_ for found in founds for id_ in found.centers],
        unread=[id_ for found in founds for id_ in found.unread],
        degraded=next((found.degraded for found in founds if found.degraded), None),
    )


def _merge_hits(hits: Sequence[Hits], most: int) -> Hits:
    """Return the results of one kind from several namespaces in one ranking for each way to search.

    *most*: the number of results by words, and by meaning, that are kept.
    """
    words, meaning, graph = (sort_scores(chain.from_iterable(each.of(way) for each in hits)) for way in RETRIEVERS)
    return Hits(words[:most], meaning[:most], graph)


def _most(kind: Kind, limit: int) -> int:
    """Return how many results of one *kind* each way to search reads, if the search returns *limit*."""
    return min(max(DEPTH[kind], limit), DEEPEST)


def _find(question: SearchQuery, time: QuestionTime, lookup: Lookup | None) -> Flow[Found]:
    """Return the candidates in a namespace, about which *lookup* has been read; None if the namespace is empty."""
    text = _text_of(question)
    nothing = Found(time.instants, time.time, time.past, dict.fromkeys(KINDS, NO_HITS))
    if lookup is None:
        return nothing if text else replace(nothing, doubt=answerable.WORDLESS)
    recipe = question.recipe
    scopes = yield from _measure_scopes(lookup, question, time)
    hits, baseline = yield from _search(lookup, recipe, scopes)
    asked, named = lookup.asked, lookup.origins.named
    needs = {"statements": bool(asked.subjects), "episode_details": lookup.any_unread or lookup.vector is not None}
    around = yield from look_around(hits, recipe, scopes, lookup.origins, lookup.vector, time.instants, **needs)
    hits = yield from add_graph_hits(hits, recipe, scopes, lookup.origins, around)
    centers = [row["id"] for row in named if not set(lookup.centers).isdisjoint(row["keys"])]
    unread = _find_unread(hits["episodes"], around) if lookup.any_unread else []
    found = replace(nothing, hits=hits, named=[row["id"] for row in named], centers=centers, unread=unread)
    found = replace(found, degraded=lookup.degraded)
    if not any(recipe.weights(kind).words for kind in answerable.EVIDENCE):
        return replace(found, relevance=None, doubt="")
    stated = {id_: around.links[id_].statements or {} for id_ in hits["facts"].searched if id_ in around.links}
    tellers = {id_: tuple(speakers.values()) for id_, speakers in stated.items()} if asked.subjects else {}
    near = {id_: row["nearness"] for id_, row in around.episodes.items() if row["nearness"] is not None}
    evidence = answerable.weigh_evidence(asked, hits, tellers, near, baseline)
    doubt = answerable.explain_doubt(text, asked, evidence)
    return replace(found, relevance=answerable.probability(evidence), doubt=doubt, evidence=evidence)


def _search(
    lookup: Lookup, recipe: Recipe, scopes: Mapping[Kind, retrievers.Scope]
) -> Flow[tuple[dict[Kind, Hits], Row | None]]:
    """Search by words and by meaning; return the results by kind, and how different two messages usually are.

    The second value is the baseline from `read_baseline`, ``{"distance": 0.4, "speakers": ["Ann"]}``; None if it is not
    needed. *scopes*: where to search for each kind.
    """
    searches: list[Flow[Any]] = []
    asked = lookup.asked
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
    return hits, results[len(scopes)] if len(results) > len(scopes) else None


def _find_unread(episodes: Hits, around: Surroundings) -> list[str]:
    """Return the ids of found messages that no model has read yet."""
    near = {id_ for id_, _ in episodes.meaning}
    ids = [id_ for id_, _ in episodes.words if id_ not in near]  # only the search by words finds unread messages
    return [id_ for id_ in ids if id_ in around.episodes and around.episodes[id_]["unread"]]


def _text_of(question: SearchQuery) -> str:
    """Return the text of *question*, cut to a maximum length; "" if it has no words to search for."""
    text = replace_unstorable(question.text)[:LONGEST_QUESTION]
    return text if has_words(text) or terms(text) else ""


def _look_up(question: SearchQuery, time: QuestionTime) -> Flow[Lookup | None]:
    """Read the data that a search needs (see `Lookup`); return None if there are no words or the namespace is empty.

    *time*: the time that the question is about.
    """
    text = _text_of(question)
    if not text:
        return None
    recipe = question.recipe
    asker = asker_keys(text, question.asker)
    about_asker = name_asker(text, question.asker) if asker and question.asker and is_subject(text) else text
    words = list(dict.fromkeys([*terms(text), *terms(about_asker)]))[:MOST_TERMS]
    keys = [*name_keys(text), *asker] if _needs_names(recipe) else []
    centers = [alias_key(replace_unstorable(name)) for name in question.center]
    keys += centers
    thread = thread_key(replace_unstorable(question.thread or ""))
    recent_entities = read_if(question.thread, cypher.RECENT_ENTITIES, thread_key=thread, limit=RECENT)
    statistics = _read_statistics(recipe, words, keys, time.instants)
    results = yield from in_step((*statistics, recent_entities, _read_names(question.where)))
    rows = [row for part in results[: len(statistics)] for row in part]
    recent, filter_names = results[len(statistics) :]
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
    vector, episode_vector, degraded = yield from _embed(text, named, counts["episodes"], recipe)
    subjects = frozenset(key for entity in named for key in entity["keys"]).union(asker)
    return Lookup(
        asked=answerable.QuestionStatistics(words, frequencies_of(rows, unused), counts, subjects, bool(named)),
        vector=vector,
        episode_vector=episode_vector,
        lengths={kind: length for row in rows for kind, length in row["lengths"].items()},
        centers=centers,
        known=known,
        origins=Origins(named, recent, {row["id"]: row["parts"] for row in rows[0]["parts"]}, counts["episodes"]),
        names=filter_names,
        sizes=counts,
        any_unread=any(row["unread"] for row in rows),
        degraded=degraded,
    )


def _embed(
    text: str, named: Sequence[Row], episodes: int, recipe: Recipe
) -> Flow[tuple[Vector | None, Vector | None, str | None]]:
    """Return ``(embedding of *text*, embedding to search messages, None)``; after an error, ``(None, None, error)``.

    The second embedding leaves out names of people. *named*: rows of the entities that the question names. *episodes*:
    the number of messages. Errors: `EmbeddingMismatch`; the error of the model if the recipe searches by meaning only.
    """
    if not any(recipe.weights(kind).meaning for kind in KINDS):
        return None, None, None
    weights = recipe.weights("episodes")
    # Names of people are in so many messages that they hide the topic; the search along the graph finds these messages.
    people = {key for row in named if row["type"] == "Person" for key in row["keys"]}
    about = without_names(text, people) if weights.meaning and weights.graph else text
    try:
        vectors = yield from embed(list(dict.fromkeys([text, about])), role="query")
        episode_vector = (yield from retrievers.sharpen(vectors[-1], episodes)) if weights.meaning else None
    except EmbeddingMismatch:
        raise
    except (EmbeddingError, SettingsError) as error:
        if not any(recipe.weights(kind).words or recipe.weights(kind).graph for kind in recipe.kinds):
            raise
        return None, None, f"searched by words and graph only, without embedding vectors: {error}"
    return vectors[0], episode_vector, None


def _without_asker(question: str, asker: Sequence[str], centers: Sequence[str], named: Sequence[Row]) -> Sequence[Row]:
    """Return the entities *named* in a question, without the asker if the question is about others.

    "Where does my sister Lily live?" is about Lily only. *named*: database rows. *asker* and *centers*: hashes of
    names; entities in *centers* stay.
    """
    others = [row for row in named if not set(row["keys"]) <= {*asker} - {*centers}]
    return others if asker and others and not is_subject(question) else named


def frequencies_of(rows: Sequence[Row], unused: Collection[str]) -> retrievers.Frequencies:
    """Return how many nodes of each kind contain each word: ``{"facts": {"paris": 3}}``.

    *rows*: the results of the query `word_statistics`. *unused*: words to leave out.
    """
    frequencies: dict[Kind, dict[str, int]] = {}
    for kind, pairs in (item for row in rows for item in row["often"].items()):
        frequencies[kind] = {word: often for word, often in pairs if word not in unused}
    return frequencies


def _read_statistics(recipe: Recipe, words: list[str], keys: list[str], instants: Instants) -> list[Flow[Any]]:
    """Return the database queries that count how many nodes of each kind contain each of *words*.

    The first query also returns the entities with a name in *keys* (hashes of names), the last one whether a model has
    yet to read any message. *instants*: the time that the question is about.
    """
    kinds = [kind for kind in KINDS if recipe.weights(kind).words]
    others: list[Kind] = [kind for kind in kinds if kind != "episodes"]
    parts = [("episodes",), tuple(others)] if 0 < len(others) < len(kinds) else [tuple(kinds)]
    names = {"keys": keys, **instants.params} if keys else {}
    first, *rest = [
        cypher.word_statistics(part, unread=part is parts[-1], names=bool(keys) and part is parts[0]) for part in parts
    ]
    return [fetch(first, terms=words, **names), *(fetch(query, terms=words) for query in rest)]


def _needs_names(recipe: Recipe) -> bool:
    """Return whether a search with *recipe* needs the entities that the question names."""
    walks = any(recipe.weights(kind).graph for kind in KINDS)
    return walks or any("hops" in reranker.features.all_features for reranker in recipe.rerankers)


def _read_names(where: Filter | None) -> Flow[Names]:
    """Return the ids of the entities that the filter *where* names, by hash of the name; ``{}`` without a filter."""
    return {} if where is None else (yield from read_names(where))


def _measure_scopes(lookup: Lookup, question: SearchQuery, time: QuestionTime) -> Flow[dict[Kind, retrievers.Scope]]:
    """Return a `Scope` for each kind: the filter, the number of matching nodes, and the maximum number of results."""
    scopes = []
    for kind in KINDS:
        if kind in question.recipe.kinds:
            limit, size = _most(kind, question.limit), lookup.sizes[kind]
            scopes.append(retrievers.Scope(kind, size, limit, time.instants, question.where, lookup.names))
    return {scope.kind: scope for scope in (yield from in_step(map(retrievers.narrow_scope, scopes)))}
