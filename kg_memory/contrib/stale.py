"""`GraphMemory.facts.stale`: facts that nobody contradicted, but that may have changed since they were last stated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf, log

from kg_memory.falkor.queries.filters import Step
from kg_memory.falkor.queries.fragments import UNEXPIRED
from kg_memory.falkor.queries.search import FACTS_BY_ID
from kg_memory.falkor.rows import Row, to_datetime
from kg_memory.memory.listing import belief_params, to_facts
from kg_memory.models.graph import SOURCES, Fact
from kg_memory.models.results import StaleFact
from kg_memory.runtime.effects import fetch
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import DAY, OPEN_END, OPEN_START, stretch_length
from kg_memory.text.dated import age_in_words
from kg_memory.text.predicates import half_life
from kg_memory.validation import validate_count, validate_number

ENOUGH = 5
"""The number of ended periods from which the namespace's own history tells how long a state lasts."""
DUE = 60
"""The half-life, in days, of a plan after its day; of a plan without a day, it is `UNDATED`."""
UNDATED = 180
_CHINESE, _OTHER = re.compile("[\u3400-\u9fff]"), re.compile("[A-Za-z\u3040-\u30ff]")
_BELIEVED = "b.created_at <= $believed_at AND b.expired_at > $believed_at"
_AGES = f"""
MATCH (d)-[:HELD]->(b:Belief)
WHERE coalesce(d.kind, 'state') IN ['state', 'plan'] AND b.valid_at <= $at AND b.invalid_at > $at AND {_BELIEVED}
MATCH (x:Episode)-[st:STATES]->(d)
WHERE x.created_at <= $believed_at AND x.at <= $at AND coalesce(st.refuted, false) = false AND {UNEXPIRED}
RETURN d.id AS id, d.predicate AS predicate, coalesce(d.kind, 'state') AS kind, b.valid_at AS valid_at,
  b.invalid_at AS invalid_at, coalesce(b.precision, 'instant') AS precision, max(x.at) AS said_at
"""
_LASTED = f"""
MATCH (f:Fact)-[:HELD]->(b:Belief)
WHERE coalesce(f.kind, 'state') = 'state' AND b.valid_at > {OPEN_START} AND b.valid_at <= $at AND {_BELIEVED}
WITH f.predicate AS predicate, sum(CASE WHEN b.invalid_at <= $at THEN 1 ELSE 0 END) AS ended,
  sum(CASE WHEN b.invalid_at <= $at THEN b.invalid_at ELSE $at END - b.valid_at) AS lasted
WHERE ended >= $enough
RETURN predicate, ended, lasted
"""
"""Returns how long the states of each predicate lasted in all, up to now if they have not ended, and how many ended."""


def find_stale(first: Step, at: int, believed_at: int, below: float, limit: int) -> Flow[list[StaleFact]]:
    """Return up to *limit* facts with a freshness of at most *below*, the most useful ones first."""
    most, highest = validate_count("limit", limit), validate_number("below", below, 0, 1)
    times = {"at": at, "believed_at": believed_at}
    told = yield from fetch(first.cypher + _AGES, **first.params, **times)
    lasted = (yield from fetch(_LASTED, enough=ENOUGH, **times)) if told else []
    # The half-life of a constant rate of ends, of which periods that go on are a part.
    lasts = {row["predicate"]: log(2) * row["lasted"] / row["ended"] / DAY for row in lasted}
    found: dict[str, tuple[float, float, int]] = {}
    for row in told:
        age, days = _age(row, at, lasts)
        fresh = 0.5 ** (age / days)
        if fresh <= highest and days < inf:
            found[row["id"]] = fresh * (1 - fresh) * days, fresh, row["said_at"]
    best = sorted(found, key=lambda id_: (-found[id_][0], id_))[:most]
    seen = yield from belief_params((at, at + 1), believed_at)
    stored = yield from fetch(FACTS_BY_ID, ids=best, sources=SOURCES, **seen)
    facts = {fact.id: fact for fact in (yield from to_facts(stored, (at, at + 1), believed_at))}
    return [_to_stale_fact(facts[id_], *found[id_][1:], at) for id_ in best if id_ in facts]


def _age(row: Row, at: int, lasts: Mapping[str, float]) -> tuple[float, float]:
    """Return (age, half-life) of a fact in days, at the time *at* (microseconds since the epoch)."""
    if row["kind"] == "plan" and row["valid_at"] > OPEN_START:
        over = row["valid_at"] + stretch_length(row["valid_at"], row["precision"])
        is_over = over <= at and row["invalid_at"] == OPEN_END  # until its end, a plan is being carried out
        return (DUE + (at - over) / DAY if is_over else 0.0), DUE
    days = UNDATED if row["kind"] == "plan" else half_life(row["predicate"])
    return max(at - row["said_at"], 0) / DAY, days if days == inf else lasts.get(row["predicate"], days)


def _to_stale_fact(fact: Fact, fresh: float, said_at: int, at: int) -> StaleFact:
    """Convert *fact* to a `StaleFact` with its freshness and a question to ask the user, in Chinese or English."""
    said, sentence = to_datetime(said_at), fact.sentence.rstrip(".。")
    if len(_CHINESE.findall(sentence)) > len(_OTHER.findall(sentence)):
        asks = "这个计划怎么样了" if fact.kind == "plan" else "现在还是这样吗"
        question = f"{asks}：{sentence}？"
    else:
        asks = "What became of this plan" if fact.kind == "plan" else "Is this still so"
        question = f"{asks}: {sentence}? It was said {age_in_words(said, to_datetime(at))}."
    return StaleFact(fact=fact, freshness=round(fresh, 3), last_said=said, question=question)
