"""Every error that kg-memory raises, in one tree.

    KGMemoryError
    |-- SettingsError          a setting, a URL or an argument of ``open`` is wrong
    |-- MissingExtra           an optional dependency is not installed
    |-- InputError             an argument is invalid (also a ValueError)
    |   `-- NotFound           an argument names something that is not in the namespace
    |-- EpisodeAborted         reading this episode ended the process too often
    |-- DatabaseError
    |   |-- DatabaseMissing    there is no FalkorDB here
    |   |-- DatabaseStartError the embedded server did not start
    |   |-- DatabaseUnavailable the server cannot be reached, or disconnected
    |   |-- DatabaseClosed     the memory was closed before
    |   |-- DatabaseVersionError the server's FalkorDB is too old
    |   |-- QueryError         the server refused a query
    |   |   `-- DatabaseForbidden the user of the database lacks a right
    |   `-- SchemaError        the stored schema is newer than this package, or broken
    |-- EmbeddingError         the embedding model failed, or returned no valid vector
    |   |-- EmbeddingUnavailable rate limit, server error, timeout, no connection
    |   `-- EmbeddingMismatch  the graph was built with another embedding model
    `-- ModelError             the language model gave no usable answer
        |-- ModelUnavailable   rate limit, server error, timeout, no connection
        |-- ModelRefusal       the model declined to answer
        |-- AnswerError        the answer stayed invalid after the repairs
        `-- BudgetSpent        a budget does not cover the question

Each message ends with a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg_memory.models.operations import StepUsage


class KGMemoryError(Exception):
    """The root of all errors raised deliberately by this package.

    If reading an episode failed, `steps` has the usage of each step until then.
    """

    steps: tuple[StepUsage, ...] = ()


class SettingsError(KGMemoryError, ValueError):
    """A setting, a URL or an argument of ``open`` is wrong."""


class MissingExtra(KGMemoryError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class InputError(KGMemoryError, ValueError):
    """An argument is invalid: it cannot be stored, or the question cannot be asked."""


@contextmanager
def renaming(**names: str) -> Iterator[None]:
    """Let an `InputError` that begins with an argument of the verb begin with that of its caller, by *names*."""
    try:
        yield
    except InputError as error:
        first, space, rest = str(error).partition(" ")
        error.args = (f"{names.get(first, first)}{space}{rest}",)
        raise


class NotFound(InputError):
    """An argument names something that is not in the namespace, or not any more."""


class MemoryPaused(KGMemoryError):
    """The namespace is paused: nothing new is remembered until `GraphMemory.unpause`."""


class EpisodeAborted(KGMemoryError):
    """Reading an episode ended the process several times: it is stored, and only `retry` reads it again."""


class DatabaseError(KGMemoryError):
    """Anything about FalkorDB."""


class DatabaseMissing(DatabaseError):
    """There is no FalkorDB here; the message names every way to get one."""


class DatabaseStartError(DatabaseError):
    """The embedded server did not start."""


class DatabaseUnavailable(DatabaseError):
    """The server cannot be reached, or disconnected during a query."""


class DatabaseClosed(DatabaseError):
    """The memory was closed before: a bug in the program, not an outage."""


class DatabaseVersionError(DatabaseError):
    """The server's FalkorDB is older than the first version that stores data safely."""


class QueryError(DatabaseError):
    """The server refused a query."""


class DatabaseForbidden(QueryError):
    """The user of the database lacks the right to a command."""


class SchemaError(DatabaseError):
    """The stored schema is newer than this package, or broken."""


class EmbeddingError(KGMemoryError):
    """The embedding model failed, or returned no valid vector."""


class EmbeddingUnavailable(EmbeddingError):
    """Rate limit, server error, timeout or no connection, after the retries."""


class EmbeddingMismatch(EmbeddingError):
    """The graph was built with another embedding model or dimension."""


class ModelError(KGMemoryError):
    """The language model returned no usable answer."""


class ModelUnavailable(ModelError):
    """Rate limit, server error, timeout or no connection, after the retries."""


class ModelRefusal(ModelError):
    """The model declined to answer."""


class AnswerError(ModelError):
    """The answer stayed invalid after the repairs."""


class BudgetSpent(ModelError):
    """A budget does not cover the question, which was not asked; `scope` is ``episode``, ``day`` or ``namespace``."""

    def __init__(self, message: str, scope: str = "namespace") -> None:
        super().__init__(message)
        self.scope = scope


_CALL = re.compile(r"`?memory\.([a-z]+\.[a-z]+)\([^()]*\)`?(?: and `(kg-memory [^`]+)` show\b)?")


def name_calls(text: str, names: Mapping[str, str]) -> str:
    """Return the *text* of an error with the calls that *names* has under these: "memory.facts.list()" as "GET /facts".

    A command that is named beside a call goes, as one of the two is enough.
    """

    def rename(found: re.Match[str]) -> str:
        name = names.get(found[1])
        return found[0] if name is None else f"`{name}`{' shows' if found[2] else ''}"

    return _CALL.sub(rename, text)
