"""What the benchmarks beside Graphiti share: a driver that is ready, and a ranker that is not used."""

from __future__ import annotations

import logging
import os

os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")

from falkordb.asyncio import FalkorDB
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.falkordb_driver import FalkorDriver


class NoRanker(CrossEncoderClient):
    """For recipes that rank without a cross-encoder: Graphiti opens OpenAI's where it gets none."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        raise NotImplementedError


async def connected(socket: str, group: str) -> FalkorDriver:
    """Return a driver for *group* on the database at *socket*, its indices made; Graphiti tells of errors only."""
    logging.getLogger("graphiti_core").setLevel(logging.ERROR)
    driver = FalkorDriver(falkor_db=FalkorDB(unix_socket_path=socket), database=group)
    if driver._init_task:  # noqa: SLF001 - it builds its indices in the background, and has no other way to wait for them
        await driver._init_task  # noqa: SLF001
    return driver
