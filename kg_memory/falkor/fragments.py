"""Pieces that several queries share. A fact is ``f`` with its subject ``s``; its belief is ``b``."""

from __future__ import annotations

from kg_memory.temporal import OPEN_END, OPEN_START

ENTITY_MAP = "e {.id, .key, .name, .type, .aliases, .summary, .first_seen, .last_seen}"

FACT_MAP = """f {.id, .predicate, .sentence, .confidence, .edge_type, subject: s.name, subject_id: s.id}"""

EPISODE_MAP = "e {.id, .kind, .content, .speaker, .source, .source_id, .thread, .at, .created_at, .status}"

STATED = f"""
OPTIONAL MATCH (x:Episode)-[st:STATES]->(f)
WHERE (st.valid_at > {OPEN_START} AND st.valid_at >= b.valid_at AND st.valid_at < b.invalid_at)
  OR (st.valid_at = {OPEN_START} AND x.at >= b.valid_at AND x.at <= b.invalid_at)
  OR (st.valid_at = {OPEN_START} AND b.valid_at = {OPEN_START} AND st.invalid_at <= x.at
    AND st.invalid_at >= b.invalid_at)
  OR (st.invalid_at = b.invalid_at AND b.invalid_at < {OPEN_END})"""
"""The statements ``st`` of episodes ``x`` that belong to the period of the belief ``b``: it began or ended by them."""

SOURCES = """collect({
    episode: x.id, source_id: x.source_id, speaker: x.speaker, at: x.at, start: st.start, end: st.end,
    quote: substring(x.content, coalesce(st.start, 0), coalesce(st.end - st.start, 0))
  })[0..$sources]"""

TOLD_WITH_BELIEFS = f"""
MATCH (f)-[:HELD]->(b:Belief)
WHERE b.expired_at = {OPEN_END}
WITH new, f, collect(b {{.id, .valid_at, .invalid_at, .said_at}}) AS beliefs
MATCH (s:Entity)-[:SUBJECT_OF]->(f)
MATCH (f)-[:OBJECT_IS]->(o:Entity)
RETURN new, {FACT_MAP} AS fact, beliefs, collect(o.name) AS objects
"""
