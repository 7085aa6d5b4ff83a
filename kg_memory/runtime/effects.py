"""Effects: I/O as values that flows yield: model calls, embeddings, scores, database queries, the clock, long work.

`kg_memory.runtime.driver` performs them and sends the answers back into the flow.
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
from kg_memory.runtime.flow import Every, Flow, OnGraph, T, arun, run, through

P = ParamSpec("P")
Answer = TypeVar("Answer", bound=BaseModel)
Vector = list[float]
Row = dict[str, Any]
"""A result row by column name, or a state by key."""


@dataclass(frozen=True, slots=True)
class PromptTemplate(Generic[Answer]):
    """A question to a model: a text with placeholders such as ``$name``, and the pydantic type of the answer."""

    name: str
    text: str
    fields: frozenset[str]
    answer: type[Answer]


MANY = 200
"""The number of items above which work is moved off the event loop: writing 1,000 vectors as text takes 0.2 s."""
Meter = Callable[[Usage], None]


def ignore_usage(_: Usage) -> None:
    """Do nothing with the usage of a request: the default *meter* of `Ask`."""


def always() -> bool:
    """Return True: the default of `Ask.again`, so that an invalid answer may be repaired any number of times."""
    return True


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to a model: answer *prompt*, filled with *fields*. A generator that yields it is sent the answer.

    *meter* is called with the usage of each attempt. *again*: returns whether the budget allows a repair.
    """

    prompt: PromptTemplate[Any]
    fields: Mapping[str, Any]
    meter: Meter = field(default=ignore_usage, compare=False, repr=False)
    episode: str | None = field(default=None, compare=False)
    again: Callable[[], bool] = field(default=always, compare=False, repr=False)


@runtime_checkable
class Model(Protocol):
    """Protocol of models that answer an `Ask`: chat models, and the offline reader, which extracts facts by rules."""

    @property
    def name(self) -> str: ...

    @property
    def by_rules(self) -> bool:
        """True for the offline reader, which uses rules instead of a language model and can only read episodes."""

    def answer(self, ask: Ask) -> BaseModel: ...

    async def aanswer(self, ask: Ask) -> BaseModel: ...


@runtime_checkable
class Embeddings(Protocol):
    """Protocol of embedding models, with the methods of LangChain's `Embeddings`, which takes long to import."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...

    def embed_query(self, text: str) -> list[float]: ...

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]: ...

    async def aembed_query(self, text: str) -> list[float]: ...


@runtime_checkable
class CrossEncoder(Protocol):
    """Protocol of models that score how well texts answer a question: from 0 to 1, one score for each text."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str]) -> list[float]: ...

    async def ascores(self, question: str, texts: Sequence[str]) -> list[float]: ...


@dataclass(frozen=True, slots=True)
class Embed:
    """A request to embed *texts*; a flow (generator) that yields it gets back one vector for each text."""

    texts: tuple[str, ...]
    role: Literal["document", "query"] = "document"
    later: tuple[str, ...] = ()
    """Texts needed soon: a model in this process starts on them, a remote one embeds them in this request."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A request for the name of the embedding model; a flow (generator) that yields it gets back the name."""


@dataclass(frozen=True, slots=True)
class Score:
    """A request to score how well each of *texts* answers *question*."""

    question: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query(OnGraph):
    """A Cypher query on the graph of a namespace; a flow that yields it gets back rows, dicts by column.

    The rows are [] if it only reads, and the namespace has no graph yet.
    """

    cypher: str
    params: Mapping[str, Any] = field(default_factory=dict)
    write: bool = False
    as_of: Hashable = None
    """The version of the data that is read, if known; the answer cached for this version is then reused."""
    make: Callable[[list[Row]], Any] | None = None
    """Converts the rows into the answer, if the answer is not the rows; runs in a thread, as it may take long."""


@dataclass(frozen=True, slots=True)
class Reads(OnGraph):
    """A batch of read-only *queries*; a flow (generator) that yields it gets back a list of rows for each query."""

    is_batch = True
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class RedisCommand:
    """A Redis command, such as ``("GET", "k")``, for the server that has the key *at*.

    With `replica`, it is sent to the server's replica; without a replica, the reply is None.
    """

    words: tuple[str | int, ...]
    at: str
    replica: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """A request for the current time: a flow (generator) that yields it gets rising microseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request to call *function* or, in an event loop, to await *coroutine*, which does the same."""

    function: Callable[[], Any]
    coroutine: Callable[[], Awaitable[Any]]
    read: Callable[[Any], Any] | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    def run(self) -> Any:
        """Call `function` and return its result, converted by `read` if given."""
        with self.around():
            return self._answer(self.function())

    async def arun(self) -> Any:
        """Await `coroutine` and return its result, converted by `read` if given."""
        with self.around():
            return self._answer(await self.coroutine())

    def _answer(self, result: Any) -> Any:
        return result if self.read is None else self.read(result)


def in_thread(task: Callable[[], Any]) -> Call:
    """Return a `Call` of the blocking function *task*; if there is an event loop, it runs in a thread."""
    return Call(task, partial(asyncio.to_thread, task))


def call(owner: object, verb: str, *args: object, **kwargs: object) -> Flow[Any]:
    """Yield a call of the method *verb* of *owner*, and return its result; on an event loop, ``a<verb>`` is awaited."""
    forms = getattr(owner, verb), getattr(owner, f"a{verb}")
    return (yield Call(*(partial(form, *args, **kwargs) for form in forms)))


def both(flow: Callable[P, Flow[T]]) -> tuple[Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a sync and an async function that run *flow*, a generator function that yields `Call` effects."""

    @wraps(flow)
    def run_calls(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(flow(*args, **kwargs), Call.run)

    @wraps(flow)
    async def arun_calls(*args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(flow(*args, **kwargs), Call.arun)

    name_forms(flow, run_calls, arun_calls)
    return run_calls, arun_calls


def name_forms(flow: Any, sync: Any, asynchronous: Any) -> None:
    """Name the functions *sync* and *asynchronous*, made from *flow*, after it: ``_add`` gives ``add`` and ``aadd``."""
    own = flow.__name__
    name = own.removeprefix("_")
    for form, public in ((sync, name), (asynchronous, f"a{name}")):
        form.__name__, form.__qualname__ = public, flow.__qualname__.replace(own, public)
    flow.__qualname__ = flow.__qualname__.replace(own, name)


def run_graph(graph: Any, state: Mapping[str, Any], context: Any = None) -> Flow[Row]:
    """Run *graph*, a `Pipeline` or a compiled LangGraph graph, from *state* to its end; return the final state."""
    end: Row = yield from call(graph, "invoke", state, context=context)
    return end


def now() -> Flow[int]:
    """Return the current time in microseconds since the epoch."""
    micros: int = yield Now()
    return micros


def command(*words: str | int, at: str, replica: bool = False) -> Flow[Any]:
    """Run the Redis command *words* on the server that has the key *at*, or on its *replica*; return the reply."""
    return (yield RedisCommand(words, at, replica))


def work(task: Callable[[], T]) -> Flow[T]:
    """Run *task*, a long computation, and return its result; if there is an event loop, it runs in a thread."""
    done: T = yield in_thread(task)
    return done


def work_on(count: int, task: Callable[[], T]) -> Flow[T]:
    """Run *task*, a computation on *count* items, and return its result."""
    return (yield in_thread(task)) if count > MANY else task()


def in_threads(flow: Flow[T]) -> Flow[T]:
    """Run *flow* in threads, so that its long computations do not block an event loop; return its result."""
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
    """Continue a generator by ``resume(answer)``; return ``(False, next yield)``, or ``(True, result)`` at its end."""
    try:
        return False, resume(answer)
    except StopIteration as stop:
        return True, stop.value


def ask_model(prompt: PromptTemplate[Answer], **fields: Any) -> Flow[Answer]:
    """Ask the model *prompt*, filled with *fields*; return the answer, an instance of ``prompt.answer``."""
    answer: Answer = yield Ask(prompt, fields)
    return answer


def embed(
    texts: Sequence[str], role: Literal["document", "query"] = "document", later: Sequence[str] = ()
) -> Flow[list[Vector]]:
    """Return one embedding vector for each of *texts*; if there are no texts, the model is not called."""
    if not texts and not later:
        return []
    vectors: list[Vector] = yield Embed(tuple(texts), role, tuple(later))
    return vectors


def score(question: str, texts: Sequence[str]) -> Flow[list[float]]:
    """Return how well each of *texts* answers *question*, from 0 to 1; without texts, no model is called."""
    if not texts:
        return []
    scores: list[float] = yield Score(question, tuple(texts))
    return scores


def fetch(cypher: str, **params: Any) -> Flow[list[Row]]:
    """Run a read-only Cypher query with the parameters *params*; return its rows as dicts by column."""
    rows: list[Row] = yield Query(cypher, params)
    return rows


def read_if(needed: object, cypher: str, **params: Any) -> Flow[list[Row]]:
    """Run a read-only query and return its rows; if *needed* is false (or empty), run nothing and return ``[]``."""
    return (yield from fetch(cypher, **params)) if needed else []


def read_once(version: Hashable, cypher: str, **params: Any) -> Flow[list[Row]]:
    """Run a read-only query and return its rows; a repeated call of equal *version* gets cached rows.

    *version* identifies a state of the data; None turns the cache off.
    """
    rows: list[Row] = yield Query(cypher, params, as_of=version)
    return rows


def make_once(version: Hashable, cypher: str, make: Callable[[list[Row]], T], **params: Any) -> Flow[T]:
    """Run the read-only query *cypher* and return ``make(rows)``, cached for calls of equal *version*.

    A *version* of None turns the cache off. In an event loop, *make* runs in a thread.
    """
    answer: T = yield Query(cypher, params, as_of=version, make=make)
    return answer


def in_step(flows: Iterable[Flow[Any]]) -> Flow[list[Any]]:
    """Run read-only *flows* in lockstep, sending the next queries of all as one batch; return their results."""
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
    """Run a Cypher query that writes to the graph; return its rows. All of its changes are stored, or none."""
    rows: list[Row] = yield Query(cypher, params, write=True)
    return rows


def without_model(flow: Flow[T]) -> Flow[T]:
    """Run *flow* without a model, and return its result; each question is answered with empty lists."""
    return through(flow, _answer_nothing)


def _answer_nothing(effect: Any) -> Flow[Any]:
    """Answer questions to the model with empty lists, in parallel flows too; pass on other effects (I/O requests)."""
    match effect:
        case Ask():
            answer = effect.prompt.answer
            return answer.model_construct(**{name: [] for name in answer.model_fields})
        case Every():
            effect = Every(tuple(map(without_model, effect.flows)), effect.at_once)
    return (yield effect)
