"""The tool that adds to the memory: remember."""

from __future__ import annotations

import asyncio

from pydantic import Field

from kg_memory.adapters.rendering import render_added
from kg_memory.contrib.server.mcp.tool import Answer, Arguments, Tool, ToolCall
from kg_memory.contrib.server.mcp.views import dump
from kg_memory.contrib.server.reader import OUTAGES
from kg_memory.models.operations import AddResult
from kg_memory.temporal.interval import instant

SOURCE = "mcp"
RESULT = {"episode", "status", "facts", "ended", "pending", "error", "skipped"}


class Remember(Arguments):
    """Remember something lasting that the user tells: a preference, a fact, a plan, a change. What it contradicts is
    ended, not lost. Not for guesses, nor for what this memory told you.
    """  # noqa: D205 - one paragraph for the model

    content: str = Field(description="In the user's words, with names and dates.")
    at: str | None = Field(None, description="When it was said: ISO 8601; now if left out.")


async def remember(call: ToolCall, asked: Remember) -> Answer:
    """Save the content, which nothing loses then, and read it; what cannot be read now is read later."""
    at = asked.at or instant(call.memory.driver.today())  # one date, so that both steps mean the same episode
    episode = {"content": asked.content, "speaker": call.caller.user, "at": at, "source": SOURCE}
    (saved,) = await call.memory.episodes.asave([episode], namespace=call.namespace)
    await call.report(1, 2, "saved")
    if call.memory.settings.plan == "economy":
        return _answer_later(call, saved, "is read together with what follows")
    try:
        (read,) = await call.memory.aadd_many([episode], namespace=call.namespace)
    except OUTAGES as error:
        return _answer_later(call, saved, f"is read later: {error}")
    except asyncio.CancelledError:
        call.wake(call.namespace)
        raise
    await call.report(2, 2, "read")
    result = read.model_copy(update={"new": saved.new})
    return Answer(render_added(result), dump(result, RESULT))


def _answer_later(call: ToolCall, saved: AddResult, when: str) -> Answer:
    call.wake(call.namespace)
    return Answer(f"Saved word for word as episode:{saved.episode}; it {when}.", dump(saved, RESULT))


TOOLS = (Tool("remember", Remember, remember, {"episode": "string", "facts": "array"}, "write"),)
