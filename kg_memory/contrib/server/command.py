"""``kg-memory serve``, ``kg-memory keys`` and ``kg-memory mcp``."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from kg_memory.cli.command import namespace_of, open_memory, settings_of
from kg_memory.cli.output import Columns, Screen
from kg_memory.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from kg_memory.contrib.server.keys import ApiKey
    from kg_memory.contrib.server.mcp.tool import Caller
    from kg_memory.memory.memory import GraphMemory

STOP_SECONDS = 30
"""Seconds in which requests under way may finish when the server stops."""
STOP_MCP_SECONDS = 10.0
"""Seconds for which reading goes on when the client of MCP has gone."""
SWITCH_SECONDS = 0.0005
"""Seconds after which a computing thread lets others run: a search gives way, and waits, at each of its queries."""
MOST_PORTS = 65_535


def serve(arguments: Namespace, screen: Screen) -> int:
    """Serve until it is stopped."""
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from kg_memory.contrib.server.access import is_loopback  # noqa: PLC0415
        from kg_memory.contrib.server.app import StoppingServer, create_app  # noqa: PLC0415
        from kg_memory.contrib.server.keys import KeyRing  # noqa: PLC0415
        from kg_memory.contrib.server.service import Options  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra(f"serve needs {error.name}: pip install 'temporal-kg-memory[server]'") from None
    if not 0 <= arguments.port <= MOST_PORTS:
        raise InputError(f"port must be from 0 to {MOST_PORTS}, got {arguments.port}")
    _check_address(arguments.host, arguments.port)
    memory = open_memory(arguments, screen)
    locked = KeyRing(memory.driver.store.database).exist()
    if not locked and not is_loopback(arguments.host):
        memory.close()
        raise InputError(
            f"host must be 127.0.0.1 while there is no key, got {arguments.host!r}; "
            "make a key first: kg-memory keys create NAME"
        )
    if not locked:
        screen.note("There is no key, so only this machine is answered: kg-memory keys create NAME makes one.")
    options = Options(
        hosts=(arguments.host, *arguments.allow_host),
        origins=tuple(arguments.allow_origin),
        rate=arguments.rate,
        read=not arguments.no_read,
        trust_proxy=arguments.trust_proxy,
        alone=True,
    )
    app = create_app(memory, options, close_memory=True)
    config = uvicorn.Config(
        app,
        host=arguments.host,
        port=arguments.port,
        log_level="warning",  # its log of requests would have the names of namespaces and entities
        server_header=False,
        proxy_headers=False,  # the address of the socket counts
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    screen.note(
        f"Serving http://{arguments.host}:{arguments.port}, shown at /explorer/, described at /docs; Ctrl-C ends it."
    )
    gc.freeze()  # or the collector of garbage looks through all that was imported, again and again, in large requests
    sys.setswitchinterval(SWITCH_SECONDS)
    StoppingServer(config, app.state.service).run()
    return 0


def _check_address(host: str, port: int) -> None:
    """Raise `InputError` if nobody can listen there: the server would say so only once the memory is open."""
    try:
        for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name == "posix")
                tried.bind(address)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:  # no IPv6 here: the server does without too
            return
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is in use: choose another with --port") from None
        raise InputError(f"cannot listen at {host}:{port} ({error.strerror}): check --host and --port") from None


def keys(arguments: Namespace, screen: Screen) -> int:
    """Make, list or revoke keys."""
    from kg_memory.contrib.server.keys import KeyRing  # noqa: PLC0415
    from kg_memory.memory import open as opening  # noqa: PLC0415 - slow to import

    if arguments.action != "list" and not arguments.subject:
        raise InputError(
            "create needs what the key is for, and revoke the id of one: kg-memory keys list shows the ids"
        )
    with closing(opening.database(settings_of(arguments), screen.note)) as database:
        ring = KeyRing(database)
        if arguments.action == "create":
            key, secret = ring.create(arguments.subject, _split(arguments.scope), _split(arguments.namespaces))
            if screen.as_json:
                screen.json({**key.model_dump(mode="json"), "secret": secret})
            else:
                screen.note(f"The key {key.id} ({key.name}), which is shown only now:")
                screen.line(secret)
        elif arguments.action == "revoke":
            revoked = ring.revoke(arguments.subject)
            screen.note(f"The key {revoked.id} ({revoked.name}) is revoked.")
        else:
            _list(ring.list(), screen)
    return 0


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _list(stored: Sequence[ApiKey], screen: Screen) -> None:
    columns: Columns = {
        "name": "name",
        "id": "id",
        "scopes": "scopes",
        "namespaces": "namespaces",
        "made": lambda key: _day(key.created_at),
        "revoked": lambda key: _day(key.revoked_at),
    }
    screen.values(stored, columns, empty="There is no key: kg-memory keys create NAME makes one.")


def _day(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d") if at else ""


def mcp(arguments: Namespace, screen: Screen) -> int:
    """Serve one namespace over stdio, until the client closes the connection."""
    try:
        from kg_memory.contrib.server.mcp.server import MemoryServer  # noqa: F401, PLC0415
        from kg_memory.contrib.server.mcp.tool import LAUNCHED, Caller  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingExtra(f"mcp needs {error.name}: pip install 'temporal-kg-memory[server]'") from None
    caller = Caller.make(LAUNCHED, namespace_of(arguments), arguments.profile, arguments.user)
    with open_memory(arguments, screen) as memory:
        asyncio.run(_serve_stdio(memory, caller))
    return 0


async def _serve_stdio(memory: GraphMemory, caller: Caller) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an extra

    from kg_memory.contrib.server.mcp.server import MemoryServer  # noqa: PLC0415
    from kg_memory.contrib.server.reader import Reader  # noqa: PLC0415

    reader = Reader(memory)
    server = MemoryServer(memory, lambda _: caller, reader.wake).build()
    reader.start(caller.namespace)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        await reader.stop(STOP_MCP_SECONDS)
