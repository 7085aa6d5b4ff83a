"""Find data sets and systems by name: a module of ours each, or ``package.module:attribute`` of the user's."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from kg_memory.errors import InputError, MissingExtra


def names(package: ModuleType) -> list[str]:
    """Return the names of the modules of *package*, with dashes, in their order."""
    found = sorted(module.name for module in iter_modules(package.__path__))
    return [name.replace("_", "-") for name in found if not name.startswith("_")]


def load(package: ModuleType, name: str, attribute: str, kind: str) -> Any:
    """Return *attribute* of the module *name* of *package*, or what ``module:attribute`` names elsewhere.

    Raises: `InputError` for an unknown name, `MissingExtra` if what the module needs is not installed.
    """
    if name in names(package):
        return getattr(_import(f"{package.__name__}.{name.replace('-', '_')}", name), attribute)
    module, _, given = name.partition(":")
    if not given:
        listed = ", ".join(names(package))
        raise InputError(f"unknown {kind} {name!r}: use one of {listed}, or package.module:name for your own")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(_import(module, name), given)
    except AttributeError:
        raise InputError(f"{kind} {name!r}: the module {module} has no {given}; correct the name") from None


def _import(module: str, name: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            raise InputError(f"{name!r}: there is no module {error.name}; correct the name") from None
        package = error.name
        if module.startswith("kg_memory."):
            package = f"'temporal-kg-memory[evaluate-{name}]'"
        raise MissingExtra(f"{name} needs the package {error.name}: pip install {package}") from error
