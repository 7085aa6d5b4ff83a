"""A small LangGraph chat agent with this memory: it recalls context, answers, and stores the new messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import RetryPolicy
from pydantic import Field

from kg_memory.adapters.messages import last_question
from kg_memory.adapters.namespace import Where
from kg_memory.adapters.nodes import recall_node, remember_node, with_memory
from kg_memory.memory.memory import GraphMemory
from kg_memory.memory.open import model as open_model
from kg_memory.retrieval.context.lines import Template
from kg_memory.retrieval.context.templates import PLAIN
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.config import ValidatedModel
from kg_memory.runtime.effects import both, call, in_thread
from kg_memory.runtime.flow import Flow
from kg_memory.settings import OFFLINE
from kg_memory.text.sentences import split_sentences

SYSTEM_PROMPT = (
    "You are a helpful assistant who remembers earlier conversations with this person. Use what you remember where it "
    "helps, mind the dates at which it holds, and say so where you do not know. Answer in the person's language."
)
MOST_LINES = 3
_FACT = re.compile(r"^- (.+ \([^()]+\)) \[[0-9a-f, ]+\]$", re.MULTILINE)
_EPISODE = re.compile(r"^- \[[0-9a-f]+\] (\(.+)$", re.MULTILINE)
_ASKS = re.compile(r"(?:what|where|when|who|whose|whom|why|which|how|do|does|did|is|are|was|were|can)\b", re.IGNORECASE)


class AgentContext(ValidatedModel):
    """The settings of one agent run: the user id, the system prompt and the chat model."""

    user_id: str = Field(
        description="The user who is talking; each user has a separate memory.", examples=["ann@example.com"]
    )
    system_prompt: str = Field(
        SYSTEM_PROMPT,
        description="The system prompt, which comes before the recalled context and the conversation.",
        json_schema_extra={"langgraph_nodes": ["answer"], "langgraph_type": "prompt"},
    )
    model: str | None = Field(
        None,
        description="The name of the chat model that answers, or 'offline'; by default the memory's own model.",
        json_schema_extra={"langgraph_nodes": ["answer"]},
    )


class AgentState(MessagesState):
    """The LangGraph state of the agent: the messages, and the context recalled for the last question."""

    memory_context: str


def build_agent(
    memory: GraphMemory,
    *,
    model: BaseChatModel | str | None = None,
    namespace: str = "{user_id}",
    context_schema: type[AgentContext] = AgentContext,
    recipe: Recipe | str | None = None,
    where: Where | None = None,
    template: Template | str | None = None,
) -> StateGraph[AgentState, AgentContext, MessagesState, AgentState]:
    """Return the LangGraph graph of a chat agent that recalls facts from *memory* and stores new messages in it.

    Compile it, and invoke it with messages and a context::

        agent = build_agent(memory).compile()
        agent.invoke({"messages": [("user", "Where do I live?")]}, context={"user_id": "ann"})

    *model* writes the answers; None: the memory's own chat model. If that is missing too, the recalled text is the
    answer. *namespace* may contain fields of the context, such as ``{user_id}``; subclass `AgentContext` to add fields.
    *recipe*, *where* and *template* are those of `GraphMemory.context`.
    """
    recall = recall_node(memory, namespace, recipe=recipe, where=where, template=template)
    graph = StateGraph(AgentState, context_schema, input_schema=MessagesState)
    graph.add_node("recall", recall)
    graph.add_node("answer", _answer_node(memory, model, template), retry_policy=RetryPolicy())
    graph.add_node("remember", RunnableLambda(_drop_offline_answers, name="news") | remember_node(memory, namespace))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "remember")
    graph.add_edge("remember", END)
    return graph


def from_memory(question: str, context: str) -> str:
    """Answer the user's message *question* without a model, with the best lines of *context*.

    *context* is the text that the memory recalled. If the message is not a question, the answer is "Noted."; if the
    context does not answer it, "I remember nothing about that."
    """
    sentences = split_sentences(question)
    questions = [sentence for sentence in sentences if sentence.asks or _ASKS.match(sentence.text)]
    receipt = ["Noted."] if len(questions) < len(sentences) else []
    if not questions:
        return receipt[0] if receipt else "I am listening."
    lines = _FACT.findall(context) or [line for line in _EPISODE.findall(context) if not line.endswith(("?", "？"))]
    if not lines:
        return " ".join([*receipt, "I remember nothing about that."])
    return "\n".join([" ".join([*receipt, "From memory:"]), *(f"- {line}" for line in lines[:MOST_LINES])])


def _answer_node(
    memory: GraphMemory, model: BaseChatModel | str | None, template: Template | str | None
) -> RunnableLambda[Any, dict[str, object]]:
    choose_model = _model_chooser(memory, model)
    is_plain = template in (None, PLAIN.name, PLAIN)

    def answer(state: AgentState) -> Flow[dict[str, object]]:
        # In a thread, because creating a model's client reads certificate files.
        model = yield in_thread(partial(choose_model, _context_field("model")))
        if model is None:
            return {"messages": [_offline(state, is_plain=is_plain)]}
        return {"messages": [(yield from call(model, "invoke", _prompt(state)))]}

    return RunnableLambda(*both(answer), name="answer")


def _model_chooser(
    memory: GraphMemory, model: BaseChatModel | str | None
) -> Callable[[str | None], BaseChatModel | None]:
    """Return a function from a chat model's name, such as "openai:gpt-5-mini", to the opened model.

    For None, the function returns *model*, else the memory's own chat model, or ``None`` if there is neither.
    """
    reader = getattr(memory.driver.model, "model", None)
    own = _enable_streaming(reader) if isinstance(reader, BaseChatModel) else None

    @cache
    def open_named(name: str) -> BaseChatModel | None:
        opened = getattr(open_model(name, memory.settings), "model", None)
        return opened and _enable_streaming(opened)

    def choose_model(name: str | None) -> BaseChatModel | None:
        choice = name or model or own
        return open_named(choice) if isinstance(choice, str) else choice

    return choose_model


def _enable_streaming(model: BaseChatModel) -> BaseChatModel:
    return model.model_copy(update={"disable_streaming": False})  # the memory disables it for its own calls


def _context_field(name: str) -> str | None:
    return getattr(get_runtime().context, name, None)


def _prompt(state: AgentState) -> list[BaseMessage]:
    system = SystemMessage(_context_field("system_prompt") or SYSTEM_PROMPT)
    return with_memory([system, *state["messages"]], state.get("memory_context") or "")


def _offline(state: AgentState, *, is_plain: bool) -> AIMessage:
    context = state.get("memory_context") or ""
    answer = from_memory(last_question(state["messages"]) or "", context) if is_plain or not context else context
    return AIMessage(answer, response_metadata={"model_name": OFFLINE})


def _drop_offline_answers(state: AgentState) -> dict[str, object]:
    # They only repeat the memory.
    said = [each for each in state["messages"] if each.response_metadata.get("model_name") != OFFLINE]
    return {**state, "messages": said}
