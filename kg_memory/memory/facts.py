"""`GraphMemory.facts`: declare, list, correct and explain facts, and follow them over time."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as queries
from kg_memory.falkor.queries.search import FACTS_BY_ID
from kg_memory.maintenance.forgetting.forget import forget
from kg_memory.maintenance.forgetting.selection import ForgetRequest
from kg_memory.maintenance.review.decide import replace_fact, retract
from kg_memory.maintenance.review.reviews import list_verdicts, require_fact, validate_fact_id
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.memory.adding import Progress, Tally, count_items, date_input, to_result
from kg_memory.memory.declaring import FactMapping, FactRow, FactTime, declare_many, declare_one
from kg_memory.memory.listing import (
    During,
    Time,
    belief_params,
    facts_about,
    list_page,
    read_consequences,
    read_evolution,
    read_times,
    start_list,
    to_facts,
)
from kg_memory.memory.predicates import read_predicate
from kg_memory.models.graph import SOURCES, Change, Consequence, Fact, Review, Source
from kg_memory.models.operations import AddResult
from kg_memory.models.results import FactExplanation, Paged, StaleFact, TimelineEvent
from kg_memory.retrieval.clocks import parse_moment
from kg_memory.runtime.effects import fetch, now, run_graph
from kg_memory.runtime.flow import Flow, at_all
from kg_memory.temporal.interval import EVER, OPEN_END
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.predicates import predicate_name
from kg_memory.validation import DEFAULT_NAMESPACE, validate_author, validate_count, validate_name, validate_namespaces

MOST_EXPLAINED = 1000
REFUSED = "a replacement that states no other fact"


class Facts(Group):
    """`GraphMemory.facts`: declare, list, correct and explain facts, for any time and as believed at any time.

    Times are datetimes (naive ones are UTC), ISO 8601 text, or words in English or Chinese, such as ``"last March"``.
    *as_of* is a time at which facts must hold in the world; a period counts as its first instant. *during* is a period,
    in words or as two times (None is an open end): facts must hold at some time in it. *believed_at* asks what the
    memory believed at that time. Raises `InputError` for an invalid time, and `NotFound` for an unknown fact id.
    """

    _group = "facts"

    def _add(
        self,
        subject: str,
        predicate: str,
        object: str | Sequence[str] | None = None,  # noqa: A002 - the word of the field
        *,
        valid_at: FactTime | None = None,
        invalid_at: FactTime | None = None,
        sentence: str | None = None,
        source: str | None = None,
        source_id: str | None = None,
        confidence: float = 1.0,
        trust: float = 1.0,
        at: date | str | None = None,
        expires_at: date | str | None = None,
        labels: Mapping[str, Any] | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        subject_type: str | None = None,
        object_type: str | None = None,
        rests_on: Sequence[str] | None = None,
    ) -> Flow[AddResult]:
        """Declare one fact that your application knows, without asking a model, and return what changed.

        ``memory.facts.add("Ann", "works at", "Acme", valid_at="2024-05")``. *object* is a name, a list of names for a
        fact about more than two entities, or None for a fact about *subject* alone. *valid_at* and *invalid_at* are
        when the fact began and ended, as exactly as it is known: a datetime, a date, a year, or text such as
        ``"2024-05"``; None is unknown.
        *sentence* is the fact in words; None makes one from the names. *source* and *source_id* are the system it comes
        from and its id there; the same id is stored once. *confidence* and *trust*, from 0 to 1, are how sure the fact
        is and how far its source is believed. *at* is when it is stated; None is now. After *expires_at* the next
        `privacy.evict` deletes it. *labels* are for filters. *rests_on* has the ids of premises (reasons or
        conditions): when one of them ends, this fact is doubtful.

        The fact ends or corrects existing facts by the same rules as a message; if it exists already, it gets another
        source. ``privacy.forget(episode=result.episode)`` takes it back. See `docs/declared.md`. Raises `InputError`,
        `MemoryPaused`, `DatabaseError` and `EmbeddingError`.
        """
        row: dict[str, Any] = {"subject": subject, "predicate": predicate, "object": object, "sentence": sentence}
        row |= {"valid_at": valid_at, "invalid_at": invalid_at, "confidence": confidence, "trust": trust, "at": at}
        row |= {"source": source, "source_id": source_id, "subject_type": subject_type, "object_type": object_type}
        row |= {"rests_on": rests_on, "labels": labels, "expires_at": expires_at}
        return declare_one(self._engine, row, namespace)

    add, aadd = verb(_add)

    def _add_many(
        self,
        rows: Iterable[FactRow | Mapping[str, Any] | tuple[str, str, str | None]],
        *,
        mapping: FactMapping | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[Progress], None] | None = None,
    ) -> Flow[list[AddResult]]:
        """Declare many facts in order, without asking a model, and return one result for each row.

        A row is a dict with the arguments of `add`, or a tuple ``(subject, predicate, object)``. *mapping* says which
        facts each row states if rows are JSON records; see `docs/declared.md`. *progress* is called after each row.
        Raises `InputError` for invalid rows, before any row is saved.
        """
        return declare_many(self._engine, rows, mapping, namespace, Tally(count_items("rows", rows, "facts"), progress))

    add_many, aadd_many = verb(_add_many)

    def _list(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        about: str | None = None,
        namespace: str | Sequence[str] = DEFAULT_NAMESPACE,
        limit: int = 100,
        after: str | None = None,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
    ) -> Flow[Paged[Fact]]:
        """Return a page of facts, latest first, including past facts; a fact that held twice is listed twice.

        *namespace* may be a list of several: then one list of all their facts, each with its `namespace`.
        *where* is a filter, such as ``{"predicate": "LIVES_IN"}``; see `kg_memory.models.filters`. *about* is an
        entity, by name or id. For the times see `Facts`. *unreviewed* includes facts that wait for review. *after* is
        the `next` of the previous page. Raises `InputError`.
        """
        window, believed = yield from read_times(as_of, during, believed_at)
        seen = yield from belief_params(window or EVER, believed, unreviewed=unreviewed)
        namespaces, page = validate_namespaces(namespace), list_page(about, where, limit, after, window, seen)
        return (yield from at_all(namespaces, page) if len(namespaces) > 1 else page)

    list, alist = verb(_list)

    def _stale(
        self,
        *,
        about: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        at: Time | None = None,
        believed_at: Time | None = None,
        below: float = 0.5,
        limit: int = 10,
    ) -> Flow[builtins.list[StaleFact]]:
        """Return facts that may be outdated although nothing contradicts them, the most useful to ask about first.

        Each state has a freshness: 1 when it is stated, 0.5 after its half-life, such as 60 days for a mood, four years
        for a job and five for a home; a birthplace stays fresh. If at least five facts of the same predicate have ended
        in the namespace, the half-life is computed from them. A plan is stale after its day. *about*: an entity, by
        name or id. *at*: the time for which to judge (None: *believed_at* or now). *below*: the highest freshness, from
        0 to 1. An answer that is added as a message refreshes the fact or ends it. Raises `InputError`.
        """
        believed = parse_moment("believed_at", believed_at, (yield from now()))
        moments = parse_moment("at", at, believed), believed
        first = yield from start_list(about, None)
        found: builtins.list[StaleFact] = yield from run_plugin("stale", first, *moments, below, limit)
        return found

    stale, astale = verb(_stale)

    def _retract(
        self, fact: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[Review]:
        """Withdraw the fact with the id *fact*, so that the memory no longer believes it; return the decision.

        ``reviews.undo(review.id)`` reverses it. Facts that the withdrawn fact had ended hold again. It is believed
        again when a later message states it. *by*: the author of the decision, stored with *reason*. Raises
        `InputError`.
        """
        return retract(fact, by, reason, ConflictPolicy.from_settings(self._engine.settings), namespace)

    retract, aretract = verb(_retract)

    def _replace(
        self,
        fact: str,
        with_text: str | None = None,
        *,
        episode: str | None = None,
        by: str = "user",
        reason: str = "",
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[Review]:
        """Replace the fact with the id *fact* by a new one; return the decision, which `reviews.undo` reverses.

        Give either *with_text*, a text that states the new fact, or *episode*, the id of a stored text that does. The
        old fact ends where the new one begins; if the new one does not begin later, the old fact is not believed at
        all. *by* is the author of the text and of the decision. Raises the errors of `GraphMemory.add`, and
        `InputError` if the text states no other fact; the text is then deleted.
        """
        validate_author(by, reason)
        if (with_text is None) == (episode is None):
            raise InputError("give exactly one of with_text and episode, which state the new fact")
        yield from require_fact(fact)
        settings = self._engine.settings
        policy = ConflictPolicy.from_settings(settings)
        if episode is None:
            said = date_input({"content": with_text, "speaker": by}, self._engine.driver.today)
            added = to_result((yield from run_graph(self._engine.ingestion, {**said, "namespace": namespace})))
            try:
                return (yield from replace_fact(fact, added.episode, (by, reason), policy, namespace))
            except InputError:
                refused = ForgetRequest("episode", added.episode, by=by, reason=REFUSED, erase=False)
                yield from forget(refused, settings, namespace)
                raise
        episode = replace_unstorable(validate_name("episode", episode, "the id of an episode"))
        return (yield from replace_fact(fact, episode, (by, reason), policy, namespace))

    replace, areplace = verb(_replace)

    def _get(
        self, fact: str, *, namespace: str = DEFAULT_NAMESPACE, believed_at: Time | None = None
    ) -> Flow[Fact | None]:
        """Return the stored fact with the id *fact*, also if it has ended or waits for review; None if there is none.

        A fact that was true several times is returned with its latest period. *believed_at*: return the fact as the
        memory believed it at that time.
        """
        _, believed = yield from read_times(None, None, believed_at)
        seen = yield from belief_params(EVER, believed, unreviewed=True)
        stored = yield from fetch(FACTS_BY_ID, ids=[validate_fact_id(fact)], sources=SOURCES, **seen)
        return next(iter((yield from to_facts(stored[-1:], None, seen["believed_at"]))), None)

    get, aget = verb(_get)

    def _explain(
        self, fact: str, *, namespace: str = DEFAULT_NAMESPACE, believed_at: Time | None = None
    ) -> Flow[FactExplanation]:
        """Return the evidence for a fact (an id): sources, relations to other facts, successors, dependent facts.

        Each list has at most 1,000 items. *believed_at*: return what the memory believed at that time.
        """
        _, believed = yield from read_times(None, None, believed_at)
        return FactExplanation(
            fact=(yield from self._get(fact, believed_at=believed_at)),
            sources=tuple((yield from read_sources(fact, MOST_EXPLAINED, 0, believed))),
            verdicts=tuple((yield from list_verdicts(fact, MOST_EXPLAINED))),
            evolution=tuple((yield from read_evolution(fact))),
            consequences=tuple((yield from read_consequences(fact, MOST_EXPLAINED, None, believed))),
        )

    explain, aexplain = verb(_explain)

    def _about(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
    ) -> Flow[builtins.list[Fact]]:
        """Return the facts about the entity *name*, latest first; a fact that held twice is listed for each period.

        *name* is a name, an alias or an id. Past facts are included. *as_of* selects facts that held at that time,
        *during* facts that held at some time in that period. *unreviewed* includes facts that wait for review.
        """
        window, believed = yield from read_times(as_of, during, believed_at)
        return (yield from facts_about(name, limit, window, believed, unreviewed=unreviewed))

    about, aabout = verb(_about)

    def _history(
        self,
        name: str,
        predicate: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        believed_at: Time | None = None,
    ) -> Flow[builtins.list[Fact]]:
        """Return the periods in which each fact about the entity *name* held, newest first, with their sources.

        ``history("Ann", "lives in")`` lists each home of Ann with its dates. *predicate*: one relation in any wording,
        such as ``"lives in"`` or ``RESIDES_IN``; None means all. *believed_at*: return what the memory believed at that
        time.
        """
        _, believed = yield from read_times(None, None, believed_at)
        relation = None
        if predicate is not None:
            written = predicate_name(
                validate_name("predicate", predicate, "a relation such as LIVES_IN, or leave it out")
            )
            relation = (yield from read_predicate(written, self._engine.settings.fact_types)).canonical
        return (yield from facts_about(name, limit, EVER, believed, relation=relation))

    history, ahistory = verb(_history)

    def _timeline(
        self, name: str, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 100, believed_at: Time | None = None
    ) -> Flow[builtins.list[TimelineEvent]]:
        """Return a timeline of the entity *name*: when each fact about it began, ended or was stated, earliest first.

        *limit*: the maximum number of periods of facts. *believed_at*: use the facts that the memory believed at that
        time.
        """
        _, believed = yield from read_times(None, None, believed_at)
        events = [event for fact in (yield from facts_about(name, limit, None, believed)) for event in _events(fact)]
        return sorted(events, key=lambda event: (event.at, event.kind != "ended", event.fact.sentence))

    timeline, atimeline = verb(_timeline)

    def _changes(
        self, since: Time, until: Time | None = None, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 1000
    ) -> Flow[builtins.list[Change]]:
        """Return the changes of the memory's beliefs from *since* until before *until* (None is now), earliest first.

        A fact was learned, ended, corrected, retracted or restored, or became doubtful or certain again. The times are
        those at which the memory learned of the change.
        """
        time = yield from now()
        begin = parse_moment("since", since, time)
        end = None if until is None else parse_moment("until", until, time)
        changed: builtins.list[Change] = yield from run_plugin("changes", begin, end, limit)
        return changed

    changes, achanges = verb(_changes)

    def _evolution(self, fact: str, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[builtins.list[Fact]]:
        """Return the facts that *fact* (an id) replaced, and those that replaced it, earliest first, at most 64."""
        return read_evolution(fact)

    evolution, aevolution = verb(_evolution)

    def _sources(
        self,
        fact: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        skip: int = 0,
        believed_at: Time | None = None,
    ) -> Flow[builtins.list[Source]]:
        """Return the sources of *fact* (an id): each episode that states it, with its quote, earliest first.

        *limit*: the maximum number. *skip*: how many of the first to leave out. *believed_at*: leave out sources saved
        after this time.
        """
        _, believed = yield from read_times(None, None, believed_at)
        return (yield from read_sources(fact, limit, skip, believed))

    sources, asources = verb(_sources)

    def _consequences(
        self,
        fact: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 1000,
        as_of: Time | None = None,
        believed_at: Time | None = None,
    ) -> Flow[builtins.list[Consequence]]:
        """Return the facts that depend on *fact* (an id), directly or through other facts, nearest first.

        Each has the path from *fact* and, if it is doubtful at *as_of* (None is now), since when and why.
        """
        window, believed = yield from read_times(as_of, None, believed_at)
        return (yield from read_consequences(fact, limit, window, believed))

    consequences, aconsequences = verb(_consequences)


def read_sources(fact: str, limit: int, skip: int, believed_at: int | None) -> Flow[list[Source]]:
    """Return the episodes that state *fact* (an id) and were saved by *believed_at* (microseconds), earliest first."""
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    seen = OPEN_END if believed_at is None else believed_at
    stating = yield from fetch(queries.SOURCES_OF_FACT, fact=validate_fact_id(fact), believed_at=seen, **page)
    if not stating:
        yield from require_fact(fact)
    return [rows.to_source(row["source"]) for row in stating]


def _events(fact: Fact) -> Iterable[TimelineEvent]:
    if fact.valid_at:
        yield TimelineEvent(at=fact.valid_at, precision=fact.precision, kind="began", fact=fact)
    elif fact.known_from:
        yield TimelineEvent(at=fact.known_from, kind="said", fact=fact)
    if fact.invalid_at:
        yield TimelineEvent(at=fact.invalid_at, precision=fact.end_precision, kind="ended", fact=fact)
