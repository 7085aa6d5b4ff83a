"""A process whose maintenance never ends, as its model never answers: python -m tests.eviction.holding URL."""

import asyncio
import os
import sys
import time
from typing import Any

from kg_memory import GraphMemory, Settings
from kg_memory.runtime.effects import Ask
from kg_memory.settings import Maintenance
from tests.scripted import HashEmbeddings, Scripted

LEASE = Maintenance(every_seconds=0.2, lease_seconds=1.5, expired_days=None, orphans=False)


class Silent(Scripted):
    """Prints the name of each prompt, and never answers."""

    async def aanswer(self, ask: Ask) -> Any:
        os.write(1, f"{ask.prompt.name}\n".encode())
        await asyncio.sleep(600)


if __name__ == "__main__":
    with GraphMemory(Settings(url=sys.argv[1], maintenance=LEASE), model=Silent(), embeddings=HashEmbeddings()):
        time.sleep(600)
