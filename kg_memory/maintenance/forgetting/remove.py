"""What goes and what stays otherwise when some messages are forgotten, as the query that writes it takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory.ingestion.save import NAME_WEIGHT
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting.believe import refuted_no_more
from kg_memory.maintenance.forgetting.look import Ground
from kg_memory.maintenance.forgetting.sharing import terms
from kg_memory.maintenance.forgetting.wording import is_theirs, retold
from kg_memory.runtime.effects import embed, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_START
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key

Row = Mapping[str, Any]
Params = dict[str, Any]


def going(ground: Ground, settings: Settings) -> list[str]:
    """Return the facts that go: nobody else states them, or only what goes names their ends or what they say."""
    gone = ground.gone
    return [
        id_
        for id_, fact in ground.facts.items()
        if all(each["id"] in gone.ids for each in fact["statements"])
        or not ground.leaving.isdisjoint((fact["subject"], *fact["objects"]))
        or is_theirs(fact["predicate"], gone, ground.said[id_], settings.fact_types)
    ]


def links(episodes: Iterable[Row]) -> list[dict[str, str]]:
    """Return what follows what in the threads once *episodes* are not there."""
    after = {each["id"]: each["after"] for each in episodes}

    def left(ids: Iterable[str]) -> list[str]:
        return [one for id_ in ids for one in (left(after[id_]) if id_ in after else [id_])]

    return [
        {"before": before, "after": next_}
        for each in episodes
        for before in each["before"]
        if before not in after
        for next_ in left(each["after"])
    ]


def facts_left(ground: Ground, leaving: Sequence[str]) -> Flow[Params]:
    """Return the facts that stay, as far as what is said of them, or in which words, is not what it was."""
    names = {id_: left[0] for id_, left in ground.names.items() if left}
    evidence, told, unrefuted = [], [], []
    for id_, fact in ground.facts.items():
        if id_ in leaving:
            continue
        words_left = retold(fact, names, ground.gone, ground.said[id_])
        if id_ in ground.own("state") or words_left["wording"] != fact["wording"]:
            evidence.append({"id": id_, "wording": words_left["wording"], **_told(fact, ground)})
        if words_left["sentence"] != fact["sentence"]:
            told.append({"id": id_, "sentence": words_left["sentence"]})
        if id_ in ground.own("state"):
            refuted = refuted_no_more(fact, ground.gone.ids)
            unrefuted += [{"episode": each["id"], "fact": id_} for each in refuted]
    vectors = yield from embed([each["sentence"] for each in told])
    counts = [tokenise.count_terms(each["sentence"]) for each in told]
    rows = [
        {**each, "embedding": vector, "n": count.total(), "terms": terms(count)}
        for each, vector, count in zip(told, vectors, counts, strict=True)
    ]
    return {"evidence": evidence, "retold": rows, "unrefuted": unrefuted}


def _told(fact: Row, ground: Ground) -> Params:
    """Return when and by whom *fact* was told, by those who are left; words that tell only an end come last."""
    left = [each for each in fact["statements"] if each["id"] not in ground.gone.ids]
    known = {"confidence": max(each["confidence"] for each in left), "said_at": max(each["said_at"] for each in left)}
    if fact["told_by"] not in ground.gone.ids:
        return known | {name: fact[name] for name in ("told_at", "told_by", "told_end")}
    end, at, by = min((_only_ends(each), each["said_at"], each["id"]) for each in left)
    return known | {"told_at": at, "told_by": by, "told_end": end}


def _only_ends(statement: Row) -> bool:
    return bool(statement["valid_at"] == OPEN_START and statement["invalid_at"] <= statement["said_at"])


def entities_left(ground: Ground, changed: Iterable[str]) -> Flow[Params]:
    """Return the entities that stay and are mentioned by what goes, or whose facts are *changed*, without it.

    Their summaries are empty: they are made anew.
    """
    touched = ground.own("mention").union(changed)
    touched |= {id_ for id_, entity in ground.entities.items() if _lost(entity, ground.names[id_])}
    rows, renamed, unnamed = [], [], []
    for id_ in sorted(touched - ground.leaving):
        entity, names = ground.entities[id_], ground.names[id_]
        counts = tokenise.count_terms(" ".join(names), NAME_WEIGHT)
        seen = {name: entity[name] for name in ("id", "key", "first_seen", "last_seen")}
        rows.append({**seen, "aliases": names[1:], "n": counts.total(), "terms": terms(counts)})
        if names[0] != entity["name"]:
            renamed.append({"key": entity["key"], "name": names[0]})
        lost = {alias_key(name) for name in _lost(entity, names)} - {alias_key(name) for name in names}
        unnamed += [{"key": entity["key"], "alias": alias} for alias in sorted(lost)]
    vectors = yield from embed([each["name"] for each in renamed])
    named = [{**each, "embedding": vector} for each, vector in zip(renamed, vectors, strict=True)]
    return {"entities": rows, "renamed": named, "unnamed": unnamed}


def _lost(entity: Row, names: Sequence[str]) -> list[str]:
    return [name for name in (entity["name"], *entity["aliases"]) if name not in names]


def verdicts_left(ground: Ground, leaving: Sequence[str]) -> Flow[Params]:
    """Return the verdicts and decisions that go with their facts, and those that stay, without the words of what goes.

    A reason that may tell what is forgotten is left out.
    """
    rows = yield from read(cypher.VERDICTS, ids=sorted(ground.facts))
    found = {row["id"]: row for row in rows}
    gone = {id_: row for id_, row in found.items() if {row["new"], row["known"]} & set(leaving)}
    scrubbed = []
    for id_, row in found.items():
        theirs = row["episode"] in ground.gone.ids
        if id_ not in gone and (theirs or not ground.gone.words.isdisjoint(tokenise.terms(row["reason"] or ""))):
            scrubbed.append({"id": id_, "reason": "", "episode": None if theirs else row["episode"]})
    return {
        "scrubbed": scrubbed,
        "gone_verdicts": sorted(gone),
        "gone_decisions": sorted({each for row in gone.values() for each in row["decisions"]}),
    }


def others(ground: Ground, leaving: Sequence[str], touched: Sequence[str]) -> Flow[Params]:
    """Return what else may go: communities that may tell of it, and predicates and names that nothing has any more."""
    communities = [row["id"] for row in (yield from read(cypher.COMMUNITIES, ids=touched))]
    learned = yield from read(cypher.LEARNED_PREDICATES)
    used = {ground.facts[id_][name] for id_ in leaving for name in ("predicate", "wording")}
    said = ground.gone.words
    predicates = [
        row["name"]
        for row in learned
        if row["name"] in used or not said.isdisjoint(tokenise.terms(row["name"].replace("_", " ")))
    ]
    aliases = {alias_key(name) for each in ground.entities.values() for name in _lost(each, ground.names[each["id"]])}
    return {"gone_communities": communities, "gone_predicates": predicates, "gone_aliases": sorted(aliases)}


def unread(ground: Ground, leaving: Sequence[str]) -> Flow[list[str]]:
    """Return the episodes that stay and of which something goes: they are to be read again."""
    rows = yield from read(cypher.MENTIONING, ids=sorted(ground.leaving))
    found = {row["id"] for row in rows}
    found |= {each["id"] for id_ in leaving for each in ground.facts[id_]["statements"]}
    return sorted(found - ground.gone.ids)
