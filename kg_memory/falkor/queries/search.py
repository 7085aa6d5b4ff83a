"""Queries that find facts, entities, communities and episodes; embeddings stay in the database.

A search by words or vectors is put together from fixed pieces: the kind of node, whether all nodes or only some are
compared, and the clauses of a filter. Facts are filtered by two times: what the memory believed at ``$believed_at``
about some time in ``[$since, $until)``. Relations that lead to one kind of node only have unlabelled ends: a label
would double the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from kg_memory.falkor.queries import fragments as part
from kg_memory.models.graph import KINDS, Kind

assembled = lru_cache(maxsize=128)
"""Caches query texts; each filter of a user needs some of its own."""

CONTAINING = ("IS_LOCATED_IN", "IS_PART_OF", "IS_IN", "LIES_IN", "IS_CAPITAL_OF", "IS_A_CITY_IN", "IS_CITY_IN")
"""The predicates of facts that say which larger place or thing something is part of."""
_NAMES = f"""
CALL {{
  MATCH (a:Alias)
  WHERE a.key IN $keys
  MATCH (a)-[:NAMES]->(e:Entity)
  WITH e, collect(a.key) AS keys
  RETURN collect({{id: e.id, keys: keys, mentions: indegree(e, 'MENTIONS'), type: e.type}}) AS named
}}
CALL {{
  MATCH (a:Alias)
  WHERE a.key IN $keys
  MATCH (a)-[:NAMES]->(whole:Entity)
  WITH DISTINCT whole
  WHERE whole.type <> 'Person'
  MATCH (f:Fact)-[:OBJECT_IS]->(whole)
  WHERE f.predicate IN {list(CONTAINING)}
  MATCH (f)-[h:HELD|PROPOSED]->(b)
  WHERE {part.HOLDS}
  MATCH (p:Entity)-[:SUBJECT_OF]->(f)
  WITH whole, p
  OPTIONAL MATCH (g:Fact)-[:OBJECT_IS]->(p)
  WHERE g.predicate IN {list(CONTAINING)}
  OPTIONAL MATCH (inner:Entity)-[:SUBJECT_OF]->(g)
  WITH whole.id AS id, collect(DISTINCT p.id) + collect(DISTINCT inner.id) AS parts
  RETURN collect({{id: id, parts: parts}}) AS parts
}}"""
"""The query step that adds the entities a question may name, and `parts`: the parts of places and things among them.

Parts of parts are included. Whether a fact holds is checked on the first level only: places seldom move.
"""

RECENT_ENTITIES = """
MATCH (d:Episode {thread_key: $thread_key})
WITH d ORDER BY d.at DESC, d.created_at DESC LIMIT $limit
MATCH (d)-[:MENTIONS]->(e:Entity)
RETURN DISTINCT e.id AS id, indegree(e, 'MENTIONS') AS mentions
"""

LABELS: Mapping[Kind, str] = {"facts": "Fact", "entities": "Entity", "communities": "Community", "episodes": "Episode"}
POSTINGS: Mapping[Kind, str] = {kind: f"IN_{label.upper()}" for kind, label in LABELS.items()}


@cache
def word_statistics(kinds: tuple[Kind, ...], *, unread: bool = True, names: bool = False) -> str:
    """Return the Cypher query for the word counts that BM25 ranking needs: text lengths, and texts with each word."""
    statistics = "".join(map(_length_and_frequencies, kinds))
    lengths = ", ".join(f"{kind}: {kind}_length" for kind in kinds)
    often = ", ".join(f"{kind}: {kind}_often" for kind in kinds)
    return f"""
CALL db.meta.stats() YIELD labels{_IS_ANY_UNREAD if unread else ""}{_NAMES if names else ""}{statistics}
RETURN labels, {"unread > 0" if unread else "false"} AS unread, {{{lengths}}} AS lengths, {{{often}}} AS often,
  {"named, parts" if names else "[] AS named, [] AS parts"}
"""


_IS_ANY_UNREAD = """
CALL {
  MATCH (d:Episode) WHERE d.status IN ['saved', 'waiting', 'working', 'failed']
  WITH d LIMIT 1
  RETURN count(d) AS unread
}"""


def _length_and_frequencies(kind: Kind) -> str:
    """Return Cypher clauses for BM25 statistics: mean text length, and number of texts with each of ``$terms``."""
    # Counting edges this way takes a third of the time of `outdegree`.
    return f"""
CALL {{
  MATCH (d:{LABELS[kind]})
  WITH d LIMIT 300
  RETURN avg(d.n) AS {kind}_length
}}
CALL {{
  UNWIND $terms AS term
  MATCH (:Term {{s: term}})-[:{POSTINGS[kind]}]->(d)
  WITH term, count(d) AS often
  RETURN collect([term, often]) AS {kind}_often
}}"""


WORD_STATISTICS = word_statistics(KINDS)

_BEST = """
WITH d, score ORDER BY score DESC, d.id LIMIT $limit
RETURN d.id AS id, score
"""
_SPREAD = "(1 + ($base + $length * d.n) / coalesce(p.f, 1))"
"""The divisor of a term's rarity: longer texts ``d`` count less, more occurrences in a text count more.

``$base + $length * d.n`` is ``k1 * (1 - b + b * n / average)``; ``k1 + 1``, which is common to all terms, is left out.
"""
# A query step of its own: computing the parts inside the sum takes 1.3 times as long.
_SUMMED = "\nWITH d, sum(part) AS score"
# Only the best are filtered: filtering all nodes that share a common word takes half a second at 20,000 facts. Sorting
# by id as well would take a fifth longer.
_EXAMINED = "\nWITH d, score ORDER BY score DESC LIMIT $examined"
# A WHERE directly after OPTIONAL MATCH, or a label at its end, would run it for each row separately: five times slower.
_WITH_NEIGHBOURS = """
OPTIONAL MATCH (d)-[:NEXT]-(other)
WITH d, score, CASE
    WHEN abs(other.at - d.at) <= $gap AND other.embedding IS NOT NULL
    THEN 1.0 - vec.cosineDistance(other.embedding, vector) - score
    ELSE 0.0
  END AS part
WITH d, score AS own, sum(part) AS more
WITH d, own + $share * (2 * own + more) AS score"""
"""A turn scores its own similarity plus a share of its neighbours'; a missing neighbour counts as equal."""
CARRIED = ("d", "score", "vector")
"""The columns of a vector search that a filter must keep; searches by words have no vector."""


@cache
def belief_step(kind: Kind, *, unreviewed: bool) -> str:
    """Return the Cypher clauses that keep facts believed at ``$believed_at``; ``""`` for other kinds."""
    return f"{part.match_believed(unreviewed=unreviewed)}\nWITH DISTINCT d, score" if kind == "facts" else ""


@assembled
def bm25_among(kind: Kind, first: str, post_filter: str) -> str:
    """Return the Cypher query that ranks the nodes of *kind* that *first* matches by BM25."""
    return f"""{first}
MATCH (t:Term)-[p:{POSTINGS[kind]}]->(d)
WHERE t.s IN keys($weights)
WITH d, $weights[t.s] / {_SPREAD} AS part{_SUMMED}{_EXAMINED}{post_filter}{_BEST}"""


@assembled
def bm25(kind: Kind, looked_at: str, post_filter: str) -> str:
    """Return the Cypher query that ranks nodes of *kind* by BM25 and returns the best ``$limit`` of them."""
    return f"""{looked_at}
WITH collect(d) AS texts
UNWIND $terms AS q
MATCH (t:Term {{s: q.term}})
UNWIND texts AS d
MATCH (t)-[p:{POSTINGS[kind]}]->(d)
WITH d, q.idf / {_SPREAD} AS part{_SUMMED}{_EXAMINED}{post_filter}{_BEST}"""


@cache
def find_by_rare_words(kind: Kind) -> str:
    """Return the Cypher clauses that match as ``d`` the nodes of *kind* with rare words of the question."""
    return f"""
CALL {{
  UNWIND $rare AS s
  MATCH (:Term {{s: s}})-[:{POSTINGS[kind]}]->(d)
  RETURN d
  UNION
  UNWIND $pairs AS pair
  MATCH (one:Term {{s: pair[0]}})
  MATCH (other:Term {{s: pair[1]}})
  WITH one, other
  MATCH (one)-[:{POSTINGS[kind]}]->(d)
  WITH other, d
  MATCH (other)-[:{POSTINGS[kind]}]->(d)
  RETURN d
}}"""


@cache
def find_by_most_words(kind: Kind, *, tied: bool) -> str:
    """Return Cypher clauses that find the nodes of *kind* with the greatest sums of word weights, as ``d``."""
    return f"""
UNWIND $leading AS q
WITH q.term AS s, q.idf AS rarity
MATCH (:Term {{s: s}})-[:{POSTINGS[kind]}]->(d)
WITH d, sum(rarity) AS likely ORDER BY likely DESC{", d.n" if tied else ""} LIMIT $looked"""


_VECTORS = {kind: (label, "d", "") for kind, label in LABELS.items()}
_VECTORS["entities"] = ("Meaning", "v", "\nMATCH (d)-[:MEANS]->(v)")
"""For each kind, the label and variable of the nodes with the vectors, and the match from there to ``d``."""


@assembled
def vector_search(kind: Kind, post_filter: str) -> str:
    """Return the Cypher query that ranks nodes of *kind* by similarity to ``$vector``, using the vector index."""
    # The query must not begin with WITH, which would import variables in a subquery.
    label, node, means = _VECTORS[kind]
    meant = f"\nWITH {node}, vector, distance{means}" if means else ""
    return f"""
UNWIND [0] AS one
WITH vecf32($vector) AS vector
CALL db.idx.vector.queryNodes('{label}', 'embedding', $compared, vector) YIELD node AS {node}, score AS distance{meant}
WITH d, 1.0 - distance AS score, vector{_best_by_meaning(kind, post_filter)}"""


@assembled
def exact_vector_search(kind: Kind, post_filter: str, first: str = "") -> str:
    """Return the Cypher query that ranks nodes of *kind* by similarity to ``$vector``, without the vector index."""
    label, node, means = _VECTORS[kind]
    meant = f"\nWITH d{means}\nWITH d, v" if means else "\nWITH d"
    every = f"\nMATCH (d:{LABELS[kind]})"
    # The call of the index makes the query fail while the graph is re-embedded: the index is missing then.
    return f"""
CALL db.idx.vector.queryNodes('{label}', 'embedding', 1, vecf32($vector)) YIELD node
WITH count(node) AS indexed{first or every}{meant}, vecf32($vector) AS vector
WHERE {node}.embedding IS NOT NULL
WITH d, 1.0 - vec.cosineDistance({node}.embedding, vector) AS score, vector{_best_by_meaning(kind, post_filter)}"""


def _best_by_meaning(kind: Kind, post_filter: str) -> str:
    return post_filter + (_WITH_NEIGHBOURS if kind == "episodes" else "") + _BEST


@assembled
def join_searches(*searches: str) -> str:
    """Return one Cypher query that runs all *searches*, with a list of pairs ``[id, score]`` for each."""
    # Each search is collected in its own subquery: otherwise one without rows would drop the rows of the others.
    collected = [
        f"CALL {{\nCALL {{{search}}}\nRETURN collect([id, score]) AS rows{place}\n}}"
        for place, search in enumerate(searches)
    ]
    names = ", ".join(f"rows{place}" for place in range(len(searches)))
    return "\n".join((*collected, f"RETURN {names}"))


@assembled
def filter_ids(kind: Kind, passing: str) -> str:
    """Return the Cypher query for those of ``$ids`` whose node of *kind* passes a filter."""
    return f"""{part.each(f"d:{LABELS[kind]}")}
WITH d, 1.0 AS score{passing}
RETURN d.id AS id
"""


EVENTS = """
MATCH (a:Alias)
WHERE a.key IN $subjects
MATCH (a)-[:NAMES]->(e:Entity)
WITH DISTINCT e
MATCH (e)-[:SUBJECT_OF]->(f:Fact)
WHERE f.predicate = $predicate
WITH e, f
MATCH (f)-[:HELD]->(b:Belief)
WHERE b.created_at <= $believed_at AND b.expired_at > $believed_at
MATCH (f)-[:OBJECT_IS]->(o:Entity)
OPTIONAL MATCH (n:Alias {key: $object})-[:NAMES]->(o)
RETURN e.id AS subject, b.valid_at AS valid_at, b.invalid_at AS invalid_at, b.known_from AS known_from,
  count(n) > 0 AS meant, f.sentence AS sentence
ORDER BY known_from, sentence
"""
"""Returns the periods of facts about some entities, to resolve questions like "before she moved"."""

FACTS_BY_ID = f"""{part.each("f:Fact")}
WITH f
{part.MATCH_HELD}
WITH f, h, b
OPTIONAL MATCH (x)-[:STATES]->(f)
WITH f, h, b, count(x) AS stated, sum(CASE WHEN {part.UNEXPIRED} THEN 1 ELSE 0 END) AS unexpired
WHERE stated = 0 OR unexpired > 0
WITH f, h, b
{part.TELL_FACTS}
ORDER BY belief.known_from, belief.id
"""
"""Returns facts with each belief that holds, latest last, without facts that only expired episodes state."""

ENTITIES_BY_ID = f"""{part.each("e:Entity")}
WHERE e.evicted IS NULL
RETURN {part.ENTITY_MAP} AS entity
"""

EPISODES_BY_ID = f"""{part.each("e:Episode")}
WHERE e.expires_at IS NULL OR e.expires_at > timestamp() * 1000
RETURN {part.EPISODE_MAP} AS episode
"""
"""Returns episodes without those that have expired, by the server's clock, but are not deleted yet."""

COMMUNITIES_BY_ID = part.each("c:Community") + " RETURN c {.id, .name, .summary, .level} AS community"
