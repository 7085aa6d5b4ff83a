"""Graph nodes that search the memory, add to it and summarise, for any LangGraph `StateGraph` with messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Any, Literal, get_args

from langchain_core.messages import BaseMessage, MessageLikeRepresentation, SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda

from kg_memory.adapters.background import BackgroundMemory
from kg_memory.adapters.messages import (
    episodes_of,
    index_of_question,
    last_asker,
    last_question,
    messages_of,
    source_ids,
)
from kg_memory.adapters.namespace import (
    NamespaceTemplate,
    Place,
    Where,
    place_here,
    validate_memory,
    validate_search_options,
    validate_speaker,
)
from kg_memory.errors import InputError, KGMemoryError, MemoryPaused
from kg_memory.llm.retry import within
from kg_memory.memory.adding import input_state
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.results import Context
from kg_memory.retrieval.context.lines import Template
from kg_memory.retrieval.context.templates import render
from kg_memory.retrieval.graph import decode
from kg_memory.retrieval.question import make_search_query
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.effects import Call, both, call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.telemetry import describe_error
from kg_memory.text import context_markers
from kg_memory.validation import validate_choice, validate_count, validate_number

logger = logging.getLogger("kg_memory")

LONGEST_SECONDS = 3600.0
PlaceOfText = Literal["message", "system"]
"""Where a prompt has the text from the memory: behind the last message of the user, or in the system message."""
UNKEPT = {"checkpointer": False}
"""The update of a subgraph that keeps its steps, which contain recalled text, out of its caller's checkpoints."""


def recall_node(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    key: str = "memory_context",
    messages_key: str = "messages",
    max_tokens: int = 1500,
    recall_from: Sequence[str] = (),
    repeat: bool = True,
    unreviewed: bool = False,
    recipe: Recipe | str | None = None,
    where: Where | None = None,
    template: Template | str | None = None,
    believed_at: Time | None = None,
) -> RunnableLambda[Any, dict[str, str]]:
    """Return a graph node that searches the memory for the last human message, and writes the results to the state.

    They go to ``state[key]`` as text: ``""`` if there is no question or nothing is found. Declare the key in the
    state, as in ``class State(MessagesState): memory_context: str``, because LangGraph drops undeclared keys. Declared
    as ``Annotated[str, UntrackedValue]``, the text stays out of checkpoints, which forgetting does not reach.

    - *namespace*: a template, filled in for each run from the runtime context or ``config["configurable"]``, whose
      ``thread_id`` names the conversation.
    - *messages_key*: the state's key of the messages. *max_tokens*: the maximum size of the text.
    - *recall_from*: templates of further namespaces to search, such as ``["team-{team}"]``.
    - *repeat*: false leaves out messages of this conversation that are in the state, and facts said only there. Use it
      only if the model gets all messages of the state: not with `trim_messages` or a node that summarises.
    - *unreviewed*: include facts that wait for review.
    - *recipe*, *where*, *template* and *believed_at*: as in `GraphMemory.context`.

    The retrieval graph runs as a subgraph, so Studio draws its steps and ``stream(subgraphs=True)`` reports them.
    Errors: `InputError` for invalid options, or when the node runs without a namespace; `DatabaseError` when it runs.
    """
    place_template = NamespaceTemplate(namespace, recall_from)
    limits = {"max_tokens": validate_count("max_tokens", max_tokens)}
    options = validate_search_options(recipe, where, template)
    validate_search_options(believed_at=believed_at)
    retrieval = validate_memory(memory).graphs.retrieval

    def recall(state: Any) -> Flow[dict[str, str]]:
        """Search the memory for the last human message in *state*; return the text found as an update of the state."""
        messages = _messages(state, messages_key)
        place, text = place_here(place_template), last_question(messages)
        if text is None:
            return {key: ""}
        times = {"as_of": None, "during": None, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {**options, "asker": last_asker(messages), "recall_from": place.recall_from}
        given = {**make_search_query(text, limits, times, place.thread, how).as_state(), "namespace": place.namespace}
        context = decode((yield from call(retrieval.copy(UNKEPT), "invoke", given)))["context"]
        known = frozenset() if repeat else source_ids(messages, place.thread)
        return {key: str(leave_out(context, known, max_tokens, template))}

    return _GraphNode(recall, "recall", retrieval)


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
    """Return a graph node that adds the last turn of the conversation to the memory; place it after the answer.

    The turn is the latest human messages and all messages after them; with *everything*, all messages of the state.
    Messages that are already remembered are skipped. The node changes nothing in the state, and adds nothing while the
    namespace is paused.

    - *namespace* and *messages_key*: as in `recall_node`.
    - *key*: the state's key of the recalled context. Sentences of the last answer that only repeat it, or the result of
      a memory tool, are left out (with *everything*, only sentences that repeat tool results).
    - *user* and *assistant*: the speakers of messages without a name.
    - *background*: a `BackgroundMemory` that saves the messages and reads them later; None reads them in the node.

    The ingestion graph runs as a subgraph, and a checkpointer stores its steps unless ``durability="exit"``.
    Errors: those of `GraphMemory.add`. If a message cannot be read, it and the messages after it are saved; resume the
    graph or call `GraphMemory.episodes.resume` to read them. To go on after an error, use *background* or LangGraph's
    ``add_node(..., error_handler=)``.
    """
    template, ingestion = NamespaceTemplate(namespace), validate_memory(memory).graphs.ingestion
    validate_speaker("user", user)
    validate_speaker("assistant", assistant)
    to_episodes = partial(episodes_of, last_turn=not everything, user=user, assistant=assistant)

    def read_turn(state: Any) -> tuple[Place, list[EpisodeInput]]:
        place, recalled = place_here(template), "" if everything else _get(state, key) or ""
        return place, to_episodes(_messages(state, messages_key), thread=place.thread, recalled=recalled)

    def remember(state: Any) -> Flow[dict[str, Any]]:
        """Add the messages in *state* (of the last turn, or all) to the memory; return an empty update of the state."""
        place, episodes = read_turn(state)
        with suppress(MemoryPaused):
            if background is not None:
                yield from call(background, "submit", episodes, namespace=place.namespace, thread=place.thread)
                return {}
            for number, episode in enumerate(episodes, start=1):
                try:
                    yield from call(ingestion, "invoke", {**input_state(episode), "namespace": place.namespace})
                except KGMemoryError:
                    yield from call(memory.episodes, "save", episodes[number:], namespace=place.namespace)
                    raise
        return {}

    return _GraphNode(remember, "remember", ingestion)


class _GraphNode(RunnableLambda[Any, Any]):
    """A LangGraph node that runs the generator function *flow*, sync or async."""

    def __init__(self, flow: Callable[[Any], Flow[Any]], name: str, graph: Runnable[Any, Any]) -> None:
        super().__init__(*both(flow), name=name)
        self._graph = graph

    @property
    def deps(self) -> list[Runnable[Any, Any]]:
        return [self._graph]


def summarise_node(
    memory: GraphMemory, namespace: str = "{user_id}", *, least: int = 4, seconds: float = 5.0
) -> RunnableLambda[Any, dict[str, Any]]:
    """Return a graph node that updates the stored summary of the conversation; place it at the end of the graph.

    It skips runs without a ``thread_id`` or with fewer than *least* new messages. It waits at most *seconds* (0 to
    3,600), and logs errors instead of raising them. *namespace*: a template, as in `recall_node`.
    """
    template, episodes = NamespaceTemplate(namespace), validate_memory(memory).episodes
    least = validate_count("least", least)
    seconds = validate_number("seconds", seconds, 0, LONGEST_SECONDS)

    def summarise(_: Any) -> Flow[dict[str, Any]]:
        """Update the stored summary of this run's conversation (thread); return ``{}``: the state stays as it is."""
        place = place_here(template)
        if place.thread is None:
            return {}
        how: dict[str, Any] = {"namespace": place.namespace, "least": least}
        forms = partial(episodes.summarise, place.thread, **how), partial(episodes.asummarise, place.thread, **how)
        try:
            with suppress(MemoryPaused):
                yield within(seconds, Call(*forms))
        except (KGMemoryError, TimeoutError) as error:
            reason = describe_error(error) if isinstance(error, KGMemoryError) else "it took longer than `seconds`"
            logger.warning("the conversation was not summarised: %s", reason)
        return {}

    return RunnableLambda(*both(summarise), name="summarise")


def with_memory(
    messages: Iterable[MessageLikeRepresentation], context: str, place: PlaceOfText = "message"
) -> list[BaseMessage]:
    """Return a copy of *messages* with *context*, the text from the memory, after the last user message.

    The messages before it are the same in the next turn, so the provider's prompt cache can serve them. With the
    *place* ``"system"``, or without a user message, the text is put at the end of the system message, which is added if
    there is none. An empty *context* adds nothing. Pass the result to the model, not to the state:
    ``model.invoke(with_memory(state["messages"], state["memory_context"]))``. Errors: `InputError` if *messages* are
    not messages or *place* is invalid.
    """
    prompt = messages_of(messages)
    index = index_of_question(prompt) if validate_choice("place", place, get_args(PlaceOfText)) == "message" else None
    if not context.strip():
        return prompt
    text = f"{context_markers.REMEMBERED}\n\n{context}"
    if index is None and not (prompt and isinstance(prompt[0], SystemMessage)):
        return [SystemMessage(text), *prompt]
    index = index or 0
    content = prompt[index].content
    longer = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return [*prompt[:index], prompt[index].model_copy(update={"content": longer}), *prompt[index + 1 :]]


def leave_out(
    context: Context, known: AbstractSet[str | None], max_tokens: int, template: Template | str | None
) -> Context:
    """Return *context* without the facts and messages in *known*, written anew in at most *max_tokens* tokens."""
    facts, episodes = context.results.facts, context.results.episodes
    said = (fact.sources and {source.source_id for source in fact.sources} <= known for fact in facts)
    kept = {
        "facts": tuple(fact for fact, is_said in zip(facts, said, strict=True) if not is_said and fact.id not in known),
        "episodes": tuple(episode for episode in episodes if episode.source_id not in known),
    }
    if len(kept["facts"]) == len(facts) and len(kept["episodes"]) == len(episodes):
        return context
    return render(context.results.model_copy(update=kept), max_tokens, template)


def _messages(state: Any, key: str) -> Any:
    messages = _get(state, key)
    if messages is None:
        raise InputError(f"state has no {key!r}; set messages_key to the key of the messages in the graph's state")
    return messages


def _get(state: Any, key: str) -> Any:
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
