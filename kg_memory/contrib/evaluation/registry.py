"""Find data sets and systems by name: ours from the tables below, the user's by ``package.module:attribute``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from kg_memory.contrib.evaluation.records import Dataset, System, Tools
from kg_memory.errors import InputError, MissingExtra

DATASETS = {
    "agent-memory": "datasets.changes:AGENT_MEMORY",
    "beam": "datasets.assistants:BEAM",
    "dmr": "datasets.people:DMR",
    "locomo": "datasets.people:LOCOMO",
    "longmemeval": "datasets.assistants:LONGMEMEVAL",
    "meme": "datasets.changes:MEME",
    "niah": "datasets.niah:NIAH",
    "personamem": "datasets.assistants:PERSONAMEM",
}
SYSTEMS = {
    "bm25": "systems.baselines:open_bm25",
    "dense": "systems.baselines:open_dense",
    "full": "systems.baselines:FullContext",
    "graphiti": "systems.graphiti:Graphiti",
    "hybrid": "systems.baselines:open_hybrid",
    "langmem": "systems.langmem:LangMem",
    "mem0": "systems.mem0:Mem0",
    "ours": "systems.ours:open_ours",
}


def find_dataset(name: str) -> Dataset:
    """Return the data set *name*, or the one that ``package.module:attribute`` names.

    Raises: `InputError` if there is none.
    """
    found = _load(DATASETS, name, "data set")
    if not isinstance(found, Dataset):
        raise InputError(
            f"data set {name!r} must be a kg_memory.contrib.evaluation.records.Dataset, got {type(found).__name__}"
        )
    return found


def find_system(name: str) -> Callable[[Tools], System]:
    """Return the function that opens the system *name*, ``ours:plan``, or the user's ``package.module:function``.

    Raises: `InputError` if there is none, `MissingExtra` if a package that it needs is not installed.
    """
    own, _, plan = name.partition(":")
    if own == "ours" and plan:
        return partial(_load(SYSTEMS, own, "system"), plan=plan)
    opener: Callable[[Tools], System] = _load(SYSTEMS, name, "system")
    return opener


def _load(table: Mapping[str, str], name: str, kind: str) -> Any:
    if name in table:
        module, _, attribute = f"{__package__}.{table[name]}".partition(":")
    else:
        module, _, attribute = name.partition(":")
        if not attribute:
            raise InputError(
                f"unknown {kind} {name!r}: use one of {', '.join(table)}, or package.module:name for your own"
            )
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
    try:
        return getattr(import_module(module), attribute)
    except AttributeError:
        raise InputError(f"{kind} {name!r}: the module {module} has no {attribute}; correct the name") from None
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            raise InputError(f"{name!r}: there is no module {error.name}; correct the name") from None
        package = f"'temporal-kg-memory[evaluate-{name}]'" if name in table else error.name
        raise MissingExtra(f"{name} needs the package {error.name}: pip install {package}") from error
