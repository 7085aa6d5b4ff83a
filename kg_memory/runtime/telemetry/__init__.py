"""OpenTelemetry spans and metrics, which cost nothing until `instrument` is called; and the log of episodes.

Only opentelemetry-api is needed (the extra ``otel``): the application chooses the SDK and the exporters, and this
package sends nothing by itself. The functions below `uninstrument` are called where a verb, a step or a request begins;
`docs/observability.md` lists what they record. The log has one line for each episode that is read, and for each
failure, without a word of any message: its fields stand in the line as ``key=value``, and as attributes of the record.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from kg_memory.errors import DatabaseClosed, DatabaseForbidden, DatabaseUnavailable, InputError, MissingExtra
from kg_memory.models.operations import StepUsage, Usage

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from kg_memory.runtime.telemetry.otel import Instruments

T = TypeVar("T")
OWN_WORDS = (DatabaseClosed, DatabaseForbidden, DatabaseUnavailable, InputError)
"""Errors whose words are all our own, the network's, or an argument that cannot be used; none quotes a message."""

log = logging.getLogger("kg_memory.episodes")

FIELDS = (
    "namespace",
    "episode",
    "status",
    "step",
    "reason",
    "seconds",
    "calls",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
)


class Recorder(Protocol):
    """Records the result of an operation under way on its span, and returns it."""

    def __call__(self, result: T) -> T: ...


class _NoRecorder:
    """Records nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, result: T) -> T:
        return result


_NO_RECORDER = _NoRecorder()
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
            "telemetry needs opentelemetry-api: pip install 'temporal-kg-memory[otel]', and an SDK and exporter"
        ) from error
    _on = Instruments(tracer_provider, meter_provider, namespaces=namespaces, message_text=message_text)


def uninstrument() -> None:
    """Make no more spans and metrics."""
    global _on  # noqa: PLW0603
    _on = None


def is_on() -> bool:
    """Return whether spans and metrics are made."""
    return _on is not None


def verb(name: str, namespace: str | None, question: str | None) -> AbstractContextManager[Recorder]:
    """Return the span of a verb; it has the *question* or content only if `instrument` was called with message text."""
    return _NO_RECORDER if _on is None or not _on.heard else _on.verb(name, namespace, question)


def step(graph: str, name: str, namespace: str) -> AbstractContextManager[Recorder]:
    """Return the span of a step of a graph; call it with the counts of the step."""
    return _NO_RECORDER if _on is None or not _on.heard else _on.step(graph, name, namespace)


def span_flow(name: str, namespace: str, flow: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Return *flow* in the span of a step of ingestion that runs outside of the graph."""
    with step("ingestion", name, namespace):
        return (yield from flow)


def chat(model: Any, sent: Any) -> AbstractContextManager[Recorder]:
    """Return the span of a request to the LangChain chat *model*; call it with the reply."""
    return _NO_RECORDER if _on is None or not _on.heard else _on.chat(model, sent)


def embeddings(model: Any, texts: Sequence[str]) -> AbstractContextManager[Recorder]:
    """Return the span of a request to an embedding *model*; call it with the vectors."""
    return _NO_RECORDER if _on is None or not _on.heard else _on.embeddings(model, texts)


def rerank(name: str, url: str) -> AbstractContextManager[Recorder]:
    """Return the span of a request to a reranker."""
    return _NO_RECORDER if _on is None or not _on.heard else _on.rerank(name, url)


def command(
    url: str, key: str, queries: Sequence[tuple[str, Any]], *, write: bool = False
) -> AbstractContextManager[Recorder]:
    """Return the span of the command, or the batch, that runs *queries*; call it with the rows."""
    return (
        _NO_RECORDER
        if _on is None or not _on.heard
        else _on.command(url, key, [cypher for cypher, _ in queries], write=write)
    )


def count_retry(reason: str, seconds: float = 0.0) -> None:
    """Count a request that is repeated after *seconds*, for a *reason* of few kinds."""
    if _on is not None and _on.heard:
        _on.count_retry(reason, seconds)


def count_tokens(model: Any, usage: Usage) -> None:
    """Count the tokens of a request to the chat *model*."""
    if _on is not None and _on.heard:
        _on.count_tokens(model, usage)


def count_episode(status: str | None, attributes: Mapping[str, str]) -> None:
    """Count an episode that came to *status*; with ``error.type`` in *attributes*, a failure too."""
    if _on is not None and _on.heard:
        _on.count_episode(status, attributes)


# Errors and episodes in the log


def error_kind(error: BaseException) -> str:
    """Return the class of *error*, or the HTTP status that it carries."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return str(status) if isinstance(status, int) else type(error).__name__


def describe_error(error: BaseException) -> str:
    """Return what may be written into a log about *error*: its kind, and that of its cause.

    The message of one of `OWN_WORDS` is returned in full.
    """
    if isinstance(error, OWN_WORDS):
        return str(error)
    cause = error.__cause__
    return error_kind(error) if cause is None else f"{error_kind(error)} ({error_kind(cause)})"


def mask(namespace: str) -> str:
    """Return what stands for *namespace* in a log: it may be a name or an address."""
    return hashlib.sha256(namespace.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def log_end(namespace: str, state: Mapping[str, Any], last: StepUsage) -> None:
    """Log that the episode of *state* is read and saved; *last* is the usage of the last step."""
    count_episode(state["status"], {})
    if log.isEnabledFor(logging.INFO):
        _tell(logging.INFO, "episode read", {**_about(namespace, state, last), "reason": state.get("skipped")})


def log_failure(
    namespace: str, state: Mapping[str, Any], failed: StepUsage, error: Exception, status: str | None
) -> None:
    """Log that a step *failed* by *error*, and the new *status* of the episode; ``None`` if it stays as it is.

    Input that was refused, of which nothing is stored, is no warning: its caller has the error.
    """
    count_episode(status, {"kg_memory.step": failed.step, "error.type": error_kind(error)})
    details = {"status": status, "step": failed.step, "reason": describe_error(error)}
    level = logging.INFO if status is None and isinstance(error, InputError) else logging.WARNING
    _tell(level, "episode not read", {**_about(namespace, state, failed), **details})
    log.debug("what the error says, which may quote the message", exc_info=error)


def _about(namespace: str, state: Mapping[str, Any], last: StepUsage) -> dict[str, Any]:
    """Return the fields of the episode, and the usage of all steps until now."""
    steps = [*(StepUsage(**step) for step in state.get("steps") or ()), last]
    episode = state.get("episode") or {}
    return {
        "namespace": mask(namespace),
        "episode": episode.get("id"),
        "status": state.get("status"),
        "seconds": round(sum(step.seconds for step in steps), 3),
        **sum(steps, Usage()).model_dump(),
    }


def _tell(level: int, what: str, details: Mapping[str, Any]) -> None:
    fields = {name: details[name] for name in FIELDS if details.get(name) is not None}
    line = " ".join(f"{name}={_plain(value)}" for name, value in fields.items())
    log.log(level, "%s %s", what, line, extra=fields)


def _plain(value: Any) -> str:
    """Return *value* as text for a line: in quotes if it has several words, or could break the line."""
    text = str(value)
    return text if text and text.isascii() and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)
