"""Edits of the text of a block, as the tools make them: pure functions from the text before to the text after."""

from __future__ import annotations

from html import unescape

from kg_memory.errors import InputError


def append(value: str, content: str) -> str:
    """Return *value* with *content* as a last line."""
    return f"{value}\n{content}" if value else content


def replace_all(value: str, old: str, new: str) -> str:
    """Return *value* with *new* for each *old*. Errors: `InputError` where there is none."""
    return value.replace(_exact(value, old), new)


def replace_one(value: str, old: str, new: str) -> str:
    """Return *value* with *new* for the only *old*. Errors: `InputError` where there is none, or several."""
    exact = _exact(value, old)
    if (count := value.count(exact)) > 1:
        raise InputError(f"the block says {old!r:.200} {count} times; give more of the words around it")
    return value.replace(exact, new)


def insert(value: str, text: str, line: int) -> str:
    """Return *value* with *text* after its *line*: 0 is the beginning, -1 the end. Errors: `InputError`."""
    lines = value.split("\n") if value else []
    place = len(lines) if line == -1 else line
    if not 0 <= place <= len(lines):
        raise InputError(f"insert_line must be from 0 to {len(lines)}, or -1 for the end, got {line}")
    return "\n".join([*lines[:place], text, *lines[place:]])


def _exact(value: str, old: str) -> str:
    """Return the words of *value* that *old* means: a model may quote what it was shown, which is escaped."""
    exact = next((words for words in (old, unescape(old)) if words and words in value), None)
    if exact is None:
        raise InputError(f"the block does not say {old!r:.200}: give words that it says, exactly")
    return exact
