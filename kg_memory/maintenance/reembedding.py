"""Replace all embedding vectors of a namespace, to change its embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kg_memory.errors import InputError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import graph_key
from kg_memory.falkor.graph_store import FalkorDriver
from kg_memory.text.payloads import hide_payloads

BATCH = 100
LINKS_PER_QUERY = 5_000


@dataclass(frozen=True, slots=True)
class VectorSource:
    """Cypher fragments that select the texts and vectors of one kind of nodes, named ``n`` in the query."""

    label: str
    text: str
    has: str = "n.embedding IS NOT NULL"
    on: str = "WITH n AS v, row"


VECTORS = {
    "Episode": VectorSource(
        "Episode", "CASE WHEN n.speaker IS NULL THEN n.content ELSE n.speaker + ': ' + n.content END"
    ),
    "Fact": VectorSource("Fact", "n.sentence"),
    "Meaning": VectorSource("Entity", "n.name", "outdegree(n, 'MEANS') > 0", "WITH n, row MATCH (n)-[:MEANS]->(v)"),
    "Community": VectorSource("Community", "n.name"),
}
"""All kinds of vectors, by the label of the node that stores the vector."""
COUNT = "MATCH (n:{source.label}) WHERE {source.has} RETURN count(n) AS total"
PAGE = """
MATCH (n:{source.label})
WHERE n.id > $after AND {source.has}
WITH n ORDER BY n.id LIMIT $limit
RETURN n.id AS id, {source.text} AS text, n.kind AS kind
"""
STORE = (
    "UNWIND $rows AS row MATCH (n:{source.label} {{id: row.id}}) {source.on} SET v.embedding = vecf32(row.embedding)"
)
UNLINK = """
MATCH (:Entity)-[old:SIMILAR_TO]->(:Entity)
WITH old LIMIT $limit
WITH collect(old) AS gone
CALL { WITH gone UNWIND gone AS old DELETE old }
RETURN size(gone) AS n
"""
"""Delete up to ``$limit`` links between similar entities: they were computed from the old vectors."""


def reembed(driver: FalkorDriver, namespace: str, progress: Callable[[int, int], None] | None = None) -> int:
    """Compute all embedding vectors of *namespace* again with the driver's model; return how many.

    The namespace cannot be opened until all are done; after an interruption, call it again. Errors: `InputError`,
    `SchemaError`.
    """
    database, key = driver.store.database, graph_key(namespace)
    meta = database.query(key, schema.READ_META, {}, write=False)
    if not meta:
        raise InputError(f"namespace {namespace!r} is empty or does not exist; check its name")
    schema.refuse_other_version(meta[0])
    dimension = driver.embedder.dimension()
    database.query(key, schema.WRITE_MODEL, {"model": schema.UNDER_WAY, "dimension": dimension}, write=True)
    while database.query(key, UNLINK, {"limit": LINKS_PER_QUERY}, write=True)[0]["n"]:
        pass
    counts = [database.query(key, COUNT.format(source=source), {}, write=False)[0] for source in VECTORS.values()]
    total = sum(count["total"] for count in counts)
    done = 0
    for label, source in VECTORS.items():
        with schema.unless_there():
            database.query(key, schema.DROP_VECTOR_INDEX.format(label=label), {}, write=True)
        for stored in _replace_vectors(driver, key, source):
            done += stored
            if progress:
                progress(done, total)
        with schema.index_lock(database, key):
            with schema.unless_there():
                database.query(key, schema.vector_index(label, dimension), {}, write=True)
            schema.wait_for_indices(database, key)
    database.query(key, schema.WRITE_MODEL, {"model": driver.embedder.name, "dimension": dimension}, write=True)
    return done


def _replace_vectors(driver: FalkorDriver, key: str, source: VectorSource) -> Iterator[int]:
    """Compute the vectors of the nodes that *source* selects again, in batches; yield the size of each stored batch."""
    database, after = driver.store.database, ""
    while page := database.query(key, PAGE.format(source=source), {"after": after, "limit": BATCH}, write=False):
        vectors = driver.embedder.embeddings.embed_documents([hide_payloads(row["text"], row["kind"]) for row in page])
        rows = [{"id": row["id"], "embedding": vector} for row, vector in zip(page, vectors, strict=True)]
        database.query(key, STORE.format(source=source), {"rows": rows}, write=True)
        after = page[-1]["id"]
        yield len(page)
