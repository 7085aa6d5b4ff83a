"""All errors that kg-memory raises, as one tree of classes.

    KGMemoryError
    |-- SettingsError          a setting, a URL or an argument of ``open`` is invalid
    |-- MissingExtra           an optional dependency is not installed
    |-- InputError             an argument is invalid (also a ValueError)
    |   `-- NotFound           an argument names something that is not in the namespace
    |-- MemoryPaused           the namespace does not accept new episodes
    |-- EpisodeAborted         reading this episode ended the process too often
    |-- DatabaseError
    |   |-- DatabaseMissing    FalkorDB is not installed
    |   |-- DatabaseStartError the embedded server did not start
    |   |-- DatabaseUnavailable the server cannot be reached, or disconnected
    |   |-- DatabaseClosed     the memory was closed before
    |   |-- DatabaseVersionError the server's FalkorDB is too old
    |   |-- QueryError         the server rejected a query
    |   |   `-- DatabaseForbidden the user of the database lacks a permission
    |   `-- SchemaError        the stored schema is newer than this package, or damaged
    |-- EmbeddingError         the embedding model failed, or returned invalid vectors
    |   |-- EmbeddingUnavailable rate limit, server error, timeout, no connection
    |   `-- EmbeddingMismatch  the vectors in the graph are of another embedding model
    `-- ModelError             the language model returned no usable answer
        |-- ModelUnavailable   rate limit, server error, timeout, no connection
        |-- ModelRefusal       the model declined to answer
        |-- AnswerError        the answer stayed invalid after all retries
        `-- BudgetSpent        a budget does not cover the call

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
    """Base class of all errors that kg-memory raises on purpose.

    If the error ended the extraction of facts from a message, `steps` has the model usage of each step up to the
    failure.
    """

    steps: tuple[StepUsage, ...] = ()


class SettingsError(KGMemoryError, ValueError):
    """A setting, a URL or an argument of `GraphMemory.open` is invalid."""


class MissingExtra(KGMemoryError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class InputError(KGMemoryError, ValueError):
    """An argument of a method is invalid; also a `ValueError`."""


@contextmanager
def renaming(**names: str) -> Iterator[None]:
    """Return a context manager that renames an argument in the message of any `InputError` raised in its block.

    With ``renaming(center="near")``, "center must be a string" becomes "near must be a string".
    """
    try:
        yield
    except InputError as error:
        first, space, rest = str(error).partition(" ")
        error.args = (f"{names.get(first, first)}{space}{rest}",)
        raise


class NotFound(InputError):
    """An argument names an episode, a fact or another object that does not exist in the namespace, or was deleted."""


class MemoryPaused(KGMemoryError):
    """The namespace is paused: it accepts no new messages until `GraphMemory.unpause` is called."""


class EpisodeAborted(KGMemoryError):
    """Extracting facts from this message ended the process several times, so only `episodes.retry` tries it again."""


class DatabaseError(KGMemoryError):
    """Base class of errors of the database, FalkorDB."""


class DatabaseMissing(DatabaseError):
    """FalkorDB is not installed, and no server is set. The message lists the ways to get it."""


class DatabaseStartError(DatabaseError):
    """The embedded database server did not start."""


class DatabaseUnavailable(DatabaseError):
    """The database server cannot be reached, or disconnected during a query."""


class DatabaseClosed(DatabaseError):
    """A method was called after the memory was closed: a bug in the program, not an outage."""


class DatabaseVersionError(DatabaseError):
    """The FalkorDB version of the server is too old to store data safely."""


class QueryError(DatabaseError):
    """The database server rejected a query."""


class DatabaseForbidden(QueryError):
    """The database user has no permission for the command."""


class SchemaError(DatabaseError):
    """The schema stored in the graph is damaged, or newer than this version of the package supports."""


class EmbeddingError(KGMemoryError):
    """The embedding model failed, or returned invalid vectors."""


class EmbeddingUnavailable(EmbeddingError):
    """The embedding model could not be reached after all retries: rate limit, server error, timeout, no connection."""


class EmbeddingMismatch(EmbeddingError):
    """The vectors in the graph are from another embedding model, or have another dimension; see `data.reembed`."""


class ModelError(KGMemoryError):
    """The language model returned no usable answer."""


class ModelUnavailable(ModelError):
    """The language model could not be reached after all retries: rate limit, server error, timeout, no connection."""


class ModelRefusal(ModelError):
    """The language model declined to answer."""


class AnswerError(ModelError):
    """The language model's answer was invalid, even after all retries that asked for a correction."""


class BudgetSpent(ModelError):
    """A call to the language model was not made, because its cost would exceed a budget.

    `scope` says whose limit was reached: ``"episode"`` (one message), ``"day"`` or ``"namespace"``.
    """

    def __init__(self, message: str, scope: str = "namespace") -> None:
        super().__init__(message)
        self.scope = scope


_CALL = re.compile(r"`?memory\.([a-z]+\.[a-z]+)\([^()]*\)`?(?: and `(kg-memory [^`]+)` show\b)?")


def name_calls(text: str, names: Mapping[str, str]) -> str:
    """Replace calls such as ``memory.facts.list()`` in an error message by their names in another interface.

    *names*: the new names, such as ``{"facts.list": "GET /facts"}``.
    """

    def rename(found: re.Match[str]) -> str:
        name = names.get(found[1])
        return found[0] if name is None else f"`{name}`{' shows' if found[2] else ''}"

    return _CALL.sub(rename, text)
