"""Extracts memories from conversations with a chat model: which memories to add, change and remove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field, ValidationError, create_model

from kg_memory.contrib.langmem import asking
from kg_memory.contrib.langmem.store import Record
from kg_memory.errors import InputError, SettingsError
from kg_memory.llm.prompts import strict_schema
from kg_memory.llm.prompts.answers import MOST
from kg_memory.runtime.effects import PromptTemplate
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

Schema = type[BaseModel]
NEW, CHANGED, REMOVED = "new_", "changed_", "removed"


class Memory(BaseModel):
    """A fact, a preference, a note or an episode worth remembering."""

    content: str = Field(description="the memory, complete in itself, with names")


class SummarizeThread(BaseModel):
    """The title and the summary of a conversation."""

    title: str = Field(description="at most ten words")
    summary: str = Field(description="two to five sentences")


class RemoveDoc(BaseModel):
    """The content of an `ExtractedMemory` that should be removed; `json_doc_id` is its id."""

    json_doc_id: str


class ExtractedMemory(NamedTuple):
    """A memory returned by a `MemoryManager`: its id, and its content as a pydantic object.

    The content is a `RemoveDoc` if the memory should be removed.
    """

    id: str
    content: Any


class Existing(NamedTuple):
    """An existing memory: its id, the name of its schema (a pydantic model), and its content as plain JSON."""

    id: str
    kind: str
    content: Any


class MemoryManager(asking.FlowRunnable[list[ExtractedMemory]]):
    """A runnable that reads a conversation and existing memories, and returns updated and new memories.

    The input is ``{"messages": [...], "existing": [...]}``; nothing is stored. *schemas* are the pydantic models of
    memories; *instructions* tell the model which memories you want.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        /,
        *,
        schemas: Sequence[Schema] = (Memory,),
        instructions: str = "",
        enable_inserts: bool = True,
        enable_updates: bool = True,
        enable_deletes: bool = False,
    ) -> None:
        """Open the model. By default, the model may add and change memories, but not remove them."""
        self.schemas = {schema.__name__: schema for schema in _validate_schemas(schemas)}
        self.instructions = instructions
        self._model = asking.open_model(model)
        self._inserts, self._updates, self._deletes = enable_inserts, enable_updates, enable_deletes
        self._kinds = [{"kind": name, "schema": schema.model_json_schema()} for name, schema in self.schemas.items()]
        self._forms = {exists: self._make_prompt(exists=exists) for exists in (False, True)}

    def _run(self, input_: Mapping[str, Any], _: asking.Config) -> Flow[list[ExtractedMemory]]:
        """Return the existing memories, revised, then new ones; a `RemoveDoc` stands for a memory to remove."""
        existing = list(self.read_existing(input_.get("existing") if isinstance(input_, Mapping) else None))
        external = {memory.id for memory in existing}
        memories, removed = yield from self.revise(input_, existing)
        revised: list[ExtractedMemory] = []
        for memory in memories:
            if memory.id not in removed:
                revised.append(ExtractedMemory(memory.id, to_model(memory, self.schemas)))
            elif memory.id in external:
                revised.append(ExtractedMemory(memory.id, RemoveDoc(json_doc_id=memory.id)))
        return revised

    def revise(self, input_: Mapping[str, Any], existing: Sequence[Existing]) -> Flow[tuple[list[Existing], set[str]]]:
        """Let the model add, change and remove memories; return all memories, and the ids of the memories to remove.

        *input_* is the runnable's input (messages), and *existing* are the stored memories in it.
        """
        messages = asking.write_messages(require_messages(input_))
        memories, removed = list(existing), set[str]()
        for _ in range(validate_count("max_steps", input_.get("max_steps") or 1)):
            form = self._forms[bool(memories)]
            if form is None or not (messages or memories):
                break
            shown = [
                {"id": number, "kind": memory.kind, "memory": memory.content}
                for number, memory in enumerate(memories, 1)
                if memory.id not in removed
            ]
            fields = {"lists": list(form.answer.model_fields), "kinds": self._kinds, "existing": shown}
            answer = yield from asking.ask_chat(
                self._model, form, **fields, messages=messages, instructions=self.instructions
            )
            if not _apply(answer, memories, removed):
                break
        return memories, removed

    async def __call__(self, messages: Sequence[Any], existing: Sequence[Any] | None = None) -> list[ExtractedMemory]:
        """Return the updated memories for a conversation: calls `ainvoke` with *messages* and *existing* memories."""
        return await self.ainvoke({"messages": messages, "existing": existing})

    def read_existing(self, existing: Any) -> Iterable[Existing]:
        """Convert *existing*, a list of memories, to `Existing` objects.

        A memory is a text, a pair (id, content), or a triple (id, schema name, content). Errors: `InputError` for other
        values.
        """
        if isinstance(existing, str | Mapping):
            raise InputError(f"existing must be a list of memories, got {type(existing).__name__}")
        default = next(iter(self.schemas))
        for memory in existing or ():
            if isinstance(memory, str):
                yield Existing(str(uuid4()), Memory.__name__, {"content": memory})
            elif isinstance(memory, tuple | list) and len(memory) in (2, 3):
                content = memory[-1]
                if isinstance(content, RemoveDoc):
                    continue
                kind = memory[1] if len(memory) == 3 else type(content).__name__
                yield Existing(str(memory[0]), kind if isinstance(kind, str) else default, dump_content(content))
            else:
                raise InputError(f"an existing memory must be a text or an (id, content) pair, got {memory!r:.80}")

    def _make_prompt(self, *, exists: bool) -> PromptTemplate[asking.Changes] | None:
        """Return the prompt that asks the model for changes to memories; None if no change is allowed."""
        lists: Record = {}
        for name, schema in self.schemas.items():
            if self._inserts or not exists:
                lists[NEW + name] = (Annotated[list[schema], Field(max_length=MOST)], ...)  # type: ignore[valid-type]
            if self._updates and exists:
                changed = create_model(f"Changed{name}", id=(int, ...), memory=(schema, ...))
                lists[CHANGED + name] = (Annotated[list[changed], Field(max_length=MOST)], ...)
        if self._deletes and exists:
            lists[REMOVED] = (Annotated[list[int], Field(max_length=MOST)], ...)
        return replace(asking.MANAGE_MEMORIES, answer=_make_answer(asking.Changes.__name__, lists)) if lists else None


def _apply(changes: BaseModel, memories: list[Existing], removed: set[str]) -> bool:
    """Apply the model's *changes* to the list *memories*; return False if there is nothing to apply.

    Removed memories stay in *memories*, and their ids are added to *removed*. Unknown ids are skipped.
    """
    places = {number: number - 1 for number, memory in enumerate(memories, 1) if memory.id not in removed}
    made = False
    for name in type(changes).model_fields:
        for change in getattr(changes, name):
            if name.startswith(NEW):
                memories.append(Existing(str(uuid4()), name.removeprefix(NEW), dump_content(change)))
            elif (place := places.get(change if name == REMOVED else change.id)) is None:
                continue
            elif name == REMOVED:
                removed.add(memories[place].id)
            else:
                memories[place] = Existing(memories[place].id, name.removeprefix(CHANGED), dump_content(change.memory))
            made = True
    return made


create_memory_manager = MemoryManager


class ThreadExtractor(asking.FlowRunnable[BaseModel]):
    """A runnable that fills a pydantic model, *schema*, from a conversation; by default, with its title and summary.

    The input is ``{"messages": [...]}``. Errors: `SettingsError` for an invalid argument.
    """

    def __init__(self, model: BaseChatModel | str, /, schema: Schema | None = None, instructions: str = "") -> None:
        [self._schema] = _validate_schemas([SummarizeThread if schema is None else schema])
        self._model, self._instructions = asking.open_model(model), instructions
        records = Annotated[list[self._schema], Field(min_length=1, max_length=1)]  # type: ignore[name-defined]
        self._form = replace(
            asking.EXTRACT_THREAD, answer=_make_answer(asking.Records.__name__, {"records": (records, ...)})
        )

    def _run(self, input_: Mapping[str, Any], _: asking.Config) -> Flow[BaseModel]:
        messages = asking.write_messages(require_messages(input_))
        if not messages:
            raise InputError("messages must not be empty: there is nothing to extract from")
        kind, wishes = self._schema.model_json_schema(), self._instructions
        answer: Any = yield from asking.ask_chat(
            self._model, self._form, kind=kind, messages=messages, instructions=wishes
        )
        record: BaseModel = answer.records[0]
        return record


create_thread_extractor = ThreadExtractor


def to_model(memory: Existing, schemas: Mapping[str, Schema]) -> Any:
    """Convert the content of *memory* to an instance of its schema; if it does not fit, return it as plain JSON."""
    schema = schemas.get(memory.kind) or (Memory if memory.kind == Memory.__name__ else None)
    try:
        return memory.content if schema is None else schema.model_validate(memory.content)
    except ValidationError:
        return memory.content


def require_messages(input_: Any) -> Any:
    """Return the messages in *input_*, the input of a runnable: ``{"messages": [...]}``.

    Errors: `InputError` if the key "messages" is missing.
    """
    if not isinstance(input_, Mapping) or "messages" not in input_:
        raise InputError(f'the input must be a dict such as {{"messages": [...]}}, got {input_!r:.80}')
    return input_["messages"]


def _validate_schemas(schemas: Any) -> list[Schema]:
    listed = list(schemas) if isinstance(schemas, list | tuple) else [schemas]
    for schema in listed:
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            raise SettingsError(f"a schema must be a pydantic model, got {schema!r:.80}; subclass pydantic.BaseModel")
        try:
            strict_schema(schema)
        except RecursionError:
            raise SettingsError(f"the schema {schema.__name__} contains itself; use one without recursion") from None
    names = [schema.__name__ for schema in listed]
    if not listed or len(set(names)) < len(names):
        raise SettingsError(f"schemas must be one or more models of different names, got {names}")
    return listed


def _make_answer(name: str, lists: Mapping[str, Any]) -> type[Any]:
    made: type[Any] = create_model(name, **lists)
    return made


def dump_content(content: Any) -> Any:
    """Return *content* as plain JSON if it is a pydantic model; any other value is returned unchanged."""
    return content.model_dump(mode="json") if isinstance(content, BaseModel) else content
