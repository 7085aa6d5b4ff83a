"""The nodes in graphs of users, on a real FalkorDB."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages

from kg_memory import GraphMemory
from kg_memory.adapters import BackgroundMemory, recall_node, remember_node, with_memory
from kg_memory.errors import InputError, ModelUnavailable, SettingsError
from tests.meanwhile import around_queries
from tests.scripted import raising

OURS = {"content", "namespace", "episode", "question", "found", "context", "facts", "entities"}


class State(MessagesState):
    memory_context: str
    log: Annotated[list[str], operator.add]


@dataclass
class User:
    user_id: str


@pytest.fixture
def config(namespace: str) -> dict[str, Any]:
    return {"configurable": {"user_id": namespace, "thread_id": "t1"}}


def chat(memory: GraphMemory, *, checkpointer: Any = None, **options: Any) -> Any:
    """Return a user's graph: recall, answer, remember."""
    answer = {"messages": [("ai", "Oslo is nice.")], "log": ["answered"]}
    steps = [
        ("recall", recall_node(memory)),
        ("answer", lambda _: answer),
        ("remember", remember_node(memory, **options)),
    ]
    graph = StateGraph(State, context_schema=User).add_sequence(steps).set_entry_point("recall")
    return graph.compile(checkpointer=checkpointer)


def alone(node: Any, state: Any = State) -> Any:
    """Return a graph with *node* only."""
    return StateGraph(state).add_node(node).add_edge(START, node.name).compile()


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [("user", text) for text in texts]}


def remembered(memory: GraphMemory, namespace: str) -> list[tuple[str | None, str]]:
    """Return who said what, earliest first."""
    return [(each.speaker, each.content) for each in reversed(memory.episodes.list(namespace=namespace))]


def test_recall_node_returns_facts_of_another_conversation(call, memory, namespace):
    graph = chat(memory, checkpointer=InMemorySaver(), user="Ann")
    first = {"configurable": {"user_id": namespace, "thread_id": "t1"}}
    assert call(graph, said("Ann lives in Oslo"), first)["memory_context"] == ""
    second = {"configurable": {"user_id": namespace, "thread_id": "t2"}}
    state = call(graph, said("Where does Ann live?"), second)
    assert "Ann lives in Oslo" in state["memory_context"]
    assert [each.content for each in state["messages"]] == ["Where does Ann live?", "Oslo is nice."]
    assert remembered(memory, namespace) == [
        ("Ann", "Ann lives in Oslo"), ("assistant", "Oslo is nice."),
        ("Ann", "Where does Ann live?"),
    ], "the second answer only repeats what was recalled"  # fmt: skip
    assert {each.thread for each in memory.episodes.list(namespace=namespace)} == {"t1", "t2"}


def test_nodes_add_no_keys_to_state_and_repeat_no_messages(call, memory, config):
    saver = InMemorySaver()
    graph = chat(memory, checkpointer=saver)
    state = call(graph, said("Ann lives in Oslo"), config)
    assert state.keys() == {"messages", "memory_context", "log"}
    assert (len(state["messages"]), state["log"]) == (2, ["answered"])
    again = call(graph, said("Bob lives in Rome"), config)
    assert (len(again["messages"]), again["log"]) == (4, ["answered"] * 2)
    theirs = [each for each in saver.list(config) if not each.config["configurable"]["checkpoint_ns"]]
    kept = {key for each in theirs for key in each.checkpoint["channel_values"]}
    assert theirs
    assert not kept & OURS


def test_recall_node_untracked_key_is_not_in_checkpoints(call, memory, namespace, config):
    class Forgetful(MessagesState):
        memory_context: Annotated[str, UntrackedValue]

    memory.add("Ann lives in Zebulon.", namespace=namespace)
    saver, recall = InMemorySaver(), recall_node(memory)
    graph = StateGraph(Forgetful).add_node("recall", recall).set_entry_point("recall").compile(checkpointer=saver)
    assert "Zebulon" in call(graph, said("Where does Ann live?"), config)["memory_context"]
    kept = str((saver.storage, saver.writes, saver.blobs))
    assert "Where does Ann live?" in kept
    assert "Zebulon" not in kept


def test_graph_drawing_shows_steps_of_memory_nodes(memory):
    nodes = chat(memory).get_graph(xray=True).nodes.keys()
    assert {"recall:search", "recall:construct", "remember:receive", "remember:summarise", "answer"} <= nodes
    assert {name for name, _ in chat(memory).get_subgraphs()} == {"recall", "remember"}


def test_memory_node_steps_are_streamed_with_subgraphs(memory, config):
    parts = list(chat(memory).stream(said("Ann lives in Oslo"), config, stream_mode="updates", subgraphs=True))
    inner = [step for place, update in parts if place for step in update]
    assert inner[:3] == ["search", "rerank", "construct"]
    assert inner[3:].count("receive") == 2
    assert inner[-1] == "summarise"
    assert [step for place, update in parts if not place for step in update] == ["recall", "answer", "remember"]


@pytest.mark.parametrize("messages", [[], [("system", "x")], [("ai", "hello")], [("user", "")]])
def test_recall_node_clears_context_without_question(memory, config, messages):
    given = {"messages": messages, "memory_context": "of the last turn"}
    assert alone(recall_node(memory)).invoke(given, config)["memory_context"] == ""


def test_recall_node_applies_key_and_max_tokens(memory, namespace, config):
    class Other(TypedDict):
        talk: Annotated[list[AnyMessage], add_messages]
        known: str

    memory.episodes.save([f"Ann met Person{number} in Oslo" for number in range(6)], namespace=namespace)
    options = {"key": "known", "messages_key": "talk"}
    nodes = (recall_node(memory, max_tokens=limit, **options) for limit in (1500, 60))
    whole, short = (alone(node, Other).invoke({"talk": [("user", "Ann?")]}, config)["known"] for node in nodes)
    assert 0 < len(short) < len(whole)


def test_nodes_refuse_state_without_messages_key(memory, config):
    class Other(TypedDict):
        talk: list[AnyMessage]
        memory_context: str

    for node in (recall_node(memory), remember_node(memory)):
        with pytest.raises(InputError, match="no 'messages'; set messages_key"):
            alone(node, Other).invoke({"talk": [("user", "Ann?")]}, config)


WRONG = {
    "namespace": ["{0}"],
    "max_tokens": [0, "many"],
    "recipe": ["no such"],
    "template": ["no such"],
    "where": [{"speeker": "Ann"}],
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option in WRONG for value in WRONG[option]])
def test_recall_node_refuses_invalid_options(memory, option, value):
    with pytest.raises((SettingsError, InputError)):
        recall_node(memory, **{option: value})


def test_remember_node_rerun_stores_nothing_and_asks_no_model(call, memory, model, embeddings, namespace, config):
    graph = alone(remember_node(memory))
    given = {"messages": [HumanMessage("Ann lives in Oslo", id="m1"), AIMessage("Oslo is nice.", id="m2")]}
    call(graph, given, config)
    before = memory.stats(namespace=namespace)
    asked, embedded = len(model.asked), len(embeddings.embedded)
    call(graph, given, config)
    assert (memory.stats(namespace=namespace), len(model.asked), len(embeddings.embedded)) == (before, asked, embedded)


def test_remember_node_cost_ignores_conversation_length(memory, namespace, config, monkeypatch):
    """A second run over 80 older messages makes at most three queries."""
    old = [(role, f"{text} {number}") for number in range(40) for role, text in (("user", "hello"), ("ai", "hi"))]
    given = {"messages": [*old, HumanMessage("Ann lives in Oslo", id="m1")]}
    graph = alone(remember_node(memory))
    graph.invoke(given, config)
    assert remembered(memory, namespace) == [("user", "Ann lives in Oslo")]
    queries: list[str] = []
    around_queries(monkeypatch, memory, before=queries.append)
    graph.invoke(given, config)
    assert 0 < len(queries) <= 3


def test_remember_node_everything_stores_whole_conversation(memory, namespace, config):
    given = {"messages": [("user", "Ann lives in Oslo"), ("ai", "Nice."), ("user", "Ann knows Bob")]}
    alone(remember_node(memory, everything=True)).invoke(given, config)
    assert len(remembered(memory, namespace)) == 3


def test_remember_node_saves_messages_if_model_fails(call, memory, model, namespace, config):
    """Resuming the graph reads the saved messages."""
    graph = chat(memory, checkpointer=InMemorySaver(), user="Ann")
    rule, model.rules["facts"] = model.rules["facts"], raising(ModelUnavailable("the model is down: try again later"))
    with pytest.raises(ModelUnavailable):
        call(graph, said("Ann lives in Oslo"), config)
    assert [text for _, text in remembered(memory, namespace)] == ["Ann lives in Oslo", "Oslo is nice."]
    assert memory.facts.about("Ann", namespace=namespace) == []
    model.rules["facts"] = rule
    state = call(graph, None, config)  # resumed at the node that failed
    assert [each.sentence for each in memory.facts.about("Ann", namespace=namespace)] == ["Ann lives in Oslo"]
    assert memory.stats(namespace=namespace).waiting == 0
    assert (len(state["messages"]), state["log"], len(remembered(memory, namespace))) == (2, ["answered"], 2)


def test_remember_node_hands_messages_to_background(call, memory, model, namespace, config):
    with BackgroundMemory(memory, after_seconds=30) as background:
        graph = chat(memory, background=background, user="Ann")
        call(graph, said("Ann lives in Oslo"), config)
        assert len(remembered(memory, namespace)) == 2
        assert not model.asked
        assert background.flush(60)
    assert [each.sentence for each in memory.facts.about("Ann", namespace=namespace)] == ["Ann lives in Oslo"]


BLOCKS = [{"type": "text", "text": "You are kind.", "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize("text", ["You are kind.", BLOCKS])
@pytest.mark.parametrize(("place", "index"), [("system", 0), ("message", 1)])
def test_with_memory_appends_context_to_one_message_of_copy(text, place, index):
    stored = [SystemMessage(text, id="s"), HumanMessage(text, id="h"), AIMessage("Hi", id="a")]
    seen = with_memory(stored, "Ann lives in Oslo", place)
    assert [each.id for each in seen] == ["s", "h", "a"]
    assert seen[index].text.startswith("You are kind.")
    assert [each.text.endswith("Ann lives in Oslo") for each in seen] == [number == index for number in range(3)]
    assert [each.content for each in stored] == [text, text, "Hi"]
    if text is BLOCKS:
        assert (seen[index].content[0], len(seen[index].content), len(BLOCKS)) == (BLOCKS[0], 2, 1)


def test_with_memory_adds_system_message_unless_context_is_empty():
    [system, human] = with_memory([("user", "Hi")], "Ann lives in Oslo", "system")
    assert (isinstance(system, SystemMessage), human.content) == (True, "Hi")
    assert [each.type for each in with_memory([("assistant", "Hi")], "Ann lives in Oslo")] == ["system", "ai"]
    assert len(with_memory([], "Ann lives in Oslo")) == 1
    for context in ("", " \n"):
        assert [each.content for each in with_memory([("user", "Hi")], context)] == ["Hi"]
    with pytest.raises(InputError, match="place must be one of message, system, got 'end'"):
        with_memory([("user", "Hi")], "", "end")


def test_recall_node_leaves_out_what_the_conversation_has(memory, namespace):
    memory.add("Ann works at Fjord Labs.", namespace=namespace)
    for repeat in (False, True):
        steps = [("recall", recall_node(memory, repeat=repeat)), ("remember", remember_node(memory))]
        graph = StateGraph(State).add_sequence(steps).set_entry_point("recall")
        place = {"configurable": {"user_id": namespace, "thread_id": f"{repeat}"}}
        made = graph.compile(checkpointer=InMemorySaver())
        made.invoke({"messages": [("user", "Ann lives in Oslo.")]}, place)
        told = made.invoke({"messages": [("user", "Where does Ann live and work?")]}, place)["memory_context"]
        assert ("Fjord Labs" in told, "user: Ann lives in Oslo." in told) == (True, repeat)
        memory.privacy.forget(thread=f"{repeat}", namespace=namespace)
