"""A small chat agent with this memory: it recalls, answers and remembers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import cache
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
from kg_memory.retrieval.context.templates import PLAIN, Template
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.config import ValidatedModel
from kg_memory.settings import OFFLINE, Settings
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
    """Whose memory it is, and how the agent answers."""

    user_id: str = Field(
        description="Who is talking: each user has a memory of their own.", examples=["ann@example.com"]
    )
    system_prompt: str = Field(
        SYSTEM_PROMPT,
        description="What the model is told before the conversation and what is remembered.",
        json_schema_extra={"langgraph_nodes": ["answer"], "langgraph_type": "prompt"},
    )
    model: str | None = Field(
        None,
        description="The name of the chat model that answers, or 'offline'; the memory's own if left out.",
        json_schema_extra={"langgraph_nodes": ["answer"]},
    )


class AgentState(MessagesState):
    """The conversation, and what was recalled for its last question."""

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
    """Return the agent, to be compiled: invoke it with ``{"messages": [...]}`` and ``context={"user_id": ...}``.

    *model* answers, else the memory's own. Without any model the last question is answered by the best lines of what
    was recalled, or by all of it in a *template* that is not the plain one. Subclass `AgentContext` for other names in
    *namespace*, or for defaults. *recipe*, *where* and *template* are those of `GraphMemory.context`.
    """
    recall = recall_node(memory, namespace, recipe=recipe, where=where, template=template)
    graph = StateGraph(AgentState, context_schema, input_schema=MessagesState)
    graph.add_node("recall", recall)
    graph.add_node("answer", _answer(memory, model, template), retry_policy=RetryPolicy())
    graph.add_node("remember", RunnableLambda(_news, name="news") | remember_node(memory, namespace))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "remember")
    graph.add_edge("remember", END)
    return graph


def from_memory(question: str, context: str) -> str:
    """Return an answer to *question* without a model: the best lines of *context*, and whether anything was told."""
    said = split_sentences(question)
    asked = [each for each in said if each.asks or _ASKS.match(each.text)]
    told = ["Noted."] if len(asked) < len(said) else []
    if not asked:
        return told[0] if told else "I am listening."
    lines = _FACT.findall(context) or [line for line in _EPISODE.findall(context) if not line.endswith(("?", "？"))]
    if not lines:
        return " ".join([*told, "I remember nothing about that."])
    return "\n".join([" ".join([*told, "From memory:"]), *(f"- {line}" for line in lines[:MOST_LINES])])


def _answer(
    memory: GraphMemory, model: BaseChatModel | str | None, template: Template | str | None
) -> RunnableLambda[Any, dict[str, Any]]:
    chosen = _chooser(memory, model)
    is_plain = template in (None, PLAIN.name, PLAIN)

    def call(state: AgentState) -> dict[str, Any]:
        answers = chosen(_context("model"))
        return {"messages": [_offline(state, is_plain=is_plain) if answers is None else answers.invoke(_prompt(state))]}

    async def acall(state: AgentState) -> dict[str, Any]:
        answers = await asyncio.to_thread(chosen, _context("model"))  # a client reads certificates when it is made
        said = _offline(state, is_plain=is_plain) if answers is None else await answers.ainvoke(_prompt(state))
        return {"messages": [said]}

    return RunnableLambda(call, acall, name="answer")


def _chooser(memory: GraphMemory, model: BaseChatModel | str | None) -> Callable[[str | None], BaseChatModel | None]:
    """Return what gives the chat model of a name, and the agent's own for none; ``None`` is to answer offline."""
    reader = getattr(memory.driver.model, "model", None)
    own = _streaming(reader) if isinstance(reader, BaseChatModel) else None
    named = cache(lambda name: None if name == OFFLINE else _opened(name, memory.settings))

    def chosen(name: str | None) -> BaseChatModel | None:
        given = name or model or own
        return named(given) if isinstance(given, str) else given

    return chosen


def _opened(name: str, settings: Settings) -> BaseChatModel:
    # OpenAI's client takes half a second to import, and an agent that is offline does without it.
    from kg_memory.llm.chat import open_chat_model  # noqa: PLC0415

    server = (settings.base_url, settings.api_key, settings.model_timeout, settings.max_answer_tokens)
    return _streaming(open_chat_model(name, *server))


def _streaming(model: BaseChatModel) -> BaseChatModel:
    """Return a model that reads for a memory, which wants answers whole, as one that talks to a person."""
    return model.model_copy(update={"disable_streaming": False})


def _context(name: str) -> str | None:
    """Return what the run's context says, if it has one: the agent may be a part of a graph that has another kind."""
    return getattr(get_runtime().context, name, None)


def _prompt(state: AgentState) -> list[BaseMessage]:
    system = SystemMessage(_context("system_prompt") or SYSTEM_PROMPT)
    return with_memory([system, *state["messages"]], state.get("memory_context") or "")


def _offline(state: AgentState, *, is_plain: bool) -> AIMessage:
    context = state.get("memory_context") or ""
    answer = from_memory(last_question(state["messages"]) or "", context) if is_plain or not context else context
    return AIMessage(answer, response_metadata={"model_name": OFFLINE})


def _news(state: AgentState) -> dict[str, Any]:
    """Return the conversation without what was only read out of memory: that is no news to it."""
    return {**state, "messages": list(_not_read_out(state["messages"]))}


def _not_read_out(messages: Iterable[BaseMessage]) -> Iterable[BaseMessage]:
    return (each for each in messages if each.response_metadata.get("model_name") != OFFLINE)
