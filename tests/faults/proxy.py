"""A proxy between a client and its servers that strikes at one chosen effect, and the plan that it follows."""

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal, Self

How = Literal["unsent", "half sent", "unanswered", "half answered"]
"""How far an effect gets: its request never arrives, or half of it; it is performed, and its answer never arrives, or
half of it."""


class Struck(ConnectionError):
    """The effect was the chosen one: its connection is cut."""


class Plan:
    """Numbers the effects as they arrive at any server, and strikes at one of them, if one is chosen."""

    def __init__(self, strike: Callable[[], None] = lambda: None) -> None:
        self.strike = strike
        self._lock = threading.Lock()
        self.choose(None)

    def choose(self, at: int | None, how: How = "unsent") -> None:
        """Restart the count, and strike at effect *at*."""
        with self._lock:
            self.seen: list[str] = []
            self._at = at
            self._how: How = how

    @property
    def reached(self) -> bool:
        """Whether the chosen effect arrived."""
        return self._at is not None and len(self.seen) > self._at

    def arrive(self, name: str) -> How | None:
        """Count the effect *name*; return how far it gets if it is the chosen one, else None."""
        with self._lock:
            self.seen.append(name)
            return self._how if len(self.seen) - 1 == self._at else None

    def cut(self) -> None:
        """Strike."""
        self.strike()
        raise Struck


class Proxy:
    """A unix socket in front of the one at `upstream`; it forwards commands one after another by *plan*."""

    def __init__(self, plan: Plan, upstream: str | None = None) -> None:
        self.plan = plan
        self.upstream = upstream
        self._folder = Path(tempfile.mkdtemp(prefix="kg-memory-proxy-"))
        self.url = f"unix://{self._folder}/socket"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/socket")
        self._listener.listen(64)
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self._folder)

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Forward the commands of *client* until one side closes, or the plan cuts."""
        with client, suppress(OSError), socket.socket(socket.AF_UNIX) as server:
            assert self.upstream
            server.connect(self.upstream)
            with client.makefile("rb") as commands, server.makefile("rb") as replies:
                while True:
                    self._pass(client, server, frame(commands), replies)

    def _pass(self, client: socket.socket, server: socket.socket, command: bytes, replies: BinaryIO) -> None:
        how = self.plan.arrive(command.split(b"\r\n")[2].decode())
        if how == "unsent":
            self.plan.cut()
        if how == "half sent":
            server.sendall(command[: len(command) // 2])
            self.plan.cut()
        server.sendall(command)
        reply = frame(replies)
        if how == "unanswered":
            self.plan.cut()
        if how == "half answered":
            client.sendall(reply[: len(reply) // 2])
            self.plan.cut()
        client.sendall(reply)


def frame(stream: BinaryIO) -> bytes:
    """Read one whole command or reply of Redis's protocol.

    Errors: `ConnectionError` where the stream ends.
    """
    line = _whole(stream.readline(), b"\r\n")
    kind, size = line[:1], line[1:-2]
    if kind in b"$=!":
        return line if int(size) < 0 else line + _whole(stream.read(int(size) + 2), b"\r\n")
    if kind in b"*~>%|":
        return line + b"".join(frame(stream) for _ in range(int(size) * (2 if kind in b"%|" else 1)))
    return line


def _whole(read: bytes, end: bytes) -> bytes:
    if not read.endswith(end):
        raise ConnectionResetError
    return read
