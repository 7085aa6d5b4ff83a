"""Step 2, rerank: one order a kind, by fusing all retrievers and then by the rerankers of the recipe (Zep 3.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, product

from kg_memory.errors import InputError
from kg_memory.falkor.queries import features as cypher
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.fuse import DIGITS, Scored, fuse, ids_of, sort_scores
from kg_memory.retrieval.plugins import Feature, Features, Instants, QuestionView, Rankings, Reranker
from kg_memory.retrieval.question import Found, Question, Ranked, Stage
from kg_memory.retrieval.recipe import Recipe
from kg_memory.retrieval.rerankers import ByRecency, ByTime
from kg_memory.retrieval.turns import SPARE
from kg_memory.runtime.effects import in_step, read, score
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import alias_key, replace_unstorable, thread_key
from kg_memory.text.payloads import hide_payloads

UNREAD_SHARE = 0.75
"""The relative score of an unread episode that is the best by words, beside 1 for the best by all retrievers."""


def rank(question: Question, found: Found, settings: Settings) -> Flow[Ranked]:
    """Fuse the hits of each kind, apply the recipe's rerankers one after another, and keep the best.

    Scores are from 0 to 1 and descend. Candidates that turn out to be deleted are left out. A search that is to explain
    itself keeps all, and the score of each after each stage.
    Errors: `InputError` for an unknown center.
    """
    rankings: Rankings = {kind: question.recipe.fuse(kind, hits) for kind, hits in found.hits.items()}
    if found.unread:
        words = found.hits["episodes"].words
        rankings["episodes"] = lift_unread(rankings["episodes"], words, found.unread, question.recipe)
    view = QuestionView(question.text, found.instants, found.past, question.thread, question.center, tuple(found.named))
    rerankers = _useful_rerankers(question, view, settings)
    features: FeatureTable = {}
    if rerankers:
        features = yield from read_features(rankings, rerankers, view)
        for kind, rows in features.items():
            rankings[kind] = [scored for scored in rankings[kind] if scored[0] in rows]
    stages = [("fused", rankings)]
    for reranker in rerankers:
        reranked = yield from _apply(reranker, rankings, features, view)
        rankings = rankings | reranked
        stages.append((reranker.by, reranked))
    if question.explain:
        return Ranked(_cut(rankings, None), _stages(stages))
    return Ranked(_cut(rankings, question.limit))


def lift_unread(ranking: list[Scored], words: list[Scored], unread: Collection[str], recipe: Recipe) -> list[Scored]:
    """Return *ranking* with the *unread* by what their *words* alone are worth: no other retriever can find them yet.

    Without this, all that merely shares a name with the question would come before a message that answers it.
    """
    factor = UNREAD_SHARE if recipe.fusion == "scores" else 1.0
    shares = dict(fuse([words], [1.0], recipe.fusion, recipe.rank_constant))
    worth = {id_: factor * shares[id_] for id_ in unread if id_ in shares}
    return sort_scores((id_, max(score, worth.get(id_, 0.0))) for id_, score in ranking)


def _useful_rerankers(question: Question, view: QuestionView, settings: Settings) -> tuple[Reranker, ...]:
    """Return the rerankers that can change anything, with the preferences of the settings and of the question.

    Newer facts are preferred first, the time that the words of the question name last.
    """
    rerankers = question.recipe.rerankers
    if view.instants.vagueness is None:  # no time is preferred
        rerankers = tuple(reranker for reranker in rerankers if not isinstance(reranker, ByTime))
    elif not any(isinstance(reranker, ByTime) for reranker in rerankers):
        rerankers = (*rerankers, ByTime())
    if not (view.center or view.named):  # there is nothing to be near to
        rerankers = tuple(reranker for reranker in rerankers if "hops" not in reranker.features.all)
    rate = settings.temporal_decay_rate
    if rate and not any(isinstance(reranker, ByRecency) for reranker in rerankers):
        return (ByRecency(rate=rate), *rerankers)
    return rerankers


def _apply(reranker: Reranker, rankings: Rankings, features: FeatureTable, view: QuestionView) -> Flow[Rankings]:
    """Return the kinds that *reranker* goes by, in its order."""
    kinds = [kind for kind in rankings if rankings[kind] and kind in reranker.features.kinds]
    features = yield from read_features_of_best(features, rankings, reranker, view)
    return {kind: reranker.rerank(rankings[kind], features.get(kind, {}), view) for kind in kinds}


def _cut(rankings: Rankings, limit: int | None) -> Rankings:
    cut = {}
    for kind, ranking in rankings.items():
        most = limit + SPARE if limit is not None and kind == "episodes" else limit
        cut[kind] = [(id_, round(value, DIGITS)) for id_, value in ranking[:most]]
    return cut


def _stages(stages: Sequence[tuple[str, Rankings]]) -> dict[Kind, dict[str, list[Stage]]]:
    """Return the scores of each id after each of *stages*; the first has all kinds."""
    scores: dict[Kind, dict[str, list[Stage]]] = {kind: {} for kind in stages[0][1]}
    for stage, rankings in stages:
        for kind, ranking in rankings.items():
            for id_, value in ranking:
                scores[kind].setdefault(id_, []).append((stage, round(value, DIGITS)))
    return scores


# The features that rerankers need: of all candidates at once, or of the best only, at the turn of the reranker

OF_EACH: Mapping[Kind, Mapping[str, tuple[Feature, ...]]] = {
    "facts": {
        cypher.FACTS_TOLD: ("stated_at", "confidence", "used", "used_at"),
        cypher.FACTS_HELD: ("periods",),
        cypher.FACTS_STATED: ("trust", "sources", "mentions"),
        cypher.FACTS_LINK: ("links",),
        cypher.FACTS_JOIN: ("hops",),
        cypher.FACTS_READ: ("entities", "names", "predicate", "text"),
    },
    "entities": {cypher.ENTITIES_JOIN: ("hops", "mentions"), cypher.ENTITIES_LINK: ("links",)},
    "communities": {cypher.COMMUNITIES_JOIN: ("hops", "mentions")},
    "episodes": {
        cypher.EPISODES_TOLD: ("stated_at", "trust"),
        cypher.EPISODES_JOIN: ("hops", "mentions"),
        cypher.EPISODES_LINK: ("links",),
    },
}
"""The queries that read features of all candidates of a kind."""
OF_THE_BEST: tuple[Feature, ...] = ("similarity", "answer")
SIMILARITIES: Mapping[Kind, str] = {
    "facts": cypher.FACTS_ALIKE,
    "entities": cypher.ENTITIES_ALIKE,
    "communities": cypher.COMMUNITIES_ALIKE,
    "episodes": cypher.EPISODES_ALIKE,
}
"""Similarity is computed in the database: no embedding leaves it."""
TEXTS: Mapping[Kind, str] = {
    "facts": cypher.FACTS_SAY,
    "entities": cypher.ENTITIES_SAY,
    "communities": cypher.COMMUNITIES_SAY,
    "episodes": cypher.EPISODES_SAY,
}
OF_NOW: tuple[Kind, ...] = ("entities", "communities")
"""The kinds whose texts tell of now, so that they do not answer a question about the past."""
LONGEST = 2000
"""The characters of the question, and of a text, that a cross-encoder reads."""
MOST_ENTITIES = 2000
"""The entities that distances are counted over, at most; beyond them counts as not connected."""
COLUMNS = frozenset(field.name for field in fields(Features))

FeatureTable = dict[Kind, dict[str, Features]]
"""The features of each candidate, by kind and id; a candidate that is gone has none."""
Table = dict[Kind, dict[str, Row]]


def read_features(rankings: Rankings, rerankers: Sequence[Reranker], view: QuestionView) -> Flow[FeatureTable]:
    """Return the features that the *rerankers* need of all candidates; of the kinds that any of them goes by.

    Errors: `InputError` for an unknown center, or a feature that a kind does not have.
    """
    queries = dict.fromkeys(_queries(rankings, rerankers))
    all_needs = [reranker.features for reranker in rerankers]
    needed = frozenset[Feature]().union(*(needs.all for needs in all_needs))
    key = thread_key(replace_unstorable(view.thread)) if view.thread else None
    instants = view.instants.params
    reads = [read(query, ids=ids_of(rankings[kind]), thread_key=key, **instants) for kind, query in queries]
    goes_by_hops = "hops" in needed and any(rankings.values())
    *answers, start = yield from in_step((*reads, _find_start(view if goes_by_hops else None)))
    table: Table = {}
    for (kind, _), rows in zip(queries, answers, strict=True):
        _join(table, kind, rows)
    hops = max((needs.max_hops for needs in all_needs if "hops" in needs.all), default=0)
    further = [_count_hops(table, start, hops, view.instants)] if start else []
    if "mentions" in needed:
        further.append(_count_mentions(table, key))
    yield from in_step(further)
    return {kind: dict(zip(rows, map(_features, rows.values()), strict=True)) for kind, rows in table.items()}


def _queries(rankings: Rankings, rerankers: Sequence[Reranker]) -> Iterable[tuple[Kind, str]]:
    """Yield the queries for the features that any of *rerankers* needs, with the kind of each."""
    for reranker, kind in product(rerankers, KINDS):
        for feature in reranker.features.of(kind):
            queries = [query for query, features in OF_EACH[kind].items() if feature in features]
            if not queries and feature not in OF_THE_BEST:
                raise InputError(f"reranker {reranker.by!r} needs {feature!r} of {kind}, which these do not have")
            if rankings.get(kind):
                yield from ((kind, query) for query in queries)


def _join(table: Table, kind: Kind, rows: Iterable[Row]) -> None:
    """Add *rows* to those of *kind*; an id that is deleted from one query to the next is dropped from both."""
    new = {row["id"]: row for row in rows}
    old = table.get(kind, new)
    table[kind] = {id_: {**old[id_], **row} for id_, row in new.items() if id_ in old}


def _features(row: Row) -> Features:
    return Features(**{name: value for name, value in row.items() if name in COLUMNS})


# Distances


def _find_start(view: QuestionView | None) -> Flow[list[str]]:
    if view is None:
        return []
    if view.center:
        called: set[str] = set()
        for name in view.center:
            called.update((yield from find_called(name)))
        return sorted(called)
    return list(view.named)


def find_called(name: str) -> Flow[list[str]]:
    """Return the ids of the entities that have *name* as their name or alias.

    Errors: `InputError` when there is none.
    """
    [row] = (yield from read(cypher.CALLED, key=alias_key(name))) or [{"entities": ""}]
    if not row["entities"]:
        raise InputError(f"center must be the name of an entity, got {name!r}, which nothing is called")
    return sorted(row["entities"].split())


def _count_hops(table: Table, start: Sequence[str], max_hops: int, instants: Instants) -> Flow[None]:
    """Add to *table* how many hops each candidate is from the *start*, by the nearest of its entities."""
    entities = _entities(table, KINDS)
    hops = yield from count_hops(start, set(chain(*entities.values())), max_hops, instants)
    near = nearest(entities, hops)
    for rows in table.values():
        for id_, row in rows.items():
            rows[id_] = {**row, "hops": near.get(id_)}


def count_hops(
    start: Collection[str], targets: Collection[str], max_hops: int, instants: Instants
) -> Flow[dict[str, int]]:
    """Return the hops from the nearest of *start* to entities, along facts that hold, until it has all *targets*.

    One query a hop, and never through an entity twice.
    """
    hops = dict.fromkeys(sorted(start)[:MOST_ENTITIES], 0)
    edge, missing = list(hops), set(targets) - hops.keys()
    for distance in range(1, max_hops + 1):
        room = MOST_ENTITIES - len(hops)
        if not (edge and missing and room):
            break
        # It returns the entities of earlier hops again: as many more leave room for enough new ones.
        rows = yield from read(cypher.NEXT_TO, ids=edge, limit=MOST_ENTITIES, **instants.params)
        [row] = rows or [{"entities": ""}]
        edge = sorted(set(row["entities"].split()) - hops.keys())[:room]
        hops |= dict.fromkeys(edge, distance)
        missing -= hops.keys()
    return hops


def nearest(entities: Mapping[str, Collection[str]], hops: Mapping[str, int]) -> dict[str, int]:
    """Return the hops of each id by the nearest of its *entities*; without those that are not connected."""
    near = {}
    for id_, ends in entities.items():
        reached = [hops[end] for end in ends if end in hops]
        if reached:
            near[id_] = min(reached)
    return near


def _entities(table: Table, kinds: Collection[Kind]) -> dict[str, list[str]]:
    """Return the entities of each candidate of *kinds*."""
    rows = [(id_, row) for kind in kinds for id_, row in table.get(kind, {}).items()]
    return {id_: row["entities"].split() for id_, row in rows if "entities" in row}


# Mentions


def _count_mentions(table: Table, key: str | None) -> Flow[None]:
    """Add to all but facts in *table* how often their entities are mentioned, in the thread with that *key*."""
    kinds = [kind for kind in table if kind != "facts"]
    entities = _entities(table, kinds)
    ids = sorted(set(chain(*entities.values())))
    answers: list[Row] = []
    if ids:
        answers += yield from (read(cypher.MENTIONED_IN, thread_key=key) if key else read(cypher.MENTIONED, ids=ids))
    counts: dict[str, int] = {}
    for answer in answers:
        counts |= zip(answer["entities"].split(), map(int, answer["mentions"].split()), strict=True)
    for kind in kinds:
        for id_, row in table[kind].items():
            mentions = sum(counts.get(entity, 0) for entity in entities.get(id_, ()))
            table[kind][id_] = {**row, "mentions": mentions}


# Of the best only


def read_features_of_best(
    table: FeatureTable, rankings: Rankings, reranker: Reranker, view: QuestionView
) -> Flow[FeatureTable]:
    """Return *table* with the features that *reranker* needs of the best of *rankings* alone."""
    needs = reranker.features
    heads: dict[Feature, dict[Kind, list[str]]] = {feature: {} for feature in OF_THE_BEST}
    for feature, (kind, ranking) in product(OF_THE_BEST, rankings.items()):
        if feature in needs.of(kind) and ranking:
            heads[feature][kind] = ids_of(ranking[: needs.depth])
    if heads["similarity"]:
        table = yield from _add_similarities(table, heads["similarity"])
    if heads["answer"]:
        table = yield from _add_answers(table, heads["answer"], view)
    return table


def _add_similarities(table: FeatureTable, heads: Mapping[Kind, Sequence[str]]) -> Flow[FeatureTable]:
    table = dict(table)
    answers = yield from in_step(read(SIMILARITIES[kind], ids=ids) for kind, ids in heads.items())
    for kind, rows in zip(heads, answers, strict=True):
        features = dict(table.get(kind, {}))
        for id_, similarity in _similarities(rows).items():
            features[id_] = replace(features.get(id_, Features()), similarity=similarity)
        table[kind] = features
    return table


def _similarities(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return the similarity of each two, both ways round; each row has those to the rows after it."""
    similarities: dict[str, dict[str, float]] = {row["id"]: {} for row in rows}
    for place, row in enumerate(rows, start=1):
        for later, number in zip(rows[place:], row["alike"].split(), strict=True):
            similarities[row["id"]][later["id"]] = similarities[later["id"]][row["id"]] = float(number)
    return similarities


def _add_answers(table: FeatureTable, heads: Mapping[Kind, Sequence[str]], view: QuestionView) -> Flow[FeatureTable]:
    table = dict(table)
    answers = yield from in_step(read(TEXTS[kind], ids=ids, length=LONGEST) for kind, ids in heads.items())
    texts: dict[str, str] = {}
    for kind, rows in zip(heads, answers, strict=True):
        only_name = view.past and kind in OF_NOW
        texts |= {row["id"]: _text(row, only_name=only_name) for row in rows}
    scores = yield from score(replace_unstorable(view.text)[:LONGEST], list(texts.values()))
    by_id = dict(zip(texts, scores, strict=True))
    for kind, ids in heads.items():
        features = dict(table.get(kind, {}))
        for id_ in ids:
            features[id_] = replace(features.get(id_, Features()), answer=by_id.get(id_))
        table[kind] = features
    return table


def _text(row: Row, *, only_name: bool) -> str:
    parts = (row["name"], None if only_name else hide_payloads(row["text"] or "", row.get("kind")))
    return ": ".join(part for part in parts if part)[:LONGEST]
