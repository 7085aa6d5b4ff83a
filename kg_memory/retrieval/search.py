"""Step 1, search: by words, by meaning and along the graph, over all four kinds (Zep 3.1).

Only what was so at the time that is asked about is found of facts. Words are ranked by Okapi BM25 over the postings in
the graph, meaning by cosine similarity. The graph is walked from the entities that the question names or the search is
to be near to, those that the other ways found, and those that the conversation last spoke of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kg_memory.errors import InputError
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.filters import Names, read_names
from kg_memory.models.filters import Filter, checked
from kg_memory.models.graph import KINDS, Kind
from kg_memory.retrieval.bm25 import by_words
from kg_memory.retrieval.names import name_keys
from kg_memory.retrieval.question_time import when
from kg_memory.retrieval.recipe import ByDistance, Recipe, recipe
from kg_memory.retrieval.records import Hits, RetrievalState, Scored
from kg_memory.retrieval.relevance import EVIDENCE, relevance
from kg_memory.retrieval.scope import Scope, sized
from kg_memory.retrieval.traversal import along_the_graph
from kg_memory.retrieval.vector import by_meaning
from kg_memory.runtime.effects import Vector, embed, in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import alias_key, replace_unstorable, thread_key
from kg_memory.text.tokenise import terms as tokens

LONGEST_QUESTION = 2000
MOST_TERMS = 256
DEPTH: Mapping[Kind, int] = {"facts": 60, "entities": 20, "communities": 20, "episodes": 60}
"""How many hits of each way of searching are fused, at least."""
DEEPEST = 1000
RECENT = 4
"""How many last episodes of the conversation are walked from (Zep 3.1: recent episodes as seeds)."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was looked up of a question before anything is searched for."""

    terms: list[str]
    vector: Vector | None
    counts: Mapping[Kind, int]
    lengths: Mapping[Kind, float | None]
    frequencies: list[dict[str, Any]]
    named: list[dict[str, Any]]
    recent: list[dict[str, Any]]
    names: Names


def search(state: RetrievalState, settings: Settings) -> Flow[dict[str, Any]]:  # noqa: ARG001 - steps have one shape
    """Find which time is asked about, and candidates of each kind; a question without a letter or digit has none.

    `named` are the entities that it names, where the recipe goes by them. The `relevance` of a search that does not go
    by words is not known.
    Errors: `InputError` for a time, recipe, filter or center that is none.
    """
    chosen, where = recipe(state.get("recipe")), checked(state.get("where"))
    timed = yield from when(state)
    found = yield from _found(chosen, where, {**state, **timed})  # type: ignore[typeddict-item]
    return {**timed, **found}


def _found(chosen: Recipe, where: Filter | None, state: RetrievalState) -> Flow[dict[str, Any]]:
    hits: dict[Kind, Hits] = {kind: {"words": [], "meaning": [], "graph": []} for kind in KINDS}
    nothing = {"hits": hits, "named": [], "relevance": 0.0}
    question = replace_unstorable(state["question"])[:LONGEST_QUESTION]
    if not any(char.isalnum() for char in question):
        return nothing
    looked = yield from _looked_up(question, chosen, where, state)
    if looked is None:
        return nothing  # nothing was ever stored here
    scopes = yield from _scopes(looked, chosen, where, state)
    found = yield from in_step((*_by_words(scopes, looked, chosen), *_by_meaning(scopes, looked, chosen)))
    for kind, words, meaning in zip(scopes, found[: len(scopes)], found[len(scopes) :], strict=True):
        hits[kind]["words"], hits[kind]["meaning"] = words, meaning
    yield from along_the_graph(hits, chosen, scopes, looked.named, looked.recent, looked.counts["episodes"])
    goes_by_words = any(chosen.weights(kind).words for kind in EVIDENCE)
    likely = relevance(hits, looked.frequencies, looked.terms, looked.counts) if goes_by_words else None
    return {"hits": hits, "named": [row["id"] for row in looked.named], "relevance": likely}


def _looked_up(question: str, chosen: Recipe, where: Filter | None, state: RetrievalState) -> Flow[Looked | None]:
    """Embed the question, and look its words and names up; ``None`` where nothing was ever stored."""
    terms = list(dict.fromkeys(tokens(question)))[:MOST_TERMS]
    center = state.get("center")
    keys = name_keys(question) if _goes_by_names(chosen) else []
    keys += [alias_key(replace_unstorable(center))] if center else []
    means = any(chosen.weights(kind).meaning for kind in KINDS)
    worded = [kind for kind in KINDS if chosen.weights(kind).words]
    rows, named, recent, names = yield from in_step(
        (read(cypher.word_statistics(worded), terms=terms), _named(keys), _recent(state.get("thread")), _names(where))
    )
    if not rows:
        return None
    [row] = rows
    if center and not any(alias_key(replace_unstorable(center)) in each["keys"] for each in named):
        raise InputError(
            f"the center is {center!r}, and nothing here is called that: give a name that `entities` lists"
        )
    vectors = yield from embed([question] if means else [], role="query")
    return Looked(
        terms,
        vectors[0] if vectors else None,
        counts_of(row),
        row["lengths"],
        frequencies_of(row),
        named,
        recent,
        names,
    )


def counts_of(row: Mapping[str, Any]) -> dict[Kind, int]:
    """Return how many there are of each kind, by the row of `search_cypher.looked_up`."""
    return {kind: row["labels"].get(label, 0) for kind, label in cypher.LABELS.items()}


def frequencies_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row a term, with in how many of each kind it is, by the row of `search_cypher.looked_up`."""
    found: dict[str, dict[str, Any]] = {}
    for kind, pairs in row["often"].items():
        for term, often in pairs:
            found.setdefault(term, {"term": term, **dict.fromkeys(row["often"], 0)})[kind] = often
    return list(found.values())


def _goes_by_names(chosen: Recipe) -> bool:
    """Tell whether it matters which entities a question names: they are walked from, or to be near to."""
    return any(chosen.weights(kind).graph for kind in KINDS) or any(
        isinstance(each, ByDistance) for each in chosen.rerank
    )


def _named(keys: list[str]) -> Flow[list[dict[str, Any]]]:
    rows = (yield from read(cypher.NAMED_ENTITIES, keys=keys)) if keys else []
    return rows


def _recent(thread: str | None) -> Flow[list[dict[str, Any]]]:
    if not thread:
        return []
    rows = yield from read(cypher.RECENT_ENTITIES, thread_key=thread_key(replace_unstorable(thread)), limit=RECENT)
    return rows


def _names(where: Filter | None) -> Flow[Names]:
    if where is None:
        return {}
    names = yield from read_names(where)
    return names


def _scopes(looked: Looked, chosen: Recipe, where: Filter | None, state: RetrievalState) -> Flow[dict[Kind, Scope]]:
    """Return what may be found of the kinds that count."""
    scopes = [
        Scope(kind, looked.counts[kind], _wanted(kind, state), state["instants"], where, looked.names)
        for kind in KINDS
        if kind in chosen.kinds
    ]
    found = yield from in_step(sized(scope) for scope in scopes)
    return {scope.kind: scope for scope in found}


def _wanted(kind: Kind, state: RetrievalState) -> int:
    return min(max(DEPTH[kind], state.get("limit") or 0), DEEPEST)


def _by_words(scopes: Mapping[Kind, Scope], looked: Looked, chosen: Recipe) -> Iterable[Flow[list[Scored]]]:
    for kind, scope in scopes.items():
        if chosen.weights(kind).words:
            yield by_words(scope, looked.frequencies, looked.counts[kind], looked.lengths[kind])
        else:
            yield _none()


def _by_meaning(scopes: Mapping[Kind, Scope], looked: Looked, chosen: Recipe) -> Iterable[Flow[list[Scored]]]:
    for kind, scope in scopes.items():
        if looked.vector is not None and chosen.weights(kind).meaning:
            yield by_meaning(scope, looked.vector)
        else:
            yield _none()


def _none() -> Flow[list[Scored]]:
    yield from ()
    return []
