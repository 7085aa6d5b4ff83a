"""The command ``kg-memory demo``: read a short story and ask about it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable


def add_command(command: Callable[..., ArgumentParser]) -> None:
    """Add the command ``demo`` to the command line; *command* is the function that adds one command."""
    about = "read a small story into a fresh memory and ask about it; offline without an API key"
    command("demo", "kg_memory.contrib.demo.demo:demo", about, group="set up")
