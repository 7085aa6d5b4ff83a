"""Public verbs, written once: `verb` derives the sync and the async form from one flow."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
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
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

if TYPE_CHECKING:
    from kg_memory.models.results import Context
    from kg_memory.retrieval.question import Question
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
    "langchain_core.tracers.context",
    "langchain_core.tracers.stdout",
)
"""The modules that flows import when they first need them."""


class Engine:
    """The driver, the settings and the pipelines that all groups of verbs of one memory share.

    A pipeline is imported when it is used: LangGraph takes long to import, and a mere look needs none of it.
    """

    def __init__(self, driver: FalkorDriver, settings: Settings) -> None:
        self.driver, self.settings = driver, settings
        self._loaded = False

    async def load(self) -> None:
        """Import in a thread the modules that flows import late: an import reads files, and would block the loop."""
        if not self._loaded:
            await asyncio.to_thread(self._import_late)
            self._loaded = True

    def _import_late(self) -> None:
        ingestion, *_ = map(import_module, _LATE)
        ingestion.load_needed(self.settings)

    @cached_property
    def ingestion(self) -> Pipeline:
        """The ingestion pipeline."""
        from kg_memory.ingestion.graph import make_pipeline  # noqa: PLC0415

        return make_pipeline(self.driver, self.settings)

    @cached_property
    def received_ingestion(self) -> Pipeline:
        """The ingestion pipeline for episodes that are received already; the summaries are left to its caller."""
        from kg_memory.ingestion.graph import make_pipeline  # noqa: PLC0415

        return make_pipeline(self.driver, self.settings, received=True)

    @cached_property
    def retrieval(self) -> Pipeline:
        """The retrieval pipeline."""
        from kg_memory.retrieval.graph import make_pipeline  # noqa: PLC0415

        return make_pipeline(self.driver.for_reads(), self.settings)

    def answer(self, question: Question, namespace: str) -> Flow[Context]:
        """Return what the retrieval pipeline finds for *question*."""
        end = yield from run_graph(self.retrieval, {"question": question, "namespace": namespace})
        context: Context = end["context"]
        return context

    @cached_property
    def communities(self) -> Any:
        """The compiled communities graph."""
        from kg_memory.communities.graph import build  # noqa: PLC0415

        return build(self.driver, self.settings).compile(name="communities")


class Graphs:
    """The compiled graphs of a memory; as a part of another graph, each keeps its checkpoints there."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @cached_property
    def ingestion(self) -> Any:
        """All that a message passes on its way in."""
        return self._engine.ingestion.graph.compile(name="ingestion")

    @cached_property
    def retrieval(self) -> Any:
        """All that a question passes on its way to a context."""
        return self._engine.retrieval.graph.compile(name="retrieval")

    @property
    def communities(self) -> Any:
        """A refresh of the communities; ``stream(..., stream_mode="custom")`` reports its progress."""
        return self._engine.communities

    @cached_property
    def review(self) -> Any:
        """The review graph, to be compiled with a checkpointer of yours: it stops for a person's decisions."""
        from kg_memory.maintenance.review.graph import build  # noqa: PLC0415

        return build(self._engine.driver, self._engine.settings)


class Group:
    """Verbs of a memory that belong together."""

    _group: ClassVar[str] = ""
    """The name under which a memory has these verbs, for telemetry; the top of the facade has none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _span(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AbstractContextManager[telemetry.Recorder]:
        path = f"{self._group}.{name}" if self._group else name
        first = args[0] if args else kwargs.get("question")
        return telemetry.verb(path, kwargs.get("namespace"), first if isinstance(first, str) else None)


def verb(
    flow: Callable[Concatenate[G, P], Flow[T]],
) -> tuple[Callable[Concatenate[G, P], T], Callable[Concatenate[G, P], Coroutine[Any, Any, T]]]:
    """Return the sync and the async form of the verb that *flow*, a method whose name begins with ``_``, describes.

    Each validates the namespace, which is the default one only where it is left out, opens a telemetry span, and runs
    the flow on the namespace's graph.
    """
    name = flow.__name__.removeprefix("_")

    @wraps(flow)
    def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._span(name, args, kwargs) as tell:
            namespace = validate_namespace(kwargs.get("namespace", DEFAULT_NAMESPACE))
            return tell(self._engine.driver.run(flow(self, *args, **kwargs), namespace))

    @wraps(flow)
    async def arun(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._span(name, args, kwargs) as tell:
            namespace = validate_namespace(kwargs.get("namespace", DEFAULT_NAMESPACE))
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
    """Run the flow of the plug-in *name* of the kind ``verbs``: the part of a verb that few programs need."""
    flow = yield from work(partial(load_plugin, "verbs", name))
    return (yield from flow(*args, **kwargs))
