"""Step 4, resolve: which entities are known already, under this name or another (Zep 2.2.1)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kg_memory.falkor.queries import ingestion as queries
from kg_memory.falkor.rows import Row
from kg_memory.falkor.schema import refuse_other_vectors
from kg_memory.ingestion.questions import prepare_later_questions
from kg_memory.ingestion.records import JSON, Identity, Mention, ResolvedEntity
from kg_memory.ingestion.state import Draft, Update
from kg_memory.llm.joint import Question, ask_question, ask_together
from kg_memory.llm.prompts import RESOLVE
from kg_memory.llm.prompts.answers import Resolutions
from kg_memory.runtime.effects import Vector, embed, embedding_model, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, canonical_name, entity_id, entity_key

Candidate = dict[str, Any]
"""The row of a known entity, with its `score`."""
ByPlace = Mapping[int, list[Candidate]]
"""The known entities that each mention may be, best first, by its place."""
MOST_ALIASES = 50
"""The most other names of an entity; all are shown wherever it is compared with a new one."""
log = logging.getLogger("kg_memory.ingestion")


def resolve(draft: Draft, settings: Settings) -> Flow[Update]:
    """Find each entity among the known ones: by its names, its meaning and its words.

    The same name and type is the same entity, and so is a name from `merge_threshold` of similarity. What stays
    ambiguous is one question for all entities; where the plan reads at once, with the questions of later steps.
    """
    mentions = draft.mentions
    # Embed all that later steps need along with the names: one request instead of three.
    texts = [draft.episode.line, *(fact.sentence for fact in draft.stated or ())] if mentions else []
    vectors = yield from embed([*(mention.name for mention in mentions), *texts])
    is_declared = draft.episode.is_declared  # then a name is meant exactly
    candidates = yield from find_candidates(mentions, vectors[: len(mentions)], settings, exact=is_declared)
    identities = answers_before(mentions, candidates, draft.identities)
    unsure = {new: among for new, among in unclear(mentions, candidates, settings).items() if new not in identities}
    if not unsure:
        return {"entities": resolve_all(mentions, candidates, identities, draft.namespace, settings)}
    question = identity_question({new: mentions[new] for new in unsure}, unsure, draft.prompt_fields())
    later_answers: Update = {}
    if draft.stated is None:
        identities |= yield from ask_question(question)
    else:
        supposed = identities | likely(mentions, unsure)
        guess = resolve_all(mentions, candidates, supposed, draft.namespace, settings)
        later = yield from prepare_later_questions(draft.with_records(entities=guess), settings)
        answers, learned, judged = yield from ask_together(question, later.predicates, later.pairs)
        identities |= answers
        later_answers = {"learned": (*later.learned, *learned), "judged": judged, "related": later.related}
    return {"entities": resolve_all(mentions, candidates, identities, draft.namespace, settings), **later_answers}


# Candidates


def find_candidates(
    mentions: Sequence[Mention], vectors: Sequence[Vector], settings: Settings, *, exact: bool = False
) -> Flow[ByPlace]:
    """Return the known entities that each mention may be, best first; *exact* are only those that have its name.

    Raises: `EmbeddingMismatch` where the known ones are, or were, embedded anew by another model meanwhile.
    """
    names = [
        {
            "new": new,
            "alias": alias_key(mention.name),
            "type": mention.type,
            "embedding": vector,
            "terms": sorted(set(tokenise.terms(mention.name))),
        }
        for new, (mention, vector) in enumerate(zip(mentions, vectors, strict=True))
    ]
    if not names:
        return {}
    limit = settings.candidates
    if exact:
        rows = yield from read(queries.NAMESAKES, names=[{"new": row["new"], "alias": row["alias"]} for row in names])
    else:
        threshold = settings.ask_threshold or 0.0
        rows = yield from read(queries.SIMILAR_ENTITIES, names=names, limit=limit, threshold=threshold)
    candidates: dict[int, list[JSON]] = {new: [] for new in range(len(mentions))}
    for row in rows:
        if row["kind"] == "vectors":
            refuse_other_vectors(row["entity"], (yield from embedding_model()), len(vectors[0]))
        else:
            candidates[row["new"]].append(row)
    return {new: _best(own, limit) for new, own in candidates.items()}


def _best(rows: Iterable[Row], limit: int) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for row in rows:
        entity = row["entity"]
        candidate = best.setdefault(entity["id"], {**entity, "score": row["score"]})
        candidate["score"] = max(candidate["score"], row["score"])
    return sorted(best.values(), key=lambda candidate: (-candidate["score"], candidate["id"]))[:limit]


def certain(mention: Mention, candidates: Sequence[Candidate], settings: Settings) -> Candidate | None:
    """Return the one candidate that *mention* is beyond doubt, if there is one.

    A single candidate of its type with its name is certain, even if others are similar: `SIMILAR_ENTITIES` needs that.
    """
    default, key = settings.entity_types[0].name, alias_key(mention.name)
    fitting = [
        candidate
        for candidate in candidates
        if candidate["type"] == mention.type or default in (candidate["type"], mention.type)
    ]
    namesakes = [candidate for candidate in fitting if key in _alias_keys(candidate)]
    if namesakes:
        same_type = [candidate for candidate in namesakes if candidate["type"] == mention.type]
        return (same_type or namesakes)[0] if len(same_type or namesakes) == 1 else None
    threshold = 1.0 if settings.merge_threshold is None else settings.merge_threshold
    close = [candidate for candidate in fitting if candidate["score"] >= threshold]
    return close[0] if len(close) == 1 and _digits(close[0]["name"]) == _digits(mention.name) else None


def unclear(mentions: Sequence[Mention], candidates: ByPlace, settings: Settings) -> dict[int, list[Candidate]]:
    """Return the candidates of those mentions that code alone cannot resolve, by their places."""
    return {new: own for new, own in candidates.items() if own and not certain(mentions[new], own, settings)}


def likely(mentions: Sequence[Mention], unsure: ByPlace) -> dict[int, Identity]:
    """Return what *unsure* mentions most likely are: the best candidate with a name of the same words."""
    identities: dict[int, Identity] = {}
    for new, among in unsure.items():
        same = next((candidate for candidate in among if _sounds_like(mentions[new], candidate)), None)
        if same is not None:
            identities[new] = Identity(_ids(among), same["id"], "")
    return identities


def _sounds_like(mention: Mention, candidate: Candidate) -> bool:
    """Return whether the two have a name in common, or one of the same words: "kid" and "kids"."""
    own = set(tokenise.terms(mention.name))
    names = (candidate["name"], *candidate["aliases"])
    same_words = bool(own) and any(own == set(tokenise.terms(name)) for name in names)
    return same_words or alias_key(mention.name) in _alias_keys(candidate)


def _ids(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(candidate["id"] for candidate in candidates)


def _alias_keys(candidate: Candidate) -> set[str]:
    return {alias_key(name) for name in (candidate["name"], *candidate["aliases"])}


def _digits(name: str) -> list[str]:
    return [char for char in name if char.isdigit()]


# The question


def identity_question(mentions: Mapping[int, Mention], unsure: ByPlace, fields: Row) -> Question[dict[int, Identity]]:
    """Return the question which of its candidates each of *mentions* is; *fields* show what they were read from."""
    items = [
        {"id": new, "name": mentions[new].name, "type": mentions[new].type, "candidates": _show(among)}
        for new, among in unsure.items()
    ]
    return Question(RESOLVE, "entities", items, partial(_identify, unsure=unsure), fields)


def answers_before(
    mentions: Sequence[Mention], candidates: ByPlace, before: Mapping[str, Identity]
) -> dict[int, Identity]:
    """Return what was answered of mentions *before*, ahead of their turn, if it was about all that they may be now."""
    identities: dict[int, Identity] = {}
    for new, mention in enumerate(mentions):
        identity = before.get(canonical_name(mention.name))
        if identity and _still_fits(identity, candidates[new]):
            identities[new] = identity
    return identities


def _still_fits(identity: Identity, candidates: Sequence[Candidate]) -> bool:
    ids = set(_ids(candidates))
    return ids.issubset(identity.among) and (identity.same_as is None or identity.same_as in ids)


def _show(candidates: Sequence[Candidate]) -> list[JSON]:
    return [
        {
            "id": place,
            "name": candidate["name"],
            "type": candidate["type"],
            "summary": candidate["summary"],
            "aliases": candidate["aliases"],
            "score": round(candidate["score"], 2),
        }
        for place, candidate in enumerate(candidates)
    ]


def _identify(answers: Sequence[Resolutions], unsure: ByPlace) -> dict[int, Identity]:
    identities = {new: Identity(_ids(among), None, "") for new, among in unsure.items()}
    for answer in answers:
        for row in answer.resolutions:
            ids = identities[row.entity].among if row.entity in identities else ()
            if row.same_as is not None and 0 <= row.same_as < len(ids):
                identities[row.entity] = Identity(ids, ids[row.same_as], row.name)
    return identities


# Entities


def resolve_all(
    mentions: Sequence[Mention],
    candidates: ByPlace,
    identities: Mapping[int, Identity],
    namespace: str,
    settings: Settings,
) -> tuple[ResolvedEntity, ...]:
    """Return *mentions* as the candidates that they are beyond doubt, or by their *identities*, else as new entities.

    Those that turn out to be one are joined.
    """
    joined: dict[str, ResolvedEntity] = {}
    for new, mention in enumerate(mentions):
        entity = _resolve(mention, candidates[new], identities.get(new), namespace, settings)
        first = joined.get(entity.key)
        joined[entity.key] = _join(first, entity) if first else entity
    return tuple(joined.values())


def _resolve(
    mention: Mention,
    candidates: Sequence[Candidate],
    identity: Identity | None,
    namespace: str,
    settings: Settings,
) -> ResolvedEntity:
    same = certain(mention, candidates, settings)
    if same is not None:
        return _match_entity(mention, same, None)
    if identity is not None:
        same = next((candidate for candidate in candidates if candidate["id"] == identity.same_as), None)
        if same is not None:
            return _match_entity(mention, same, identity.name)
    key = entity_key(mention.name, mention.type)
    return ResolvedEntity(mention.name, mention.type, (mention.name,), key, entity_id(namespace, key))


def _match_entity(mention: Mention, same: Candidate, fullest: str | None) -> ResolvedEntity:
    """Return the known entity, under the *fullest* of its names if that is one, with the new name as an alias."""
    stored = str(same["name"])
    by_key: dict[str, str] = {canonical_name(name): name for name in (stored, mention.name, *same["aliases"])}
    name = by_key.get(canonical_name(fullest), stored) if fullest else stored
    names = dict.fromkeys((stored, mention.name))
    aliases = tuple(alias for alias in names if alias != name and alias not in same["aliases"])
    if len(same["aliases"]) >= MOST_ALIASES:
        log.warning("entity %s has %d other names already: no more are kept", same["id"], len(same["aliases"]))
        name, aliases = stored, ()
    return ResolvedEntity(
        name,
        same["type"],
        (mention.name,),
        same["key"],
        same["id"],
        is_new=False,
        renamed=name != stored,
        aliases=aliases,
        evicted=bool(same.get("evicted")),
    )


def _join(first: ResolvedEntity, second: ResolvedEntity) -> ResolvedEntity:
    """Return two that turned out to be one entity, under the new name if there is one."""
    named = second if second.renamed and not first.renamed else first
    names = dict.fromkeys((*first.aliases, *second.aliases))
    called = tuple(dict.fromkeys((*first.called, *second.called)))
    return replace(named, called=called, aliases=tuple(name for name in names if name != named.name))
