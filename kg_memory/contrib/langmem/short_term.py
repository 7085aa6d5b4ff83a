"""Summarises the older messages of a conversation that exceeds a token limit, under LangMem's names.

The summary is part of the state of your LangGraph graph; it is not stored in the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    MessageLikeRepresentation,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BaseModel

from kg_memory.adapters.messages import text_of
from kg_memory.contrib.langmem.asking import Config, FlowRunnable
from kg_memory.contrib.langmem.store import Record
from kg_memory.errors import AnswerError, InputError
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

TokenCounter = Callable[[Iterable[MessageLikeRepresentation]], int]

_KEEP = (
    "Keep names, numbers, dates, decisions, wishes, and what is still open; leave out greetings and small talk. Use "
    "only what was said, and write in the language of the conversation. Answer with the summary alone."
)
_EXTEND = (
    "The messages above follow on this summary of what came before them:\n\n{existing_summary}\n\n"
    "Write one summary of both, so that our conversation can go on without them. Where they disagree, the messages are "
    f"right. {_KEEP}"
)
INITIAL_SUMMARY = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{messages}"),
        ("user", f"Summarise our conversation up to here, so that it can go on without these messages. {_KEEP}"),
    ]
)
EXISTING_SUMMARY = ChatPromptTemplate.from_messages([("placeholder", "{messages}"), ("user", _EXTEND)])
FINAL = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{system_message}"),
        ("system", "A summary of this conversation before the messages that follow:\n{summary}"),
        ("placeholder", "{messages}"),
    ]
)


@dataclass
class RunningSummary:
    """The summary of a conversation up to now, and the ids of the messages that it covers."""

    summary: str
    summarized_message_ids: set[str]
    last_summarized_message_id: str | None


@dataclass
class SummarizationResult:
    """The messages to send to the model, with the summary in place of older ones, and the running summary.

    `running_summary` is None if nothing has been summarised.
    """

    messages: list[BaseMessage]
    running_summary: RunningSummary | None = None


class SummarizationNode(FlowRunnable[Record]):
    """A LangGraph node that replaces the older messages of a conversation by a summary.

    - *max_tokens*: the limit for the summary and the remaining messages.
    - *max_tokens_before_summary*: summarise when this many tokens are not summarised yet (default: *max_tokens*).
    - *max_summary_tokens*: reserved for the summary; to limit its length, pass ``model.bind(max_tokens=256)``.
    - *input_messages_key* and *output_messages_key*: where the state has the messages, and where it gets the result.

    The first message, if from the system, and the last message stay. The summary is in ``context["running_summary"]``.
    """

    def __init__(
        self,
        *,
        model: LanguageModelLike,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        token_counter: TokenCounter = count_tokens_approximately,
        initial_summary_prompt: ChatPromptTemplate = INITIAL_SUMMARY,
        existing_summary_prompt: ChatPromptTemplate = EXISTING_SUMMARY,
        final_prompt: ChatPromptTemplate = FINAL,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
    ) -> None:
        """Store the options. Errors: `InputError` for limits that leave no room."""
        before = max_tokens if max_tokens_before_summary is None else max_tokens_before_summary
        self._most = validate_count("max_tokens", max_tokens)
        self._before = validate_count("max_tokens_before_summary", before)
        if validate_count("max_summary_tokens", max_summary_tokens) >= max_tokens:
            raise InputError(f"max_summary_tokens must be below max_tokens ({max_tokens}), got {max_summary_tokens}")
        self._room = max_tokens - max_summary_tokens
        self.name, self._model, self._count = name, model, token_counter
        self._first, self._next, self._final = initial_summary_prompt, existing_summary_prompt, final_prompt
        self._read, self._written = input_messages_key, output_messages_key

    def _run(self, input_: Record | BaseModel, _: Config) -> Flow[Record]:
        messages, context = _get(input_, self._read), _get(input_, "context") or {}
        if messages is None:
            raise InputError(f"the state must have {self._read!r}; set input_messages_key to the key of its messages")
        result = yield from self.summarize(messages, context.get("running_summary"))
        if result.running_summary is None:
            return {self._written: result.messages}
        replaces = self._read == self._written
        kept = [RemoveMessage(REMOVE_ALL_MESSAGES), *result.messages] if replaces else result.messages
        return {self._written: kept, "context": {**context, "running_summary": result.running_summary}}

    def summarize(self, messages: Sequence[AnyMessage], running: RunningSummary | None) -> Flow[SummarizationResult]:
        """Return *messages* with the older ones replaced by a summary, and the new running summary.

        *running* is the summary up to now, or None. The messages that it covers are left out.
        """
        system = list(messages[:1]) if messages and isinstance(messages[0], SystemMessage) else []
        rest = messages[len(system) :]
        recent = rest[_count_summarized(rest, running) :]
        older = recent[: self._split(recent, system)]
        for part in self._parts(older) if older else ():
            prompt, summary = (self._first, "") if running is None else (self._next, running.summary)
            asked = prompt.format_messages(messages=part, existing_summary=summary)
            running = _extend_summary(running, part, (yield from call(self._model, "invoke", asked)))
        recent = recent[len(older) :]
        if running is None:
            return SummarizationResult([*system, *recent])
        values = {"system_message": system, "summary": running.summary, "messages": recent}
        return SummarizationResult(self._final.format_messages(**values), running)

    def _split(self, messages: Sequence[BaseMessage], system: Sequence[BaseMessage]) -> int:
        """Return how many of the first *messages* to summarise; 0 below the token limit, and never all."""
        total, room = self._count(messages), self._room - self._count(system)
        if total < self._before:
            return 0
        tokens = end = 0
        for turn in list(_turns(messages))[:-1]:
            tokens, end = tokens + self._count(turn), end + len(turn)
            if tokens >= self._before and total - tokens <= room:
                break
        return end

    def _parts(self, messages: Sequence[BaseMessage]) -> Iterator[list[BaseMessage]]:
        """Divide *messages* into lists of at most `max_tokens` tokens, one for each call of the model.

        A message with tool calls stays with the results of the tools, even if they exceed the limit.
        """
        part: list[BaseMessage] = []
        for turn in _turns(messages):
            if part and self._count([*part, *turn]) > self._most:
                yield part
                part = []
            part = [*part, *turn]
        yield part


def _summarize_messages(
    messages: Sequence[AnyMessage],
    *,
    running_summary: RunningSummary | None,
    model: LanguageModelLike,
    max_tokens: int,
    **options: Any,
) -> Flow[SummarizationResult]:
    """Return *messages* with the older ones replaced by a summary, if they exceed the token limit.

    *running_summary* is that of the previous call, or None. *options* are those of `SummarizationNode`. Errors:
    `InputError` for messages without ids, and for limits that leave no room.
    """
    node = SummarizationNode(model=model, max_tokens=max_tokens, **options)
    return (yield from node.summarize(messages, running_summary))


summarize_messages, asummarize_messages = both(_summarize_messages)


def _turns(messages: Sequence[BaseMessage]) -> Iterator[list[BaseMessage]]:
    """Yield groups of *messages* in which a message with tool calls stays together with the tools' results."""
    turn: list[BaseMessage] = []
    for message in messages:
        if turn and not isinstance(message, ToolMessage):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _count_summarized(messages: Sequence[BaseMessage], running: RunningSummary | None) -> int:
    ids = [message.id for message in messages]
    if None in ids:
        raise InputError("every message must have an id; LangGraph's add_messages gives them one")
    summarized = running.summarized_message_ids if running else ()
    return max((place for place, id_ in enumerate(ids, 1) if id_ in summarized), default=0)


def _extend_summary(running: RunningSummary | None, part: Sequence[BaseMessage], reply: object) -> RunningSummary:
    summary = text_of(reply).strip() if isinstance(reply, AIMessage) else str(reply).strip()
    if not summary:
        raise AnswerError("the model returned an empty summary: use another model, or raise its max_tokens")
    ids = running.summarized_message_ids if running else set[str]()
    return RunningSummary(summary, ids | {str(message.id) for message in part}, part[-1].id)


def _get(state: Record | BaseModel, key: str) -> Any:
    return state.get(key) if isinstance(state, dict) else getattr(state, key, None)
