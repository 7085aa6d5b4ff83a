"""Public benchmarks, a module each: its `DATASET` describes it and loads its files."""

from __future__ import annotations

import sys

from kg_memory.contrib.evaluation import plugins
from kg_memory.contrib.evaluation.records import Dataset
from kg_memory.errors import InputError


def dataset_names() -> list[str]:
    """Return the names of the data sets."""
    return plugins.names(sys.modules[__name__])


def find_dataset(name: str) -> Dataset:
    """Return the data set *name*, or the one that ``package.module:attribute`` names.

    Raises: `InputError` if there is none.
    """
    found = plugins.load(sys.modules[__name__], name, "DATASET", "data set")
    if not isinstance(found, Dataset):
        raise InputError(
            f"data set {name!r} must be a kg_memory.contrib.evaluation.records.Dataset, got {type(found).__name__}"
        )
    return found
