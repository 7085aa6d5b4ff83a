"""Make the public methods of `GraphMemory`: `verb` makes a sync and an async method from one generator method."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from kg_memory.falkor.graph_store import FalkorDriver
from kg_memory.plugins import load_plugin
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import name_forms, run_graph, work
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace, validate_namespaces

if TYPE_CHECKING:
    from kg_memory.models.results import Context
    from kg_memory.retrieval.question import SearchQuery
    from kg_memory.runtime.graph import Pipeline

P = ParamSpec("P")
T = TypeVar("T")
G = TypeVar("G", bound="Group")
_LATE = (
    "kg_memory.ingestion.graph",
    "kg_memory.retrieval.graph",
    "kg_memory.communities.graph",
    "kg_memory.maintenance.review.graph",
    "kg_memory.maintenance.transfer.export",
    "kg_memory.maintenance.transfer.imports",
    "langgraph.graph",
    "langchain_core.tracers.context",
    "langchain_core.tracers.stdout",
)
"""Modules that public methods import at first use; `Engine.load` imports them in a thread before an async call."""


class Engine:
    """The driver, settings and LangGraph pipelines that all methods of one `GraphMemory` share."""

    def __init__(self, driver: FalkorDriver, settings: Settings) -> None:
        self.driver, self.settings = driver, settings
        self._loaded = False

    async def load(self) -> None:
        """Import LangGraph and other slow modules in a worker thread, so that the imports do not block the event loop.

        Later calls do nothing.
        """
        if not self._loaded:
            await asyncio.to_thread(self._import_late)
            self._loaded = True

    def _import_late(self) -> None:
        ingestion, *_ = map(import_module, _LATE)
        ingestion.load_needed(self.settings)

    @cached_property
    def ingestion(self) -> Pipeline:
        """The pipeline that saves a message or text ("episode"), extracts its facts, and updates entity summaries."""
        from kg_memory.ingestion.graph import make_pipeline  # noqa: PLC0415

        return make_pipeline(self.driver, self.settings)

    @cached_property
    def received_ingestion(self) -> Pipeline:
        """The pipeline that extracts the facts of a message or text ("episode") that is saved already.

        It does not update summaries of entities.
        """
        from kg_memory.ingestion.graph import make_pipeline  # noqa: PLC0415

        return make_pipeline(self.driver, self.settings, received=True)

    @cached_property
    def retrieval(self) -> Pipeline:
        """The pipeline that searches the memory for a question, on the replica if `Settings.replica_url` is set."""
        from kg_memory.retrieval.graph import make_pipeline  # noqa: PLC0415

        return make_pipeline(self.driver.for_reads(), self.settings)

    def answer(self, question: SearchQuery, namespace: str) -> Flow[Context]:
        """Search *namespace*, and those of `question.recall_from`; return the results with the text for a prompt."""
        end = yield from run_graph(self.retrieval, {"question": question, "namespace": namespace})
        context: Context = end["context"]
        return context

    @cached_property
    def communities(self) -> Any:
        """The compiled LangGraph graph that groups entities into communities and summarises each."""
        from kg_memory.communities.graph import build  # noqa: PLC0415

        return build(self.driver, self.settings).compile(name="communities")


class Graphs:
    """`GraphMemory.graphs`: the LangGraph graphs of a memory, to run alone or as nodes of another graph.

    As a subgraph, each uses the checkpointer of its parent graph.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @cached_property
    def ingestion(self) -> Any:
        """The compiled graph that stores a message or text ("episode"), extracts its facts, and updates summaries."""
        return self._engine.ingestion.graph.compile(name="ingestion")

    @cached_property
    def retrieval(self) -> Any:
        """The compiled graph that searches for a question, ranks the results and writes the text for a prompt."""
        return self._engine.retrieval.graph.compile(name="retrieval")

    @property
    def communities(self) -> Any:
        """The compiled graph that groups entities into communities and summarises each.

        ``memory.graphs.communities.stream(..., stream_mode="custom")`` yields progress.
        """
        return self._engine.communities

    @cached_property
    def review(self) -> Any:
        """The review graph, not compiled: it interrupts to let a person decide whether facts contradict each other.

        Compile it with your own checkpointer: ``memory.graphs.review.compile(checkpointer=saver)``.
        """
        from kg_memory.maintenance.review.graph import build  # noqa: PLC0415

        return build(self._engine.driver, self._engine.settings)


class Group:
    """Base class of groups of public methods of a memory, such as the object `GraphMemory.facts`."""

    _group: ClassVar[str] = ""
    """The attribute of `GraphMemory` that has this group, as a prefix of span names; empty for `GraphMemory` itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _span(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AbstractContextManager[telemetry.Recorder]:
        path = f"{self._group}.{name}" if self._group else name
        first = args[0] if args else kwargs.get("question")
        return telemetry.span_verb(path, kwargs.get("namespace"), first if isinstance(first, str) else None)


def verb(
    flow: Callable[Concatenate[G, P], Flow[T]],
) -> tuple[Callable[Concatenate[G, P], T], Callable[Concatenate[G, P], Coroutine[Any, Any, T]]]:
    """Return two methods, sync and async, that run the generator method *flow*.

    Their keyword argument ``namespace`` selects the graph; of several namespaces, the first.
    """
    name = flow.__name__.removeprefix("_")
    takes_several = "Sequence" in str(flow.__annotations__.get("namespace"))

    def home_of(kwargs: Mapping[str, Any]) -> str:
        given = kwargs.get("namespace", DEFAULT_NAMESPACE)
        return validate_namespaces(given)[0] if takes_several else validate_namespace(given)

    @wraps(flow)
    def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._span(name, args, kwargs) as tell:
            namespace = home_of(kwargs)
            return tell(self._engine.driver.run(flow(self, *args, **kwargs), namespace))

    @wraps(flow)
    async def arun(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._span(name, args, kwargs) as tell:
            namespace = home_of(kwargs)
            await self._engine.load()
            return tell(await self._engine.driver.arun(flow(self, *args, **kwargs), namespace))

    signature = inspect.signature(flow)
    result = str(signature.return_annotation).removeprefix("Flow[").removesuffix("]").replace("builtins.", "")
    forms: tuple[Any, Any] = run, arun
    for form in forms:
        form.__signature__ = signature.replace(return_annotation=result)
        form.__annotations__ = {**flow.__annotations__, "return": result}
    name_forms(flow, run, arun)
    return run, arun


def run_plugin(name: str, *args: Any, **kwargs: Any) -> Flow[Any]:
    """Run the plug-in *name*, such as ``"evict"``, with *args* and *kwargs*, and return its result.

    Errors: `SettingsError`.
    """
    flow = yield from work(partial(load_plugin, "verbs", name))
    return (yield from flow(*args, **kwargs))
