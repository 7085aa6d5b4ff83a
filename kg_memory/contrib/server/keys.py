"""API keys of the server. The database stores their hashes, so all servers that share it accept the same keys."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
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
"""The Redis hash with a field for each key, including revoked keys."""
PREFIX = "kgm_"
FORM = re.compile(r"kgm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class ApiKey(Value):
    """An API key without its secret: it has `scopes` in the namespaces that match one of the patterns in `namespaces`.

    ``*`` in a pattern matches any characters: ``"support/*"``. `reads` are patterns of further namespaces, in which it
    has no scope but ``read``. The scope ``admin`` includes all others. `revoked_at` is ``None`` while the key is valid.
    """

    id: str
    name: str
    scopes: tuple[Scope, ...]
    namespaces: tuple[str, ...] = ("*",)
    reads: tuple[str, ...] = ()
    created_at: datetime
    revoked_at: datetime | None = None

    def has(self, scope: Scope) -> bool:
        """Return whether the key has *scope* or the scope ``admin``, which includes all others."""
        return scope in self.scopes or "admin" in self.scopes

    def reaches(self, namespace: str, scope: Scope = "read") -> bool:
        """Return whether one of the key's patterns for *scope*, such as ``team/*``, matches *namespace*."""
        patterns = (*self.namespaces, *self.reads) if scope == "read" else self.namespaces
        # Only * is special: the other wildcards of fnmatch are escaped.
        return any(fnmatchcase(namespace, re.sub(r"[?[]", r"[\g<0>]", pattern)) for pattern in patterns)

    def allows(self, scope: Scope, namespace: str) -> bool:
        """Return whether the key has *scope* in *namespace*."""
        return self.has(scope) and self.reaches(namespace, scope)


class _StoredKey(ApiKey):
    sha256: str
    """The hash of the whole key. A fast hash suffices, because 256 random bits cannot be guessed."""


class KeyRing:
    """Creates, finds and revokes the API keys that are stored in *database*."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_flow(
        self,
        name: str,
        scopes: Sequence[str] = ("read", "write"),
        namespaces: Sequence[str] = ("*",),
        reads: Sequence[str] = (),
    ) -> Flow[tuple[ApiKey, str]]:
        """Create an API key and return (key, secret). The client sends the secret; only its hash is stored.

        *name* says what the key is for. *scopes* are among ``read``, ``write``, ``review``, ``forget`` and ``admin``.
        *namespaces* are names or patterns such as ``team/*``; *reads* are patterns for the scope ``read`` only. Raises
        `InputError` for an empty or unknown value.
        """
        validate_name("name", name, "a name that says what the key is for")
        if not scopes or (unknown := set(scopes) - set(SCOPES)):
            raise InputError(f"scopes must be some of {', '.join(SCOPES)}, got {min(unknown) if scopes else 'none'}")
        for pattern in (*namespaces, *reads) if namespaces else [""]:
            validate_name("namespaces", pattern, "a namespace, or a pattern such as team/*")
        id_ = secrets.token_hex(6)
        secret = f"{PREFIX}{id_}_{secrets.token_urlsafe(32)}"
        stored = _StoredKey(
            id=id_,
            name=name,
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            namespaces=tuple(namespaces),
            reads=tuple(reads),
            created_at=datetime.now(UTC),
            sha256=_hash(secret),
        )
        yield from self._database.command_flow("HSET", KEYS, id_, stored.model_dump_json(), at=KEYS)
        return _without_hash(stored), secret

    create, acreate = both(create_flow)

    def list_flow(self) -> Flow[list[ApiKey]]:
        """Return all keys, including revoked ones, newest first."""
        texts: Iterable[str] = yield from self._database.command_flow("HVALS", KEYS, at=KEYS)
        keys = [_without_hash(_StoredKey.model_validate_json(text)) for text in texts]
        return sorted(keys, key=lambda key: key.created_at, reverse=True)

    list, alist = both(list_flow)

    def revoke_flow(self, id_: str) -> Flow[ApiKey]:
        """Revoke the key with the id *id_* and return it: from now on, requests with it are rejected.

        Revoking a key twice is allowed. Raises `InputError` if there is no such key.
        """
        stored = yield from self._read(id_)
        if stored is None:
            raise InputError(f"key {id_!r} not found; `kg-memory keys list` shows the ids")
        revoked = stored if stored.revoked_at else stored.model_copy(update={"revoked_at": datetime.now(UTC)})
        yield from self._database.command_flow("HSET", KEYS, id_, revoked.model_dump_json(), at=KEYS)
        return _without_hash(revoked)

    revoke, arevoke = both(revoke_flow)

    def find_flow(self, secret: str) -> Flow[ApiKey | None]:
        """Return the API key that has this *secret*; ``None`` if there is none or it was revoked."""
        form = FORM.fullmatch(secret)
        stored = (yield from self._read(form[1])) if form else None
        matches = hmac.compare_digest(_hash(secret), stored.sha256 if stored else _hash(""))
        return _without_hash(stored) if stored and matches and stored.revoked_at is None else None

    find, afind = both(find_flow)

    def is_valid_flow(self, id_: str) -> Flow[bool]:
        """Return whether the key with id *id_* exists and is not revoked."""
        stored = yield from self._read(id_)
        return stored is not None and stored.revoked_at is None

    is_valid, ais_valid = both(is_valid_flow)

    def exist_flow(self) -> Flow[bool]:
        """Return whether any key was ever created, including revoked keys.

        Revoked keys count so that the server does not become open to everybody when the last key is revoked.
        """
        return bool((yield from self._database.command_flow("EXISTS", KEYS, at=KEYS)))

    exist, aexist = both(exist_flow)

    def _read(self, id_: str) -> Flow[_StoredKey | None]:
        text = yield from self._database.command_flow("HGET", KEYS, id_, at=KEYS)
        return None if text is None else _StoredKey.model_validate_json(text)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _without_hash(stored: _StoredKey) -> ApiKey:
    return ApiKey.model_validate(stored.model_dump(exclude={"sha256"}))
