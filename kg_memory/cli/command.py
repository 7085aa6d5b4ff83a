"""Run one command of ``kg-memory``: parse its arguments, open the memory, and call the command's method."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from io import TextIOWrapper
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kg_memory import errors
from kg_memory.cli import env_file
from kg_memory.cli.commands import make_parser
from kg_memory.cli.output import SHORT, Screen, login
from kg_memory.settings import OFFLINE, SLEEP_AFTER, Settings
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

DONE, FAILED, INTERRUPTED = 0, 1, 130
LIST_NAMESPACES = "kg-memory namespaces lists them"
NOTHING_YET = "Nothing is remembered yet. Add a conversation: kg-memory ingest FILE"
_COMMANDS = {
    "facts.list": "kg-memory facts --ids",
    "facts.about": "kg-memory facts NAME --ids",
    "entities.list": "kg-memory entities --ids",
    "entities.decisions": "kg-memory entities decisions",
    "episodes.list": "kg-memory episodes --ids",
    "episodes.resume": "kg-memory resume",
    "episodes.retry": "kg-memory retry",
    "reviews.list": "kg-memory review --list",
    "data.namespaces": "kg-memory namespaces",
}
_ARGUMENT = re.compile(r"^(?:[a-z]+_[a-z_]+|at|during|since|until)(?= must)")
# The arguments that are ids and may be shortened, with the labels of their nodes.
_IDS = {"fact": "Fact", "episode": "Episode", "facts": "Fact", "episodes": "Episode"}
_SHOWN_NAMES = 10
# The length of a complete id (a UUID).
_WHOLE = 36
_BEGINNING = "0001-01-01"


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``kg-memory`` with the command line arguments *argv* (None: those of the process); return the exit code.

    The code is 0 for success, 1 after an error or if the command left something undone, 2 for wrong usage, and 130
    after Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # print letters that the terminal's encoding lacks as escapes
            stream.reconfigure(errors="backslashreplace")
    try:
        words = (sys.argv[1:] if argv is None else list(argv)) or ["--help"]
        arguments = make_parser(only=frozenset(words)).parse_args(words)
    except SystemExit as stop:  # argparse has printed the help, the version or a usage error
        return int(stop.code or 0)
    return run(arguments)


def run(arguments: Namespace) -> int:
    """Run the command that *arguments* name, and show its errors; return the exit code."""
    screen = Screen(as_json=getattr(arguments, "json", False))
    try:
        with _show_log(screen, getattr(arguments, "log_level", None)):
            code = _import_function(arguments.run)(arguments, screen)
            sys.stdout.flush()  # raises BrokenPipeError if the reader of the output is gone
            return code
    except KeyboardInterrupt:
        screen.note("Stopped.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if getattr(arguments, "debug", False):
            raise
        screen.error(_describe_error(error, arguments))
        return FAILED


def _describe_error(error: Exception, arguments: Namespace) -> str:
    """Return the message of *error* with Python names replaced by those of the command line.

    ``memory.facts.list()`` becomes ``kg-memory facts --ids``, and ``as_of must ...`` becomes ``--on must ...``.
    """
    if not isinstance(error, errors.KGMemoryError | OSError):
        return f"{type(error).__name__}: {error}\nThis is a fault of kg-memory: report what --debug shows"

    def option(found: re.Match[str]) -> str:
        name = found[0]
        return f"--{name.replace('_', '-') if name != 'as_of' else 'on'}" if name in arguments else name

    text = _ARGUMENT.sub(option, errors.name_calls(str(error), _COMMANDS))
    if not isinstance(error, errors.NotFound):
        return text
    return f"{text}\nSearched in the namespace {namespace_of(arguments)!r}; -n names another, and {LIST_NAMESPACES}."


@contextmanager
def _show_log(screen: Screen, level: str | None) -> Iterator[None]:
    """Print log messages of this package on stderr during the ``with`` block.

    *level*: the lowest level to print, such as ``"info"``; None means warnings, without those that commands print.
    """
    notes, logger = _ScreenHandler(screen), logging.getLogger("kg_memory")
    before = logger.level
    if level is None:
        notes.setLevel(logging.WARNING)
        notes.addFilter(lambda record: record.name != "kg_memory.episodes")  # commands print these themselves
    else:
        logger.setLevel(level.upper())
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)
        logger.setLevel(before)


class _ScreenHandler(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.note(record.getMessage())


def _import_function(path: str) -> Callable[..., int]:
    """Return the function with the path ``"module:name"``; a module without a dot is one of `kg_memory.cli`.

    It is imported only now, so that each command loads only its own modules.
    """
    module, _, name = path.partition(":")
    function: Callable[..., int] = getattr(import_module(module if "." in module else f"kg_memory.cli.{module}"), name)
    return function


# Open the memory


def settings_of(arguments: Namespace) -> Settings:
    """Return the settings for a command; its arguments override environment variables, which override ``.env``.

    ``--data-dir`` also overrides a server URL in the environment. Without a model, key or base URL, the offline model
    is used.
    """
    url, data_dir = getattr(arguments, "url", None), getattr(arguments, "data_dir", None)
    named = {name: getattr(arguments, name, None) for name in ("model", "plan", "ontology")}
    settings = Settings.from_env(env_file.environment()).with_(url=url, data_dir=data_dir, **named)
    if not (settings.model or settings.api_key or settings.base_url):
        settings = settings.with_(model=OFFLINE)
    if data_dir is not None and url is None and settings.url is not None:
        return replace(settings, url=None)
    return settings


def namespace_of(arguments: Namespace) -> str:
    """Return the namespace to use: ``--namespace``, else ``KG_MEMORY_NAMESPACE``, else ``"default"``.

    Errors: `InputError` for an invalid name.
    """
    default = env_file.environment().get(env_file.NAMESPACE) or DEFAULT_NAMESPACE
    return validate_namespace(getattr(arguments, "namespace", default))


def open_memory(arguments: Namespace, screen: Screen, *, serves: bool = False) -> GraphMemory:
    """Open the memory that the command line names, with its models; use the result in a ``with`` statement.

    *screen* shows a message when the database must be waited for.
    """
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - slow to import

    settings = settings_of(arguments)
    if serves and settings.sleep_after is None:
        settings = settings.with_(sleep_after=SLEEP_AFTER)
    return GraphMemory.open(settings=settings, on_wait=screen.note)


def open_to_look(arguments: Namespace, screen: Screen) -> GraphMemory:
    """Open the memory for a read-only command; no models are opened, so no API key is needed."""
    return open_without_models(settings_of(arguments), screen)


def open_to_change(arguments: Namespace, screen: Screen) -> GraphMemory:
    """Open the memory for a command that changes it, but needs no language model.

    If the models cannot be opened (no API key, or a package is missing), only the embedding model is opened.
    """
    try:
        return open_memory(arguments, screen)
    except (errors.SettingsError, errors.MissingExtra) as error:
        return open_without_models(settings_of(arguments), screen, str(error), embeddings=None)


def open_without_models(
    settings: Settings, screen: Screen, why: str = "this command opens no model", **changes: None
) -> GraphMemory:
    """Open the memory without models; a call to a model raises an error with the message *why*.

    *changes*: ``embeddings=None`` opens the embedding model nevertheless.
    """
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - slow to import
    from kg_memory.memory.open import without_models  # noqa: PLC0415

    return GraphMemory.open(**{**without_models(settings, why), **changes}, on_wait=screen.note)


# Call a verb


def call_verb(memory: GraphMemory, arguments: Namespace, **changes: Any) -> Any:
    """Call the memory's method that belongs to the command, such as ``memory.facts.list``, and return its result.

    Its arguments come from the command line; *changes* replace some of them.
    """
    verb: Callable[..., Any] = attrgetter(arguments.command.verb)(memory)
    return verb(**{**verb_arguments(memory, arguments), **changes})


def verb_arguments(memory: GraphMemory, arguments: Namespace) -> dict[str, Any]:
    """Build the keyword arguments of a command's `GraphMemory` method: ``{"limit": 5, "namespace": "default"}``.

    *arguments*: the parsed command line. Shortened ids are completed, and ``FROM..UNTIL`` becomes a pair of times.
    """
    given = {name: value for name in arguments.parameters if (value := getattr(arguments, name)) is not None}
    for name in given.keys() & _IDS.keys():
        value = given[name]
        whole = [whole_id(memory, arguments, _IDS[name], id_) for id_ in ([value] if isinstance(value, str) else value)]
        given[name] = whole[0] if isinstance(value, str) else whole
    if "by" in arguments.parameters:
        given.setdefault("by", login())
    if ".." in given.get("during", ""):
        given["during"] = tuple(end.strip() or None for end in given["during"].split("..", 1))
    return {**given, "namespace": namespace_of(arguments)}


def whole_id(memory: GraphMemory, arguments: Namespace, label: str, begin: str, *, shortest: int = SHORT) -> str:
    """Return the full id of a stored item from its first characters *begin*, at least *shortest*.

    *label*: ``"Episode"`` (a message), ``"Fact"``, ``"Verdict"`` or ``"Identity"``. If no id begins with *begin*, it is
    returned unchanged. Errors: `InputError` if several ids do.
    """
    from kg_memory.falkor.connect import graph_key  # noqa: PLC0415 - slow to import
    from kg_memory.falkor.queries.episodes import IDS_BEGINNING  # noqa: PLC0415

    if not shortest <= len(begin) < _WHOLE:
        return begin
    key = graph_key(namespace_of(arguments))
    rows = memory.driver.store.database.query(key, IDS_BEGINNING[label], {"begin": begin}, write=False)
    if len(rows) > 1 and {"id": begin} not in rows:
        raise errors.InputError(f"several ids begin with {begin!r}: give more of the id")
    return str(rows[0]["id"]) if len(rows) == 1 else begin


def explain_no_namespace(memory: GraphMemory, arguments: Namespace) -> str:
    """Return a message with the names of existing namespaces if the command's namespace is missing; else ``""``."""
    namespace = namespace_of(arguments)
    try:
        names = memory.data.namespaces()
    except errors.DatabaseUnavailable:  # a part of a cluster cannot be reached
        return ""
    if not names:
        return NOTHING_YET
    if namespace in names:
        return ""
    shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
    more = f" and {len(names) - _SHOWN_NAMES} more: {LIST_NAMESPACES}" if len(names) > _SHOWN_NAMES else ""
    return f"There is no namespace {namespace!r}. There {'is' if len(names) == 1 else 'are'} {shown}{more}."


def explain_nothing(memory: GraphMemory, arguments: Namespace, otherwise: str) -> str:
    """Return a message that explains why a command found nothing.

    The reason may be an unknown namespace, or a time ``--believed-at`` before the first fact was known. In other cases,
    the text *otherwise* is returned.
    """
    if missing := explain_no_namespace(memory, arguments):
        return missing
    namespace = namespace_of(arguments)
    believed_at = getattr(arguments, "believed_at", None)
    if believed_at is None or memory.facts.changes(_BEGINNING, believed_at, namespace=namespace, limit=1):
        return otherwise
    if not (first := memory.facts.changes(_BEGINNING, namespace=namespace, limit=1)):
        return otherwise
    return (
        f"No fact was known in {namespace!r} by {believed_at}: the first was at {first[0].at:%Y-%m-%d %H:%M} UTC. "
        "--believed-at asks what this memory knew at that time; --on asks what was true then, by what it knows now."
    )


def review_command(arguments: Namespace) -> str:
    """Return the command line that lists the open reviews of this namespace: ``kg-memory review -n ann``."""
    return f"kg-memory review{name_option(arguments)}"


def name_option(arguments: Namespace) -> str:
    """Return the command line option for this namespace, such as ``" -n ann"``; ``""`` for the default namespace."""
    namespace = namespace_of(arguments)
    return "" if namespace == DEFAULT_NAMESPACE else f" -n {shlex.quote(namespace)}"
