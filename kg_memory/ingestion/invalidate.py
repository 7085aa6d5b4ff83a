"""Step 8, invalidate: apply the verdicts on pairs of facts, and compute how the stored beliefs must change.

A superseded fact ends where the superseding fact begins; a fact that was wrong is not believed at all. Beliefs (the
periods in which facts count as true) are never overwritten: outdated ones are closed, and new ones are added.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal, cast

from kg_memory.falkor.queries.facts import HISTORY
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.dedupe import ends_of, surest_first
from kg_memory.ingestion.records import (
    JSON,
    PERIOD,
    CandidateFact,
    Comparison,
    EpisodeRecord,
    Loss,
    NewBelief,
    NewVerdict,
    PairVerdict,
    Revision,
    StatedFact,
    pick,
)
from kg_memory.ingestion.state import Draft, Update
from kg_memory.models.graph import PlanOutcome, Precision
from kg_memory.plugins import load_plugin
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.beliefs import Belief, Edit, History, enters_review, has_ended, revise
from kg_memory.temporal.interval import OPEN_END, OPEN_START, last_instant, time_text
from kg_memory.temporal.policy import CONTRADICTIONS, ConflictPolicy, Contradiction, Relation, Verdict, is_reopened
from kg_memory.temporal.statements import Statement, Teller
from kg_memory.temporal.truth import Period, truths
from kg_memory.text.identity import alias_key, belief_id, is_assistant, verdict_id
from kg_memory.text.message_fields import USER

MOST_LINKED = 2000
"""The most facts to read by following verdicts from fact to fact."""
_PERIOD = itemgetter(*PERIOD)
_STATEMENT = itemgetter(
    *"id said_at valid_at invalid_at precision confidence trust corrects end_precision arrived_at".split()
)


def invalidate(draft: Draft, settings: Settings) -> Flow[Update]:
    """Step 8 of ingestion: return how new and stored facts relate (verdicts), and how stored facts must change."""
    policy, episode = ConflictPolicy.from_settings(settings), draft.episode
    waiting: tuple[NewVerdict, ...] = ()
    if settings.admission and not episode.is_declared and not settings.read_all:
        draft, waiting = yield from load_plugin("admission", settings.admission)(draft, settings)
    facts = apply_corrections(draft.facts, draft.comparisons, policy)
    verdicts = find_verdicts(facts, draft.comparisons, draft.namespace, policy, draft.earlier) + waiting
    rejudged = find_rejudged(facts, draft.comparisons, verdicts, draft.namespace)
    linked = {id_ for verdict in verdicts for id_ in (verdict.new, verdict.existing)}
    new = {fact.id for fact in facts if not fact.same_as}
    stored = {fact.stored_id for fact in facts}
    history = yield from read_history((stored | linked) - new, draft.grounds.histories)
    _record_statements(history, facts, draft)
    due = [verdict for verdict in verdicts if verdict.id not in history.verdicts]
    due += [verdict for verdict in rejudged if verdict.id in history.verdicts.keys() - history.decided]
    for verdict in due:
        history.set_verdict(verdict.id, to_verdict(verdict.row()))
    reopened = _reopen(history, stored, episode)
    revision = revise_beliefs(history, policy, draft.namespace, episode.id)
    if draft.part:
        revision = _with_earlier(revision, draft)
    losses = _find_unused_starts(facts, history, revision) if episode.is_declared else ()
    return {
        "facts": facts,
        "comparisons": draft.comparisons,
        "dropped": (*draft.dropped, *losses),
        "verdicts": verdicts,
        "rejudged": rejudged,
        "reopened": reopened,
        "revision": revision,
    }


def _record_statements(history: History, facts: Collection[StatedFact], draft: Draft) -> None:
    # A message that is processed again states its facts anew; facts of its earlier parts stay.
    for id_ in {fact.stored_id for fact in facts} - {fact.stored_id for fact in draft.earlier}:
        history.remove_statements(id_, draft.episode.id)
    for fact in facts:
        history.sentences.setdefault(fact.stored_id, fact.sentence)
        if not fact.refuted:
            history.add_statement(_statement(fact, draft))


def _with_earlier(revision: Revision, draft: Draft) -> Revision:
    """Return *revision* with the facts that earlier parts of the same message ended or sent to review."""
    # Facts that the text itself stated do not count as ended.
    own = {fact.sentence for fact in draft.earlier if not fact.same_as}
    ended = [sentence for sentence in revision.ended if sentence not in own]
    waiting = list(dict.fromkeys((*draft.revision.waiting, *revision.waiting)))
    return replace(revision, ended=list(dict.fromkeys((*draft.revision.ended, *ended))), waiting=waiting)


def _find_unused_starts(facts: Collection[StatedFact], history: History, revision: Revision) -> Iterator[Loss]:
    for fact in facts:
        added = [belief.period for belief in revision.beliefs if belief.fact == fact.stored_id]
        stored = [one.period for one in history.beliefs[fact.stored_id] if one.id not in revision.closed]
        for period in (*added, *stored):
            within = max(period.valid_at, OPEN_START + 1) < fact.valid_at < period.invalid_at
            if within and fact.valid_at > last_instant(period.valid_at, period.precision):
                since = time_text(period.valid_at, period.precision)
                reason = (
                    f"its start was not used: the fact is believed since {since}; to correct that, retract it first"
                )
                yield Loss("fact", fact.sentence, reason)


def _reopen(history: History, stated: set[str], episode: EpisodeRecord) -> tuple[str, ...]:
    """Mark rejected facts for review if the message *episode* states them again; return the verdicts' ids."""
    arrived_at = episode.created_at
    reopened = sorted(id_ for id_, verdict in history.verdicts.items() if is_reopened(verdict, stated, arrived_at))
    for id_ in reopened:
        verdict = replace(history.verdicts[id_], ruling="waiting", refused=None, refused_at=None)
        history.set_verdict(id_, verdict, history.edits.get(id_))
    return tuple(reopened)


def _statement(fact: StatedFact, draft: Draft) -> Statement:
    episode, subject = draft.episode, draft.entities[fact.subject]
    own = alias_key(episode.speaker or USER) in map(alias_key, (subject.name, *subject.called, *subject.aliases))
    dates = pick(fact, "valid_at", "invalid_at", "precision", "end_precision")
    basis = pick(fact, "confidence", "corrects", "goes_on")
    basis |= {"is_plan": fact.kind == "plan", "teller": find_teller(episode.speaker, own=own)}
    source = pick(episode, "trust") | {"arrived_at": episode.created_at}
    return Statement(fact.stored_id, episode.id, episode.at, **source, **dates, **basis)


# Verdicts of the model on pairs of facts


def apply_corrections(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], policy: ConflictPolicy
) -> tuple[StatedFact, ...]:
    """Apply the model's *comparisons* to *facts*: mark corrections and refuted facts, and end temporary states."""
    marked = list(facts)
    for new, candidate, verdict in surest_first(comparisons):
        fact = marked[new]
        if not policy.takes_effect(verdict.confidence):
            break  # leaving a temporary state open does less harm than ending a lasting one
        if verdict.verdict == "conflicts" and fact.same_as == candidate.id:
            marked[new] = replace(fact, corrects=verdict.holds == "new", refuted=verdict.holds == "known")
        elif verdict.verdict == "temporary" and fact.invalid_at == OPEN_END:
            marked[new] = replace(fact, invalid_at=fact.window_end)
    return tuple(marked)


def find_verdicts(
    facts: Sequence[StatedFact],
    comparisons: Sequence[Comparison],
    namespace: str,
    policy: ConflictPolicy,
    earlier: Sequence[StatedFact] = (),
) -> tuple[NewVerdict, ...]:
    """Return the verdicts to store: which new fact ends or contradicts which other fact."""
    noted = [row for row in comparisons if row.verdict and row.verdict.confidence >= policy.review_threshold]
    stated = {(fact.stored_id, fact.begin) for fact in (*earlier, *facts) if not fact.only_ends}
    stored = {fact.id: fact.stored_id for fact in facts}
    verdicts: dict[str, NewVerdict] = {}
    for new, candidate, given in surest_first([*noted, *_exclusions(facts, comparisons, noted, policy)]):
        fact, existing = facts[new], stored.get(candidate.id, candidate.id)
        verdict = _with_plans(given, fact, candidate)
        kind = verdict.verdict
        is_own = existing == fact.stored_id or (not fact.only_ends and (existing, fact.begin) in stated)
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
    """Return new verdicts on stored facts that the new message states in clearer words."""
    by_id = {verdict.id: verdict for verdict in verdicts}
    rejudged: list[NewVerdict] = []
    for row in comparisons:
        fact, existing = facts[row.new], row.candidate.id
        if fact.restated and fact.stored_id != existing:
            id_ = verdict_id(namespace, fact.stored_id, existing)
            reason = "judged again by the words in which the fact was first stated"
            nothing = NewVerdict(id_, fact.stored_id, existing, "unrelated", "both", 1.0, "new", reason)
            rejudged.append(by_id.get(id_, nothing))
    return tuple(rejudged)


def _exclusions(
    facts: Sequence[StatedFact], comparisons: Iterable[Comparison], judged: Iterable[Comparison], policy: ConflictPolicy
) -> Iterator[Comparison]:
    """Yield the verdict "supersedes" for facts with different values of a single-valued predicate."""
    pairs = {(row.new, row.candidate.id) for row in judged}
    for row in comparisons:
        fact, candidate = facts[row.new], row.candidate
        if policy.excludes(_relation(fact), _relation(candidate)) and (row.new, candidate.id) not in pairs:
            reason = f"{fact.predicate} is declared single-valued"
            yield replace(row, verdict=PairVerdict("supersedes", 1.0, "new", reason))


# The beginnings of predicates that deny something, or call it off.
_DENIAL = re.compile(
    "(NOT|NO_LONGER|NEVER)_|CANCEL|CALL(S|ED)_OFF|G[AI]VES?_UP|ABANDON|DROP|DECIDED_(NOT|AGAINST)|取消"
)


def _with_plans(verdict: PairVerdict, fact: StatedFact, candidate: CandidateFact) -> PairVerdict:
    """Return *verdict*, changed from "supersedes" if one of the facts is a plan.

    An earlier plan is "fulfilled", "dropped" or "replaced". A later plan does not end a fact: "complements".
    """
    if verdict.verdict != "supersedes":
        return verdict
    is_later = candidate.stated_at <= fact.stated_at
    earlier, later = (candidate, fact) if is_later else (fact, candidate)
    if earlier.kind != "plan":
        return replace(verdict, verdict="complements") if later.kind == "plan" else verdict
    is_elsewhere = fact.single_valued and _relation(fact).objects.isdisjoint(_relation(candidate).objects)
    outcome: PlanOutcome = "replaced" if later.kind == "plan" else "dropped" if is_elsewhere else "fulfilled"
    if _DENIAL.match(later.predicate):
        outcome = "dropped"
    return replace(verdict, verdict=outcome, holds="new" if is_later else "known")


def _relation(fact: StatedFact | CandidateFact) -> Relation:
    declared = (fact.single_valued, fact.declared) if isinstance(fact, StatedFact) else ()
    return Relation(*ends_of(fact), *declared)


# Premises


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that derives facts: a fact with a predicate in `of` depends on two other facts, its premises.

    Ann WORKS_IN Oslo depends on Ann WORKS_AT Acme and Acme IS_LOCATED_IN Oslo.
    """

    kind: Literal["placed", "shared"]
    of: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]


EMPLOYED = ("WORKS_AT",)
RULES = (
    Rule("placed", ("WORKS_IN", "COMMUTES_TO"), EMPLOYED, ("IS_LOCATED_IN", "HAS_OFFICE_IN")),
    Rule("shared", ("WORKS_WITH", "HAS_COLLEAGUE", "REPORTS_TO", "HAS_BOSS", "HAS_MANAGER"), EMPLOYED, EMPLOYED),
)


def premise_rows(facts: Sequence[StatedFact]) -> list[JSON]:
    """Return query rows that link *facts* to the facts they depend on: ``[{"fact": id, "premise": id}, ...]``."""
    stored = {fact.id: fact.stored_id for fact in facts}
    pairs = {(fact.stored_id, stored.get(premise, premise)) for fact in facts for premise in fact.premises}
    return [{"fact": fact, "premise": premise} for fact, premise in sorted(pairs) if fact != premise]


def rule_rows(facts: Iterable[StatedFact]) -> dict[str, list[JSON]]:
    """Return query rows for *facts* in a `Rule` (two facts imply a third), by kind of rule: ``{"placed": [...]}``."""
    rows: dict[str, list[JSON]] = {"placed": [], "shared": []}
    for fact in facts:
        for rule in RULES:
            if fact.predicate in (*rule.of, *rule.first, *rule.second):
                names = {"of": rule.of, "first": rule.first, "second": rule.second}
                rows[rule.kind].append({"fact": fact.stored_id, **{key: list(value) for key, value in names.items()}})
    return rows


# Beliefs computed from statements; reviews, forgetting and splits use these functions too


def read_history(facts: Iterable[str], rows: Iterable[Row] = ()) -> Flow[History]:
    """Read the statements, beliefs and verdicts of *facts* (ids), and of all facts linked to them by verdicts."""
    history = History()
    missing, seen = sorted(set(facts)), set[str]()
    row_of = {row["fact"]: row for row in rows}
    while missing and len(seen) < MOST_LINKED:
        seen.update(missing)
        unread = [fact for fact in missing if fact not in row_of]
        if unread:
            row_of |= {row["history"]["fact"]: row["history"] for row in (yield from fetch(HISTORY, facts=unread))}
        for fact in missing:
            if fact in row_of:
                _add_fact_row(history, row_of[fact])
        linked = {fact for verdict in history.verdicts.values() for fact in (verdict.new, verdict.existing)}
        missing = sorted(linked - seen)[: MOST_LINKED - len(seen)]
    return history


def revise_beliefs(history: History, policy: ConflictPolicy, namespace: str, cause: str) -> Revision:
    """Compute which stored beliefs to close and which to add, so that they agree with *history*."""
    revision = Revision()
    for fact, truth in sorted(truths(history.apply_edits(), list(history.verdicts.values()), policy).items()):
        stored = history.beliefs[fact]
        closed, added = revise(stored, truth)
        if closed or added:
            revision.touched.append(fact)
        revision.closed.extend(closed)
        for period in added:
            times = (period.valid_at, period.invalid_at, period.known_from, int(truth.waits))
            id_ = belief_id(namespace, fact, cause, *times)
            revision.beliefs.append(NewBelief(fact, id_, period, cause, truth.waits))
        if has_ended(truth, stored):
            revision.ended.append(history.sentences[fact])
        if enters_review(truth, stored, added):
            revision.waiting.append(history.sentences[fact])
    return revision


def to_statement(fact: str, row: Row) -> Statement:
    """Convert *row*, stored properties, to a `Statement`: the dates that one message gives for *fact* (an id)."""
    statement = Statement(fact, *(*_STATEMENT(row), find_teller(row.get("speaker"), own=bool(row.get("own")))))
    return replace(statement, is_plan=bool(row.get("plan")), goes_on=bool(row.get("goes_on")))


def find_teller(speaker: str | None, *, own: bool) -> Teller:
    """Classify a speaker as "assistant", "subject" (*own*: it is the subject of the fact) or "other"."""
    return "assistant" if is_assistant(speaker) else "subject" if own else "other"


def to_belief(row: Row) -> Belief:
    """Convert *row*, stored properties, to a `Belief`: a period in which a fact counts as true."""
    return Belief(row["id"], Period(*_PERIOD(row)), row["proposed"])


def to_verdict(row: Row) -> Verdict:
    """Convert *row*, stored properties or a `NewVerdict.row()`, to a `Verdict`: how two facts relate."""
    kind = cast("Contradiction", row["kind"] if row["kind"] in CONTRADICTIONS else "supersedes")
    preferred = row[row["holds"]] if row["holds"] in ("new", "known") else None
    refused = row.get("refused"), kind, row.get("refused_at")
    return Verdict(row["new"], row["known"], row["ruling"], preferred, *refused)


def to_edit(row: Row) -> Edit | None:
    """Return the dates that a person entered when deciding the verdict (how two facts relate) in *row*, or None."""
    if not row["edited"]:
        return None
    precision: Precision = row["edited_precision"] or "instant"
    end_precision: Precision = row["edited_end_precision"] or "instant"
    return Edit(row["edited"], row["edited_from"], row["edited_until"], precision, end_precision)


def _add_fact_row(history: History, row: Row) -> None:
    fact = row["fact"]
    history.sentences[fact] = row["sentence"]
    for statement in row["statements"]:
        if not statement["refuted"]:
            history.add_statement(to_statement(fact, statement))
    history.beliefs[fact] = [to_belief(belief) for belief in row["beliefs"]]
    for verdict in row["verdicts"]:
        if verdict["decided"]:
            history.decided.add(verdict["id"])
        history.set_verdict(verdict["id"], to_verdict(verdict), to_edit(verdict))
