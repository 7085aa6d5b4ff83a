"""`KGMemoryMiddleware`: long-term memory for agents made with `langchain.agents.create_agent`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any, Literal, NotRequired, ParamSpec, TypedDict, TypeVar, get_args

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables.config import ensure_config, set_config_context
from langchain_core.tools import BaseTool
from langgraph.channels import UntrackedValue
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from kg_memory.adapters.background import UNAVAILABLE, BackgroundMemory
from kg_memory.adapters.messages import episodes_of, last_asker, last_question, source_ids, until_question
from kg_memory.adapters.namespace import (
    NamespaceTemplate,
    Where,
    place_of,
    validate_memory,
    validate_search_options,
    validate_speaker,
)
from kg_memory.adapters.nodes import PlaceOfText, leave_out, with_memory
from kg_memory.adapters.rendering import section
from kg_memory.adapters.tools import forget_request, has_forgotten, memory_tools
from kg_memory.errors import InputError, KGMemoryError, MemoryPaused, MissingExtra, SettingsError
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.results import Profile
from kg_memory.retrieval.context.lines import Template
from kg_memory.retrieval.context.templates import fact_line
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.effects import Call, call
from kg_memory.runtime.flow import Flow, arun, run
from kg_memory.runtime.telemetry import describe_error
from kg_memory.validation import validate_choice, validate_count

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
except ImportError as error:
    message = "the agent middleware needs langchain: pip install 'langchain>=1.2.18'"
    raise MissingExtra(message) from error

logger = logging.getLogger("kg_memory")

P = ParamSpec("P")
T = TypeVar("T")
Remember = Literal["background", "inline", "off"]
OnError = Literal["continue", "raise"]
Answer = ToolMessage | Command[Any]
"""The result of a tool call."""
ASK = "The next fact may have changed. Once in this conversation, where it fits, ask the user whether it is still so."
UNREACHABLE = "Nothing: your memory cannot be reached at the moment. Say so where the answer would need it."


class Turn(TypedDict):
    """The record of one conversation turn, from the latest human messages up to the agent's answer.

    `began`: its start, as ISO text. `reached`: whether the memory could be searched. `saved`: source ids of messages.
    """

    namespace: str
    recall_from: NotRequired[list[str]]
    thread: str | None
    began: str
    reached: bool
    saved: list[str]


class MemoryState(AgentState[Any]):
    """The agent's state with private keys: the turn, whether a stale fact was asked about, the recalled text.

    The recalled text is not stored in checkpoints, where `forget` could not delete it.
    """

    kg_memory_turn: NotRequired[Annotated[Turn, PrivateStateAttr]]
    kg_memory_asked: NotRequired[Annotated[bool, PrivateStateAttr]]
    kg_memory_recalled: NotRequired[Annotated[str, UntrackedValue, PrivateStateAttr]]


def _both_detached(flow: Callable[P, Flow[T]]) -> tuple[Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a sync and an async function that run *flow*, apart from the agent's checkpoints."""

    @wraps(flow)
    def run_detached(*args: P.args, **kwargs: P.kwargs) -> T:
        with set_config_context({**ensure_config(), "configurable": {}}) as context:
            return context.run(run, flow(*args, **kwargs), Call.run)

    @wraps(flow)
    async def arun_detached(*args: P.args, **kwargs: P.kwargs) -> T:
        with set_config_context({**ensure_config(), "configurable": {}}) as context:
            return await asyncio.create_task(arun(flow(*args, **kwargs), Call.arun), context=context)

    return run_detached, arun_detached


class KGMemoryMiddleware(AgentMiddleware[MemoryState, Any]):
    """LangChain agent middleware that searches the memory before each answer and adds the conversation to it.

    Example::

        agent = create_agent("openai:gpt-4.1-mini", middleware=[KGMemoryMiddleware(memory)])
        agent.invoke({"messages": [("user", "Where do I live?")]}, context={"user_id": "ann"})

    The text found for the last question is added to each model call of the turn, and to no stored message. Messages are
    saved before the model is called, and their facts are extracted after the answer. Sentences of the assistant that
    only repeat the text from the memory are left out.

    - *namespace*: a template, filled in for each run from the runtime context or ``config["configurable"]``, whose
      ``thread_id`` names the conversation. A missing value raises `InputError` before any model call.
    - *recall_from*: templates of further namespaces to search, such as ``["team-{team}"]``; messages go to *namespace*.
    - *recall*: false turns the search off. *max_tokens*: the maximum size of the text from the memory.
    - *place*: ``"message"`` puts the text behind the last message of the user, so that all before it stays the same and
      the provider's prompt cache serves it; ``"system"`` puts it at the end of the system message.
    - *repeat*: true also recalls messages that the agent's state still has, and facts said only there. Use it if the
      model gets fewer messages than the state has: with another middleware that trims or summarises them.
    - *profile_tokens*: if above 0, the profile of the person who asks comes before the text; see
      `GraphMemory.profile`. With *where* there is no profile.
    - *ask_stale*: true lets the model ask the user, once in a conversation, about a fact that may have changed, see
      `GraphMemory.facts.stale`. The answer refreshes or ends it. It needs a checkpointer. With *where* it does not ask.
    - *remember*: ``"background"`` reads facts later on a thread, ``"inline"`` before the agent returns, and ``"off"``
      saves nothing.
    - *background*: a `BackgroundMemory` to share between agents; None makes one.
    - *tools*: more tools for the agent; true means those of `memory_tools`.
    - *user* and *assistant*: the speakers of messages without a name.
    - *on_error*: what an outage of database or models does, or a message that cannot be stored. ``"continue"`` logs a
      warning, tells the model about an outage, and lets the agent answer; ``"raise"`` ends the run. Other errors are
      always raised.
    - *recipe*, *where*, *template* and *believed_at*: as in `GraphMemory.context`.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: GraphMemory,
        namespace: str = "{user_id}",
        *,
        recall_from: Sequence[str] = (),
        recall: bool = True,
        max_tokens: int = 1500,
        place: PlaceOfText = "message",
        repeat: bool = False,
        profile_tokens: int = 0,
        ask_stale: bool = False,
        remember: Remember = "background",
        background: BackgroundMemory | None = None,
        tools: Sequence[BaseTool] | bool = (),
        user: str | None = None,
        assistant: str | None = None,
        on_error: OnError = "continue",
        recipe: Recipe | str | None = None,
        where: Where | None = None,
        template: Template | str | None = None,
        believed_at: Time | None = None,
    ) -> None:
        """Create the middleware; the class describes the arguments. Errors: `SettingsError`, `InputError`."""
        super().__init__()
        self.memory = validate_memory(memory)
        if background is not None and not (isinstance(background, BackgroundMemory) and background.memory is memory):
            raise SettingsError(f"background must be a BackgroundMemory of this memory, or None, got {background!r}")
        self.background = background or BackgroundMemory(memory)
        self._options = validate_search_options(recipe, where, template, believed_at)
        if tools is True:
            options: Any = {"recipe": recipe, "where": where, "believed_at": believed_at}
            self.tools = memory_tools(memory, namespace, recall_from=recall_from, user=user, **options)
        else:
            self.tools = list(tools or ())
        self._template = NamespaceTemplate(namespace, recall_from)
        self._recalls, self._repeats = recall, repeat
        self._place = validate_choice("place", place, get_args(PlaceOfText), error=SettingsError)
        self._max_tokens = validate_count("max_tokens", max_tokens)
        self._profile_tokens = validate_count("profile_tokens", profile_tokens, 0)
        self._asks_stale = ask_stale
        self._remember = validate_choice("remember", remember, get_args(Remember), error=SettingsError)
        self._names = {"user": validate_speaker("user", user), "assistant": validate_speaker("assistant", assistant)}
        self._on_error = validate_choice("on_error", on_error, get_args(OnError), error=SettingsError)

    def _before(self, state: MemoryState, runtime: Runtime[Any]) -> Flow[dict[str, Any]]:
        return self._begin(state, self._new_turn(runtime))

    def _after(self, state: MemoryState, runtime: Runtime[Any]) -> Flow[None]:
        return self._end(state, state.get("kg_memory_turn") or self._new_turn(runtime))

    def _with_recalled(self, request: ModelRequest[Any]) -> Flow[ModelRequest[Any]]:
        recalled: Any = request.state.get("kg_memory_recalled")
        if recalled is None:
            recalled = yield from self._recall_again(request.state)
        return _add_recalled(request, recalled, self._place)

    before_agent, abefore_agent = _both_detached(_before)
    after_agent, aafter_agent = _both_detached(_after)
    _recall_for, _arecall_for = _both_detached(_with_recalled)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._recall_for(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        return await handler(await self._arecall_for(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        try:
            return handler(request)
        except UNAVAILABLE as error:
            return self._answer_outage(request, error)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        try:
            return await handler(request)
        except UNAVAILABLE as error:
            return self._answer_outage(request, error)

    def _new_turn(self, runtime: Runtime[Any]) -> Turn:
        place = place_of(self._template, runtime.context, get_config())
        space, others, now = place.namespace, list(place.recall_from), datetime.now(UTC).isoformat()
        return Turn(namespace=space, recall_from=others, thread=place.thread, began=now, reached=True, saved=[])

    def _begin(self, state: MemoryState, turn: Turn) -> Flow[dict[str, Any]]:
        """Search the memory for the last question, then save the messages; return updates of the agent's state."""
        messages = until_question(state["messages"])
        recalled, failed, asked = "", None, state.get("kg_memory_asked", False)
        try:
            recalled = yield from self._recall(messages, turn)
            question = "" if asked else (yield from self._ask_stale(turn, last_asker(messages, self._names["user"])))
            recalled, asked = "\n\n".join(filter(None, (recalled, question))), asked or bool(question)
        except KGMemoryError as error:
            failed = error
        turn["saved"] = yield from self._save(turn, self._turn_episodes(messages, turn, recalled))
        if failed is not None:
            turn["reached"] = False
            self._log_or_raise("recall", failed)
        return {"kg_memory_turn": turn, "kg_memory_recalled": recalled, "kg_memory_asked": asked}

    def _ask_stale(self, turn: Turn, asker: str) -> Flow[str]:
        """Return a prompt text that makes the model ask whether an old fact about *asker* is still true, or ""."""
        if not self._asks_stale or self._options.get("where") is not None:
            return ""
        limits = {"believed_at": self._options.get("believed_at"), "limit": 1}
        stale = yield from call(self.memory.facts, "stale", about=asker, namespace=turn["namespace"], **limits)
        return f"{ASK}\n{section('facts', [fact_line(stale[0].fact, set())])}" if stale else ""

    def _recall(self, messages: Sequence[BaseMessage], turn: Turn, believed_at: Time | None = None) -> Flow[str]:
        """Return text for the model: the asker's profile, and search results for the last question.

        The text is "" if *messages* have no question, or if recalling is turned off.
        """
        question = last_question(messages)
        if not self._recalls or question is None:
            return ""
        asker = last_asker(messages, self._names["user"])
        namespaces = [turn["namespace"], *turn.get("recall_from", ())]
        place = {"namespace": namespaces, "thread": turn["thread"], "asker": asker}
        options = {"believed_at": believed_at, "max_tokens": self._max_tokens, **place, **self._options}
        profile = yield from self._read_profile(asker, turn["namespace"])
        context = yield from call(self.memory, "context", question, **options)
        known = frozenset() if self._repeats else source_ids(messages, turn["thread"])
        known |= profile.facts if profile else frozenset()
        context = leave_out(context, known, self._max_tokens, self._options.get("template"))
        return "\n\n".join(filter(None, (str(profile or ""), str(context))))

    def _recall_again(self, state: Any) -> Flow[str]:
        """Return the text from the memory again for an interrupted turn that is resumed, as of its start.

        The text is "" if the first search failed, and a notice for the model if the memory is unavailable now.
        """
        turn: Turn | None = state.get("kg_memory_turn")
        if turn is None or not turn["reached"]:
            return ""
        try:
            return (yield from self._recall(until_question(state["messages"]), turn, turn["began"]))
        except KGMemoryError as error:
            self._log_or_raise("recall", error)
            return UNREACHABLE

    def _read_profile(self, asker: str, namespace: str) -> Flow[Profile | None]:
        if not self._profile_tokens or self._options.get("where") is not None:  # a profile cannot be filtered
            return None
        limits = {"namespace": namespace, "max_tokens": self._profile_tokens}
        limits |= {"believed_at": self._options.get("believed_at")}
        profile: Profile = yield from call(self.memory, "profile", asker, **limits)
        return profile

    def _end(self, state: MemoryState, turn: Turn) -> Flow[None]:
        """Save the messages of the turn that are not saved yet, or delete them after a request to forget."""
        if turn["saved"] and has_forgotten(state["messages"]):
            try:
                yield from forget_request(self.memory, turn["namespace"], turn["saved"])
            except KGMemoryError as error:
                self._log_or_raise("forget the request", error)
            return
        recalled = state.get("kg_memory_recalled")
        if recalled is None:  # the turn was interrupted and resumed
            recalled = "" if self._remember == "off" else (yield from self._recall_again(state))
        episodes = self._turn_episodes(state["messages"], turn, recalled)
        saved = yield from self._save(turn, episodes)
        if self._remember != "inline":
            return
        unread = [episode for episode in episodes if episode.source_id in saved]
        try:
            added = yield from call(self.memory, "add_many", unread, namespace=turn["namespace"])
        except KGMemoryError as error:
            self._log_or_raise("read the messages of the turn", error)
            return
        for result in added:
            if result.error:
                logger.warning("episode %s is saved but not read: its status is %s", result.episode, result.status)

    def _turn_episodes(self, messages: Sequence[BaseMessage], turn: Turn, recalled: str) -> list[EpisodeInput]:
        return episodes_of(messages, thread=turn["thread"], last_turn=True, recalled=recalled, **self._names)

    def _save(self, turn: Turn, episodes: list[EpisodeInput]) -> Flow[list[str]]:
        """Save those of *episodes* that are not saved yet; return the `source_id` of all saved ones of the turn."""
        saved = list(turn["saved"])
        if self._remember == "off":
            return saved
        owner, verb = (self.memory.episodes, "save") if self._remember == "inline" else (self.background, "submit")
        for episode in episodes:
            if episode.source_id in saved:
                continue
            try:
                yield from call(owner, verb, [episode], namespace=turn["namespace"])
            except MemoryPaused:
                return saved
            except KGMemoryError as error:
                self._log_or_raise("save a message", error)
            else:
                saved.append(episode.source_id or "")
        return saved

    def _answer_outage(self, request: ToolCallRequest, error: KGMemoryError) -> ToolMessage:
        call = request.tool_call
        self._log_or_raise(f"answer {call['name']}", error)
        return ToolMessage(UNREACHABLE, tool_call_id=call["id"], name=call["name"], status="error")

    def _log_or_raise(self, what: str, error: KGMemoryError) -> None:
        """Log *error* if the agent can go on without the memory, as after an outage; else raise it.

        With ``on_error="raise"``, all errors are raised.
        """
        if self._on_error == "raise" or not isinstance(error, (*UNAVAILABLE, InputError)):
            raise error
        logger.warning("the agent goes on, but its memory could not %s: %s", what, describe_error(error))


def _add_recalled(request: ModelRequest[Any], recalled: str, place: PlaceOfText) -> ModelRequest[Any]:
    """Return a copy of the model request with the text *recalled* inserted at *place*.

    If the memory was unavailable in this turn, a notice is inserted instead. An empty text changes nothing.
    """
    turn: Turn | None = request.state.get("kg_memory_turn")  # type: ignore[assignment]
    text = "" if turn is None else recalled if turn["reached"] else UNREACHABLE
    if not text:
        return request
    head = [request.system_message] if request.system_message else []
    prompt: list[Any] = list(with_memory([*head, *request.messages], text, place))
    system = prompt.pop(0) if prompt and isinstance(prompt[0], SystemMessage) else None
    return request.override(system_message=system, messages=prompt)
