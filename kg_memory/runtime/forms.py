"""How a graph's input is shown in a form, as LangGraph Studio makes one of its JSON schema."""

from __future__ import annotations

from typing import Any

from pydantic import Field


def shown(description: str, default: Any = ..., **more: Any) -> Any:
    """Return what describes a key of a state: in words, with its default, and *more* of JSON schema such as examples.

    The default is what the graph does without the key; it is told, not filled in.
    """
    extra = more if default is ... else {"default": default, **more}
    return Field(description=description, json_schema_extra=extra)
