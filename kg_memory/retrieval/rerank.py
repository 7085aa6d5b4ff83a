"""Step 2, rerank: order the candidates of each kind by fusing all retrievers, then by the rerankers of the recipe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import Any, get_args

from kg_memory.errors import InputError
from kg_memory.falkor.queries import features as cypher
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.question import SPARE, Found, Ranked, SearchQuery, Stage
from kg_memory.retrieval.ranking import (
    DIGITS,
    Feature,
    Features,
    Instants,
    OfTheBest,
    QuestionView,
    Rankings,
    Reranker,
    Scored,
    fuse,
    ids_of,
    sort_scores,
)
from kg_memory.retrieval.recipe import ByRecency, ByTime, Recipe
from kg_memory.runtime.effects import fetch, in_step, score
from kg_memory.runtime.flow import Flow, at_all
from kg_memory.settings import Settings
from kg_memory.text.identity import replace_unstorable, thread_key
from kg_memory.text.payloads import hide_payloads

UNREAD_SHARE = 0.75
"""The score of the best unread episode by words, if the best candidate by all retrievers has 1."""


def rerank(values: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Ranked]]:
    """Return the best search results of each kind, combined and reranked: ``{"ranked": Ranked}``."""
    found: Found = values["found"]
    return at_all(found.namespaces, _rerank(values["question"], found, settings))


def _rerank(question: SearchQuery, found: Found, settings: Settings) -> Flow[dict[str, Ranked]]:
    rankings: Rankings = {kind: question.recipe.fuse(kind, hits) for kind, hits in found.hits.items()}
    if found.unread:
        words = found.hits["episodes"].words
        rankings["episodes"] = lift_unread(rankings["episodes"], words, found.unread, question.recipe)
    view = QuestionView(
        text=question.text,
        instants=found.instants,
        past=found.past,
        thread=question.thread,
        center=question.center,
        named=tuple(found.named),
        centers=tuple(found.centers),
    )
    rerankers = _useful_rerankers(question, view, settings)
    table: Table = {}
    if rerankers:
        table = yield from read_features(rankings, rerankers, view)
        for kind, rows in table.items():
            rankings[kind] = [scored for scored in rankings[kind] if scored[0] in rows]
    stages = [("fused", rankings)]
    for reranker in rerankers:
        reranked = yield from _apply(reranker, rankings, table, view)
        rankings = rankings | reranked
        stages.append((reranker.by, reranked))
    if question.explain:
        return {"ranked": Ranked(_cut(rankings, None), _stages(stages))}
    return {"ranked": Ranked(_cut(rankings, question.limit))}


def lift_unread(ranking: list[Scored], words: list[Scored], unread: Collection[str], recipe: Recipe) -> list[Scored]:
    """Return *ranking* of messages with higher scores for *unread* messages (ids), which no model has read yet."""
    # Without the other searches, the combined scores of unread messages are too low, even if they have the answer.
    factor = UNREAD_SHARE if recipe.fusion == "scores" else 1.0
    shares = dict(fuse([words], [1.0], recipe.fusion, recipe.rank_constant))
    worth = {id_: factor * shares[id_] for id_ in unread if id_ in shares}
    return sort_scores((id_, max(score, worth.get(id_, 0.0))) for id_, score in ranking)


def _useful_rerankers(question: SearchQuery, view: QuestionView, settings: Settings) -> tuple[Reranker, ...]:
    """Return the rerankers of the recipe, except those that cannot change the ranking for this question."""
    rerankers = question.recipe.rerankers
    if view.instants.vagueness is None:  # the question names no time
        rerankers = tuple(reranker for reranker in rerankers if not isinstance(reranker, ByTime))
    elif not any(isinstance(reranker, ByTime) for reranker in rerankers):
        rerankers = (*rerankers, ByTime())
    if not view.start:  # hops need a start
        rerankers = tuple(reranker for reranker in rerankers if "hops" not in reranker.features.all_features)
    rate = settings.temporal_decay_rate
    if rate and not any(isinstance(reranker, ByRecency) for reranker in rerankers):
        return (ByRecency(rate=rate), *rerankers)
    return rerankers


def _apply(reranker: Reranker, rankings: Rankings, table: Table, view: QuestionView) -> Flow[Rankings]:
    """Return new rankings by *reranker*, only for the kinds of result that it reorders."""
    kinds = [kind for kind in rankings if rankings[kind] and kind in reranker.features.kinds]
    yield from read_features_of_best(table, rankings, reranker, view)
    return {kind: reranker.rerank(rankings[kind], features_of(table, kind), view) for kind in kinds}


def _cut(rankings: Rankings, limit: int | None) -> Rankings:
    cut = {}
    for kind, ranking in rankings.items():
        # The spare messages replace messages without content.
        most = limit + SPARE if limit is not None and kind == "episodes" else limit
        cut[kind] = [(id_, round(value, DIGITS)) for id_, value in ranking[:most]]
    return cut


def _stages(stages: Sequence[tuple[str, Rankings]]) -> dict[Kind, dict[str, list[Stage]]]:
    """Return the scores of each result after each stage: ``{"facts": {id: [("fused", 0.9), ("recency", 0.8)]}}``."""
    scores: dict[Kind, dict[str, list[Stage]]] = {kind: {} for kind in stages[0][1]}
    for stage, rankings in stages:
        for kind, ranking in rankings.items():
            for id_, value in ranking:
                scores[kind].setdefault(id_, []).append((stage, round(value, DIGITS)))
    return scores


# The features of candidates: read for all at once, or for the best only, just before a reranker that needs them

QUERIES: tuple[tuple[Kind, str, tuple[Feature, ...]], ...] = (
    ("facts", cypher.FACTS_TOLD, ("stated_at", "confidence", "used", "used_at")),
    ("facts", cypher.FACTS_HELD, ("periods",)),
    ("facts", cypher.FACTS_STATED, ("trust", "sources", "mentions")),
    ("facts", cypher.FACTS_LINK, ("links",)),
    ("facts", cypher.FACTS_JOIN, ("hops",)),
    ("facts", cypher.FACTS_READ, ("entities", "names", "predicate", "text")),
    ("entities", cypher.ENTITIES_JOIN, ("hops", "mentions")),
    ("entities", cypher.ENTITIES_LINK, ("links",)),
    ("communities", cypher.COMMUNITIES_JOIN, ("hops", "mentions")),
    ("episodes", cypher.EPISODES_TOLD, ("stated_at", "trust")),
    ("episodes", cypher.EPISODES_JOIN, ("hops", "mentions")),
    ("episodes", cypher.EPISODES_LINK, ("links",)),
)
"""The database queries for features. Hops and mentions are counted from the entities that a query returns."""
OF_THE_BEST: tuple[Feature, ...] = get_args(OfTheBest)
SIMILARITIES: Mapping[Kind, str] = {
    "facts": cypher.FACTS_ALIKE,
    "entities": cypher.ENTITIES_ALIKE,
    "communities": cypher.COMMUNITIES_ALIKE,
    "episodes": cypher.EPISODES_ALIKE,
}
"""The queries for `similarity`, which is computed in the database: embedding vectors are never read."""
TEXTS: Mapping[Kind, str] = {
    "facts": cypher.FACTS_SAY,
    "entities": cypher.ENTITIES_SAY,
    "communities": cypher.COMMUNITIES_SAY,
    "episodes": cypher.EPISODES_SAY,
}
OF_NOW: tuple[Kind, ...] = ("entities", "communities")
"""The kinds whose texts describe the present, so that they cannot answer a question about the past."""
LONGEST = 2000
"""The most characters of the question, and of a text, that a cross-encoder reads."""
MOST_ENTITIES = 2000
"""The most entities to which hops are counted; entities beyond them count as not connected."""
COLUMNS = frozenset(field.name for field in fields(Features))

Table = dict[Kind, dict[str, dict[str, Any]]]
"""The features of candidates by kind, id and feature name; a deleted candidate has no row."""


def features_of(table: Table, kind: Kind) -> dict[str, Features]:
    """Return the features, such as age, of the search results of one *kind* in *table*: ``{id: Features(...)}``."""
    return {
        id_: Features(**{name: value for name, value in row.items() if name in COLUMNS})
        for id_, row in table.get(kind, {}).items()
    }


def read_features(rankings: Rankings, rerankers: Sequence[Reranker], view: QuestionView) -> Flow[Table]:
    """Return the features that *rerankers* need, such as confidence: ``{"facts": {id: {"confidence": 0.9}}}``."""
    queries = dict.fromkeys(_queries(rankings, rerankers))
    key = thread_key(replace_unstorable(view.thread)) if view.thread else None
    instants = view.instants.params
    reads = [fetch(query, ids=ids_of(rankings[kind]), thread_key=key, **instants) for kind, query in queries]
    answers = yield from in_step(reads)
    table: Table = {}
    for (kind, _), rows in zip(queries, answers, strict=True):
        new = {row["id"]: dict(row) for row in rows}
        old = table.get(kind, new)  # an id that is deleted from one query to the next is dropped
        table[kind] = {id_: {**old[id_], **row} for id_, row in new.items() if id_ in old}
    needs = [reranker.features for reranker in rerankers]
    hops = max((each.max_hops for each in needs if "hops" in each.all_features), default=0)
    further = [_add_hops(table, view.start, hops, view.instants)] if hops and view.start and any(table.values()) else []
    if any("mentions" in each.all_features for each in needs):
        further.append(_add_mentions(table, key))
    yield from in_step(further)
    return table


def _queries(rankings: Rankings, rerankers: Sequence[Reranker]) -> Iterable[tuple[Kind, str]]:
    """Yield ``(kind, Cypher query)`` for each query that reads features needed by *rerankers*."""
    for reranker, kind in product(rerankers, KINDS):
        for feature in reranker.features.for_kind(kind):
            queries = [query for of, query, features in QUERIES if of == kind and feature in features]
            if not queries and feature not in OF_THE_BEST:
                raise InputError(f"reranker {reranker.by!r} needs {feature!r}, which {kind} do not have: fix features")
            if rankings.get(kind):
                yield from ((kind, query) for query in queries)


def _rows_with_entities(table: Table, kinds: Iterable[Kind]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield ``(row, entity ids)`` for each search result of *kinds* with entities; the row in *table*, not a copy."""
    for kind in kinds:
        yield from ((row, row["entities"].split()) for row in table.get(kind, {}).values() if "entities" in row)


def _add_hops(table: Table, start: Sequence[str], max_hops: int, instants: Instants) -> Flow[None]:
    """Set ``row["hops"]`` of each result in *table*: its distance from the entities *start*, in facts.

    None if the distance is over *max_hops*.
    """
    targets = {id_ for _, entities in _rows_with_entities(table, KINDS) for id_ in entities}
    hops = yield from count_hops(start, targets, max_hops, instants)
    for row, entities in _rows_with_entities(table, KINDS):
        row["hops"] = min((hops[id_] for id_ in entities if id_ in hops), default=None)


def count_hops(
    start: Collection[str], targets: Collection[str], max_hops: int, instants: Instants
) -> Flow[dict[str, int]]:
    """Return the number of facts on the shortest path from the entities *start* to others: ``{entity id: 2}``."""
    hops = dict.fromkeys(sorted(start)[:MOST_ENTITIES], 0)
    edge, missing = list(hops), set(targets) - hops.keys()
    for distance in range(1, max_hops + 1):
        room = MOST_ENTITIES - len(hops)
        if not (edge and missing and room):
            break
        # The query also returns entities of earlier hops; a limit this high leaves room for enough new ones.
        rows = yield from fetch(cypher.NEXT_TO, ids=edge, limit=MOST_ENTITIES, **instants.params)
        edge = sorted({id_ for row in rows for id_ in row["entities"].split()} - hops.keys())[:room]
        hops |= dict.fromkeys(edge, distance)
        missing -= hops.keys()
    return hops


def _add_mentions(table: Table, key: str | None) -> Flow[None]:
    """Set ``row["mentions"]`` in *table*, except of facts: how often messages mention a result's entities.

    *key*: count only the messages of this conversation; None counts all.
    """
    kinds = [kind for kind in table if kind != "facts"]
    ids = sorted({id_ for _, entities in _rows_with_entities(table, kinds) for id_ in entities})
    mentions = fetch(cypher.MENTIONED_IN, thread_key=key) if key else fetch(cypher.MENTIONED, ids=ids)
    answers = (yield from mentions) if ids else []
    counts: dict[str, int] = {}
    for answer in answers:
        counts |= zip(answer["entities"].split(), map(int, answer["mentions"].split()), strict=True)
    for row, entities in _rows_with_entities(table, kinds):
        row["mentions"] = sum(counts.get(id_, 0) for id_ in entities)


def read_features_of_best(table: Table, rankings: Rankings, reranker: Reranker, view: QuestionView) -> Flow[None]:
    """Add the costly features `similarity` and `answer` of the best results to *table*, if *reranker* needs them."""
    needs = reranker.features
    best = {kind: ids_of(ranking[: needs.depth]) for kind, ranking in rankings.items() if ranking}
    if alike := {kind: ids for kind, ids in best.items() if "similarity" in needs.for_kind(kind)}:
        answers = yield from in_step(fetch(SIMILARITIES[kind], ids=ids) for kind, ids in alike.items())
        for kind, rows in zip(alike, answers, strict=True):
            _set_feature(table, kind, "similarity", _similarities(rows))
    if answering := {kind: ids for kind, ids in best.items() if "answer" in needs.for_kind(kind)}:
        yield from _add_answers(table, answering, view)


def _set_feature(table: Table, kind: Kind, name: str, values: Mapping[str, Any]) -> None:
    rows = table.setdefault(kind, {})
    for id_, value in values.items():
        rows.setdefault(id_, {})[name] = value


def _similarities(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return the cosine similarities of all pairs of search results: ``{id: {other id: 0.91}}``."""
    similarities: dict[str, dict[str, float]] = {row["id"]: {} for row in rows}
    for place, row in enumerate(rows, start=1):
        for later, number in zip(rows[place:], row["alike"].split(), strict=True):
            similarities[row["id"]][later["id"]] = similarities[later["id"]][row["id"]] = float(number)
    return similarities


def _add_answers(table: Table, best: Mapping[Kind, Sequence[str]], view: QuestionView) -> Flow[None]:
    """Set ``row["answer"]`` of the results *best*: a cross-encoder's score of the text, from 0 to 1.

    None for a result without a text.
    """
    answers = yield from in_step(fetch(TEXTS[kind], ids=ids, length=LONGEST) for kind, ids in best.items())
    texts: dict[str, str] = {}
    for kind, rows in zip(best, answers, strict=True):
        only_name = view.past and kind in OF_NOW
        texts |= {row["id"]: _text_to_score(row, only_name=only_name) for row in rows}
    scores = yield from score(replace_unstorable(view.text)[:LONGEST], list(texts.values()))
    by_id = dict(zip(texts, scores, strict=True))
    for kind, ids in best.items():
        _set_feature(table, kind, "answer", {id_: by_id.get(id_) for id_ in ids})


def _text_to_score(row: Row, *, only_name: bool) -> str:
    parts = (row["name"], None if only_name else hide_payloads(row["text"] or "", row.get("kind")))
    return ": ".join(part for part in parts if part)[:LONGEST]
