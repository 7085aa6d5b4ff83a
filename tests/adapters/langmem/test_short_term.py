"""Summaries of long conversations, as LangMem's guide to them has it."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from kg_memory.contrib.langmem import RunningSummary, SummarizationNode, asummarize_messages, summarize_messages
from kg_memory.errors import AnswerError, InputError
from tests.adapters.chat import Chat


def conversation(count: int, start: int = 0) -> list[Any]:
    kinds = (HumanMessage, AIMessage)
    return [kinds[n % 2](f"message {n}", id=str(n)) for n in range(start, start + count)]


def chat(*answers: Any) -> Chat:
    return Chat(answers=list(answers) or ["A summary."], prompts=[])


def options(model: Any, **limits: Any) -> dict[str, Any]:
    """Count a message as one token."""
    given = {"max_tokens": 6, "max_summary_tokens": 1, "token_counter": len, "running_summary": None, **limits}
    return {**given, "model": model}


@pytest.fixture(params=[summarize_messages, asummarize_messages], ids=["sync", "async"])
def summarize(request):
    def call(messages: Any, model: Any, **limits: Any) -> Any:
        result = request.param(messages, **options(model, **limits))
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    return call


def test_summarize_leaves_short_conversations_unchanged(summarize):
    model, messages = chat(), conversation(5)
    result = summarize(messages, model)
    assert (result.messages, result.running_summary, model.prompts) == (messages, None, [])
    assert summarize([], model).messages == []


def test_summarize_extends_its_running_summary(summarize):
    """Features: H2."""
    model, messages = chat("First.", "Second."), [SystemMessage("Be kind.", id="s"), *conversation(8)]
    result = summarize(messages, model)
    system, summary, *rest = result.messages
    assert (system, rest) == (messages[0], messages[7:])
    assert isinstance(summary, SystemMessage)
    assert summary.content.endswith("First.")
    assert model.prompts[0][:-1] == messages[1:7], "the system message is not summarised"
    running = result.running_summary
    assert (running.summary, running.last_summarized_message_id) == ("First.", "5")
    assert running.summarized_message_ids == {str(n) for n in range(6)}
    again = summarize(messages, model, running_summary=running)
    assert (again.messages, len(model.prompts)) == (result.messages, 1), "nothing new to summarise"
    longer = summarize([*messages, *conversation(6, 8)], model, running_summary=running)
    assert model.prompts[1][:-1] == [*messages[7:], *conversation(4, 8)]
    assert "First." in model.prompts[1][-1].content
    assert longer.running_summary.summary == "Second."
    assert longer.messages[2:] == conversation(2, 12)
    assert "First." not in str(longer.messages)


def test_summarize_keeps_last_message_and_pairs_tool_results(summarize):
    """The last message is never summarised; a tool call and its results are never separated."""
    call = AIMessage("", id="3", tool_calls=[{"name": "weather", "args": {}, "id": "c"}])
    messages = [*conversation(3), call, ToolMessage("Sunny", id="4", tool_call_id="c"), HumanMessage("So?", id="5")]
    model = chat()
    result = summarize(messages, model, max_tokens=4)
    assert result.messages[1:] == messages[5:]
    assert model.prompts[0][:-1] == messages[:3]
    assert model.prompts[1][:-1] == messages[3:5], "no more than max_tokens at once, and nothing is left out"
    assert result.running_summary.last_summarized_message_id == "4"
    alone = summarize([HumanMessage("long", id="1")], chat(), max_tokens=2, token_counter=lambda _: 100)
    assert alone.running_summary is None


def test_summarization_node_stores_running_summary_in_state(memory):
    class State(MessagesState):
        context: dict[str, Any]
        summarized_messages: list[Any]

    model = chat("They spoke of Oslo.")
    asked: list[list[Any]] = []

    def answer(state: State) -> Any:
        asked.append(state["summarized_messages"])
        return {"messages": [AIMessage("好的")]}

    node = SummarizationNode(model=model, max_tokens=40, max_tokens_before_summary=30, max_summary_tokens=10)
    graph = StateGraph(State).add_node("summarize", node).add_node("answer", answer)
    compiled = graph.add_edge(START, "summarize").add_edge("summarize", "answer").compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    for n in range(6):
        text = f"我住在奥斯陆，第 {n} 次说。 I live in Oslo, I say for the {n}th time."
        compiled.invoke({"messages": [("user", text)]}, config)
    state = compiled.get_state(config).values
    assert len(state["messages"]) == 12, "the conversation itself stays whole"
    assert state["context"]["running_summary"].summary == "They spoke of Oslo."
    assert "They spoke of Oslo." in asked[-1][0].content
    assert len(asked[-1]) < len(state["messages"])
    assert asked[-1][-1].content.startswith("我住在奥斯陆，第 5 次")


def test_summarization_node_replaces_messages_if_keys_are_equal():
    """If `output_messages_key` is the key of the input, the messages of the state are replaced."""
    limits: Any = {"max_tokens": 4, "max_summary_tokens": 1, "token_counter": len}
    node = SummarizationNode(model=chat(), output_messages_key="messages", **limits)
    graph = StateGraph(MessagesState).add_node("summarize", node).add_edge(START, "summarize").compile()
    after = graph.invoke({"messages": conversation(6)})["messages"]
    assert [message.content for message in after][1:] == ["message 4", "message 5"]
    assert after[0].content.endswith("A summary.")


def test_summarize_raises_for_bad_input():
    for limits, message in (
        ({"max_summary_tokens": 6}, "must be below max_tokens"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"max_tokens_before_summary": "x"}, "max_tokens_before_summary must be"),
    ):
        with pytest.raises(InputError, match=message):
            summarize_messages(conversation(2), **options(chat(), **limits))
    with pytest.raises(InputError, match="every message must have an id"):
        summarize_messages([HumanMessage("hi")], **options(chat()))
    with pytest.raises(AnswerError, match="an empty summary"):
        summarize_messages(conversation(9), **options(chat(" ")))
    with pytest.raises(InputError, match="the state must have 'messages'"):
        SummarizationNode(model=chat(), max_tokens=500).invoke({})
    stale = RunningSummary("Old.", {"gone"}, "gone")
    kept = summarize_messages(conversation(2), **options(chat(), running_summary=stale))
    assert kept.messages[1:] == conversation(2)
