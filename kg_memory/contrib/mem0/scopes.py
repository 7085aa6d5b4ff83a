"""Scopes: who a memory belongs to, as Mem0 names them, and the namespaces and labels that hold them.

The memories of a user are a namespace, ``mem0/user/ann``; those of an agent or a run that name no user have one of
their own. What else is named is a label of each message: ``agent_id``, ``run_id``, ``app_id``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from kg_memory.contrib.importers.sentences import IDS, RESERVED, REST
from kg_memory.errors import InputError, SettingsError

OWNERS: Mapping[str, str] = {"user_id": "user", "agent_id": "agent", "run_id": "run"}
"""The ids that may own a namespace, the first of those that are set, and the word that the namespace has for it."""
Ids = dict[str, str]
Entries = Mapping[str, Any]
"""Values by their names: metadata, labels, a filter or a part of a config."""
Item = dict[str, Any]
"""A memory, an event, a row of a history or a message, with the keys that Mem0 gives it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a namespace: the id called *field*, with its *value*."""

    collection: str
    field: str
    value: str

    @property
    def namespace(self) -> str:
        """The namespace of its memories."""
        return f"{self.collection}/{OWNERS[self.field]}/{self.value}"

    @property
    def constants(self) -> Mapping[str, str | None]:
        """The ids that all memories in the namespace have alike; None is no such id."""
        before = list(OWNERS)[: list(OWNERS).index(self.field)]
        return {**dict.fromkeys(before), self.field: self.value}

    @classmethod
    def of_ids(cls, collection: str, ids: Mapping[str, str]) -> Self:
        """Return the owner of a memory with these *ids*. Errors: `InputError` where none of them can own it."""
        for field in OWNERS:
            if field in ids:
                return cls(collection, field, ids[field])
        raise InputError("at least one of user_id, agent_id and run_id must be set; give the one that it belongs to")

    @classmethod
    def of_namespace(cls, collection: str, namespace: str) -> Self | None:
        """Return the owner of *namespace*; None where it is no namespace of the *collection*."""
        for field, word in OWNERS.items():
            start = f"{collection}/{word}/"
            if namespace.startswith(start):
                return cls(collection, field, namespace.removeprefix(start))
        return None


def read_collection(name: object) -> str:
    """Return *name*, the beginning of all namespaces. Errors: `SettingsError`."""
    if not isinstance(name, str) or not name.strip() or "/" in name or "{" in name:
        raise SettingsError(f"collection_name must be a name without '/' and '{{', got {name!r:.100}")
    return name


def read_ids(ids: Mapping[str, object]) -> Ids:
    """Return those of *ids* that are set, as text without blanks around it. Errors: `InputError`."""
    return {name: read_id(name, value) for name, value in ids.items() if value is not None}


def read_id(name: str, value: object) -> str:
    """Return the id *value*, which may be a number. Errors: `InputError`."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text or any(map(str.isspace, text)):
        raise InputError(f"{name} must be a text without blanks or a whole number, got {value!r:.100}")
    return text


def to_metadata(labels: Entries) -> Item:
    """Return the metadata that *labels* keep; of a fact that was stated several times, that of all statements."""
    rest = labels.get(REST)
    metadata: Item = {}
    for text in rest if isinstance(rest, tuple) else filter(None, (rest,)):
        metadata |= json.loads(text)
    own = ((key, value) for key, value in labels.items() if key not in RESERVED)
    return metadata | {key: list(value) if isinstance(value, tuple) else value for key, value in own}


def first_ids(owner: Owner, labels: Iterable[Entries]) -> Ids:
    """Return the ids of a memory, by the *labels* of its sources: those of the first that has each."""
    ids = {name: value for name, value in owner.constants.items() if value is not None}
    for own in labels:
        for name in IDS:
            if name in own:
                ids.setdefault(name, str(own[name]))
    return ids
