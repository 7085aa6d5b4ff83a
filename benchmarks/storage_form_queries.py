"""The queries of `storage_form`: three forms of facts, with the indices, loads, reads and writes of each."""

from __future__ import annotations

from dataclasses import dataclass

DIMENSION = 384
VECTOR = f"OPTIONS {{dimension: {DIMENSION}, similarityFunction: 'cosine', M: 16, efConstruction: 200, efRuntime: 200}}"
HELD = "{0}.created_at <= $seen AND $seen < {0}.expired_at AND {0}.valid_at <= $at AND $at < {0}.invalid_at"
IDF = "log(1.0 + ($count - {0} + 0.5) / ({0} + 0.5))"
WEIGHT = "1.9 * {f} / ({f} + 0.9 * (0.6 + 0.4 * {d}.n / $average))"  # BM25 with k1 0.9, b 0.4
PERIOD = "created_at: {0}.created_at, expired_at: {0}.expired_at, valid_at: {0}.valid_at, invalid_at: {0}.invalid_at"
FACT = "fact: r.fact, predicate: r.predicate, sentence: r.sentence, n: r.n, embedding: vecf32(r.embedding)"
OLD = "fact: old.fact, predicate: old.predicate, sentence: old.sentence, n: old.n, embedding: old.embedding"
ENDED = "valid_at: old.valid_at, invalid_at: $at, created_at: $at, expired_at: $open"

ENTITIES = "UNWIND $rows AS r CREATE (:Entity {id: r.id, name: r.name})"
EPISODES = "UNWIND $rows AS r CREATE (:Episode {id: r.id, at: r.at, content: r.content})"
TERMS = "UNWIND $rows AS r CREATE (:Term {s: r.s})"
POSTINGS = (
    "UNWIND $rows AS r MATCH (t:Term {s: r.s})"
    " UNWIND r.facts AS id MATCH (f:Fact {id: id}) CREATE (t)-[:IN_FACT {f: 1}]->(f)"
)
EVIDENCE = (
    "UNWIND $rows AS r MATCH (x:Episode {id: r.episode})"
    " UNWIND r.facts AS id MATCH (f:Fact {id: id}) CREATE (x)-[:STATES]->(f)"
)
BELIEFS = (
    f"UNWIND $rows AS r MATCH (f:Fact {{id: r.fact}}) CREATE (f)-[:HELD]->(:Belief {{id: r.id, {PERIOD.format('r')}}})"
)
NEW_EPISODE = "CREATE (x:Episode {id: $episode, at: $at, content: $content}) WITH x\n"

R_ENDS = "RETURN f.fact, f.sentence, startNode(f).name, endNode(f).name, f.valid_at, f.invalid_at"
N_ENDS = "MATCH (s:Entity)-[:SUBJECT_OF]->(f)-[:OBJECT_IS]->(o:Entity) RETURN f.fact, f.sentence, s.name, o.name"
N1_ENDS, N2_ENDS = f"{N_ENDS}, f.valid_at, f.invalid_at", f"{N_ENDS}, b.valid_at, b.invalid_at"

R_READS = {
    "entity": f"""MATCH (e:Entity {{id: $entity}})-[f:FACT]-(:Entity) WHERE {HELD.format("f")}
        WITH f ORDER BY f.valid_at DESC LIMIT 50 {R_ENDS}""",
    "vector": f"""CALL db.idx.vector.queryRelationships('FACT', 'embedding', 60, vecf32($vector))
        YIELD relationship AS f, score WITH f, score WHERE {HELD.format("f")}
        WITH f, score ORDER BY score LIMIT 20 {R_ENDS}, score""",
    "bm25": f"""UNWIND $terms AS term CALL db.idx.fulltext.queryRelationships('FACT', term) YIELD relationship
        WITH term, collect(relationship) AS hits WITH hits, {IDF.format("size(hits)")} AS idf UNWIND hits AS f
        WITH f, sum(idf * {WEIGHT.format(f="1.0", d="f")}) AS score BEST {R_ENDS}, score""",
    "hops": f"""MATCH (e:Entity)-[f:FACT]-(o:Entity) WHERE e.id IN $entities AND {HELD.format("f")}
        WITH f, o LIMIT 100 WITH collect(f) AS first, collect(DISTINCT o) AS ring
        UNWIND ring AS e MATCH (e)-[f:FACT]-(:Entity) WHERE {HELD.format("f")}
        WITH first, f LIMIT 200 WITH first, collect(f) AS second
        UNWIND first + second AS f WITH DISTINCT f LIMIT 100 {R_ENDS}""",
    "pair": f"""MATCH (:Entity {{id: $subject}})-[f:FACT]->(:Entity {{id: $object}})
        WHERE f.expired_at = $open {R_ENDS}, f.id""",
}


def _n_reads(held: str, then: str, ends: str, known: str) -> dict[str, str]:
    """Return the reads over fact nodes.

    *held* is a Cypher clause from facts to the periods in question, and *then* the variables to pass on. Each pattern
    starts from bound variables: for ``(:Entity {id})--(f)--(b)`` in one MATCH with a condition on b, FalkorDB would
    scan all periods, which is 150 times slower.
    """
    return {
        "entity": f"""MATCH (e:Entity {{id: $entity}}) MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f)
        WITH f {held} WITH {then} ORDER BY {then[0]}.valid_at DESC LIMIT 50 {ends}""",
        "vector": f"""CALL db.idx.vector.queryNodes('Fact', 'embedding', 60, vecf32($vector)) YIELD node AS f, score
        WITH f, score {held} WITH {then}, score ORDER BY score LIMIT 20 {ends}, score""",
        "bm25": f"""MATCH (t:Term) WHERE t.s IN $terms WITH t, {IDF.format("outdegree(t, 'IN_FACT')")} AS idf
        MATCH (t)-[p:IN_FACT]->(f) WITH f, sum(idf * {WEIGHT.format(f="p.f", d="f")}) AS score BEST {ends}, score""",
        "hops": f"""MATCH (e:Entity) WHERE e.id IN $entities MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f)
        WITH f {held} WITH DISTINCT f LIMIT 100 WITH collect(f) AS first UNWIND first AS f
        MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e) WITH first, collect(DISTINCT e) AS ring
        UNWIND ring AS e MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(f) WITH first, f {held}
        WITH first, f LIMIT 200 WITH first, collect(f) AS second UNWIND first + second AS f WITH DISTINCT f LIMIT 100
        WITH f {held} {ends}""",
        "pair": f"""MATCH (:Entity {{id: $subject}})-[:SUBJECT_OF]->(f:Fact)-[:OBJECT_IS]->(:Entity {{id: $object}})
        WITH f {known} {ends}, {then[0]}.id""",
    }


def _cut(reads: dict[str, str], held: str, then: str) -> dict[str, str]:
    """Limit the word search to its best results: "bm25" checks the periods of the best 60, "bm25_exact" of all."""
    best = {
        "bm25": f"ORDER BY score DESC LIMIT 60 WITH f, score {held} WITH {then}, score ORDER BY score DESC LIMIT 20",
        "bm25_exact": f"{held} WITH {then}, score ORDER BY score DESC LIMIT 20",
    }
    cut = {
        name: reads["bm25"].replace("BEST", order if name == "bm25" else "WITH f, score " + order)
        for name, order in best.items()
    }
    return {**reads, **cut}


N1_HELD = f"WHERE {HELD.format('f')}"
N2_HELD = f"MATCH (f)-[:HELD]->(b) WHERE {HELD.format('b')}"
R_READS = _cut(R_READS, N1_HELD, "f")
N1_READS = _cut(_n_reads(N1_HELD, "f", N1_ENDS, "WHERE f.expired_at = $open"), N1_HELD, "f")
N2_READS = _cut(
    _n_reads(N2_HELD, "b, f", N2_ENDS, "MATCH (f)-[:HELD]->(b) WHERE b.expired_at = $open"), N2_HELD, "b, f"
)

R_WRITE = f"""{NEW_EPISODE}CALL {{ WITH x UNWIND $facts AS r
    MATCH (s:Entity {{id: r.subject}}), (o:Entity {{id: r.object}})
    CREATE (s)-[:FACT {{id: r.id, {FACT}, {PERIOD.format("r")}, episodes: [$episode]}}]->(o) }}
  CALL {{ WITH x MATCH ()-[old:FACT {{id: $closed}}]->() SET old.expired_at = $at
    WITH old, startNode(old) AS s, endNode(old) AS o
    CREATE (s)-[:FACT {{id: $belief, {OLD}, {ENDED}, episodes: old.episodes + [$episode]}}]->(o) }}
  RETURN x.id"""
N_WRITE = """MATCH (s:Entity {id: r.subject}), (o:Entity {id: r.object})
    CREATE (s)-[:SUBJECT_OF]->(f:Fact {%s})-[:OBJECT_IS]->(o)
    CREATE (x)-[:STATES]->(f)
    WITH f, r UNWIND r.terms AS term MERGE (t:Term {s: term}) CREATE (t)-[:IN_FACT {f: 1}]->(f)"""
N1_WRITE = f"""{NEW_EPISODE}CALL {{ WITH x UNWIND $facts AS r {N_WRITE % f"id: r.id, {FACT}, {PERIOD.format('r')}"} }}
  CALL {{ WITH x MATCH (s)-[:SUBJECT_OF]->(old:Fact {{id: $closed}})-[:OBJECT_IS]->(o) SET old.expired_at = $at
    CREATE (s)-[:SUBJECT_OF]->(f:Fact {{id: $belief, {OLD}, {ENDED}}})-[:OBJECT_IS]->(o) CREATE (x)-[:STATES]->(f)
    WITH old, f MATCH (y:Episode)-[:STATES]->(old) CREATE (y)-[:STATES]->(f)
    WITH DISTINCT old, f MATCH (t:Term)-[p:IN_FACT]->(old) CREATE (t)-[:IN_FACT {{f: p.f}}]->(f) }}
  RETURN x.id"""
N2_WRITE = f"""{NEW_EPISODE}CALL {{ WITH x UNWIND $facts AS r {N_WRITE % f"id: r.fact, {FACT}"} }}
  CALL {{ WITH x UNWIND $facts AS r MATCH (f:Fact {{id: r.fact}})
    CREATE (f)-[:HELD]->(:Belief {{id: r.id, {PERIOD.format("r")}}}) }}
  CALL {{ WITH x MATCH (f:Fact)-[:HELD]->(old:Belief {{id: $closed}}) SET old.expired_at = $at
    CREATE (f)-[:HELD]->(:Belief {{id: $belief, {ENDED}}}) CREATE (x)-[:STATES]->(f) }}
  RETURN x.id"""

R_FORGET = """MATCH (x:Episode {id: $episode}) DELETE x WITH 1 AS one
  MATCH ()-[f:FACT]->() WHERE $episode IN f.episodes WITH f, [e IN f.episodes WHERE e <> $episode] AS left
  SET f.episodes = left WITH f, left WHERE size(left) = 0 DELETE f"""
N1_FORGET = """MATCH (x:Episode {id: $episode})
  CALL { WITH x MATCH (x)-[:STATES]->(f:Fact) WHERE indegree(f, 'STATES') = 1 DELETE f } DELETE x"""
N2_FORGET = """MATCH (x:Episode {id: $episode})
  CALL { WITH x MATCH (x)-[:STATES]->(f:Fact)-[:HELD]->(b:Belief) WHERE indegree(f, 'STATES') = 1
    WITH collect(DISTINCT f) + collect(DISTINCT b) AS alone UNWIND alone AS each DELETE each } DELETE x"""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to store facts: its indices, its load queries, and the queries to time."""

    name: str
    indices: tuple[str, ...]
    loads: tuple[tuple[str, str], ...]
    reads: dict[str, str]
    write: str
    forget: str
    count: str


def _range(label: str, *names: str) -> tuple[str, ...]:
    return tuple(f"CREATE INDEX FOR (n:{label}) ON (n.{name})" for name in names)


BASE = (*_range("Entity", "id"), *_range("Episode", "id"))
NODES = (
    *BASE,
    *_range("Term", "s"),
    *_range("Fact", "id"),
    f"CREATE VECTOR INDEX FOR (f:Fact) ON (f.embedding) {VECTOR}",
)
N1_FACTS = f"""UNWIND $rows AS r MATCH (s:Entity {{id: r.subject}}), (o:Entity {{id: r.object}})
  CREATE (s)-[:SUBJECT_OF]->(:Fact {{id: r.id, {FACT}, {PERIOD.format("r")}}})-[:OBJECT_IS]->(o)"""
N2_FACTS = f"""UNWIND $rows AS r MATCH (s:Entity {{id: r.subject}}), (o:Entity {{id: r.object}})
  CREATE (s)-[:SUBJECT_OF]->(:Fact {{id: r.fact, {FACT}}})-[:OBJECT_IS]->(o)"""
R_FACTS = f"""UNWIND $rows AS r MATCH (s:Entity {{id: r.subject}}), (o:Entity {{id: r.object}})
  CREATE (s)-[:FACT {{id: r.id, {FACT}, {PERIOD.format("r")}, episodes: r.episodes}}]->(o)"""
SHARED = (("entities", ENTITIES), ("episodes", EPISODES))
WORDS = (("terms", TERMS), ("postings", POSTINGS), ("evidence", EVIDENCE))
FORMS = (
    Form(
        "R",
        (
            *BASE,
            "CREATE INDEX FOR ()-[f:FACT]-() ON (f.id)",
            "CREATE INDEX FOR ()-[f:FACT]-() ON (f.episodes)",
            "CREATE FULLTEXT INDEX FOR ()-[f:FACT]-() ON (f.sentence)",
            f"CREATE VECTOR INDEX FOR ()-[f:FACT]-() ON (f.embedding) {VECTOR}",
        ),
        (*SHARED, ("beliefs", R_FACTS)),
        R_READS,
        R_WRITE,
        R_FORGET,
        "MATCH ()-[f:FACT]->() RETURN count(DISTINCT f.fact), count(f)",
    ),
    Form(
        "N1",
        NODES,
        (*SHARED, ("beliefs", N1_FACTS), *WORDS),
        N1_READS,
        N1_WRITE,
        N1_FORGET,
        "MATCH (f:Fact) RETURN count(DISTINCT f.fact), count(f)",
    ),
    Form(
        "N2",
        (*NODES, *_range("Belief", "id")),
        (*SHARED, ("facts", N2_FACTS), ("beliefs", BELIEFS), *WORDS),
        N2_READS,
        N2_WRITE,
        N2_FORGET,
        "MATCH (f:Fact)-[:HELD]->(b:Belief) RETURN count(DISTINCT f), count(b)",
    ),
)
