"""Run single steps as nodes do, from plain states to plain updates; a list has the answers to the flow's effects."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from kg_memory.ingestion.graph import STEPS
from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import TypedStep, decode, encode, on_values
from kg_memory.runtime.effects import Now
from kg_memory.runtime.flow import Every, Flow
from kg_memory.settings import Settings

NOW = 1_704_067_200_000_000
"""1 January 2024: the time of the episodes, and of the clock."""


def as_node(step: TypedStep) -> Callable[[Any, Settings], Flow[Any]]:
    """Return *step* as LangGraph runs it, from JSON to JSON."""

    def run(state: Any, settings: Settings) -> Flow[Any]:
        return encode((yield from on_values(step)(decode(state), settings)))

    return run


receive, extract, reflect, resolve, facts, date, dedupe, _, save, summarise = map(as_node, STEPS)


def ended(flow: Flow[Any]) -> Any:
    """Return what *flow* returns without yielding anything."""
    try:
        effect = next(flow)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"it yielded {effect!r}")


def answered(flow: Flow[Any], *answers: Any) -> tuple[Any, list[Any]]:
    """Return what *flow* returns when its effects are answered by *answers* in turn, and those effects.

    Parallel flows are run one after the other. The effect `Now` is answered with `NOW`.
    """
    left, effects = list(answers), []

    def drive(inner: Flow[Any]) -> Any:
        try:
            effect = next(inner)
            while True:
                if isinstance(effect, Every):
                    effect = inner.send([drive(each) for each in effect.flows])
                elif isinstance(effect, Now):
                    effect = inner.send(NOW)
                else:
                    effects.append(effect)
                    assert left, f"no answer for {effect!r}"
                    effect = inner.send(left.pop(0))
        except StopIteration as stop:
            return stop.value

    result = drive(flow)
    assert not left, "more answers than effects"
    return result, effects


def state(content: str = "I live in Oslo.", **given: Any) -> dict[str, Any]:
    """Return the state of an episode as `receive` returns it."""
    episode = {
        "id": "e", "kind": "message", "content": content, "speaker": "Ann", "at": NOW,
        "at_iso": "2024-01-01T00:00Z", "offset": 0, "trust": 1.0, **given.pop("episode", {}),
    }  # fmt: skip
    pieces = given.pop("pieces", [{"content": content, "start": 0}])
    grounds = {"revisions": {}, "histories": []}
    return {"episode": episode, "pieces": pieces, "previous": [], "namespace": "n", "grounds": grounds, **given}


def entity(name: str, type_: str = "Person", *, known: bool = False, called: Sequence[str] = ()) -> dict[str, Any]:
    """Return an entity as `resolve` returns it."""
    return {
        "name": name, "type": type_, "key": f"key {name}", "id": f"id {name}", "is_new": not known, "renamed": False,
        "aliases": [], "called": list(called) or [name],
    }  # fmt: skip


def fact(id_: str = "f", objects: Sequence[int] = (1,), **given: Any) -> dict[str, Any]:
    """Return a fact as `facts` returns it; its subject is the first entity."""
    stated = StatedFact(
        id=id_, subject=0, subject_id="id Ann", predicate="LIVES_IN", wording="LIVES_IN", single_valued=True,
        declared=False, family="residence", objects=tuple(objects), object_ids=tuple(f"id {place}" for place in objects),
        sentence=f"Ann lives in {id_}.", start=0, end=15, quoted=True, stated_from=None, stated_until=None,
        stated_at=NOW, confidence=1.0, edge_type="semantic",
    )  # fmt: skip
    return {**encode(asdict(stated)), **given}
