"""Resources: an entity, an episode, a timeline, and the reviews of the caller's namespace."""

from __future__ import annotations

from urllib.parse import quote


def root_of(namespace: str) -> str:
    """Return the beginning of the URIs of *namespace*."""
    return f"kg://{quote(namespace, safe='')}"
