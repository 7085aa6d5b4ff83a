"""The commands with which a person corrects a memory: ``review``, ``retract``, ``replace``, ``entities``, ``saved``."""

from kg_memory.cli.parser import commands_in

add_command = commands_in(__package__)
