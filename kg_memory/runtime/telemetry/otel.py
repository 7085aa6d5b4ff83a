"""Spans and metrics, once telemetry is on: the one place that knows OpenTelemetry.

Names are those of OpenTelemetry's semantic conventions where these have one (``db.*``, ``gen_ai.*``, ``error.type``,
``server.*``), else begin with ``kg_memory``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from time import monotonic, perf_counter
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import metrics, trace
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from kg_memory.models.operations import Usage
from kg_memory.runtime.telemetry import error_kind

SCOPE = "kg_memory"
LOOK_AGAIN = 1.0
SILENT = ("Proxy", "NoOp")
"""The beginnings of the names of the API's own providers, which do nothing."""
LONGEST_TEXT = 100_000
"""Characters of a text that a span takes, where texts are wanted."""
SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
MODEL_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = tuple(4**power for power in range(14))
"""Bounds of histograms, those of the conventions."""

Attributes = dict[str, Any]
Describe = Callable[[Any], Mapping[str, Any]]


class _Recorder:
    """Notes what *describe* makes of the result on a span."""

    def __init__(self, span: Span, describe: Describe) -> None:
        self._span, self._describe = span, describe

    def __call__(self, result: Any) -> Any:
        if self._span.is_recording():
            self._span.set_attributes(self._describe(result))
        return result


class Instruments:
    """The spans and the metrics of a process, by the given providers, else by the global ones."""

    def __init__(
        self, tracers: TracerProvider | None, meters: MeterProvider | None, *, namespaces: bool, message_text: bool
    ) -> None:
        self._heard = tracers is not None or meters is not None
        self._look_at = 0.0
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracers)
        self._namespaces = namespaces
        self._text = message_text
        meter = metrics.get_meter(SCOPE, meter_provider=meters)

        def seconds(name: str, what: str, bounds: Sequence[float] = SECONDS) -> Histogram:
            return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=bounds)

        self._verbs = seconds("kg_memory.verb.duration", "Seconds of each verb of a memory", MODEL_SECONDS)
        self._steps = seconds("kg_memory.step.duration", "Seconds of each step of a graph", MODEL_SECONDS)
        self._requests = seconds("gen_ai.client.operation.duration", "Seconds of each request", MODEL_SECONDS)
        self._commands = seconds("db.client.operation.duration", "Seconds of each command of the database")
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens of each request",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._cached = meter.create_counter(
            "kg_memory.cached_tokens", "{token}", "Input tokens that the server had read before"
        )
        self._episodes = meter.create_counter("kg_memory.episodes", "{episode}", "Episodes that came to a state")
        self._failures = meter.create_counter("kg_memory.failures", "{failure}", "Steps of ingestion that failed")
        self._retries = meter.create_counter("kg_memory.llm.retry", "{request}", "Requests that were made again")

    @property
    def heard(self) -> bool:
        """Whether anybody has set a provider, which may be done at any time: it is looked for once a second."""
        now = monotonic()
        if not self._heard and now >= self._look_at:
            self._look_at = now + LOOK_AGAIN
            providers = trace.get_tracer_provider(), metrics.get_meter_provider()
            self._heard = not all(type(provider).__name__.strip("_").startswith(SILENT) for provider in providers)
        return self._heard

    @contextmanager
    def _under_way(
        self,
        name: str,
        attributes: Attributes,
        dimensions: Attributes,
        *,
        measure: Histogram,
        describe: Describe,
        kind_of_span: SpanKind = SpanKind.INTERNAL,
    ) -> Iterator[_Recorder]:
        """Have a span while it is under way, with *attributes*, and measure it by the few *dimensions*."""
        began = perf_counter()
        # What an error says may quote what people said: only its kind is noted.
        with self._tracer.start_as_current_span(
            name,
            kind=kind_of_span,
            attributes={**dimensions, **attributes},
            record_exception=self._text,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _Recorder(span, describe)
            except BaseException as error:
                dimensions = {**dimensions, "error.type": error_kind(error)}
                span.set_attribute("error.type", error_kind(error))
                span.set_status(StatusCode.ERROR)
                raise
            finally:
                measure.record(perf_counter() - began, dimensions)

    def verb(self, name: str, namespace: str | None, question: str | None) -> Any:
        """Return a span of the verb *name*."""
        operation = MEMORY_OPERATIONS.get(name)
        attributes: Attributes = {"gen_ai.operation.name": operation} if operation else {}
        if self._namespaces and namespace is not None:
            attributes["gen_ai.memory.store.id"] = attributes["kg_memory.namespace"] = namespace
        if self._text and question is not None and operation == "search_memory":
            attributes["gen_ai.memory.query.text"] = question[:LONGEST_TEXT]
        verb = {"kg_memory.verb": name}
        return self._under_way(f"kg_memory.{name}", attributes, verb, measure=self._verbs, describe=_records)

    def step(self, graph: str, name: str, namespace: str) -> Any:
        """Return a span of the step *name*."""
        attributes = {"kg_memory.namespace": namespace} if self._namespaces else {}
        step = {"kg_memory.graph": graph, "kg_memory.step": name}
        return self._under_way(f"kg_memory.{graph}.{name}", attributes, step, measure=self._steps, describe=_counts)

    def chat(self, model: Any, sent: Any) -> Any:
        """Return a span of one request to a chat model, each attempt its own."""
        dimensions = _describe_model("chat", model)
        attributes = {"gen_ai.prompt.name": sent.prompt.name, "gen_ai.output.type": "json", **_server(_base_url(model))}
        if self._text:
            attributes["gen_ai.input.messages"] = as_messages(sent.messages)[:LONGEST_TEXT]
        return self._request(attributes, dimensions, self._reply)

    def embeddings(self, model: Any, texts: Sequence[str]) -> Any:
        """Return a span of one request to an embedding model."""
        attributes = {"kg_memory.texts": len(texts), **_server(_base_url(model))}
        return self._request(attributes, _describe_model("embeddings", model), _vectors)

    def rerank(self, name: str, url: str) -> Any:
        """Return a span of one request to a reranker."""
        dimensions = {"gen_ai.operation.name": "rerank", "gen_ai.provider.name": SCOPE, "gen_ai.request.model": name}
        return self._request(_server(url), dimensions, _nothing)

    def _request(self, attributes: Attributes, dimensions: Attributes, describe: Describe) -> Any:
        name = f"{dimensions['gen_ai.operation.name']} {dimensions['gen_ai.request.model']}"
        return self._under_way(
            name, attributes, dimensions, measure=self._requests, describe=describe, kind_of_span=SpanKind.CLIENT
        )

    def _reply(self, reply: Any) -> Attributes:
        usage: Usage = reply.usage
        ended = "length" if reply.cut_off else "content_filter" if reply.refusal else "stop"
        reply_attributes = {
            "gen_ai.response.finish_reasons": (ended,),
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        }
        return (
            {**reply_attributes, "gen_ai.output.messages": reply.text[:LONGEST_TEXT]}
            if self._text
            else reply_attributes
        )

    def command(self, url: str, key: str, cyphers: Sequence[str], *, write: bool) -> Any:
        """Return a span of one command of the database, or of a batch of them."""
        operation = command_name(len(cyphers), write=write)
        summary = "; ".join(dict.fromkeys(name for cypher in cyphers if (name := query_name(cypher))))[:255]
        attributes: Attributes = _server(url)
        if len(cyphers) > 1:
            attributes["db.operation.batch.size"] = len(cyphers)
        if self._namespaces:
            attributes["db.namespace"] = key
        if self._text:
            attributes["db.query.text"] = ";\n".join(cyphers)[:LONGEST_TEXT]
        dimensions = {"db.system.name": "falkordb", "db.operation.name": operation}
        if summary:
            dimensions["db.query.summary"] = summary
        return self._under_way(
            summary or operation,
            attributes,
            dimensions,
            measure=self._commands,
            describe=_rows,
            kind_of_span=SpanKind.CLIENT,
        )

    def count_retry(self, reason: str, seconds: float) -> None:
        """Count a request that is made again, and note it on the span under way."""
        self._retries.add(1, {"kg_memory.reason": reason})
        attributes: Attributes = {"kg_memory.reason": reason, "kg_memory.wait": seconds}
        trace.get_current_span().add_event("kg_memory.retry", attributes)

    def count_tokens(self, model: Any, usage: Usage) -> None:
        """Measure the tokens of a request."""
        of = _describe_model("chat", model)
        self._tokens.record(usage.input_tokens, {**of, "gen_ai.token.type": "input"})
        self._tokens.record(usage.output_tokens, {**of, "gen_ai.token.type": "output"})
        if usage.cached_tokens:
            self._cached.add(usage.cached_tokens, of)

    def count_episode(self, status: str | None, attributes: Mapping[str, str]) -> None:
        """Count an episode, and a failure where *attributes* tell of one."""
        if status is not None:
            self._episodes.add(1, {"kg_memory.status": status})
        if "error.type" in attributes:
            self._failures.add(1, dict(attributes))


def _records(result: Any) -> Attributes:
    return {"gen_ai.memory.record.count": len(result)} if isinstance(result, (list, tuple)) else {}


def _counts(summary: Mapping[str, Any]) -> Attributes:
    return {f"kg_memory.{name}": value for name, value in summary.items() if isinstance(value, int)}


def _vectors(vectors: Sequence[Sequence[float]]) -> Attributes:
    return {"gen_ai.embeddings.dimension.count": len(vectors[0])} if vectors else {}


def _rows(rows: Sequence[Any]) -> Attributes:
    count = sum(map(len, rows)) if rows and isinstance(rows[0], list) else len(rows)
    return {"db.response.returned_rows": count}


def _nothing(_: Any) -> Attributes:
    return {}


def _describe_model(operation: str, model: Any) -> Attributes:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider(model),
        "gen_ai.request.model": model_name(model),
    }


def _base_url(model: Any) -> str | None:
    url = getattr(model, "openai_api_base", None)
    return url if isinstance(url, str) else None


@lru_cache(maxsize=64)
def _place(url: str) -> tuple[tuple[str, Any], ...]:
    """Return where *url* leads: its host and port, never its password."""
    try:
        parts = urlsplit(url)
        address, port = parts.hostname or parts.path, parts.port
    except ValueError:
        return ()
    return tuple((f"server.{name}", value) for name, value in (("address", address), ("port", port)) if value)


def _server(url: str | None) -> Attributes:
    return dict(_place(url)) if url else {}


MEMORY_OPERATIONS = {
    **dict.fromkeys(("add", "add_many", "episodes.save", "episodes.resume", "episodes.retry"), "upsert_memory"),
    **dict.fromkeys(("search", "context", "facts.about", "facts.history", "facts.timeline"), "search_memory"),
    **dict.fromkeys(("facts.changes", "facts.evolution", "entities.list", "entities.card"), "search_memory"),
    **dict.fromkeys(("entities.around", "episodes.list", "communities.list"), "search_memory"),
    "privacy.forget": "delete_memory",
}
"""The operations of the conventions that verbs are."""
_PROVIDERS = {
    "aws": "aws.bedrock",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
_names: dict[str, str] = {}
"""The names of the known queries."""


def provider(model: Any) -> str:
    """Return who gives *model*, by the package that speaks to it."""
    package = type(model).__module__.partition(".")[0].removeprefix("langchain_")
    return _PROVIDERS.get(package, package)


def model_name(model: Any) -> str:
    """Return *model*'s own name, else that of its class."""
    for attribute in ("model_name", "model", "model_id", "name"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__


def command_name(count: int, *, write: bool) -> str:
    """Return the Redis command that runs queries, or a batch of them."""
    name = "GRAPH.QUERY" if write else "GRAPH.RO_QUERY"
    return name if count < 2 else f"BATCH {name}"


@lru_cache(maxsize=4096)
def query_name(cypher: str) -> str | None:
    """Return the name of the constant that *cypher* is, if it is one: a query made for its filter is none."""
    if cypher not in _names:
        _names.update(_constants())
    return _names.get(cypher)


def _constants() -> dict[str, str]:
    modules = {name: module for name, module in list(sys.modules.items()) if _has_queries(name, module)}
    return {
        value: name
        for module in modules.values()
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    }


def _has_queries(name: str, module: ModuleType | None) -> bool:
    place = name.removeprefix("kg_memory.")
    return module is not None and place != name and (".queries." in place or place.endswith(("cypher", ".schema")))


_ROLES = {"human": "user", "ai": "assistant"}


def as_messages(messages: Sequence[Any]) -> str:
    """Return LangChain *messages* in the JSON of the conventions."""
    parts = [
        {"role": _ROLES.get(message.type, message.type), "parts": [{"type": "text", "content": str(message.content)}]}
        for message in messages
    ]
    return json.dumps(parts, ensure_ascii=False)
