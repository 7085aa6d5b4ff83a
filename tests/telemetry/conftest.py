"""OpenTelemetry's own SDK, with in-memory exporters."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kg_memory.llm.chat import ChatModel, open_chat_model
from kg_memory.runtime import telemetry
from tests.openai_wire import BASE_URL
from tests.sleeping import Sleeping


def wired_model() -> ChatModel:
    """Return a model that asks `openai_wire`, and waits for nothing."""
    return ChatModel(open_chat_model("test-model", BASE_URL, "key", timeout=5), sleeper=Sleeping().sleeper)


class Told:
    """The spans and metrics that OpenTelemetry received."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def on(self, **options: Any) -> None:
        telemetry.instrument(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [item for item in self.spans if item.name == name]

    def one(self, name: str) -> ReadableSpan:
        [result] = self.named(name)
        return result

    def above(self, span: ReadableSpan) -> list[str]:
        """Return the names of the parents of *span*, nearest first."""
        by_id = {item.context.span_id: item for item in self.spans}
        results = []
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            results.append(span.name)
        return results

    def points(self, metric: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        scopes = [scope for item in data.resource_metrics for scope in item.scope_metrics] if data else []
        metrics = [item for scope in scopes for item in scope.metrics if item.name == metric]
        return [point for item in metrics for point in item.data.data_points]

    def all_values(self) -> str:
        """Return all exported data as one text."""
        data = self.reader.get_metrics_data()
        return "\n".join([*(item.to_json() for item in self.spans), data.to_json() if data else ""])


@pytest.fixture
def told() -> Iterator[Told]:
    """Switch telemetry on, return what it receives, and switch it off at the end."""
    made = Told()
    made.on()
    yield made
    telemetry.uninstrument()
    made.tracers.shutdown()
    made.meters.shutdown()


@pytest.fixture
def counted(told: Told) -> Callable[..., float]:
    """Return a function that sums a metric: ``counted("kg_memory.episodes", **{"kg_memory.status": "done"})``."""

    def count(metric: str, **attributes: Any) -> float:
        points = [item for item in told.points(metric) if attributes.items() <= dict(item.attributes).items()]
        return sum(item.value if hasattr(item, "value") else item.count for item in points)

    return count
