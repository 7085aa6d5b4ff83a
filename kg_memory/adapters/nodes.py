"""Nodes for any StateGraph that has messages: one recalls, one remembers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, MessageLikeRepresentation, SystemMessage
from langchain_core.runnables import RunnableLambda

from kg_memory.adapters.background import BackgroundMemory
from kg_memory.adapters.messages import episodes_of, last_question, messages_of
from kg_memory.adapters.namespace import (
    NamespaceTemplate,
    Place,
    Where,
    checked_manner,
    checked_memory,
    checked_speaker,
    place_here,
)
from kg_memory.errors import InputError, KGMemoryError
from kg_memory.memory.episodes import input_state
from kg_memory.memory.memory import GraphMemory, question_state
from kg_memory.models.graph import EpisodeInput
from kg_memory.retrieval.context.render import context_of
from kg_memory.retrieval.context.templates import Template
from kg_memory.retrieval.recipe import Recipe
from kg_memory.text import context_markers
from kg_memory.validation import validate_count

NO_TIMES = {"as_of": None, "during": None, "believed_at": None}
"""A recalled question asks about the time that its words name."""


def recall_node(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    key: str = "memory_context",
    messages_key: str = "messages",
    max_tokens: int = 1500,
    unreviewed: bool = False,
    recipe: Recipe | str | None = None,
    where: Where | None = None,
    template: Template | str | None = None,
) -> RunnableLambda[Any, dict[str, str]]:
    """Return a node that recalls what the last question needs, and writes nothing but the text ``state[key]``.

    Declare that key in the graph's state, as in ``class State(MessagesState): memory_context: str``: LangGraph drops
    what is written to an undeclared one. It is "" where nothing is asked or known. The retrieval graph is a subgraph
    with a state of its own: Studio draws its steps, and ``stream(subgraphs=True)`` tells of them.
    The *namespace* is filled in from the runtime's context, else from ``config["configurable"]``, whose ``thread_id``
    is the conversation that asks. *recipe*, *where* and *template* are those of `GraphMemory.context`.
    Errors: `InputError`, `DatabaseError`.
    """
    whose, limits = NamespaceTemplate(namespace), {"max_tokens": validate_count("max_tokens", max_tokens)}
    form = template if isinstance(template, Template) else None
    how = checked_manner(recipe, where, template) | {"template": None if form else template}
    retrieval = checked_memory(
        memory
    ).graphs.retrieval  # named here, where LangGraph looks for what it draws as a subgraph

    def asked(state: Any) -> dict[str, Any] | None:
        place, question = place_here(whose), last_question(_messages(state, messages_key))
        times = {**NO_TIMES, "unreviewed": unreviewed}
        return None if question is None else question_state(question, place.namespace, limits, times, place.thread, how)

    def told(found: Mapping[str, Any]) -> dict[str, str]:
        return {key: str(context_of(found, form)) if form else found["context"]}

    def call(state: Any) -> dict[str, str]:
        given = asked(state)
        return told(retrieval.invoke(given)) if given else {key: ""}

    async def acall(state: Any) -> dict[str, str]:
        given = asked(state)
        return told(await retrieval.ainvoke(given)) if given else {key: ""}

    return RunnableLambda(call, acall, name="recall")


def remember_node(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    key: str = "memory_context",
    messages_key: str = "messages",
    user: str | None = None,
    assistant: str | None = None,
    everything: bool = False,
    background: BackgroundMemory | None = None,
) -> RunnableLambda[Any, dict[str, Any]]:
    """Return a node that remembers the last turn and leaves the state as it is; put it behind the answer.

    The turn is what people said last and all that followed; with *everything* it is the whole conversation. What is
    remembered already is not read again. Sentences of the last answer that only repeat what `recall_node` wrote to
    ``state[key]``, or what a tool of the memory showed, are no news and left out; with *everything*, the tools' alone.
    *user* and *assistant* are the speakers of messages without a name. The
    ingestion graph is a subgraph of the node, as in `recall_node`; a checkpointer keeps its steps too, which
    ``durability="exit"`` spares. With *background*, messages are only handed over.
    A message that cannot be read is an error, so that an outage shows, but it and those behind it are saved: resuming
    the graph or `GraphMemory.resume` finishes them. A graph that should answer nevertheless takes *background*, or
    LangGraph's own ``add_node(..., error_handler=)``.
    Errors: `InputError`, `DatabaseError`, `ModelError`, `EmbeddingError`.
    """
    template, ingestion = NamespaceTemplate(namespace), checked_memory(memory).graphs.ingestion
    checked_speaker("user", user)
    checked_speaker("assistant", assistant)
    spoken = partial(episodes_of, last_turn=not everything, user=user, assistant=assistant)

    def said(state: Any) -> tuple[Place, list[EpisodeInput]]:
        place, recalled = place_here(template), "" if everything else _get(state, key) or ""
        return place, spoken(_messages(state, messages_key), thread=place.thread, recalled=recalled)

    def call(state: Any) -> dict[str, Any]:
        place, episodes = said(state)
        if background is not None:
            background.submit(episodes, namespace=place.namespace, thread=place.thread)
            return {}
        for number, each in enumerate(episodes, start=1):
            try:
                ingestion.invoke({**input_state(each), "namespace": place.namespace})
            except KGMemoryError:
                memory.episodes.save(episodes[number:], namespace=place.namespace)
                raise
        return {}

    async def acall(state: Any) -> dict[str, Any]:
        place, episodes = said(state)
        if background is not None:
            await background.asubmit(episodes, namespace=place.namespace, thread=place.thread)
            return {}
        for number, each in enumerate(episodes, start=1):
            try:
                await ingestion.ainvoke({**input_state(each), "namespace": place.namespace})
            except KGMemoryError:
                await memory.episodes.asave(episodes[number:], namespace=place.namespace)
                raise
        return {}

    return RunnableLambda(call, acall, name="remember")


def with_memory(messages: Iterable[MessageLikeRepresentation], context: str) -> list[BaseMessage]:
    """Return *messages* for a model, with *context* at the end of the system message that they begin with.

    They are a new list, for one call of a model: what the state holds stays as it is.
    Errors: `InputError` for what are no messages.
    """
    given = messages_of(messages)
    if not context.strip():
        return given
    text = f"{context_markers.REMEMBERED}\n\n{context}"
    if not given or not isinstance(given[0], SystemMessage):
        return [SystemMessage(text), *given]
    content = given[0].content
    longer = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return [given[0].model_copy(update={"content": longer}), *given[1:]]


def _messages(state: Any, key: str) -> Any:
    found = _get(state, key)
    if found is None:
        raise InputError(f"the state has no {key!r}: give messages_key, the key under which the graph keeps messages")
    return found


def _get(state: Any, key: str) -> Any:
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
