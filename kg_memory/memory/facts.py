"""`GraphMemory.facts`: the facts about an entity over time, what changed, and what superseded what."""

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
from kg_memory.maintenance.review.reviews import list_verdicts, require_fact, validate_fact
from kg_memory.memory._verb import Group, run_plugin, verb
from kg_memory.memory.adding import Progress, Tally, count_items, date_input, to_result
from kg_memory.memory.declaring import FactMapping, FactRow, FactTime, declare_many, declare_one
from kg_memory.memory.listing import (
    During,
    Time,
    belief_params,
    facts_about,
    is_reviewed,
    read_consequences,
    read_page,
    read_times,
    start_list,
    to_facts,
)
from kg_memory.memory.predicates import read_predicate
from kg_memory.models.graph import SOURCES, Change, Consequence, Fact, Review, Source, TimelineEvent
from kg_memory.models.operations import AddResult
from kg_memory.models.results import FactExplanation, Paged
from kg_memory.retrieval.clocks import parse_moment
from kg_memory.runtime.effects import now, read, run_graph
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import EVER, OPEN_END
from kg_memory.temporal.policy import ConflictPolicy, rivals_by
from kg_memory.text.identity import replace_unstorable
from kg_memory.text.predicates import predicate_name
from kg_memory.validation import DEFAULT_NAMESPACE, validate_author, validate_count, validate_name

MOST_EXPLAINED = 1000
REFUSED = "a replacement that states no other fact"
MAX_CHAIN = 64
"""The number of periods that an evolution has at most (C53)."""


class Facts(Group):
    """Facts about an entity, at any time.

    Times are datetimes (naive ones are UTC), ISO 8601 text or plain words, English or Chinese. ``"last March"`` is its
    first instant, and in `during` its whole length. `as_of` and `during` ask about the world, `believed_at` about what
    the memory believed then. Errors: `InputError` for what is no time.
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
        """State a fact that you know; no model is asked. See `docs/declared.md`.

        *object* is a name, several for a fact about more than two entities, or ``None`` for one about the subject
        alone. *valid_at* and *invalid_at* are when it began and ended, as exactly as you know: a datetime, or text such
        as ``"2024-05"``. *at* is when it was stated, now if left out. *labels* are for filters, and after *expires_at*
        the next `evict` forgets it. *rests_on* are the ids of facts that are its reason or condition: when one of them
        ends, it is doubtful. It ends or corrects what is known by the same rules as a message; the same fact again is
        another source of it.
        ``privacy.forget(episode=result.episode)`` takes it back. Errors: `InputError`, `DatabaseError`,
        `EmbeddingError`.
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
        """State many facts in their order: each row has the arguments of `add`, or is a triple.

        With *mapping* the rows are records, and it says which facts each states; see `docs/declared.md`. *progress* is
        called after each. Errors: `InputError` names the rows that are no facts, and nothing is saved.
        """
        return declare_many(self._engine, rows, mapping, namespace, Tally(count_items("rows", rows, "facts"), progress))

    add_many, aadd_many = verb(_add_many)

    def _list(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        about: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        after: str | None = None,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
    ) -> Flow[Paged[Fact]]:
        """Return a page of the facts, latest first: each period of each, past ones too; see `about`.

        *where* is a filter, such as ``{"predicate": "LIVES_IN"}``: see `kg_memory.models.filters`. *about* is an entity
        by a name or its id. *after* is the `next` of the page before, which is None at the end: what is learned or
        forgotten meanwhile moves nothing to another page. Errors: `InputError`.
        """
        window, believed = yield from read_times(as_of, during, believed_at)
        seen = yield from belief_params(window or EVER, believed, unreviewed=unreviewed)
        first = yield from start_list(about, where)
        return (yield from read_page(first, limit, after, window, seen))

    list, alist = verb(_list)

    def _retract(
        self, fact: str, *, by: str = "user", reason: str = "", namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[Review]:
        """Believe the fact with that id no more, and return the decision; ``reviews.undo(review.id)`` takes it back.

        What was believed until then is kept, and so are its sources. What it had ended holds again. It is believed
        again when a message that comes later states it. Who, when and why is kept. Errors: `InputError`.
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
        """Let another fact supersede the one with that id, and return the decision, to be undone as others.

        *with_text* states it, and is read as a message that *by* says now; or *episode*, which was added before, does.
        The old fact ends where the new one begins, or is not believed at all where the new one does not begin later.
        Who, when and why is kept. Errors: as `GraphMemory.add`, and `InputError` when no other fact is stated:
        then the text is forgotten, with an entry in `privacy.audit`.
        """
        validate_author(by, reason)
        if (with_text is None) == (episode is None):
            raise InputError("exactly one of with_text and episode must be set; give what states the new fact")
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
        """Return the latest period of the fact with that id, which may wait for review; ``None`` if there is none."""
        _, believed = yield from read_times(None, None, believed_at)
        seen = yield from belief_params(EVER, believed, unreviewed=True)
        stored = yield from read(FACTS_BY_ID, ids=[validate_fact(fact)], sources=SOURCES, **seen)
        return next(iter((yield from to_facts(stored[-1:], None, seen["believed_at"]))), None)

    get, aget = verb(_get)

    def _explain(
        self, fact: str, *, namespace: str = DEFAULT_NAMESPACE, believed_at: Time | None = None
    ) -> Flow[FactExplanation]:
        """Return why the fact with that id is believed, or not: who stated it, and what ended or contradicted it.

        At most 1,000 of each. Errors: `InputError` when there is no such fact.
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
        """Return the facts about the entity called *name*, latest first: each period of each, past ones too.

        With *as_of*, only what was so then; with *during*, what was so at some time in it. *unreviewed* includes facts
        that wait for review and are not believed yet.
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
        """Return the periods of what the entity called *name* was, did or had, newest first, with their sources.

        *predicate* restricts them to one relation, in any of its wordings ("lives in", ``RESIDES_IN``).
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
        """Return what began, ended and was said of the entity called *name*, earliest first, from *limit* periods."""
        _, believed = yield from read_times(None, None, believed_at)
        facts = yield from facts_about(name, limit, None, believed)
        events = [event for fact in facts for event in _events(fact)]
        return sorted(events, key=lambda event: (event.at, event.kind != "ended", event.fact.sentence))

    timeline, atimeline = verb(_timeline)

    def _changes(
        self, since: Time, until: Time | None = None, *, namespace: str = DEFAULT_NAMESPACE, limit: int = 1000
    ) -> Flow[builtins.list[Change]]:
        """Return what was learned, ended, corrected, retracted, restored, or became doubtful or sure, earliest first.

        It is what changed in ``[since, until)``, which are times of the system's clock: when the memory came to believe
        it.
        """
        time = yield from now()
        begin = parse_moment("since", since, time)
        end = None if until is None else parse_moment("until", until, time)
        changed: builtins.list[Change] = yield from run_plugin("changes", begin, end, limit)
        return changed

    changes, achanges = verb(_changes)

    def _evolution(self, fact: str, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[builtins.list[Fact]]:
        """Return what superseded what, earliest first: the fact with that id, and all that superseding links to it.

        At most 64 periods around it. Errors: `InputError` when there is no such fact.
        """
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
        """Return every statement of the fact with that id, earliest first; `Fact.sources` has the first five.

        With *believed_at*, those that were saved by then.
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
        """Return what rests on the fact with that id, the nearest first, over any number of steps, each with the way.

        Those that are doubtful then tell since when, and because of what. At most *limit*. Errors: `InputError` when
        there is no such fact.
        """
        window, believed = yield from read_times(as_of, None, believed_at)
        return (yield from read_consequences(fact, limit, window, believed))

    consequences, aconsequences = verb(_consequences)


def read_evolution(fact: str) -> Flow[list[Fact]]:
    """Return what superseded what, earliest first: the periods of the fact with that id and of those linked to it."""
    history = yield from require_fact(fact)
    linked = sorted(_find_chain(history, fact))
    beliefs = yield from read(queries.TELL_FACTS, ids=linked, past=False, sources=SOURCES, believed_at=OPEN_END)
    periods = [row for row in beliefs if is_reviewed(row)]
    periods.sort(key=lambda row: (row["belief"]["known_from"], row["belief"]["invalid_at"], row["fact"]["id"]))
    places = [place for place, row in enumerate(periods) if row["fact"]["id"] == fact]
    last = max(places, default=len(periods) - 1)
    start = max(0, min(last - MAX_CHAIN // 2, len(periods) - MAX_CHAIN))
    return [rows.to_fact(row) for row in periods[start : start + MAX_CHAIN]]


def read_sources(fact: str, limit: int, skip: int, believed_at: int | None) -> Flow[list[Source]]:
    """Return a page of the statements of the fact with that id that were saved by then, earliest first."""
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    seen = OPEN_END if believed_at is None else believed_at
    stating = yield from read(queries.SOURCES_OF_FACT, fact=validate_fact(fact), believed_at=seen, **page)
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


def _find_chain(history: History, fact: str) -> set[str]:
    """Return the facts that superseding links to *fact*, through any number of others."""
    linked = rivals_by(history.verdicts.values(), "supersedes")
    chain, edge = {fact}, {fact}
    while edge:
        edge = set().union(*(linked[id_] for id_ in edge)) - chain
        chain |= edge
    return chain
