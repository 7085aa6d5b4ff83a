"""Packing: the lines that go into a context, the best of each kind in turn, as long as there is room; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from kg_memory.models.graph import Kind
from kg_memory.models.results import Line
from kg_memory.retrieval.context.lines import id_of
from kg_memory.retrieval.dedupe import Group, Repeats
from kg_memory.text.tokenise import estimate_tokens

SHARES: Mapping[Kind, float] = {"facts": 4.0, "entities": 1.0, "communities": 0.5, "episodes": 9.0}
"""The speed at which each kind takes its turn to fill the budget, as `benchmarks/context_budget.py` measures it."""
NO_ROOM = "no room within max_tokens"


@dataclass(frozen=True, slots=True)
class Choice:
    """The lines of each kind, best first, and the ids that are left out, with the reason."""

    lines: Mapping[Kind, list[Line]]
    left_out: list[tuple[Kind, str, str]] = field(default_factory=list)

    def turn(self, kind: Kind) -> float:
        """Return when it is the turn of *kind*; the best fact comes before all, as it is what holds."""
        count = len(self.lines[kind])
        return (count + 1) / SHARES[kind] if count or kind != "facts" else 0.0

    def find_same(self, line: Line, repeats: Repeats) -> str | None:
        """Return the id of a chosen line that says the same as *line*."""
        equals = (chosen.id for chosen in self.lines[line.kind] if chosen.text == line.text)
        repeated = repeats.get((line.kind, line.id), ())
        facts = (fact.id for fact in self.lines.get("facts", ()) if fact.id in repeated)
        return next(chain(equals, facts), None)

    def drop_repeats_of(self, fact: Line, repeats: Repeats, sections: Mapping[Kind, int]) -> int:
        """Take out the lines that only repeat the *fact*, and return how many tokens that gives back."""
        if fact.kind != "facts":
            return 0
        freed = 0
        for kind, lines in self.lines.items():
            for repeat in [line for line in lines if fact.id in repeats.get((kind, line.id), ())]:
                lines.remove(repeat)
                self.left_out.append((kind, repeat.id, same_as(fact.id)))
                freed += repeat.tokens + (0 if lines else sections[kind])
        return freed


def token_cost(text: str) -> int:
    """Return how many tokens *text* adds at most to what it becomes a part of, of which one token is for the whole."""
    return max(estimate_tokens(text) - 1, 0)


def same_as(id_: str) -> str:
    """Return the reason to leave out a repeat of another."""
    return f"same as {id_}"


def choose(
    groups: Mapping[Kind, list[Group]],
    write: Callable[[Kind, Group], Line],
    sections: Mapping[Kind, int],
    room: int,
    repeats: Repeats,
) -> Choice:
    """Return the best lines that fit into *room*, where a kind's first line costs its *sections* too, in tokens.

    A kind ends at its first line that does not fit, so no line stands in for a better one. A line that reads like
    another, or only *repeats* a chosen fact, is left out, and gives its room back if it came before the fact.
    """
    choice = Choice({kind: [] for kind in groups})
    queues = {kind: list(reversed(group)) for kind, group in groups.items()}
    while queues := {kind: queue for kind, queue in queues.items() if queue}:
        kind = min(queues, key=choice.turn)
        line = write(kind, queues[kind].pop())
        cost = line.tokens + (0 if choice.lines[kind] else sections[kind])
        same = choice.find_same(line, repeats)
        if same is not None:
            choice.left_out.append((kind, line.id, same_as(same)))
        elif cost > room:
            rest = [id_of(first) for first, *_ in reversed(queues.pop(kind))]
            choice.left_out.extend((kind, id_, NO_ROOM) for id_ in (line.id, *rest))
        else:
            choice.lines[kind].append(line)
            room += choice.drop_repeats_of(line, repeats, sections) - cost
    return choice
