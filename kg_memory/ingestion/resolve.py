"""Step 4, resolve: match the entities that a text mentions with stored entities, by the same name or a similar one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from kg_memory.falkor.queries import ingestion as queries
from kg_memory.falkor.rows import Row
from kg_memory.falkor.schema import refuse_other_vectors
from kg_memory.ingestion.namesakes import (
    SHARED_TYPES,
    Candidate,
    alias_keys,
    doubt_namesakes,
    doubt_speaker,
    is_bare_noun,
    mark_other_speakers,
    may_be_of_type,
    speaks,
    split_owner,
)
from kg_memory.ingestion.records import JSON, EntityMatch, EntityMention, ResolvedEntity
from kg_memory.ingestion.state import Draft, Update, ask_in_batches
from kg_memory.llm.prompts import RESOLVE
from kg_memory.runtime.effects import EmbeddingModel, Vector, embed, fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import alias_key, canonical_name, entity_id, entity_key
from kg_memory.text.tokenise import terms

Candidates = Sequence[Candidate]
ByMention = Mapping[int, list[Candidate]]
"""The stored entities that each mention may be, best first, by the mention's index in `Draft.mentions`."""
MOST_ALIASES = 50
"""The most aliases of an entity, as a prompt that compares it shows all of them."""
log = logging.getLogger("kg_memory.ingestion")


def resolve(draft: Draft, settings: Settings) -> Flow[Update]:
    """Return the entities of a text, each matched with a stored entity or new: ``{"entities": (...), ...}``.

    They match by name and type, or by a similar name; the model is asked about unclear entities.
    """
    mentions = draft.mentions
    # Embed the texts of later steps along with the names: one request instead of three.
    soon = [draft.episode.line, *(fact.sentence for fact in draft.stated or ())] if mentions else []
    vectors = yield from embed([mention.name for mention in mentions], later=soon)
    is_declared = draft.episode.is_declared  # declared names are exact
    candidates, predicates_at = yield from find_entity_candidates(mentions, vectors, settings, exact=is_declared)
    if not is_declared:
        candidates = yield from doubt_known(draft, candidates, settings)
    identities = yield from _ask(draft, unclear(mentions, candidates, settings))
    return {"entities": resolve_all(draft, candidates, identities, settings), "predicates_at": predicates_at}


# Candidates


def find_entity_candidates(
    mentions: Sequence[EntityMention], vectors: Sequence[Vector], settings: Settings, *, exact: bool = False
) -> Flow[tuple[ByMention, int]]:
    """Return the stored entities that each of *mentions* may be, best first: ``({0: [entity, ...]}, changed_at)``.

    ``changed_at``: when a predicate was last learned, in microseconds, for a later step.
    """
    names = [
        {
            "new": new,
            "alias": alias_key(mention.name),
            "type": mention.type,
            "embedding": vector,
            "terms": sorted(set(terms(mention.name))),
        }
        for new, (mention, vector) in enumerate(zip(mentions, vectors, strict=True))
    ]
    if not names:
        return {}, 0
    limit = settings.candidates
    if exact:
        rows = yield from fetch(queries.NAMESAKES, names=[{"new": row["new"], "alias": row["alias"]} for row in names])
    else:
        threshold = settings.ask_threshold or 0.0
        rows = yield from fetch(queries.SIMILAR_ENTITIES, names=names, limit=limit, threshold=threshold)
    candidates: dict[int, list[JSON]] = {new: [] for new in range(len(mentions))}
    predicates_at = 0
    for row in rows:
        if row["kind"] == "meta":
            meta, model = row["entity"], (yield EmbeddingModel())
            if (meta["model"], meta["dimension"]) != (model, len(vectors[0])):
                refuse_other_vectors(meta, model, len(vectors[0]))
            predicates_at = meta["predicates"] or 0
        else:
            candidates[row["new"]].append(row)
    best = {new: _best(own, limit) for new, own in candidates.items()}
    offered = {new: select_offered(mentions[new], own, best, mentions, settings) for new, own in best.items()}
    return offered, predicates_at


def select_offered(
    mention: EntityMention, similar: Candidates, best: ByMention, mentions: Sequence[EntityMention], settings: Settings
) -> list[Candidate]:
    """Return the entities in *similar* that could be *mention*, by type and owner: "Ann's dog" is not "Bob's dog"."""
    fitting = [candidate for candidate in similar if may_be_of_type(mention, candidate, settings)]
    owner, noun = split_owner(mention.name) or ("", "")
    if not owner:
        key = canonical_name(mention.name)
        called = {one["id"]: (one["name"], *one["aliases"]) for one in fitting}
        return [one for one in fitting if any((split_owner(name) or ("",))[0] != key for name in called[one["id"]])]
    keys = {owner}
    for index, named in enumerate(mentions):
        if owner in (canonical_name(named.name), canonical_name(named.called)):
            same = certain(named, best.get(index, ()), settings)
            keys |= {canonical_name(name) for name in (same["name"], *same["aliases"])} if same else set()
    offered: list[Candidate] = []
    for candidate in fitting:
        names = (candidate["name"], *candidate["aliases"])
        owned = [parts for name in names if (parts := split_owner(name))]
        if any(parts == (key, noun) for parts in owned for key in keys):
            offered.append({**candidate, "owned": True})
            continue
        # Leave out the owner itself, found because summaries contain its name.
        is_owner = not keys.isdisjoint(map(canonical_name, names))
        is_others = bool(owned) and all(parts[0] not in keys for parts in owned)
        is_anybodys = not owned and is_bare_noun(candidate["name"])
        if not (is_owner or is_others or is_anybodys) and candidate["score"] > 0:
            offered.append(candidate)
    return offered


def _best(rows: Iterable[Row], limit: int) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for row in rows:
        entity = row["entity"]
        candidate = best.setdefault(entity["id"], {**entity, "score": row["score"]})
        candidate["score"] = max(candidate["score"], row["score"])
    return sorted(best.values(), key=lambda candidate: (-candidate["score"], candidate["id"]))[:limit]


def certain(mention: EntityMention, candidates: Candidates, settings: Settings) -> Candidate | None:
    """Return the stored entity in *candidates* that *mention* certainly is, or None."""
    key = alias_key(mention.name)
    if any(candidate.get("apart") for candidate in candidates):
        return None
    fitting = [candidate for candidate in candidates if may_be_of_type(mention, candidate, settings)]
    namesakes = [candidate for candidate in fitting if key in alias_keys(candidate) or candidate.get("owned")]
    if namesakes:
        meant = [candidate for candidate in namesakes if candidate["type"] == mention.type] or namesakes
        return meant[0] if len(meant) == 1 and not meant[0].get("doubted") else None
    general = settings.entity_types[0].name
    akin = [one for one in fitting if general == mention.type or one["type"] in (mention.type, general)]
    threshold = 1.0 if settings.merge_threshold is None else settings.merge_threshold
    close = [candidate for candidate in akin if candidate["score"] >= threshold]
    return close[0] if len(close) == 1 and _digits(close[0]["name"]) == _digits(mention.name) else None


def doubt_known(draft: Draft, candidates: ByMention, settings: Settings) -> Flow[dict[int, list[Candidate]]]:
    """Return *candidates*, with marks on entities that have a mention's name but may be somebody else."""
    same: dict[int, Candidate] = {}
    for index, mention in enumerate(draft.mentions):
        candidate = certain(mention, candidates.get(index, ()), settings)
        if candidate is not None and alias_key(mention.name) in alias_keys(candidate):
            same[index] = candidate
    marked = {index: list(own) for index, own in candidates.items()}
    for index, mention in enumerate(draft.mentions):
        if index not in same and speaks(mention, draft):
            marked[index] = yield from mark_other_speakers(mention.name, marked.get(index, []))
    return (yield from doubt_namesakes(draft, marked, same, settings)) if same else marked


def unclear(mentions: Sequence[EntityMention], candidates: ByMention, settings: Settings) -> dict[int, list[Candidate]]:
    """Return the mentions that only the model can match: ``{index of the mention: [stored entity, ...]}``."""
    open_ones: dict[int, list[Candidate]] = {}
    for new, own in candidates.items():
        offered = [candidate for candidate in own if not candidate.get("apart")]
        if offered and not certain(mentions[new], own, settings) and not mentions[new].introduces:
            open_ones[new] = offered
    return open_ones


def _digits(name: str) -> list[str]:
    return [char for char in name if char.isdigit()]


# The question


def _ask(draft: Draft, unsure: ByMention) -> Flow[dict[int, EntityMatch]]:
    """Ask the model which stored entities the unclear mentions are; return its answers by mention."""
    items: list[JSON] = []
    ids: dict[int, tuple[int, str]] = {}
    identities: dict[int, EntityMatch] = {}
    for new, among in unsure.items():
        shown: list[JSON] = []
        for candidate in among:
            shown.append({"id": len(ids), **{name: candidate[name] for name in ("name", "type", "aliases", "summary")}})
            ids[len(ids)] = new, candidate["id"]
        mention = draft.mentions[new]
        items.append({"id": new, "name": mention.name, "type": mention.type, "candidates": shown})
        presumed = next((candidate["id"] for candidate in among if candidate.get("doubted")), None)
        if presumed is not None:
            identities[new] = EntityMatch(presumed, "")
    answers = yield from ask_in_batches(RESOLVE, "entities", items, draft.prompt_fields())
    for row in chain.from_iterable(answer.resolutions for answer in answers):
        index, id_ = ids.get(row.same_as if row.same_as is not None else -1, (row.entity, ""))
        if row.entity in unsure and index == row.entity:
            identities[row.entity] = EntityMatch(id_ or None, row.name if id_ else "", row.confidence)
    return identities


# Entities


def resolve_all(
    draft: Draft, candidates: ByMention, identities: Mapping[int, EntityMatch], settings: Settings
) -> tuple[ResolvedEntity, ...]:
    """Return the entities of all mentions: the stored one if the match is certain, else a new one.

    Equal entities are merged, so there may be fewer than mentions.
    """
    resolved: list[ResolvedEntity] = []
    for new, mention in enumerate(draft.mentions):
        resolved.append(_resolve(mention, candidates.get(new, ()), identities.get(new), draft, settings))
    joined: dict[str, ResolvedEntity] = {}
    for entity in _join_introduced(draft.mentions, resolved):
        first = joined.get(entity.key)
        joined[entity.key] = _join(first, entity) if first else entity
    return tuple(joined.values())


def _join_introduced(mentions: Sequence[EntityMention], resolved: Sequence[ResolvedEntity]) -> list[ResolvedEntity]:
    """Merge each speaker in *resolved* with the name by which they introduce themselves ("I'm Ann")."""
    entities = list(resolved)
    for index, mention in enumerate(mentions):
        speaker = next((at for at, one in enumerate(mentions) if one.name == mention.introduces), None)
        if not mention.introduces or speaker is None or entities[speaker].id == entities[index].id:
            continue
        one, named = entities[speaker], entities[index]
        if one.is_new:
            aliases = tuple(dict.fromkeys((*named.aliases, *one.called)))
            entities[speaker] = replace(named, called=one.called, aliases=aliases)
        elif named.is_new:
            aliases = tuple(dict.fromkeys((one.name, *one.aliases)))
            renamed = {"name": named.name, "renamed": True, "aliases": aliases}
            entities[index] = replace(one, called=named.called, **renamed)  # type: ignore[arg-type]
            entities[speaker] = replace(one, **renamed)  # type: ignore[arg-type]
    return entities


def new_key(mention: EntityMention, candidates: Candidates, episode: str) -> str:
    """Return the storage key of a new entity, made from its name and type; *episode* makes it unique if needed."""
    key = entity_key(mention.name, mention.type)
    is_taken = any(key == candidate["key"] for candidate in candidates)
    return entity_key(mention.name, mention.type, episode) if is_taken else key


def _resolve(
    mention: EntityMention, candidates: Candidates, identity: EntityMatch | None, draft: Draft, settings: Settings
) -> ResolvedEntity:
    """Return the stored entity in *candidates* that *mention* certainly is, else a new entity."""
    same = certain(mention, candidates, settings)
    if same is not None:
        return _match_entity(mention, same, None)
    doubt = None
    if identity is not None:
        same = next((candidate for candidate in candidates if candidate["id"] == identity.same_as), None)
        if same is not None and identity.confidence >= settings.auto_threshold:
            return _match_entity(mention, same, identity.name)
        doubt = _find_doubt(mention, same, candidates, identity, settings)
    if doubt is None and speaks(mention, draft):
        doubt = doubt_speaker(mention, candidates, settings)
    key = new_key(mention, candidates, draft.episode.id)
    others = [candidate["id"] for candidate in candidates if alias_key(mention.name) in alias_keys(candidate)]
    apart = tuple(id_ for id_ in others if doubt is None or id_ != doubt.same_as)
    id_ = entity_id(draft.namespace, key)
    return ResolvedEntity(mention.name, mention.type, (mention.called,), key, id_, apart_from=apart, doubt=doubt)


def _find_doubt(
    mention: EntityMention, same: Candidate | None, candidates: Candidates, identity: EntityMatch, settings: Settings
) -> EntityMatch | None:
    """Return the stored entity that *mention* may be, for a person to decide, or None."""
    if same is None and identity.confidence < settings.auto_threshold:
        names = (candidate for candidate in candidates if alias_key(mention.name) in alias_keys(candidate))
        same = next((candidate for candidate in names if not candidate.get("apart")), None)
    if same is None or mention.type.casefold() in SHARED_TYPES or identity.confidence < settings.review_threshold:
        return None
    return replace(identity, same_as=same["id"])


def _match_entity(mention: EntityMention, same: Candidate, fullest: str | None) -> ResolvedEntity:
    """Return the stored entity *same* as the match for *mention*, whose name becomes an alias of it."""
    stored = str(same["name"])
    by_key: dict[str, str] = {canonical_name(name): name for name in (stored, mention.name, *same["aliases"])}
    name = by_key.get(canonical_name(fullest), stored) if fullest else stored
    names = dict.fromkeys((stored, mention.name))
    if is_bare_noun(mention.name) and split_owner(stored):
        names = {stored: None}  # "the pendant" may be another one in other episodes: not an alias
    aliases = tuple(alias for alias in names if alias != name and alias not in same["aliases"])
    if len(same["aliases"]) >= MOST_ALIASES:
        log.warning("entity %s has %d aliases already: the new name is not added", same["id"], len(same["aliases"]))
        name, aliases = stored, ()
    return ResolvedEntity(
        name,
        same["type"],
        (mention.called,),
        same["key"],
        same["id"],
        is_new=False,
        renamed=name != stored,
        aliases=aliases,
    )


def _join(first: ResolvedEntity, second: ResolvedEntity) -> ResolvedEntity:
    named = second if second.renamed and not first.renamed else first
    names = dict.fromkeys((*first.aliases, *second.aliases))
    called = tuple(dict.fromkeys((*first.called, *second.called)))
    return replace(named, called=called, aliases=tuple(name for name in names if name != named.name))
