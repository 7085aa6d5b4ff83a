"""The commands ``init``, ``setup``, ``doctor`` and ``completion``, which configure and check kg-memory."""

from kg_memory.cli.parser import commands_in

add_commands = commands_in(__package__)
