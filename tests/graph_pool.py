"""Graphs that one test leaves to the next, emptied: their indices are made, and the queries of a memory are planned.

To make a graph and to plan its queries takes the server ten times as long as to run these. Which graph a test gets is
the same to it: nodes get the ids that they would have in a new graph. A test that looks at how graphs are made calls
`schema.ensure` by itself, or has a server of its own: neither gets a graph from here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
import redis

from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database
from kg_memory.falkor.graph_store import GraphStore
from kg_memory.llm.embeddings import unwrap
from tests.scripted import HashEmbeddings

FREE = b"free graph "
INDICES = "CALL db.indexes() YIELD label, properties, types, options RETURN label, properties, types, options"
EMPTY = (
    "MATCH ()-[r]->() WITH r ORDER BY id(r) DESC DELETE r",  # the last first: then the first id is given first again
    "MATCH (n) WITH n ORDER BY id(n) DESC DELETE n",
)
MOST_FREE = 8
MOST_NODES = 1000
"""A larger graph is removed sooner than it is emptied."""
MOST_USES = 100
"""One in so many is not used again: indices remember what was deleted."""

Kind = tuple[int, str]


class Pool:
    """The free graphs of the shared server, by the dimension and the name of their embedding model."""

    def __init__(self) -> None:
        self._client: Any = None
        self._socket = ""
        self._numbers = count()
        self._free: dict[Kind, list[bytes]] = {}
        self._lent: dict[str, Kind] = {}
        self._indices: dict[Kind, Any] = {}

    @contextmanager
    def of(self, socket: str) -> Iterator[None]:
        """Lend graphs of the server at *socket* to each memory that would make one."""
        fit = GraphStore.fit

        def lend_or_fit(store: GraphStore, key: str, *, write: bool) -> bool:
            if not (write and self._is_new(store.database, key)):
                return fit(store, key, write=write)
            if not (store.vectors.length or isinstance(unwrap(store.vectors.embeddings), HashEmbeddings)):
                return fit(store, key, write=True)  # a server's dimension is known once it has embedded something
            kind = store.vectors.dimension(), store.vectors.name
            self._lend(store.database, key, kind)
            fitted = fit(store, key, write=True)
            self._lent[key] = kind
            if kind not in self._indices:
                self._indices[kind] = self._list_indices(key)
            return fitted

        self._socket = socket
        with redis.Redis(unix_socket_path=socket) as self._client, pytest.MonkeyPatch.context() as patch:
            patch.setattr(GraphStore, "fit", lend_or_fit)
            yield
        self.__init__()

    def _is_new(self, database: Database, key: str) -> bool:
        urls = database._connect().urls()
        return any(self._socket in url for url in urls) and not self._client.exists(key)

    def _lend(self, database: Database, key: str, kind: Kind) -> None:
        free = self._free.get(kind)
        if free and self._takes(free.pop(), key):
            meta = {"version": schema.MEMORY.version, "words": schema.MEMORY.words}
            database.query(key, schema.WRITE_META, meta, write=True)
            database.query(key, schema.WRITE_MODEL, {"dimension": kind[0], "model": kind[1]}, write=True)

    def _takes(self, name: bytes, key: str) -> bool:
        try:
            return bool(self._client.renamenx(name, key))
        except redis.ResponseError:  # a forked child of the tests has taken it
            return False

    def take_back(self, prefix: str) -> None:
        """Empty the graphs with that *prefix* that memories have made, but those with other indices by now."""
        for key in [key for key in self._lent if key.startswith(prefix)]:
            kind = self._lent.pop(key)
            free = self._free.setdefault(kind, [])
            if len(free) < MOST_FREE and self._client.type(key) == b"graphdata" and self._is_fit(key, kind):
                free.extend(self._empty(key))

    def _is_fit(self, key: str, kind: Kind) -> bool:
        ((nodes,),) = self._client.execute_command("GRAPH.RO_QUERY", key, "MATCH (n) RETURN count(n)")[1]
        return nodes <= MOST_NODES and self._list_indices(key) == self._indices[kind]

    def _list_indices(self, key: str) -> Any:
        return self._client.execute_command("GRAPH.RO_QUERY", key, INDICES)[1]

    def _empty(self, key: str) -> Iterator[bytes]:
        """Empty the graph *key*, and yield its name among the free ones."""
        number = next(self._numbers)
        if number % MOST_USES:
            for query in EMPTY:
                self._client.execute_command("GRAPH.QUERY", key, query)
            name = FREE + str(number).encode()
            self._client.rename(key, name)
            yield name


POOL = Pool()
