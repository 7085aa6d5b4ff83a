"""Resources: entities, profiles, episodes, timelines, and what waits for review, of the caller's namespace alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from operator import methodcaller
from typing import Any
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, Resource, ResourceTemplate

from kg_memory.errors import InputError, KGMemoryError, NotFound
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import FOR_AGENTS

URI = re.compile(r"kg://([^/]+)/(?:(entity|profile|episode|timeline)/(.+)|(reviews))", re.DOTALL)
TYPE = "application/json"
INTERVAL = 1.0
"""Seconds between two looks at the resources that somebody subscribed to."""
UNHEARD = 60.0
"""Seconds for which subscriptions wait for a client to open its stream again."""
GONE = hashlib.sha256().hexdigest()
"""The digest of a resource that is not there."""
MOST_WATCHED = 50
"""Resources that one client may subscribe to at once."""
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
    """Return what *uri* names. Raises `MCPError` where it is no resource of *namespace*."""
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


async def watch(
    memory: GraphMemory,
    digests: dict[str, str],
    namespace: str,
    publish: Callable[[str], Awaitable[None]],
    is_valid: Callable[[], Awaitable[bool]],
    is_heard: Callable[[], bool],
) -> None:
    """Call *publish* with the URI of each resource that differs from its digest, as long as the client *is_valid*.

    Other processes write too, so the resources themselves are looked at. A resource that is gone is watched no more,
    nor is anything once the client has had no stream for `UNHEARD` seconds.
    """
    unheard, watches = 0.0, bool(digests)
    while unheard < UNHEARD and bool(digests) == watches:
        await asyncio.sleep(INTERVAL)
        unheard = 0.0 if is_heard() else unheard + INTERVAL
        if unheard:
            continue
        with suppress(KGMemoryError):  # the database may be back at the next look
            if not await is_valid():
                return
            for uri, digest in (await take_digests(memory, digests, namespace)).items():
                if digests[uri] != digest:
                    digests[uri] = digest
                    await publish(uri)
                    if digest == GONE:
                        del digests[uri]


async def take_digests(memory: GraphMemory, uris: Iterable[str], namespace: str) -> dict[str, str]:
    """Return the digest of each resource. Errors: `MCPError` for what is no resource of *namespace*."""
    return {uri: await _digest(memory, parse_uri(uri, namespace)) for uri in list(uris)}


async def _digest(memory: GraphMemory, address: Address) -> str:
    try:
        content = await read_resource(memory, address)
    except NotFound:
        content = ""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def to_protocol(error: KGMemoryError) -> MCPError:
    """Return *error* as the protocol has it, where the answer is not that of a tool."""
    return MCPError(INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR, str(error))
