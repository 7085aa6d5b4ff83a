"""`GraphMemory.reports`: a digest of recent events, a portrait of a person, and notes for the next session.

Reports are computed from the graph at each call. None is stored, and no model is called.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kg_memory.contrib.changes import changes_of, read_changes
from kg_memory.contrib.reports import queries
from kg_memory.contrib.reports.values import (
    Arbitration,
    Counts,
    Digest,
    Fading,
    Handoff,
    Identity,
    describe_identity_doubt,
    describe_review,
)
from kg_memory.contrib.variants.decay import DEFAULT_SPANS, decay_of
from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.rows import Row, to_datetime
from kg_memory.maintenance.identities.decisions import list_identities
from kg_memory.maintenance.review.reviews import list_reviews, read_verdict, to_reviews
from kg_memory.memory._verb import Group, verb
from kg_memory.memory.entities import find_named
from kg_memory.memory.episodes import read_episodes
from kg_memory.memory.listing import Time, belief_params, facts_about, list_page, read_times, to_facts
from kg_memory.models.graph import SOURCES, Entity, Episode, Fact, IdentityDecision, Review
from kg_memory.retrieval.clocks import Window, parse_moment
from kg_memory.runtime.effects import fetch, now
from kg_memory.runtime.flow import Flow, every
from kg_memory.temporal.interval import EVER, micros
from kg_memory.text.identity import is_assistant
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count, validate_name

MOST_ABOUT = 1000
"""The most facts about a person that an identity report reads."""
MOST_MERGES = 1000
MOST_CHARACTERS = 2_000_000
"""The total length of a handoff's last messages in characters; earlier messages beyond it are left out."""
DECIDED = "DECIDED DECIDED_ON DECIDED_TO DECIDED_TO_USE CHOSE CHOOSES AGREED_ON AGREED_TO 决定 选择".split()
"""Predicates of decisions. Facts with the label `category` ``decision`` count as decisions too."""


class Reports(Group):
    """Reports about the memory: a digest of changes, a profile of a person, and notes for the next session.

    `render` returns a report as text, Markdown or JSON. *believed_at* asks what the memory assumed at that time, but
    the list of unreadable messages is always current. For the forms of times, see `Facts`.
    """

    _group = "reports"

    def _digest(
        self,
        since: Time = "last week",
        until: Time | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        believed_at: Time | None = None,
        limit: int = 20,
    ) -> Flow[Digest]:
        """Return a digest of a period: its changes and failures, and the questions that a person must decide.

        The period is from *since* up to *until* (default: now), by the time of recording. *limit*: the most items of
        each kind.
        """
        limit = validate_count("limit", limit)
        time = yield from now()
        believed = min(parse_moment("believed_at", believed_at, time), time)
        begin = parse_moment("since", since, believed)
        end = min(parse_moment("until", until, believed + 1), believed + 1)
        if begin >= end:
            raise InputError(f"since must be before until and believed_at, got {since!r}; give an earlier time")
        period = {"since": begin, "until": end, "before": 2 * begin - end, "soon": 2 * end - begin}
        period |= {"believed_at": believed, "limit": limit}
        counts, before = yield from _count(period)
        expiring, failed = yield from every((fetch(queries.EXPIRING, **period), fetch(queries.FAILED, **period)))
        return Digest(
            since=to_datetime(begin),
            until=to_datetime(end),
            believed_at=to_datetime(believed),
            counts=counts,
            counts_before=before,
            pending=(yield from _read_pending(namespace, limit, None if believed_at is None else believed)),
            conflicts=(yield from _read_settled(namespace, limit, begin, end)),
            changes=tuple((yield from read_changes(begin, end, limit, latest=True))),
            merges=(yield from _read_merges(limit, begin, end)),
            failed=_to_episodes(failed),
            expiring=_to_episodes(expiring),
            fading=(yield from _read_fading(period)),
        )

    digest, adigest = verb(_digest)

    def _identity(
        self,
        about: str | None = None,
        since: Time = "last month",
        *,
        namespace: str = DEFAULT_NAMESPACE,
        as_of: Time | None = None,
        believed_at: Time | None = None,
        limit: int = 50,
    ) -> Flow[Identity]:
        """Return a portrait of a person: the facts about them, and the changes of these facts since the time *since*.

        *about* is the name of an entity; by default it is the person who sent the most messages. *limit* is the maximum
        number of facts of each kind. Errors: `InputError` if *about* is left out and no person has sent messages.
        """
        limit = validate_count("limit", limit)
        window, believed = yield from read_times(as_of or "now", None, believed_at)
        time = (yield from now()) if believed is None else believed
        name = (yield from _main_speaker(time)) if about is None else validate_name("about", about, "a name")
        begin = parse_moment("since", since, time)
        holding = yield from facts_about(name, MOST_ABOUT, window, time)
        past = yield from facts_about(name, MOST_ABOUT, None, time)
        states = [fact for fact in holding if fact.kind == "state"]
        states.sort(key=lambda fact: (-len(fact.sources), fact.predicate, fact.sentence, fact.id))
        ids = list(dict.fromkeys(fact.id for fact in past))
        until = min(time + 1, window[1]) if window else time + 1
        plans = tuple(fact for fact in holding if fact.kind == "plan")
        begun = (fact for fact in past if micros(fact.valid_at or fact.known_from, default=0) < until)
        events = tuple(fact for fact in begun if fact.kind == "event")
        return Identity(
            name=name,
            as_of=to_datetime(window[0]) if as_of is not None and window else None,
            believed_at=to_datetime(time),
            since=to_datetime(begin),
            entity=(yield from _find_latest_entity(name)) if past and as_of is None and believed_at is None else None,
            states=tuple(states[:limit]),
            plans=plans[:limit],
            events=events[:limit],
            changes=tuple((yield from changes_of(ids, begin, time + 1)))[-limit:],
        )

    identity, aidentity = verb(_identity)

    def _handoff(
        self,
        thread: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        as_of: Time | None = None,
        believed_at: Time | None = None,
        limit: int = 10,
    ) -> Flow[Handoff]:
        """Return notes for the next session or agent: plans, decisions, open reviews and the last messages.

        With *thread*, facts and messages are only from that conversation. *limit*: the most items of each kind.
        Messages that look like prompt injections are left out.
        """
        limit = validate_count("limit", limit)
        window, believed = yield from read_times(as_of or "now", None, believed_at)
        time = (yield from now()) if believed is None else believed
        scope: dict[str, Any] = {}
        if thread is not None:
            scope["thread"] = validate_name("thread", thread, "the id of a conversation")
        plans = yield from _list_facts({**scope, "fact_kind": "plan"}, window, time, 10 * limit)
        decided = {"$or": [{"predicate": DECIDED}, {"labels.category": "decision"}]}
        decisions = yield from _list_facts({"$and": [scope, decided]} if scope else decided, EVER, time, limit)
        changes = yield from read_changes(0, time + 1, limit, latest=True)
        return Handoff(
            thread=thread,
            as_of=to_datetime(window[0]) if as_of is not None and window else None,
            believed_at=to_datetime(time),
            pending=(yield from _read_pending(namespace, limit, None if believed_at is None else time)),
            plans=tuple(sorted(plans, key=_plan_sort_key)[:limit]),
            decisions=tuple(decisions),
            changes=() if thread else tuple(changes),
            episodes=(yield from _read_last_messages(scope, time, limit)),
        )

    handoff, ahandoff = verb(_handoff)


# What a person decides


def _read_pending(namespace: str, limit: int, believed_at: int | None) -> Flow[tuple[Arbitration, ...]]:
    """Return at most *limit* open questions: facts that may contradict each other, entities that may be the same.

    *believed_at* (microseconds since the epoch) selects the questions that were open at that time; None means now.
    """
    if believed_at is None:
        reviews = yield from list_reviews(limit)
        doubts = yield from list_identities(("waiting",), limit, kinds=("doubt",))
    else:
        reviews = yield from _reviews_at(believed_at, limit)
        stored = yield from list_identities(("waiting", "done", "apart"), MOST_MERGES, kinds=("doubt",))
        doubts = [doubt for doubt in stored if _was_open_at(doubt, believed_at)][:limit]
    pending = [_to_arbitration(review, namespace, ("accept", "reject")) for review in reviews]
    for doubt in doubts:
        kind, question = "identity", describe_identity_doubt(doubt)
        commands = _decision_commands(doubt.id, namespace, ("accept", "reject"))
        pending.append(
            Arbitration(id=doubt.id, kind=kind, question=question, confidence=doubt.confidence, commands=commands)
        )
    return tuple(pending[:limit])


def _reviews_at(believed_at: int, limit: int) -> Flow[list[Review]]:
    """Return the reviews of contradicting facts that were open at *believed_at* (microseconds since the epoch)."""
    stored = yield from fetch(queries.WAITED, believed_at=believed_at)
    ids = [row["id"] for row in stored if _ruling_at(row, believed_at) == "waiting"][:limit]
    return (yield from to_reviews((yield from every(map(read_verdict, ids)))))


def _ruling_at(verdict: Row, believed_at: int) -> str:
    """Return the decision on a contradiction as of *believed_at* (microseconds since the epoch), such as "waiting".

    *verdict* is a database row with the current "ruling" and all "decisions" of persons, earliest first.
    """
    decisions: Sequence[Row] = verdict["decisions"]
    earlier = [decision for decision in decisions if decision["at"] <= believed_at]
    if earlier:
        return str(earlier[-1]["ruling"])
    return str(json.loads(decisions[0]["before"])["ruling"] if decisions else verdict["ruling"])


def _was_open_at(doubt: IdentityDecision, believed_at: int) -> bool:
    return micros(doubt.created_at, default=0) <= believed_at < micros(doubt.at, default=believed_at + 1)


def _read_settled(namespace: str, limit: int, begin: int, end: int) -> Flow[tuple[Arbitration, ...]]:
    """Return the latest contradictions of facts that were settled without a person between *begin* and *end*."""
    stored = yield from fetch(queries.SETTLED, since=begin, until=end, limit=limit)
    reviews = yield from to_reviews((yield from every(read_verdict(row["id"]) for row in stored)))
    return tuple(_to_arbitration(review, namespace, ("reject",)) for review in reviews)


def _to_arbitration(review: Review, namespace: str, choices: Sequence[str]) -> Arbitration:
    return Arbitration(
        id=review.id,
        kind=review.kind,
        question=describe_review(review),
        reason=review.reason,
        confidence=review.confidence,
        commands=_decision_commands(review.id, namespace, choices),
    )


def _decision_commands(id_: str, namespace: str, choices: Sequence[str]) -> tuple[str, ...]:
    scope = "" if namespace == DEFAULT_NAMESPACE else f" -n {shlex.quote(namespace)}"
    return tuple(f"kg-memory review{scope} --{choice} {id_}" for choice in choices)


# Parts of reports


def _to_episodes(stored: Sequence[Row]) -> tuple[Episode, ...]:
    return tuple(episode for episode in (rows.to_episode(row["episode"]) for row in stored) if not episode.withheld)


def _count(period: Mapping[str, int]) -> Flow[tuple[Counts, Counts]]:
    """Return the numbers of changes in *period*, and in the period of equal length before it."""
    found = yield from fetch(queries.COUNTS, **{name: period[name] for name in ("before", "since", "until")})
    row = found[0] if found else {}
    names = tuple(Counts.model_fields)
    now_ = Counts(**{name: row.get(name, 0) for name in names})
    return now_, Counts(**{name: row.get(f"{name}_before", 0) for name in names})


def _read_merges(limit: int, begin: int, end: int) -> Flow[tuple[IdentityDecision, ...]]:
    decisions = yield from list_identities(("done",), MOST_MERGES, kinds=("merge", "split"))
    return tuple([one for one in decisions if begin <= micros(one.at or one.created_at, default=0) < end][:limit])


def _read_fading(period: Mapping[str, int]) -> Flow[tuple[Fading, ...]]:
    """Return the facts that passed to a further state of decay in *period*: "dim", "softly forgotten" or "forgotten".

    A fact decays while nobody states or uses it. *period* has the times "since" and "until" of the period.
    """
    until = period["until"]
    seen = yield from belief_params((until - 1, until), period["believed_at"])
    params = {**period, **seen, "since": period["since"], "until": until, "ends": list(DEFAULT_SPANS.ends)}
    stored = yield from fetch(queries.FADING, sources=SOURCES, **params)
    facts = yield from to_facts(stored, None, period["believed_at"])
    return tuple(Fading(fact=fact, decay=decay_of(fact, to_datetime(until - 1))) for fact in facts)


def _main_speaker(believed_at: int) -> Flow[str]:
    """Return the name of the person who sent the most messages that were stored by *believed_at* (microseconds).

    Assistants and tools do not count. Raises `InputError` if no person sent a message.
    """
    speakers = yield from fetch(queries.SPEAKERS, believed_at=believed_at)
    people = [row["speaker"] for row in speakers if not is_assistant(row["speaker"])]
    if not people:
        raise InputError("no messages from a person in this namespace; set `about` to the name of an entity")
    return str(people[0])


def _find_latest_entity(name: str) -> Flow[Entity | None]:
    called = yield from find_named("about", name)
    latest = max(called.values(), key=lambda entity: (entity["last_seen"] or 0, entity["id"]), default=None)
    return None if latest is None else rows.to_entity(latest)


def _list_facts(where: Mapping[str, Any], window: Window | None, believed_at: int, limit: int) -> Flow[list[Fact]]:
    """Return at most *limit* facts that match the filter *where* and were true at a time in *window*, latest first."""
    seen = yield from belief_params(window or EVER, believed_at)
    page = yield from list_page(None, where, limit, None, window, seen)
    return list({fact.id: fact for fact in reversed(page)}.values())[::-1]


def _read_last_messages(scope: Mapping[str, Any], believed_at: int, limit: int) -> Flow[tuple[Episode, ...]]:
    """Return the last *limit* messages that match the filter *scope* and were saved by *believed_at*, earliest first.

    *believed_at* is in microseconds since the epoch.
    """
    moment = to_datetime(believed_at)
    where = {**scope, "kind": {"$ne": "fact"}, "said_at": {"$lte": moment}}
    episodes = yield from read_episodes(3 * limit, 0, None, where, MOST_CHARACTERS)
    return tuple(reversed([one for one in episodes if one.created_at <= moment and not one.withheld][:limit]))


def _plan_sort_key(fact: Fact) -> tuple[bool, datetime, str]:
    return fact.valid_at is None, fact.valid_at or fact.created_at, fact.id
