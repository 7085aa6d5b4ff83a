"""Delete some messages, with all that only they support, in one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor import schema
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.postings import is_block, line
from kg_memory.ingestion.receive import validate_episode
from kg_memory.ingestion.revise import revive
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting.look import Impact, read_impact, split_name
from kg_memory.maintenance.forgetting.plan import Plan, plan_removal
from kg_memory.maintenance.forgetting.residue import Traces, find_quotes
from kg_memory.runtime.effects import embedding_model, now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import instant
from kg_memory.text import predicates
from kg_memory.text.identity import alias_key
from kg_memory.text.tokenise import terms

ATTEMPTS = 50
"""The most tries to write while others write about the same things."""
MARK = "[forgotten]"
"""The text in place of characters that were forgotten."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The messages to delete at once, with how those in *redactions* read then."""

    ids: Sequence[str]
    redactions: Mapping[str, Row] = field(default_factory=dict)


@dataclass(slots=True)
class Deleted:
    """The ids of what went, or changed, in all batches so far, and the words of the messages that went."""

    episodes: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    restored: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    redacted: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    words: set[str] = field(default_factory=set)

    def add(self, impact: Impact, plan: Plan, time: int) -> None:
        """Add what *plan* does at that *time*."""
        parameters, beliefs = plan.parameters, plan.beliefs
        new_ids = [row["new_id"] for row in parameters["redacted"]]
        self.episodes += [episode["id"] for episode in impact.episodes]
        self.facts += plan.gone_facts
        self.entities += parameters["gone_entities"]
        self.restored.update(beliefs.restored)
        self.changed.update(beliefs.changed, (row["id"] for row in parameters["retold"]))
        self.unread.update(parameters["unread"])
        if not all(map(is_block, impact.episodes)):
            self.unread.update(new_ids)
        self.redacted += new_ids
        self.times.append(time)
        self.words |= impact.forgotten.words
        gone = {*self.facts, *self.entities, *(set(self.episodes) - set(new_ids))}
        for ids in (self.restored, self.changed, self.unread):
            ids.difference_update(gone)


def describe(impact: Impact, plan: Plan) -> dict[str, str]:
    """Return the text of everything that goes or changes, by its id."""
    episodes = {episode["id"]: line(episode) for episode in impact.episodes}
    facts = {id_: impact.facts[id_]["sentence"] for id_ in plan.gone_facts}
    entities = {id_: impact.entities[id_]["name"] for id_ in impact.gone_entities}
    return {**episodes, **facts, **entities, **plan.beliefs.sentences}


def plan_batch(batch: Batch, settings: Settings, namespace: str) -> Flow[tuple[Impact, Plan, int] | None]:
    """Return what deleting *batch* affects and does, and the time; nothing if none of its messages is there."""
    for _ in range(ATTEMPTS):
        times = yield from read(cypher.FORGOTTEN)
        try:
            episodes = yield from read(cypher.EPISODES, ids=list(batch.ids))
            if not episodes:
                return None
            impact = yield from read_impact(episodes, settings, batch.redactions)
            time = yield from now()
            plan = yield from plan_removal(impact, settings, namespace, time)
        except KeyError:  # others forget too: one query returned what a later one no longer has
            if (yield from read(cypher.FORGOTTEN)) == times:
                raise
            continue
        return impact, plan, time
    raise _gave_up()


def check_model() -> Flow[str]:
    """Return the embedding model. Errors: `EmbeddingMismatch` for vectors of another, also during a re-embedding."""
    model = yield from embedding_model()
    for meta in (yield from read(schema.READ_META)):
        schema.refuse_other_vectors(meta, model)
    return model


def delete_batch(batch: Batch, settings: Settings, namespace: str, deleted: Deleted, *, search: bool) -> Flow[Traces]:
    """Delete the messages of *batch*, add what went to *deleted*, and return its ids, or to *search* all its traces.

    It is planned again where others changed something of it meanwhile.
    Errors: `EmbeddingMismatch` while the graph is being re-embedded, before anything is deleted.
    """
    for _ in range(ATTEMPTS):
        model = yield from check_model()
        planned = yield from plan_batch(batch, settings, namespace)
        if planned is None:
            return Traces()
        impact, plan, time = planned
        traces = Traces(ids=_find_gone_ids(impact, plan.parameters))
        if search:
            yield from _gather_traces(traces, impact, plan.parameters)
        if (yield from write(cypher.FORGET, **plan.parameters, model=model, now=time)):
            yield from revive(plan.beliefs.revision.revived)
            deleted.add(impact, plan, time)
            return traces
    raise _gave_up()


def _gave_up() -> DatabaseUnavailable:
    return DatabaseUnavailable(f"gave up forgetting after {ATTEMPTS} write conflicts; retry later")


def redact(id_: str, span: tuple[int, int], settings: Settings, namespace: str) -> Flow[dict[str, Row]]:
    """Return, by its id, the episode without the characters of *span*, with a new id: an id may reveal the text.

    Nothing, where another episode says just that already. Errors: `InputError` where it has no such characters.
    """
    rows = yield from read(cypher.WHOLE_EPISODE, id=id_)
    if not rows:
        return {}
    episode = rows[0]["episode"]
    start, end = span
    if episode["content"].startswith(MARK, start):
        raise InputError("the message has nothing left at this span: it is forgotten")
    if end > len(episode["content"]):
        raise InputError(f"span must end within the {len(episode['content'])} characters of the content, got {end}")
    content = episode["content"][:start] + MARK + episode["content"][end:]
    state = {**episode, "content": content, "at": instant(episode["at"]), "namespace": namespace}
    settings = settings.with_(max_content=max(settings.max_content, len(content)))
    try:
        redacted = validate_episode(state, settings, episode["created_at"])
    except InputError as error:
        raise InputError(f"without these characters {error}; of a JSON record give a span within one text") from error
    same = yield from read(cypher.EPISODE_ID, id=redacted.id)
    if same and redacted.id != id_:
        return {}
    return {id_: {"new_id": redacted.id, "content": redacted.content, "flags": redacted.flags}}


# Traces


def _find_gone_ids(impact: Impact, parameters: Row) -> set[str]:
    """Return the ids and keys of what is about to go."""
    kinds = ("episodes", "facts", "entities", "beliefs", "verdicts", "decisions")
    ids = set(chain.from_iterable(parameters[f"gone_{kind}"] for kind in kinds))
    ids.update(row["id"] for row in parameters["redacted"])
    ids.update(impact.entities[id_]["key"] for id_ in impact.gone_entities)
    ids.difference_update(row["new_id"] for row in parameters["redacted"])
    return ids


def _gather_traces(traces: Traces, impact: Impact, parameters: Row) -> Flow[None]:
    """Add to *traces* the words, names, quotes and vectors of what is about to go, except those that others have."""
    lost = {alias_key(name): name for name in chain.from_iterable(map(impact.find_lost_names, impact.entities))}
    texts = [terms(line(episode)) for episode in impact.episodes]
    words = {word for word in chain.from_iterable(texts) if not _may_be_of_date(word)}
    shared = yield from _find_shared(words, lost, impact, parameters)
    traces.words = words - shared
    traces.names = {key: tuple(terms(name)) for key, name in lost.items() if key not in shared}
    traces.texts = {row["new_id"]: row["content"] for row in parameters["redacted"]}
    for text in texts:
        traces.quotes |= find_quotes(text)
    episodes = [*parameters["gone_episodes"], *(row["id"] for row in parameters["redacted"])]
    gone_ids = {"Episode": episodes, "Fact": parameters["gone_facts"], "Entity": parameters["gone_entities"]}
    for label, of_label in gone_ids.items():
        rows = (yield from read(VECTORS[label], ids=of_label)) if of_label else []
        traces.vectors += [row["vector"] for row in rows]


def _find_shared(words: Iterable[str], keys: Iterable[str], impact: Impact, parameters: Row) -> Flow[set[str]]:
    """Return which of *words* and *keys* others have too: in names, sentences, reasons and relations."""
    affected = {"facts": sorted(impact.facts), "entities": sorted(impact.entities)}
    communities = parameters["gone_communities"]
    shared_words = yield from read(SHARED_WORDS, words=sorted(words), gone=communities, **affected)
    shared_names = yield from read(SHARED_NAMES, keys=sorted(keys), **affected)
    reasons = yield from read(OTHER_REASONS, facts=affected["facts"])
    wordings = {row["id"]: row["wording"] for row in parameters["evidence"]}
    relations = yield from read(RELATIONS, gone=[*parameters["gone_facts"], *wordings])
    names = [row["name"] for row in relations]
    names += [*wordings.values(), *(impact.facts[id_]["predicate"] for id_ in wordings)]
    names += [row["text"] for row in reasons]
    shared = {row["word"] for row in shared_words}
    shared.update(row["key"] for row in shared_names)
    return shared.union(_vocabulary(), *map(split_name, names))


@cache
def _vocabulary() -> frozenset[str]:
    """Return the words of the built-in relations."""
    return frozenset(chain.from_iterable(map(split_name, predicates.canonical_predicates())))


def _may_be_of_date(word: str) -> bool:
    """Return whether *word* is a number as dates have them: summaries have dates that nobody said."""
    return word.isdecimal() and (int(word) <= 31 or 1900 <= int(word) <= 2100)


SHARED_WORDS = "UNION".join(
    f"""
UNWIND $words AS word
MATCH (t:Term {{s: word}})
WITH t
MATCH (t)-[:{posting}]->(n:{label})
WHERE NOT n.id IN ${touched}
RETURN DISTINCT t.s AS word
"""
    for posting, label, touched in (
        ("IN_FACT", "Fact", "facts"),
        ("IN_ENTITY", "Entity", "entities"),
        ("IN_COMMUNITY", "Community", "gone"),
    )
)
"""The words that other facts, entities and communities have too."""

SHARED_NAMES = """
UNWIND $keys AS key
MATCH (a:Alias {key: key})
WITH a
MATCH (a)-[:NAMES]->(n:Entity)
WHERE NOT n.id IN $entities
RETURN DISTINCT a.key AS key
"""

OTHER_REASONS = """
MATCH (v:Verdict)
WHERE NOT (v.new IN $facts OR v.known IN $facts) AND size(coalesce(v.reason, '')) > 0
RETURN DISTINCT v.reason AS text
"""

RELATIONS = """
MATCH (f:Fact)
WHERE NOT f.id IN $gone
UNWIND [f.predicate, f.wording] AS name
WITH DISTINCT name
WHERE name IS NOT NULL
RETURN name
"""

VECTORS = {
    label: f"""
UNWIND $ids AS id
MATCH (n:{label} {{id: id}})
{on}
WHERE v.embedding IS NOT NULL
RETURN v.embedding AS vector
"""
    for label, on in (("Episode", "WITH n AS v"), ("Fact", "WITH n AS v"), ("Entity", "MATCH (n)-[:MEANS]->(v)"))
}
"""The vectors of what goes, by labels."""
