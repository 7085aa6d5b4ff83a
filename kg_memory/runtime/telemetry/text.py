"""What people said, as telemetry tells it where it was asked to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_ROLES = {"human": "user", "ai": "assistant"}


def as_messages(messages: Sequence[Any]) -> str:
    """Return LangChain *messages* in the JSON of the conventions."""
    told = [
        {"role": _ROLES.get(each.type, each.type), "parts": [{"type": "text", "content": str(each.content)}]}
        for each in messages
    ]
    return json.dumps(told, ensure_ascii=False)
