"""What became of episodes that were read again, told on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kg_memory.cli.screen import Screen
from kg_memory.models.graph import AddResult


def told(added: Sequence[AddResult], screen: Screen, said: Callable[[int, int], str]) -> int:
    """Tell what is *said* of how many were read and how many failed, and of these why; return 1 if any failed."""
    failed = [each for each in added if each.problem]
    if screen.as_json:
        screen.json([each.model_dump(mode="json") for each in added])
        return bool(failed)
    screen.line(said(len(added) - len(failed), len(failed)))
    for each in failed:
        screen.note(f"{each.episode}: {each.problem}")
    return bool(failed)
