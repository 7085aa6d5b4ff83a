"""The command line program ``kg-memory``."""

from kg_memory.cli.command import main

__all__ = ["main"]
