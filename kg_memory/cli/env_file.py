"""The file ``.env`` of a folder: ``kg-memory init`` writes it, and the commands read it beneath the environment."""

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
"""The namespace of the commands that name none."""
OTHER_FILE = f"{ENV_PREFIX}ENV_FILE"
"""The variable that names another file."""
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)")
_OURS = (ENV_PREFIX, "OPENAI_")


def path() -> Path:
    """Return the file, which need not exist."""
    return Path(os.environ.get(OTHER_FILE) or ".env")


def environment() -> dict[str, str]:
    """Return the environment, with what the file sets beneath it.

    A file that others can read or write does not count: keys would not be safe in it, and one that comes with a
    folder, as by `git clone`, could send messages and keys anywhere.

    Raises: `SettingsError` if a line of ours cannot be read.
    """
    values = read(path()) if is_private(path()) else {}
    if f"{ENV_PREFIX}DATA_DIR" in os.environ:
        values.pop(f"{ENV_PREFIX}URL", None)
    return values | os.environ


def is_private(file: Path) -> bool:
    """Return whether *file* is there, and for its owner only."""
    try:
        found = file.stat()
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISREG(found.st_mode) and mine and (os.name != "posix" or not found.st_mode & 0o077)


def read(file: Path) -> dict[str, str]:
    """Return the variables of ours that *file* sets."""
    return {name: value for _, name, value in assignments(file.read_text("utf-8-sig"), file)}


def assignments(text: str, file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each line that sets a variable of ours, its name and its value."""
    for number, line in enumerate(text.splitlines()):
        match = _ASSIGNMENT.fullmatch(line)
        if match is None or not match[1].startswith(_OURS):
            continue
        try:
            words = shlex.split(match[2], comments=True)
        except ValueError as error:
            raise SettingsError(f"{file}, line {number + 1}, cannot be read ({error}); quote the value") from None
        yield number, match[1], " ".join(words)
