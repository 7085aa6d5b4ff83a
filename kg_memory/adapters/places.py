"""Whose memory an agent's step works on, and in which conversation: read from where the step runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import get_runtime

from kg_memory.errors import InputError, SettingsError
from kg_memory.identity import checked_namespace


class NamespaceTemplate:
    """A namespace with ``{names}`` in it, such as ``"{user_id}"``, that are filled in where a step runs.

    Two different fillings never give one namespace: in ``"{org}/{user_id}"`` a slash in a value is escaped.
    Errors: `SettingsError` for a template that cannot be used.
    """

    def __init__(self, template: str) -> None:
        if not isinstance(template, str) or not template:
            raise SettingsError(f"the namespace is {template!r}: give a string such as 'ann' or '{{user_id}}'")
        try:
            parts = list(Formatter().parse(template))
        except ValueError as error:
            raise SettingsError(f"the namespace {template!r} is no template ({error}): write '{{user_id}}'") from None
        self.template = template
        self.names = tuple(name for _, name, _, _ in parts if name is not None)
        self._parts = [(text, name) for text, name, _, _ in parts]
        between = "".join(text for text, name in self._parts[1:] if name is not None)
        self._escaped = frozenset(between + "%") if len(self.names) > 1 else frozenset()
        for place, (_, name, form, conversion) in enumerate(parts):
            if name is None:
                continue
            if not name.isidentifier() or form or conversion:
                raise SettingsError(f"the namespace {template!r} has {{{name}}}: write a plain name like {{user_id}}")
            if place and not parts[place][0]:
                raise SettingsError(f"the namespace {template!r} has two names side by side: put a '/' between them")

    def fill(self, *sources: Any) -> str:
        """Return the namespace, with each name as the first of *sources* (mappings or objects) that has it says.

        Errors: `InputError` when none has it, or its value is no id: nobody's memory is taken for somebody's.
        """
        filled = (text + ("" if name is None else self._value(name, sources)) for text, name in self._parts)
        return checked_namespace("".join(filled))

    def _value(self, name: str, sources: tuple[Any, ...]) -> str:
        found = (_get(source, name) for source in sources)
        value = next((each for each in found if each is not None), None)
        if value is None:
            raise InputError(
                f"the namespace {self.template!r} needs {name!r}: pass context={{{name!r}: ...}} or "
                f"config={{'configurable': {{{name!r}: ...}}}} when you invoke the graph"
            )
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise InputError(f"{name} is {value!r}, which is no id: give a string or a whole number")
        return "".join(f"%{ord(char):02X};" if char in self._escaped else char for char in str(value))


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace and a thread of conversation."""

    namespace: str
    thread: str | None = None


def place_of(template: NamespaceTemplate, context: Any, config: Mapping[str, Any] | None) -> Place:
    """Return where a step with this runtime *context* and *config* works; the context counts first."""
    configurable = (config or {}).get("configurable") or {}
    thread = configurable.get("thread_id")
    return Place(template.fill(context, configurable), None if thread is None else str(thread))


def place_here(template: NamespaceTemplate) -> Place:
    """Return where the graph's step that is running now works; outside of a graph, only a name in full will do."""
    try:
        config = get_config()
    except RuntimeError:
        return place_of(template, None, None)
    try:
        context = get_runtime().context
    except (KeyError, RuntimeError):
        context = None  # a runnable that runs outside of a graph
    return place_of(template, context, config)


def _get(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
