"""Step 7, dedupe: find the new facts that are stored already, and judge how other new facts relate to stored ones.

A new fact is compared with stored facts that share an entity with it or are similar in meaning. Equal wording is
recognised by code. For all other pairs, the model is asked whether the new fact repeats, ends or contradicts the stored
one. The model's verdicts are cached by the content of both facts. The next step, `invalidate`, applies them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from kg_memory.falkor.queries.ingestion import RELATED_FACTS
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON, CandidateFact, Comparison, Grounds, PairVerdict, Span, StatedFact, pick
from kg_memory.ingestion.state import MOST_AT_ONCE, Draft, Update, as_candidate, ask_in_batches
from kg_memory.llm.prompts import JUDGE
from kg_memory.runtime.effects import Vector, embed, fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, last_instant, time_text
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import canonical_name
from kg_memory.text.predicates import DEFAULT_PREDICATE, canonical_predicate
from kg_memory.text.tokenise import terms

Candidates = Mapping[str, CandidateFact]
"""Existing facts by their ids."""
Judged = dict[str, PairVerdict | None]
"""Verdicts by pair key; ``None`` for unrelated facts."""
Pair = tuple[int, CandidateFact]
"""The index of a new fact in `Draft.facts`, and an existing fact to compare with."""
_FIRST = {
    "valid_at": None, "invalid_at": None, "precision": "instant", "end_precision": "instant", "arrived_at": 0,
}  # fmt: skip
"""The fields of a candidate that come from its first statement, with their values if it has no statement."""
LEAST_SIMILARITY = 0.5
"""Cosine similarity that a stored fact sharing an entity needs to be compared, unless its predicate is of the same
family; the default of `Settings.compare_threshold`."""
NEAREST = 3
"""The most candidates of each sort: near in meaning, sharing no entity, beginning before a fact, beginning after it. Of
170 facts about one person, the fact that a new one contradicts is nearly always among the nearest three."""
ONE_END, NO_END, UNLIKELY = 2 / 3, 1 / 2, 1 / 4
"""Factors of `farthest(settings)`, the maximum distance for a comparison: for facts that share one entity, facts that
share none, and facts whose predicates cannot contradict each other but may say the same."""
# Predicate families with many values, and the families of their inverses: a company's staff, a person's employment.
_INVERSE = {"staff": "employment", "management": "reporting", "users": "use", "ownership": "owner"}


def dedupe(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 7 of ingestion: compare the first `MOST_AT_ONCE` new facts with stored facts.

    Return the rest as ``later``.
    """
    facts = (*draft.facts, *draft.later)
    compared = yield from compare_facts(replace(draft, facts=facts[:MOST_AT_ONCE]), settings)
    return {**compared, "later": facts[MOST_AT_ONCE:]}


def compare_facts(draft: Draft, settings: Settings) -> Flow[Update]:
    """Compare the new facts in *draft* with stored facts, and return the changed fields of *draft*."""
    found, grounds = yield from find_related(draft.facts, settings, declared=draft.episode.is_declared)
    candidates = list(_select_candidates(draft, found))
    facts = tuple(  # clear the marks of an earlier run of this step
        replace(fact, same_as=_same_as(fact, own), corrects=False, refuted=False, restated=False)
        for fact, own in zip(draft.facts, candidates, strict=True)
    )
    pairs = list(_pairs_for_model(facts, candidates, draft))
    judged = yield from _judge(draft, facts, pairs)
    verdicts = (judged[_pair_key(facts[new], candidate, draft.episode.at)] for new, candidate in pairs)
    comparisons = tuple(Comparison(*pair, verdict) for pair, verdict in zip(pairs, verdicts, strict=True))
    facts = _mark_duplicates(draft, facts, candidates, comparisons, settings)
    return {"facts": facts, "judged": judged, "comparisons": comparisons, "grounds": grounds}


def _mark_duplicates(
    draft: Draft,
    facts: Sequence[StatedFact],
    candidates: Sequence[Candidates],
    comparisons: Iterable[Comparison],
    settings: Settings,
) -> tuple[StatedFact, ...]:
    """Return the new *facts*, each with `same_as` set to the id of the stored fact that it repeats, or None."""
    policy, same = ConflictPolicy.from_settings(settings), [fact.same_as for fact in facts]
    for new, candidate, verdict in surest_first(comparisons):
        if not policy.takes_effect(verdict.confidence):
            break  # a duplicate fact does less harm than a wrong merge
        if verdict.verdict == "duplicate" and same[new] is None:
            same[new] = candidate.id
    stored = {fact.id: id_ for fact, id_ in zip(facts, same, strict=True) if id_}
    return tuple(
        replace(fact, same_as=stored.get(id_ or "", id_), restated=_is_better(fact, own.get(id_ or ""), draft))
        for fact, id_, own in zip(facts, same, candidates, strict=True)
    )


# Pairs


def _select_candidates(draft: Draft, found: Sequence[Candidates]) -> Iterator[Candidates]:
    """Yield, for each new fact in *draft*, the facts to compare with it, by id: ``{"f1": fact}``."""
    for new, (fact, own) in enumerate(zip(draft.facts, found, strict=True)):
        subject, ends = draft.entities[fact.subject], (fact.subject_id, *fact.object_ids)
        names = {canonical_name(name) for name in (subject.name, *subject.called)}
        selected: dict[str, CandidateFact] = {}
        for id_, candidate in own.items():
            is_namesake = candidate.subject_id in subject.apart_from or canonical_name(candidate.subject) in names
            if candidate.subject_id in ends or not is_namesake:
                selected[id_] = candidate
        for sibling in draft.facts[:new]:
            same = (sibling.subject_id, sibling.predicate) == (fact.subject_id, fact.predicate)
            if same and fact.single_valued and sibling.id != fact.id:
                selected.setdefault(sibling.id, as_candidate(sibling, draft))
        yield selected


def _same_as(fact: StatedFact, candidates: Candidates) -> str | None:
    """Return the id of the fact in *candidates* with the sentence (else the triple) of *fact*, or None."""
    if fact.id in candidates:
        return fact.id
    if not fact.object_ids or (not fact.single_valued and not fact.is_triple):
        return None  # its sentence says more than its triple
    return min((id_ for id_, candidate in candidates.items() if ends_of(candidate) == ends_of(fact)), default=None)


def _pairs_for_model(facts: Sequence[StatedFact], candidates: Sequence[Candidates], draft: Draft) -> Iterator[Pair]:
    for new, (fact, own) in enumerate(zip(facts, candidates, strict=True)):
        open_ones = _open_candidates(fact, own, draft)
        yield from ((new, one) for one in sorted(open_ones, key=attrgetter("stated_at", "sentence", "id")))


def _open_candidates(fact: StatedFact, candidates: Candidates, draft: Draft) -> list[CandidateFact]:
    """Return the stored facts in *candidates* that the language model must compare with *fact*."""
    if fact.same_as is None:
        return list(candidates.values())
    same = candidates[fact.same_as]
    others = [candidate for id_, candidate in candidates.items() if id_ != fact.same_as]
    rest = others if is_first(fact, same, draft) else []
    return [same, *rest] if _gives_other_dates(fact, same) else rest


def is_first(fact: StatedFact, candidate: CandidateFact, draft: Draft) -> bool:
    """Return whether *fact* was stated before *candidate*, a stored fact with the same meaning."""
    own = (fact.only_ends, fact.stated_at, draft.episode.created_at, draft.episode.id)
    return own < (candidate.only_ends, candidate.stated_at, candidate.arrived_at, candidate.stated_by)


def _is_better(fact: StatedFact, candidate: CandidateFact | None, draft: Draft) -> bool:
    """Return whether the wording of *fact* should replace that of the stored fact that it repeats."""
    if candidate is None:
        return False
    # The offline reader adds a quote after a colon.
    own, stored = (len(set(terms(each.sentence.partition(": ")[0]))) for each in (fact, candidate))
    is_tie = own == stored or fact.only_ends != candidate.only_ends
    return is_first(fact, candidate, draft) if is_tie else own > stored


def _gives_other_dates(fact: StatedFact, candidate: CandidateFact) -> bool:
    starts = [span.valid_at for span in candidate.beliefs if span.valid_at != OPEN_START]
    ends = [span.invalid_at for span in candidate.beliefs if span.invalid_at != OPEN_END]
    claims = fact.stated_from is not None and fact.valid_at not in (OPEN_START, fact.stated_at)
    spans = (sorted((start, fact.valid_at)) for start in starts)
    restarts = claims and bool(starts) and all(later > last_instant(first, fact.precision) for first, later in spans)
    return restarts or (fact.invalid_at != OPEN_END and bool(ends) and fact.invalid_at not in ends)


# The question


def _judge(draft: Draft, facts: Sequence[StatedFact], pairs: Iterable[Pair]) -> Flow[Judged]:
    """Ask the model how the facts in *pairs* relate; return verdicts by `_pair_key`, None for unrelated facts."""
    judged = dict(draft.judged)
    keys: dict[int, list[str]] = {}
    items: dict[int, JSON] = {}
    # Show an entity that this episode renames under its new name in both facts.
    names = {entity.id: entity.name for entity in draft.entities}
    for new, candidate in pairs:
        fact = facts[new]
        key = _pair_key(fact, candidate, draft.episode.at)
        if key not in judged:
            ends = [draft.entities[index].name for index in (fact.subject, *fact.objects)]
            asked = _show(fact, ends, fact.kind, fact.single_valued, draft.episode.text[fact.start : fact.end])
            shown = items.setdefault(new, {"id": new, **asked, "existing": []})["existing"]
            shown.append({"id": len(shown), **_show_candidate(candidate, names, fact)})
            keys.setdefault(new, []).append(key)
    judged |= dict.fromkeys(chain.from_iterable(keys.values()))
    for answer in (yield from ask_in_batches(JUDGE, "facts", list(items.values()))):
        for row in answer.verdicts:
            own = keys.get(row.fact, ())
            if 0 <= row.known < len(own):
                verdict = PairVerdict(row.verdict, row.confidence, row.holds, row.reason)
                judged[own[row.known]] = verdict if row.verdict != "unrelated" else None
    return judged


def _pair_key(fact: StatedFact, candidate: CandidateFact, at: int) -> str:
    dates = (at, fact.valid_at, fact.invalid_at, candidate.stated_at, candidate.valid_at, candidate.invalid_at)
    pair = [(*ends_of(one)[:2], sorted(one.object_ids), one.sentence, one.kind) for one in (fact, candidate)]
    return hashlib.sha256(json.dumps([pair, dates]).encode()).hexdigest()[:32]


def _show_candidate(candidate: CandidateFact, names: Mapping[str, str], fact: StatedFact) -> JSON:
    rule, same = canonical_predicate(candidate.predicate), candidate.predicate == fact.predicate
    single_valued = fact.single_valued if same else rule.single_valued if rule else None
    objects = zip(candidate.object_ids, candidate.objects, strict=True)
    end = OPEN_END if candidate.invalid_at is None else candidate.invalid_at
    is_over = candidate.kind in (None, "state") and end <= candidate.stated_at
    ends = [names.get(candidate.subject_id, candidate.subject), *sorted(names.get(id_, name) for id_, name in objects)]
    return _show(candidate, ends, "former" if is_over else candidate.kind, single_valued, None)


def _show(
    fact: StatedFact | CandidateFact, names: Sequence[str], kind: str | None, single_valued: object, quote: str | None
) -> JSON:
    """Return *fact* as JSON for a prompt: ``{"subject": "Ann", "predicate": "LIVES_IN", "objects": ["Oslo"], ...}``."""
    subject, *objects = names
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


# Candidates


def find_related(
    facts: Sequence[StatedFact], settings: Settings, *, declared: bool = False
) -> Flow[tuple[list[Candidates], Grounds]]:
    """Return the stored facts to compare with each of *facts*, and the data that was read to find them.

    Declared facts are compared with fewer facts.
    """
    revisions = {id_: 0 for fact in facts for id_ in (fact.subject_id, *fact.object_ids)}
    if not facts:
        return [], Grounds(revisions)
    vectors = yield from embed([fact.sentence for fact in facts])
    records = yield from fetch(
        RELATED_FACTS,
        ends=sorted(revisions),
        pairs=_pair_rows(facts, vectors),
        facts=_search_rows(facts, vectors, settings, declared=declared),
        farthest=-1.0 if declared else farthest(settings),
        farthest_anywhere=-1.0 if declared else farthest(settings) / 2,
        nearest=min(NEAREST, settings.candidates // 2 + 1),
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
    history = row["history"]
    first = [statement for statement in history["statements"] if statement["id"] == row["stated_by"]]
    times: JSON = {name: min((one[name] for one in first), default=default) for name, default in _FIRST.items()}
    fields: JSON = {name: value for name, value in row.items() if name != "history"}
    fields |= {"objects": tuple(row["objects"]), "object_ids": tuple(row["object_ids"])}
    beliefs = tuple(Span(belief["valid_at"], belief["invalid_at"]) for belief in history["beliefs"])
    return CandidateFact(**fields, **times, beliefs=beliefs)


def _search_rows(
    facts: Sequence[StatedFact], vectors: Sequence[Vector], settings: Settings, *, declared: bool
) -> list[JSON]:
    """Return one dict of query parameters for each of *facts*, to search for similar stored facts."""
    rows: list[JSON] = []
    many = settings.candidates // 2 + 1
    for index, (fact, vector) in enumerate(zip(facts, vectors, strict=True)):
        ends = [fact.subject_id] if fact.single_valued else []
        row = pick(fact, "id", "predicate", "family", "begin") | {"new": index, "embedding": vector}
        row |= {"ends": ends if declared else [fact.subject_id, *fact.object_ids]}
        most = many if fact.single_valued else min(NEAREST, many)
        row |= {"one_at_a_time": fact.single_valued is not False, "most": most}
        rows.append(row)
    return rows


def _pair_rows(facts: Sequence[StatedFact], vectors: Sequence[Vector]) -> list[JSON]:
    rows: list[JSON] = []
    for new, (fact, vector) in enumerate(zip(facts, vectors, strict=True)):
        relation = pick(fact, "predicate", "family") | {"embedding": vector}
        for end in fact.object_ids or (fact.subject_id,):
            for one, another in ((fact.subject_id, end), (end, fact.subject_id)):
                rows.append({"new": new, "subject": one, "object": another, **relation})
    return rows


def ends_of(fact: StatedFact | CandidateFact) -> tuple[str, str, frozenset[str]]:
    """Return the subject id, the predicate and the object ids of *fact*, to compare triples."""
    return fact.subject_id, fact.predicate, frozenset(fact.object_ids)


def surest_first(comparisons: Iterable[Comparison]) -> Iterator[tuple[int, CandidateFact, PairVerdict]]:
    """Yield ``(index of new fact, stored fact, how they relate)`` for related pairs in *comparisons*, surest first."""
    judged = ((row.new, row.candidate, row.verdict) for row in comparisons if row.verdict)
    yield from sorted(judged, key=lambda row: -row[2].confidence)


def farthest(settings: Settings) -> float:
    """Return the maximum cosine distance at which two facts are compared: 1 - `settings.compare_threshold`."""
    least = settings.compare_threshold
    return 1.0 - (LEAST_SIMILARITY if least is None else least)


def is_comparable(fact: StatedFact, candidate: CandidateFact, settings: Settings) -> bool:
    """Return whether the stored fact *candidate* may repeat or contradict *fact*, so that both should be compared."""
    ends = {fact.subject_id, *fact.object_ids}
    others = {candidate.subject_id, *candidate.object_ids}
    if candidate.id == fact.id or len(ends & others) > 1 or ends == others:
        return True
    is_same = candidate.predicate == fact.predicate
    if is_same and candidate.subject_id == fact.subject_id and (fact.single_valued is not False or fact.replaces):
        return True
    if _may_contradict(fact, candidate, is_same=is_same):
        return True
    are_states = fact.kind == "state" and candidate.kind in (None, "state")
    is_unlikely = are_states and _is_known(candidate.predicate) and (is_same or _is_known(fact.predicate))
    part = UNLIKELY if is_unlikely else ONE_END if ends & others else NO_END
    return candidate.distance <= part * farthest(settings)


def _may_contradict(fact: StatedFact, candidate: CandidateFact, *, is_same: bool) -> bool:
    """Return whether the predicates of two facts allow a contradiction."""
    rule = canonical_predicate(candidate.predicate)
    one, another = (rule.family if rule else None), fact.family
    if one is None or another is None:
        return False
    if is_same and fact.single_valued is False:
        return candidate.subject_id != fact.subject_id and one in _INVERSE
    return another in (one, _INVERSE.get(one)) or _INVERSE.get(another) == one


def _is_known(predicate: str) -> bool:
    return predicate != DEFAULT_PREDICATE and canonical_predicate(predicate) is not None
