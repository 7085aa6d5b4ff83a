"""Nodes of a graph: the settings of their run, cached answers of a failed attempt, and the counts they stream."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory.errors import InputError, ModelUnavailable
from kg_memory.falkor.queries.episodes import KEEP_ANSWER
from kg_memory.ingestion.graph import build
from kg_memory.ingestion.records import NOT_RECEIVED
from kg_memory.ingestion.state import find_answers
from kg_memory.llm.prompts import FACTS, SUMMARISE
from kg_memory.llm.prompts.answers import Summaries
from kg_memory.runtime.caches import BoundedCache, CachedAnswers
from kg_memory.runtime.effects import Ask, ask_model
from kg_memory.runtime.flow import Every, Flow, run
from kg_memory.runtime.graph import summarise_update
from kg_memory.temporal.interval import OPEN_END, OPEN_START

LONG = " ".join(f"Ann knows Bob, {number}, and lives in Oslo, {number}." for number in range(1, 9))
EMPTY = Summaries(summaries=[])


class Outage:
    """A rule that fails on pieces with *words* while it lasts, and counts the answers to each piece."""

    def __init__(self, rule: Callable[[Any], Any], words: str) -> None:
        self.rule, self.words, self.lasts = rule, words, True
        self.answered: Counter[str] = Counter()

    def __call__(self, fields: Any) -> Any:
        content = fields["episode"]["content"]
        if self.lasts and self.words in content:
            raise ModelUnavailable("the model is away: try again later")
        self.answered[content] += 1
        return self.rule(fields)


@pytest.mark.parametrize("step", ["extract_text", "facts"])
def test_failed_run_resumes_at_its_node_without_asking_again(call, driver, settings, namespace, model, step):
    graph = build(driver, settings.with_(chunk_size=60, reflections=0)).compile(checkpointer=InMemorySaver())
    outage = model.rules[step] = Outage(model.rules[step], ", 5, and")
    thread = {"configurable": {"thread_id": "1"}}
    with pytest.raises(ModelUnavailable):
        call(graph, {"content": LONG, "kind": "text", "namespace": namespace}, thread)
    with pytest.raises(ModelUnavailable):
        call(graph, None, thread)
    assert graph.get_state(thread).next == (step.removesuffix("_text"),)
    outage.lasts = False
    ended = call(graph, None, thread)
    assert ended["done"]
    assert len(outage.answered) == len(ended["pieces"]) > 3
    assert set(outage.answered.values()) == {1}
    # Other steps asked each question once; the piece that failed was tried three times.
    asked = Counter((each.prompt.name, str(each.fields)) for each in model.asked)
    assert sorted(asked.values()) == [1] * (len(asked) - 1) + [3]


def test_breakpoint_causes_no_repeated_model_calls(call, driver, settings, namespace, model):
    graph = build(driver, settings).compile(checkpointer=InMemorySaver(), interrupt_before=["facts", "save"])
    thread = {"configurable": {"thread_id": "1"}}
    call(graph, {"content": "I live in Oslo.", "speaker": "Ann", "namespace": namespace}, thread)
    for _ in range(2):
        ended = call(graph, None, thread)
    assert ended["done"]
    assert set(Counter((each.prompt.name, str(each.fields)) for each in model.asked).values()) == {1}


def test_answers_that_break_their_step_are_not_cached():
    kept = BoundedCache(9)
    asking = CachedAnswers("ann", kept)
    with pytest.raises(IndexError), asking.cache_on_failure():
        run(asking.through(_stumbles()), lambda _: EMPTY)
    assert (len(asking.answered), len(kept)) == (1, 0)


def answer_kept(kept: Any, namespace: str, ask: Ask) -> Any:
    """Return the answer to *ask* in the cache *kept*, or None if the model would be called."""

    def asks() -> Flow[Any]:
        return (yield ask)

    return run(CachedAnswers(namespace, kept).through(asks()), lambda _: None)


def test_cached_answers_match_namespace_prompt_and_fields():
    kept, ask = BoundedCache(9), Ask(SUMMARISE, {"entities": "a"})
    asking = CachedAnswers("ann", kept, answered=[(ask, EMPTY)])
    with pytest.raises(KeyboardInterrupt), asking.cache_on_failure():
        raise KeyboardInterrupt
    assert answer_kept(kept, "bob", ask) is None
    assert answer_kept(kept, "ann", Ask(FACTS, {"entities": "a"})) is None
    assert answer_kept(kept, "ann", Ask(SUMMARISE, {"entities": "b"})) is None
    assert answer_kept(kept, "ann", ask) is EMPTY
    assert answer_kept(kept, "ann", ask) is None


def test_interrupted_step_caches_answers_and_drops_the_oldest():
    kept = BoundedCache(2)
    for name in "abc":
        asking = CachedAnswers("ann", kept)
        with asking.cache_on_failure():
            run(asking.through(_asks(name)), lambda _: EMPTY)
        asked = Ask(SUMMARISE, {"entities": name})
        assert answer_kept(kept, "ann", asked) is None, "a step that succeeds keeps no answer"
        with pytest.raises(KeyboardInterrupt), asking.cache_on_failure():
            raise KeyboardInterrupt
    found = {name: answer_kept(kept, "ann", Ask(SUMMARISE, {"entities": name})) for name in "abc"}
    assert found == {"a": None, "b": EMPTY, "c": EMPTY}


@pytest.mark.parametrize(
    ("prompt", "done", "stored"), [(FACTS, False, [KEEP_ANSWER]), (FACTS, True, []), (SUMMARISE, False, [])]
)
def test_reading_answer_is_stored_until_its_episode_is_done(prompt, done, stored):
    values = {"episode": replace(NOT_RECEIVED, id="e"), "done": done}
    asking = CachedAnswers("ann", durable=find_answers(values, "a model"))
    effects: list[Any] = []

    def perform(effect: Any) -> Any:
        effects.append(effect)
        return EMPTY if isinstance(effect, Ask) else []

    run(asking.through(ask_model(prompt, entities="a")), perform)
    asked, *written = effects
    assert asked.episode == "e"
    assert [each.cypher for each in written] == stored


def test_concurrent_runs_of_a_graph_have_their_own_settings(driver, settings, namespace, model):
    graph = build(driver, settings).compile()

    def given(number: int) -> tuple[Any, Any]:
        # Every third run has no context: it has the settings of the memory.
        context = {"instructions": f"wish {number}", "reflections": 0}
        said = {"content": f"I know Bob{number}.", "speaker": "Ann", "namespace": f"{namespace} {number % 2}"}
        return said, context if number % 3 else None

    runs = [given(number) for number in range(12)]

    async def at_once() -> None:
        await asyncio.gather(*(graph.ainvoke(said, context=context) for said, context in runs[6:]))

    with ThreadPoolExecutor(7) as pool:
        running = [pool.submit(graph.invoke, said, context=context) for said, context in runs[:6]]
        for each in (*running, pool.submit(asyncio.run, at_once())):
            each.result()
    for said, context in runs:
        mine = [each for each in model.asked if said["content"] in str(each.fields.get("episode"))]
        told = {each.prompt.name: each.fields.get("instructions") for each in mine}
        assert told["extract_message"] == told["facts"] == (context["instructions"] if context else "")
        assert ("reflect" in told) == (context is None)


def test_invalid_run_context_is_refused_before_storing(call, driver, settings, namespace, rows):
    graph = build(driver, settings).compile()
    with pytest.raises(InputError, match="unknown field 'user_id'; use instructions"):
        call(graph, {"content": "I live in Oslo.", "namespace": namespace}, context={"user_id": "ann"})
    assert rows("MATCH (e:Episode) RETURN e.id AS id") == []


def test_nested_graph_ignores_the_context_of_the_outer_graph(driver, settings, namespace):
    inner = build(driver, settings).compile()

    def remember(state: MessagesState) -> dict[str, Any]:
        assert inner.invoke({"content": state["messages"][-1].content, "namespace": namespace})["done"]
        return {}

    outer = StateGraph(MessagesState, dict).add_node("remember", remember).add_edge(START, "remember").compile()
    outer.invoke({"messages": [("user", "I live in Oslo.")]}, context={"user_id": "ann", "reflections": "many"})


def test_each_step_streams_counts_without_text(driver, settings, namespace):
    """Each step of the ingestion emits its counts, without any text of the message.

    Features: C56.
    """
    graph = build(driver, settings).compile()
    given = {"content": "Ann knows Bob.", "speaker": "Ann", "namespace": namespace}
    told = list(graph.stream(given, stream_mode="custom"))
    assert [each["step"] for each in told] == list(graph.builder.nodes)
    assert told[1] == {"step": "extract", "mentions": 2, "pieces": 1, "dropped": 0}
    assert "Bob" not in str(told)


def test_summarise_update_has_counts_and_flags_but_no_text():
    update = {
        "facts": [{}, {}], "done": True, "context": "Ann lives in Oslo", "saved_at": 1795270169079168, "score": 0.5, "gone": None,
        "found": 3, "based_on": {"id": 2}, "hits": {"facts": {"words": [["a", 1]], "meaning": []}}, "asked": {"reading": "what is true now"},
    }  # fmt: skip
    hits = {"facts": {"words": 1, "meaning": 0}}
    assert summarise_update(update) == {"facts": 2, "done": True, "found": 3, "hits": hits}


def test_open_interval_ends_are_exact_as_javascript_numbers():
    for end in (OPEN_START, OPEN_END):
        assert int(float(end)) == end
        assert repr(float(end)).removesuffix("e+18").removeprefix("-") == "1"


def _stumbles() -> Any:
    [answer] = yield Every((_asks("a"),))
    return answer.summaries[5]


def _asks(name: str) -> Any:
    answer = yield Ask(SUMMARISE, {"entities": name})
    return answer
