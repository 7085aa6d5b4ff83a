"""Queries about facts over time: beliefs, verdicts, decisions and predicates, and the entities of facts.

A belief is a period in which a fact counts as true; a verdict says how two facts relate. Times are microseconds since
the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part
from kg_memory.temporal.interval import OPEN_END, OPEN_START


def tell_history(carried: str = "") -> str:
    """Return Cypher clauses that add the verdicts, statements and current beliefs of each fact ``f`` to a query."""
    return f"""
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)
WITH {carried}f, collect(v {{.id, .new, .known, .ruling, .holds, .refused, .refused_at, .edited, .edited_from,
    .edited_until, .edited_precision, .edited_end_precision, .kind, .decided}}) AS verdicts
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)<-[:SUBJECT_OF]-(subject:Entity)
WITH {carried}f, verdicts, collect({{
    speaker: x.speaker, own: {part.of_speaker("x", "subject")}, {part.STATEMENT}}}) AS said
WITH {carried}f, verdicts, [one IN said WHERE one.id IS NOT NULL] AS statements
OPTIONAL MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE b.expired_at = {OPEN_END}
WITH {carried}f, verdicts, statements, collect(b {{.id, .valid_at, .invalid_at, .said_at, .known_from, .precision,
    end_precision: coalesce(b.end_precision, 'instant'), proposed: type(h) = 'PROPOSED'}}) AS beliefs
"""


HISTORY_MAP = """{fact: f.id, sentence: f.sentence, verdicts: verdicts,
    statements: statements, beliefs: beliefs}"""

HISTORY = f"""
UNWIND $facts AS id
MATCH (f:Fact {{id: id}})
{tell_history()}RETURN {HISTORY_MAP} AS history
"""
"""Returns the statements about the facts ``$facts``, their present beliefs, and the verdicts that judge them."""

_VERDICT = """v {.id, .new, .known, .kind, .ruling, .confidence, .reason, .holds, .refused, .refused_at,
  .created_at, .edited, .edited_from, .edited_until, .edited_precision, .edited_end_precision}"""


def _tell_verdicts(page: str, order: str = "v.created_at", carried: str = "", more: str = "") -> str:
    """Return a Cypher query for verdicts (records of how two facts relate) and people's decisions about them."""
    return f"""{page}
OPTIONAL MATCH (v)-[:DECIDED]->(d:Decision)
WITH v, {carried}d ORDER BY d.at
WITH v, {carried}collect(d {{.id, .decision, .by, .at, .reason, .ruling{more}}}) AS decisions ORDER BY {order}, v.id
RETURN {_VERDICT} AS verdict, decisions
"""


REVIEWS = _tell_verdicts("""
MATCH (v:Verdict)
WHERE v.ruling IN $rulings AND v.kind IN $kinds
WITH v ORDER BY v.created_at, v.id SKIP $skip LIMIT $limit""")

DECIDED_REVIEWS = _tell_verdicts(
    """
MATCH (v:Verdict)
WHERE v.ruling IN $rulings AND v.decided
MATCH (v)-[:DECIDED]->(d:Decision)
WITH v, max(d.at) AS last ORDER BY last DESC, v.id SKIP $skip LIMIT $limit""",
    "last DESC",
    "last, ",
)
"""Returns the verdicts that people decided, the latest decision first."""

VERDICT = _tell_verdicts("\nMATCH (v:Verdict {id: $id})", more=", .before")

_PAGE_OF_VERDICTS = "WITH DISTINCT v ORDER BY v.created_at DESC, v.id SKIP $skip LIMIT $limit"
VERDICTS_OF_FACT = _tell_verdicts(
    f"\nMATCH (f:Fact {{id: $fact}})-[:JUDGED]->(v:Verdict)\n{_PAGE_OF_VERDICTS}", "v.created_at DESC"
)
VERDICTS = _tell_verdicts(f"\nMATCH (v:Verdict)\nWHERE v.ruling IN $rulings\n{_PAGE_OF_VERDICTS}", "v.created_at DESC")

SOURCES_OF_FACT = f"""
MATCH (x:Episode)-[st:STATES]->(f:Fact {{id: $fact}})
WHERE x.created_at <= $believed_at
WITH x, st ORDER BY x.at, x.created_at, x.id, st.start SKIP $skip LIMIT $limit
RETURN {part.map_source("x", "st")} AS source
"""
"""Returns each statement of a fact that was saved by ``$believed_at``, earliest first."""

DECIDE = (
    """
UNWIND $based_on AS row
OPTIONAL MATCH (n:Entity {id: row.id})
WITH sum(CASE WHEN coalesce(n.revision, 0) = row.revision THEN 0 ELSE 1 END) AS changed
UNWIND $judged AS row
MATCH (f:Fact {id: row.new})
MATCH (other:Fact {id: row.known})
WHERE changed = 0
MERGE (e:Verdict {id: row.id})
ON CREATE SET e = row, e.created_at = $now
MERGE (f)-[:JUDGED]->(e)
MERGE (other)-[:JUDGED]->(e)
WITH e
WHERE e.ruling = $expected
SET e.decided = true, e += $state
CREATE (e)-[:DECIDED]->(d:Decision)
SET d = $decision
WITH e"""
    + part.for_each(based_on="MATCH (n:Entity {id: row.id}) SET n.revision = coalesce(n.revision, 0) + 1")
    + part.REVISE
    + """
RETURN e.id AS id
"""
)
"""Writes a decision about a verdict and the resulting beliefs; a new verdict is written too.

Returns no row, and writes nothing, if another decision was made meanwhile, or facts about the same entities changed.
"""

REVISIONS_OF_FACTS = f"""{part.each("f:Fact")}
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity)
RETURN DISTINCT n.id AS id, coalesce(n.revision, 0) AS revision
"""

TELL_FACTS = f"""{part.each("f:Fact")}
OPTIONAL MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WITH f, h, b
WHERE b IS NULL OR $past OR b.expired_at = {OPEN_END}
{part.TELL_FACTS}
ORDER BY belief.created_at, belief.known_from, fact.id
"""
"""Returns facts with each of their beliefs: the present ones, or all with ``$past``; a fact without any has one row."""


def _list_changed(best: str, order: str) -> str:
    """Return a Cypher query for the ids of the facts that changed from ``$since`` until before ``$until``."""
    return f"""
CALL {{
  MATCH (b:Belief)
  WHERE b.created_at >= $since AND b.created_at < $until
  RETURN b, b.created_at AS at
  UNION
  MATCH (b:Belief)
  WHERE b.expired_at >= $since AND b.expired_at < $until
  RETURN b, b.expired_at AS at
}}
WITH b, {best} AS at
MATCH (f:Fact)-[:HELD]->(b)
WITH f, at ORDER BY {order}, f.id LIMIT $limit
RETURN DISTINCT f.id AS id
"""


CHANGED_FACTS, CHANGED_LAST = _list_changed("min(at)", "at"), _list_changed("max(at)", "at DESC")
"""The queries for facts whose beliefs changed between ``$since`` and ``$until``: earliest first, and latest first."""

FACTS_AROUND = f"""{part.each("e:Entity")}-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
WITH DISTINCT f
WHERE NOT f.id IN $known
WITH f
{part.MATCH_HELD}
WITH f, h, b ORDER BY b.known_from DESC, f.id LIMIT $limit
{part.TELL_FACTS}
ORDER BY belief.known_from DESC, fact.id
"""

ENTITIES_OF_FACTS = f"""{part.each("f:Fact")}
MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(e:Entity)
RETURN DISTINCT {part.ENTITY_MAP} AS entity
"""

ENDS_OF_FACTS = f"""{part.each("f:Fact")}
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
OPTIONAL MATCH (f)-[:OBJECT_IS]->(o:Entity)
RETURN f.id AS fact, s.id AS subject, collect(DISTINCT o.id) AS objects
"""
"""Returns the ids of the subject and the objects of facts."""

ENTITIES_WITH_MENTIONS = f"""{part.each("e:Entity")}
OPTIONAL MATCH (e)<-[m:MENTIONS]-(:Episode)
WITH e, count(m) AS mentions
RETURN {part.ENTITY_MAP} AS entity, mentions
"""

CALLED = f"""
MATCH (:Alias {{key: $alias}})-[:NAMES]->(e:Entity)
RETURN {part.ENTITY_MAP} AS entity
"""

PREDICATES = """
MATCH (p:Predicate)
WHERE p.name IN $names
RETURN p {.name, .canonical, .single_valued, .origin} AS predicate
"""

ALL_PREDICATES = """
MATCH (p:Predicate)
RETURN p {.name, .canonical, .single_valued, .origin} AS predicate
ORDER BY p.name SKIP $skip LIMIT $limit
"""

CORRECT_PREDICATE = """
MATCH (m:Meta {id: 'schema'})
MERGE (p:Predicate {name: $name})
SET p.canonical = $canonical, p.single_valued = $single_valued, p.origin = 'corrected', m.predicates = $now
RETURN p.name AS name
"""

ABOUT = f"""{part.NAMED}CALL {{
  WITH e
  MATCH (e)-[:SUBJECT_OF]->(f:Fact)
  RETURN f
  UNION
  WITH e
  MATCH (f:Fact)-[:OBJECT_IS]->(e)
  RETURN f
}}
WITH DISTINCT f AS d
WHERE $predicate IS NULL OR d.predicate = $predicate
WITH d"""
"""The beginning of `list_facts` for the facts about one entity, by name or id; ``$predicate`` may limit them."""


def _start_or_statement_time(belief: str) -> str:
    return f"CASE WHEN {belief}.known_from = {OPEN_START} THEN {belief}.said_at ELSE {belief}.known_from END"


def list_facts(first: str) -> str:
    """Return the Cypher query for a page of facts, latest first, with one row for each period of a fact."""
    return f"""{first}
MATCH (d)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH d AS f, h, b, {_start_or_statement_time("b")} AS place
WHERE place < $place OR (place = $place AND (f.id > $fact OR (f.id = $fact AND b.id > $belief)))
WITH f, h, b, place ORDER BY place DESC, f.id, b.id LIMIT $limit
WITH f, h, b
{part.TELL_FACTS}
ORDER BY {_start_or_statement_time("belief")} DESC, fact.id, belief.id
"""


LIST_ENTITIES = f"""
MATCH (e:Entity)
WHERE e.evicted IS NULL
WITH e ORDER BY e.last_seen DESC, e.name SKIP $skip LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity
"""

ENTITIES_LIKE = f"""
MATCH (t:Term)
WHERE t.s IN $terms OR t.s STARTS WITH $beginning
MATCH (t)-[p:IN_ENTITY]->(e:Entity)
WITH e, sum(1.0 / (1.0 + (1.0 + 0.02 * e.n) / coalesce(p.f, 1))) AS score
ORDER BY score DESC, e.last_seen DESC, e.name SKIP $skip LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity, score
"""
"""Returns entities by the words of their names and summaries; the last term may be a prefix."""

SIMILAR_TO = f"""
MATCH (:Alias {{key: $alias}})-[:NAMES]->(n:Entity)
MATCH (n)-[s:SIMILAR_TO]-(e:Entity)
WITH e, max(s.similarity) AS similarity
ORDER BY similarity DESC, e.name, e.id LIMIT $limit
RETURN {part.ENTITY_MAP} AS entity, similarity
"""
