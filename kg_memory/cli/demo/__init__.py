"""A small story in two languages, to see what the memory makes of it."""

from kg_memory.cli.demo.story import read_story

__all__ = ["read_story"]
