"""Build the argument parser of ``kg-memory``.

A command may belong to a method of the memory, called its verb: then types and defaults of options come from the
method's signature.
"""

from __future__ import annotations

import argparse
import inspect
import json
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kg_memory import __version__
from kg_memory.errors import InputError
from kg_memory.plugins import load_plugins
from kg_memory.text import read_table

_ABOUT = "Long-term memory for LLM agents: a temporal knowledge graph in FalkorDB, made from conversations."
_START = """\
start here:
  kg-memory init                                   choose model, database and namespace
  kg-memory demo                                   watch a small story become a graph
  kg-memory ingest chat.jsonl                      remember a conversation
  kg-memory ask "Where does Ann live?"             ask about it, now or --on "last March"
  kg-memory doctor                                 check the set-up

Without a model, messages are read offline, by built-in rules. With OPENAI_API_KEY, or with
--model and KG_MEMORY_BASE_URL, a language model reads them. Every setting is also an environment
variable (KG_MEMORY_URL, KG_MEMORY_DATA_DIR, KG_MEMORY_MODEL, ...); init writes them to .env.
"""
_WITHOUT_VALUE = ("store_true", "store_false", "store_const", argparse.BooleanOptionalAction)
_TIMES = """
A TIME or PERIOD is a date (2019, 2019-05, 2019-05-03, 2019-05-03T18:00) or words, English or Chinese
("last March", "two weeks ago", "上个月"), in UTC. A PERIOD may also be FROM..UNTIL, with either end left out;
UNTIL is not part of it: 2019..2021 is two years.
"""
_PLUGINS = "serve and evaluate"


@dataclass(frozen=True)
class Option:
    """An argument of a command: its help text, and the parameters of `ArgumentParser.add_argument` for it.

    *flags*: such as ``("--limit", "-l")``; if empty, ``--`` and the argument's name. *settings*: more parameters;
    ``choices`` may be a function that returns the choices.
    """

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def option(about: str, metavar: str | None = None, *flags: str, **settings: Any) -> Option:
    """Return an option that takes a value, such as ``--limit N``, with the help text *about*.

    *metavar* is the ``N`` of the example. *settings*: more arguments of `add_argument`.
    """
    return Option(about, metavar, flags, settings)


def flag(about: str, *flags: str, **settings: Any) -> Option:
    """Return an option without a value, with the help text *about*: it is True if given, else False."""
    return Option(about, None, flags, {"action": "store_true", **settings})


def names_at(path: str) -> Callable[[], Sequence[str]]:
    """Return a function that imports a module and returns the names in one of its collections.

    *path*: ``"module:NAME"``, where NAME is a list, tuple or set of names, or a dict with names as keys.
    """
    return lambda: tuple(resolve_name(path))


@dataclass(frozen=True)
class Command:
    """A command of ``kg-memory``, such as ``facts``.

    - *about*: the help text. *epilog*: more text at the end of the help.
    - *run*: the function that runs the command, ``"module:function"``.
    - *verb*: the method whose signature gives types and defaults of arguments, ``"facts.list"``; ``""`` for none.
    - *words*: names of the positional arguments, separated by spaces. *options*: names of the other arguments.
    - *empty*: the text for an empty list; names of arguments in braces are replaced by their values.
    """

    name: str
    about: str
    run: str
    verb: str = ""
    words: str = ""
    options: str = ""
    epilog: str | Callable[[], str] = ""
    empty: str = ""

    @property
    def end(self) -> str:
        """The text at the end of the command's help; if it has ``--on``, this includes the formats of times."""
        epilog = self.epilog if isinstance(self.epilog, str) else self.epilog()
        return epilog + (_TIMES if "as_of" in self.options else "")


def read_options(options: Mapping[str, Any], flags: Mapping[str, str]) -> dict[str, Option]:
    """Return the arguments in the tables *options* and *flags* of a TOML file, each by its name.

    A flag is its help text. An option is a list of help text and metavar, ``["the file to read", "FILE"]``, or a table
    with `help`, `metavar`, `flags` and more parameters of `ArgumentParser.add_argument`: `type` is the path of a
    function, such as ``"pathlib:Path"`` (without it, the type of a number in `default`), and `choices` a list, or the
    path of a collection.
    """
    read = {name: option(*row) if isinstance(row, list) else _read_option(row) for name, row in options.items()}
    return read | {name: flag(text) for name, text in flags.items()}


def _read_option(table: Mapping[str, Any]) -> Option:
    settings = dict(table)
    if "type" in settings:
        settings["type"] = resolve_name(settings["type"])
    elif isinstance(settings.get("default"), int | float):
        settings["type"] = type(settings["default"])
    if isinstance(settings.get("choices"), str):
        settings["choices"] = names_at(settings["choices"])
    about, metavar, flags = settings.pop("help", ""), settings.pop("metavar", None), settings.pop("flags", ())
    return option(about, metavar, *flags, **settings)


def commands_in(package: str) -> Callable[[Callable[..., ArgumentParser]], None]:
    """Return a plug-in of the kind ``commands``, which adds the commands in the file ``commands.toml`` of *package*.

    The file has a table for each `Command`, under the heading of its group, and the two tables of `read_options`.
    """

    def add_commands(command: Callable[..., ArgumentParser]) -> None:
        groups = read_table(package, "commands.toml")
        options = read_options(groups.pop("options", {}), groups.pop("flags", {}))
        for group, rows in groups.items():
            for row in rows:
                command(**row, group=group, texts=options)

    return add_commands


def build_parser(
    groups: Mapping[str, Sequence[Mapping[str, Any]]],
    options: Mapping[str, Option],
    either: Sequence[Sequence[str]],
    required: Sequence[str],
    *,
    only: Collection[str] | None,
    commands_help: str,
) -> ArgumentParser:
    """Build the argument parser of ``kg-memory``, with one subparser for each command.

    *groups*: the fields of each `Command` by heading of the help. *options*: all arguments by name. *either*: sets of
    mutually exclusive options. *required*: the set of which one option must be given. *only*: the commands that get
    their arguments; None means all. *commands_help*: the help text of COMMAND.
    """
    common = _common_options()
    top = _top_parser(common)
    parsers = top.add_subparsers(prog="kg-memory", metavar="COMMAND", required=True, help=commands_help)
    listed: dict[str, list[str]] = {group: [] for group in groups}

    def add(
        name: str,
        run: str,
        about: str,
        epilog: str | Callable[[], str] = "",
        *,
        group: str = _PLUGINS,
        texts: Mapping[str, Option] = options,
        either: Sequence[Sequence[str]] = (),
        **fields: Any,
    ) -> ArgumentParser:
        """Add a command to the help under the heading *group*, and return the parser of its arguments.

        *run*: the function to call, as "module:name". *about*: its line in the help; *epilog*: the text below its
        options. *texts*: options of its own, by name. *either*: groups of options of which only one may be given.
        *fields*: more fields of `Command`.
        """
        command = Command(name, about, run, epilog=epilog, **fields)
        listed.setdefault(group, []).append(f"  {name:<12} {about}")
        made: ArgumentParser = parsers.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run, command=command)
        if only is None or name in only:
            made.epilog = command.end
            _add_arguments(made, command, {**options, **texts}, [(names, names is required) for names in either])
        return made

    for add_commands in load_plugins("commands"):  # commands of plug-ins come first in their groups
        add_commands(add)
    for group, rows in groups.items():
        for row in rows:
            add(**row, group=group, either=either)
    lists = ("\n".join((f"{heading}:", *lines)) for heading, lines in listed.items())
    top.description = "\n\n".join((_ABOUT, *lists, "kg-memory COMMAND --help shows the options of a command."))
    return top


def _top_parser(common: ArgumentParser) -> ArgumentParser:
    top = ArgumentParser(
        "kg-memory",
        usage="kg-memory COMMAND [...] [options]",
        epilog=_START,
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"kg-memory {__version__}")
    return top


def _common_options() -> ArgumentParser:
    common = ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("common options")
    group.add_argument("--namespace", "-n", metavar="NAME", help="whose memory to use (default: default)")
    group.add_argument("--url", help="a FalkorDB server: falkor://[user:password@]host:port (default: embedded)")
    group.add_argument("--data-dir", type=Path, metavar="DIR", help="the folder of the embedded database")
    group.add_argument("--model", metavar="NAME", help='the chat model, or "offline" for the built-in rules')
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return common


def _add_arguments(
    made: ArgumentParser,
    command: Command,
    options: Mapping[str, Option],
    either: Collection[tuple[Sequence[str], bool]],
) -> None:
    """Add the arguments of *command* to its parser, *made*.

    *options*: all arguments by name. *either*: pairs of a set of mutually exclusive options, and whether one of them
    is required.
    """
    words, names = command.words.split(), command.options.split()
    parameters, hints = _parameters_and_hints(command.verb)
    groups: dict[str, Any] = {}
    for alike, required in either:
        if len({*alike} & {*names}) > 1:
            groups |= dict.fromkeys(alike, made.add_mutually_exclusive_group(required=required))
    for name in (*words, *names):
        option = options.get(f"{command.name}.{name}") or options[name]
        settings = _settings(option, parameters.get(name), hints.get(name), word=name in words)
        if name in words:
            made.add_argument(name, **settings)
        else:
            flags = option.flags or (f"--{name.replace('_', '-')}",)
            groups.get(name, made).add_argument(*flags, **{"dest": name, **settings})
    made.set_defaults(parameters=tuple(name for name in (*words, *names) if name in parameters))


def _parameters_and_hints(verb: str) -> tuple[Mapping[str, inspect.Parameter], Mapping[str, Any]]:
    if not verb:
        return {}, {}
    function = find_verb(verb)
    return inspect.signature(function).parameters, get_type_hints(function)


def find_verb(path: str) -> Callable[..., Any]:
    """Return a method of the memory's classes by its path, such as ``"facts.history"`` for ``Facts.history``.

    ``"search"`` is a method of `GraphMemory`, ``"module:Class.method"`` a method of a plug-in.
    """
    if ":" not in path:
        group, _, name = path.rpartition(".")
        path = f"kg_memory.memory.{group or 'memory'}:{group.capitalize() or 'GraphMemory'}.{name}"
    function: Callable[..., Any] = resolve_name(path)
    return function


def _settings(option: Option, parameter: inspect.Parameter | None, hint: Any, *, word: bool) -> dict[str, Any]:
    """Return the keyword arguments of `ArgumentParser.add_argument` for *option*.

    *parameter*: the parameter of the same name of the Python method that the command calls; None if it has none.
    *hint*: the type of *parameter*. *word*: whether the argument is positional.
    """
    settings: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if parameter is not None:
        settings |= _type_settings(hint)
        if parameter.default not in (None, parameter.empty, (), "", True, False):
            settings |= {"default": parameter.default, "help": f"{option.help} (default: {parameter.default})"}
        if word and parameter.default is not parameter.empty:
            settings["nargs"] = "?"
    settings |= option.settings
    if callable(settings.get("choices")):
        settings["choices"] = tuple(settings["choices"]())
    if settings.get("action") in _WITHOUT_VALUE:
        del settings["metavar"]
    return settings


def _type_settings(hint: Any) -> dict[str, Any]:
    kinds = dict(_kinds(hint))
    if bool in kinds:
        return {"action": "store_true"}
    if Literal in kinds:
        return {"choices": kinds[Literal]}
    if str in kinds:
        return {}
    if Mapping in kinds:
        return {"type": parse_where}
    if int in kinds or float in kinds:
        return {"type": int if int in kinds else float}
    return {"action": "append"}


def _kinds(hint: Any) -> list[tuple[Any, Any]]:
    """Return the parts of a type hint that may be a union, as pairs (type, arguments).

    ``list[str] | None`` -> ``[(list, (str,)), (NoneType, ())]``.
    """
    if get_origin(hint) in (Union, UnionType):
        return [kind for part in get_args(hint) for kind in _kinds(part)]
    return [(get_origin(hint) or hint, get_args(hint))]


def parse_where(text: str) -> Mapping[str, object]:
    """Parse and validate the JSON text of a search filter: ``'{"speaker": "Ann"}'``.

    argparse prints a usage error for an invalid one.
    """
    from kg_memory.models import filters  # noqa: PLC0415 - a help text does without

    try:
        where: Mapping[str, object] = json.loads(text)
        filters.parse_filter(where)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except (ValueError, RecursionError) as error:
        example = """'{"speaker": "Ann"}'"""
        raise argparse.ArgumentTypeError(
            f"{text!r:.100} is not JSON ({error}): write it as in {example}, in single quotes"
        ) from None
    return where


def parse_count(text: str) -> int:
    """Parse the text of an option as an integer from 1 to 100,000; argparse prints a usage error for other text."""
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 100000")
    return int(text)


def parse_span(text: str) -> tuple[int, int]:
    """Parse a range of characters: ``"10:24"`` -> ``(10, 24)``; argparse prints a usage error for other text."""
    start, _, end = text.partition(":")
    if not (start.isdecimal() and end.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a span: write START:END, such as 10:24")
    return int(start), int(end)
