"""Agent tools with the names and arguments of Letta (MemGPT).

Core memory is blocks of text in the system prompt. Archival memory is facts and stored texts. Conversation search
returns messages verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.tools import BaseTool
from pydantic import Field

from kg_memory.adapters.namespace import validate_memory
from kg_memory.adapters.rendering import render_episode, section
from kg_memory.adapters.tools import Answer, CallContext, answer_results, most_of, remember, search, tool
from kg_memory.contrib.letta.blocks import Blocks, Version, append_line, insert_lines, replace_all, replace_one, rewrite
from kg_memory.errors import InputError, renaming
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import Arguments
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.effects import call
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import parse_period
from kg_memory.text.message_fields import ASSISTANT
from kg_memory.validation import validate_count

TOOL = "tool"
"""The speaker of tool results."""
LABEL = "Which block, such as 'human' for what you know of the user."
DATE = "ISO 8601, such as '2024-01-15' or '2024-01-15T14:30'."


# The arguments of the tools; the docstrings are the descriptions that the model reads


class CoreMemoryAppend(Arguments):
    """Add a line to a block of your core memory, which is always in your context.

    Use it for the few things that every answer needs. Everything else belongs into archival memory.
    """

    label: str = Field(description=LABEL)
    content: str = Field(description="What to add, in a short sentence.")


class CoreMemoryReplace(Arguments):
    """Replace every occurrence of a text in a block of your core memory; an empty new text removes it."""

    label: str = Field(description=LABEL)
    old_content: str = Field(description="Words that the block says, exactly.")
    new_content: str = Field(description="What it says instead; empty to remove them.")


class MemoryReplace(Arguments):
    """Replace a passage that occurs exactly once in a block. For large changes use memory_rethink."""

    label: str = Field(description=LABEL)
    old_string: str = Field(description="The passage, exactly, with as many words as make it unique.")
    new_string: str = Field(description="What stands there instead; empty to remove it.")


class MemoryInsert(Arguments):
    """Insert lines into a block after a given line."""

    label: str = Field(description=LABEL)
    new_string: str = Field(description="The text to insert.")
    insert_line: int = Field(default=-1, description="The line after which it goes: 0 for the beginning, -1 the end.")


class MemoryRethink(Arguments):
    """Rewrite a whole block, to reorganise it, shorten it, or add much new information.

    For small edits use memory_replace or memory_insert. Text that you leave out is removed from the block.
    """

    label: str = Field(description=LABEL)
    new_memory: str = Field(description="All that the block says from now on.")


class MemoryFinishEdits(Arguments):
    """Signal that you have finished editing your blocks. Call it after the last edit."""


class ArchivalMemoryInsert(Arguments):
    """Store a text in archival memory, which has no size limit and is searched rather than shown.

    Use it for facts, notes, summaries and events that may matter later. Facts in it end older facts that they
    contradict.
    """

    content: str = Field(description="A statement or a text, complete in itself, with names and dates in it.")
    tags: list[str] | None = Field(default=None, description="Words to file it under, such as 'meetings'.")


class ArchivalMemorySearch(Arguments):
    """Search archival memory by meaning and key words: facts with the time for which they hold, and stored texts."""

    query: str = Field(description="What to look for: a question or key words, with names.")
    tags: list[str] | None = Field(default=None, description="Only what was stored with these tags.")
    tag_match_mode: Literal["any", "all"] = Field(default="any", description="Whether one tag is enough.")
    top_k: int | None = Field(default=None, description="How many results of each kind at most.")
    start_datetime: str | None = Field(default=None, description=f"Only what was said from then on. {DATE}")
    end_datetime: str | None = Field(default=None, description=f"Only what was said until then. {DATE}")


class ConversationSearch(Arguments):
    """Search earlier messages of this user's conversations, which are returned verbatim.

    With a query, search by meaning and key words; without one, list messages by time or role, latest first.
    """

    query: str | None = Field(default=None, description="What to look for: a question or key words, with names.")
    roles: list[Literal["assistant", "user", "tool"]] | None = Field(default=None, description="Only what these said.")
    limit: int | None = Field(default=None, description="How many messages at most.")
    start_date: str | None = Field(default=None, description=f"Only from this date on. {DATE}")
    end_date: str | None = Field(default=None, description=f"Only up to and with this date. {DATE}")
    page: int = Field(default=0, description="Which page, from 0: the next has the messages after these.")


EDITS: tuple[tuple[str, type[Arguments], Callable[..., str]], ...] = (
    ("core_memory_append", CoreMemoryAppend, append_line),
    ("core_memory_replace", CoreMemoryReplace, replace_all),
    ("memory_replace", MemoryReplace, replace_one),
    ("memory_insert", MemoryInsert, insert_lines),
    ("memory_rethink", MemoryRethink, rewrite),
)


def letta_tools(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    blocks: Blocks | None = None,
    limit: int = 10,
    assistant: str = ASSISTANT,
) -> list[BaseTool]:
    """Return Letta's memory tools as LangChain tools: for memory blocks, archival memory and conversations.

    Put `Blocks.render` in the system prompt to show the agent its *blocks*. *assistant* is the agent's speaker name.
    For *namespace* and *limit*, see `memory_tools`.
    """
    core = blocks or Blocks(validate_memory(memory), namespace=namespace)
    make = partial(tool, validate_memory(memory), core.templates["user"])
    most = most_of(limit)
    return [
        *(make(name, arguments, partial(_edit_block, core=core, edit=edit)) for name, arguments, edit in EDITS),
        make("memory_finish_edits", MemoryFinishEdits, _finish),
        make("archival_memory_insert", ArchivalMemoryInsert, _insert),
        make("archival_memory_search", ArchivalMemorySearch, partial(_search_archive, most=most)),
        make("conversation_search", ConversationSearch, partial(_search_messages, most=most, assistant=assistant)),
    ]


# Core memory


def _finish(_: CallContext) -> Flow[Answer]:
    yield from ()
    return "The edits are saved.", {}


def _edit_block(here: CallContext, label: str, *, core: Blocks, edit: Callable[..., str], **given: Any) -> Flow[Answer]:
    block = core.block(label)
    if block.read_only:
        raise InputError(f"the block {label!r} is read-only; edit another one")
    version: Version = yield from call(core, "edit", label, partial(edit, **given), here.context)
    answer = f"The block {label} is changed; it has {len(version.value)} of {block.limit} characters."
    if version.withheld:
        answer += f" It looks like orders to a model ({', '.join(version.flags)}), so your prompt does not show it."
    return answer, {"label": label, "value": version.value, "limit": block.limit}


# Archival memory


def _insert(here: CallContext, content: str, tags: list[str] | None = None) -> Flow[Answer]:
    return (yield from remember(here, content, None, EpisodeKind.TEXT, {"tags": tags} if tags else {}))


def _search_archive(here: CallContext, *, most: int, **values: Any) -> Flow[Answer]:
    asked = ArchivalMemorySearch.model_construct(**values)
    limit = most if asked.top_k is None else asked.top_k
    said = _said(start_datetime=asked.start_datetime, end_datetime=asked.end_datetime)
    where = _with_tags(asked.tags or [], asked.tag_match_mode, said)
    with renaming(limit="top_k"):
        results = yield from search(here, asked.query, limit, of_each=2, where=where)
    texts = [episode for episode in results.episodes if episode.kind is not EpisodeKind.MESSAGE]
    return answer_results(results.model_copy(update={"facts": results.facts[:limit], "episodes": tuple(texts[:limit])}))


def _with_tags(tags: list[str], mode: str, said: dict[str, Any]) -> dict[str, Any]:
    if mode == "all":
        return {"$and": [{**said, "labels.tags": tag} for tag in tags] or [said]}
    return {**said, "labels.tags": tags} if tags else said


def _said(**ends: str | None) -> dict[str, Any]:
    """Return a filter for message times: ``_said(a="2024-01", b=None) -> {"said_at": {"$gte": ...}}``.

    The first argument is the start, the second the end, inclusive; None means open. Errors: `InputError`.
    """
    said: dict[str, Any] = {}
    for (name, text), (operator, side) in zip(ends.items(), (("$gte", "start"), ("$lt", "end")), strict=True):
        if text and (period := parse_period(text)) is None:
            raise InputError(f"{name} must be ISO 8601, such as 2024-01-15 or 2024-01-15T14:30, got {text!r:.50}")
        if text and (moment := getattr(period, side)) is not None:
            said[operator] = moment
    return {"said_at": said} if said else {}


# Recall memory


def _search_messages(here: CallContext, *, most: int, assistant: str, **values: Any) -> Flow[Answer]:
    asked = ConversationSearch.model_construct(**values)
    size = most_of(most if asked.limit is None else asked.limit)
    skip = validate_count("page", asked.page, 0) * size
    said = _said(start_date=asked.start_date, end_date=asked.end_date)
    where = {"kind": "message", **said, **_said_by(asked.roles or [], assistant)}
    if not asked.query:
        return _answer_messages((yield from here.call("episodes.list", where=where, limit=size, skip=skip)))
    results = yield from search(here, asked.query, skip + size, where=where)
    return answer_results(results.model_copy(update={"facts": (), "episodes": results.episodes[skip : skip + size]}))


def _said_by(roles: Sequence[str], assistant: str) -> dict[str, Any]:
    speakers = {"assistant": assistant, "tool": TOOL, "user": {"$nin": [assistant, TOOL]}}
    return {"$or": [{"speaker": speakers[role]} for role in roles]} if roles else {}


def _answer_messages(messages: list[Episode]) -> Answer:
    listed = section("episodes", (render_episode(episode, set()) for episode in messages if not episode.withheld))
    return listed or "No messages.", {"episodes": [episode.model_dump(mode="json") for episode in messages]}
