"""The caller of a tool: whose memory it is and what it may do, which no model chooses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from kg_memory.contrib.server.keys import ApiKey
from kg_memory.errors import InputError
from kg_memory.text.message_fields import USER
from kg_memory.validation import validate_namespace

Profile = Literal["core", "full", "read-only"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
LAUNCHED = ApiKey(id="stdio", name="mcp", scopes=("admin",), created_at=datetime.fromtimestamp(0, UTC))
"""The key of a server that was launched over stdio: who launches it owns the database."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: its `key`, the `namespace` of all its calls, and the tools of its `profile`.

    `user` is the speaker of what is remembered, and whom "I" in a question means.
    """

    key: ApiKey
    namespace: str
    profile: Profile = "core"
    user: str = USER

    @classmethod
    def make(cls, key: ApiKey, namespace: str, profile: str | None = None, user: str | None = None) -> Caller:
        """Return a caller after checking its parts. Errors: `InputError`."""
        chosen = next((name for name in PROFILES if name == (profile or "core")), None)
        if chosen is None:
            raise InputError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
        return cls(key, validate_namespace(namespace), chosen, user or USER)
