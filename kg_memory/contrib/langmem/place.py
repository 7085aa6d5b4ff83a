"""Finds the namespace and the store for a call: those that the caller passed, or those of the running graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_store
from langgraph.store.base import BaseStore

from kg_memory.adapters.namespace import NamespaceTemplate, place_here
from kg_memory.adapters.store.store import KGStore
from kg_memory.contrib.langmem.store import EpisodeStore, Labels
from kg_memory.errors import InputError, SettingsError
from kg_memory.memory.memory import GraphMemory

Store = BaseStore | GraphMemory


class Namespace:
    """A store namespace with variables: a call turns ``("memories", "{user_id}")`` into ``("memories", "ann")``.

    The call takes a config, ``{"configurable": {"user_id": "ann"}}``, or uses the runtime context. Errors:
    `SettingsError` for an invalid template.
    """

    def __init__(self, template: Labels | str | Namespace) -> None:
        if isinstance(template, Namespace):
            template = template.template
        labels = (template,) if isinstance(template, str) else template
        if not isinstance(labels, tuple | list) or not labels:
            raise SettingsError(f"namespace must be a tuple such as ('memories', '{{user_id}}'), got {template!r}")
        self.template: Labels = tuple(labels)
        self._labels = [NamespaceTemplate(label) for label in self.template]

    def __call__(self, config: Mapping[str, Any] | None = None) -> Labels:
        """Return the labels with values in place of variables; the values are from *config* or the running graph.

        Errors: `InputError`.
        """
        labels = tuple(place_here(label, config or None).namespace for label in self._labels)
        if any("." in label for label in labels):
            raise InputError(f"a label of a namespace must not contain '.', got {labels!r}; replace it, as by '_'")
        return labels


def validate_store(store: object) -> BaseStore | None:
    """Return *store* as a LangGraph store: a `GraphMemory` or `KGStore` in an `EpisodeStore`; None stays None.

    Errors: `SettingsError` for another type.
    """
    if isinstance(store, GraphMemory):
        return EpisodeStore(store)
    if isinstance(store, KGStore):
        return EpisodeStore(store.memory)
    if store is None or isinstance(store, BaseStore):
        return store
    raise SettingsError(f"store must be a GraphMemory or a LangGraph store, got {store!r:.80}")


def find_store(store: BaseStore | None) -> BaseStore | None:
    """Return *store* or, if it is None, the store of the running LangGraph graph; None if there is no store."""
    if store is not None:
        return store
    try:
        return validate_store(get_store())
    except (RuntimeError, KeyError, AttributeError):
        return None


def store_here(store: BaseStore | None) -> BaseStore:
    """Return *store* or, if it is None, the running LangGraph graph's store; raise `SettingsError` if there is none."""
    found = find_store(store)
    if found is None:
        raise SettingsError("there is no store: pass store=memory, or call this in a graph compiled with a store")
    return found
