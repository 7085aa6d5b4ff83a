"""From the arguments of a command to the memory that it works on."""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kg_memory.cli.screen import Screen
from kg_memory.errors import InputError
from kg_memory.settings import OFFLINE, Settings
from kg_memory.validation import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory


def settings_of(arguments: Namespace) -> Settings:
    """Return the settings: the arguments before the environment before the defaults.

    A folder that is named wins over a server that the environment names.
    """
    url, data_dir = getattr(arguments, "url", None), getattr(arguments, "data_dir", None)
    named = {name: getattr(arguments, name, None) for name in ("model", "plan")}
    settings = Settings.from_env().with_(url=url, data_dir=data_dir, **named)
    if not (settings.model or settings.api_key or settings.base_url):
        settings = settings.with_(model=OFFLINE)
    if data_dir is not None and url is None and settings.url is not None:
        return replace(settings, url=None)
    return settings


def open_memory(arguments: Namespace, screen: Screen) -> GraphMemory:
    """Open the memory that *arguments* name; it is a context manager."""
    from kg_memory.memory.memory import GraphMemory  # noqa: PLC0415 - slow to import

    return GraphMemory.open(settings=settings_of(arguments), on_wait=screen.note)


def namespace_of(arguments: Namespace) -> str:
    """Return whose memory is meant."""
    name: str = getattr(arguments, "namespace", DEFAULT_NAMESPACE)
    if not name:
        raise InputError("the namespace is empty: give a name, or leave the option out")
    return name


def times_of(arguments: Namespace) -> dict[str, Any]:
    """Return what the options say of time, as the memory takes it; words stay words.

    ``FROM..UNTIL`` is a period of which either end may be left open.
    """
    during = getattr(arguments, "during", None)
    if during is not None and ".." in during:
        during = tuple(end.strip() or None for end in during.split("..", 1))
    times = {"as_of": getattr(arguments, "on", None), "during": during, "believed_at": arguments.believed_at}
    return {**times, "unreviewed": True} if getattr(arguments, "unreviewed", False) else times


def review_command(arguments: Namespace) -> str:
    """Return the command that reviews what waits in the namespace of *arguments*."""
    namespace = namespace_of(arguments)
    return "kg-memory review" + ("" if namespace == DEFAULT_NAMESPACE else f" -n {shlex.quote(namespace)}")
