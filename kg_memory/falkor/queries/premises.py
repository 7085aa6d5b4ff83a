"""Queries about premises (facts on which other facts depend), the dependent facts, and what came after ended facts."""

from __future__ import annotations

from kg_memory.falkor.queries import fragments as part

GROUNDS = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
OPTIONAL MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WITH f, collect(b {.valid_at, .invalid_at, .known_from, .said_at, .created_at, .expired_at,
    end_precision: coalesce(b.end_precision, 'instant'), proposed: type(h) = 'PROPOSED'}) AS beliefs
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)
WITH f, beliefs, collect({id: x.id, stated_at: x.at, saved_at: x.created_at, valid_at: st.valid_at,
    invalid_at: st.invalid_at}) AS tellings
OPTIONAL MATCH (f)-[:JUDGED]->(v:Verdict)
OPTIONAL MATCH (v)<-[:JUDGED]-(other:Fact)
OPTIONAL MATCH (y:Episode)-[t:STATES]->(other)
WITH f, beliefs, tellings, collect(CASE WHEN other.id <> f.id AND v.ruling IN ['supersedes', 'conflicts']
    THEN {ruling: v.ruling, stated_at: y.at, saved_at: y.created_at, valid_at: t.valid_at,
    invalid_at: t.invalid_at} END) AS rivals
OPTIONAL MATCH (f)-[r:RESTS_ON]->(p:Fact)
WITH f, beliefs, tellings, rivals, p, r.episode AS episode, r.stated AS stated
OPTIONAL MATCH (d:Episode {id: episode})
WITH f, beliefs, tellings, rivals, collect({id: p.id, saved_at: d.created_at, episode: episode,
    stated: stated}) AS premises
RETURN f {.id, .kind, .sentence} AS fact, beliefs, tellings, rivals, premises
"""
"""Returns facts with all their beliefs, the episodes that state them, the facts that rival them, and their premises."""

RESTING = f"""{part.each("p:Fact")}
MATCH (f:Fact)-[:RESTS_ON]->(p)
RETURN DISTINCT p.id AS premise, f.id AS id
ORDER BY id, premise LIMIT $limit
"""
"""Returns the facts that rest on others, as pairs of a premise and a fact."""

RESTATED = """
MATCH (e:Episode)
WHERE e.created_at >= $since AND e.created_at < $until
MATCH (e)-[:STATES]->(f:Fact)
WHERE outdegree(f, 'RESTS_ON') > 0
RETURN DISTINCT f.id AS id
ORDER BY id LIMIT $limit
"""
"""Returns the facts with premises that episodes saved between ``$since`` and ``$until`` state."""

STORED = part.each("f:Fact") + " RETURN f.id AS id, f.sentence AS sentence"

ENDED_FACTS = f"""{part.each("e:Episode")}-[:STATES]->(f:Fact)
WITH DISTINCT f
MATCH (f)-[h:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at AND b.invalid_at <= $as_of
WITH f, h, b ORDER BY b.invalid_at DESC LIMIT $limit
{part.TELL_FACTS}
ORDER BY belief.invalid_at DESC, fact.id
"""
"""Returns the ended periods of facts that some episodes state, the latest first."""

_ENDED = """
UNWIND $ended AS row
MATCH (f:Fact {id: row.id})"""
_HOLDS_AFTER = """
MATCH ({})-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at AND b.invalid_at > row.until
  AND b.valid_at <= $as_of
RETURN DISTINCT row.id AS id, row.until AS until
"""

SUPERSEDED = f"""{_ENDED}{_HOLDS_AFTER.format("f")}UNION{_ENDED}
MATCH (f)-[:JUDGED]->(v:Verdict)
WHERE v.ruling = 'supersedes' AND v.created_at <= $believed_at
MATCH (v)<-[:JUDGED]-(other:Fact)
WHERE other.id <> f.id{_HOLDS_AFTER.format("other")}UNION{_ENDED}
MATCH (e:Episode)-[told:STATES]->(f)
WHERE told.invalid_at <= $as_of
MATCH (e)-[beside:STATES]->(other:Fact)
WHERE other.id <> f.id AND other.predicate = f.predicate AND beside.start < told.end AND told.start < beside.end
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
MATCH (s)-[:SUBJECT_OF]->(other){_HOLDS_AFTER.format("other")}"""
"""Returns the ended facts that held again later, or that another fact replaced.

The other fact superseded it, or is stated by the same words as the end: "I switched from coffee to tea".
"""

SUCCESSORS = f"""{_ENDED}
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
MATCH (s)-[:SUBJECT_OF]->(other:Fact)
WHERE (other.predicate = f.predicate OR (other.family = f.family AND other.predicate IN $single))
  AND coalesce(other.kind, 'state') = 'state'
MATCH (other)-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at AND b.valid_at <= $as_of
  AND (b.known_from >= row.until OR (other.predicate = f.predicate AND b.invalid_at > row.until))
RETURN DISTINCT row.id AS id, row.until AS until
"""
"""Returns the ended facts of single-valued predicates whose subject has had another value since."""

REPLACING = """
MATCH (s:Entity)-[:SUBJECT_OF]->(old:Fact {id: $fact})
MATCH (e:Episode {id: $episode})-[:STATES]->(f:Fact)
MATCH (t:Entity)-[:SUBJECT_OF]->(f)
RETURN DISTINCT f.id AS id, t.id = s.id AS same_subject, f.predicate = old.predicate AS same_predicate,
  e.created_at AS saved_at
"""
"""Returns the facts that an episode states, each with whether it has the subject and the predicate of ``$fact``."""
