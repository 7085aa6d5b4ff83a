"""What kind of failure an error is, in words of which none is a user's, a model's or a server's.

The message of an error may quote what people said: a server's refusal repeats the prompt, the database's the query.
"""

from __future__ import annotations

from kg_memory.errors import DatabaseClosed, DatabaseUnavailable, InputError

OWN_WORDS = (DatabaseClosed, DatabaseUnavailable, InputError)
"""Errors whose words are all our own, the network's, or an argument that cannot be used; none quotes a message."""


def kind(error: BaseException) -> str:
    """Return the class of *error*, or the HTTP status that it carries."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return str(status) if isinstance(status, int) else type(error).__name__


def reason(error: BaseException) -> str:
    """Return what may be written into a log about *error*: its kind, and that of its cause.

    One of `OWN_WORDS` is told in full.
    """
    if isinstance(error, OWN_WORDS):
        return str(error)
    cause = error.__cause__
    return kind(error) if cause is None else f"{kind(error)} ({kind(cause)})"
