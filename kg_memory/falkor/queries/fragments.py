"""Fragments of Cypher that several queries share. In them, a fact is ``f``, its subject ``s`` and its belief ``b``.

A belief is a period in which the memory considers the fact true.
"""

from __future__ import annotations

from kg_memory.models.graph import ENDINGS
from kg_memory.temporal.interval import OPEN_END, OPEN_START


def each(node: str) -> str:
    """Return the beginning of a Cypher query that matches *node*, such as ``f:Fact``, for each id in ``$ids``."""
    return f"\nUNWIND $ids AS id\nMATCH ({node} {{id: id}})"


NAMED = """CALL {
  MATCH (:Alias {key: $alias})-[:NAMES]->(e:Entity)
  RETURN e
  UNION
  MATCH (e:Entity {id: $about})
  RETURN e
}
"""
"""Matches the entities ``e`` whose id is ``$about`` or whose name has the alias key ``$alias``."""


def last_id(label: str) -> str:
    """Return the Cypher query for the largest internal id of the nodes with *label*, such as ``"Fact"``."""
    return f"\nMATCH (n:{label})\nRETURN max(id(n)) AS last\n"


def truncate(text: str) -> str:
    """Return the Cypher expression for the first ``$length`` characters of *text*, such as ``e.content``."""
    return f"CASE WHEN size({text}) <= $length THEN {text} ELSE left({text}, $length) END"


def of_speaker(episode: str, subject: str) -> str:
    """Return the Cypher expression that is true if the entity *subject* is the speaker of the message *episode*."""
    names = f"[name IN [{subject}.name] + coalesce({subject}.aliases, []) | toLower(name)]"
    return f"toLower(coalesce({episode}.speaker, 'user')) IN {names}"


def for_each(carried: str = "e", /, **bodies: str | tuple[str, ...]) -> str:
    """Return Cypher clauses that run once for each element of a list parameter, with the element as ``row``."""
    fragment = ""
    for name, own in bodies.items():
        for body in (own,) if isinstance(own, str) else own:
            fragment += f"\nCALL {{\n  WITH {carried}\n  UNWIND ${name} AS row\n  {body.strip()}\n}}"
    return fragment


def replace_words(label: str, node: str) -> str:
    """Return the Cypher fragment that sets the word index entries of a node to ``row.terms``."""
    return f"""WITH {node}, row
  OPTIONAL MATCH (old:Term)-[p:IN_{label.upper()}]->({node})
  WHERE NOT old.s IN [term IN row.terms | term.term]
  DELETE p
  WITH DISTINCT {node}, row
  UNWIND row.terms AS term
  MERGE (t:Term {{s: term.term}})
  MERGE (t)-[q:IN_{label.upper()}]->({node})
  SET q.f = CASE WHEN term.f <> 1 THEN term.f END"""


def delete_nodes(label: str, name: str) -> str:
    """Return the Cypher fragment that deletes the nodes with *label* whose ids are in the list parameter *name*."""
    return for_each(**{name: f"MATCH (gone:{label} {{id: row}}) DELETE gone"})


def delete_entities(name: str) -> str:
    """Return the Cypher fragment that deletes entities and their vectors; *name* is the list parameter with the ids."""
    return for_each(**{name: "MATCH (:Entity {id: row})-[:MEANS]->(v) DELETE v"}) + delete_nodes("Entity", name)


SET_ENTITIES = for_each(
    entities=f"""
  MATCH (n:Entity {{id: row.id}})
  SET n.name = row.name, n.aliases = row.aliases, n.first_seen = row.first_seen, n.last_seen = row.last_seen,
    n.n = row.n, n.summary = '', n.worded = NULL, n.stale = $now, n.revision = coalesce(n.revision, 0) + 1
  {replace_words("Entity", "n")}"""
)
"""The fragment that sets the names and times of entities and clears their summaries."""
SET_EVIDENCE = for_each(evidence="MATCH (f:Fact {id: row.id}) SET f += row")
"""The fragment that sets the confidence of facts, and by which episode and when they were stated."""

STATEMENT = """id: x.id, said_at: x.at, arrived_at: coalesce(x.created_at, 0), trust: x.trust,
    valid_at: st.valid_at, invalid_at: st.invalid_at, precision: st.precision, confidence: st.confidence,
    corrects: st.corrects, refuted: coalesce(st.refuted, false), end_precision: coalesce(st.end_precision, 'instant'),
    goes_on: coalesce(st.goes_on, false), plan: coalesce(f.kind, 'state') = 'plan'"""
"""The fields of the statement ``st`` by the episode ``x`` about the fact ``f``, for `ingestion.invalidate`."""

_ENTITY = ".id, .key, .name, .type, .aliases, .summary, .first_seen, .last_seen, .created_at"
ENTITY_MAP = f"e {{{_ENTITY}}}"
"""The map of an entity ``e``."""

FACT_MAP = """f {.id, .kind, .predicate, .wording, .sentence, .confidence, .edge_type, .said_at, .used_at,
  subject: s.name, subject_id: s.id, premises: outdegree(f, 'RESTS_ON')}"""

BELIEF_MAP = """b {.id, .valid_at, .invalid_at, .precision, .end_precision, .known_from, .created_at, .expired_at,
  .said_at, .cause, reviewed: type(h) = 'HELD', trust: trust, support: support.best,
  confirmed: support.confirmed, voices: voices}"""
"""The map of a belief ``b`` with the relation ``h`` (held, or proposed for review). Use it after `TOLD`."""


BELIEVED = """b.created_at <= $believed_at AND b.expired_at > $believed_at AND b.invalid_at > $since
  AND b.known_from < $until"""
"""The condition that ``b`` was believed at ``$believed_at`` and true at some time in ``[$since, $until)``."""
HOLDS = f"{BELIEVED} AND ($unreviewed OR type(h) = 'HELD')"
"""`BELIEVED`, and the relation ``h`` is HELD, or ``$unreviewed`` allows proposed beliefs."""
MATCH_HELD = f"MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)\nWHERE {HOLDS}"
"""The clause that matches the beliefs ``b`` of a fact ``f`` for which `HOLDS` is true."""


def match_believed(*, unreviewed: bool) -> str:
    """Return the Cypher clause that matches the beliefs ``b`` that facts ``d`` had at the time ``$believed_at``."""
    return f"""
MATCH (d)-[:{"HELD|PROPOSED" if unreviewed else "HELD"}]->(b)
WHERE {BELIEVED}"""


DATED = """{sentence: f.sentence, predicate: f.predicate, kind: coalesce(f.kind, 'state'), valid_at: b.valid_at,
  invalid_at: b.invalid_at,
  precision: coalesce(b.precision, 'instant'), end_precision: coalesce(b.end_precision, 'instant'),
  said_at: b.said_at, offset: coalesce([(x)-[:STATES]->(f) WHERE x.at = b.said_at | x.offset][0], 0)}"""
"""A fact ``f`` with the dates of its belief ``b``: a `text.dated.DatedFact`."""

EPISODE_MAP = """e {.id, .kind, .content, .speaker, .source, .source_id, .thread, .at, .created_at, .status, .trust,
  .reason, .step, attempts: coalesce(e.attempts, 0), .plan, .expires_at, .labels, flags: coalesce(e.flags, []),
  offset: coalesce(e.offset, 0)}"""

_BELONGS = f"""(st.valid_at > {OPEN_START} AND coalesce(st.latest, st.valid_at) >= b.valid_at
      AND st.valid_at < b.invalid_at)
    OR ((st.valid_at = {OPEN_START} OR st.goes_on = true) AND x.at >= b.valid_at
      AND (x.at <= b.invalid_at OR (x.at <= b.said_at AND b.known_from = b.invalid_at)))
    OR (st.valid_at = {OPEN_START} AND b.valid_at = {OPEN_START} AND st.invalid_at <= x.at
      AND st.invalid_at >= b.invalid_at)
    OR (st.invalid_at = b.invalid_at AND b.invalid_at < {OPEN_END})"""
"""The condition that the statement ``st`` of the episode ``x`` begins or ends in the period of the belief ``b``."""

# The condition that the episode ``x`` was saved by ``$believed_at``, and before the belief ``b`` expired.
_KNOWN_THEN = "x.created_at <= $believed_at AND x.created_at < b.expired_at"

UNEXPIRED = f"coalesce(x.expires_at, {OPEN_END}) > timestamp() * 1000"
"""The condition that the episode ``x`` has not expired, by the server's clock."""


def map_source(x: str, st: str) -> str:
    """Return the Cypher map of a message that states a fact, with its quote: ``{episode: x.id, quote: ...}``."""
    return f"""{{
    episode: {x}.id, source: {x}.source, source_id: {x}.source_id, speaker: {x}.speaker, at: {x}.at,
    offset: coalesce({x}.offset, 0), trust: coalesce({x}.trust, 1.0), labels: {x}.labels, saved_at: {x}.created_at,
    start: {st}.start, end: {st}.end,
    quote: substring({x}.content, coalesce({st}.start, 0), coalesce({st}.end - {st}.start, 0))
  }}"""


_SOURCES = f"[each IN stating[0..$sources] | {map_source('each.x', 'each.st')}]"

_TRUST = """CASE WHEN size(stating) = 0 THEN 1.0
    ELSE reduce(best = 0.0, each IN stating |
      CASE WHEN each.x.trust <= best THEN best ELSE coalesce(each.x.trust, 1.0) END)
  END"""

_SUPPORT = """{
    best: reduce(best = NULL, each IN stating |
      CASE WHEN best IS NULL OR each.st.support > best THEN each.st.support ELSE best END),
    confirmed: size([each IN stating WHERE each.st.weak = true]) < size(stating) OR size(stating) = 0
  }"""
"""The best support of the statements, and whether one is not weak. Those of older graphs have no support."""

_TELLS_IT = f"({_BELONGS}) AND {_KNOWN_THEN} AND {UNEXPIRED}"

# No WHERE directly after OPTIONAL MATCH, here and below: see `search._WITH_NEIGHBOURS`.
TOLD = f"""
MATCH (s)-[:SUBJECT_OF]->(f)
MATCH (f)-[:OBJECT_IS]->(o)
WITH f, h, b, s, collect(DISTINCT CASE WHEN o.id <> s.id THEN o.name END) AS objects
OPTIONAL MATCH (x)-[st:STATES]->(f)
WITH f, h, b, s, objects, x, st, {_TELLS_IT} AS tells ORDER BY x.at, x.created_at, x.id
WITH f, h, b, s, objects, collect(CASE WHEN tells THEN {{x: x, st: st}} END) AS stating,
  collect(DISTINCT CASE WHEN tells AND coalesce(st.weak, false) = false THEN coalesce(x.speaker, x.id) END) AS voices
WITH f, h, b, s, objects, {_SOURCES} AS sources, {_TRUST} AS trust, {_SUPPORT} AS support, size(voices) AS voices
"""
"""Adds the ends of a fact, the unexpired statements in the period of its belief, and their highest trust.

The statements are those saved by ``$believed_at``, and while the belief was held.

A fact about one entity is stored with that entity as its object too, so that one pattern finds every fact.
"""

LINKING = [*ENDINGS, "waiting"]
"""The rulings of verdicts that link a fact to others: one ended the other, or a person must decide."""

PREFERS_OTHER = "CASE WHEN v.holds = 'new' THEN v.new ELSE v.known END = other.id"
"""Cypher for whether a verdict ``v`` prefers the linked fact ``other``."""

LINKED_FACT = f"""CASE WHEN other.id <> f.id AND v.ruling IN {LINKING}
    AND v.created_at < b.expired_at AND v.created_at <= $believed_at
    AND c.created_at < b.expired_at AND c.created_at <= $believed_at AND c.expired_at > b.created_at
  THEN {{id: other.id, ruling: v.ruling, known_from: c.known_from, invalid_at: c.invalid_at, preferred: {PREFERS_OTHER},
    stays: c.expired_at >= b.expired_at OR c.expired_at > $believed_at}} END"""
"""Cypher for the fact ``other`` that the verdict ``v`` links to ``f``, with its belief ``c``; null if ``v`` has
another ruling, or ``c`` is of other times: it must have been believed by ``$believed_at``, and while ``b`` was.

``stays`` is true for a belief that was held as long as ``b``, or at ``$believed_at``.
"""

_LINKED = f"""
OPTIONAL MATCH (f)-[:JUDGED]->(v)<-[:JUDGED]-(other)-[:HELD]->(c)
WITH f, h, b, s, objects, sources, trust, support, voices, collect({LINKED_FACT}) AS linked
"""

TELL_FACTS = f"""{TOLD}{_LINKED}RETURN {FACT_MAP} AS fact, objects, {BELIEF_MAP} AS belief, sources, linked"""
"""Returns rows for `falkor.rows.to_fact`."""


RENAME_ENTITIES = for_each(
    renamed="""
  MATCH (n:Entity {key: row.key})
  SET n.name = row.name
  WITH n, row
  MATCH (n)-[:MEANS]->(v)
  SET v.embedding = vecf32(row.embedding)
  WITH n
  MATCH (n)-[old:SIMILAR_TO]-()
  DELETE old"""
)
"""The fragment that renames entities, sets their new vectors and deletes their similarity links."""

REVISE = for_each(
    closed="MATCH (b:Belief {id: row}) WHERE b.expired_at > $now SET b.expired_at = $now",
    beliefs="""
  MATCH (f:Fact {id: row.fact})
  OPTIONAL MATCH (f)-[:HELD]->(b:Belief {valid_at: row.belief.valid_at, invalid_at: row.belief.invalid_at})
  WHERE b.expired_at > $now AND NOT row.proposed
  WITH f, row, b WHERE b IS NULL
  CREATE (new:Belief)
  SET new = row.belief, new.created_at = $now
  FOREACH (_ IN CASE WHEN row.proposed THEN [] ELSE [1] END | CREATE (f)-[:HELD]->(new))
  FOREACH (_ IN CASE WHEN row.proposed THEN [1] ELSE [] END | CREATE (f)-[:PROPOSED]->(new))""",
    touched="""
  MATCH (f:Fact {id: row})
  WITH f
  MATCH (f)-[:SUBJECT_OF|OBJECT_IS]-(n:Entity)
  WHERE coalesce(n.stale, 0) <> $now
  SET n.stale = $now, n.revision = coalesce(n.revision, 0) + 1""",
)
"""Closes and creates beliefs, and marks the entities whose summaries mention the facts as stale; ``e`` is the cause."""


SET_APART = for_each(
    apart="MATCH (a:Entity {id: row.one}) MATCH (b:Entity {id: row.other}) MERGE (b)-[:DISTINCT_FROM]->(a)"
)
"""The fragment that marks pairs of entities as distinct."""

KEEP_APART = SET_APART + for_each(
    doubts="""
  MATCH (a:Entity {id: row.one})
  MATCH (b:Entity {id: row.other})
  MERGE (i:Identity {id: row.id})
  ON CREATE SET i.kind = 'doubt', i.state = 'waiting', i.confidence = row.confidence, i.created_at = $now
  MERGE (i)-[:ABOUT {role: 'one'}]->(a)
  MERGE (i)-[:ABOUT {role: 'other'}]->(b)"""
)
"""The fragment that marks entities of one name as distinct, and stores doubts about pairs that may be one."""


def _link(other: str) -> str:
    """Return Cypher clauses that link a fact to its premises, the two facts from which it follows.

    "Ann WORKS_IN Oslo" follows from "Ann WORKS_AT Acme" and "Acme IS_LOCATED_IN Oslo".
    """
    overlap = " AND ".join(
        f"{one}.known_from < {two}.invalid_at AND {two}.known_from < {one}.invalid_at"
        for one, two in (("held", "first"), ("held", "second"), ("first", "second"))
    )
    return f"""
  MATCH (x:Fact {{id: row.fact}})
  MATCH (x)-[:SUBJECT_OF|OBJECT_IS]-(end:Entity)
  MATCH (end)-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
  WHERE f.predicate IN row.of
  WITH DISTINCT e, row, x, f
  MATCH (s:Entity)-[:SUBJECT_OF]->(f)
  MATCH (f)-[:OBJECT_IS]->(o:Entity)
  MATCH (s)-[:SUBJECT_OF]->(a:Fact)
  WHERE a.predicate IN row.first
  MATCH (a)-[:OBJECT_IS]->(m:Entity)
  MATCH {other}
  WHERE b.predicate IN row.second AND x.id IN [f.id, a.id, b.id] AND a.id <> b.id
  MATCH (f)-[:HELD]->(held:Belief)
  MATCH (a)-[:HELD]->(first:Belief)
  MATCH (b)-[:HELD]->(second:Belief)
  WHERE held.expired_at = {OPEN_END} AND first.expired_at = {OPEN_END} AND second.expired_at = {OPEN_END}
    AND {overlap}
  WITH DISTINCT e, f, a, b
  MERGE (f)-[:RESTS_ON {{episode: e.id}}]->(a)
  MERGE (f)-[:RESTS_ON {{episode: e.id}}]->(b)"""


LINK_PREMISES = for_each(
    premises="""
  MATCH (f:Fact {id: row.fact}), (premise:Fact {id: row.premise})
  MERGE (f)-[r:RESTS_ON {episode: e.id}]->(premise)
  SET r.stated = true""",
    placed=_link("(m)-[:SUBJECT_OF]->(b:Fact)-[:OBJECT_IS]->(o)"),
    shared=_link("(o)-[:SUBJECT_OF]->(b:Fact)-[:OBJECT_IS]->(m)"),
)
"""The fragment that links facts to their premises: those stated in an episode, and those derived from predicates."""
