"""The HTTP API beside the graphs, on the memory that they share, and the keys for both: settings -> memory -> app."""

from graphs.memory import memory
from kg_memory.contrib.server.app import create_app, make_auth
from kg_memory.contrib.server.service import Options

# Any host: the names of LangGraph's server are its own matter, and without a key only this machine is answered.
app = create_app(memory, Options(hosts=("*",)))
auth = make_auth(memory)
