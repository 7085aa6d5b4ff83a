"""Why each thing stands where it does, and why what is left out is, purely."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from kg_memory.models.context import Context
from kg_memory.models.graph import KINDS, Explanation, Hit, Kind, Value
from kg_memory.retrieval.context.lines import id_of, text_of
from kg_memory.retrieval.recipe import WAYS
from kg_memory.retrieval.records import DEFAULT_LIMIT, RetrievalState

FURTHER = 50
"""How much of each kind that is not among the first is told of, at most."""
GONE: Mapping[Kind, str] = {
    "facts": "it does not hold at the time that is asked about, or was not believed then",
    "entities": "not known then, or deleted meanwhile",
    "communities": "deleted meanwhile",
    "episodes": "not known then, or deleted meanwhile",
}
"""Why there is nothing to tell of what a search found a moment ago."""
Texts = Mapping[Kind, Mapping[str, str]]
"""What is stored under each id says."""


def limit_of(state: RetrievalState) -> int:
    """Return how many of each kind are served, at most."""
    limit = state.get("limit")
    return DEFAULT_LIMIT if limit is None else max(limit, 0)


def explained(context: Context, texts: Texts, state: RetrievalState) -> tuple[Explanation, ...]:
    """Return why all that *context* found is in its places, and why other candidates are not; *texts* are of both."""
    return tuple(
        each for kind in KINDS for each in (*_of_found(kind, context, state), *_of_others(kind, context, texts, state))
    )


def _of_found(kind: Kind, context: Context, state: RetrievalState) -> Iterator[Explanation]:
    """Yield what explains the things found, in their order; each period of a fact has a line of its own."""
    lines: defaultdict[str, deque[str]] = defaultdict(deque)
    for line in context.lines:
        if line.kind == kind:
            lines[line.id].append(line.text)
    reasons = {each.id: each.left_out for each in context.left_out if each.kind == kind}
    for place, value in enumerate(_found(kind, context), start=1):
        id_ = id_of(value)
        if lines[id_]:
            yield _why(kind, id_, lines[id_].popleft(), state).model_copy(update={"place": place})
        else:
            left_out = {"place": place, "left_out": reasons.get(id_)}
            yield _why(kind, id_, text_of(value), state).model_copy(update=left_out)


def _of_others(kind: Kind, context: Context, texts: Texts, state: RetrievalState) -> Iterator[Explanation]:
    """Yield what explains the candidates that were not served, best first."""
    limit = limit_of(state)
    served = {id_of(each) for each in _found(kind, context)}
    others = (id_ for id_, _ in state["ranked"].get(kind, [])[: limit + FURTHER] if id_ not in served)
    for id_ in others:
        reason = f"not among the first {limit}" if id_ in texts[kind] else GONE[kind]
        yield _why(kind, id_, texts[kind].get(id_, ""), state).model_copy(update={"left_out": reason})


def _why(kind: Kind, id_: str, text: str, state: RetrievalState) -> Explanation:
    """Return which searches found it at which rank, and what its score was after each step."""
    scores = state.get("parts", {}).get(kind, {}).get(id_, [])
    return Explanation(
        kind=kind, id=id_, text=text, hits=tuple(_hits(kind, id_, state)), scores=tuple(map(tuple, scores))
    )


def _hits(kind: Kind, id_: str, state: RetrievalState) -> Iterator[Hit]:
    if kind in state["hits"]:
        for way in WAYS:
            for rank, (found, score) in enumerate(state["hits"][kind][way], start=1):
                if found == id_:
                    yield Hit(way=way, rank=rank, score=score)


def _found(kind: Kind, context: Context) -> Sequence[Value]:
    found: Sequence[Value] = getattr(context.found, kind)
    return found
