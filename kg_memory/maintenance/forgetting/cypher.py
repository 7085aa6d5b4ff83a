"""Database queries for forgetting: most read what a deletion affects; `FORGET` deletes it.

Times are microseconds since the epoch; open ends are `temporal.OPEN_START` and `temporal.OPEN_END`.
"""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

EPISODES = f"""{part.each("e:Episode")}
OPTIONAL MATCH (before:Episode)-[:NEXT]->(e)
WITH e, collect(before.id) AS before
OPTIONAL MATCH (e)-[:NEXT]->(after:Episode)
RETURN e.id AS id, e.speaker AS speaker, e.content AS content, e.at AS at, e.created_at AS created_at,
  e.thread_key AS thread_key, e.status AS status, e.kind AS kind, before, collect(after.id) AS after
ORDER BY at, id
"""

WHOLE_EPISODE = """
MATCH (e:Episode {id: $id})
RETURN e {.id, .kind, .content, .speaker, .thread, .source, .source_id, .at, .trust, .created_at} AS episode
"""

EVERYTHING = """
MATCH (m:Meta {id: 'schema'})
OPTIONAL MATCH (e:Episode)
WITH m, collect(e.id) AS episodes
OPTIONAL MATCH (f:Fact)
WITH m, episodes, collect(f.id) AS facts
OPTIONAL MATCH (n:Entity)
RETURN episodes, facts, collect(n.id) AS entities
"""
"""The ids of all episodes, facts and entities of a namespace."""

FORGOTTEN = """
MATCH (m:Meta {id: 'schema'})
RETURN coalesce(m.forgotten, 0) AS times
"""
"""The number of deletions in this namespace so far. A change shows that another process deleted meanwhile."""

THREAD = """
MATCH (e:Episode {thread_key: $key})
WHERE e.at >= $since AND e.at <= $until
RETURN e.id AS id, e.at AS at, e.created_at AS created_at, e.kind AS kind
ORDER BY created_at, id
"""
"""The episodes of a thread whose reference time is from ``$since`` to ``$until``, in the order they were stored."""

READ_WITH = """
UNWIND $places AS row
MATCH (x:Episode {thread_key: row.thread_key})
WHERE x.at >= row.at AND NOT x.id IN $going
WITH row, x ORDER BY x.at, x.created_at
WITH row, collect(x.id)[0..$limit] AS near
UNWIND near AS id
RETURN DISTINCT id
"""
"""The episodes that were read with a deleted episode in their prompt: up to ``$limit`` after each in its thread."""

MENTIONED = f"""{part.each("e:Episode")}-[:MENTIONS]->(n:Entity)
RETURN e.id AS episode, n.id AS id
"""

STATED = f"""{part.each("e:Episode")}-[:STATES]->(f:Fact)
RETURN DISTINCT e.id AS episode, f.id AS id
"""

ABOUT = f"""{part.each("n:Entity")}-[:SUBJECT_OF|OBJECT_IS]-(f:Fact)
RETURN DISTINCT f.id AS id
"""

ENTITIES = f"""{part.each("n:Entity")}
OPTIONAL MATCH (x:Episode)-[:MENTIONS]->(n)
WHERE NOT x.id IN $going
RETURN n.id AS id, n.key AS key, n.name AS name, n.aliases AS aliases, coalesce(n.revision, 0) AS revision,
  indegree(n, 'MENTIONS') AS mentioned, min(x.at) AS first_seen, max(x.at) AS last_seen
ORDER BY key
"""
"""Entities with the first and last time that a remaining episode mentions them, NULL if none does."""

MENTIONING = f"""{part.each("n:Entity")}<-[:MENTIONS]-(e:Episode)
RETURN DISTINCT e.id AS id
"""

FACTS = f"""{part.each("f:Fact")}<-[:SUBJECT_OF]-(s:Entity)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
WITH f, s, collect(DISTINCT CASE WHEN o.id <> s.id THEN o.id END) AS objects
MATCH (x:Episode)-[st:STATES]->(f)
RETURN f.id AS id, f.sentence AS sentence, f.predicate AS predicate, f.wording AS wording, f.told_by AS told_by,
  f.told_at AS told_at, f.told_end AS told_end, s.id AS subject, objects, collect({{
    {part.STATEMENT}, speaker: x.speaker, own: {part.of_speaker("x", "s")},
    quote: substring(x.content, coalesce(st.start, 0), coalesce(st.end - st.start, 0))
  }}) AS statements
ORDER BY id
"""

SAID_OF_FACTS, SAID_OF_ENTITIES = (
    f"""
UNWIND $words AS row
MATCH (n:{label} {{id: row.id}})
MATCH (t:Term {{s: row.word}})
WITH n, t
MATCH (t)-[:IN_EPISODE]->(x:Episode)-[:{link}]->(n)
WITH n, t, x
WHERE NOT x.id IN $aside
RETURN DISTINCT n.id AS id, t.s AS word
"""
    for label, link in (("Fact", "STATES"), ("Entity", "MENTIONS"))
)
"""The ``$words`` that remaining episodes about the same fact or entity have too; episodes ``$aside`` are ignored."""

BELIEFS = f"""{part.each("f:Fact")}-[h:HELD|PROPOSED]->(b:Belief)
RETURN f.id AS fact, b {{.id, .cause, .created_at, .expired_at, .valid_at, .invalid_at, .said_at, .known_from,
  .precision, end_precision: coalesce(b.end_precision, 'instant'), proposed: type(h) = 'PROPOSED'}} AS belief
"""

VERDICTS = f"""{part.each("f:Fact")}-[:JUDGED]->(v:Verdict)
OPTIONAL MATCH (v)-[:DECIDED]->(d:Decision)
RETURN v.id AS id, v.new AS new, v.known AS known, v.reason AS reason, v.episode AS episode, collect(d.id) AS decisions
"""

LEARNED_PREDICATES = """
MATCH (p:Predicate)
WHERE p.origin IN ['learned', 'rules']
RETURN p.name AS name
"""

COMMUNITIES = f"""{part.each("n:Entity")}<-[:HAS_MEMBER]-(c:Community)
WITH DISTINCT c
MATCH (c)-[:PART_OF*0..20]->(up:Community)
RETURN DISTINCT up.id AS id
"""

_UNCHANGED = """
UNWIND $based_on AS row
OPTIONAL MATCH (n:Entity {id: row.id})
WITH sum(CASE WHEN coalesce(n.revision, 0) = row.revision AND indegree(n, 'MENTIONS') = row.mentioned THEN 0
    ELSE 1 END) AS changed
UNWIND $threads AS row
OPTIONAL MATCH (x:Episode {thread_key: row.key})
WHERE x.at >= row.since AND x.at <= row.until
WITH changed, row, count(x) AS size
WITH changed, sum(CASE WHEN size = row.size THEN 0 ELSE 1 END) AS added
UNWIND $episodes AS row
OPTIONAL MATCH (x:Episode {id: row.id})
WITH changed, added, sum(CASE WHEN x.status = row.status THEN 0 ELSE 1 END) AS read
UNWIND CASE WHEN size($reopened) = 0 THEN [NULL] ELSE $reopened END AS row
OPTIONAL MATCH (b:Belief {id: row.id})
WITH changed, added, read, count(b) AS there
MATCH (e:Meta {id: 'schema'})
WHERE changed + added + read = 0 AND there = size($reopened) AND coalesce(e.model, $model) = $model
SET e.communities = coalesce(e.communities, 0) + 1, e.forgotten = coalesce(e.forgotten, 0) + 1
WITH e
"""
"""The check that the entities, threads, episodes, beliefs and the embedding model are as they were when planning.

It passes on ``e``, the Meta node, or no row if anything changed. It also raises two counters there, which makes
concurrent community summaries and readings of episodes start again: they may contain deleted text.
"""


def _unlink(id_: str) -> str:
    """Return Cypher that deletes the "fact A depends on fact B" links of one episode; *id_*: expression for its id."""
    states = f"MATCH (x:Episode {{id: {id_}}})-[:STATES]->(f:Fact) WITH DISTINCT row, f"
    return f"{states} MATCH (f)-[r:RESTS_ON {{episode: {id_}}}]-() DELETE r"


_CORRECT = (
    part.for_each(
        links="MATCH (p:Episode {id: row.before}), (n:Episode {id: row.after}) MERGE (p)-[:NEXT]->(n)",
        places=f"MATCH (d:Episode {{id: row.id}}) SET d.n = row.n {part.replace_words('Episode', 'd')}",
    )
    + part.SET_EVIDENCE
    + part.for_each(
        reworded=f"""
  MATCH (f:Fact {{id: row.id}})
  SET f.sentence = row.sentence, f.embedding = vecf32(row.embedding), f.n = row.n
  {part.replace_words("Fact", "f")}""",
        unrefuted="MATCH (x:Episode {id: row.episode})-[s:STATES]->(f:Fact {id: row.fact}) SET s.refuted = false",
    )
    + part.SET_ENTITIES
    + part.RENAME_ENTITIES
    + part.for_each(
        unnamed="MATCH (a:Alias {key: row.alias})-[r:NAMES]->(n:Entity {key: row.key}) DELETE r",
        scrubbed="MATCH (v:Verdict {id: row.id}) SET v.reason = row.reason, v.episode = row.episode",
        scrubbed_identities="MATCH (i:Identity {id: row}) SET i.reason = '', i.undone_reason = ''",
        # A fact id is a hash of the fact's text. Episodes that declare the fact as a premise contain the id.
        gone_facts="""
  MATCH (f:Fact)-[r:RESTS_ON]->(:Fact {id: row})
  WITH DISTINCT row, r.episode AS episode
  MATCH (x:Episode {id: episode})
  SET x.content = replace(x.content, row, '00000000-0000-0000-0000-000000000000')""",
        gone_episodes=_unlink("row"),
        redacted=_unlink("row.id"),
        unread="MATCH (x:Episode {id: row}) SET x.status = 'saved'",
    )
    + """
CALL {
  WITH e
  MATCH (x:Episode)
  WHERE x.status IN ['saved', 'waiting', 'working', 'failed']
  SET x.answers = NULL
}"""
)
"""The part that corrects the remaining episodes, facts, entities and reasons: it removes words of deleted episodes."""

_GONE = {
    "decisions": "Decision",
    "verdicts": "Verdict",
    "beliefs": "Belief",
    "facts": "Fact",
    "communities": "Community",
    "episodes": "Episode",
}
_REMOVE = (
    "".join(part.delete_nodes(label, f"gone_{name}") for name, label in _GONE.items())
    + part.delete_entities("gone_entities")
    + """
CALL {
  WITH e
  MATCH (i:Identity)-[moved:MOVED]->()
  WHERE moved.origin IN $gone_facts OR moved.refused IN $gone_facts
  SET moved.origin = NULL, moved.refused = NULL
}
CALL {
  WITH e
  MATCH (gone:Identity)
  WHERE outdegree(gone, 'ABOUT') = 0 OR (gone.state IN ['done'] AND outdegree(gone, 'MOVED') = 0)
  DELETE gone
}"""
    + part.for_each(
        gone_aliases="MATCH (gone:Alias {key: row}) WHERE outdegree(gone) = 0 DELETE gone",
        gone_predicates="""
  MATCH (gone:Predicate {name: row})
  OPTIONAL MATCH (f:Fact)
  WHERE f.predicate = row OR f.wording = row
  WITH gone, count(f) AS uses
  WHERE uses = 0
  DELETE gone""",
    )
)

_BELIEVE = part.for_each(reopened="MATCH (b:Belief {id: row.id}) SET b.expired_at = row.until") + part.REVISE

_REDACT = part.for_each(
    redacted="""
  MATCH (x:Episode {id: row.id})
  OPTIONAL MATCH (x)-[link:MENTIONS|STATES]->()
  DELETE link
  WITH DISTINCT x, row
  SET x.id = row.new_id, x.content = row.content, x.flags = row.flags,
    x.status = CASE WHEN x.kind = 'block' THEN 'skipped' ELSE 'saved' END, x.embedding = NULL,
    x.answers = NULL, x.reason = NULL, x.step = NULL, x.plan = NULL, x.took = NULL"""
)
"""The part that replaces the text of redacted episodes and queues them for reading, as if new."""

FORGET = (
    _UNCHANGED
    + _CORRECT
    + _REMOVE
    + _BELIEVE
    + _REDACT
    + """
CALL { WITH e MATCH (gone:Term) WHERE outdegree(gone) = 0 DELETE gone }
RETURN e.id AS id
"""
)
"""Delete all that a plan removes, and correct the rest; returns no row if the data changed since planning.

Names, predicates and terms are deleted when unused, so their parts follow the parts that delete their users. All terms
are checked, because words of old summaries may be left.
"""

TERMS_LEFT = """
UNWIND $words AS word
MATCH (t:Term {s: word})
RETURN t.s AS word
"""
"""The ``$words`` that are still in the word index."""

IDS_LEFT = "UNION".join(
    f"""
UNWIND $ids AS id
MATCH (n:{label} {{{name}: id}})
WHERE n.created_at >= $since AND n.created_at < $until
RETURN DISTINCT id, '{label}' AS label, '{name}' AS name
"""
    for label, name in (
        ("Entity", "id"),
        ("Entity", "key"),
        ("Fact", "id"),
        ("Episode", "id"),
        ("Belief", "id"),
        ("Verdict", "id"),
    )
)
"""The ``$ids`` that are still the id or key of a node created from ``$since`` until ``$until``."""
