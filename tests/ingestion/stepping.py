"""Steps by hand: a flow's effects answered from a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kg_memory.runtime.effects import Now
from kg_memory.runtime.flow import Every, Flow

NOW = 1_704_067_200_000_000
"""1 January 2024: when episodes are said here, and where the clock stands still."""


def ended(flow: Flow[Any]) -> Any:
    """Return what *flow* returns without yielding anything."""
    try:
        effect = next(flow)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"it yielded {effect!r}")


def answered(flow: Flow[Any], *answers: Any) -> tuple[Any, list[Any]]:
    """Return what *flow* returns when its effects are answered by *answers* in turn, and those effects.

    Flows that may run side by side are run one after the other. Who asks the time is told `NOW`.
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
    """Return the state of an episode as the steps after `receive` find it."""
    episode = {
        "id": "e", "kind": "message", "content": content, "speaker": "Ann", "at": NOW,
        "at_iso": "2024-01-01T00:00Z", "offset": 0, "trust": 1.0, **given.pop("episode", {}),
    }  # fmt: skip
    pieces = given.pop("pieces", [{"content": content, "start": 0}])
    return {
        "episode": episode,
        "pieces": pieces,
        "previous": [],
        "namespace": "n",
        "entities": [],
        "facts": [],
        "predicates": [],
        "verdicts": [],
        "rejudged": [],
        "reopened": [],
        "based_on": {},
        **given,
    }


def entity(name: str, type_: str = "Person", *, known: bool = False, called: Sequence[str] = ()) -> dict[str, Any]:
    """Return an entity as `resolve` leaves it."""
    return {
        "name": name, "type": type_, "key": f"key {name}", "id": f"id {name}", "known": known, "renamed": False,
        "aliases": [], "called": list(called) or [name],
    }  # fmt: skip
