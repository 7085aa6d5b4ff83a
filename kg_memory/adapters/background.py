"""Add messages in the background: save each at once, and extract its facts when the conversation pauses."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from weakref import WeakMethod

from kg_memory.adapters.namespace import validate_memory
from kg_memory.errors import DatabaseUnavailable, EmbeddingUnavailable, ModelUnavailable
from kg_memory.llm.retry import RequestFailure, RetryPolicy
from kg_memory.memory.adding import Tally, add_inputs, count_items, date_input, input_of
from kg_memory.memory.episodes import UNREAD
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult
from kg_memory.runtime.effects import both, call, in_thread
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import Closing, is_shutdown, renew_in_children
from kg_memory.runtime.telemetry import describe_error, mask
from kg_memory.runtime.worker import NOW, BackgroundWorker
from kg_memory.temporal.interval import instant
from kg_memory.text.tokenise import estimate_tokens
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count, validate_namespace, validate_seconds

logger = logging.getLogger("kg_memory")

T = TypeVar("T")
EpisodeLike = EpisodeInput | dict[str, Any] | str
UNAVAILABLE = (ModelUnavailable, EmbeddingUnavailable, DatabaseUnavailable)  # temporary errors, worth a retry
RETRY_POLICY = RetryPolicy(attempts=8, first=1.0, longest=60.0)
PASSING = RequestFailure(None, transient=True, retry_after=None, reason="")
KEPT_FAILURES = 1000
AT_ONCE = 1000
CLOSED = "this BackgroundMemory was closed; open another"


@dataclass(frozen=True, slots=True)
class Failure:
    """A saved message whose facts could not be extracted; `GraphMemory.episodes.resume` tries again.

    `episode`: its id; None if the database could not list the unread messages. `error`: the message of the error.
    `attempts`: how often reading was tried. `at`: the time of the last attempt (UTC).
    """

    episode: str | None
    namespace: str
    error: str
    attempts: int
    at: datetime


@dataclass(eq=False, slots=True)
class _Task:
    """A queued job that extracts the facts of saved messages; `future` gets the results.

    `ids`, `inputs`: the ids and fields of the messages. If `inputs` is None, the job covers all messages of the
    namespace that were saved before the time `before` and whose facts are not extracted yet.
    """

    namespace: str
    ids: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] | None = None
    before: datetime | None = None
    future: Future[list[AddResult]] = field(default_factory=Future)


@dataclass(eq=False, slots=True)
class _ConversationJobs:
    """The queued jobs of one conversation, in order, and when they start.

    `began`: when the first job was queued. `due`: when the jobs start. Both are seconds of `time.monotonic`. `tokens`:
    the estimated tokens of all queued messages.
    """

    began: float
    due: float
    tokens: int = 0
    tasks: list[_Task] = field(default_factory=list)

    @property
    def futures(self) -> list[Future[list[AddResult]]]:
        return [task.future for task in self.tasks]


class BackgroundMemory(Closing):
    """Saves submitted episodes (messages) immediately, and extracts their facts ("reads" them) later on a thread.

    Example::

        with BackgroundMemory(memory) as background:
            background.submit(["I live in Oslo."], namespace="ann", thread="monday")

    The episodes of a conversation are read when none was added to it for *after_seconds*, when the first of them has
    waited *at_most_seconds*, or when they have *after_tokens* tokens together (None: no such limit).

    - *on_failure*: called with a `Failure` for each episode that cannot be read; the episode stays saved.
    - *resume*: the first `submit` call for a namespace also reads episodes that earlier processes left unread there.
    - *retry_policy*: how reading is retried while a model or the database is unavailable.
    - *exit_seconds*: how long waiting episodes are still read when *memory* is closed or the process exits. The next
      process reads the rest. `close`, and the end of a ``with`` block, read all of them.

    Errors: `SettingsError` if *memory* is not a `GraphMemory`; `InputError` for invalid numbers.
    """

    def __init__(
        self,
        memory: GraphMemory,
        *,
        after_seconds: float = 1.0,
        at_most_seconds: float = 60.0,
        after_tokens: int | None = None,
        on_failure: Callable[[Failure], None] | None = None,
        resume: bool = True,
        retry_policy: RetryPolicy = RETRY_POLICY,
        exit_seconds: float = 10.0,
    ) -> None:
        """Start with an empty queue; the class describes the arguments."""
        self.memory = validate_memory(memory)
        self.after_seconds = validate_seconds("after_seconds", after_seconds)
        self.at_most_seconds = validate_seconds("at_most_seconds", at_most_seconds)
        self.after_tokens = None if after_tokens is None else validate_count("after_tokens", after_tokens)
        self.exit_seconds = validate_seconds("exit_seconds", exit_seconds)
        self._on_failure = on_failure
        self._resume = resume
        self._retry_policy = retry_policy
        self._failures: deque[Failure] = deque(maxlen=KEPT_FAILURES)
        self._worker = BackgroundWorker("kg-memory-background", self._run_jobs, self.exit_seconds, _log_unread)
        self.renew()
        renew_in_children(self)
        memory.driver.before_close.append(WeakMethod(self._close_with_memory))

    def renew(self) -> None:
        """Clear the set of namespaces for which `submit` was called; runs in a child process after a fork."""
        self._claimed: set[str] = set()

    def _submit(
        self,
        episodes: Iterable[EpisodeLike],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        thread: str | None = None,
        after_seconds: float | None = None,
    ) -> Flow[Future[list[AddResult]]]:
        """Save messages now, and extract their facts later; return a future of the results, one for each message.

        *thread*: the conversation of messages that name none. Facts are extracted when no message has been added to the
        conversation for *after_seconds* (None: the default of this object). If one message fails, its result has an
        `error`. The future raises if a model or the database stays unavailable. In asyncio, await
        ``asyncio.wrap_future(future)``. Errors: `InputError`, `MemoryPaused`, and `DatabaseError`, also if this object
        is closed.
        """
        after, task = self._after(after_seconds), self._task(namespace, episodes, thread)
        backlog = self._claim_backlog(task.namespace)
        try:
            saved = yield from call(self.memory.episodes, "save", task.inputs or (), namespace=namespace)
            task.ids = [result.episode for result in saved]
        except BaseException:
            self._release_backlog(task.namespace)
            raise
        future: Future[list[AddResult]] = yield in_thread(partial(self._queue, task, after, backlog))
        return future

    submit, asubmit = both(_submit)

    @property
    def pending(self) -> int:
        """The number of submitted messages whose facts are not extracted yet."""
        with self._worker.changed:
            return len(self._pending_ids())

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The latest failures to extract facts from a saved message, oldest first; the last 1,000 are stored."""
        return tuple(self._failures)

    def _flush(self, timeout: float | None = None) -> Flow[bool]:
        """Extract the facts of all waiting messages now, and return whether that finished within *timeout* seconds.

        None waits without limit, 0 does not wait.
        """
        ended: bool = yield in_thread(partial(self._worker.flush, timeout))
        return ended

    def _close(self, timeout: float | None = None) -> Flow[None]:
        """Stop accepting messages, and read the waiting ones for at most *timeout* seconds; None reads all of them.

        Messages that are not read by then stay saved; the next process or `GraphMemory.episodes.resume` reads them.
        """
        yield in_thread(partial(self._worker.close, timeout))

    flush, aflush = both(_flush)
    close, aclose = both(_close)

    def _close_with_memory(self) -> None:
        self.close(self.exit_seconds)

    # Submitting

    def _after(self, seconds: float | None) -> float:
        if self._worker.closed:
            raise DatabaseUnavailable(CLOSED)
        return self.after_seconds if seconds is None else validate_seconds("after_seconds", seconds)

    def _task(self, namespace: str, episodes: Iterable[EpisodeLike], thread: str | None) -> _Task:
        count_items("episodes", episodes, "episodes")
        # The id of a message depends on its time, so each gets one before it is saved.
        dated = (date_input(episode, self.memory.driver.today) for episode in episodes)
        inputs = [{**episode, "thread": episode.get("thread") or thread} for episode in dated]
        return _Task(validate_namespace(namespace), inputs=inputs)

    def _claim_backlog(self, namespace: str) -> _Task | None:
        """Return a job for the messages that earlier processes saved in *namespace* without extracting their facts.

        Only the first call for a namespace returns the job, later calls return None. If `resume` is off, all calls do.
        """
        now = instant(self.memory.driver.clock())
        with self._worker.changed:
            if not self._resume or namespace in self._claimed:
                return None
            self._claimed.add(namespace)
        return _Task(namespace, before=now)

    def _release_backlog(self, namespace: str) -> None:
        with self._worker.changed:
            self._claimed.discard(namespace)

    def _queue(self, task: _Task, pause: float, backlog: _Task | None) -> Future[list[AddResult]]:
        """Queue *task*, a job for saved messages, in the queue of their conversation; return the future of its results.

        The job starts when no message follows for *pause* seconds. *backlog*: a second job to queue, for messages that
        earlier processes left unread. Errors: `DatabaseUnavailable` if this object is closed.
        """
        now, worker = time.monotonic(), self._worker
        with worker.changed:
            if worker.closed:
                raise DatabaseUnavailable(CLOSED)
            if backlog is not None:
                worker.jobs.setdefault((task.namespace, _BACKLOG), _ConversationJobs(now, now)).tasks.append(backlog)
            name = task.inputs[-1]["thread"] if task.inputs else None
            conversation = worker.jobs.setdefault((task.namespace, name), _ConversationJobs(now, now))
            conversation.tasks.append(task)
            conversation.tokens += sum(estimate_tokens(episode["content"]) for episode in task.inputs or ())
            if self.after_tokens is not None and conversation.tokens >= self.after_tokens:
                conversation.due = NOW
            if conversation.due != NOW:
                conversation.due = min(now + pause, conversation.began + max(self.at_most_seconds, pause))
            worker.wake()
        return task.future

    def _pending_ids(self) -> list[str]:
        return [id_ for conversation in self._worker.pending() for task in conversation.tasks for id_ in task.ids]

    # Reading, on the worker thread

    def _run_jobs(self, conversation: _ConversationJobs) -> None:
        for task in conversation.tasks:
            self._run_task(task)

    def _run_task(self, task: _Task) -> None:
        """Run the job *task*: extract the facts of its messages in order, and set the result of its future."""
        if not task.future.set_running_or_notify_cancel():
            return
        added: list[AddResult] = []
        try:
            for id_, episode in self._messages_of(task):
                read_one = partial(self._read_one, id_, episode, task.namespace)
                added += self._call_patiently(id_, task.namespace, read_one)
                if problem := added[-1].error:
                    self._record_failure(id_, task.namespace, problem, 1)
        except Exception as error:  # noqa: BLE001 - the future has it, and the worker goes on
            for id_ in task.ids[len(added) + 1 :]:
                self._record_failure(id_, task.namespace, error, 0)
            self._release_backlog(task.namespace)
            task.future.set_exception(error)
        else:
            task.future.set_result(added)

    def _read_one(self, id_: str, episode: dict[str, Any], namespace: str) -> list[AddResult]:
        """Extract the facts of one saved message; return a list with its result, or ``[]`` if it was deleted meanwhile.

        *id_*: the id of the saved message. *episode*: its fields, such as "content" and "speaker" (see `EpisodeInput`).
        """
        engine = self.memory._engine  # noqa: SLF001 - no verb takes an id
        flow = add_inputs(engine, [{**episode, "saved_id": id_}], namespace, Tally())
        return self.memory.driver.run(flow, namespace)

    def _messages_of(self, task: _Task) -> Iterator[tuple[str, dict[str, Any]]]:
        if task.before is not None:
            return self._unread(task.namespace, task.before)
        return zip(task.ids, task.inputs or (), strict=True)

    def _unread(self, namespace: str, before: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield ``(id, fields)`` for each message saved in *namespace* before *before* whose facts are not extracted.

        The fields are those of `EpisodeInput`. Messages that wait in the queue of this object are left out.
        """
        with self._worker.changed:
            seen = set(self._pending_ids())
        while True:
            limit = AT_ONCE + len(seen)
            list_unread = partial(self.memory.episodes.list, namespace=namespace, status=UNREAD, limit=limit)
            episodes = self._call_patiently(None, namespace, list_unread)
            for episode in reversed(episodes):
                if episode.id not in seen and episode.created_at < before:
                    seen.add(episode.id)
                    yield episode.id, input_of(episode)
            if len(episodes) < limit:
                return
            seen.update(episode.id for episode in episodes)

    def _call_patiently(self, id_: str | None, namespace: str, call: Callable[[], T]) -> T:
        """Return the result of *call*, which is repeated while a model or the database is unavailable.

        The retry policy limits the attempts. The last error is recorded as a failure of the message *id_*, then raised.
        """
        attempt = 1
        while True:
            try:
                return call()
            except Exception as error:
                ended = self.memory.driver.store.database.closed or is_shutdown(error.__cause__)
                passes = isinstance(error, UNAVAILABLE) and not ended and self._retry_policy.allows(attempt, PASSING, 0)
                if not passes or self._worker.ends_within(self._retry_policy.delay(attempt, PASSING)):
                    self._record_failure(id_, namespace, error, attempt)
                    raise
            attempt += 1

    def _record_failure(self, id_: str | None, namespace: str, error: object, attempts: int) -> None:
        failure = Failure(id_, namespace, str(error), attempts, datetime.now(UTC))
        self._failures.append(failure)
        what = "the queue of an earlier process" if id_ is None else f"episode {id_}"
        why = describe_error(error) if isinstance(error, Exception) else "kg-memory episodes --state failed shows why"
        logger.warning("%s in %s is saved but not read (%d attempts): %s", what, mask(namespace), attempts, why)
        if self._on_failure is not None:
            try:
                self._on_failure(failure)
            except Exception as raised:
                logger.error("on_failure failed: %s", describe_error(raised))  # noqa: TRY400 - a traceback quotes the failure
                logger.debug("on_failure failed", exc_info=True)


def _log_unread(conversations: list[_ConversationJobs]) -> None:
    tasks = [task for conversation in conversations for task in conversation.tasks]
    count, names = sum(len(task.ids) for task in tasks), sorted({mask(task.namespace) for task in tasks})
    logger.warning("%d episodes in %s are saved but not read: the next start reads them", count, names)


# The key, in place of a thread name, of the job that reads episodes which earlier processes left unread.
_BACKLOG = object()
