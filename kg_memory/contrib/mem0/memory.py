"""`Memory` and `AsyncMemory`: Mem0's methods, implemented with a `GraphMemory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, Self

from kg_memory.adapters.namespace import validate_memory
from kg_memory.contrib.mem0 import changing, view
from kg_memory.contrib.mem0.changing import UNSET, AddRequest, add, update
from kg_memory.contrib.mem0.config import COLLECTION, open_config
from kg_memory.contrib.mem0.filters import parse_filters
from kg_memory.contrib.mem0.items import to_history, to_memory
from kg_memory.contrib.mem0.scopes import Item, Owner, read_collection, read_ids
from kg_memory.contrib.mem0.view import ReadRequest, View, read_top
from kg_memory.errors import InputError
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.results import FactExplanation
from kg_memory.retrieval.recipe import FACTS
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import Closing
from kg_memory.validation import validate_name, validate_number

Results = dict[str, list[Item]]


class Verbs(Closing):
    """The methods that `Memory` and `AsyncMemory` share: Mem0's interface on top of a `GraphMemory`.

    `graph` is that `GraphMemory`, for calls that Mem0 lacks; `namespace_of` returns the namespace to pass to it.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, graph: GraphMemory | None = None, collection: str = COLLECTION
    ) -> None:
        """Open the memory that the Mem0 configuration *config* describes, or use *graph*, an open memory.

        *collection* is the first part of the names of all namespaces. Errors: `SettingsError` for an invalid
        configuration.
        """
        if graph is None:
            self.view = open_config(config)
        else:
            self.view = View(validate_memory(graph), read_collection(collection), reranks=True)
        self.graph = self.view.graph

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the memory that the Mem0 configuration *config_dict* describes; see `docs/mem0.md`.

        Errors: `SettingsError` for an invalid configuration.
        """
        return cls(config_dict)

    def _close(self) -> Flow[None]:
        """Disconnect from the database."""
        yield from call(self.graph, "close")

    close, aclose = both(_close)

    def namespace_of(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> str:
        """Return the namespace in which `graph` stores the memories of a user, or of an agent or run without a user.

        ``namespace_of(user_id="ann") -> "mem0/user/ann"``
        """
        ids = read_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        return Owner.of_ids(self.view.collection, ids).namespace

    def chat(self, query: str) -> NoReturn:
        """Raise `NotImplementedError`, as Mem0 does."""
        raise NotImplementedError(f"chat is not implemented; pass the results of search({query!r:.100}) to your model")


# The methods as flows, which `both` turns into sync and async methods


def _add(
    self: Verbs,
    messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    user_id: str | int | None = None,
    agent_id: str | int | None = None,
    run_id: str | int | None = None,
    app_id: str | int | None = None,
    metadata: Mapping[str, Any] | None = None,
    infer: bool = True,
    memory_type: str | None = None,
    prompt: str | None = None,
    timestamp: datetime | str | float | None = None,
    expiration_date: object = None,
) -> Flow[Results]:
    """Store *messages*, and return an event (ADD, UPDATE, DELETE or NOOP) for each memory that they changed.

    A message is a text or ``{"role": "user", "content": "..."}``. *timestamp* is when it was written (default: now).
    With *infer* false, or *memory_type* "procedural_memory", it is stored verbatim. *expiration_date* is the last day
    on which it is shown, such as "2026-12-31". Errors: `InputError`; `ModelError` if the model cannot read a stored
    message.
    """
    if prompt is not None:
        raise InputError("prompt is not supported; set custom_instructions in the config, which apply to all messages")
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id, "app_id": app_id}
    request = AddRequest.of_arguments(ids, metadata, timestamp, expiration_date, memory_type)
    return {"results": (yield from add(self.view, messages, request, infer=infer))}


def _search(
    self: Verbs,
    query: str,
    *,
    user_id: str | int | None = None,
    agent_id: str | int | None = None,
    run_id: str | int | None = None,
    limit: int | None = None,
    top_k: int | None = None,
    filters: Mapping[str, Any] | None = None,
    threshold: float | None = None,
    rerank: bool = False,
    explain: bool = False,
    reference_date: Time | None = None,
    show_expired: bool = False,
    as_of: Time | None = None,
    believed_at: Time | None = None,
) -> Flow[Results]:
    """Return the memories that match *query*, best first: ``{"results": [{"memory": "...", "score": 1.0}, ...]}``.

    Scores are relative to the best match; *threshold* is the lowest to return. *as_of* (or *reference_date*) selects
    memories that were true then, *believed_at* memories that were believed then. *top_k* (or *limit*) is the maximum
    number, 20 by default. *rerank* uses the reranker of the config. *explain* adds score details. Errors: `InputError`,
    also without a user, agent or run id.
    """
    validate_name("query", query, "some words to look for")
    least = 0.0 if threshold is None else validate_number("threshold", threshold, 0, 1)
    filter_ = parse_filters(filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
    time = reference_date if as_of is None else as_of
    request = ReadRequest(filter_, read_top(top_k, limit), time, believed_at, show_expired)
    recipe = FACTS.with_(rerankers=[{"by": "cross_encoder"}]) if rerank and self.view.reranks else FACTS
    items = yield from view.search(self.view, query, request, recipe, explain=explain)
    return {"results": [item for item in items if item["score"] >= least]}


def _get_all(
    self: Verbs,
    *,
    user_id: str | int | None = None,
    agent_id: str | int | None = None,
    run_id: str | int | None = None,
    limit: int | None = None,
    top_k: int | None = None,
    filters: Mapping[str, Any] | None = None,
    show_expired: bool = False,
    as_of: Time | None = None,
    believed_at: Time | None = None,
) -> Flow[Results]:
    """Return the memories that match the ids and *filters*, latest first: ``{"results": [...]}``.

    *top_k* (or *limit*) is the maximum number, 20 by default. For *as_of* and *believed_at* see `search`. Errors:
    `InputError`, also without a user, agent or run id.
    """
    filter_ = parse_filters(filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
    request = ReadRequest(filter_, read_top(top_k, limit), as_of, believed_at, show_expired)
    return {"results": (yield from view.get_all(self.view, request))}


def _get(self: Verbs, memory_id: str) -> Flow[Item | None]:
    """Return the memory with the id *memory_id* or, if it was replaced, its latest replacement.

    Returns None if it does not exist or was retracted.
    """
    owner = yield from self.view.locate(memory_id)
    if owner is None:
        return None
    fact = yield from self.view.current(owner, memory_id)
    return None if fact is None else to_memory(fact, owner)


def _history(self: Verbs, memory_id: str) -> Flow[list[Item]]:
    """Return the ADD, UPDATE and DELETE events of a memory, earliest first; an empty list if it was deleted."""
    owner = yield from self.view.locate(memory_id)
    if owner is None:
        return []
    explained: FactExplanation = yield from self.view.call("facts.explain", owner, memory_id)
    return to_history(memory_id, explained)


def _update(
    self: Verbs,
    memory_id: str,
    text: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    expiration_date: object = UNSET,
    data: str | None = None,
) -> Flow[dict[str, str]]:
    """Replace the text of a memory by *text* (alias *data*); the previous text stays in its history.

    *metadata* is merged into the existing metadata. *expiration_date* is the new last day on which the memory is shown.
    Errors: `InputError` without a text, or if the memory does not exist or was retracted.
    """
    yield from update(self.view, memory_id, data if text is None else text, metadata, expiration_date)
    return {"message": "Memory updated successfully!"}


def _delete(self: Verbs, memory_id: str) -> Flow[Item]:
    """Permanently delete a memory and the messages that state it.

    "deleted" in the result lists the ids of all deleted memories, including other memories from these messages. Errors:
    `InputError` if the memory does not exist.
    """
    return {"message": "Memory deleted successfully!", "deleted": (yield from changing.delete(self.view, memory_id))}


def _delete_all(
    self: Verbs, user_id: str | int | None = None, agent_id: str | int | None = None, run_id: str | int | None = None
) -> Flow[dict[str, str]]:
    """Permanently delete the memories that have all of the given ids. Errors: `InputError` if no id is given."""
    filter_ = parse_filters(None, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
    yield from changing.delete_all(self.view, filter_)
    return {"message": "Memories deleted successfully!"}


def _reset(self: Verbs) -> Flow[None]:
    """Permanently delete all memories of the collection."""
    return changing.reset(self.view)


class Memory(Verbs):
    """Drop-in replacement of Mem0's ``Memory`` that stores memories in a temporal graph."""

    add = both(_add)[0]
    search = both(_search)[0]
    get_all = both(_get_all)[0]
    get = both(_get)[0]
    history = both(_history)[0]
    update = both(_update)[0]
    delete = both(_delete)[0]
    delete_all = both(_delete_all)[0]
    reset = both(_reset)[0]


class AsyncMemory(Verbs):
    """Drop-in replacement of Mem0's ``AsyncMemory`` that stores memories in a temporal graph."""

    add = both(_add)[1]
    search = both(_search)[1]
    get_all = both(_get_all)[1]
    get = both(_get)[1]
    history = both(_history)[1]
    update = both(_update)[1]
    delete = both(_delete)[1]
    delete_all = both(_delete_all)[1]
    reset = both(_reset)[1]
