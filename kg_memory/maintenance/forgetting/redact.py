"""A message of which some characters go: what it says from then on."""

from __future__ import annotations

from typing import Any

from kg_memory.errors import InputError
from kg_memory.ingestion.receive import checked
from kg_memory.maintenance.forgetting import selection_cypher as cypher
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant

MARK = "[forgotten]"
"""What stands in a message for what is gone."""


def redacted(id_: str, span: tuple[int, int], settings: Settings, namespace: str) -> Flow[dict[str, dict[str, Any]]]:
    """Return, by its id, what the episode is without the characters of *span*, and its new id: an id may tell the text.

    Nothing, where another one says just that already. Errors: `InputError` where it has no such characters.
    """
    rows = yield from read(cypher.WHOLE, id=id_)
    if not rows:
        return {}
    told = rows[0]["episode"]
    start, end = span
    if told["content"].startswith(MARK, start):
        raise InputError("there is nothing of the message left at this place: it is forgotten")
    if end > len(told["content"]):
        raise InputError(f"the span ends at {end}, the content has {len(told['content'])} characters: give one in it")
    content = told["content"][:start] + MARK + told["content"][end:]
    state = {**told, "content": content, "at": instant(told["at"]), "namespace": namespace}
    try:
        made = checked(state, settings.with_(max_content=max(settings.max_content, len(content))), told["created_at"])
    except InputError as error:
        raise InputError(f"without these characters {error}; of a JSON record give a span within one text") from error
    others = yield from read(cypher.EPISODE, id=made["id"])
    if others and made["id"] != id_:
        return {}
    return {id_: {"new_id": made["id"], "content": made["content"], "flags": made["flags"]}}
