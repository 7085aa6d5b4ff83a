"""Letta's memory, stored in a temporal graph: blocks, messages, archival memory, and the tools that use them."""

from kg_memory.contrib.letta.blocks import Block, Blocks, Version
from kg_memory.contrib.letta.files import Files, file_tools
from kg_memory.contrib.letta.sleep_time import (
    adecide_proposal,
    aread_proposal,
    atidy,
    decide_proposal,
    read_proposal,
    tidy,
)
from kg_memory.contrib.letta.tools import letta_tools

__all__ = [
    "Block",
    "Blocks",
    "Files",
    "Version",
    "adecide_proposal",
    "aread_proposal",
    "atidy",
    "decide_proposal",
    "file_tools",
    "letta_tools",
    "read_proposal",
    "tidy",
]
