"""Step 7, dedupe: which facts are known already, and how the others relate to known ones (Zep 2.2.2).

What is said in the same words is recognised by code. The model is asked about the rest in one question for the whole
episode: first whether two facts say the same, and only then whether one ends or refutes the other, which the next step
applies. A verdict is kept by what the two facts state, of which entities by their ids, and when: so the same pair is
asked about once, also where another writer came first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from kg_memory.ingestion.candidates import Candidates, as_candidate, ends_of, find_related, surest_first
from kg_memory.ingestion.records import JSON, CandidateFact, Comparison, PairVerdict, StatedFact
from kg_memory.ingestion.state import Draft, Update, ask_in_batches
from kg_memory.llm.prompts import JUDGE
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, last_instant, time_text
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text import predicates
from kg_memory.text.identity import canonical_name

Judged = dict[str, PairVerdict | None]
"""Verdicts by the keys of pairs; ``None`` where the two are unrelated."""
Pair = tuple[int, CandidateFact]
"""A new fact, by its place, and a known one."""


def dedupe(draft: Draft, settings: Settings) -> Flow[Update]:
    """Mark the facts that are known, and ask what the others have to do with known ones.

    It asks only about pairs that were not judged before another writer came first.
    """
    found, grounds = yield from find_related(draft.facts, settings, declared=draft.episode.is_declared)
    candidates = _with_siblings(draft, _without_namesakes(draft, found))
    facts = _mark_repeats(draft.facts, candidates)
    pairs = list(_open_pairs(facts, candidates, draft))
    judged = yield from _judge(draft, facts, pairs)
    comparisons = _compare(draft, facts, pairs, judged)
    marked = _apply_duplicates(facts, comparisons, ConflictPolicy.from_settings(settings))
    return {
        "facts": _mark_restated(marked, candidates, draft),
        "judged": judged,
        "comparisons": comparisons,
        "grounds": grounds,
    }


def _compare(
    draft: Draft, facts: Sequence[StatedFact], pairs: Iterable[Pair], judged: Judged
) -> tuple[Comparison, ...]:
    comparisons: list[Comparison] = []
    for new, candidate in pairs:
        verdict = judged[_pair_key(facts[new], candidate, draft.episode.at)]
        is_related = verdict is not None and verdict.verdict != "unrelated"
        comparisons.append(Comparison(new, candidate, verdict if is_related else None))
    return tuple(comparisons)


def _apply_duplicates(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], policy: ConflictPolicy
) -> tuple[StatedFact, ...]:
    """Return *facts* with the ids of the known ones that the model says they are."""
    marked = list(facts)
    for new, candidate, verdict in surest_first(comparisons):
        if not policy.takes_effect(verdict.confidence):
            break  # a copy loses less than a wrong merge
        if verdict.verdict == "duplicate" and marked[new].same_as is None:
            marked[new] = replace(marked[new], same_as=candidate.id)
    return tuple(marked)


def _mark_restated(
    facts: Sequence[StatedFact], candidates: Sequence[Mapping[str, CandidateFact]], draft: Draft
) -> tuple[StatedFact, ...]:
    """Return *facts*, those marked that were stated before the words that the known ones have now.

    A fact that repeats another of the episode is the known one that the other is.
    """
    stored = {fact.id: fact.same_as for fact in facts if fact.same_as}
    marked: list[StatedFact] = []
    for fact, own in zip(facts, candidates, strict=True):
        same_as = fact.same_as or ""
        restated = is_first(fact, own.get(same_as), draft)
        marked.append(replace(fact, same_as=stored.get(same_as, fact.same_as), restated=restated))
    return tuple(marked)


# Pairs


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


def _open_pairs(facts: Sequence[StatedFact], candidates: Sequence[Candidates], draft: Draft) -> Iterator[Pair]:
    """Yield the pairs that the model is to compare, in an order that no rounding of vectors changes."""
    for new, (fact, own) in enumerate(zip(facts, candidates, strict=True)):
        open_ones = _open_candidates(fact, own, draft)
        yield from ((new, one) for one in sorted(open_ones, key=attrgetter("stated_at", "sentence", "id")))


def _open_candidates(fact: StatedFact, candidates: Candidates, draft: Draft) -> list[CandidateFact]:
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


def _judge(draft: Draft, facts: Sequence[StatedFact], pairs: Iterable[Pair]) -> Flow[Judged]:
    """Ask about those of *pairs* that were not judged before, and return all verdicts.

    The new facts are shown under their places, the known ones under their place among those asked about.
    """
    judged = dict(draft.judged)
    keys: dict[int, list[str]] = {}
    items: dict[int, JSON] = {}
    # An entity that got a fuller name has that name on both sides.
    names = {entity.id: entity.name for entity in draft.entities}
    for new, candidate in pairs:
        fact = facts[new]
        key = _pair_key(fact, candidate, draft.episode.at)
        if key not in judged:
            shown = items.setdefault(new, {"id": new, **_show_fact(fact, draft), "existing": []})["existing"]
            shown.append({"id": len(shown), **_show_candidate(candidate, names, fact)})
            keys.setdefault(new, []).append(key)
    judged |= dict.fromkeys(chain.from_iterable(keys.values()))
    for answer in (yield from ask_in_batches(JUDGE, "facts", list(items.values()))):
        for row in answer.verdicts:
            own = keys.get(row.fact, ())
            if 0 <= row.known < len(own):
                judged[own[row.known]] = PairVerdict(row.verdict, row.confidence, row.holds, row.reason)
    return judged


def _pair_key(fact: StatedFact, candidate: CandidateFact, at: int) -> str:
    """Return the key of a pair, by all that the question shows but names, which may change."""
    dates = (at, fact.valid_at, fact.invalid_at, candidate.stated_at, candidate.valid_at, candidate.invalid_at)
    pair = [(*ends_of(one)[:2], sorted(one.object_ids), one.sentence, one.kind) for one in (fact, candidate)]
    return hashlib.sha256(json.dumps([pair, dates]).encode()).hexdigest()[:32]


def _show_fact(fact: StatedFact, draft: Draft) -> JSON:
    """Return a new fact as the question shows it."""
    entities, quote = draft.entities, draft.episode.text[fact.start : fact.end]
    objects = [entities[place].name for place in fact.objects]
    return _show(fact, entities[fact.subject].name, objects, fact.kind, fact.single_valued, quote)


def _show_candidate(candidate: CandidateFact, names: Mapping[str, str], fact: StatedFact) -> JSON:
    """Return a known fact as the question about *fact* shows it; *names* are those that entities have from now on."""
    rule, same = predicates.canonical_predicate(candidate.predicate), candidate.predicate == fact.predicate
    single_valued = fact.single_valued if same else rule.single_valued if rule else None
    objects = zip(candidate.object_ids, candidate.objects, strict=True)
    end = OPEN_END if candidate.invalid_at is None else candidate.invalid_at
    is_over = candidate.kind in (None, "state") and end <= candidate.stated_at
    subject = names.get(candidate.subject_id, candidate.subject)
    called = sorted(names.get(id_, name) for id_, name in objects)
    return _show(candidate, subject, called, "former" if is_over else candidate.kind, single_valued)


def _show(
    fact: StatedFact | CandidateFact,
    subject: str,
    objects: list[str],
    kind: str | None,
    single_valued: bool | None,  # noqa: FBT001 - a value that is shown
    quote: str | None = None,
) -> JSON:
    """Return a fact as JSON, without what is not so or not known, which would be an eighth of its tokens."""
    shown = {
        "subject": subject,
        "predicate": fact.predicate,
        "objects": objects,
        "sentence": fact.sentence,
        "quote": quote,
        "said_at": time_text(fact.stated_at),
        "valid_at": time_text(fact.valid_at, fact.precision),
        "invalid_at": time_text(fact.invalid_at, fact.end_precision),
        "kind": kind if kind != "state" else None,
        "one_at_a_time": bool(single_valued),
    }
    return {name: value for name, value in shown.items() if value is not None and value is not False}
