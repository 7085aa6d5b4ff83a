"""Prompts that users choose in their client: a briefing, a digest, a handoff, and a walk through what waits."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from kg_memory.contrib.reports.values import Report
from kg_memory.contrib.server.mcp.caller import Caller
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import is_left_out
from kg_memory.text.context_markers import REMEMBERED

TOPIC = PromptArgument(name="topic", description="What about; left out: the user's present.", required=False)
SINCE = PromptArgument(name="since", description="From when on; left out: last week.", required=False)
THREAD = PromptArgument(name="thread", description="Only this conversation.", required=False)
PROMPTS = [
    Prompt(name="brief", description="Begin with what the memory holds on a topic.", arguments=[TOPIC]),
    Prompt(name="digest", description="See what happened lately, and what waits for you.", arguments=[SINCE]),
    Prompt(name="handoff", description="Go on where the last session ended.", arguments=[THREAD]),
    Prompt(name="review", description="Go through what waits for your decision.", arguments=[]),
]
REVIEW = """\
{waiting} doubtful facts and names wait for my decision. Call the tool review for them one after the other, until none \
waits or I want to stop. I decide each; do not decide for me.\
"""


AFTER = {
    "digest": "Sum it up for me, and begin with what I have to decide.",
    "handoff": "Go on from there: tell me the next step first.",
}


async def _read_report(memory: GraphMemory, caller: Caller, name: str, arguments: dict[str, str]) -> Report:
    if name == "digest":
        digest: Report = await memory.reports.adigest(arguments.get("since") or "last week", namespace=caller.namespace)
        return digest
    handoff: Report = await memory.reports.ahandoff(arguments.get("thread"), namespace=caller.namespace)
    return handoff


async def get_prompt(memory: GraphMemory, caller: Caller, name: str, arguments: dict[str, str]) -> GetPromptResult:
    """Return the prompt called *name*. Raises `MCPError` where there is none."""
    names = [prompt.name for prompt in PROMPTS]
    if name not in names or not caller.key.has("read"):
        raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:50]!r} here; use {', '.join(names)}")
    arguments = {argument: text for argument, text in arguments.items() if not is_left_out(text)}
    if name == "brief":
        question = arguments.get("topic") or f"What matters to {caller.user} now?"
        context = await memory.acontext(question, namespace=caller.namespace, asker=caller.user)
        text = f"{REMEMBERED}\n\n{context or 'Nothing yet.'}\n\nThat was from memory. Brief me on: {question}"
    elif name in ("digest", "handoff"):
        report = await _read_report(memory, caller, name, arguments)
        text = f"{REMEMBERED}\n\n{report.render()}\nThat was from memory. {AFTER[name]}"
    else:
        reviews = await memory.reviews.alist(namespace=caller.namespace)
        doubts = await memory.reviews.aidentities(namespace=caller.namespace)
        text = REVIEW.format(waiting=len(reviews) + len(doubts))
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])
