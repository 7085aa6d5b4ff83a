"""Rules for text: its terms, sentences, names, predicates and dates; their word lists are in TOML files."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def read_table(package: str, name: str) -> dict[str, Any]:
    """Return the content of the TOML file *name* in the Python *package*."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
