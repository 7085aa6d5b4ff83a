"""Step 8, invalidate: which facts contradict which, and what is believed from now on (Zep 2.2.3).

A contradicted fact ends where the contradicting one begins, or is not believed where it was wrong. Beliefs are never
overwritten: those that no longer follow from what was said are closed, and the new ones recorded beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from kg_memory.ingestion.admission import admit
from kg_memory.ingestion.bounds import Loss
from kg_memory.ingestion.records import EpisodeRecord, StatedFact, pick
from kg_memory.ingestion.revise import Revision, find_teller, read_history, revise_beliefs, to_verdict
from kg_memory.ingestion.state import Draft, Update
from kg_memory.ingestion.verdicts import apply_corrections, find_rejudged, find_verdicts
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import OPEN_START, last_instant, time_text
from kg_memory.temporal.policy import ConflictPolicy, is_reopened
from kg_memory.temporal.statements import Statement
from kg_memory.text.identity import alias_key
from kg_memory.text.message_fields import USER


def invalidate(draft: Draft, settings: Settings) -> Flow[Update]:
    """Apply the verdicts that `dedupe` asked for, and revise the beliefs about all facts that they link."""
    policy, episode = ConflictPolicy.from_settings(settings), draft.episode
    admission = yield from admit(draft, settings)
    draft = admission.draft
    facts = apply_corrections(draft.facts, draft.comparisons, policy)
    verdicts = find_verdicts(facts, draft.comparisons, draft.namespace, policy) + admission.waiting
    rejudged = find_rejudged(facts, draft.comparisons, verdicts, draft.namespace)
    linked = {id_ for verdict in verdicts for id_ in (verdict.new, verdict.existing)}
    new = {fact.id for fact in facts if not fact.same_as}
    stored = {fact.stored_id for fact in facts}
    history = yield from read_history((stored | linked) - new, draft.grounds.histories)
    _state(history, facts, draft)
    due = [verdict for verdict in verdicts if verdict.id not in history.verdicts]
    due += [verdict for verdict in rejudged if verdict.id in history.verdicts.keys() - history.decided]
    for verdict in due:
        history.set_verdict(verdict.id, to_verdict(verdict.row()))
    reopened = _reopen(history, stored, episode)
    revision = revise_beliefs(history, policy, draft.namespace, episode.id)
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


def _state(history: History, facts: Collection[StatedFact], draft: Draft) -> None:
    """Put the statements of the episode in the place of those that it was read to make before."""
    for fact in facts:
        history.remove_statements(fact.stored_id, draft.episode.id)
    for fact in facts:
        history.sentences.setdefault(fact.stored_id, fact.sentence)
        if not fact.refuted:
            history.add_statement(_statement(fact, draft))


def _find_unused_starts(facts: Collection[StatedFact], history: History, revision: Revision) -> Iterator[Loss]:
    """Yield the starts of *facts* that change nothing, as each is known to hold since before that."""
    for fact in facts:
        recorded = [belief.period for belief in revision.beliefs if belief.fact == fact.stored_id]
        held = [one.period for one in history.beliefs[fact.stored_id] if one.id not in revision.closed]
        for period in (*recorded, *held):
            within = max(period.valid_at, OPEN_START + 1) < fact.valid_at < period.invalid_at
            if within and fact.valid_at > last_instant(period.valid_at, period.precision):
                since = time_text(period.valid_at, period.precision)
                reason = (
                    f"its start was not used: it is known to be so since {since}; to correct that, retract it first"
                )
                yield Loss("fact", fact.sentence, reason)


def _reopen(history: History, stated: set[str], episode: EpisodeRecord) -> tuple[str, ...]:
    """Let the verdicts wait again by which a person refused what is *stated* anew; return their ids."""
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
    basis = pick(fact, "confidence", "corrects")
    source = pick(episode, "trust") | {"arrived_at": episode.created_at}
    source["teller"] = find_teller(episode.speaker, own=own)
    return Statement(fact.stored_id, episode.id, episode.at, **source, **dates, **basis)
