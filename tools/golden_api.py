"""The one part of `tools.golden` that knows the names of kg_memory: change it when they change.

The rest asks by the old names of verbs, settings, keywords and fields of recipes, and reads results by the old names of
fields. None of it imports a module inside the package, but for the readers of files.
"""
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

Plain = dict[str, Any]

FIELDS = {"single_valued": "one_at_a_time", "pending": "waiting", "existing": "against", "preferred": "holds"}
"""New names of fields of values and of properties in the graph: to their old names."""
FIELDS_OF = {
    "SearchResults": {"time": "asked", "explanations": "why"}, "Explanation": {"rank": "place"},
    "Hit": {"retriever": "way"}, "AddResult": {"error": "problem"}, "CommunityRefresh": {"questions": "asked"},
}  # fmt: skip
"""The same for one class, where other classes have a field of the new name."""
ARGUMENTS = {"rerank": "rerankers", "along": "traversal"}
"""Old names of keywords of verbs and of fields of recipes: to their new names, where the memory has groups."""
SETTINGS: dict[str, str] = {}
"""Old names of settings: to their new names. A setting that is in a group now is found there by itself."""
VERBS = {
    "facts_about": "facts.about", "history": "facts.history", "timeline": "facts.timeline", "changes": "facts.changes",
    "evolution": "facts.evolution", "conflicts": "reviews.conflicts", "entities": "entities.list",
    "card": "entities.card", "around": "entities.around", "similar": "entities.similar", "episodes": "episodes.list",
    "resume": "episodes.resume", "communities": "communities.list", "community": "communities.get",
    "refresh_communities": "communities.refresh", "reviews": "reviews.list", "decide": "reviews.decide",
    "undo": "reviews.undo", "predicates": "predicates.list", "correct_predicate": "predicates.update",
    "forget": "privacy.forget", "evict": "privacy.evict", "spent": "usage.spent", "estimate": "usage.estimate",
    "export": "data.export", "import_": "data.import_", "deepen": "episodes.deepen", "retry": "episodes.retry",
    "save": "episodes.save",
}  # fmt: skip
"""Where each verb is in the new code; where that is not there, it is a method of the memory by its old name."""
READERS = ("kg_memory.readers", "kg_memory.cli.readers")


class Api:
    """A memory, asked by the old names of its verbs; `twin` asks by their asyncio forms."""

    def __init__(self, runner: asyncio.Runner, settings: Plain, **given: Any) -> None:
        self.package = importlib.import_module("kg_memory")
        self.memory = self.package.GraphMemory.open(settings=self._settings(settings), **given)
        self._runner = runner

    def __call__(self, verb: str, *given: Any, **named: Any) -> Any:
        return self._method(verb, "")(*given, **self._arguments(named))

    def twin(self, verb: str, *given: Any, **named: Any) -> Any:
        """Do what *verb* does by its asyncio form."""
        return self._runner.run(self._method(verb, "a")(*given, **self._arguments(named)))

    def close(self) -> None:
        self.memory.close()

    def _arguments(self, value: Any) -> Any:
        if isinstance(value, dict):
            names = ARGUMENTS if hasattr(self.memory, "facts") else {}
            return {names.get(name, name): self._arguments(each) for name, each in value.items()}
        return [self._arguments(each) for each in value] if isinstance(value, list) else value

    def _method(self, verb: str, prefix: str) -> Callable[..., Any]:
        group, _, last = VERBS.get(verb, verb).rpartition(".")
        new = getattr(getattr(self.memory, group, None), prefix + last, None)
        return new or getattr(self.memory, prefix + verb)

    def _settings(self, values: Plain) -> Any:
        """Return the settings; those that are no fields of `Settings` itself are fields of one of its groups."""
        kind, values = self.package.Settings, {SETTINGS.get(name, name): value for name, value in values.items()}
        if "fact_types" in values:
            values["fact_types"] = tuple(self.package.FactType(*each) for each in values["fact_types"])
        default, groups = kind(), defaultdict[str, Plain](dict)
        names = [each.name for each in dataclasses.fields(kind)]
        own = {name: value for name, value in values.items() if name in names}
        for name in values.keys() - own.keys():
            group = next(each for each in names if hasattr(getattr(default, each), name))
            groups[group][name] = values[name]
        return kind(
            **own, **{name: dataclasses.replace(getattr(default, name), **each) for name, each in groups.items()}
        )

    @staticmethod
    def read(path: Path) -> Iterable[Any]:
        """Return the messages of a file of LoCoMo or BEAM."""
        for name in READERS:
            with suppress(ModuleNotFoundError):
                return importlib.import_module(name).read(path)
        raise ModuleNotFoundError("no readers: name their module in READERS")


def snapshot(api: Api) -> Plain:
    """Return what the package offers, and close *api*: its verbs with signatures, and values with their fields."""
    values: Plain = {}
    for name in sorted(api.package.__all__):
        value = getattr(api.package, name)
        if hasattr(value, "model_fields"):
            values[name] = {each: str(field.annotation) for each, field in value.model_fields.items()}
        elif dataclasses.is_dataclass(value):
            values[name] = {each.name: str(each.type) for each in dataclasses.fields(value)}
        elif isinstance(value, type) and issubclass(value, Enum):
            values[name] = [each.value for each in value]
        else:
            values[name] = str(value)
    text = json.dumps({"GraphMemory": _public(api.memory), "values": values})
    api.close()
    text = re.sub(r"<(?:class|enum) '([^']*)'>", r"\1", re.sub(r" at 0x[0-9a-f]+", "", text)).replace("'", "")
    return json.loads(re.sub(r"(?:\b[a-z_]\w*\.)+(?=[A-Za-z])", "", text))


def _public(owner: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in sorted(each for each in {*dir(type(owner)), *vars(owner)} if not each.startswith("_")):
        static = inspect.getattr_static(owner, name)
        is_stored = name in vars(owner) or "memory" in str(getattr(static, "__module__", ""))
        value = getattr(owner, name) if callable(static) or isinstance(static, classmethod) or is_stored else None
        found[name] = (
            str(inspect.signature(value)) if callable(value) else type(static if value is None else value).__name__
        )
        if not callable(value) and type(value).__module__.startswith("kg_memory.memory"):
            found |= {f"{name}.{each}": text for each, text in _public(value).items()}
    return found
