"""A collection of memories in a graph: its namespaces, and where the memory with an id is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kg_memory.contrib.mem0.filters import Group, decide, owner_of
from kg_memory.contrib.mem0.scopes import Entries, Owner
from kg_memory.errors import InputError, NotFound
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.runtime.effects import call
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import BoundedCache
from kg_memory.validation import validate_name

PAGE = 1000
KEPT_PLACES = 100_000


@dataclass(frozen=True, slots=True)
class View:
    """The memories of `graph` whose namespaces begin with `collection`; `reranks` allows a cross-encoder."""

    graph: GraphMemory
    collection: str
    reranks: bool
    places: BoundedCache[str, Owner] = field(default_factory=lambda: BoundedCache(KEPT_PLACES, texts=False))
    """The owners of memories that were shown."""

    def call(self, path: str, owner: Owner, *args: object, **kwargs: object) -> Flow[Any]:
        """Call the verb of the graph at *path*, such as ``facts.get``, in the namespace of *owner*."""
        group, _, verb = path.rpartition(".")
        target = getattr(self.graph, group) if group else self.graph
        return (yield from call(target, verb, *args, namespace=owner.namespace, **kwargs))

    def owners(self) -> Flow[list[Owner]]:
        """Return the owners of all namespaces of the collection that hold something."""
        names: list[str] = yield from call(self.graph.data, "namespaces")
        owners = (Owner.of_namespace(self.collection, name) for name in sorted(names))
        return [owner for owner in owners if owner is not None]

    def matching(self, node: Group) -> Flow[list[Owner]]:
        """Return the owners who may have memories that pass *node*.

        A filter that names a user is looked up in one namespace, any other one in all of them.
        """
        owner = owner_of(node, self.collection)
        owners = [owner] if owner else (yield from self.owners())
        return [owner for owner in owners if decide(node, owner) is not False]

    def keep_places(self, ids: Iterable[str], owner: Owner) -> None:
        """Note where memories are that their callers may ask for next."""
        self.places.put(dict.fromkeys(ids, owner))

    def locate(self, memory_id: object) -> Flow[Owner | None]:
        """Return the owner of the memory with that id, which any namespace may have; None if there is none."""
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
        """Return the owner of the memory with that id. Errors: `NotFound`."""
        owner = yield from self.locate(memory_id)
        if owner is None:
            raise NotFound(f"there is no memory {memory_id!r:.100}, or it is deleted; search and get_all have the ids")
        return owner

    def current(self, owner: Owner, memory_id: str) -> Flow[Fact | None]:
        """Return the memory with that id as it is now: what took its place, if anything did; None if it is refuted."""
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
        """Return the facts that pass *where*, past ones too, each in its latest period."""
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
