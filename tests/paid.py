"""A model that costs something, and memories with budgets that ask it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kg_memory import Budget, GraphMemory, Limits, Settings, Usage
from kg_memory.contrib.embedded import Server
from kg_memory.models.budget import DAY
from kg_memory.runtime.effects import Ask
from tests.scripted import HashEmbeddings, Scripted

AT = "2024-05-01T10:00:00Z"
NOON = 20_000 * DAY + DAY // 2
PRICES = {"input_price": 1.0, "output_price": 10.0}
Open = Callable[..., GraphMemory]


class Paid(Scripted):
    """A scripted model whose every call takes 1,000 tokens in and 100 out, and is counted."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(**rules)
        self.usage = Usage(calls=1, input_tokens=1_000, output_tokens=100, cached_tokens=400)

    def answer(self, ask: Ask) -> Any:
        answer = super().answer(ask)
        ask.meter(self.usage)
        return answer

    def count(self) -> int:
        """Return how many calls it got."""
        return len(self.asked)


@pytest.fixture(name="paid")
def paid_model() -> Paid:
    return Paid()


@pytest.fixture(name="opened")
def opened_memories(server: Server, paid: Paid) -> Iterator[Open]:
    """Open memories that share a database and a model: ``opened(budget, plan="thorough")``."""
    with ExitStack() as stack:

        def open_(budget: Budget = Budget(), at: int = NOON, **given: Any) -> GraphMemory:  # noqa: B008 - frozen
            settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6, min_support=0, budget=budget)
            memory = GraphMemory(settings.with_(**given), model=paid, embeddings=HashEmbeddings())
            clock = iter(range(at, at + DAY))
            memory.driver.clock = lambda: next(clock)
            return stack.enter_context(memory)

        yield open_


def calls_of(count: int, scope: str = "day") -> Budget:
    return Budget(**{scope: Limits(calls=count)})  # type: ignore[arg-type]
