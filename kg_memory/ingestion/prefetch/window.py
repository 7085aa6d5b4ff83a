"""Which episodes are read side by side: some that were received one after another, purely."""

from __future__ import annotations

from kg_memory.ingestion.records import IngestionState

AHEAD = 2
"""For how many rounds of questions a window has episodes: while the slow ones of one are answered, the next begins."""


class Window:
    """Received episodes that wait for each other, in their order of arrival."""

    def __init__(self, parallel: int) -> None:
        self._size = AHEAD * parallel
        self._states: list[IngestionState] = []

    def holds(self, state: IngestionState) -> bool:
        """Tell whether the same episode is there already: it is to be known before it comes again."""
        return any(each["episode"]["id"] == state["episode"]["id"] for each in self._states)

    def is_full_for(self, state: IngestionState) -> bool:
        """Tell whether the next episode is not to be read with these: a long one has pieces to be read side by side."""
        is_long = any(len(each["pieces"]) > 1 for each in (state, *self._states))
        return len(self._states) >= self._size or (is_long and bool(self._states))

    def put(self, state: IngestionState) -> None:
        """Add the next episode."""
        self._states.append(state)

    def take(self) -> list[IngestionState]:
        """Return the episodes, and begin anew."""
        states, self._states = self._states, []
        return states
