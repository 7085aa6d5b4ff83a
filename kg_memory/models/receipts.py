"""What tells of forgetting: the receipt, and the log in which it is entered."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from kg_memory.models.graph import Value


class Residue(Value):
    """Where a `trace` of what was forgotten was found: in which property of what, a node's or a relation's, by its id.

    The trace is an ``id``, a ``word``, a ``name``, a ``quote``, the ``text`` of a message or a ``vector``.
    """

    label: str
    name: str
    id: str = ""
    trace: str


class ForgetReceipt(Value):
    """What was forgotten `at` that time, or would be in a dry run: the ids of the `episodes`, `facts` and `entities`.

    `restored` are the facts that hold again, as what had ended them is gone, `changed` those that are told otherwise or
    hold at other times. `unread` are the episodes that are to be read again (`resume` does): what they say was known
    only together with what went. Of the `redacted` only some characters went; these are their ids from now on. `texts`
    has what each id stands for, in a dry run alone: a receipt keeps no text.

    It took so many `parts`, each of them whole. `residue` is what a search of so many `searched` properties found of it
    afterwards: nothing, where all is well, and ``None`` where nobody searched. `erased` tells whether the files of the
    server are without it too; where they are not, `advice` says what to do. `checkpoints` are the threads whose
    checkpoints were deleted. The log knows it by its `receipt`; `head` is the hash of its entry.
    """

    kind: str = "episode"
    episodes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    parts: int = 1
    dry_run: bool = False
    at: datetime
    by: str = "user"
    reason: str = ""
    texts: dict[str, str] = Field(default_factory=dict)
    residue: tuple[Residue, ...] | None = None
    searched: int = 0
    erased: bool | None = None
    advice: str = ""
    checkpoints: tuple[str, ...] = ()
    receipt: str = ""
    head: str = ""


class AuditEntry(Value):
    """That something was forgotten `at` that time, without its text: the entry `number` of the log.

    `what`, `namespace` and the `messages` (the first 1,000) are salted hashes. `residue` is how many traces a search
    of so many `searched` properties found, ``None`` where it could not be searched. It is `complete` unless whoever
    forgot was killed; what was done then is told. `before` is the hash of the entry before, `hash` its own.
    """

    number: int
    receipt: str
    kind: str
    what: str
    namespace: str
    messages: tuple[str, ...] = ()
    by: str
    reason: str = ""
    at: datetime
    episodes: int = 0
    facts: int = 0
    entities: int = 0
    residue: int | None = None
    searched: int = 0
    erased: bool | None = None
    complete: bool = True
    before: str
    hash: str


class AuditReport(Value):
    """What checking the log found: the `problems`, how many `entries` there are, and the hash of the last, its `head`.

    `pending` are those who forget just now, or were killed less than a minute ago: their entries are to come.
    """

    entries: int
    head: str | None = None
    problems: tuple[str, ...] = ()
    pending: int = 0

    @property
    def ok(self) -> bool:
        """Whether the log is whole."""
        return not self.problems
