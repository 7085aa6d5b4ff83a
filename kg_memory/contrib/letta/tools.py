"""Tools with the names and the arguments that users of Letta (MemGPT) know.

Core memory is blocks of text in the prompt, archival memory the graph's facts and the texts behind them, conversation
search the messages word for word.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, time
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool

from kg_memory.adapters.namespace import validate_memory
from kg_memory.adapters.rendering import render_episode, section
from kg_memory.adapters.tools import Answer, CallContext, answer_results, most_of, remember, search, tool
from kg_memory.contrib.letta import arguments
from kg_memory.contrib.letta.blocks import Blocks, Version, append_line, insert_lines, replace_all, replace_one
from kg_memory.errors import InputError, renaming
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Episode, EpisodeKind
from kg_memory.runtime.effects import call
from kg_memory.runtime.flow import Flow
from kg_memory.text.message_fields import ASSISTANT
from kg_memory.validation import validate_count

TOOL = "tool"
"""The speaker of what tools returned."""


def letta_tools(
    memory: GraphMemory,
    namespace: str = "{user_id}",
    *,
    blocks: Blocks | None = None,
    limit: int = 10,
    assistant: str = ASSISTANT,
) -> list[BaseTool]:
    """Return all memory tools of Letta, sync and async: to edit blocks, and to use archival and recall memory.

    Put `Blocks.render` of the same *blocks* into the system prompt, or the agent does not see them. *assistant* is the
    speaker of the agent's own messages. See `memory_tools` for *namespace* and *limit*. Errors: `SettingsError`.
    """
    core = blocks or Blocks(validate_memory(memory), namespace=namespace)
    make = partial(tool, validate_memory(memory), core.templates["user"])
    most = most_of(limit)
    return [
        make("core_memory_append", arguments.CoreMemoryAppend, partial(_append, core=core)),
        make("core_memory_replace", arguments.CoreMemoryReplace, partial(_replace_all, core=core)),
        make("memory_replace", arguments.MemoryReplace, partial(_replace_one, core=core)),
        make("memory_insert", arguments.MemoryInsert, partial(_insert_line, core=core)),
        make("memory_rethink", arguments.MemoryRethink, partial(_rethink, core=core)),
        make("memory_finish_edits", arguments.MemoryFinishEdits, _finish),
        make("archival_memory_insert", arguments.ArchivalMemoryInsert, _insert),
        make("archival_memory_search", arguments.ArchivalMemorySearch, partial(_archive, most=most)),
        make("conversation_search", arguments.ConversationSearch, partial(_recall, most=most, assistant=assistant)),
    ]


# Core memory


def _append(here: CallContext, label: str, content: str, *, core: Blocks) -> Flow[Answer]:
    return (yield from _edit(here, core, label, partial(append_line, content=content)))


def _replace_all(here: CallContext, label: str, old_content: str, new_content: str, *, core: Blocks) -> Flow[Answer]:
    return (yield from _edit(here, core, label, partial(replace_all, old=old_content, new=new_content)))


def _replace_one(here: CallContext, label: str, old_string: str, new_string: str, *, core: Blocks) -> Flow[Answer]:
    return (yield from _edit(here, core, label, partial(replace_one, old=old_string, new=new_string)))


def _insert_line(
    here: CallContext, label: str, new_string: str, insert_line: int = -1, *, core: Blocks
) -> Flow[Answer]:
    return (yield from _edit(here, core, label, partial(insert_lines, text=new_string, line=insert_line)))


def _rethink(here: CallContext, label: str, new_memory: str, *, core: Blocks) -> Flow[Answer]:
    return (yield from _edit(here, core, label, lambda _: new_memory))


def _finish(_: CallContext) -> Flow[Answer]:
    yield from ()
    return "The edits are saved.", {}


def _edit(here: CallContext, core: Blocks, label: str, change: Callable[[str], str]) -> Flow[Answer]:
    block = core.block(label)
    if block.read_only:
        raise InputError(f"the block {label!r} is read-only; edit another one")
    version: Version = yield from call(core, "edit", label, change, here.context)
    answer = f"The block {label} is changed; it has {len(version.value)} of {block.limit} characters."
    if version.withheld:
        answer += f" It looks like orders to a model ({', '.join(version.flags)}), so your prompt does not show it."
    return answer, {"label": label, "value": version.value, "limit": block.limit}


# Archival memory


def _insert(here: CallContext, content: str, tags: list[str] | None = None) -> Flow[Answer]:
    return (yield from remember(here, content, None, EpisodeKind.TEXT, {"tags": tags} if tags else {}))


def _archive(
    here: CallContext,
    query: str,
    tags: list[str] | None = None,
    tag_match_mode: str = "any",
    top_k: int | None = None,
    start_datetime: str | None = None,
    end_datetime: str | None = None,
    *,
    most: int,
) -> Flow[Answer]:
    limit = most if top_k is None else top_k
    where = _tagged(tags or [], tag_match_mode, _said(start_datetime=start_datetime, end_datetime=end_datetime))
    with renaming(limit="top_k"):
        results = yield from search(here, query, limit, of_each=2, where=where)
    texts = [episode for episode in results.episodes if episode.kind is not EpisodeKind.MESSAGE]
    return answer_results(results.model_copy(update={"facts": results.facts[:limit], "episodes": tuple(texts[:limit])}))


def _tagged(tags: list[str], mode: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return the filter of what has any, or all, of *tags*, and passes *said*."""
    if mode == "all":
        return {"$and": [{**said, "labels.tags": tag} for tag in tags] or [said]}
    return {**said, "labels.tags": tags} if tags else said


def _said(**ends: str | None) -> dict[str, Any]:
    """Return the filter of what was said from a start to an end; an end without a time of day is the whole day."""
    how = zip(ends.items(), (("$gte", time.min), ("$lte", time.max)), strict=True)
    said = {operator: _parse_date(name, text, of_day) for (name, text), (operator, of_day) in how if text}
    return {"said_at": said} if said else {}


def _parse_date(name: str, text: str, of_day: time) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} must be ISO 8601, such as 2024-01-15 or 2024-01-15T14:30, got {text!r:.50}") from None
    if len(text) <= len("2024-01-15"):
        moment = datetime.combine(moment, of_day)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Recall memory


def _recall(
    here: CallContext,
    query: str | None = None,
    roles: list[str] | None = None,
    limit: int | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
    page: int = 0,
    *,
    most: int,
    assistant: str,
) -> Flow[Answer]:
    size = most_of(most if limit is None else limit)
    skip = validate_count("page", page, 0) * size
    where = {"kind": "message", **_said(start_date=start_date, end_date=end_date), **_spoken(roles or [], assistant)}
    if not query:
        return _answer_messages((yield from here.call("episodes.list", where=where, limit=size, skip=skip)))
    results = yield from search(here, query, skip + size, where=where)
    messages = results.episodes[skip : skip + size]
    return answer_results(results.model_copy(update={"facts": (), "episodes": messages}))


def _spoken(roles: list[str], assistant: str) -> dict[str, Any]:
    """Return the filter of what these *roles* said: the user is everybody but the assistant and the tools."""
    speakers = {"assistant": assistant, "tool": TOOL, "user": {"$nin": [assistant, TOOL]}}
    return {"$or": [{"speaker": speakers[role]} for role in roles]} if roles else {}


def _answer_messages(messages: list[Episode]) -> Answer:
    listed = section("episodes", (render_episode(episode, set()) for episode in messages if not episode.withheld))
    return listed or "No messages.", {"episodes": [episode.model_dump(mode="json") for episode in messages]}
