"""Search and list memories, in one namespace or in all that a filter allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from kg_memory.contrib.mem0.filters import Group, parse_filters, to_where
from kg_memory.contrib.mem0.items import explain_score, is_live, is_shown, to_item
from kg_memory.contrib.mem0.scopes import Entries, Item, Owner, read_ids
from kg_memory.contrib.mem0.view import View
from kg_memory.memory.listing import Time
from kg_memory.models.graph import SOURCES, Fact
from kg_memory.models.results import Paged, SearchResults
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.flow import Flow
from kg_memory.text.dates import find_times
from kg_memory.validation import validate_count

TOP = 20
PAGE = 100
MOST = 1000
"""The most results that one search looks through for some that pass what ours cannot test."""
EVER = (None, None)
LONGEST = 2000
"""Characters of a question in which words of time are looked for."""


@dataclass(frozen=True, slots=True)
class Look:
    """The arguments that searches and lists share."""

    node: Group
    top: int
    as_of: Time | None
    believed_at: Time | None
    show_expired: bool

    @classmethod
    def of_arguments(
        cls, ids: Mapping[str, object], filters: Entries | None, counts: Iterable[int | None],
        times: tuple[Time | None, Time | None], *, show_expired: bool,
    ) -> Look:  # fmt: skip
        """Return the look for the arguments of a call. Errors: `InputError`."""
        top = next((count for count in counts if count is not None), TOP)
        as_of, believed_at = times
        node = parse_filters(filters, read_ids(ids))
        return cls(node, validate_count("top_k", top, 0), as_of, believed_at, show_expired)


def _passing(view: View, owner: Owner, look: Look, facts: Iterable[Fact], *, past: bool = False) -> Flow[list[Fact]]:
    """Return those of *facts* that are to be shown, each once, in its latest period; with *past* ended ones too."""
    now = datetime.now(UTC)
    passes = partial(is_shown, owner=owner, node=look.node, show_expired=look.show_expired, today=now.date())
    latest: dict[str, Fact] = {}
    for fact in facts:
        latest.setdefault(fact.id, fact)
    passing: list[Fact] = []
    for fact in latest.values():
        if not (past or look.as_of is not None or is_live(fact, now)):
            continue
        shown = passes(fact)
        if not shown and len(fact.sources) == SOURCES:  # it may have more, of which one passes
            sources = yield from view.call("facts.sources", owner, fact.id, limit=MOST)
            shown = passes(fact.model_copy(update={"sources": tuple(sources)}))
        if shown:
            passing.append(fact)
    return passing


def search(view: View, query: str, look: Look, recipe: Recipe, *, explain: bool) -> Flow[list[Item]]:
    """Return the best memories of all namespaces that *look* allows."""
    items: list[Item] = []
    if look.top:
        for owner in (yield from view.matching(look.node)):
            items += yield from _search_in(view, owner, look, query, {"recipe": recipe, "explain": explain})
    items.sort(key=lambda item: -item["score"])
    return items[: look.top]


def _search_in(view: View, owner: Owner, look: Look, query: str, how: Entries) -> Flow[list[Item]]:
    """Search a namespace, again for more results while too few of them are to be shown."""
    where = to_where(look.node, owner)
    names_time = any(find_times(query[:LONGEST], datetime.now(UTC)))
    during = None if names_time or look.as_of is not None else EVER
    times = {"as_of": look.as_of, "during": during, "believed_at": look.believed_at}
    size = max(2 * look.top, TOP)
    while True:
        results: SearchResults = yield from view.call("search", owner, query, limit=size, where=where, **how, **times)
        hits = () if results.abstains else results.facts
        past = results.time is not None and results.time.words is not None
        facts = yield from _passing(view, owner, look, hits, past=past)
        seen = len({fact.id for fact in results.facts})
        if len(facts) >= look.top or seen < size or size >= MOST:
            break
        size = min(4 * size, MOST)
    view.keep_places((fact.id for fact in facts), owner)
    items = [to_item(fact, owner, fact.score or 0.0) for fact in facts[: look.top]]
    told = {each.id: explain_score(each) for each in results.explanations}
    return [{**item, "score_details": told.get(item["id"])} for item in items] if how["explain"] else items


def get_all(view: View, look: Look) -> Flow[list[Item]]:
    """Return the memories of all namespaces that *look* allows, those of each latest first."""
    items: list[Item] = []
    if look.top:
        for owner in (yield from view.matching(look.node)):
            items += yield from _list_in(view, owner, look, look.top - len(items))
            if len(items) >= look.top:
                break
    return items


def _list_in(view: View, owner: Owner, look: Look, most: int) -> Flow[list[Item]]:
    facts: dict[str, Fact] = {}
    seen: set[str] = set()
    how = {"where": to_where(look.node, owner), "as_of": look.as_of, "believed_at": look.believed_at, "limit": PAGE}
    after: str | None = None
    while True:
        page: Paged[Fact] = yield from view.call("facts.list", owner, after=after, **how)
        new = [fact for fact in page if fact.id not in seen]
        for fact in (yield from _passing(view, owner, look, new)):
            facts[fact.id] = fact
        seen.update(fact.id for fact in new)
        after = page.next
        if after is None or len(facts) >= most:
            break
    view.keep_places(facts, owner)
    return [to_item(fact, owner) for fact in islice(facts.values(), most)]


def get(view: View, memory_id: str) -> Flow[Item | None]:
    """Return the memory with that id, or what took its place; None if there is none, or it is refuted."""
    owner = yield from view.locate(memory_id)
    if owner is None:
        return None
    fact = yield from view.current(owner, memory_id)
    return None if fact is None else to_item(fact, owner)
