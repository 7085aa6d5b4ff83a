"""Candidates for contradictions: which facts are compared, how the model is asked, and what its verdicts do.

Facts are compared that share an endpoint (C49, D32). What code finds to be said again is not asked about; all that is
left is one question for the whole episode: first whether two facts say the same (step 7, dedupe), and only then whether
one ends or refutes the other (step 8, invalidate).

A verdict is kept by the text that the question shows of its pair, so the same pair is asked about once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kg_memory.falkor.queries import ingestion as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import (
    JSON,
    CandidateFact,
    Comparison,
    Grounds,
    NewVerdict,
    PairVerdict,
    Related,
    Span,
    StatedFact,
    from_plain,
    pick,
)
from kg_memory.ingestion.state import Draft
from kg_memory.llm.joint import Question
from kg_memory.llm.prompts import JUDGE
from kg_memory.llm.prompts.answers import FactVerdicts
from kg_memory.runtime.effects import embed, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH, iso_of
from kg_memory.temporal.policy import ConflictPolicy, Relation
from kg_memory.text import predicates
from kg_memory.text.identity import verdict_id

FARTHEST = 0.5
"""Cosine distance beyond which a fact that shares an endpoint is no candidate, unless it is of the same family."""
Candidates = Mapping[str, CandidateFact]
"""Known facts by their ids."""
Shown = dict[str, Any]
"""A new fact as the question shows it, and under `existing` the known ones."""
Judged = Mapping[str, PairVerdict | None]
"""Verdicts by the keys of pairs; ``None`` where the two are unrelated."""


# Candidates


def find_related(facts: Sequence[StatedFact], settings: Settings, *, declared: bool = False) -> Flow[Related]:
    """Return, for each new fact, the known ones: of the same pair, of its family, or near in meaning.

    Of *declared* facts, which no model compares, only those of the same pair, and of a single-valued family.
    With them come the revisions of the entities that it is about, by which changes until it is saved are noticed, and
    the histories of facts that are known in the same words.
    """
    revisions = {id_: 0 for fact in facts for id_ in (fact.subject_id, *fact.object_ids)}
    rows = _search_rows(facts, declared=declared)
    if not facts:
        return Related(_fingerprint(rows), (), Grounds(revisions))
    vectors = yield from embed([fact.sentence for fact in facts])
    records = yield from read(
        queries.RELATED_FACTS,
        ends=sorted(revisions),
        pairs=_pair_rows(facts),
        facts=[{**row, "embedding": vector} for row, vector in zip(rows, vectors, strict=True)],
        farthest=-1.0 if declared else FARTHEST,
        limit=settings.candidates,
    )
    candidates: tuple[dict[str, CandidateFact], ...] = tuple({} for _ in facts)
    histories: list[Row] = []
    for record in records:
        value = record["value"]
        if record["kind"] == "revision":
            revisions[value["id"]] = value["revision"]
        elif record["kind"] == "history":
            histories.append(value)
        elif value["id"] not in candidates[record["new"]]:
            candidates[record["new"]][value["id"]] = from_plain(CandidateFact, value)
    return Related(_fingerprint(rows), candidates, Grounds(revisions, histories))


def fits(related: Related, facts: Sequence[StatedFact]) -> bool:
    """Return whether *related* was looked up for the same facts."""
    return related.searched == _fingerprint(_search_rows(facts))


def _search_rows(facts: Sequence[StatedFact], *, declared: bool = False) -> list[JSON]:
    """Return all by which facts related to *facts* are found; the sentence stands for its vector."""
    return [
        {
            "new": place,
            "id": fact.id,
            "sentence": fact.sentence,
            "subject": None if declared and not fact.single_valued else fact.subject_id,
            "objects": [] if declared else list(fact.object_ids),
            "predicate": fact.predicate,
            "family": fact.family,
            "one_at_a_time": fact.single_valued is not False,
            "begin": fact.begin,
        }
        for place, fact in enumerate(facts)
    ]


def _pair_rows(facts: Sequence[StatedFact]) -> list[JSON]:
    pairs = [
        (new, fact.subject_id, end) for new, fact in enumerate(facts) for end in fact.object_ids or (fact.subject_id,)
    ]
    return [
        {"new": new, "subject": one, "object": another}
        for new, subject, end in pairs
        for one, another in ((subject, end), (end, subject))
    ]


def _fingerprint(rows: Sequence[Row]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


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
        kind=fact.kind,
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
    extended = _with_siblings(draft, candidates)
    facts = _mark_repeats(draft.facts, extended)
    pairs = {new: _open_pairs(fact, extended[new], draft) for new, fact in enumerate(facts)}
    among = {new: own for new, own in pairs.items() if own}
    return Pairs(facts, extended, among, {new: _show_pairs(new, own, facts, draft) for new, own in among.items()})


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
    if not fact.single_valued and not fact.is_triple:
        return None
    return min((id_ for id_, candidate in candidates.items() if _ends(candidate) == _ends(fact)), default=None)


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
    own = (fact.only_ends, fact.stated_at, draft.episode.id)
    return own < (candidate.only_ends, candidate.stated_at, candidate.stated_by)


def _redates(fact: StatedFact, candidate: CandidateFact) -> bool:
    """Return whether *fact* gives a start, or an end, that the candidate does not have: it may correct it."""
    starts = [span.valid_at for span in candidate.beliefs if span.valid_at != OPEN_START]
    ends = [span.invalid_at for span in candidate.beliefs if span.invalid_at != OPEN_END]
    width = WIDTH[fact.precision]
    claims = fact.stated_from is not None and fact.valid_at not in (OPEN_START, fact.stated_at)
    restarts = claims and bool(starts) and all(abs(start - fact.valid_at) > width for start in starts)
    return restarts or (fact.invalid_at != OPEN_END and bool(ends) and fact.invalid_at not in ends)


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
        "quote": episode.content[fact.start : fact.end],
        "said_at": iso_of(episode.at),
        "valid_at": iso_of(fact.valid_at),
        "invalid_at": iso_of(fact.invalid_at),
        "kind": fact.kind if fact.kind != "state" else None,
        "one_at_a_time": bool(fact.single_valued),
    }
    return {**_without_empty(own), "existing": [_show_candidate(candidate, names, fact) for candidate in among]}


def _show_candidate(candidate: CandidateFact, names: Mapping[str, str], fact: StatedFact) -> Shown:
    rule = predicates.canonical_predicate(candidate.predicate)
    same = candidate.predicate == fact.predicate
    single_valued = fact.single_valued if same else rule and rule.single_valued
    objects = zip(candidate.object_ids, candidate.objects, strict=True)
    shown = {
        "subject": names.get(candidate.subject_id, candidate.subject),
        "predicate": candidate.predicate,
        "objects": sorted(names.get(id_, name) for id_, name in objects),
        "sentence": candidate.sentence,
        "said_at": iso_of(candidate.stated_at),
        "valid_at": iso_of(candidate.valid_at),
        "invalid_at": iso_of(candidate.invalid_at),
        "kind": candidate.kind if candidate.kind != "state" else None,
        "one_at_a_time": bool(single_valued),
    }
    return _without_empty(shown)


def _without_empty(shown: Shown) -> Shown:
    """Return *shown* without what is not so or not known, which would be an eighth of its tokens."""
    return {name: value for name, value in shown.items() if value is not None and value is not False}


def pair_keys(shown: Shown) -> list[str]:
    """Return a key for each pair of the new fact and a known one: by all that the question shows of the two."""
    new = {name: value for name, value in shown.items() if name != "existing"}
    return [hashlib.sha256(json.dumps([new, candidate]).encode()).hexdigest()[:32] for candidate in shown["existing"]]


def pair_question(shown: Mapping[int, Shown], judged: Judged) -> Question[dict[str, PairVerdict | None]]:
    """Return the question about those pairs that were not *judged* yet; it returns all verdicts.

    The new facts are shown under their numbers, the known ones by their place among those asked about.
    """
    keys: dict[int, list[str]] = {}
    items: list[Shown] = []
    for new, fact in shown.items():
        pairs = zip(pair_keys(fact), fact["existing"], strict=True)
        unseen = [(key, candidate) for key, candidate in pairs if key not in judged]
        if unseen:
            keys[new] = [key for key, _ in unseen]
            existing = [{"id": place, **candidate} for place, (_, candidate) in enumerate(unseen)]
            items.append({"id": new, **fact, "existing": existing})
    return Question(JUDGE, "facts", items, partial(_judge, keys=keys, judged=judged))


def _judge(
    answers: Sequence[FactVerdicts], keys: Mapping[int, Sequence[str]], judged: Judged
) -> dict[str, PairVerdict | None]:
    verdicts = {**judged, **dict.fromkeys(key for own in keys.values() for key in own)}
    for answer in answers:
        for row in answer.verdicts:
            own = keys.get(row.fact, ())
            if 0 <= row.known < len(own):
                verdicts[own[row.known]] = PairVerdict(row.verdict, row.confidence, row.holds, row.reason)
    return verdicts


# Verdicts


def apply_corrections(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], policy: ConflictPolicy
) -> tuple[StatedFact, ...]:
    """Return *facts* with what the verdicts say of each itself: that it is a correction, or a passing state."""
    marked = list(facts)
    for new, candidate, verdict in surest_first(comparisons):
        fact = marked[new]
        if not policy.takes_effect(verdict.confidence):
            break  # a passing state that goes on loses less than one that was cut
        if verdict.verdict == "conflicts" and fact.same_as == candidate.id:
            marked[new] = replace(fact, corrects=verdict.holds == "new", refuted=verdict.holds == "known")
        elif verdict.verdict == "temporary" and fact.invalid_at == OPEN_END:
            marked[new] = replace(fact, invalid_at=fact.window_end)
    return tuple(marked)


def find_verdicts(
    facts: Sequence[StatedFact], comparisons: Sequence[Comparison], namespace: str, policy: ConflictPolicy
) -> tuple[NewVerdict, ...]:
    """Return which facts end or refute which, one a pair; an episode does not contradict what it says of one time."""
    noted = [row for row in comparisons if row.verdict and policy.is_noted(row.verdict.confidence)]
    stated = {(fact.stored_id, fact.begin) for fact in facts}
    stored = {fact.id: fact.stored_id for fact in facts}
    verdicts: dict[str, NewVerdict] = {}
    for new, candidate, verdict in surest_first([*noted, *_exclusions(facts, comparisons, noted, policy)]):
        fact, existing, kind = facts[new], stored.get(candidate.id, candidate.id), verdict.verdict
        is_own = existing == fact.stored_id or (existing, fact.begin) in stated
        if is_own or not policy.may_contradict(kind, _relation(fact), _relation(candidate)):
            continue
        id_ = verdict_id(namespace, fact.stored_id, existing)
        ruling = policy.rule(kind, verdict.confidence)
        basis = pick(verdict, "confidence", "holds", "reason")
        verdicts.setdefault(id_, NewVerdict(id_, fact.stored_id, existing, kind, ruling, **basis))
    return tuple(verdicts.values())


def find_rejudged(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], verdicts: Iterable[NewVerdict], namespace: str
) -> tuple[NewVerdict, ...]:
    """Return the verdicts that take the place of those that were found by words stated later."""
    by_id = {verdict.id: verdict for verdict in verdicts}
    rejudged: list[NewVerdict] = []
    for row in comparisons:
        fact, existing = facts[row.new], row.candidate.id
        if fact.restated and fact.stored_id != existing:
            id_ = verdict_id(namespace, fact.stored_id, existing)
            reason = "so by the words in which it was said first"
            nothing = NewVerdict(id_, fact.stored_id, existing, "unrelated", "both", 1.0, "new", reason)
            rejudged.append(by_id.get(id_, nothing))
    return tuple(rejudged)


def surest_first(comparisons: Iterable[Comparison]) -> Iterator[tuple[int, CandidateFact, PairVerdict]]:
    """Yield the new fact, the known one and the verdict of each pair that has one, the most confident first."""
    judged = ((row.new, row.candidate, row.verdict) for row in comparisons if row.verdict)
    yield from sorted(judged, key=lambda row: -row[2].confidence)


def _exclusions(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], judged: Iterable[Comparison], policy: ConflictPolicy
) -> Iterator[Comparison]:
    """Yield the pairs that cannot both hold as a person or the settings say so, where the model says nothing else."""
    pairs = {(row.new, row.candidate.id) for row in judged}
    for row in comparisons:
        fact, candidate = facts[row.new], row.candidate
        if policy.excludes(_relation(fact), _relation(candidate)) and (row.new, candidate.id) not in pairs:
            reason = f"{fact.predicate} is declared to hold for one at a time"
            yield replace(row, verdict=PairVerdict("supersedes", 1.0, "new", reason))


def _ends(fact: StatedFact | CandidateFact) -> tuple[str, str, frozenset[str]]:
    return fact.subject_id, fact.predicate, frozenset(fact.object_ids)


def _relation(fact: StatedFact | CandidateFact) -> Relation:
    """Return what *fact* relates, as the policy judges it."""
    declared = (fact.single_valued, fact.declared) if isinstance(fact, StatedFact) else ()
    return Relation(*_ends(fact), *declared)
