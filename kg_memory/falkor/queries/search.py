"""The queries of retrieval: named constants with parameters only, one a kind; no embedding ever comes back.

A search by words or meaning is put together from fixed pieces: the kind, whether all or only some are compared, and the
steps of a filter. A fact is seen in the light of both clocks: what was believed at ``$believed_at`` to be so at some
instant in ``[$since, $until)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kg_memory.falkor.queries import fragments as part
from kg_memory.models.graph import KINDS, Kind

NAMED_ENTITIES = """
MATCH (a:Alias)
WHERE a.key IN $keys
MATCH (a)-[:NAMES]->(e:Entity)
RETURN e.id AS id, collect(a.key) AS keys, indegree(e, 'MENTIONS') AS mentions
"""

RECENT_ENTITIES = """
MATCH (d:Episode {thread_key: $thread_key})
WITH d ORDER BY d.at DESC, d.created_at DESC LIMIT $limit
MATCH (d)-[:MENTIONS]->(e:Entity)
RETURN DISTINCT e.id AS id, indegree(e, 'MENTIONS') AS mentions
"""

LABELS: Mapping[Kind, str] = {
    "facts": "Fact", "entities": "Entity", "communities": "Community", "episodes": "Episode",
}  # fmt: skip
POSTINGS: Mapping[Kind, str] = {
    "facts": "IN_FACT", "entities": "IN_ENTITY", "communities": "IN_COMMUNITY", "episodes": "IN_EPISODE",
}  # fmt: skip


def word_statistics(kinds: Iterable[Kind]) -> str:
    """Return the query that tells how many nodes each label has, and of *kinds* what a search by words goes by.

    That is how long they are on average, judged by some of them, and in how many the ``$terms`` are that any has.
    """
    kinds = list(kinds)
    lengths = ", ".join(f"{kind}: {kind}_length" for kind in kinds)
    often = ", ".join(f"{kind}: {kind}_often" for kind in kinds)
    return f"""
CALL db.meta.stats() YIELD labels{"".join(map(_length_and_frequencies, kinds))}
RETURN labels, {{{lengths}}} AS lengths, {{{often}}} AS often
"""


def _length_and_frequencies(kind: Kind) -> str:
    # Counted so, an edge takes a third of the time that it does with `outdegree`.
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
_SPREAD = "(1 + ($base + $length * d.n) / p.f)"
"""What a term's rarity is divided by: the longer the text ``d``, the more; the oftener it stands there, the less.

``$base + $length * d.n`` is ``k1 * (1 - b + b * n / average)``, and ``k1 + 1``, which all terms have, is left out.
"""
_SUMMED = """
WITH d, sum(part) AS score"""
"""In a step of its own: where the parts are worked out inside of the sum, the query takes 1.3 times as long."""
# Asked only of the best: asking it of all that share a common word costs half a second at 20,000 facts. Sorting these
# by id as well would cost a fifth.
_EXAMINED = """
WITH d, score ORDER BY score DESC LIMIT $examined"""
# A WHERE behind OPTIONAL MATCH, or a label of its end, would have it done for each row by itself: five times as long.
_WITH_NEIGHBOURS = """
OPTIONAL MATCH (d)-[:NEXT]-(other)
WITH d, score, CASE
    WHEN abs(other.at - d.at) <= $gap AND other.embedding IS NOT NULL
    THEN 1.0 - vec.cosineDistance(other.embedding, vector) - score
    ELSE 0.0
  END AS part
WITH d, score AS own, sum(part) AS more
WITH d, own + $share * (2 * own + more) AS score"""
"""A line of conversation means what it says and a share of what its neighbours say; a missing one is like itself."""
CARRIED = ("d", "score", "vector")
"""What the rows of a search by meaning hold where a filter leaves some of them; those by words have no vector."""


def belief_step(kind: Kind, *, lenient: bool, unreviewed: bool) -> str:
    """Return the step that leaves the facts that were believed, see `fragments.HOLDS`; other kinds all are.

    It asks only what has to be asked: the relation as a variable and a condition more take as long again.
    """
    if kind != "facts":
        return ""
    return f"""
MATCH (d)-[:{"HELD|PROPOSED" if unreviewed else "HELD"}]->(b)
WHERE {part.hold_from("b.valid_at" if lenient else "b.known_from")}
WITH DISTINCT d, score"""


def bm25_among(kind: Kind, first: str, sifting: str) -> str:
    """Return the query that ranks by BM25 those of *kind* that *first* finds; as in `bm25`."""
    return f"""{first}
MATCH (t:Term)-[p:{POSTINGS[kind]}]->(d)
WHERE t.s IN keys($weights)
WITH d, $weights[t.s] / {_SPREAD} AS part{_SUMMED}{_EXAMINED}{sifting}{_BEST}"""


def bm25(kind: Kind, looked_at: str, sifting: str) -> str:
    """Return the query that ranks by BM25 those of *kind* that are *looked_at*; *sifting* leaves some of them.

    Of the best ``$examined`` it takes the best ``$limit`` that are left. Reading how often a term stands in a text
    takes most of the time, so it is done for what is looked at only.
    """
    return f"""{looked_at}
WITH collect(d) AS texts
UNWIND $terms AS q
MATCH (t:Term {{s: q.term}})
UNWIND texts AS d
MATCH (t)-[p:{POSTINGS[kind]}]->(d)
WITH d, q.idf / {_SPREAD} AS part{_SUMMED}{_EXAMINED}{sifting}{_BEST}"""


def find_by_rare_words(kind: Kind) -> str:
    """Return how those of *kind* are found that have one of the ``$rare`` terms, or both of one of the ``$pairs``."""
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


def find_by_most_words(kind: Kind, *, tied: bool) -> str:
    """Return how ``$looked`` of *kind* are found: those whose ``$leading`` terms have the largest sums of rarities.

    Where these sums are *tied*, as those by one term are, the shortest are: the best of those that have it once.
    """
    return f"""
UNWIND $leading AS q
WITH q.term AS s, q.idf AS rarity
MATCH (:Term {{s: s}})-[:{POSTINGS[kind]}]->(d)
WITH d, sum(rarity) AS likely ORDER BY likely DESC{", d.n" if tied else ""} LIMIT $looked"""


_ON_ITS_OWN = ("Meaning", "v", "\nMATCH (d)-[:MEANS]->(v)")
_VECTORS = {kind: (label, "d", "") for kind, label in LABELS.items()} | {"entities": _ON_ITS_OWN}
"""The nodes that the vectors of each kind are on, by label and name, and how these and ``d`` find each other."""


def vector_search(kind: Kind, sifting: str) -> str:
    """Return the query that ranks by cosine similarity in the vector index; as in `bm25`."""
    label, node, means = _VECTORS[kind]
    meant = f"\nWITH {node}, vector, distance{means}" if means else ""
    return f"""
WITH vecf32($vector) AS vector
CALL db.idx.vector.queryNodes('{label}', 'embedding', $examined, vector) YIELD node AS {node}, score AS distance{meant}
WITH d, 1.0 - distance AS score, vector{_best_by_meaning(kind, sifting)}"""


def exact_vector_search(kind: Kind, sifting: str, first: str = "") -> str:
    """Return the query that ranks by cosine similarity, comparing each of *kind*, or each that *first* finds.

    It asks the vector index for one first: where that is not there, all is being embedded anew by another model.
    """
    label, node, means = _VECTORS[kind]
    meant = f"\nWITH d{means}\nWITH d, v" if means else "\nWITH d"
    every = f"""
MATCH (d:{LABELS[kind]})"""
    return f"""
CALL db.idx.vector.queryNodes('{label}', 'embedding', 1, vecf32($vector)) YIELD node
WITH count(node) AS indexed{first or every}{meant}, vecf32($vector) AS vector
WHERE {node}.embedding IS NOT NULL
WITH d, 1.0 - vec.cosineDistance({node}.embedding, vector) AS score, vector
ORDER BY score DESC LIMIT $examined{_best_by_meaning(kind, sifting)}"""


def _best_by_meaning(kind: Kind, sifting: str) -> str:
    return sifting + (_WITH_NEIGHBOURS if kind == "episodes" else "") + _BEST


def passing_ids(kind: Kind, passing: str) -> str:
    """Return the query that tells which ``$ids`` of *kind* pass."""
    return f"""
UNWIND $ids AS id
MATCH (d:{LABELS[kind]} {{id: id}})
WITH d, 1.0 AS score{passing}
RETURN d.id AS id
"""


STATING = """
UNWIND $ids AS id
MATCH (f:Fact {id: id})
MATCH (d)-[:STATES]->(f)
RETURN DISTINCT id AS fact, d.id AS id, d.speaker AS speaker
"""
"""Which episodes state some facts."""

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
"""The periods of what some entities were, did or had, for finding when a question means by "before she moved"."""

FACTS_BY_ID = f"""
UNWIND $ids AS id
MATCH (f:Fact {{id: id}})
WITH f
MATCH (f)-[h:HELD|PROPOSED]->(b:Belief)
WHERE {part.HOLDS}
WITH f, h, b
{part.TOLD}
RETURN {part.FACT_MAP} AS fact, {part.BELIEF_MAP} AS belief, objects, sources
ORDER BY belief.known_from, belief.id
"""
"""Facts, each with its beliefs that fit, the latest last."""

ENTITIES_BY_ID = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})
WHERE e.evicted IS NULL
RETURN {part.ENTITY_MAP} AS entity
"""

EPISODES_BY_ID = f"""
UNWIND $ids AS id
MATCH (e:Episode {{id: id}})
WHERE e.expires_at IS NULL OR e.expires_at > timestamp() * 1000
RETURN {part.EPISODE_MAP} AS episode
"""
"""Episodes, but such as have expired, by the server's clock, and are not forgotten yet."""

COMMUNITIES_BY_ID = """
UNWIND $ids AS id
MATCH (c:Community {id: id})
RETURN c {.id, .name, .summary, .level} AS community
"""


_ENDS = """
MATCH (s)-[:SUBJECT_OF]->(d)
MATCH (d)-[:OBJECT_IS]->(o)
RETURN d.id AS id, coalesce(d.edge_type, 'semantic') AS type, s.id AS subject, collect(DISTINCT o.id) AS objects
"""

# Sorted for each entity by itself, where a limit keeps it short: all at once takes three times as long at a hub. What
# holds is found in that order; sorting it again would cost a third.
FACTS_NEAR = f"""
UNWIND $ids AS id
MATCH (e:Entity {{id: id}})
WHERE outdegree(e, 'SUBJECT_OF') + indegree(e, 'OBJECT_IS') <= $hub
WITH e
CALL {{
  WITH e
  MATCH (e)-[:SUBJECT_OF|OBJECT_IS]-(d)
  WITH d LIMIT $most
  WITH d ORDER BY d.said_at DESC, d.id LIMIT $depth
  MATCH (d)-[h:HELD|PROPOSED]->(b)
  WHERE {part.HOLDS}
  WITH DISTINCT d LIMIT $limit
  RETURN d
}}
WITH DISTINCT d{_ENDS}"""
"""One step of a walk: the latest `$limit` facts that hold of each entity that has `$hub` at most, with their entities.

They are among its latest `$depth` facts, and of an entity with more than `$most` facts among any `$most` of them.
"""

FACT_LINKS = f"""
UNWIND $ids AS id
MATCH (d:Fact {{id: id}})
WITH DISTINCT d{_ENDS}"""

SPEAKERS = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
RETURN id, d.speaker AS speaker
"""

COMMUNITIES_OF = """
UNWIND $ids AS id
MATCH (e:Entity {id: id})
MATCH (d:Community)-[:HAS_MEMBER]->(e)
RETURN d.id AS id, collect(e.id) AS entities
"""

MENTIONING = """
UNWIND $ids AS id
MATCH (d:Episode {id: id})
UNWIND $entities AS entity
MATCH (e:Entity {id: entity})
WITH d, e
MATCH (d)-[:MENTIONS]->(e)
RETURN DISTINCT d.id AS id
"""
