"""Command-line verbs ``kg-memory serve``, ``worker``, ``keys`` and ``mcp``."""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from kg_memory.cli.command import namespace_of, open_memory, settings_of
from kg_memory.cli.output import Columns, Screen
from kg_memory.cli.parser import commands_in
from kg_memory.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from kg_memory.contrib.server.keys import ApiKey

STOP_SECONDS = 30
"""Seconds that running requests get to finish when the server stops."""
SWITCH_SECONDS = 0.0005
"""Python's thread switch interval, in seconds: shorter than usual, as searches wait for other threads at each query."""
MOST_PORTS = 65_535
_INSTALL = "pip install 'temporal-kg-memory[server]' (in a clone: pip install -e '.[server]')"


add_commands = commands_in(__package__)


def serve(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory serve``: open the memory and serve HTTP until a stop signal; return the exit code."""
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from kg_memory.contrib.server.access import is_loopback  # noqa: PLC0415
        from kg_memory.contrib.server.app import StoppingServer, create_app  # noqa: PLC0415
        from kg_memory.contrib.server.keys import KeyRing  # noqa: PLC0415
        from kg_memory.contrib.server.service import Options  # noqa: PLC0415
        from kg_memory.contrib.server.worker import ReadingProcess  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra(f"serve needs {error.name}: {_INSTALL}") from None
    if not 0 <= arguments.port <= MOST_PORTS:
        raise InputError(f"port must be from 0 to {MOST_PORTS}, got {arguments.port}")
    _check_address(arguments.host, arguments.port)
    memory = open_memory(arguments, screen, serves=True)
    locked = KeyRing(memory.driver.store.database).exist()
    if not locked and not is_loopback(arguments.host):
        memory.close()
        raise InputError(
            f"host must be 127.0.0.1 while there is no API key, got {arguments.host!r}; "
            "create a key first: kg-memory keys create NAME"
        )
    if not locked:
        screen.note(
            "No API key yet: only requests from this machine are answered. To create one: kg-memory keys create NAME"
        )
    options = Options(
        hosts=(arguments.host, *arguments.allow_host),
        origins=tuple(arguments.allow_origin),
        rate=arguments.rate,
        read=False,
        trust_proxy=arguments.trust_proxy,
        alone=True,
    )
    app = create_app(memory, options, close_memory=True)
    if not arguments.no_read:
        app.state.service.reader = ReadingProcess(memory.driver.store.database, arguments)
    config = uvicorn.Config(
        app,
        host=arguments.host,
        port=arguments.port,
        log_level="warning",  # uvicorn's access log would contain the names of namespaces and entities
        server_header=False,
        proxy_headers=False,  # `is_local` needs the address of the socket
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    screen.note(f"Serving http://{arguments.host}:{arguments.port} (explorer: /explorer/, API: /docs); Ctrl-C stops.")
    gc.freeze()  # otherwise the garbage collector scans all imported modules repeatedly during large requests
    sys.setswitchinterval(SWITCH_SECONDS)
    StoppingServer(config, app.state.service).run()
    return 0


def _check_address(host: str, port: int) -> None:
    """Raise `InputError` if the server cannot listen at *host* and *port*.

    uvicorn would report this only after the memory has been opened.
    """
    try:
        for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name == "posix")
                tried.bind(address)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:  # no IPv6 on this machine: the server does not need it
            return
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is in use; choose another with --port") from None
        raise InputError(f"cannot listen on {host}:{port} ({error.strerror}); check --host and --port") from None


def keys(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory keys``: create, list or revoke API keys; return the exit code."""
    from kg_memory.contrib.server.keys import KeyRing  # noqa: PLC0415
    from kg_memory.memory import open as opening  # noqa: PLC0415 - slow to import

    if arguments.action != "list" and not arguments.subject:
        raise InputError("create needs a name for the key, and revoke the id of a key; kg-memory keys list shows ids")
    with closing(opening.database(settings_of(arguments), screen.note)) as database:
        ring = KeyRing(database)
        if arguments.action == "create":
            patterns = _split_commas(arguments.namespaces), _split_commas(arguments.reads) if arguments.reads else ()
            key, secret = ring.create(arguments.subject, _split_commas(arguments.scope), *patterns)
            if screen.as_json:
                screen.json({**key.model_dump(mode="json"), "secret": secret})
            else:
                screen.note(f"The key {key.id} ({key.name}), shown only this once:")
                screen.line(secret)
        elif arguments.action == "revoke":
            revoked = ring.revoke(arguments.subject)
            screen.note(f"Revoked the key {revoked.id} ({revoked.name}).")
        else:
            _print_keys(ring.list(), screen)
    return 0


def _split_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _print_keys(stored: Sequence[ApiKey], screen: Screen) -> None:
    columns: Columns = {
        **{name: name for name in ("name", "id", "scopes", "namespaces", "reads")},
        "made": lambda key: f"{key.created_at:%Y-%m-%d}",
        "revoked": lambda key: f"{key.revoked_at:%Y-%m-%d}" if key.revoked_at else "",
    }
    screen.values(stored, columns, empty="No API keys. To create one: kg-memory keys create NAME")


def mcp(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory mcp``: serve one namespace over MCP on stdin and stdout until the client disconnects."""
    try:
        from kg_memory.contrib.server.mcp.server import serve_stdio  # noqa: PLC0415 - an extra
        from kg_memory.contrib.server.mcp.tool import LAUNCHED, Caller  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra(f"mcp needs {error.name}: {_INSTALL}") from None
    caller = Caller.make(LAUNCHED, namespace_of(arguments), arguments.profile, arguments.user, arguments.recall_from)
    with open_memory(arguments, screen) as memory:
        serve_stdio(memory, caller)
    return 0
