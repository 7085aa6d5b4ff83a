"""A way to wait that takes no time: what was waited for is written down, and a clock of its own goes on by it."""

from math import fsum

from kg_memory.llm.retry import RateLimiter, Sleeper


class Sleeping:
    """A sleeper and a rate limiter by the same clock; `slept` are the seconds of each pause."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.sleeper = Sleeper(self.slept.append, self._asleep)
        self.limiter = RateLimiter(lambda: fsum(self.slept))

    async def _asleep(self, seconds: float) -> None:
        self.slept.append(seconds)
