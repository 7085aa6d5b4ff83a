"""The command ``kg-memory demo``: read a short story and ask about it."""

from kg_memory.cli.parser import commands_in

add_command = commands_in(__package__)
