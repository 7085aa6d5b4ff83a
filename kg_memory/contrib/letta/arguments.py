"""The arguments of Letta's memory tools; the docstrings tell the model what each tool is for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kg_memory.models.arguments import Arguments

LABEL = "Which block, such as 'human' for what you know of the user."
DATE = "ISO 8601, such as '2024-01-15' or '2024-01-15T14:30'."


class CoreMemoryAppend(Arguments):
    """Add a line to a block of your core memory, which is always in your context.

    Use it for the few things that every answer needs. All else belongs into archival memory.
    """

    label: str = Field(description=LABEL)
    content: str = Field(description="What to add, in a short sentence.")


class CoreMemoryReplace(Arguments):
    """Replace words wherever a block of your core memory says them; with nothing new they are removed."""

    label: str = Field(description=LABEL)
    old_content: str = Field(description="Words that the block says, exactly.")
    new_content: str = Field(description="What it says instead; empty to remove them.")


class MemoryReplace(Arguments):
    """Replace one passage of a block, which must say it only once. For large changes use memory_rethink."""

    label: str = Field(description=LABEL)
    old_string: str = Field(description="The passage, exactly, with as many words as make it unique.")
    new_string: str = Field(description="What stands there instead; empty to remove it.")


class MemoryInsert(Arguments):
    """Insert lines at a place in a block."""

    label: str = Field(description=LABEL)
    new_string: str = Field(description="The text to insert.")
    insert_line: int = Field(default=-1, description="The line after which it goes: 0 for the beginning, -1 the end.")


class MemoryRethink(Arguments):
    """Rewrite a whole block: to reorganise it, to shorten it, or to bring much that is new into it.

    For small edits use memory_replace or memory_insert. What you leave out is gone from the block.
    """

    label: str = Field(description=LABEL)
    new_memory: str = Field(description="All that the block says from now on.")


class MemoryFinishEdits(Arguments):
    """Say that you have finished editing your blocks; call it after the last edit."""


class ArchivalMemoryInsert(Arguments):
    """Store something in archival memory, which is without limits and is searched, not shown.

    Use it for what may matter later: facts, notes, summaries, events. What it contradicts there is ended by it.
    """

    content: str = Field(description="A statement or a text, complete in itself, with names and dates in it.")
    tags: list[str] | None = Field(default=None, description="Words to file it under, such as 'meetings'.")


class ArchivalMemorySearch(Arguments):
    """Search archival memory, by meaning and words: facts with the time in which they hold, and stored texts."""

    query: str = Field(description="What to look for: a question or key words, with names.")
    tags: list[str] | None = Field(default=None, description="Only what was stored with these tags.")
    tag_match_mode: Literal["any", "all"] = Field(default="any", description="Whether one tag is enough.")
    top_k: int | None = Field(default=None, description="How many results of each kind at most.")
    start_datetime: str | None = Field(default=None, description=f"Only what was said from then on. {DATE}")
    end_datetime: str | None = Field(default=None, description=f"Only what was said until then. {DATE}")


class ConversationSearch(Arguments):
    """Search earlier messages of this user's conversations; they are shown word for word.

    By meaning and words, or, without a query, all of some time or role, the latest first.
    """

    query: str | None = Field(default=None, description="What to look for: a question or key words, with names.")
    roles: list[Literal["assistant", "user", "tool"]] | None = Field(default=None, description="Only what these said.")
    limit: int | None = Field(default=None, description="How many messages at most.")
    start_date: str | None = Field(default=None, description=f"Only from this date on. {DATE}")
    end_date: str | None = Field(default=None, description=f"Only up to and with this date. {DATE}")
    page: int = Field(default=0, description="Which page, from 0: the next has the messages after these.")
