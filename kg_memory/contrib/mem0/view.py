"""Finds, searches and lists Mem0 memories in the namespaces of a collection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kg_memory.contrib.mem0.filters import FilterGroup, evaluate_for, owner_of, to_where
from kg_memory.contrib.mem0.items import explain_score, is_live, is_shown, to_memory
from kg_memory.contrib.mem0.scopes import Entries, Item, Owner
from kg_memory.errors import InputError, NotFound
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import SOURCES, Fact
from kg_memory.models.results import Paged, SearchResults
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.caches import BoundedCache
from kg_memory.runtime.effects import call
from kg_memory.runtime.flow import Flow
from kg_memory.text.dates import find_times
from kg_memory.validation import validate_count, validate_name

PAGE = 1000
KEPT_PLACES = 100_000
TOP = 20
LISTED = 100
"""Facts on one page of a list."""
MOST = 1000
"""The most results of one search that are tested against filters which the database cannot apply."""
EVER = (None, None)
LONGEST = 2000
"""The most characters of a query that are searched for time expressions."""


@dataclass(frozen=True, slots=True)
class View:
    """Access to the Mem0 memories of one collection: the namespaces whose names begin with `collection`."""

    graph: GraphMemory
    collection: str
    reranks: bool
    places: BoundedCache[str, Owner] = field(default_factory=lambda: BoundedCache(KEPT_PLACES, texts=False))

    def call(self, path: str, owner: Owner, *args: object, **kwargs: object) -> Flow[Any]:
        """Call the `GraphMemory` method *path*, such as "facts.get", in the namespace of *owner*; return the result."""
        group, _, verb = path.rpartition(".")
        target = getattr(self.graph, group) if group else self.graph
        return (yield from call(target, verb, *args, namespace=owner.namespace, **kwargs))

    def owners(self) -> Flow[list[Owner]]:
        """Return the owners (users, agents or runs) of all non-empty namespaces of the collection."""
        names: list[str] = yield from call(self.graph.data, "namespaces")
        owners = (Owner.of_namespace(self.collection, name) for name in sorted(names))
        return [owner for owner in owners if owner is not None]

    def matching(self, filter_: FilterGroup) -> Flow[list[Owner]]:
        """Return the owners (users, agents or runs) who may have memories that match *filter_*."""
        owner = owner_of(filter_, self.collection)
        owners = [owner] if owner else (yield from self.owners())
        return [owner for owner in owners if evaluate_for(filter_, owner) is not False]

    def keep_places(self, ids: Iterable[str], owner: Owner) -> None:
        """Cache *owner* as the owner of the memories with the given *ids*, for later calls of `locate`."""
        self.places.put(dict.fromkeys(ids, owner))

    def locate(self, memory_id: object) -> Flow[Owner | None]:
        """Return the owner (user, agent or run) of the memory *memory_id*, or None."""
        id_ = validate_name("memory_id", memory_id, "the id of a memory")
        kept = self.places.get([id_]).get(id_)
        if kept is not None and (yield from self._has(kept, id_)):
            return kept
        for owner in (yield from self.owners()):
            if owner != kept and (yield from self._has(owner, id_)):
                self.keep_places([id_], owner)
                return owner
        return None

    def require(self, memory_id: object) -> Flow[Owner]:
        """Return the owner of the memory with the id *memory_id*. Errors: `NotFound` if it does not exist."""
        owner = yield from self.locate(memory_id)
        if owner is None:
            raise NotFound(f"memory {memory_id!r:.100} not found, or deleted; search and get_all return valid ids")
        return owner

    def current(self, owner: Owner, memory_id: str) -> Flow[Fact | None]:
        """Return the fact with the id *memory_id* or, if it was replaced, its latest replacement.

        Returns None if the fact was retracted.
        """
        fact: Fact | None = yield from self.call("facts.get", owner, memory_id)
        seen: set[str] = set()
        while fact is not None and fact.invalid_at is not None and fact.superseded_by:
            seen.add(fact.id)
            following = [id_ for id_ in fact.superseded_by if id_ not in seen]
            later: Fact | None = (yield from self.call("facts.get", owner, following[-1])) if following else None
            if later is None:
                break
            fact = later
        return fact

    def list_facts(self, owner: Owner, where: Entries) -> Flow[list[Fact]]:
        """Return all current and ended facts of *owner* that match the filter *where*.

        A fact that was true in several periods is returned once, with its latest period.
        """
        facts: dict[str, Fact] = {}
        after: str | None = None
        while True:
            page = yield from self.call("facts.list", owner, where=where, limit=PAGE, after=after)
            for fact in page:
                facts.setdefault(fact.id, fact)
            after = page.next
            if after is None:
                return list(facts.values())

    def _has(self, owner: Owner, memory_id: str) -> Flow[bool]:
        try:
            yield from self.call("facts.sources", owner, memory_id, limit=1)
        except InputError:
            return False
        return True


# Searches and lists


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The validated arguments that `search` and `get_all` have in common."""

    filter: FilterGroup
    top: int
    as_of: Time | None
    believed_at: Time | None
    show_expired: bool


def read_top(*counts: int | None) -> int:
    """Return the number of results to return: the first of *counts* that is not None, or 20.

    Errors: `InputError` if it is negative or no integer.
    """
    return validate_count("top_k", next((count for count in counts if count is not None), TOP), 0)


def _passing(view: View, owner: Owner, request: ReadRequest, facts: Iterable[Fact], *, past: bool) -> Flow[list[Fact]]:
    """Return the *facts* of *owner* that match the filter in *request* and have not expired or ended.

    With `show_expired`, expired facts pass too; with *past* or `as_of`, ended ones. Repeated facts are dropped.
    """
    now = datetime.now(UTC)
    passes = partial(is_shown, owner=owner, filter_=request.filter, show_expired=request.show_expired, today=now.date())
    latest: dict[str, Fact] = {}
    for fact in facts:
        latest.setdefault(fact.id, fact)
    passing: list[Fact] = []
    for fact in latest.values():
        if not (past or request.as_of is not None or is_live(fact, now)):
            continue
        shown = passes(fact)
        if not shown and len(fact.sources) == SOURCES:  # maybe a source beyond the first ones passes
            sources = yield from view.call("facts.sources", owner, fact.id, limit=MOST)
            shown = passes(fact.model_copy(update={"sources": tuple(sources)}))
        if shown:
            passing.append(fact)
    return passing


def search(view: View, query: str, request: ReadRequest, recipe: Recipe, *, explain: bool) -> Flow[list[Item]]:
    """Return the memories that best match *query* and pass the filter of *request*, as Mem0 dicts, best first."""
    items: list[Item] = []
    for owner in (yield from view.matching(request.filter)):
        items += yield from _search_in(view, owner, request, query, {"recipe": recipe, "explain": explain})
    return sorted(items, key=lambda item: -item["score"])[: request.top]


def _search_in(view: View, owner: Owner, request: ReadRequest, query: str, how: Entries) -> Flow[list[Item]]:
    """Return the memories of *owner* that best match *query*, as Mem0 dicts."""
    where = to_where(request.filter, owner)
    during = None if request.as_of is not None or any(find_times(query[:LONGEST], datetime.now(UTC))) else EVER
    times = {"as_of": request.as_of, "during": during, "believed_at": request.believed_at}
    size = max(2 * request.top, TOP)
    while True:
        # Repeated with a higher limit if too few results match the filter.
        results: SearchResults = yield from view.call("search", owner, query, limit=size, where=where, **how, **times)
        hits = () if results.abstains else results.facts
        past = results.time is not None and results.time.words is not None
        facts = yield from _passing(view, owner, request, hits, past=past)
        if len(facts) >= request.top or len({fact.id for fact in results.facts}) < size or size >= MOST:
            break
        size = min(4 * size, MOST)
    view.keep_places((fact.id for fact in facts), owner)
    items = [to_memory(fact, owner, fact.score or 0.0) for fact in facts[: request.top]]
    told = {each.id: explain_score(each) for each in results.explanations}
    return [{**item, "score_details": told.get(item["id"])} for item in items] if how["explain"] else items


def get_all(view: View, request: ReadRequest) -> Flow[list[Item]]:
    """Return the memories that match the filter in *request*, as Mem0 dicts.

    They are sorted by namespace and, within a namespace, from the latest to the earliest.
    """
    items: list[Item] = []
    for owner in (yield from view.matching(request.filter)):
        items += yield from _list_in(view, owner, request, request.top - len(items))
        if len(items) >= request.top:
            break
    return items


def _list_in(view: View, owner: Owner, request: ReadRequest, most: int) -> Flow[list[Item]]:
    """Return at most *most* memories in the namespace of *owner* that match the filter of *request*, latest first."""
    facts: list[Fact] = []
    seen: set[str] = set()
    times = {"as_of": request.as_of, "believed_at": request.believed_at}
    how = {"where": to_where(request.filter, owner), **times, "limit": LISTED}
    after: str | None = None
    while True:
        page: Paged[Fact] = yield from view.call("facts.list", owner, after=after, **how)
        new = [fact for fact in page if fact.id not in seen]
        facts += yield from _passing(view, owner, request, new, past=False)
        seen.update(fact.id for fact in new)
        after = page.next
        if after is None or len(facts) >= most:
            break
    view.keep_places((fact.id for fact in facts), owner)
    return [to_memory(fact, owner) for fact in facts[:most]]
