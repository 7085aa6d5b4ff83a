"""OpenTelemetry spans and metrics of what a memory does: made only after `instrument`, and nothing is paid until then.

The library part needs opentelemetry-api alone (the extra ``otel``): where spans and metrics go is decided by the
application, with its own SDK and exporters. Nothing is ever sent by this package itself. The functions below
`uninstrument` are called where a verb, a step or a request begins; `docs/observability.md` lists what they tell.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from kg_memory.errors import MissingExtra
from kg_memory.models.usage import Usage

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from kg_memory.runtime.telemetry.otel import Instruments

T = TypeVar("T")


class Telling(Protocol):
    """What is told about something under way: called with its result, it notes what is to be known, and returns it."""

    def __call__(self, result: T) -> T: ...


class _Silence:
    """Tells nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, result: T) -> T:
        return result


_SILENCE = _Silence()
_on: Instruments | None = None


def instrument(
    *,
    namespaces: bool = False,
    message_text: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Make spans and metrics from now on, in this process, with the given providers, else the global ones.

    *namespaces* adds whose memory it is, which may be a name or an address; *message_text* adds prompts, answers,
    questions and the messages of errors, in which messages of users stand. As long as nobody has set a provider,
    nothing is made. Errors: `MissingExtra`.
    """
    global _on  # noqa: PLW0603 - a process has one telemetry, as it has one logging
    try:
        from kg_memory.runtime.telemetry.otel import Instruments  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra(
            "telemetry needs opentelemetry-api: pip install 'kg-memory[otel]', and the SDK and exporter of your choice"
        ) from error
    _on = Instruments(tracer_provider, meter_provider, namespaces=namespaces, message_text=message_text)


def uninstrument() -> None:
    """Make no more spans and metrics."""
    global _on  # noqa: PLW0603
    _on = None


def is_on() -> bool:
    """Tell whether spans and metrics are made."""
    return _on is not None


def verb(name: str, namespace: str | None, question: str | None) -> AbstractContextManager[Telling]:
    """Tell of a verb of a memory, and of the *question* or content only where text is wanted."""
    return _SILENCE if _on is None or not _on.heard else _on.verb(name, namespace, question)


def step(graph: str, name: str, namespace: str) -> AbstractContextManager[Telling]:
    """Tell of a step of a graph; it is called with its counts."""
    return _SILENCE if _on is None or not _on.heard else _on.step(graph, name, namespace)


def spanned(graph: str, name: str, namespace: str, flow: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Return *flow*, which tells of itself as a step: one that runs outside of its graph."""
    with step(graph, name, namespace):
        return (yield from flow)


def chat(model: Any, sent: Any) -> AbstractContextManager[Telling]:
    """Tell of a request to the chat *model*, a LangChain one; it is called with the reply."""
    return _SILENCE if _on is None or not _on.heard else _on.chat(model, sent)


def embeddings(model: Any, texts: Sequence[str]) -> AbstractContextManager[Telling]:
    """Tell of a request to an embedding *model*; it is called with the vectors."""
    return _SILENCE if _on is None or not _on.heard else _on.embeddings(model, texts)


def rerank(name: str, url: str) -> AbstractContextManager[Telling]:
    """Tell of a request to a reranker."""
    return _SILENCE if _on is None or not _on.heard else _on.rerank(name, url)


def command(
    url: str, key: str, queries: Sequence[tuple[str, Any]], *, write: bool = False
) -> AbstractContextManager[Telling]:
    """Tell of the command, or the batch of commands, that runs *queries*; it is called with the rows."""
    return (
        _SILENCE
        if _on is None or not _on.heard
        else _on.command(url, key, [cypher for cypher, _ in queries], write=write)
    )


def retried(reason: str, seconds: float = 0.0) -> None:
    """Tell that a request is made again after *seconds*, for a *reason* of few kinds."""
    if _on is not None and _on.heard:
        _on.retried(reason, seconds)


def spent(model: Any, usage: Usage) -> None:
    """Tell what a request to the chat *model* took."""
    if _on is not None and _on.heard:
        _on.spent(model, usage)


def counted(status: str | None, attributes: Mapping[str, str]) -> None:
    """Count an episode that came to *status*; with ``error.type`` in *attributes*, a failure too."""
    if _on is not None and _on.heard:
        _on.counted(status, attributes)
