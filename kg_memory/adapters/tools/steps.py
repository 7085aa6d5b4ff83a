"""The steps that the tools share: search, remember a statement, forget what an id names."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from kg_memory.adapters.tools.lines import added_lines, forgotten_lines, found_lines
from kg_memory.adapters.tools.making import Answer, Here, call
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput, EpisodeKind
from kg_memory.models.operations import AddResult, ForgetReceipt
from kg_memory.models.results import SearchResults
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

SOURCE = "tool"
AGENT = "agent"
"""Who forgets, in the log."""
MOST = 50
"""Lines of each kind that a model is shown, whatever it asks for."""
_ID = re.compile(r"(fact|episode):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def search(
    here: Here, query: str, limit: int, *, during: str | None = None, of_each: int = 1, **manner: Any
) -> Flow[SearchResults]:
    """Return what is found, at most *limit* of each kind, or *of_each* times that where some are to be left out.

    *manner* is how `GraphMemory.search` is to search.
    """
    most = of_each * most_of(limit)
    found: SearchResults = yield from call(
        "search", query, limit=most, during=during or None, thread=here.thread, **manner
    )
    return found


def shown(found: SearchResults) -> Answer:
    """Return the facts and the episodes of *found* as a model reads them."""
    return found_lines(found), found.model_dump(mode="json", include={"question", "time", "facts", "episodes"})


def most_of(limit: int) -> int:
    """Return *limit*, `MOST` at most. Errors: `InputError` for what is no number above 0."""
    return min(validate_count("limit", limit), MOST)


def remember(here: Here, content: str, speaker: str | None, kind: EpisodeKind = EpisodeKind.MESSAGE) -> Flow[Answer]:
    """Remember *content*; a task that is run again after a crash remembers it once."""
    given = EpisodeInput(
        content=content, kind=kind, speaker=speaker, thread=here.thread, source=SOURCE,
        source_id=_digest(f"{here.task}/{content}") if here.task else None,
    )  # fmt: skip
    added: AddResult
    [added] = yield from call("add_many", [given])
    return added_lines(added), added.model_dump(mode="json")


def forget(id_: str, reason: str = "") -> Flow[Answer]:
    """Forget the fact or the episode that a tool showed as *id_*; see `GraphMemory.privacy` for what goes with it."""
    kind, own = named(id_)
    forgotten: ForgetReceipt = yield from call("privacy.forget", **{kind: own}, by=AGENT, reason=reason)
    return forgotten_lines(f"{kind}:{own}", forgotten), forgotten.model_dump(mode="json")


def known(id_: str) -> Flow[None]:
    """Do nothing if there is a fact or an episode that a tool showed as *id_*. Errors: `InputError` else."""
    kind, own = named(id_)
    yield from call("privacy.forget", **{kind: own}, by=AGENT, dry_run=True)


def named(id_: str) -> tuple[str, str]:
    """Return ``fact`` or ``episode`` and the id of it that a tool showed as *id_*.

    Errors: `InputError` when it is no such id.
    """
    match = _ID.fullmatch(id_.strip())
    if match is None:
        raise InputError(f"{id_!r} is no id of this memory: give one that search_memory showed, such as 'fact:...'")
    return match[1], match[2]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
