"""The prompts and typed answers of LangMem's managers and optimizers, and how the caller's chat model is asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, MessageLikeRepresentation
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, BeforeValidator, Field

from kg_memory.adapters.messages import messages_of, text_of
from kg_memory.contrib.langmem.store import Record
from kg_memory.errors import InputError, MissingExtra, SettingsError
from kg_memory.llm.chat import ChatModel
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import MOST, Id, to_list
from kg_memory.runtime.effects import Ask, Prompt, both, call
from kg_memory.runtime.flow import Flow

Answer = TypeVar("Answer", bound=BaseModel)
Output = TypeVar("Output")
Config = RunnableConfig | None
_ROLES = {"human": "user", "ai": "assistant"}


class Records(BaseModel):
    """One record about a whole conversation; its kind is the caller's."""

    records: list[dict[str, Any]] = Field(max_length=1)


class Changes(BaseModel):
    """Which memories to add, change and remove; the lists of each kind are the caller's."""

    removed: list[int] = Field(max_length=MOST)


class Queries(BaseModel):
    """What to search a memory for."""

    queries: Annotated[list[str], BeforeValidator(to_list)] = Field(
        description="1 to 5 queries, the most useful first", max_length=5
    )


class Lesson(BaseModel):
    """A rule that an agent should follow, and why."""

    lesson: str = Field(description="the rule, as an order", max_length=400)
    reason: str = Field(description="what went wrong, in one short sentence", max_length=500)
    trajectory: Id = Field(description="the number of the trajectory that shows it")
    replaces: Id = Field(description="the id of the known rule whose place it takes, or null")


class Lessons(BaseModel):
    """What a prompt should teach its agent, the most important first."""

    lessons: list[Lesson] = Field(max_length=5)


class RewrittenPrompt(BaseModel):
    """A prompt that follows the lessons."""

    prompts: Annotated[list[str], BeforeValidator(to_list)] = Field(
        description="one text, the whole new prompt", max_length=1
    )


class ChosenPrompts(BaseModel):
    """Which of several prompts are to be improved."""

    names: Annotated[list[str], BeforeValidator(to_list)] = Field(description="names of prompts", max_length=MOST)


_load = partial(load_prompt, __package__)

MANAGE_MEMORIES = _load("manage_memories", Changes, "lists", "kinds", "existing", "messages", "instructions")
EXTRACT_THREAD = _load("extract_thread", Records, "kind", "messages", "instructions")
RECALL_QUERIES = _load("recall_queries", Queries, "messages", "instructions")
REVIEW = _load("review_trajectories", Lessons, "prompt", "known", "draft", "trajectories", "instructions")
REWRITE = _load("rewrite_prompt", RewrittenPrompt, "prompt", "lessons", "instructions")
CHOOSE_PROMPTS = _load("choose_prompts", ChosenPrompts, "prompts", "trajectories")


# How the model is asked


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
