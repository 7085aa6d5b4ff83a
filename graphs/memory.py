"""The memory, opened from the settings, that all graphs and the store of the LangGraph server share.

It connects to the database at first use. The server loads each graph file as a separate module; this module is imported
by all of them, so there is only one memory.
"""

from kg_memory import GraphMemory

memory = GraphMemory()
