"""Read the file ``.env``, which ``kg-memory init`` writes; environment variables override it."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from kg_memory.errors import SettingsError
from kg_memory.settings import ENV_PREFIX

NAMESPACE = f"{ENV_PREFIX}NAMESPACE"
"""The variable for the namespace of commands without ``-n``."""
OTHER_FILE = f"{ENV_PREFIX}ENV_FILE"
"""The variable for the path of another file than ``.env``."""
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)")
_OURS = (ENV_PREFIX, "OPENAI_")


def path() -> Path:
    """Return the path of the settings file: ``KG_MEMORY_ENV_FILE`` if set, else ``.env``; the file may not exist."""
    return Path(os.environ.get(OTHER_FILE) or ".env")


def environment() -> dict[str, str]:
    """Return the environment variables, and in addition the variables that only the file ``.env`` sets.

    The file is ignored if other users can read or write it: its keys would not be safe, and another person could have
    chosen the server to which messages are sent. Raises: `SettingsError` if a line with a variable of kg-memory cannot
    be parsed.
    """
    values = read_env_file(path()) if is_private(path()) else {}
    if f"{ENV_PREFIX}DATA_DIR" in os.environ:
        values.pop(f"{ENV_PREFIX}URL", None)
    return values | os.environ


def is_private(file: Path) -> bool:
    """Return whether *file* exists, belongs to the current user, and cannot be accessed by other users."""
    try:
        found = file.stat()
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISREG(found.st_mode) and mine and (os.name != "posix" or not found.st_mode & 0o077)


def read_env_file(file: Path) -> dict[str, str]:
    """Return the variables ``KG_MEMORY_*`` and ``OPENAI_*`` that *file* sets: ``{"KG_MEMORY_MODEL": "gpt-5"}``."""
    return {name: value for _, name, value in assignments(file.read_text("utf-8-sig"), file)}


def assignments(text: str, file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield ``(line index, name, value)`` for each line of *text* that sets ``KG_MEMORY_*`` or ``OPENAI_*``.

    For example, ``(0, "OPENAI_API_KEY", "sk-1")``. Raises `SettingsError`, which names *file*, for an invalid line.
    """
    for number, line in enumerate(text.splitlines()):
        match = _ASSIGNMENT.fullmatch(line)
        if match is None or not match[1].startswith(_OURS):
            continue
        try:
            words = shlex.split(match[2], comments=True)
        except ValueError as error:
            raise SettingsError(f"cannot parse line {number + 1} of {file} ({error}); quote the value") from None
        yield number, match[1], " ".join(words)
