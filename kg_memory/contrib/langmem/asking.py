"""Prompts and typed answers of LangMem's managers and optimizers, and the request to the user's chat model."""

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
from kg_memory.errors import InputError
from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import MOST, Id, to_list
from kg_memory.memory import open as opening
from kg_memory.runtime.effects import Ask, Model, PromptTemplate, both, call
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings

Answer = TypeVar("Answer", bound=BaseModel)
Output = TypeVar("Output")
Config = RunnableConfig | None
Texts = Annotated[list[str], BeforeValidator(to_list)]
_ROLES = {"human": "user", "ai": "assistant"}


class Records(BaseModel):
    """The model's answer to the prompt `EXTRACT_THREAD`: a list with the one record found in a conversation."""

    records: list[dict[str, Any]] = Field(max_length=1)


class Changes(BaseModel):
    """The model's answer to the prompt `MANAGE_MEMORIES`: the memories to add, change and remove.

    `removed` has the numbers of memories to remove. `MemoryManager` adds lists for each type of memory, such as
    ``new_Memory`` and ``changed_Memory``.
    """

    removed: list[int] = Field(max_length=MOST)


class Queries(BaseModel):
    """The model's answer with queries for a memory search."""

    queries: Texts = Field(description="1 to 5 queries, the most useful first", max_length=5)


class Lesson(BaseModel):
    """A rule for an agent, such as "Confirm the date before booking", learned from a run (trajectory).

    `trajectory` is the number of the run. `replaces` is the id of the older rule that it replaces, or None.
    """

    lesson: str = Field(description="the rule, as an order", max_length=400)
    reason: str = Field(description="what went wrong, in one short sentence", max_length=500)
    trajectory: Id = Field(description="the number of the trajectory that shows it")
    replaces: Id = Field(description="the id of the known rule whose place it takes, or null")


class Lessons(BaseModel):
    """The model's answer to the prompt `REVIEW`: rules learned from an agent's runs, the most important first."""

    lessons: list[Lesson] = Field(max_length=5)


class RewrittenPrompt(BaseModel):
    """The model's answer to the prompt `REWRITE`: a list with one text, the rewritten prompt."""

    prompts: Texts = Field(description="one text, the whole new prompt", max_length=1)


class ChosenPrompts(BaseModel):
    """The model's answer with the names of prompts to improve."""

    names: Texts = Field(description="names of prompts", max_length=MOST)


_load = partial(load_prompt, __package__)

MANAGE_MEMORIES = _load("manage_memories", Changes, "lists", "kinds", "existing", "messages", "instructions")
EXTRACT_THREAD = _load("extract_thread", Records, "kind", "messages", "instructions")
RECALL_QUERIES = _load("recall_queries", Queries, "messages", "instructions")
REVIEW = _load("review_trajectories", Lessons, "prompt", "known", "draft", "trajectories", "instructions")
REWRITE = _load("rewrite_prompt", RewrittenPrompt, "prompt", "lessons", "instructions")
CHOOSE_PROMPTS = _load("choose_prompts", ChosenPrompts, "prompts", "trajectories")


# Asking the model


class AnnotatedTrajectory(NamedTuple):
    """A trajectory: the messages of a conversation or of another run of an agent, with feedback on the run.

    `feedback` is from a person or a program: a text, or values by name such as ``{"score": 3}``.
    """

    messages: Sequence[AnyMessage]
    feedback: Mapping[str, str | int | bool] | str | None = None


class FlowRunnable(Runnable[Any, Output]):
    """Base class of LangChain runnables: a subclass implements `_run`, which `invoke` and `ainvoke` call."""

    @abstractmethod
    def _run(self, input_: Any, config: Config) -> Flow[Output]:
        """Return the output for *input_*; a generator that yields model calls and other effects, run by `invoke`."""

    def _invoke(self, input: Any, config: Config = None, **kwargs: Any) -> Flow[Output]:  # noqa: A002 - LangChain's name
        del kwargs
        return self._run(input, config)

    invoke, ainvoke = both(_invoke)


def open_model(model: BaseChatModel | str) -> Model:
    """Return a client that sends prompts to *model*, and parses the answers as the prompts' answer types."""
    return opening.model(model, Settings.from_env())


def ask_chat(model: Model, prompt: PromptTemplate[Answer], /, **fields: Any) -> Flow[Answer]:
    """Send *prompt* to *model*, and return the answer, parsed as the prompt's answer type."""
    return cast("Answer", (yield from call(model, "answer", Ask(prompt, fields))))


def write_messages(messages: Iterable[MessageLikeRepresentation]) -> list[Record]:
    """Convert *messages* to JSON objects for a prompt: ``[{"role": "user", "content": "Hello"}, ...]``.

    Errors: `InputError`.
    """
    return [_write(message) for message in messages_of(messages)]


def write_trajectories(trajectories: Any) -> list[Record]:
    """Convert an agent's runs to JSON objects for a prompt: ``[{"trajectory": 1, "messages": [...]}, ...]``.

    Errors: `InputError`.
    """
    if isinstance(trajectories, str):
        return [{"trajectory": 1, "text": trajectories}] if trajectories.strip() else []
    if isinstance(trajectories, Mapping) or not isinstance(trajectories, Iterable):
        raise InputError(f"trajectories must be a list of (messages, feedback), got {type(trajectories).__name__}")
    records: list[Record] = []
    for number, trajectory in enumerate(trajectories, 1):
        messages, feedback = _split_feedback(trajectory)
        record: Record = {"trajectory": number, "messages": write_messages(messages)}
        records.append(record if feedback in (None, "") else {**record, "feedback": feedback})
    return records


def _split_feedback(trajectory: Any) -> tuple[Any, Any]:
    """Return (messages, feedback) of an agent's run: an `AnnotatedTrajectory`, a pair, or messages alone.

    For messages alone, the feedback is None.
    """
    if isinstance(trajectory, tuple | list) and len(trajectory) == 2:
        first, second = trajectory
        if isinstance(first, list | tuple) and not (first and isinstance(first[0], str)):  # ("user", "Hi") is a message
            return first, second
    return trajectory, None


def _write(message: BaseMessage) -> Record:
    record: Record = {"role": _ROLES.get(message.type, message.type)}
    if message.name:
        record["name"] = message.name
    record["content"] = text_of(message)
    if isinstance(message, AIMessage) and message.tool_calls:
        record["calls"] = [{"name": made["name"], "args": made["args"]} for made in message.tool_calls]
    return record
