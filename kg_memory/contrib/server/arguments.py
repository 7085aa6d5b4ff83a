"""The arguments of ``kg-memory serve``, ``worker``, ``keys`` and ``mcp``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

SERVE_EPILOG = """\
Without any key it answers this machine alone. Once a key was made, every request needs one.
example:
  kg-memory serve --host 0.0.0.0 --port 8080 --allow-host memory.example.com
"""
WORKER_EPILOG = """\
Start as many as are needed, on any machine that reaches the database. One at a time reads a namespace, in its order;
what one that was killed was reading goes to another after ten seconds.
example:
  kg-memory worker --url falkor://db:6379
"""
KEYS_EPILOG = """\
The key is shown once: the database has only its hash. In a pattern of namespaces * stands for any characters.
examples:
  kg-memory keys create "support desk" --scope read,review --namespaces "support/*"
  kg-memory keys revoke 3f2a9c0d1e4b
"""
MCP_EPILOG = """\
The client starts it by itself: it speaks MCP on its standard input and output. All tools are about the namespace that
is named here, and the model cannot name another.
example:
  claude mcp add memory -- kg-memory mcp -n ann
"""
HOST, PORT = "127.0.0.1", 8420


def add_commands(command: Callable[..., ArgumentParser]) -> None:
    """Add ``serve``, ``worker``, ``keys`` and ``mcp``, each made by *command*."""
    _add_serve(command("serve", "kg_memory.contrib.server.command:serve", "serve the memory over HTTP", SERVE_EPILOG))
    about = "read what servers save, beside them"
    _add_worker(command("worker", "kg_memory.contrib.server.worker:run", about, WORKER_EPILOG))
    about = "make, list and revoke the keys of the server"
    _add_keys(command("keys", "kg_memory.contrib.server.command:keys", about, KEYS_EPILOG))
    about = "serve one namespace to an agent over MCP"
    _add_mcp(command("mcp", "kg_memory.contrib.server.command:mcp", about, MCP_EPILOG))


def _add_serve(command: ArgumentParser) -> None:
    command.add_argument("--host", default=HOST, help=f"the address to listen at (default: {HOST})")
    command.add_argument("--port", type=int, default=PORT, help=f"(default: {PORT})")
    about = "a name by which clients reach it, where that is not --host; * allows all"
    command.add_argument("--allow-host", action="append", default=[], metavar="NAME", help=about)
    about = "the pages of another server that may ask, such as https://app.example.com"
    command.add_argument("--allow-origin", action="append", default=[], metavar="URL", help=about)
    about = "save episodes, and let kg-memory worker or another server read them"
    command.add_argument("--no-read", action="store_true", help=about)
    about = "a proxy on this machine tells in X-Forwarded-For where requests come from"
    command.add_argument("--trust-proxy", action="store_true", help=about)
    about = "requests a second that one key may make (default: 100)"
    command.add_argument("--rate", type=float, default=100.0, metavar="N", help=about)
    _add_log_level(command)


def _add_worker(command: ArgumentParser) -> None:
    about = "namespaces that are read at a time (default: 4)"
    command.add_argument("--at-once", type=int, default=4, metavar="N", help=about)
    _add_log_level(command)


def _add_keys(command: ArgumentParser) -> None:
    command.add_argument(
        "action", nargs="?", choices=("create", "list", "revoke"), default="list", help="(default: list)"
    )
    command.add_argument("subject", nargs="?", metavar="NAME|ID", help="create: what the key is for; revoke: its id")
    about = "read, write, review, forget or admin, several with commas (default: read,write)"
    command.add_argument("--scope", default="read,write", metavar="SCOPES", help=about)
    about = "the namespaces that it reaches, several with commas (default: *, all)"
    command.add_argument("--namespaces", default="*", metavar="PATTERNS", help=about)


def _add_mcp(command: ArgumentParser) -> None:
    about = "which tools: core (default), full with judge and compare, or read-only"
    command.add_argument("--profile", choices=("core", "full", "read-only"), default="core", help=about)
    command.add_argument("--user", metavar="NAME", help="who speaks in what is remembered (default: user)")
    _add_log_level(command)


def _add_log_level(command: ArgumentParser) -> None:
    about = "what the log has; info is a line for each episode and request (default: warning)"
    command.add_argument("--log-level", choices=("debug", "info", "warning"), default="warning", help=about)
