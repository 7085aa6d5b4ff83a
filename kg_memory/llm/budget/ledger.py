"""What this process knows of what was spent: what the graphs tell, and what is not yet written there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

from kg_memory.models.budget import DAY
from kg_memory.models.usage import Usage
from kg_memory.runtime.lifecycle import renew_in_children

ACCOUNTS = 10_000
"""How many namespaces' accounts are kept, those used last."""
READINGS = 1_000
"""How many episodes' readings are kept of a namespace, likewise."""
NOTHING = Usage()
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent of a budget: on this `day`, and in the `namespace` as far as the budget counts it."""

    day: Usage = NOTHING
    namespace: Usage = NOTHING


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading an episode took so far, with what is set aside for it, and what must follow for it to be of use."""

    spent: Usage = NOTHING
    to_come: Usage = NOTHING


class Account:
    """One namespace's ledger as the runs of this process see it; threads share it.

    What the graph told counts from the instant at which it was asked; what was written after that counts in addition,
    and so does what is on its way: what was asked and not yet written, and what is set aside for questions under way.
    """

    def __init__(self) -> None:
        self._told = Spent()
        self._told_at = _NEVER
        self._written: list[tuple[int, Usage]] = []
        self._readings: OrderedDict[str, Reading] = OrderedDict()
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds, and nothing of what the parent is to write."""
        self._lock = Lock()
        self._unwritten = self._aside = NOTHING

    def told_at(self) -> int:
        """Return when the graph was asked last, in microseconds; long ago if it never was."""
        return self._told_at

    def learn(self, told: Spent, at: int) -> None:
        """Note what the graph told that was asked at that instant; what was written before is in it."""
        with self._lock:
            if at > self._told_at:
                self._told, self._told_at = told, at
                self._written = [each for each in self._written if each[0] >= at]

    def spend(self, usage: Usage, episode: str | None) -> None:
        """Count what the model took, for an *episode* or for all."""
        with self._lock:
            self._unwritten += usage
            self._add(usage, episode)

    def take(self) -> Usage:
        """Return what is not yet written, to write it: it is counted until `write` or `put_back`."""
        with self._lock:
            taken, self._unwritten = self._unwritten, NOTHING
            self._aside += taken
            return taken

    def write(self, taken: Usage, at: int) -> None:
        """Note that what was *taken* is written, at that instant at the latest."""
        with self._lock:
            self._aside -= taken
            if self._told_at != _NEVER:  # else nobody counts
                self._written.append((at, taken))

    def put_back(self, taken: Usage) -> None:
        """Note that what was *taken* was not written."""
        with self._lock:
            self._aside -= taken
            self._unwritten += taken

    def set_aside(self, cost: Usage, episode: str | None, at: int, check: Callable[[Spent, Reading], Reading]) -> None:
        """Set *cost* aside, unless *check* of what is spent so far raises; it returns how the reading stands then."""
        with self._lock:
            reading = check(self._spent(at), self._readings.get(episode or "", Reading()))
            if episode is not None:
                self._readings[episode] = reading
            self._aside += cost
            self._add(cost, episode)

    def give_back(self, cost: Usage, episode: str | None) -> None:
        """Give back what was set aside: the question is answered, or was given up."""
        with self._lock:
            self._aside -= cost
            self._add(NOTHING - cost, episode)

    def _add(self, usage: Usage, episode: str | None) -> None:
        if episode is None:
            return
        reading = self._readings.get(episode, Reading())
        self._readings[episode] = replace(reading, spent=reading.spent + usage)
        self._readings.move_to_end(episode)
        while len(self._readings) > READINGS:
            self._readings.popitem(last=False)

    def _spent(self, at: int) -> Spent:
        under_way = self._unwritten + self._aside
        day = self._told.day if self._told_at // DAY == at // DAY else NOTHING
        today = (usage for written_at, usage in self._written if written_at // DAY == at // DAY)
        written = (usage for _, usage in self._written)
        return Spent(sum(today, day + under_way), sum(written, self._told.namespace + under_way))


class Ledger:
    """The accounts of a process, by namespace."""

    def __init__(self) -> None:
        self._accounts: OrderedDict[str, Account] = OrderedDict()
        self.forked()
        renew_in_children(self)

    def forked(self) -> None:
        """Have a lock that no thread of the parent holds."""
        self._lock = Lock()

    def account(self, namespace: str) -> Account:
        """Return the account of *namespace*."""
        with self._lock:
            account = self._accounts.setdefault(namespace, Account())
            self._accounts.move_to_end(namespace)
            while len(self._accounts) > ACCOUNTS:
                self._accounts.popitem(last=False)
            return account
