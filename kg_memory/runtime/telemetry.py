"""OpenTelemetry spans and metrics, which are off until `instrument` is called; and the log of episodes.

The application chooses the SDK and the exporters; this package sends nothing by itself. There is a span for each verb
(public method of the memory) and each step. Spans of requests to models and of database commands are made by the
instrumentations of LangChain and redis: see `docs/observability.md`. The log has one line for each episode that is
read, and for each failure, without any text of a message: its fields are in the line as ``key=value``, and attributes
of the log record.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any, TypeVar

from opentelemetry import metrics, trace
from opentelemetry.metrics import Histogram, MeterProvider, NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider, Span, StatusCode, TracerProvider

from kg_memory.errors import DatabaseClosed, DatabaseForbidden, DatabaseUnavailable, InputError
from kg_memory.models.operations import StepUsage, Usage

T = TypeVar("T")
OWN_WORDS = (DatabaseClosed, DatabaseForbidden, DatabaseUnavailable, InputError)
"""Errors whose messages may be logged, as they quote no message of a user."""

log = logging.getLogger("kg_memory.episodes")

FIELDS = "namespace episode status step reason seconds calls input_tokens output_tokens cached_tokens".split()
SCOPE = "kg_memory"
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bucket bounds of the histograms in seconds, as in OpenTelemetry's conventions."""
LONGEST_QUESTION = 100_000
"""The most characters of a question that a span records, if texts are enabled."""
MEMORY_OPERATIONS = {
    **dict.fromkeys(("add", "add_many", "episodes.save", "episodes.resume", "episodes.retry"), "upsert_memory"),
    **dict.fromkeys(("search", "context", "facts.about", "facts.history", "facts.timeline"), "search_memory"),
    **dict.fromkeys(("facts.changes", "facts.evolution", "entities.list", "entities.card"), "search_memory"),
    **dict.fromkeys(("entities.around", "episodes.list", "communities.list"), "search_memory"),
    "privacy.forget": "delete_memory",
}
"""The operation names of OpenTelemetry's conventions, by verb."""

Attributes = dict[str, Any]
Describe = Callable[[Any], Attributes]


class Recorder:
    """A function that adds attributes about a result to an OpenTelemetry *span*, and returns the result.

    *describe* returns these attributes for a result.
    """

    def __init__(self, span: Span, describe: Describe) -> None:
        self._span, self._describe = span, describe

    def __call__(self, result: T) -> T:
        if self._span.is_recording():
            self._span.set_attributes(self._describe(result))
        return result


class Instruments:
    """The OpenTelemetry tracer, histograms and counters of this process."""

    def __init__(
        self, tracers: TracerProvider | None, meters: MeterProvider | None, *, namespaces: bool, message_text: bool
    ) -> None:
        meter = metrics.get_meter(SCOPE, meter_provider=meters)
        self.tracer = trace.get_tracer(SCOPE, tracer_provider=tracers)
        self.namespaces, self.text = namespaces, message_text
        bounds = {"explicit_bucket_boundaries_advisory": SECONDS}
        self.verbs = meter.create_histogram("kg_memory.verb.duration", "s", "Duration of each verb", **bounds)
        self.steps = meter.create_histogram("kg_memory.step.duration", "s", "Duration of each step", **bounds)
        self.tokens = meter.create_counter("kg_memory.tokens", "{token}", "Tokens of requests to chat models")
        self.episodes = meter.create_counter("kg_memory.episodes", "{episode}", "Episodes by the status reached")
        self.failures = meter.create_counter("kg_memory.failures", "{failure}", "Failed steps of ingestion")
        self.retries = meter.create_counter("kg_memory.llm.retry", "{request}", "Repeated requests to models")

    @contextmanager
    def span(
        self, name: str, dimensions: Attributes, more: Attributes, seconds: Histogram, describe: Describe
    ) -> Iterator[Recorder]:
        """Context manager: open a span called *name*, and record its duration in the histogram *seconds*."""
        began = perf_counter()
        # An error may quote users: without *message_text*, only its kind is recorded.
        with self.tracer.start_as_current_span(
            name, attributes={**dimensions, **more}, record_exception=self.text, set_status_on_exception=False
        ) as span:
            try:
                yield Recorder(span, describe)
            except BaseException as error:
                dimensions = {**dimensions, "error.type": error_kind(error)}
                span.set_attribute("error.type", error_kind(error))
                span.set_status(StatusCode.ERROR)
                raise
            finally:
                seconds.record(perf_counter() - began, dimensions)


_OFF = Instruments(NoOpTracerProvider(), NoOpMeterProvider(), namespaces=False, message_text=False)
_on = _OFF


def instrument(
    *,
    namespaces: bool = False,
    message_text: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Turn on OpenTelemetry spans and metrics in this process."""
    global _on  # noqa: PLW0603 - a process has one telemetry, as it has one logging
    _on = Instruments(tracer_provider, meter_provider, namespaces=namespaces, message_text=message_text)


def uninstrument() -> None:
    """Turn off OpenTelemetry spans and metrics."""
    global _on  # noqa: PLW0603
    _on = _OFF


def is_on() -> bool:
    """Return whether spans and metrics are turned on."""
    return _on is not _OFF


def span_verb(name: str, namespace: str | None, question: str | None) -> AbstractContextManager[Recorder]:
    """Context manager: open the span of a public method of the memory, such as "search"; yield a `Recorder`."""
    operation = MEMORY_OPERATIONS.get(name)
    attributes: Attributes = {"gen_ai.operation.name": operation} if operation else {}
    if _on.namespaces and namespace is not None:
        attributes["gen_ai.memory.store.id"] = attributes["kg_memory.namespace"] = namespace
    if _on.text and question is not None and operation == "search_memory":
        attributes["gen_ai.memory.query.text"] = question[:LONGEST_QUESTION]
    return _on.span(f"kg_memory.{name}", {"kg_memory.verb": name}, attributes, _on.verbs, _count_records)


def span_step(graph: str, name: str, namespace: str) -> AbstractContextManager[Recorder]:
    """Context manager: open the span of the step *name* in a *graph*, such as "ingestion"; yield a `Recorder`."""
    attributes = {"kg_memory.namespace": namespace} if _on.namespaces else {}
    dimensions = {"kg_memory.graph": graph, "kg_memory.step": name}
    return _on.span(f"kg_memory.{graph}.{name}", dimensions, attributes, _on.steps, _name_counts)


def span_flow(name: str, namespace: str, flow: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """Run *flow* inside the span of an ingestion step called *name*, and return its result."""
    with span_step("ingestion", name, namespace):
        return (yield from flow)


def _count_records(result: Any) -> Attributes:
    return {"gen_ai.memory.record.count": len(result)} if isinstance(result, (list, tuple)) else {}


def _name_counts(summary: Mapping[str, Any]) -> Attributes:
    return {f"kg_memory.{name}": value for name, value in summary.items() if isinstance(value, int)}


def count_retry(reason: str, seconds: float = 0.0) -> None:
    """Count a repeated model request in the metrics, and add an event to the current span.

    *reason* is a label of the metric, so use few different texts. *seconds*: the wait before the request.
    """
    _on.retries.add(1, {"kg_memory.reason": reason})
    if is_on():
        trace.get_current_span().add_event("kg_memory.retry", {"kg_memory.reason": reason, "kg_memory.wait": seconds})


def count_tokens(model: str, usage: Usage) -> None:
    """Count the tokens of a request to the chat model named *model* in the metrics."""
    for kind in ("input", "output", "cached"):
        _on.tokens.add(getattr(usage, f"{kind}_tokens"), {"kg_memory.model": model, "kg_memory.token_type": kind})


def count_episode(status: str | None, attributes: Mapping[str, str]) -> None:
    """Count in the metrics that an episode reached *status*; ``error.type`` marks a failure.

    If *status* is None, nothing is counted.
    """
    if status is not None:
        _on.episodes.add(1, {"kg_memory.status": status})
    if "error.type" in attributes:
        _on.failures.add(1, attributes)


# Errors and episodes in the log


def error_kind(error: BaseException) -> str:
    """Return a short label for *error*: its HTTP status (``"429"``), or else its class (``"TimeoutError"``)."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return str(status) if isinstance(status, int) else type(error).__name__


def describe_error(error: BaseException) -> str:
    """Return the class or status of *error* and of its cause, which are safe to log: "ModelError (429)".

    Errors in `OWN_WORDS` give their full message, because it never quotes users.
    """
    if isinstance(error, OWN_WORDS):
        return str(error)
    cause = error.__cause__
    return error_kind(error) if cause is None else f"{error_kind(error)} ({error_kind(cause)})"


def mask(namespace: str) -> str:
    """Return 12 hex digits, a hash of *namespace*, for logs: a namespace may be a person's name or address."""
    return hashlib.sha256(namespace.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def log_end(namespace: str, state: Mapping[str, Any], last: StepUsage) -> None:
    """Log that an episode (message) was read by the model and saved."""
    count_episode(state["status"], {})
    if log.isEnabledFor(logging.INFO):
        _tell(logging.INFO, "episode read", {**_fields(namespace, state, last), "reason": state.get("skipped")})


def log_step_failure(
    namespace: str, state: Mapping[str, Any], failed: StepUsage, error: Exception, status: str | None
) -> None:
    """Log that a step failed with *error*, and count the failure."""
    count_episode(status, {"kg_memory.step": failed.step, "error.type": error_kind(error)})
    details = {"status": status, "step": failed.step, "reason": describe_error(error)}
    # The caller gets the error of a rejected input: no warning.
    level = logging.INFO if status is None and isinstance(error, InputError) else logging.WARNING
    _tell(level, "episode not read", {**_fields(namespace, state, failed), **details})
    log.debug("full error, which may quote the message", exc_info=error)


def _fields(namespace: str, state: Mapping[str, Any], last: StepUsage) -> dict[str, Any]:
    """Return the log fields of the message in *state*; *last*: the usage of the last step, which *state* lacks yet."""
    steps = [*(StepUsage(**step) for step in state.get("steps") or ()), last]
    return {
        "namespace": mask(namespace),
        "episode": getattr(state.get("episode"), "id", None),
        "status": state.get("status"),
        "seconds": round(sum(step.seconds for step in steps), 3),
        **sum(steps, Usage()).model_dump(),
    }


def _tell(level: int, what: str, details: Mapping[str, Any]) -> None:
    fields = {name: details[name] for name in FIELDS if details.get(name) is not None}
    log.log(level, "%s %s", what, " ".join(f"{name}={_quote(value)}" for name, value in fields.items()), extra=fields)


def _quote(value: Any) -> str:
    text = str(value)
    return text if text and text.isascii() and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)
