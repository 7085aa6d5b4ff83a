"""Step 8, invalidate: what is believed from now on (Zep 2.2.3).

A contradicted fact ends where the contradicting one begins, or is not believed where it was wrong. Beliefs are never
overwritten: those that no longer follow from what was said are closed, and the new ones recorded beside them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kg_memory.ingestion.contradictions import identity
from kg_memory.ingestion.records import IngestionState, NewFact
from kg_memory.ingestion.revise import read_history, revise_beliefs, to_verdict
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.policy import ConflictPolicy, is_reopened
from kg_memory.temporal.statements import Statement


def invalidate(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Revise the beliefs about the new facts, and about all that verdicts link to them."""
    facts, episode = state["facts"], state["episode"]
    judged = {each[side] for each in state["verdicts"] for side in ("new", "known")}
    unknown = {fact["id"] for fact in facts if not fact["same_as"]}
    history = yield from read_history({*map(identity, facts), *judged} - unknown, state["histories"])
    for id_ in map(identity, facts):
        history.remove_statements(id_, episode["id"])
    for fact in facts:
        history.sentences.setdefault(identity(fact), fact["sentence"])
        if not fact["refuted"]:
            history.add_statement(_statement(fact, episode))
    found = [each for each in state["verdicts"] if each["id"] not in history.verdicts]
    found += [each for each in state["rejudged"] if each["id"] in history.verdicts.keys() - history.decided]
    for told in found:
        history.set_verdict(told["id"], to_verdict(told))
    reopened = _reopened(history, {identity(fact) for fact in facts})
    revision = revise_beliefs(history, ConflictPolicy.from_settings(settings), state["namespace"], episode["id"])
    return {
        "reopened": reopened,
        **revision.to_parameters(),
        "ended": revision.ended,
        "waiting": revision.waiting,
        "revived": revision.revived,
    }


def _reopened(history: History, stated: set[str]) -> list[str]:
    """Return the ids of the verdicts that wait again: what a person refused is said anew."""
    again = [id_ for id_, each in history.verdicts.items() if is_reopened(each, stated)]
    for id_ in again:
        each = history.verdicts[id_]
        history.set_verdict(id_, replace(each, ruling="waiting", refused=None), history.edits.get(id_))
    return sorted(again)


def _statement(fact: NewFact, episode: dict[str, Any]) -> Statement:
    return Statement(
        fact=identity(fact), id=episode["id"], stated_at=episode["at"], valid_at=fact["valid_at"],
        invalid_at=fact["invalid_at"], precision=fact["precision"], confidence=fact["confidence"],
        trust=episode["trust"], corrects=fact["corrects"], end_precision=fact["end_precision"],
    )  # fmt: skip
