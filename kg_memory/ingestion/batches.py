"""Questions about many things, asked a batch at a time: an answer has room for so many verdicts only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kg_memory.runtime.effects import Answer, Prompt, ask
from kg_memory.runtime.flow import Flow, every

BATCH = 25


def ask_in_batches(prompt: Prompt[Answer], name: str, things: Sequence[Any], **fields: Any) -> Flow[list[Answer]]:
    """Ask *prompt* about *things* (its field *name*), at most `BATCH` at once, and return the answers."""
    if 0 < len(things) <= BATCH:
        return [(yield from ask(prompt, **{name: things}, **fields))]
    batches = (things[start : start + BATCH] for start in range(0, len(things), BATCH))
    answers: list[Answer] = yield from every(ask(prompt, **{name: batch}, **fields) for batch in batches)
    return answers
