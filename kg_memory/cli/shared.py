"""The options that several commands share, as parents of their parsers."""

from __future__ import annotations

import argparse
from pathlib import Path

from kg_memory.cli.argument_types import parse_count


def parent() -> argparse.ArgumentParser:
    """Return an empty set of options that several commands share."""
    return argparse.ArgumentParser(add_help=False)


def common() -> argparse.ArgumentParser:
    """Return the options that may stand before the command and after it."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("common options")
    group.add_argument("--namespace", "-n", metavar="NAME", help="whose memory (default: default)")
    group.add_argument("--url", help="a FalkorDB server: falkor://[user:password@]host:port; embedded if left out")
    group.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of the embedded database")
    group.add_argument("--model", metavar="NAME", help="a chat model, or offline")
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return common


def name() -> argparse.ArgumentParser:
    """Return the name of an entity."""
    options = parent()
    options.add_argument("name", help="a name, as in the list of entities")
    return options


def believed() -> argparse.ArgumentParser:
    """Return the time of belief."""
    options = parent()
    options.add_argument("--believed-at", metavar="TIME", help="by what the memory believed then (default: now)")
    return options


def times(about: str) -> argparse.ArgumentParser:
    """Return the times of both clocks; *about* describes the one in the world."""
    options = argparse.ArgumentParser(add_help=False, parents=[believed()])
    world = options.add_mutually_exclusive_group()
    world.add_argument("--on", "--as-of", dest="on", metavar="TIME", help=about)
    world.add_argument("--during", metavar="PERIOD", help='what was so at some time in it: "2019", FROM..UNTIL')
    return options


def unreviewed() -> argparse.ArgumentParser:
    """Return whether to show what waits for review."""
    options = parent()
    options.add_argument("--unreviewed", action="store_true", help="with what waits for review, which is not believed")
    return options


def limit(what: str, default: int = 100) -> argparse.ArgumentParser:
    """Return how many of *what* there are at most."""
    options = parent()
    options.add_argument("--limit", type=parse_count, default=default, help=f"how many {what} (default: {default})")
    return options


def ids(what: str = "facts") -> argparse.ArgumentParser:
    """Return whether to show ids."""
    options = parent()
    options.add_argument("--ids", action="store_true", help=f"show the ids of the {what}")
    return options


def person(what: str, kept: str) -> argparse.ArgumentParser:
    """Return who *what*, and why; it is kept as *kept* says."""
    options = parent()
    options.add_argument("--by", metavar="NAME", help=f"who {what} (default: your login name)")
    options.add_argument("--reason", default="", metavar="TEXT", help=f"why; it is kept {kept}")
    return options
