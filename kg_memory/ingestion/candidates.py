"""Candidates for repetitions and contradictions: the known facts that are worth comparing with a new one.

Facts are compared that share an end in any role (C49, D32), or are near in meaning to one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from kg_memory.falkor.queries.ingestion import RELATED_FACTS
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import JSON, CandidateFact, Comparison, Grounds, PairVerdict, Span, StatedFact, pick
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import Vector, embed, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.predicates import DEFAULT_PREDICATE, canonical_predicate

Candidates = Mapping[str, CandidateFact]
"""Known facts by their ids."""
_FIRST = {
    "valid_at": None, "invalid_at": None, "precision": "instant", "end_precision": "instant", "arrived_at": 0,
}  # fmt: skip
"""The values of a candidate by its first statement, and what they are where there is none."""
LEAST_SIMILARITY = 0.5
"""Cosine similarity below which a fact that shares an end is no candidate, unless it is of the same family; used where
the settings have none for the embedding model."""
NEAREST = 3
"""The most candidates that are near in meaning, that share no end, and that begin before a fact or after it.

Of 170 facts about one person, that which a new one contradicts is mostly the nearest, and nearly always among three.
"""
ONE_END, NO_END, UNLIKELY = 2 / 3, 1 / 2, 1 / 4
"""Parts of the distance within which facts of the same ends are compared: for facts that have one end or none in
common, and for those that cannot contradict each other by their predicates, but may say the same."""
_INVERSE: Mapping[str, str] = MappingProxyType(
    {"staff": "employment", "management": "reporting", "users": "use", "ownership": "owner"}
)
"""Families of predicates that may have many values, and those that say the same from the other side."""


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
    vectors = yield from embed([fact.sentence for fact in facts])
    records = yield from read(
        RELATED_FACTS,
        ends=sorted(revisions),
        pairs=_pair_rows(facts, vectors),
        facts=_search_rows(facts, vectors, settings, declared=declared),
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
    times: JSON = {name: min((one[name] for one in first), default=default) for name, default in _FIRST.items()}
    fields: JSON = {name: value for name, value in row.items() if name != "history"}
    fields |= {"objects": tuple(row["objects"]), "object_ids": tuple(row["object_ids"])}
    beliefs = tuple(Span(belief["valid_at"], belief["invalid_at"]) for belief in history["beliefs"])
    return CandidateFact(**fields, **times, beliefs=beliefs)


def _search_rows(
    facts: Sequence[StatedFact], vectors: Sequence[Vector], settings: Settings, *, declared: bool
) -> list[JSON]:
    """Return all by which facts related to *facts* are found; of a declared one only rivals about its subject."""
    rows: list[JSON] = []
    for place, (fact, vector) in enumerate(zip(facts, vectors, strict=True)):
        ends = [fact.subject_id] if fact.single_valued else []
        row = pick(fact, "id", "predicate", "family", "begin") | {"new": place, "embedding": vector}
        row |= {"ends": ends if declared else [fact.subject_id, *fact.object_ids]}
        row |= {"one_at_a_time": fact.single_valued is not False, "most": most_rivals(fact, settings)}
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


def ends_of(fact: StatedFact | CandidateFact) -> tuple[str, str, frozenset[str]]:
    """Return the subject, the predicate and the objects of *fact*."""
    return fact.subject_id, fact.predicate, frozenset(fact.object_ids)


def surest_first(comparisons: Iterable[Comparison]) -> Iterator[tuple[int, CandidateFact, PairVerdict]]:
    """Yield the new fact, the known one and the verdict of each pair that has one, the most confident first."""
    judged = ((row.new, row.candidate, row.verdict) for row in comparisons if row.verdict)
    yield from sorted(judged, key=lambda row: -row[2].confidence)


# What is comparable


def nearest(settings: Settings) -> int:
    """Return the most candidates of each kind, but for those of the same two entities."""
    return min(NEAREST, settings.candidates // 2 + 1)


def most_rivals(fact: StatedFact, settings: Settings) -> int:
    """Return the most candidates of the predicate of *fact* that begin before it, and likewise after it.

    Of a predicate that has one value at a time they are more: where some of them are refuted, the next ones end it.
    """
    return settings.candidates // 2 + 1 if fact.single_valued else nearest(settings)


def farthest(settings: Settings) -> float:
    """Return the cosine distance within which facts of the same ends are compared."""
    least = settings.compare_threshold
    return 1.0 - (LEAST_SIMILARITY if least is None else least)


def is_comparable(fact: StatedFact, candidate: CandidateFact, settings: Settings) -> bool:
    """Return whether *candidate*, whose `distance` from *fact* is known, may repeat or contradict it.

    Facts of the same ends, of the same family, or of one subject and a predicate that may have one value at a time may;
    of other predicates, where the words of *fact* tell of a change.
    """
    ends = {fact.subject_id, *fact.object_ids}
    others = {candidate.subject_id, *candidate.object_ids}
    if candidate.id == fact.id or len(ends & others) > 1 or ends == others:
        return True
    is_same = candidate.predicate == fact.predicate
    may_replace = fact.single_valued is not False or fact.replaces
    if is_same and candidate.subject_id == fact.subject_id and may_replace:
        return True
    if _may_contradict(fact, candidate, is_same=is_same):
        return True
    are_states = fact.kind == "state" and candidate.kind in (None, "state")
    is_unlikely = are_states and _is_known(candidate.predicate) and (is_same or _is_known(fact.predicate))
    part = UNLIKELY if is_unlikely else ONE_END if ends & others else NO_END
    return candidate.distance <= part * farthest(settings)


def _may_contradict(fact: StatedFact, candidate: CandidateFact, *, is_same: bool) -> bool:
    """Return whether the predicates of the two are of one family, and not both values beside each other."""
    rule = canonical_predicate(candidate.predicate)
    one, another = (rule.family if rule else None), fact.family
    if one is None or another is None:
        return False
    if is_same and fact.single_valued is False:
        return candidate.subject_id != fact.subject_id and one in _INVERSE
    return another in (one, _INVERSE.get(one)) or _INVERSE.get(another) == one


def _is_known(predicate: str) -> bool:
    return predicate != DEFAULT_PREDICATE and canonical_predicate(predicate) is not None
