"""Prompts that users choose in their client: a briefing from memory, and a walk through what waits for review."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from kg_memory.memory.memory import GraphMemory
from kg_memory.server.mcp.caller import Caller
from kg_memory.text.context_markers import REMEMBERED

TOPIC = PromptArgument(name="topic", description="What about; left out: the user's present.", required=False)
PROMPTS = [
    Prompt(name="brief", description="Begin with what the memory holds on a topic.", arguments=[TOPIC]),
    Prompt(name="review", description="Go through what waits for your decision.", arguments=[]),
]
REVIEW = """\
{waiting} doubtful facts and names wait for my decision. Call the tool review for them one after the other, until none \
waits or I want to stop. I decide each; do not decide for me.\
"""


async def get_prompt(memory: GraphMemory, caller: Caller, name: str, arguments: dict[str, str]) -> GetPromptResult:
    """Return the prompt called *name*. Raises `MCPError` where there is none."""
    if name not in {prompt.name for prompt in PROMPTS} or not caller.key.has("read"):
        raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:50]!r} here; use brief or review")
    if name == "brief":
        question = arguments.get("topic") or f"What matters to {caller.user} now?"
        context = await memory.acontext(question, namespace=caller.namespace, asker=caller.user)
        text = f"{REMEMBERED}\n\n{context or 'Nothing yet.'}\n\nThat was from memory. Brief me on: {question}"
    else:
        reviews = await memory.reviews.alist(namespace=caller.namespace)
        doubts = await memory.reviews.aidentities(namespace=caller.namespace)
        text = REVIEW.format(waiting=len(reviews) + len(doubts))
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])
