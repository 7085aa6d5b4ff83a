"""All I/O, as values: ask the model, embed, score, query the graph, look at the clock; and long work.

Steps yield them; `kg_memory.runtime.driver` performs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import islice
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from kg_memory.models.operations import Usage
from kg_memory.runtime.flow import Every, Flow, T, arun, run, through

P = ParamSpec("P")
Answer = TypeVar("Answer", bound=BaseModel)
Vector = list[float]
Row = dict[str, Any]
"""A row of a query by its columns, or a state by its keys."""


@dataclass(frozen=True, slots=True)
class Prompt(Generic[Answer]):
    """A question to a model: prose with ``$names``, and the typed answer that it must get."""

    name: str
    text: str
    fields: frozenset[str]
    answer: type[Answer]


MANY = 200
"""The items that take too long for an event loop to work on them itself: to write 1,000 vectors as text takes 0.2 s."""
Meter = Callable[[Usage], None]


def ignore_usage(_: Usage) -> None:
    """Count nothing."""


def always() -> bool:
    """Allow it."""
    return True


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model *prompt*, filled with *fields* (JSON-plain values); answered by ``prompt.answer``.

    The *meter* gets the cost of each request as soon as it is known, so that failures are counted too.
    *episode* is the id of the one that it is about, if it is about one. Before a request that is to mend a bad answer,
    *again* is asked whether there is room for it.
    """

    prompt: Prompt[Any]
    fields: Mapping[str, Any]
    meter: Meter = field(default=ignore_usage, compare=False, repr=False)
    episode: str | None = field(default=None, compare=False)
    again: Callable[[], bool] = field(default=always, compare=False, repr=False)


@runtime_checkable
class Model(Protocol):
    """Answers an `Ask`: a chat model, or the offline reader."""

    @property
    def name(self) -> str: ...

    @property
    def by_rules(self) -> bool:
        """Whether it answers by fixed rules: at once, free of charge, and only the questions of reading."""

    def answer(self, ask: Ask) -> BaseModel: ...

    async def aanswer(self, ask: Ask) -> BaseModel: ...


@runtime_checkable
class CrossEncoder(Protocol):
    """Scores texts for a question: one number per text from 0 to 1, higher is better."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str]) -> list[float]: ...

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]: ...


@dataclass(frozen=True, slots=True)
class Embed:
    """Embed *texts*; answered by one vector a text."""

    texts: tuple[str, ...]
    role: Literal["document", "query"] = "document"
    later: tuple[str, ...] = ()
    """Texts that will be asked for soon: a model in this process begins with them, a server embeds them along."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Ask for the embedding model; answered by its name."""


@dataclass(frozen=True, slots=True)
class Score:
    """Score how well each of *texts* answers *question*; answered by one number a text, 0 to 1, higher is better."""

    question: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """Run *cypher* on the namespace's graph; answered by its rows, as dicts by column.

    A read on a namespace that has no graph yet is answered by no rows.
    """

    cypher: str
    params: Mapping[str, Any] = field(default_factory=dict)
    write: bool = False
    as_of: Hashable = None
    """A version of what is read, if one is known: what was made of its rows before may be the answer."""
    make: Callable[[list[Row]], Any] | None = None
    """Makes the answer of the rows, if that is not the rows; in a thread, as it may compute for long."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Run reading *queries* at once; answered by the rows of each."""

    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """Do a command of the server that holds the key *at*, beside all graphs; answered by its reply.

    With `replica`, it is that of the replica that the settings name; answered by None where they name none.
    """

    words: tuple[str | int, ...]
    at: str
    replica: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """Read the clock; answered in microseconds since the epoch, never twice the same."""


@dataclass(frozen=True, slots=True)
class Call:
    """Call *function*, or on an event loop *coroutine*, which does the same; answered by what it returns.

    `read` turns the result into the answer. `around` opens a context around both, such as one that maps errors.
    """

    function: Callable[[], Any]
    coroutine: Callable[[], Awaitable[Any]]
    read: Callable[[Any], Any] | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    def run(self) -> Any:
        """Call the function."""
        with self.around():
            return self._answer(self.function())

    async def arun(self) -> Any:
        """Call the coroutine."""
        with self.around():
            return self._answer(await self.coroutine())

    def _answer(self, result: Any) -> Any:
        return result if self.read is None else self.read(result)


def in_thread(task: Callable[[], Any]) -> Call:
    """Return a call of *task*, which blocks: an event loop has it done in a thread."""
    return Call(task, partial(asyncio.to_thread, task))


def call(owner: object, verb: str, *args: object, **kwargs: object) -> Flow[Any]:
    """Call ``owner.verb``, or ``owner.averb`` on an event loop, and return its result."""
    forms = getattr(owner, verb), getattr(owner, f"a{verb}")
    result = yield Call(*(partial(form, *args, **kwargs) for form in forms))
    return result


def both(flow: Callable[P, Flow[T]]) -> tuple[Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Return the sync and the async form of *flow*, a function or method that yields only calls and flows of calls."""

    @wraps(flow)
    def run_calls(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(flow(*args, **kwargs), Call.run)

    @wraps(flow)
    async def arun_calls(*args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(flow(*args, **kwargs), Call.arun)

    name_forms(flow, run_calls, arun_calls)
    return run_calls, arun_calls


def name_forms(flow: Any, sync: Any, asynchronous: Any) -> None:
    """Name the two forms of *flow* without its ``_``, and *flow* too: a `TypeError` for wrong arguments names it."""
    own = flow.__name__
    name = own.removeprefix("_")
    for form, public in ((sync, name), (asynchronous, f"a{name}")):
        form.__name__, form.__qualname__ = public, flow.__qualname__.replace(own, public)
    flow.__qualname__ = flow.__qualname__.replace(own, name)


def run_graph(graph: Any, state: Mapping[str, Any], context: Any = None) -> Flow[Row]:
    """Run *graph*, a `Pipeline` or one compiled by LangGraph, on *state* and return the state in which it ends."""
    end: Row = yield from call(graph, "invoke", state, context=context)
    return end


def now() -> Flow[int]:
    """Return the time, in microseconds since the epoch."""
    micros: int = yield Now()
    return micros


def command(*words: str | int, at: str, replica: bool = False) -> Flow[Any]:
    """Do a command of the server that holds the key *at*, or of its *replica*, and return its reply."""
    reply = yield Command(words, at, replica)
    return reply


def work(task: Callable[[], T]) -> Flow[T]:
    """Do *task*, which computes for long, and return what it returns; an event loop goes on meanwhile."""
    done: T = yield in_thread(task)
    return done


def work_on(count: int, task: Callable[[], T]) -> Flow[T]:
    """Do *task*, which is on *count* items, and return what it returns; where they are many, as `work` does."""
    return (yield in_thread(task)) if count > MANY else task()


def in_threads(flow: Flow[T]) -> Flow[T]:
    """Run *flow*, which computes for long, with its code between effects in threads; an event loop goes on meanwhile.

    So run the flows that it runs side by side.
    """
    advance = partial(_advance, flow.send, None)
    try:
        while True:
            has_ended, value = yield in_thread(advance)
            if has_ended:
                return value  # type: ignore[no-any-return]
            if isinstance(value, Every):
                value = replace(value, flows=tuple(map(in_threads, value.flows)))
            try:
                advance = partial(_advance, flow.send, (yield value))
            except Exception as error:  # noqa: BLE001 - the flow may handle it
                advance = partial(_advance, flow.throw, error)
    finally:
        flow.close()


def _advance(resume: Callable[[Any], Any], answer: Any) -> tuple[bool, Any]:
    """Return whether the flow has ended, and what it returned, or its next effect."""
    try:
        return False, resume(answer)
    except StopIteration as stop:
        return True, stop.value


def ask(prompt: Prompt[Answer], **fields: Any) -> Flow[Answer]:
    """Ask the model and return its validated answer."""
    answer: Answer = yield Ask(prompt, fields)
    return answer


def embed(
    texts: Sequence[str], role: Literal["document", "query"] = "document", later: Sequence[str] = ()
) -> Flow[list[Vector]]:
    """Return one vector for each of *texts*; none asked, none returned. Those of *later* will be asked for soon."""
    if not texts and not later:
        return []
    vectors: list[Vector] = yield Embed(tuple(texts), role, tuple(later))
    return vectors


def embedding_model() -> Flow[str]:
    """Return the name of the model that embeds."""
    name: str = yield EmbeddingModel()
    return name


def score(question: str, texts: Sequence[str]) -> Flow[list[float]]:
    """Return how well each of *texts* answers *question*, from 0 to 1; none asked, none returned."""
    if not texts:
        return []
    scores: list[float] = yield Score(question, tuple(texts))
    return scores


def read(cypher: str, **params: Any) -> Flow[list[Row]]:
    """Run a read-only query and return its rows."""
    rows: list[Row] = yield Query(cypher, params)
    return rows


def read_if(needed: object, cypher: str, **params: Any) -> Flow[list[Row]]:
    """`read` where it is *needed*; no rows, and no query, where it is not."""
    rows: list[Row] = []
    if needed:
        rows += yield from read(cypher, **params)
    return rows


def read_once(version: Hashable, cypher: str, **params: Any) -> Flow[list[Row]]:
    """`read`, or return the rows that are cached for this *version*; ``None`` reads always."""
    rows: list[Row] = yield Query(cypher, params, as_of=version)
    return rows


def make_once(version: Hashable, cypher: str, make: Callable[[list[Row]], T], **params: Any) -> Flow[T]:
    """Return what *make* makes of such rows, in a thread where an event loop runs; it is cached in their place."""
    answer: T = yield Query(cypher, params, as_of=version, make=make)
    return answer


def in_step(flows: Iterable[Flow[Any]]) -> Flow[list[Any]]:
    """Run *flows* that only read and return their results in order; what all ask next goes at once."""
    running = list(flows)
    results: list[Any] = [None] * len(running)
    answers: dict[int, Any] = dict.fromkeys(range(len(running)))
    while answers:
        asked: dict[int, Query | Reads] = {}
        for place, answer in answers.items():
            try:
                asked[place] = running[place].send(answer)
            except StopIteration as stop:
                results[place] = stop.value
        queries = [query for each in asked.values() for query in (each.queries if isinstance(each, Reads) else (each,))]
        rows = iter((yield Reads(tuple(queries))) if queries else ())
        answers = {
            place: list(islice(rows, len(each.queries))) if isinstance(each, Reads) else next(rows)
            for place, each in asked.items()
        }
    return results


def write(cypher: str, **params: Any) -> Flow[list[Row]]:
    """Run a writing query (atomic, never retried blindly) and return its rows."""
    rows: list[Row] = yield Query(cypher, params, write=True)
    return rows


def without_model(flow: Flow[T]) -> Flow[T]:
    """Return *flow* with each question answered by an empty answer, so that the model is not asked."""
    return through(flow, _answer_nothing)


def _answer_nothing(effect: Any) -> Flow[Any]:
    match effect:
        case Ask():
            answer = effect.prompt.answer
            return answer.model_construct(**{name: [] for name in answer.model_fields})
        case Every():
            effect = Every(tuple(map(without_model, effect.flows)), effect.at_once)
    answered = yield effect
    return answered
