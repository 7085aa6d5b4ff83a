"""The HTTP API (`app`) and the API key check (`auth`) of the LangGraph server, on the memory that the graphs share."""

from graphs.memory import memory
from kg_memory.contrib.server.app import create_app, make_auth
from kg_memory.contrib.server.service import Options

# Any host name: those of the LangGraph server are not known here. Requests without a key work from this machine only.
app = create_app(memory, Options(hosts=("*",)))
auth = make_auth(memory)
