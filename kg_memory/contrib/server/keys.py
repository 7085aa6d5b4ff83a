"""API keys: hashes of them lie beside the graphs in the database, so that all servers on it share them."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, get_args

from kg_memory.errors import InputError
from kg_memory.falkor.connect import Database
from kg_memory.models.graph import Value
from kg_memory.runtime.effects import both
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_name

Scope = Literal["read", "write", "review", "forget", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
KEYS = "kg-memory:keys"
"""The hash of the server that has a field for each key that was ever made."""
PREFIX = "kgm_"
FORM = re.compile(r"kgm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class ApiKey(Value):
    """A key without its secret: the `scopes` that it has in the namespaces that match one of its patterns.

    In a pattern, ``*`` stands for any characters. ``admin`` has every scope.
    """

    id: str
    name: str
    scopes: tuple[Scope, ...]
    namespaces: tuple[str, ...] = ("*",)
    created_at: datetime
    revoked_at: datetime | None = None

    def has(self, scope: Scope) -> bool:
        """Return whether the key has *scope*."""
        return scope in self.scopes or "admin" in self.scopes

    def reaches(self, namespace: str) -> bool:
        """Return whether *namespace* matches one of the patterns."""
        return any(_matches(pattern, namespace) for pattern in self.namespaces)


class _StoredKey(ApiKey):
    sha256: str
    """The hash of the whole key; a fast one will do, as nobody guesses 256 random bits."""


class KeyRing:
    """The keys of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_flow(
        self, name: str, scopes: Sequence[str] = ("read", "write"), namespaces: Sequence[str] = ("*",)
    ) -> Flow[tuple[ApiKey, str]]:
        """Make a key, and return it with its secret, which is stored nowhere. Errors: `InputError`."""
        validate_name("name", name, "what the key is for")
        if not scopes or (unknown := set(scopes) - set(SCOPES)):
            got = min(unknown) if scopes else "none"
            raise InputError(f"scopes must be some of {', '.join(SCOPES)}, got {got}")
        for pattern in namespaces or [""]:
            validate_name("namespaces", pattern, "a namespace, or a pattern such as team/*")
        id_ = secrets.token_hex(6)
        secret = f"{PREFIX}{id_}_{secrets.token_urlsafe(32)}"
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        stored = _StoredKey(
            id=id_,
            name=name,
            scopes=ordered,
            namespaces=tuple(namespaces),
            created_at=datetime.now(UTC),
            sha256=_hash(secret),
        )
        yield from self._database.command_flow("HSET", KEYS, id_, stored.model_dump_json(), at=KEYS)
        return _without_hash(stored), secret

    create, acreate = both(create_flow)

    def list_flow(self) -> Flow[list[ApiKey]]:
        """Return all keys, the latest first; those that were revoked are among them."""
        texts: Iterable[str] = yield from self._database.command_flow("HVALS", KEYS, at=KEYS)
        keys = [_without_hash(_StoredKey.model_validate_json(text)) for text in texts]
        return sorted(keys, key=lambda key: key.created_at, reverse=True)

    list, alist = both(list_flow)

    def revoke_flow(self, id_: str) -> Flow[ApiKey]:
        """Have the key with that id refused from now on. Errors: `InputError` when there is none."""
        stored = yield from self._read(id_)
        if stored is None:
            raise InputError(f"no key has the id {id_!r}; `kg-memory keys list` shows the ids")
        revoked = stored if stored.revoked_at else stored.model_copy(update={"revoked_at": datetime.now(UTC)})
        yield from self._database.command_flow("HSET", KEYS, id_, revoked.model_dump_json(), at=KEYS)
        return _without_hash(revoked)

    revoke, arevoke = both(revoke_flow)

    def find_flow(self, secret: str) -> Flow[ApiKey | None]:
        """Return the key with that *secret*; ``None`` if there is none, or it was revoked."""
        form = FORM.fullmatch(secret)
        stored = (yield from self._read(form[1])) if form else None
        matches = hmac.compare_digest(_hash(secret), stored.sha256 if stored else _hash(""))
        return _without_hash(stored) if stored and matches and stored.revoked_at is None else None

    find, afind = both(find_flow)

    def is_valid_flow(self, id_: str) -> Flow[bool]:
        """Return whether the key with that id is there still, and was not revoked."""
        stored = yield from self._read(id_)
        return stored is not None and stored.revoked_at is None

    is_valid, ais_valid = both(is_valid_flow)

    def exist_flow(self) -> Flow[bool]:
        """Return whether any key was ever made: a revoked key opens nothing."""
        return bool((yield from self._database.command_flow("EXISTS", KEYS, at=KEYS)))

    exist, aexist = both(exist_flow)

    def _read(self, id_: str) -> Flow[_StoredKey | None]:
        text = yield from self._database.command_flow("HGET", KEYS, id_, at=KEYS)
        return None if text is None else _StoredKey.model_validate_json(text)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _without_hash(stored: _StoredKey) -> ApiKey:
    return ApiKey.model_validate(stored.model_dump(exclude={"sha256"}))


def _matches(pattern: str, namespace: str) -> bool:
    """Return whether *namespace* matches *pattern*, in linear time: each part between stars is looked for once."""
    first, *parts = map(re.escape, pattern.split("*"))
    if not parts:
        return pattern == namespace
    *middle, last = parts
    form = "".join((first, *(f"(?>.*?{part})" for part in middle), ".*", last))
    return re.fullmatch(form, namespace, re.DOTALL) is not None
