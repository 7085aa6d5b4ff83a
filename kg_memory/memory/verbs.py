"""What the verbs of a memory share: how they run a flow on a namespace."""

from __future__ import annotations

from kg_memory.runtime.driver import Driver
from kg_memory.runtime.flow import Flow, T
from kg_memory.settings import Settings
from kg_memory.text.identity import validate_namespace


class Verbs:
    """The verbs of a memory, a part of them; `kg_memory.memory.memory.GraphMemory` has all."""

    driver: Driver
    settings: Settings

    def _run(self, flow: Flow[T], namespace: str) -> T:
        return self.driver.run(flow, validate_namespace(namespace))

    async def _arun(self, flow: Flow[T], namespace: str) -> T:
        return await self.driver.arun(flow, validate_namespace(namespace))
