"""Tools with the names and the arguments that users of Letta (MemGPT) know.

Core memory is blocks of text in the prompt, archival memory the graph's facts and the texts behind them, conversation
search the messages word for word. Tags, roles and dates of storing are not taken: they have no meaning here.
"""

from __future__ import annotations

from functools import partial

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from kg_memory.adapters.namespace import NamespaceTemplate, checked_memory
from kg_memory.adapters.tools.core_memory import CoreMemory
from kg_memory.adapters.tools.making import Answer, Here, in_thread, tool
from kg_memory.adapters.tools.steps import most_of, remember, search, shown
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeKind
from kg_memory.runtime.flow import Flow


class CoreMemoryAppend(BaseModel):
    """Add a line to a block of your core memory, which is always in your context.

    Use it for the few things that every answer needs. All else belongs into archival memory.
    """

    label: str = Field(description="Which block, such as 'human' for what you know of the user.")
    content: str = Field(description="What to add, in a short sentence.")


class CoreMemoryReplace(BaseModel):
    """Replace words in a block of your core memory: to correct, to shorten, or, with nothing new, to remove them."""

    label: str = Field(description="Which block, such as 'human' for what you know of the user.")
    old_content: str = Field(description="Words that the block says, exactly.")
    new_content: str = Field(description="What it says instead; empty to remove them.")


class ArchivalMemoryInsert(BaseModel):
    """Store something in archival memory, which is without limits and is searched, not shown.

    Use it for what may matter later: facts, notes, summaries, events. What it contradicts there is ended by it.
    """

    content: str = Field(description="A statement or a text, complete in itself, with names and dates in it.")


class ArchivalMemorySearch(BaseModel):
    """Search archival memory, by meaning and words: facts with the time in which they hold, and stored texts."""

    query: str = Field(description="What to look for: a question or key words, with names.")
    top_k: int | None = Field(default=None, description="How many results of each kind at most.")


class ConversationSearch(BaseModel):
    """Search earlier messages of this user's conversations, by meaning and words; they are shown word for word."""

    query: str = Field(description="What to look for: a question or key words, with names.")
    limit: int | None = Field(default=None, description="How many messages at most.")


def letta_tools(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    core: CoreMemory | None = None,
    limit: int = 10,
) -> list[BaseTool]:
    """Return ``core_memory_append``, ``core_memory_replace``, ``archival_memory_insert``, ``archival_memory_search``
    and ``conversation_search``, sync and async; see `memory_tools` for *namespace* and *limit*.

    Put `CoreMemory.render` of the same *core* into the system prompt, or the agent does not see its blocks.
    Errors: `SettingsError`.
    """  # noqa: D205 - the names are the summary
    make = partial(tool, checked_memory(memory), NamespaceTemplate(namespace))
    core, most = core or CoreMemory(memory), most_of(limit)
    return [
        make("core_memory_append", CoreMemoryAppend, partial(_append, core=core)),
        make("core_memory_replace", CoreMemoryReplace, partial(_replace, core=core)),
        make("archival_memory_insert", ArchivalMemoryInsert, _insert),
        make("archival_memory_search", ArchivalMemorySearch, partial(_archive, most=most)),
        make("conversation_search", ConversationSearch, partial(_conversation, most=most)),
    ]


def _append(_: Here, label: str, content: str, *, core: CoreMemory) -> Flow[Answer]:
    value = yield from in_thread(core.append, label, content)
    return _edited(core, label, value)


def _replace(_: Here, label: str, old_content: str, new_content: str, *, core: CoreMemory) -> Flow[Answer]:
    value = yield from in_thread(core.replace, label, old_content, new_content)
    return _edited(core, label, value)


def _edited(core: CoreMemory, label: str, value: str) -> Answer:
    limit = core.blocks[label]
    return f"The block {label} is changed; it has {len(value)} of {limit} characters.", {
        "label": label,
        "value": value,
        "limit": limit,
    }


def _insert(here: Here, content: str) -> Flow[Answer]:
    return (yield from remember(here, content, None, EpisodeKind.TEXT))


def _archive(here: Here, query: str, top_k: int | None = None, *, most: int) -> Flow[Answer]:
    limit = most if top_k is None else top_k
    found = yield from search(here, query, limit, of_each=2)
    texts = [each for each in found.episodes if each.kind is not EpisodeKind.MESSAGE]
    return shown(found.model_copy(update={"facts": found.facts[:limit], "episodes": tuple(texts[:limit])}))


def _conversation(here: Here, query: str, limit: int | None = None, *, most: int) -> Flow[Answer]:
    limit = most if limit is None else limit
    found = yield from search(here, query, limit, of_each=2)
    messages = [each for each in found.episodes if each.kind is EpisodeKind.MESSAGE]
    return shown(found.model_copy(update={"facts": (), "episodes": tuple(messages[:limit])}))
