"""What makes two episodes, entities or facts the same one: canonical names and ids, purely.

Ids are uuid5 of the namespace and what identifies the thing there, so the same input gives the
same id wherever and however often it is read. Keys are fixed-length hashes: safe in an index
whatever the text was.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from uuid import NAMESPACE_URL, UUID, uuid5

LONGEST_NAME = 512
"""Bytes of a name that count; what is longer is cut."""
_KEPT = 100
"""Characters of the longest name whose key is kept at hand."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ROOT = uuid5(NAMESPACE_URL, "https://github.com/kg-memory")


def replace_unstorable(text: str) -> str:
    """Return *text* as the database can hold it: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def display_name(name: str) -> str:
    """Return *name* on one line, without control characters, cut to `LONGEST_NAME` bytes."""
    kept = "".join(
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in replace_unstorable(name)
    )
    joined = " ".join(kept.split())
    return joined.encode()[:LONGEST_NAME].decode("utf-8", "ignore").strip()


def canonical_name(name: str) -> str:
    """Return the form under which *name* is compared: NFKC, case-folded, on one line, cut."""
    if name.isascii() and name.isprintable():  # the same, in less time
        return " ".join(name.casefold().split())[:LONGEST_NAME].strip()
    return display_name(unicodedata.normalize("NFKC", display_name(name)).casefold())


def alias_key(name: str) -> str:
    """Return the key of a name, whatever the type of what it names."""
    return _kept(name) if len(name) <= _KEPT else _alias_key(name)


def _alias_key(name: str) -> str:
    return _hash(canonical_name(name))


_kept = lru_cache(maxsize=65_536)(_alias_key)


def entity_key(name: str, type_: str) -> str:
    """Return the key of the entity that was first called *name* and has that type."""
    return _hash(canonical_name(type_), canonical_name(name))


def thread_key(thread: str | None) -> str:
    """Return the key of a conversation thread; messages without one share the namespace's own."""
    return _hash("thread", thread or "")


def episode_id(namespace: str, parts: Iterable[str | None]) -> str:
    """Return the id of the episode that *parts* identify within *namespace*."""
    return _uuid(namespace, "episode", *(part or "" for part in parts))


def entity_id(namespace: str, key: str) -> str:
    """Return the id of the entity with that key."""
    return _uuid(namespace, "entity", key)


def fact_id(namespace: str, subject: str, predicate: str, objects: Iterable[str], sentence: str) -> str:
    """Return the id of a fact: who, what, whom (as entity keys), and in which words."""
    return _uuid(namespace, "fact", subject, predicate, *sorted(objects), canonical_sentence(sentence))


def canonical_sentence(sentence: str) -> str:
    """Return the form under which sentences are compared: NFKC, case-folded, letters and digits only."""
    folded = unicodedata.normalize("NFKC", replace_unstorable(sentence)).casefold()
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def belief_id(namespace: str, fact: str, cause: str, *times: int) -> str:
    """Return the id of the belief in a period of *fact* that *cause*, an episode or a decision, gave."""
    return _uuid(namespace, "belief", fact, cause, *map(str, times))


def verdict_id(namespace: str, one: str, other: str) -> str:
    """Return the id of the verdict about two facts, whichever of them is the new one."""
    return _uuid(namespace, "verdict", *sorted((one, other)))


def community_id(namespace: str, oldest: str, level: int = 0) -> str:
    """Return the id of the community of that level whose member since longest is the entity with that id."""
    return _uuid(namespace, "community", oldest, *([str(level)] if level else []))


def decision_id(namespace: str, verdict: str, at: int) -> str:
    """Return the id of what was decided about a verdict at that instant."""
    return _uuid(namespace, "decision", verdict, str(at))


def _uuid(namespace: str, *parts: str) -> str:
    return str(uuid5(_namespace_id(namespace), _hash(*parts)))


@lru_cache(maxsize=1024)
def _namespace_id(namespace: str) -> UUID:
    """Return the id within which the ids of what the namespace has are made."""
    return uuid5(_ROOT, _hash(namespace))


def _hash(*parts: str) -> str:
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]
