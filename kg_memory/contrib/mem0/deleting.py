"""Delete memories for good, with the messages that state them."""

from __future__ import annotations

from kg_memory.contrib.mem0.filters import EVERYTHING, AllOf, Node, to_where
from kg_memory.contrib.mem0.scopes import Entries, Owner
from kg_memory.contrib.mem0.view import PAGE, View
from kg_memory.errors import NotFound
from kg_memory.models.graph import Episode, Fact
from kg_memory.models.operations import ForgetReceipt
from kg_memory.runtime.flow import Flow


def delete(view: View, memory_id: str) -> Flow[list[str]]:
    """Forget the memory with that id and what it took the place of; return the ids of all memories that went.

    Errors: `NotFound`.
    """
    owner = yield from view.require(memory_id)
    fact = yield from view.current(owner, memory_id)
    chain = [memory_id] if fact is None else (yield from _find_chain(view, owner, fact))
    deleted: list[str] = []
    for id_ in chain:
        deleted += yield from _forget(view, owner, {"fact": id_}, search=id_ == chain[-1])
    return deleted


def _find_chain(view: View, owner: Owner, fact: Fact) -> Flow[list[str]]:
    """Return the ids of *fact* and of all that it took the place of, the latest last."""
    evolution: list[Fact] = yield from view.call("facts.evolution", owner, fact.id)
    before: dict[str, set[str]] = {}
    for period in evolution:
        before.setdefault(period.id, set()).update(period.supersedes)
    chain, edge = [fact.id], [fact.id]
    while edge:
        edge = [id_ for last in edge for id_ in sorted(before.get(last, ())) if id_ not in chain]
        chain += edge
    return list(dict.fromkeys(reversed(chain)))


def delete_all(view: View, node: AllOf) -> Flow[None]:
    """Forget all that the namespaces have of what *node* names."""
    for owner, rest in (yield from view.matching(node)):
        if rest == EVERYTHING:
            yield from _forget(view, owner, {"everything": True}, search=True)
        else:
            yield from _forget_matching(view, owner, rest)


def reset(view: View) -> Flow[None]:
    """Forget all memories of the collection."""
    for owner in (yield from view.owners()):
        yield from _forget(view, owner, {"everything": True}, search=True)


def _forget_matching(view: View, owner: Owner, node: Node) -> Flow[None]:
    """Forget the messages whose labels pass *node*."""
    where = to_where(node)
    while True:
        episodes: list[Episode] = yield from view.call("episodes.list", owner, where=where, limit=PAGE)
        for place, episode in enumerate(episodes, start=1):
            yield from _forget(view, owner, {"episode": episode.id}, search=place == len(episodes))
        if len(episodes) < PAGE:
            return


def _forget(view: View, owner: Owner, target: Entries, *, search: bool) -> Flow[list[str]]:
    """Forget *target*, unless it went with another one already; return the ids of the facts that went."""
    try:
        receipt: ForgetReceipt = yield from view.call("privacy.forget", owner, **target, search=search)
    except NotFound:
        return []
    return list(receipt.facts)
