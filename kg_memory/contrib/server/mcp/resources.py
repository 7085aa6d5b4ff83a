"""Resources and prompts of the caller's namespace.

Resources are entities, profiles, episodes, timelines and waiting reviews. Prompts are texts that users choose in their
client: a briefing, a digest, a handoff, and a walk through the waiting reviews.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from operator import methodcaller
from typing import Any
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextContent,
)

from kg_memory.contrib.server.mcp.tool import Caller
from kg_memory.errors import InputError, KGMemoryError, NotFound
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.arguments import is_left_out
from kg_memory.models.graph import FOR_AGENTS
from kg_memory.text.context_markers import REMEMBERED

URI = re.compile(r"kg://([^/]+)/(?:(entity|profile|episode|timeline)/(.+)|(reviews))", re.DOTALL)
TYPE = "application/json"
ABOUT = {
    "entity/{name}": "A person, place or thing: its latest facts, neighbours and mentions.",
    "profile/{name}": "What holds of a person, by topic; `text` has it in words.",
    "episode/{id}": "A message or text, word for word.",
    "timeline/{name}": "All that began, ended and was said of a person, place or thing, earliest first.",
    "reviews": "What waits for the user's decision.",
}
TEMPLATES = [
    ResourceTemplate(
        uri_template="kg://{namespace}/" + path, name=path.partition("/")[0], description=about, mime_type=TYPE
    )
    for path, about in ABOUT.items()
]
TOPIC = PromptArgument(name="topic", description="What about; left out: the user's present.", required=False)
SINCE = PromptArgument(name="since", description="From when on; left out: last week.", required=False)
THREAD = PromptArgument(name="thread", description="Only this conversation.", required=False)
PROMPTS = [
    Prompt(name="brief", description="Begin with what the memory holds on a topic.", arguments=[TOPIC]),
    Prompt(name="digest", description="See what happened lately, and what waits for you.", arguments=[SINCE]),
    Prompt(name="handoff", description="Go on where the last session ended.", arguments=[THREAD]),
    Prompt(name="review", description="Go through what waits for your decision.", arguments=[]),
]
DIGEST = "Sum it up for me, and begin with what I have to decide."
HANDOFF = "Go on from there: tell me the next step first."
REVIEW = """\
{waiting} doubtful facts and names wait for my decision. Call the tool review for them one after the other, until none \
waits or I want to stop. I decide each; do not decide for me.\
"""
to_json = methodcaller("model_dump", mode="json", context=FOR_AGENTS)


@dataclass(frozen=True, slots=True)
class Address:
    """A resource of a namespace: its `kind`, and the `name` or id of its subject."""

    namespace: str
    kind: str
    name: str = ""


def root_of(namespace: str) -> str:
    """Return the beginning of the URIs of *namespace*."""
    return f"kg://{quote(namespace, safe='')}"


def parse_uri(uri: str, namespace: str) -> Address:
    """Return the address in *uri*. Raises `MCPError` if it is no resource of *namespace*."""
    form = URI.fullmatch(uri)
    if form is None or unquote(form[1]) != namespace:
        paths = ", ".join(ABOUT)
        raise MCPError(
            INVALID_PARAMS, f"there is no resource {uri[:100]!r}; here are {root_of(namespace)}/ with {paths}"
        )
    return Address(namespace, form[2] or form[4], unquote(form[3] or ""))


def list_resources(namespace: str) -> list[Resource]:
    """Return the resources of *namespace* that need no name."""
    return [Resource(uri=f"{root_of(namespace)}/reviews", name="reviews", description=ABOUT["reviews"], mime_type=TYPE)]


async def read_resource(memory: GraphMemory, address: Address) -> str:
    """Return a resource as JSON. Errors: `NotFound`, and those of the memory."""
    return json.dumps(await _read(memory, address), ensure_ascii=False)


async def _read(memory: GraphMemory, address: Address) -> Any:
    name = address.name
    where: dict[str, Any] = {"namespace": address.namespace}
    if address.kind == "reviews":
        reviews = await memory.reviews.alist(**where)
        doubts = await memory.reviews.aidentities(**where)
        return {"reviews": list(map(to_json, reviews)), "identities": list(map(to_json, doubts))}
    if address.kind == "profile":
        return to_json(await memory.aprofile(name, **where))
    if address.kind == "timeline":
        return list(map(to_json, await memory.facts.atimeline(name, **where)))
    if address.kind == "episode":
        episode = await memory.episodes.aget(name.removeprefix("episode:"), **where)
        if episode is None:
            raise NotFound(f"there is no episode {name[:100]!r}; recall shows the ids")
        return to_json(episode)
    card = await memory.entities.acard(name, **where)
    if card is None:
        raise NotFound(f"there is no entity {name[:100]!r}; recall finds names by other words")
    trusted = tuple(episode for episode in card.episodes if not episode.withheld)
    return to_json(card.model_copy(update={"episodes": trusted}))


async def get_prompt(memory: GraphMemory, caller: Caller, name: str, arguments: dict[str, str]) -> GetPromptResult:
    """Return the prompt called *name*. Raises `MCPError` if there is none."""
    names = [prompt.name for prompt in PROMPTS]
    if name not in names or not caller.key.has("read"):
        raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:50]!r} here; use {', '.join(names)}")
    arguments = {argument: text for argument, text in arguments.items() if not is_left_out(text)}
    where: dict[str, Any] = {"namespace": caller.namespace}
    if name == "brief":
        question = arguments.get("topic") or f"What matters to {caller.user} now?"
        context = await memory.acontext(question, asker=caller.user, **where)
        text = _quote(f"{context or 'Nothing yet.'}\n", f"Brief me on: {question}")
    elif name == "digest":
        digest = await memory.reports.adigest(arguments.get("since") or "last week", **where)
        text = _quote(digest.render(), DIGEST)
    elif name == "handoff":
        text = _quote((await memory.reports.ahandoff(arguments.get("thread"), **where)).render(), HANDOFF)
    else:
        waiting = await _read(memory, Address(caller.namespace, "reviews"))
        text = REVIEW.format(waiting=sum(map(len, waiting.values())))
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])


def _quote(remembered: str, order: str) -> str:
    return f"{REMEMBERED}\n\n{remembered}\nThat was from memory. {order}"


def to_protocol(error: KGMemoryError) -> MCPError:
    """Return *error* as the protocol has it, where the answer is not that of a tool."""
    return MCPError(INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR, str(error))
