"""Embedding everything anew: the way from one embedding model to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from langchain_core.embeddings import Embeddings

from kg_memory.errors import InputError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import Database, graph_key
from kg_memory.llm.embeddings import vector_model_name

BATCH = 100
UNLINKED_AT_ONCE = 5_000


class Vectors(NamedTuple):
    """The vectors of the nodes ``n`` of a label: what each is of, which of these have one, and what ``v`` it is on."""

    label: str
    text: str
    has: str = "n.embedding IS NOT NULL"
    on: str = "WITH n AS v, row"


VECTORS = {
    "Episode": Vectors("Episode", "CASE WHEN n.speaker IS NULL THEN n.content ELSE n.speaker + ': ' + n.content END"),
    "Fact": Vectors("Fact", "n.sentence"),
    "Meaning": Vectors("Entity", "n.name", "outdegree(n, 'MEANS') > 0", "WITH n, row MATCH (n)-[:MEANS]->(v)"),
    "Community": Vectors("Community", "n.name"),
}
"""All vectors, by the label of the nodes that they are on."""
COUNT = "MATCH (n:{each.label}) WHERE {each.has} RETURN count(n) AS total"
PAGE = """
MATCH (n:{each.label})
WHERE n.id > $after AND {each.has}
WITH n ORDER BY n.id LIMIT $limit
RETURN n.id AS id, {each.text} AS text
"""
STORE = "UNWIND $rows AS row MATCH (n:{each.label} {{id: row.id}}) {each.on} SET v.embedding = vecf32(row.embedding)"
UNLINK = """
MATCH (:Entity)-[old:SIMILAR_TO]->(:Entity)
WITH old LIMIT $limit
WITH collect(old) AS gone
CALL {
  WITH gone
  UNWIND gone AS old
  DELETE old
}
RETURN size(gone) AS n
"""
"""Links tell how near the vectors are that go."""
DROP = "DROP VECTOR INDEX FOR (n:{label}) ON (n.embedding)"
WRITE_MODEL = "MATCH (m:Meta {id: 'schema'}) SET m.model = $model, m.dimension = $dimension"


class Embedder(Protocol):
    """What is needed to embed into a database."""

    embeddings: Embeddings
    database: Database

    def dimension(self) -> int: ...


def reembed(embedder: Embedder, namespace: str, progress: Callable[[int, int], None] | None = None) -> int:
    """Replace every vector of *namespace* by one of *embedder*'s model; tell *progress* (done, total).

    Until it is through, the graph says that it is under way and opens with no model; a run that was
    broken off is simply done again. Errors: `InputError` when the namespace holds nothing; `SchemaError` when it is
    newer than this package.
    """
    database, key = embedder.database, graph_key(namespace)
    meta = database.query(key, schema.READ_META, {}, write=False)
    if not meta:
        raise InputError(f"the namespace {namespace!r} holds nothing: check its name")
    schema.refuse_newer(meta[0])
    schema.migrate(database, key, meta[0])
    dimension = embedder.dimension()
    database.query(key, WRITE_MODEL, {"model": schema.UNDER_WAY, "dimension": dimension}, write=True)
    while database.query(key, UNLINK, {"limit": UNLINKED_AT_ONCE}, write=True)[0]["n"]:
        pass
    counts = [database.query(key, COUNT.format(each=each), {}, write=False)[0] for each in VECTORS.values()]
    total = sum(count["total"] for count in counts)
    done = 0
    for label, each in VECTORS.items():
        with schema.unless_there():
            database.query(key, DROP.format(label=label), {}, write=True)
        after = ""
        while page := database.query(key, PAGE.format(each=each), {"after": after, "limit": BATCH}, write=False):
            vectors = embedder.embeddings.embed_documents([row["text"] for row in page])
            rows: list[dict[str, Any]] = [
                {"id": row["id"], "embedding": vector} for row, vector in zip(page, vectors, strict=True)
            ]
            database.query(key, STORE.format(each=each), {"rows": rows}, write=True)
            after = page[-1]["id"]
            done += len(page)
            if progress:
                progress(done, total)
        with database.making():
            with schema.unless_there():
                database.query(key, schema.vector_index(label, dimension), {}, write=True)
            schema.wait(database, key)
    name = vector_model_name(embedder.embeddings)
    database.query(key, WRITE_MODEL, {"model": name, "dimension": dimension}, write=True)
    return done
