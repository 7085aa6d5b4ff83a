"""``kg-memory mcp``: the server of one namespace over stdio."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from typing import TYPE_CHECKING

from kg_memory.cli.command import namespace_of, open_memory
from kg_memory.cli.output import Screen
from kg_memory.errors import MissingExtra

if TYPE_CHECKING:
    from kg_memory.contrib.server.mcp.caller import Caller
    from kg_memory.memory.memory import GraphMemory

STOP_SECONDS = 10.0
"""Seconds for which reading goes on when the client has gone."""


def run(arguments: Namespace, screen: Screen) -> int:
    """Serve until the client closes the connection."""
    try:
        from kg_memory.contrib.server.mcp.caller import LAUNCHED, Caller  # noqa: PLC0415 - an extra
        from kg_memory.contrib.server.mcp.server import MemoryServer  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra(f"mcp needs {error.name}: pip install 'temporal-kg-memory[server]'") from None
    caller = Caller.make(LAUNCHED, namespace_of(arguments), arguments.profile, arguments.user)
    with open_memory(arguments, screen) as memory:
        asyncio.run(_serve(memory, caller))
    return 0


async def _serve(memory: GraphMemory, caller: Caller) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an extra

    from kg_memory.contrib.server.mcp.server import MemoryServer  # noqa: PLC0415
    from kg_memory.contrib.server.mcp.subscriptions import Host  # noqa: PLC0415
    from kg_memory.contrib.server.reader import Reader  # noqa: PLC0415

    reader = Reader(memory)

    server = MemoryServer(memory, lambda _: caller, reader.wake, Host()).build()
    reader.start(caller.namespace)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        await reader.stop(STOP_SECONDS)
