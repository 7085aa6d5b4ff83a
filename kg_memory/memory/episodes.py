"""`GraphMemory.episodes`: list and save episodes (the stored messages, texts and records), and extract their facts."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import episodes as queries
from kg_memory.falkor.queries.usage import STATS
from kg_memory.ingestion.receive import accept
from kg_memory.ingestion.state import IngestionContext
from kg_memory.ingestion.summarise import refresh
from kg_memory.memory import adding
from kg_memory.memory._verb import Engine, Group, run_plugin, verb
from kg_memory.memory.listing import belief_params, start_all
from kg_memory.models.filters import parse_filter
from kg_memory.models.graph import Episode, EpisodeStatus
from kg_memory.models.operations import AddResult, Preview, Stats
from kg_memory.retrieval.clocks import UserTime
from kg_memory.runtime.effects import fetch, now, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import PLANS
from kg_memory.temporal.interval import EVER
from kg_memory.text.identity import replace_unstorable
from kg_memory.validation import (
    DEFAULT_NAMESPACE,
    MAX_COUNT,
    validate_choice,
    validate_count,
    validate_name,
    validate_names,
)

PAGE = 1000
"""The number of unread episodes that `resume` lists at once."""
READ_ALL = IngestionContext(read_all=True)
"""Options of an ingestion run that also reads episodes which the filter would skip, such as greetings."""
UNREAD = (EpisodeStatus.SAVED, EpisodeStatus.WAITING, EpisodeStatus.WORKING)
"""The statuses of episodes that `resume` reads."""
DEEPER = PLANS[PLANS.index("standard") :]
"""The plans that `deepen` accepts: those that read one episode at a time."""
UNKNOWN_PLAN = ""
"""The plan of episodes that were read before plans were stored; `deepen` treats it as the cheapest."""

Status = EpisodeStatus | Iterable[EpisodeStatus] | None


class Episodes(Group):
    """`GraphMemory.episodes`: the messages, texts and records that were added to a memory."""

    _group = "episodes"

    def _list(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 100,
        skip: int = 0,
        characters: int | None = None,
        status: Status = None,
    ) -> Flow[builtins.list[Episode]]:
        """Return the episodes (stored messages, texts and records) of a namespace, latest first.

        *where* is a filter, such as ``{"source": "mail"}``; see `kg_memory.models.filters`. *limit* is the maximum
        number of episodes; *skip* is how many to leave out before. *characters* limits their total length: the list
        ends with the episode that reaches it. *status* is one `EpisodeStatus` or several; None is all. Raises
        `InputError`.
        """
        return read_episodes(limit, skip, status, where, characters)

    list, alist = verb(_list)

    def _get(self, episode: str, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[Episode | None]:
        """Return the episode (a stored message, text or record) with the id *episode*, or None."""
        return adding.read_episode(replace_unstorable(validate_name("episode", episode, "the id of an episode")))

    get, aget = verb(_get)

    def _save(
        self, episodes: Iterable[adding.Input], *, based_on: str | None = None, namespace: str = DEFAULT_NAMESPACE
    ) -> Flow[builtins.list[AddResult]]:
        """Store *episodes* (messages, texts) without calling a model, and return a result for each.

        Searches find their words at once; `resume` extracts their facts. *based_on* is the id of an episode from which
        they derive: if it was deleted, `NotFound` is raised. Raises `InputError`, `MemoryPaused` and `DatabaseError`.
        """
        tally = adding.Tally()
        for dated in adding.date_inputs(episodes, namespace, self._engine.driver.today):
            state = {**dated, "based_on": [] if based_on is None else [based_on]}
            tally.count(adding.result_of_saving((yield from accept(state, self._engine.settings))))
        return tally.added

    save, asave = verb(_save)

    def _summarise(self, thread: str, *, namespace: str = DEFAULT_NAMESPACE, least: int = 4) -> Flow[Episode | None]:
        """Summarise a conversation with one model call; store the summary as an episode of it, and return the summary.

        *thread* is the id of the conversation. The new summary updates the previous one. It has intent, files,
        decisions, open questions and next steps. If fewer than *least* messages are new, the previous summary is
        returned, or None. The summary is deleted when a message of the conversation is forgotten. Raises `InputError`
        if the memory has no model; `ModelError`, `DatabaseError` and `MemoryPaused`.
        """
        thread, least = validate_name("thread", thread, "the id of a conversation"), validate_count("least", least)
        return run_plugin("summarise", self._engine, thread, least, namespace)

    summarise, asummarise = verb(_summarise)

    def _preview(
        self,
        content: str,
        *,
        speaker: str | None = None,
        at: UserTime = None,
        thread: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Flow[Preview]:
        """Preview the changes that adding the message *content* would make, without storing anything.

        The result lists the facts that would be new, that would end, and that would wait for review. The model is
        called as by `GraphMemory.add`, except for summaries, and within the same budget. For the arguments, see
        `GraphMemory.add`. Raises `InputError`, `DatabaseError`, `ModelError` and `EmbeddingError`.
        """
        episode = {"content": content, "speaker": speaker, "at": at, "thread": thread}
        state = {**adding.date_input(episode, self._engine.driver.today), "namespace": namespace}
        return run_plugin("preview", state, self._engine.settings)

    preview, apreview = verb(_preview)

    def _resume(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int | None = None,
        progress: Callable[[adding.Progress], None] | None = None,
    ) -> Flow[builtins.list[AddResult]]:
        """Extract the facts of stored messages and texts that are not read yet, earliest first; return the results.

        *limit* is the most messages and texts to read; None: all. *progress* is called after each. Outdated summaries
        are refreshed too. Errors: as `GraphMemory.add_many`.
        """
        most = MAX_COUNT if limit is None else validate_count("limit", limit)
        tally = adding.Tally(min((yield from read_stats()).waiting, most), progress)
        while left := min(PAGE, most - len(tally.added)):
            episodes = yield from read_oldest(UNREAD, left, tally.waiting)
            if not episodes:
                break
            yield from adding.read_inputs(self._engine, map(adding.input_of, episodes), namespace, tally)
        yield from refresh(since=0, before=(yield from now()))
        return tally.added

    resume, aresume = verb(_resume)

    def _retry(
        self,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        episodes: Iterable[str] | None = None,
        skipped: bool = False,
        read: bool = True,
        progress: Callable[[adding.Progress], None] | None = None,
    ) -> Flow[builtins.list[AddResult]]:
        """Extract facts again from messages and texts for which that failed, earliest first; return the results.

        *episodes* are ids; None: all that failed. *skipped* includes skipped messages, such as greetings, but suspected
        prompt injections only by id. ``read=False`` only marks them as unread, for `resume` (not with *skipped*).
        Raises `InputError`.
        """
        if skipped and not read:
            raise InputError("skipped episodes must be read at once (read=True): a later reader would skip them again")
        statuses = (EpisodeStatus.FAILED, *([EpisodeStatus.SKIPPED] if skipped else []))
        reopened = yield from reopen(statuses, episodes)
        if not read:
            return [AddResult(episode=each.id, new=False, status=EpisodeStatus.SAVED) for each in reopened]
        tally = adding.Tally(len(reopened), progress)
        context = READ_ALL if skipped else None
        for episode in reopened:
            tally.count((yield from adding.read_again(self._engine, adding.input_of(episode), namespace, context)))
        return tally.added

    retry, aretry = verb(_retry)

    def _deepen(
        self,
        to: str | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int | None = None,
        skipped: bool = False,
        dry_run: bool = False,
        progress: Callable[[adding.Progress], None] | None = None,
    ) -> Flow[builtins.list[AddResult]]:
        """Extract facts again from messages and texts read less thoroughly than by the plan *to*; return the results.

        *to* is ``"standard"``, ``"thorough"`` or None (this memory's plan, at least ``"standard"``). No fact is
        removed. *skipped* includes skipped messages, such as greetings, but not suspected prompt injections. *limit* is
        the most messages; None: all. *dry_run* only lists them. Raises `InputError` for an unknown plan or without a
        model.
        """
        plan = _deeper_plan(to, self._engine, reads=not dry_run)
        statuses = (EpisodeStatus.DONE, *([EpisodeStatus.SKIPPED] if skipped else []))
        chosen = {"statuses": list(map(str, statuses)), "plans": [UNKNOWN_PLAN, *PLANS[: PLANS.index(plan)]]}
        most = MAX_COUNT if limit is None else validate_count("limit", limit)
        shallow = yield from fetch(queries.SHALLOW, **chosen, limit=most)
        if dry_run:
            return [AddResult(episode=row["id"], new=False, status=EpisodeStatus(row["status"])) for row in shallow]
        tally = adding.Tally(len(shallow), progress)
        context = IngestionContext(plan=plan, read_all=True)  # the filter may now skip what was read before
        for row in shallow:
            reopened = yield from write(queries.REOPEN_SHALLOW, id=row["id"], **chosen)
            if reopened:  # else another process is reading the episode, or it was deleted
                state = adding.input_of(rows.to_episode(reopened[0]["episode"]))
                tally.count((yield from adding.read_again(self._engine, state, namespace, context)))
        yield from refresh(since=0, before=(yield from now()))
        return tally.added

    deepen, adeepen = verb(_deepen)


# Stored episodes


def read_stats() -> Flow[Stats]:
    """Return the numbers of episodes, entities, facts, communities and waiting reviews in the namespace."""
    stats = yield from fetch(STATS, now=(yield from now()))
    return Stats.model_validate(stats[0]) if stats else Stats()


def set_paused(*, paused: bool) -> Flow[bool]:
    """Make the namespace reject new episodes (*paused*), or accept them again; return False if this changed nothing."""
    [row] = yield from write(queries.PAUSE, paused=paused, now=(yield from now()))
    return bool(row["before"] != paused)


def read_episodes(
    limit: int, skip: int, status: Status = None, where: Mapping[str, Any] | None = None, characters: int | None = None
) -> Flow[list[Episode]]:
    """Return the stored messages and texts that match *where* and have the status *status*, latest first."""
    page: dict[str, Any] = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    page["statuses"] = None if status is None else _statuses(status)
    page["characters"] = None if characters is None else validate_count("characters", characters)
    passing = parse_filter(where)
    if passing is None:
        episodes = yield from fetch(queries.EPISODES if status is None else queries.EPISODES_BY_STATUS, **page)
    else:
        first = yield from start_all(passing, "episodes", queries.ALL_EPISODES)
        linked = yield from belief_params(EVER, None)
        episodes = yield from fetch(queries.list_episodes(first.cypher), **page, **linked, **first.params)
    return [rows.to_episode(row["episode"]) for row in episodes]


def read_oldest(statuses: Iterable[EpisodeStatus], limit: int, skip: int = 0) -> Flow[list[Episode]]:
    """Return at most *limit* stored episodes with one of *statuses*, earliest first, without the first *skip*."""
    names = [str(status) for status in statuses]
    episodes = yield from fetch(queries.EPISODES_TO_READ, statuses=names, limit=limit, skip=skip)
    return [rows.to_episode(row["episode"]) for row in episodes]


def reopen(statuses: Iterable[EpisodeStatus], ids: Iterable[str] | None = None) -> Flow[list[Episode]]:
    """Mark stored messages that have one of *statuses* as unread, so that their facts are extracted again.

    *ids* None: all but skipped prompt injections. Errors: `InputError` if one of *ids* has another status.
    """
    names = [str(status) for status in statuses]
    chosen = None if ids is None else set(validate_names("episodes", ids, "the ids of episodes"))
    stored = yield from read_oldest(statuses, MAX_COUNT)
    if chosen is None:
        episodes = [episode for episode in stored if not episode.flags or episode.status is not EpisodeStatus.SKIPPED]
    else:
        episodes = [episode for episode in stored if episode.id in chosen]
        if unknown := sorted(chosen - {episode.id for episode in episodes}):
            raise InputError(f"no episode {unknown[0]!r} is {' or '.join(names)}; list episodes by status to find ids")
    yield from write(queries.REOPEN, ids=[episode.id for episode in episodes], statuses=names)
    return episodes


def _statuses(status: EpisodeStatus | Iterable[EpisodeStatus]) -> list[str]:
    if isinstance(status, str) or not isinstance(status, Iterable):
        status = [status]
    return [str(validate_choice("status", each, EpisodeStatus)) for each in status]


def _deeper_plan(to: str | None, engine: Engine, *, reads: bool) -> str:
    """Return the plan (how thoroughly to read) *to*, by default `Settings.plan`, but at least ``"standard"``.

    Errors: `InputError`.
    """
    if reads and engine.driver.model.by_rules:
        raise InputError("deepen needs a language model, and this memory reads by offline rules; name a model")
    plan = to or (engine.settings.plan if engine.settings.plan in DEEPER else DEEPER[0])
    if plan not in DEEPER:
        raise InputError(f"to must be {' or '.join(DEEPER)}, got {to!r}")
    return plan
