"""Find out in which namespace and conversation a LangGraph node or a tool works."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any
from uuid import UUID

from langgraph.config import get_config
from langgraph.runtime import get_runtime

from kg_memory.errors import InputError, SettingsError
from kg_memory.memory.listing import Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models import filters
from kg_memory.retrieval.clocks import parse_moment
from kg_memory.retrieval.context.lines import Template
from kg_memory.retrieval.context.templates import find_template
from kg_memory.retrieval.recipe import Recipe, find_recipe
from kg_memory.validation import validate_namespace


class NamespaceTemplate:
    """A namespace with placeholders, such as ``"{org}/{user_id}"``, which `fill` replaces by values.

    Errors: `SettingsError`.
    """

    def __init__(self, template: str, recall_from: Sequence[str] = ()) -> None:
        """Parse *template*, such as ``"{org}/{user_id}"``, and the templates of further namespaces to search."""
        if not isinstance(template, str) or not template:
            raise SettingsError(f"namespace must be a str such as 'ann' or '{{user_id}}', got {template!r}")
        if isinstance(recall_from, str):
            raise SettingsError(f"recall_from must be a list of namespaces, got {recall_from!r}; put it into a list")
        self.template = template
        self.recall_from = tuple(map(NamespaceTemplate, recall_from))
        self._parts, self._end = _parse_template(template)
        self.names = tuple(name for _, name in self._parts)
        between = "".join(text for text, _ in self._parts[1:])
        self._escaped = frozenset(between + "%") if between else frozenset()  # keeps namespaces distinct
        for text, name in self._parts[1:]:
            if not text or "%" in text:
                raise SettingsError(f"the namespace {template!r} has {text!r} before {{{name}}}: put a '/' there")

    def fill(self, *sources: Any) -> str:
        """Return the namespace with each placeholder replaced by its value: ``"{user_id}"`` -> ``"ann"``.

        *sources*: mappings such as ``{"user_id": "ann"}``, or objects with such attributes; the first that has the
        value is used. Errors: `InputError` if a placeholder has no value, or a value that is not a non-empty string, an
        integer or a UUID.
        """
        return validate_namespace("".join(text + self._value(name, sources) for text, name in self._parts) + self._end)

    def _value(self, name: str, sources: tuple[Any, ...]) -> str:
        """Return the value of the placeholder *name* from the first of *sources* that has it, with separators escaped.

        Errors: `InputError` if none has it, or the value is not a non-empty string, an integer or a UUID.
        """
        candidates = (one.get(name) if isinstance(one, Mapping) else getattr(one, name, None) for one in sources)
        value = next((candidate for candidate in candidates if candidate is not None), None)
        if value is None:
            raise InputError(
                f"the namespace {self.template!r} needs {name!r}: pass context={{{name!r}: ...}} or "
                f"config={{'configurable': {{{name!r}: ...}}}} when you invoke it"
            )
        if isinstance(value, bool) or not isinstance(value, str | int | UUID) or not str(value).strip():
            raise InputError(f"{name} must be a non-empty str, an int or a UUID, got {value!r}")
        return "".join(f"%{ord(char):02X};" if char in self._escaped else char for char in str(value))


def validate_memory(memory: object) -> GraphMemory:
    """Return *memory* unchanged if it is a `GraphMemory`; otherwise raise `SettingsError`."""
    if not isinstance(memory, GraphMemory):
        raise SettingsError(f"memory must be a GraphMemory, got {memory!r:.80}; pass what GraphMemory.open() returns")
    return memory


def validate_speaker(name: str, speaker: str | None) -> str | None:
    """Return *speaker* if it is a name or None; otherwise raise `SettingsError`."""
    if speaker is not None and (not isinstance(speaker, str) or not speaker.strip() or "{" in speaker):
        raise SettingsError(
            f"{name} must be a name, not a template, got {speaker!r}; if several people speak, name each message: "
            "HumanMessage('...', name='Ann')"
        )
    return speaker


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a graph node or tool works: a memory namespace, and the id of a conversation (or None).

    `recall_from`: further namespaces to search.
    """

    namespace: str
    thread: str | None = None
    recall_from: tuple[str, ...] = ()

    @property
    def namespaces(self) -> list[str]:
        """The namespaces to search: the memory's own one, then those in `recall_from`."""
        return [self.namespace, *self.recall_from]


def place_of(template: NamespaceTemplate, context: Any, config: Mapping[str, Any] | None) -> Place:
    """Return the namespace and conversation id for a graph node or tool: ``Place("acme/ann", "thread-1")``.

    Errors: `InputError`.
    """
    configurable = (config or {}).get("configurable") or {}
    thread = configurable.get("thread_id")
    others = tuple(other.fill(context, configurable) for other in template.recall_from)
    return Place(template.fill(context, configurable), None if thread is None else str(thread), others)


def place_here(template: NamespaceTemplate, config: Mapping[str, Any] | None = None) -> Place:
    """Return the namespace and conversation id for the graph node or tool that LangGraph is running now.

    Errors: `InputError`.
    """
    try:
        running = get_config()
    except RuntimeError:
        return place_of(template, None, config)
    runtime = get_runtime() if "configurable" in running else None
    context = None if runtime is None else runtime.context  # a runnable outside of a graph has no runtime
    return place_of(template, context, running if config is None else config)


def _parse_template(template: str) -> tuple[list[tuple[str, str]], str]:
    """Split *template* into pairs (text before, placeholder name), and the text after the last placeholder.

    Errors: `SettingsError`.
    """
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        raise SettingsError(f"namespace must be a template such as '{{user_id}}', got {template!r} ({error})") from None
    parts: list[tuple[str, str]] = []
    before = ""
    for text, name, form, conversion in pieces:
        before += text
        if name is None:
            continue  # an escaped brace: {{ or }}
        if not name.isidentifier() or form or conversion:
            raise SettingsError(f"the namespace {template!r} has {{{name}}}: write a plain name such as {{user_id}}")
        parts.append((before, name))
        before = ""
    return parts, before


Where = Mapping[str, Any]
"""A filter for search results, as in `kg_memory.models.filters`."""


def validate_search_options(
    recipe: Recipe | str | None = None,
    where: Where | None = None,
    template: Template | str | None = None,
    believed_at: Time | None = None,
) -> dict[str, Any]:
    """Validate the search options that all integrations share; return those that are not None as a dict.

    Errors: `InputError`.
    """
    find_recipe(recipe)
    filters.parse_filter(where)
    find_template(template)
    parse_moment("believed_at", believed_at, time.time_ns() // 1000)
    options = {"recipe": recipe, "where": where, "template": template, "believed_at": believed_at}
    return {name: value for name, value in options.items() if value is not None}
