"""Declared blocks, and the versions of what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kg_memory.errors import SettingsError

LIMIT = 5000
"""Characters of one block, where nothing else is declared."""
Owner = Literal["user", "agent", "shared"]
_LABEL = re.compile(r"\w[\w-]{0,79}")


@dataclass(frozen=True, slots=True)
class Block:
    """A block that is declared: its *label*, what it is for, how long it may be, and what it says at first.

    *per* is whose it is: each user has one, each agent, or all share one. The tools do not edit one that is
    *read_only*; the program may. Errors: `SettingsError`.
    """

    label: str
    description: str = ""
    limit: int = LIMIT
    value: str = ""
    read_only: bool = False
    per: Owner = "user"

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not _LABEL.fullmatch(self.label):
            raise SettingsError(f"the label of a block must have letters, digits, _ and -, got {self.label!r:.100}")
        if type(self.limit) is not int or self.limit < 1:
            raise SettingsError(f"the limit of the block {self.label!r} must be above 0, got {self.limit!r}")
        if self.per not in ("user", "agent", "shared"):
            raise SettingsError(f"per of the block {self.label!r} must be user, agent or shared, got {self.per!r}")
        if not isinstance(self.value, str) or len(self.value) > self.limit:
            raise SettingsError(f"the value of the block {self.label!r} must be a text of {self.limit} characters")


@dataclass(frozen=True, slots=True)
class Version:
    """The text of a block from `at` on, and who wrote it; without an `episode` it is what was declared.

    `flags` are the patterns of prompt injection in it. One that is `withheld` for these is not shown to models.
    """

    label: str
    value: str
    episode: str | None = None
    at: datetime | None = None
    by: str | None = None
    flags: tuple[str, ...] = ()
    withheld: bool = False
