"""Read the files of data sets, with errors that say what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kg_memory.errors import InputError


def require(path: Path | None, name: str, what: str) -> Path:
    """Return *path*, which must exist; *what* is the file or folder that the data set *name* is read from.

    Raises: `InputError`.
    """
    if path is None:
        raise InputError(f"{name} is read from {what}: give its path with --data")
    if not path.exists():
        raise InputError(f"{path} does not exist: {name} is read from {what}; correct --data")
    return path


def read_json(path: Path) -> Any:
    """Return the JSON document at *path*.

    Raises: `InputError` if it is a folder, no text or no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise InputError(f"{path} is a folder: give the file in it") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no UTF-8 text: give the JSON file of the data set") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not valid JSON ({error.msg}): download the file again") from None
