"""The usage of an ingestion, returned with its result (over real HTTP, on a real FalkorDB)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kg_memory import AddResult, GraphMemory, Settings, Usage
from kg_memory.contrib.embedded import Server
from kg_memory.errors import ModelUnavailable
from kg_memory.ingestion.graph import STEPS
from kg_memory.models.operations import StepUsage
from tests.bound import Verbs
from tests.scripted import HashEmbeddings, raising

Add = Callable[..., AddResult]
AT = "2024-05-01T10:00:00Z"


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def add(request: Any, server: Server, chat_url: str, settings: Settings, namespace: str) -> Iterator[Add]:
    """Add a message, read by a model that is asked over HTTP and counts a token in and a token out for each call."""
    settings = settings.with_(url=server.url, model="scripted", base_url=chat_url)
    with GraphMemory(settings, embeddings=HashEmbeddings()) as memory:
        yield partial(Verbs(memory, namespace, asynchronous=request.param).add, at=AT)


def test_each_step_reports_its_usage(add):
    added = add("I moved to Oslo.", speaker="Ann")
    assert [each.step for each in added.steps] == [step.__name__ for step in STEPS]
    asking = {each.step: each.calls for each in added.steps if each.calls}
    assert asking == {"extract": 1, "reflect": 1, "facts": 1}
    assert all(each.input_tokens == each.output_tokens == each.calls for each in added.steps)
    assert all(each.seconds > 0 for each in added.steps)
    assert added.usage == Usage(calls=3, input_tokens=3, output_tokens=3)


def test_usage_of_several_calls_in_one_step_is_summed(add):
    add("I moved to Oslo.", speaker="Ann")
    added = add("I know Bob, Cy, Dan and Eve, and moved to Paris. " * 200, kind="text", speaker="Ann")
    [extracting] = [each for each in added.steps if each.step == "extract"]
    assert extracting.calls == 2  # a piece each


def test_existing_episode_uses_no_model_call(add):
    add("I moved to Oslo.", speaker="Ann")
    again = add("I moved to Oslo.", speaker="Ann")
    assert again.usage == Usage()
    assert [each.step for each in again.steps] == ["receive"]


def test_offline_model_has_no_usage(offline, namespace):
    added = offline.add("I moved to Oslo.", speaker="Ann", namespace=namespace)
    assert offline.episodes.save(["Hello."], namespace=namespace)[0].usage == Usage()
    assert added.usage == Usage()
    assert added.facts


def test_resume_does_not_count_usage_of_a_failed_attempt(memory, model, namespace):
    def metered(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def told(ask: Any) -> Any:
            ask.meter(Usage(calls=1))
            return answer(ask)

        return told

    model.answer = metered(model.answer)  # type: ignore[method-assign]
    facts, model.rules["facts"] = model.rules["facts"], raising(ModelUnavailable("away"))
    with pytest.raises(ModelUnavailable):
        memory.add("I moved to Oslo.", speaker="Ann", at=AT, namespace=namespace)
    model.rules["facts"] = facts
    [added] = memory.episodes.resume(namespace=namespace)
    assert {each.step: each.calls for each in added.steps if each.calls} == {"facts": 1}


def test_usage_adds_up_field_by_field():
    step = StepUsage(step="extract", seconds=1.5, calls=1, input_tokens=2, output_tokens=3, cached_tokens=4, dropped=5)
    whole = Usage(calls=2, input_tokens=4, output_tokens=6, cached_tokens=8, dropped=10)
    assert step + step == whole
    assert sum([step, step], Usage()) == whole
