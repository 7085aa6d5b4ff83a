"""The one memory that all graphs and the store of the LangGraph server share: settings -> memory.

It connects at first use. The server loads each graph by its path and so under a name of its own; this module is
imported, and so is there once.
"""

from kg_memory import GraphMemory

memory = GraphMemory()
