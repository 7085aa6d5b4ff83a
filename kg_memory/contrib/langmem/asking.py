"""Ask the caller's chat model for typed answers, and write conversations and trajectories as data for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, MessageLikeRepresentation
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel

from kg_memory.adapters.messages import messages_of, text_of
from kg_memory.contrib.langmem.store import Record
from kg_memory.errors import InputError, MissingExtra, SettingsError
from kg_memory.llm.chat import ChatModel
from kg_memory.runtime.effects import Ask, Prompt, both, call
from kg_memory.runtime.flow import Flow

Answer = TypeVar("Answer", bound=BaseModel)
Output = TypeVar("Output")
Config = RunnableConfig | None
_ROLES = {"human": "user", "ai": "assistant"}


class AnnotatedTrajectory(NamedTuple):
    """A conversation, or other work of an agent as messages, and the feedback that it got."""

    messages: Sequence[AnyMessage]
    feedback: Mapping[str, str | int | bool] | str | None = None


class FlowRunnable(Runnable[Any, Output]):
    """A runnable that is written once, as the flow `_run`, for `invoke` and `ainvoke`."""

    @abstractmethod
    def _run(self, given: Any, config: Config) -> Flow[Output]:
        """Return the output for the input *given*."""

    def _invoke(self, input: Any, config: Config = None, **kwargs: Any) -> Flow[Output]:  # noqa: A002 - LangChain's name
        del kwargs
        return self._run(input, config)

    invoke, ainvoke = both(_invoke)


def open_model(model: BaseChatModel | str) -> ChatModel:
    """Return *model*, a chat model or a name such as ``"openai:gpt-4.1-mini"``, to be asked for typed answers.

    Errors: `SettingsError`, `MissingExtra`.
    """
    if isinstance(model, BaseChatModel):
        return ChatModel(model)
    if not isinstance(model, str) or not model:
        raise SettingsError(f"model must be a LangChain chat model or its name, got {model!r:.80}")
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("a model by its name needs langchain: pip install 'temporal-kg-memory[agents]'") from None
    try:
        return ChatModel(init_chat_model(model))
    except (ValueError, ImportError) as error:
        raise SettingsError(f"the model {model!r} cannot be opened ({error}): pass a LangChain chat model") from error


def ask(model: ChatModel, prompt: Prompt[Answer], /, **fields: Any) -> Flow[Answer]:
    """Return the answer of *model* to *prompt*. Errors: `ModelError`."""
    return cast("Answer", (yield from call(model, "answer", Ask(prompt, fields))))


def write_messages(messages: Iterable[MessageLikeRepresentation]) -> list[Record]:
    """Return *messages* as records with their role, name, words and calls of tools. Errors: `InputError`."""
    return [_write(message) for message in messages_of(messages)]


def write_trajectories(trajectories: Any) -> list[Record]:
    """Return *trajectories* as numbered records of their messages and feedback; one text is one trajectory.

    Each is an `AnnotatedTrajectory`, a pair of messages and feedback, or messages alone. Errors: `InputError`.
    """
    if isinstance(trajectories, str):
        return [{"trajectory": 1, "text": trajectories}] if trajectories.strip() else []
    if isinstance(trajectories, Mapping) or not isinstance(trajectories, Iterable):
        raise InputError(f"trajectories must be a list of (messages, feedback), got {type(trajectories).__name__}")
    records: list[Record] = []
    for number, trajectory in enumerate(trajectories, 1):
        messages, feedback = _split(trajectory)
        record: Record = {"trajectory": number, "messages": write_messages(messages)}
        records.append(record if feedback in (None, "") else {**record, "feedback": feedback})
    return records


def _split(trajectory: Any) -> tuple[Any, Any]:
    """Return the messages and the feedback of *trajectory*, which may be its messages alone."""
    if isinstance(trajectory, tuple | list) and len(trajectory) == 2 and _is_list(trajectory[0]):
        return trajectory[0], trajectory[1]
    return trajectory, None


def _is_list(value: Any) -> bool:
    """Return whether *value* is a list of messages, not one message as a (role, text) pair."""
    return isinstance(value, list | tuple) and not (value and isinstance(value[0], str))


def _write(message: BaseMessage) -> Record:
    record: Record = {"role": _ROLES.get(message.type, message.type)}
    if message.name:
        record["name"] = message.name
    record["content"] = text_of(message)
    if isinstance(message, AIMessage) and message.tool_calls:
        record["calls"] = [{"name": made["name"], "args": made["args"]} for made in message.tool_calls]
    return record
