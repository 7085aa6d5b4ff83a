"""Spans and metrics that the SDK of OpenTelemetry receives."""

import asyncio
import time
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from kg_memory.errors import ModelUnavailable
from kg_memory.runtime import telemetry
from tests.llm.samples import ASK
from tests.openai_wire import completion, failure, openai_wire
from tests.scripted import raising
from tests.telemetry.conftest import wired_model

SAID = {"speaker": "Ann", "at": "2024-05-01T10:00:00Z"}
STEPS = ["receive", "extract", "reflect", "resolve", "facts", "date", "dedupe", "invalidate", "save", "summarise"]


def test_verb_span_contains_spans_of_its_steps(verbs, told):
    with told.tracers.get_tracer("app").start_as_current_span("request"):
        verbs.add("I live in Oslo.", **SAID)
    verb = told.one("kg_memory.add")
    assert told.above(verb) == ["request"]
    assert verb.attributes == {"kg_memory.verb": "add", "gen_ai.operation.name": "upsert_memory"}
    steps = [item for item in told.spans if item.name.startswith("kg_memory.ingestion.")]
    assert [item.attributes["kg_memory.step"] for item in steps] == STEPS
    assert all(told.above(item) == ["kg_memory.add", "request"] for item in steps)
    [extracted] = [item for item in steps if item.attributes["kg_memory.step"] == "extract"]
    assert extracted.attributes["kg_memory.mentions"] == 2
    assert {item.context.trace_id for item in told.spans} == {verb.context.trace_id}


def test_spans_in_threads_and_tasks_have_the_step_as_parent(memory, model, told, namespace):
    answer = model.answer

    def traced(ask: Any) -> Any:
        with told.tracers.get_tracer("app").start_as_current_span(f"ask {ask.prompt.name}"):
            return answer(ask)

    model.answer = traced
    text = " ".join(f"Ann knows Bob, {number}, and lives in Oslo, {number}." for number in range(1, 400))
    memory.add(text, namespace=namespace, kind="text")
    asyncio.run(memory.aadd(text, namespace=namespace + "async", kind="text"))
    asked = told.named("ask extract_text")
    assert len(asked) > 4
    assert {tuple(told.above(item)) for item in asked} == {("kg_memory.ingestion.extract", "kg_memory.add")}
    assert len({item.context.trace_id for item in asked}) == 2


def test_metrics_count_retries_and_tokens(told, counted):
    with openai_wire() as wire:
        replies = [failure(503), completion("no JSON at all"), completion({"entities": []})]
        wire.post("/chat/completions").mock(side_effect=replies)
        with told.tracers.get_tracer("app").start_as_current_span("step"):
            wired_model().answer(ASK)
    assert [item.attributes["kg_memory.reason"] for item in told.one("step").events] == ["503", "unreadable"]
    tokens = {item.attributes["kg_memory.token_type"]: item.value for item in told.points("kg_memory.tokens")}
    assert tokens == {"input": 200, "output": 20, "cached": 0}
    assert counted("kg_memory.tokens", **{"kg_memory.model": "test-model"}) == 220
    assert counted("kg_memory.llm.retry", **{"kg_memory.reason": "503"}) == 1
    assert counted("kg_memory.llm.retry", **{"kg_memory.reason": "unreadable"}) == 1


def test_failing_step_span_has_error_type_only(memory, model, told, counted, namespace):
    model.rules["facts"] = raising(ModelUnavailable("the model said: I live in Oslo"))
    with pytest.raises(ModelUnavailable):
        memory.add("I live in Oslo.", namespace=namespace, **SAID)
    for name in ("kg_memory.add", "kg_memory.ingestion.facts"):
        span = told.one(name)
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert span.attributes["error.type"] == "ModelUnavailable"
        assert span.events == ()
    assert counted("kg_memory.failures", **{"kg_memory.step": "facts", "error.type": "ModelUnavailable"}) == 1
    assert counted("kg_memory.episodes", **{"kg_memory.status": "waiting"}) == 1
    assert counted("kg_memory.step.duration", **{"error.type": "ModelUnavailable"}) == 1


def test_metrics_count_episodes_verbs_and_steps(memory, told, counted, namespace):
    memory.add("I live in Oslo.", namespace=namespace, **SAID)
    memory.add("Thanks!", namespace=namespace, **SAID)
    assert counted("kg_memory.episodes", **{"kg_memory.status": "done"}) == 1
    assert counted("kg_memory.episodes", **{"kg_memory.status": "skipped"}) == 1
    assert counted("kg_memory.verb.duration", **{"kg_memory.verb": "add"}) == 2
    assert counted("kg_memory.step.duration", **{"kg_memory.step": "save"}) == 2


def test_telemetry_omits_namespaces_and_texts_by_default(memory, told, namespace):
    memory.add("I live in Xanadu, secretly.", namespace=f"{namespace} ann@example.com", **SAID)
    memory.search("Where is Xanadu?", namespace=f"{namespace} ann@example.com")
    assert "Xanadu" not in told.all_values()
    assert "ann@example.com" not in told.all_values()


def test_telemetry_includes_namespaces_on_request(memory, told, namespace):
    told.on(namespaces=True)
    memory.add("I live in Xanadu.", namespace=namespace, **SAID)
    assert told.one("kg_memory.add").attributes["gen_ai.memory.store.id"] == namespace
    assert told.one("kg_memory.ingestion.save").attributes["kg_memory.namespace"] == namespace
    assert "Xanadu" not in told.all_values()
    # No metric has a namespace attribute: one series for each user would be too many.
    assert not any("kg_memory.namespace" in point.attributes for point in told.points("kg_memory.verb.duration"))


def test_telemetry_includes_texts_on_request(memory, model, told, namespace):
    told.on(message_text=True)
    memory.search("Where is Xanadu?", namespace=namespace)
    assert told.one("kg_memory.search").attributes["gen_ai.memory.query.text"] == "Where is Xanadu?"

    model.rules["extract_message"] = raising(ModelUnavailable("no Xanadu"))
    with pytest.raises(ModelUnavailable):
        memory.add("I live in Oslo.", namespace=namespace, **SAID)
    assert told.one("kg_memory.add").events[0].attributes["exception.message"] == "no Xanadu"


def test_communities_and_other_verbs_have_spans(memory, told, namespace):
    for name in ("Bob", "Cid"):
        memory.add(f"I know {name}.", namespace=namespace, **SAID)
    memory.communities.refresh(namespace=namespace)
    memory.stats(namespace=namespace)
    for name in ("kg_memory.communities.refresh", "kg_memory.communities.detect", "kg_memory.stats"):
        assert told.one(name)


def test_add_many_span_contains_all_other_spans(verbs, told, counted):
    verbs.add_many([{"content": f"I know Bob{number}.", **SAID} for number in range(3)])
    verb = told.one("kg_memory.add_many")
    assert verb.attributes["gen_ai.memory.record.count"] == 3
    inner = [item for item in told.spans if item is not verb]
    assert {told.above(item)[-1] for item in inner} == {"kg_memory.add_many"}
    assert counted("kg_memory.episodes", **{"kg_memory.status": "done"}) == 3


def test_telemetry_switched_off_creates_nothing(memory, told, namespace):
    telemetry.uninstrument()
    memory.add("I live in Oslo.", namespace=namespace, **SAID)
    assert told.spans == []
    assert told.reader.get_metrics_data() is None


def test_telemetry_without_provider_records_nothing(memory, namespace):
    telemetry.instrument()
    try:
        memory.add("I live in Oslo.", namespace=namespace, **SAID)
        with telemetry.span_step("ingestion", "save", namespace):
            assert not trace.get_current_span().is_recording()
    finally:
        telemetry.uninstrument()


def test_telemetry_setting_switches_it_on(opened):
    try:
        opened(telemetry=True).close()
        assert telemetry.is_on()
    finally:
        telemetry.uninstrument()


def test_telemetry_switched_off_costs_under_100_microseconds():
    assert not telemetry.is_on()
    began = time.process_time()
    for _ in range(10_000):
        with telemetry.span_verb("search", "ann", None) as shown:
            shown(())
    assert (time.process_time() - began) / 10_000 < 100e-6  # some 5 microseconds on a quiet machine
