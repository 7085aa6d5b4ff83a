"""Step 3, construct: read the best candidates from the database and write them as a text for a prompt.

Facts are read with their periods, episodes with remarks (such as "no longer so") and with the question that they
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_memory.falkor import rows
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.queries.episodes import EPISODES_WITH_REMARKS
from kg_memory.falkor.rows import Row
from kg_memory.models import filters
from kg_memory.models.graph import KINDS, SOURCES, Asked, Episode, Fact, Kind, Value
from kg_memory.models.results import Context, SearchResults
from kg_memory.plugins import load_plugin
from kg_memory.retrieval.answerable import judge_answerable
from kg_memory.retrieval.clocks import add_warnings, point_of, read_absent
from kg_memory.retrieval.context.lines import result_text
from kg_memory.retrieval.context.templates import render
from kg_memory.retrieval.question import SPARE, Found, Ranked, SearchQuery
from kg_memory.retrieval.ranking import RETRIEVERS, Scored, ServedReranker, ids_of
from kg_memory.runtime.effects import fetch, in_step
from kg_memory.runtime.flow import Flow, at_all
from kg_memory.settings import Settings
from kg_memory.temporal.interval import SESSION_GAP
from kg_memory.text.sentences import content_stems, split_sentences
from kg_memory.text.tokenise import has_words, is_filler

BEFORE_ABSENT = 3
"""The number of best facts that come before ended facts without a replacement."""


def construct(values: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Context]]:
    """Read the best results from the database, and return ``{"context": ...}``, their text for a prompt."""
    return at_all(values["found"].namespaces, _construct(values, settings))


def _construct(values: Mapping[str, Any], settings: Settings) -> Flow[dict[str, Context]]:
    question, found, ranked = values["question"], values["found"], values["ranked"]
    winners = yield from read_winners(question, found, ranked)
    results = _make_results(question, found, winners, settings)
    if question.recall_from:
        results = results.model_copy(update={"namespaces": question.namespaces(values["namespace"])})
    context = Context(results=results)
    if question.max_tokens:
        context = render(results, question.max_tokens, question.template)
    if question.explain:
        explanations = load_plugin("stages", "explain")(context, winners, found, ranked, question.limit)
        results = results.model_copy(update={"explanations": explanations})
        context = Context(context, results, tokens=context.tokens, lines=context.lines, left_out=context.left_out)
    # Rerankers that count how often facts are used get the ids of the returned facts.
    for reranker in question.recipe.rerankers:
        if isinstance(reranker, ServedReranker):
            yield from reranker.record(list(dict.fromkeys(fact.id for fact in results.facts)))
    return {"context": context}


def _make_results(question: SearchQuery, found: Found, winners: Winners, settings: Settings) -> SearchResults:
    results = SearchResults(
        question=question.text,
        time=found.time,
        **{kind: tuple(values) for kind, values in winners.values.items()},
        relevance=found.relevance,
        answerable=judge_answerable(found.relevance, found.doubt, settings.abstain_below),
        skipped=question.recipe.skipped if question.recipe.route else (),
        degraded=found.degraded,
    )
    if found.past or _filters_episodes_or_facts(question):
        results = _without_summaries(results)
    return _insert_absent(results, winners.absent)


def _insert_absent(results: SearchResults, absent: Sequence[Fact]) -> SearchResults:
    facts = (*results.facts[:BEFORE_ABSENT], *absent, *results.facts[BEFORE_ABSENT:])
    return results.model_copy(update={"facts": facts}) if absent else results


def _filters_episodes_or_facts(question: SearchQuery) -> bool:
    if question.where is None:
        return False
    return any(filters.field_of(comparison).of != "entity" for comparison in filters.comparisons(question.where))


def _without_summaries(results: SearchResults) -> SearchResults:
    """Return *results* without summaries: these describe the present, and use messages outside of a filter."""
    entities = tuple(entity.model_copy(update={"summary": ""}) for entity in results.entities)
    communities = tuple(community.model_copy(update={"summary": ""}) for community in results.communities)
    return results.model_copy(update={"entities": entities, "communities": communities})


# Winners: the best candidates of each kind, read as values


@dataclass(frozen=True, slots=True)
class ResultReader:
    """How to read results of one kind, such as facts, from the database by their ids."""

    query: str
    name: str
    value: Callable[[Row, float | None], Value]


READERS: Mapping[Kind, ResultReader] = {
    "facts": ResultReader(cypher.FACTS_BY_ID, "fact", rows.to_fact),
    "entities": ResultReader(cypher.ENTITIES_BY_ID, "entity", rows.to_entity),
    "communities": ResultReader(cypher.COMMUNITIES_BY_ID, "community", rows.to_community),
    "episodes": ResultReader(EPISODES_WITH_REMARKS, "episode", rows.to_episode),
}
HAVE_SAVE_TIME: tuple[Kind, ...] = ("entities", "episodes")
"""The kinds whose nodes have the time when they were saved."""
FURTHER = 50
"""The most candidates of each kind beyond the results that are explained."""
LONGEST_TURN, LONGEST_QUESTION = 2000, 160
"""Limits in characters: of a turn in which a question is looked for, and of a question shown with its answer."""
RowsById = dict[str, list[Row]]
"""Result rows by id. A fact has one row for each of its periods that fits the time, the latest first."""


@dataclass(frozen=True, slots=True)
class Winners:
    """The best results of a search by kind, best first.

    `absent`: facts that ended without a replacement. `fillers`: ids of messages without content, such as "Noted.".
    """

    values: Mapping[Kind, Sequence[Any]]
    absent: Sequence[Fact]
    texts: Mapping[Kind, Mapping[str, str]]
    fillers: Collection[str]


def read_winners(question: SearchQuery, found: Found, ranked: Ranked) -> Flow[Winners]:
    """Read the best results in *ranked* from the database."""
    most = question.limit + (FURTHER if question.explain else 0)
    ids = {kind: ids_of(ranked.ranked.get(kind, [])[:most]) for kind in KINDS}
    if not question.explain:
        ids["episodes"] = ids_of(ranked.ranked.get("episodes", [])[: most + SPARE])
    reads = [_read_rows(kind, ids[kind], found) for kind in KINDS]
    absent = _read_absent(ids["episodes"][: question.limit], question, found)
    *answers, absent_facts = yield from in_step([*reads, absent])
    stored: dict[Kind, RowsById] = dict(zip(KINDS, answers, strict=True))
    episodes = {id_: row for id_, [row] in stored["episodes"].items()}
    chosen = {id_: episodes[id_] for id_ in ids["episodes"] if id_ in episodes}
    # A question without words, such as an emoji, may look for messages without words.
    fillers = find_fillers(chosen) if has_words(question.text) else set()
    values: dict[Kind, Sequence[Any]] = {}
    for kind in KINDS:
        best = [scored for scored in ranked.ranked.get(kind, []) if scored[0] not in fillers][: question.limit]
        values[kind] = _values(kind, stored[kind], best)[: question.limit]
    values["episodes"] = yield from _add_remarks(values["episodes"], episodes, question, found)
    return Winners(values, absent_facts, _texts(stored) if question.explain else {}, fillers)


def _texts(stored: Mapping[Kind, RowsById]) -> dict[Kind, dict[str, str]]:
    return {kind: {id_: result_text(_to_value(kind, row)) for id_, (row, *_) in stored[kind].items()} for kind in KINDS}


def _read_rows(kind: Kind, ids: Sequence[str], found: Found) -> Flow[RowsById]:
    """Return the database rows of the results *ids* as ``{id: rows}``; a fact has a row for each period."""
    if not ids:
        return {}
    reader, instants = READERS[kind], found.instants
    extra: dict[str, Any] = {}
    if kind == "facts":
        extra = {**instants.params, "sources": SOURCES}
    elif kind == "episodes":
        extra = {"believed_at": instants.believed_at, "until": instants.until}
        extra |= {"gap": SESSION_GAP, "length": LONGEST_TURN}
    stored: Sequence[Row] = yield from fetch(reader.query, ids=list(ids), **extra)
    if kind == "facts":
        stored = yield from add_warnings(stored, point_of((instants.since, instants.until), instants.believed_at))
    by_id: RowsById = {}
    for row in reversed(stored):
        if kind not in HAVE_SAVE_TIME or (row[reader.name]["created_at"] or 0) <= instants.believed_at:
            by_id.setdefault(row[reader.name]["id"], []).append(row)
    if kind != "facts":  # a copy in another namespace may have the same id
        by_id = {id_: found[-1:] for id_, found in by_id.items()}
    if kind == "facts" and instants.vagueness is not None:
        for periods in by_id.values():
            periods.sort(key=lambda row: -instants.nearness(row["belief"]["known_from"], row["belief"]["invalid_at"]))
    return by_id


def _read_absent(episodes: Sequence[str], question: SearchQuery, found: Found) -> Flow[list[Fact]]:
    """Return facts stated by the messages *episodes* that ended and were not replaced, such as a sold car."""
    instants = found.instants
    if not question.max_tokens or question.where or instants.until - instants.since > 1:
        return []
    point = point_of((instants.since, instants.until), instants.believed_at)
    return (yield from read_absent(episodes, question.text, point))


def _values(kind: Kind, stored: RowsById, best: Sequence[Scored]) -> list[Any]:
    return [_to_value(kind, row, score) for id_, score in best for row in stored.get(id_, ())]


def _to_value(kind: Kind, row: Row, score: float | None = None) -> Any:
    reader = READERS[kind]
    if kind == "facts":
        return reader.value(row, score)
    value = reader.value(row[reader.name], score)
    return value.model_copy(update={"namespace": row["namespace"]}) if "namespace" in row else value


def _add_remarks(
    episodes: Sequence[Episode], stored: Mapping[str, Row], question: SearchQuery, found: Found
) -> Flow[list[Episode]]:
    """Add remarks ("no longer so since May") to the messages *episodes*.

    Messages to which remarks refer, and answers to questions, are inserted; as many are dropped at the end.
    """
    # A question is shown with its answer in a context only, and only hits of the search are known to pass a filter.
    asked = pair_turns(episodes, stored) if question.max_tokens and not question.where else {}
    answers = {pair.episode: id_ for id_, pair in asked.items()}
    remarks = (remark for episode in episodes for remark in stored[episode.id]["remarks"])
    referred = {remark["by"] for remark in remarks if remark["by"]} | asked.keys()
    if question.where:
        referred &= {id_ for retriever in RETRIEVERS for id_, _ in found.hits["episodes"].of(retriever)}
    referred -= {episode.id for episode in episodes}
    more = yield from _read_rows("episodes", sorted(referred - stored.keys()), found)
    known = {**stored, **{id_: row for id_, [row] in more.items()}}
    lines: dict[str, Episode] = {}
    for episode in episodes:
        lines.setdefault(episode.id, episode)
        for other in (*(remark["by"] for remark in stored[episode.id]["remarks"]), answers.get(episode.id)):
            if other in referred and other in known:
                lines.setdefault(other, _to_value("episodes", known[other], episode.score))
    return [_with_remarks(episode, known, asked) for episode in list(lines.values())[: len(episodes)]]


def _with_remarks(episode: Episode, known: Mapping[str, Row], asked: Mapping[str, Asked]) -> Episode:
    remarks = tuple(map(rows.to_remark, known[episode.id]["remarks"]))
    return episode.model_copy(update={"remarks": remarks, "asked": asked.get(episode.id)})


# Questions and answers: a turn that answers the turn just before it is shown with that question


def find_fillers(episodes: Mapping[str, Row]) -> set[str]:
    """Return the ids of the messages in *episodes* without content, such as "Noted."."""
    messages = {id_: row for id_, row in episodes.items() if row["episode"]["kind"] == "message"}
    fillers = set()
    for id_, row in messages.items():
        content, before = row["episode"]["content"], row["before"]
        if is_filler(content, None) or (before and is_filler(content, before["content"])):
            fillers.add(id_)
    return fillers


def pair_turns(episodes: Iterable[Episode], beside: Mapping[str, Row]) -> dict[str, Asked]:
    """Return ``{message id: question}`` for messages that follow a message ending in a question."""
    pairs: dict[str, Asked] = {}
    for episode in episodes:
        row = beside.get(episode.id, {})
        before, after = row.get("before"), row.get("after")
        if before and (question := find_question(before["content"])):
            names = {"episode": before["id"], "source_id": before["source_id"], "speaker": before["speaker"]}
            pairs[episode.id] = Asked(question=question, **names)
        if after and (question := find_question(episode.content)):
            names = {"episode": episode.id, "source_id": episode.source_id, "speaker": episode.speaker}
            pairs[after["id"]] = Asked(question=question, **names)
    return pairs


def find_question(content: str) -> str:
    """Return the question at the end of *content*: "I moved. Where do you live?" -> "Where do you live?"."""
    asking = [sentence.text for sentence in split_sentences(content)[-2:] if sentence.asks]
    return asking[-1] if asking and content_stems(asking[-1]) and len(asking[-1]) <= LONGEST_QUESTION else ""
