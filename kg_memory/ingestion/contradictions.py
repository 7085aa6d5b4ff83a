"""Candidates for contradictions: which facts are compared, and how the model is asked.

Facts are compared that share an end in any role (C49, D32), or are near in meaning to one another. What code finds to
be said again is not asked about; all that is left is one question for the whole episode: first whether two facts say
the same (step 7, dedupe), and only then whether one ends or refutes the other (step 8, invalidate).

A verdict is kept by what the two facts state, of which entities by their ids, and when: so the same pair is asked about
once, also where an entity has another name by then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from kg_memory.falkor.queries.contradictions import RELATED_FACTS
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.asking import ask_in_batches
from kg_memory.ingestion.comparable import farthest, is_comparable, most_rivals, nearest
from kg_memory.ingestion.records import JSON, CandidateFact, Grounds, PairVerdict, Span, StatedFact, pick
from kg_memory.ingestion.state import Draft
from kg_memory.llm.prompts import JUDGE
from kg_memory.runtime.effects import Vector, embed, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, last_instant, time_text
from kg_memory.text import predicates
from kg_memory.text.identity import canonical_name

Candidates = Mapping[str, CandidateFact]
"""Known facts by their ids."""
Shown = dict[str, Any]
"""A new fact as the question shows it, and under `existing` the known ones.

Each of these has the `KEY` of the pair, which is not shown.
"""
_FIRST = {
    "valid_at": None, "invalid_at": None, "precision": "instant", "end_precision": "instant", "arrived_at": 0,
}  # fmt: skip
"""The values of a candidate by its first statement, and what they are where there is none."""
KEY = "key"
Judged = Mapping[str, PairVerdict | None]
"""Verdicts by the keys of pairs; ``None`` where the two are unrelated."""


# Candidates


def find_related(
    facts: Sequence[StatedFact], settings: Settings, *, declared: bool = False
) -> Flow[tuple[list[Candidates], Grounds]]:
    """Return, for each new fact, the known ones that share an end and are of its family or near in meaning.

    The nearest of the whole graph are among them, whatever their ends. Of *declared* facts, which no model compares,
    only those of the same pair, and of a single-valued family. With them come their histories, and the revisions of the
    entities that the new ones are about, by which changes until these are saved are noticed.
    """
    revisions = {id_: 0 for fact in facts for id_ in (fact.subject_id, *fact.object_ids)}
    if not facts:
        return [], Grounds(revisions)
    rows = _search_rows(facts, declared=declared)
    vectors = yield from embed([fact.sentence for fact in facts])
    records = yield from read(
        RELATED_FACTS,
        ends=sorted(revisions),
        pairs=_pair_rows(facts, vectors),
        facts=[
            {**row, "embedding": vector, "most": most_rivals(fact, settings)}
            for row, vector, fact in zip(rows, vectors, facts, strict=True)
        ],
        farthest=-1.0 if declared else farthest(settings),
        farthest_anywhere=-1.0 if declared else farthest(settings) / 2,
        nearest=nearest(settings),
        limit=settings.candidates,
    )
    candidates: list[dict[str, CandidateFact]] = [{} for _ in facts]
    histories: list[Row] = []
    for record in records:
        value = record["value"]
        if record["kind"] == "revision":
            revisions[value["id"]] = value["revision"]
        elif value["id"] not in candidates[record["new"]]:
            candidate = _to_candidate(value)
            if not declared and not is_comparable(facts[record["new"]], candidate, settings):
                continue
            candidates[record["new"]][value["id"]] = candidate
            histories.append(value["history"])
            if revisions.keys().isdisjoint((candidate.subject_id, *candidate.object_ids)):
                revisions[candidate.subject_id] = candidate.revision
    return list[Candidates](candidates), Grounds(revisions, histories)


def _to_candidate(row: Row) -> CandidateFact:
    """Return the candidate of *row*: its times are those of the statement in whose words it is stored."""
    history = row["history"]
    first = [statement for statement in history["statements"] if statement["id"] == row["stated_by"]]
    times = {name: min((one[name] for one in first), default=default) for name, default in _FIRST.items()}
    fields = {name: value for name, value in row.items() if name != "history"}
    fields |= {"objects": tuple(row["objects"]), "object_ids": tuple(row["object_ids"])}
    beliefs = tuple(Span(belief["valid_at"], belief["invalid_at"]) for belief in history["beliefs"])
    return CandidateFact(**fields, **times, beliefs=beliefs)


def _search_rows(facts: Sequence[StatedFact], *, declared: bool = False) -> list[JSON]:
    """Return all by which facts related to *facts* are found; the sentence stands for its vector."""
    return [
        {
            "new": place,
            "id": fact.id,
            "sentence": fact.sentence,
            "ends": _search_ends(fact, declared=declared),
            "predicate": fact.predicate,
            "family": fact.family,
            "one_at_a_time": fact.single_valued is not False,
            "begin": fact.begin,
        }
        for place, fact in enumerate(facts)
    ]


def _search_ends(fact: StatedFact, *, declared: bool) -> list[str]:
    """Return the ids of the entities around which rivals of *fact* are looked up."""
    if not declared:
        return [fact.subject_id, *fact.object_ids]
    return [fact.subject_id] if fact.single_valued else []


def _pair_rows(facts: Sequence[StatedFact], vectors: Sequence[Vector]) -> list[JSON]:
    rows: list[JSON] = []
    for new, (fact, vector) in enumerate(zip(facts, vectors, strict=True)):
        relation = {"predicate": fact.predicate, "family": fact.family, "embedding": vector}
        for end in fact.object_ids or (fact.subject_id,):
            for one, another in ((fact.subject_id, end), (end, fact.subject_id)):
                rows.append({"new": new, "subject": one, "object": another, **relation})
    return rows


def as_candidate(fact: StatedFact, draft: Draft) -> CandidateFact:
    """Return a fact of an episode that is not saved yet as a known one."""
    names = [entity.name for entity in draft.entities]
    words = pick(fact, "id", "subject_id", "predicate", "object_ids", "sentence", "stated_at", "only_ends")
    return CandidateFact(
        **words,
        valid_at=fact.valid_at,
        invalid_at=fact.invalid_at,
        subject=names[fact.subject],
        objects=tuple(names[place] for place in fact.objects),
        stated_by=draft.episode.id,
        arrived_at=draft.episode.created_at,
        kind="state" if fact.kind == "former" else fact.kind,
        precision=fact.precision,
        end_precision=fact.end_precision,
        beliefs=(Span(fact.valid_at, fact.invalid_at),),
    )


# Pairs


@dataclass(frozen=True, slots=True)
class Pairs:
    """The facts of a draft, and the pairs of a fact and a known one that the model is to compare.

    `facts` are marked where they are known beyond doubt. `candidates` are the known facts of each, with siblings.
    `among` and `shown` have, by the place of a fact, those to compare it with, and the question about them.
    """

    facts: tuple[StatedFact, ...]
    candidates: list[Candidates]
    among: dict[int, list[CandidateFact]]
    shown: dict[int, Shown]


def pair_facts(draft: Draft, candidates: Sequence[Candidates]) -> Pairs:
    """Return the pairs of the facts of *draft* with their *candidates*."""
    extended = _with_siblings(draft, _without_namesakes(draft, candidates))
    facts = _mark_repeats(draft.facts, extended)
    pairs = {new: _open_pairs(fact, extended[new], draft) for new, fact in enumerate(facts)}
    # In an order that no rounding of vectors changes.
    among = {new: sorted(own, key=attrgetter("stated_at", "sentence", "id")) for new, own in pairs.items() if own}
    return Pairs(facts, extended, among, {new: _show_pairs(new, own, facts, draft) for new, own in among.items()})


def _without_namesakes(draft: Draft, candidates: Sequence[Candidates]) -> list[Candidates]:
    """Return *candidates* without facts about another entity of the subject's name: no model tells the two apart."""
    kept: list[Candidates] = []
    for fact, own in zip(draft.facts, candidates, strict=True):
        subject, ends = draft.entities[fact.subject], (fact.subject_id, *fact.object_ids)
        names = {canonical_name(name) for name in (subject.name, *subject.called)}
        kept.append(
            {
                id_: candidate
                for id_, candidate in own.items()
                if candidate.subject_id in ends
                or not (candidate.subject_id in subject.apart_from or canonical_name(candidate.subject) in names)
            }
        )
    return kept


def _with_siblings(draft: Draft, candidates: Sequence[Candidates]) -> list[Candidates]:
    """Return *candidates* and, for each fact, those of the episode before it that it may end.

    These are of the same subject, where that has one at a time.
    """
    extended = [dict(own) for own in candidates]
    for new, fact in enumerate(draft.facts):
        for sibling in draft.facts[:new]:
            same = (sibling.subject_id, sibling.predicate) == (fact.subject_id, fact.predicate)
            if same and fact.single_valued and sibling.id != fact.id:
                extended[new].setdefault(sibling.id, as_candidate(sibling, draft))
    return list[Candidates](extended)


def _mark_repeats(facts: Sequence[StatedFact], candidates: Sequence[Candidates]) -> tuple[StatedFact, ...]:
    """Return *facts*, as if never compared, with the ids of the candidates that they are beyond doubt."""
    return tuple(
        replace(fact, same_as=_same_as(fact, own), corrects=False, refuted=False, restated=False)
        for fact, own in zip(facts, candidates, strict=True)
    )


def _same_as(fact: StatedFact, candidates: Candidates) -> str | None:
    """Return the candidate that *fact* is beyond doubt: in the same words, or by its triple where that tells all."""
    if fact.id in candidates:
        return fact.id
    if not fact.object_ids or (not fact.single_valued and not fact.is_triple):
        return None  # what it says of one entity alone is in its sentence
    return min((id_ for id_, candidate in candidates.items() if ends_of(candidate) == ends_of(fact)), default=None)


def _open_pairs(fact: StatedFact, candidates: Candidates, draft: Draft) -> list[CandidateFact]:
    """Return the candidates with which the marked *fact* is to be compared by the model."""
    # Two facts are judged by the words in which each was stated first; so again when these arrive late.
    if fact.same_as is None:
        return list(candidates.values())
    same = candidates[fact.same_as]
    rest: list[CandidateFact] = []
    if is_first(fact, same, draft):
        rest = [candidate for id_, candidate in candidates.items() if id_ != fact.same_as]
    return [same, *rest] if _redates(fact, same) else rest


def is_first(fact: StatedFact, candidate: CandidateFact | None, draft: Draft) -> bool:
    """Return whether the words of *fact* were stated before those of *candidate*, which is the same fact.

    Words that state only an end ("no longer") come last, whenever they were stated.
    """
    if candidate is None:
        return False
    own = (fact.only_ends, fact.stated_at, draft.episode.created_at, draft.episode.id)
    return own < (candidate.only_ends, candidate.stated_at, candidate.arrived_at, candidate.stated_by)


def _redates(fact: StatedFact, candidate: CandidateFact) -> bool:
    """Return whether *fact* gives a start, or an end, that the candidate does not have: it may correct it."""
    starts = [span.valid_at for span in candidate.beliefs if span.valid_at != OPEN_START]
    ends = [span.invalid_at for span in candidate.beliefs if span.invalid_at != OPEN_END]
    claims = fact.stated_from is not None and fact.valid_at not in (OPEN_START, fact.stated_at)
    restarts = claims and bool(starts) and all(_are_apart(start, fact) for start in starts)
    return restarts or (fact.invalid_at != OPEN_END and bool(ends) and fact.invalid_at not in ends)


def _are_apart(start: int, fact: StatedFact) -> bool:
    """Return whether *start* is in another day, month or year than that in which *fact* began."""
    earlier, later = sorted((start, fact.valid_at))
    return later > last_instant(earlier, fact.precision)


# The question


def _show_pairs(new: int, among: Sequence[CandidateFact], facts: Sequence[StatedFact], draft: Draft) -> Shown:
    """Return the fact at the place *new* of *facts*, and the known ones, as the question shows them."""
    fact, entities, episode = facts[new], draft.entities, draft.episode
    # An entity that got a fuller name has that name on both sides.
    names = {entity.id: entity.name for entity in entities}
    own = {
        "subject": entities[fact.subject].name,
        "predicate": fact.predicate,
        "objects": [entities[place].name for place in fact.objects],
        "sentence": fact.sentence,
        "quote": episode.text[fact.start : fact.end],
        "said_at": time_text(episode.at),
        "valid_at": time_text(fact.valid_at, fact.precision),
        "invalid_at": time_text(fact.invalid_at, fact.end_precision),
        "kind": fact.kind if fact.kind != "state" else None,
        "one_at_a_time": bool(fact.single_valued),
    }
    existing = [
        {**_show_candidate(candidate, names, fact), KEY: _pair_key(fact, candidate, episode.at)} for candidate in among
    ]
    return {**_without_empty(own), "existing": existing}


def _pair_key(fact: StatedFact, candidate: CandidateFact, at: int) -> str:
    """Return the key of a pair, by all that the question shows but names, which may change."""
    dates = (at, fact.valid_at, fact.invalid_at, candidate.stated_at, candidate.valid_at, candidate.invalid_at)
    pair = [(*ends_of(one)[:2], sorted(one.object_ids), one.sentence, one.kind) for one in (fact, candidate)]
    return hashlib.sha256(json.dumps([pair, dates]).encode()).hexdigest()[:32]


def _show_candidate(candidate: CandidateFact, names: Mapping[str, str], fact: StatedFact) -> Shown:
    rule = predicates.canonical_predicate(candidate.predicate)
    same = candidate.predicate == fact.predicate
    single_valued = fact.single_valued if same else rule and rule.single_valued
    objects = zip(candidate.object_ids, candidate.objects, strict=True)
    end = OPEN_END if candidate.invalid_at is None else candidate.invalid_at
    is_over = candidate.kind in (None, "state") and end <= candidate.stated_at
    shown = {
        "subject": names.get(candidate.subject_id, candidate.subject),
        "predicate": candidate.predicate,
        "objects": sorted(names.get(id_, name) for id_, name in objects),
        "sentence": candidate.sentence,
        "said_at": time_text(candidate.stated_at),
        "valid_at": time_text(candidate.valid_at, candidate.precision),
        "invalid_at": time_text(candidate.invalid_at, candidate.end_precision),
        "kind": "former" if is_over else candidate.kind if candidate.kind != "state" else None,
        "one_at_a_time": bool(single_valued),
    }
    return _without_empty(shown)


def _without_empty(shown: Shown) -> Shown:
    """Return *shown* without what is not so or not known, which would be an eighth of its tokens."""
    return {name: value for name, value in shown.items() if value is not None and value is not False}


def pair_keys(shown: Shown) -> list[str]:
    """Return the key of each pair of the new fact and a known one."""
    return [candidate[KEY] for candidate in shown["existing"]]


def judge(shown: Mapping[int, Shown], judged: Judged) -> Flow[dict[str, PairVerdict | None]]:
    """Ask about the pairs of *shown* that were not *judged* yet, and return all verdicts.

    The new facts are shown under their numbers, the known ones by their place among those asked about.
    """
    keys: dict[int, list[str]] = {}
    items: list[Shown] = []
    for new, fact in shown.items():
        unseen = [candidate for candidate in fact["existing"] if candidate[KEY] not in judged]
        if unseen:
            keys[new] = [candidate[KEY] for candidate in unseen]
            existing = [_number(place, candidate) for place, candidate in enumerate(unseen)]
            items.append({"id": new, **fact, "existing": existing})
    verdicts = {**judged, **dict.fromkeys(key for own in keys.values() for key in own)}
    for answer in (yield from ask_in_batches(JUDGE, "facts", items)):
        for row in answer.verdicts:
            own = keys.get(row.fact, ())
            if 0 <= row.known < len(own):
                verdicts[own[row.known]] = PairVerdict(row.verdict, row.confidence, row.holds, row.reason)
    return verdicts


def _number(place: int, candidate: Shown) -> Shown:
    return {"id": place, **{name: value for name, value in candidate.items() if name != KEY}}


def ends_of(fact: StatedFact | CandidateFact) -> tuple[str, str, frozenset[str]]:
    """Return the subject, the predicate and the objects of *fact*."""
    return fact.subject_id, fact.predicate, frozenset(fact.object_ids)
