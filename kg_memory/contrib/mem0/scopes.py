"""Scopes: the Mem0 ids to which a memory belongs, and the namespace and labels with which it is stored.

The memories of a user are in the namespace ``mem0/user/ann``. Memories of an agent or run without a user have a
namespace of their own. The other ids (``agent_id``, ``run_id``, ``app_id``) are labels of each message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from kg_memory.contrib.importers.sentences import IDS, RESERVED, REST
from kg_memory.errors import InputError, SettingsError

OWNERS: Mapping[str, str] = {"user_id": "user", "agent_id": "agent", "run_id": "run"}
"""The ids that can own a namespace, in order of priority, and their words in its name."""
Ids = dict[str, str]
Entries = Mapping[str, Any]
"""Values by name: metadata, labels, a filter, or a part of a config."""
Item = dict[str, Any]
"""A memory, event, history row or message as a dict with Mem0's keys."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The user, agent or run to whom a namespace belongs."""

    collection: str
    field: str
    value: str

    @property
    def namespace(self) -> str:
        """The namespace of the owner's memories, such as "mem0/user/ann"."""
        return f"{self.collection}/{OWNERS[self.field]}/{self.value}"

    @property
    def constants(self) -> Mapping[str, str | None]:
        """The ids common to all memories in the namespace, such as ``{"user_id": "ann"}``; None for a missing id."""
        return {**dict.fromkeys(list(OWNERS)[: list(OWNERS).index(self.field)]), self.field: self.value}

    @classmethod
    def of_ids(cls, collection: str, ids: Mapping[str, str]) -> Self:
        """Return the owner of a memory with the given *ids*: the user, else the agent, else the run.

        Errors: `InputError` if none of these ids is given.
        """
        for field in OWNERS:
            if field in ids:
                return cls(collection, field, ids[field])
        raise InputError("at least one of user_id, agent_id and run_id must be set, as the owner of the memory")

    @classmethod
    def of_namespace(cls, collection: str, namespace: str) -> Self | None:
        """Return the owner of *namespace*: the user "ann" for ``"mem0/user/ann"``.

        None if *namespace* is not in the collection.
        """
        for field, word in OWNERS.items():
            start = f"{collection}/{word}/"
            if namespace.startswith(start):
                return cls(collection, field, namespace.removeprefix(start))
        return None


def read_collection(name: object) -> str:
    """Return *name* if it is a valid name of a collection, the first part of the names of its namespaces.

    Errors: `SettingsError`.
    """
    if not isinstance(name, str) or not name.strip() or "/" in name or "{" in name:
        raise SettingsError(f"collection_name must be a name without '/' and '{{', got {name!r:.100}")
    return name


def read_ids(ids: Mapping[str, object]) -> Ids:
    """Return those *ids* that are not None, as texts: ``{"user_id": 7, "run_id": None} -> {"user_id": "7"}``.

    Errors: `InputError` for an invalid id.
    """
    return {name: read_id(name, value) for name, value in ids.items() if value is not None}


def read_id(name: str, value: object) -> str:
    """Return *value*, a text or integer, as the text of an id. Errors: `InputError` if it is empty or has spaces."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text or any(map(str.isspace, text)):
        raise InputError(f"{name} must be a text without spaces or a whole number, got {value!r:.100}")
    return text


def to_metadata(labels: Entries) -> Item:
    """Return the Mem0 metadata of a memory; *labels* are the labels that all its source messages have in common."""
    rest = labels.get(REST)
    metadata: Item = {}
    for text in rest if isinstance(rest, tuple) else filter(None, (rest,)):
        metadata |= json.loads(text)
    own = ((key, value) for key, value in labels.items() if key not in RESERVED)
    return metadata | {key: list(value) if isinstance(value, tuple) else value for key, value in own}


def first_ids(owner: Owner, labels: Iterable[Entries]) -> Ids:
    """Return the Mem0 ids of a memory: ``{"user_id": "ann", "run_id": "r1"}``."""
    ids = {name: value for name, value in owner.constants.items() if value is not None}
    for own in labels:
        for name in IDS:
            if name in own:
                ids.setdefault(name, str(own[name]))
    return ids
