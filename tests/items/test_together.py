"""`Together`: concurrent calls are combined into one."""

import asyncio

import pytest

from kg_memory.adapters.store.driver import MOST_AT_ONCE, Together
from kg_memory.errors import DatabaseUnavailable, EmbeddingUnavailable, InputError


class Doing:
    """A function that doubles numbers and records its calls; it refuses numbers below 0."""

    def __init__(self) -> None:
        self.got: list[list[int]] = []
        self.error: Exception | None = None

    async def __call__(self, wants):
        self.got.append(list(wants))
        await asyncio.sleep(0.001)
        if self.error:
            raise self.error
        if min(wants) < 0:
            raise InputError("below 0")
        return [2 * each for each in wants]


async def test_together_batches_waiting_calls_up_to_a_limit():
    doing = Doing()
    together = Together(doing)
    first = asyncio.create_task(together([1]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.gather(first, *(together([each]) for each in range(MOST_AT_ONCE + 5)))
    assert [len(each) for each in doing.got] == [1, MOST_AT_ONCE, 5]
    assert await together(list(range(2 * MOST_AT_ONCE))) == list(range(0, 4 * MOST_AT_ONCE, 2))


async def test_together_raises_an_error_only_for_its_caller():
    together = Together(Doing())
    one, other, third = await asyncio.gather(together([1]), together([-1]), together([3]), return_exceptions=True)
    assert (one, third) == ([2], [6])
    assert isinstance(other, InputError)


@pytest.mark.parametrize("gone", [DatabaseUnavailable, EmbeddingUnavailable])
async def test_together_raises_an_outage_for_all_after_one_try(gone):
    doing = Doing()
    doing.error = gone("gone")
    together = Together(doing)
    results = await asyncio.gather(*(together([1]) for _ in range(5)), return_exceptions=True)
    assert [type(each) for each in results] == [gone] * 5
    assert len(doing.got) == 1
    doing.error = None
    assert await together([4]) == [8]
