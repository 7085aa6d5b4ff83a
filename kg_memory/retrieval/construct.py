"""Step 3, construct: the winners as values, and as a text for a prompt (Zep 3.3)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as beliefs
from kg_memory.falkor.queries import search as cypher
from kg_memory.falkor.rows import Row
from kg_memory.models import filters
from kg_memory.models.graph import KINDS, SOURCES, Asked, Episode, Fact, Kind, Remark, Value
from kg_memory.models.results import Context, Explanation, Hit, SearchResults
from kg_memory.plugins import load_plugin
from kg_memory.retrieval.answerable import judge
from kg_memory.retrieval.context.lines import id_of, text_of
from kg_memory.retrieval.context.render import render
from kg_memory.retrieval.context.templates import find_template
from kg_memory.retrieval.fuse import RETRIEVERS, ids_of
from kg_memory.retrieval.plugins import ServedReranker
from kg_memory.retrieval.question import Found, Question, Ranked
from kg_memory.retrieval.standing import add_standing, point_of, read_absent
from kg_memory.retrieval.turns import SPARE, Beside, find_fillers, pair_turns, read_turns
from kg_memory.runtime.effects import in_step, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.tokenise import has_words


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the values of one kind: by a *query*, whose column *name* has the properties."""

    query: str
    name: str
    value: Callable[[Row, float | None], Value]


READERS: Mapping[Kind, Reader] = {
    "facts": Reader(cypher.FACTS_BY_ID, "fact", rows.to_fact),
    "entities": Reader(cypher.ENTITIES_BY_ID, "entity", rows.to_entity),
    "communities": Reader(cypher.COMMUNITIES_BY_ID, "community", rows.to_community),
    "episodes": Reader(cypher.EPISODES_BY_ID, "episode", rows.to_episode),
}
HAVE_SAVE_TIME: tuple[Kind, ...] = ("entities", "episodes")
"""The kinds whose nodes have the time when they were saved."""
BEFORE_ABSENT = 3
"""The facts that come before those that have ended with nothing in their place."""
FURTHER = 50
"""The candidates of each kind behind the results that are explained, at most."""
GONE: Mapping[Kind, str] = {
    "facts": "it does not hold at the time that is asked about, or was not believed then",
    "entities": "not known then, or deleted meanwhile",
    "communities": "deleted meanwhile",
    "episodes": "not known then, or deleted meanwhile",
}
"""The reason why a candidate cannot be read any more."""
FILLER = "it says nothing by itself"
NOT_SELECTED = "the model did not select it"
Texts = Mapping[Kind, Mapping[str, str]]
"""The text of what is stored, by kind and id."""
RowsById = dict[str, list[Row]]
"""Rows by id: of a fact one for each of its periods that fit, the latest first."""
Remarks = dict[str, list[Remark]]
Winners = tuple[dict[Kind, RowsById], Remarks, list[Fact], Beside, Collection[str]]


def write(question: Question, found: Found, ranked: Ranked, settings: Settings) -> Flow[Context]:
    """Read the winners by id, and write the best of them within `max_tokens`, or that the memory does not know.

    Errors: `InputError` for the name of a template that does not exist.
    """
    form = question.template and find_template(question.template)
    stored, remarks, absent, beside, fillers = yield from _read_winners(question, found, ranked)
    values: dict[Kind, Any] = {kind: _values(kind, stored[kind], ranked, question.limit, fillers) for kind in KINDS}
    values["episodes"] = yield from _add_remarks(values["episodes"], remarks, beside, question, found)
    answerable = judge(found.relevance, found.doubt, settings.abstain_below)
    known = {"time": found.time, "relevance": found.relevance, "answerable": answerable, "degraded": found.degraded}
    skipped = question.recipe.skipped if question.recipe.route else ()
    results = SearchResults(question=question.text, **known, **values, skipped=skipped)
    if found.past or _filters_episodes_or_facts(question):
        results = _without_summaries(results)
    results = everything = _with_absent(results, absent)
    if question.recipe.select:
        results = yield from load_plugin("stages", "select")(everything)
    context = render(results, question.max_tokens, form) if question.max_tokens else Context(results=results)
    if question.explain:
        explanations = explain(context, _texts(stored), found, ranked, question.limit, fillers)
        explanations = _explain_selection(explanations, everything, results)
        results = results.model_copy(update={"explanations": explanations})
        context = Context(context, results, tokens=context.tokens, lines=context.lines, left_out=context.left_out)
    for reranker in question.recipe.rerankers:
        if isinstance(reranker, ServedReranker):
            yield from reranker.record(list(dict.fromkeys(fact.id for fact in results.facts)))
    return context


def _read_winners(question: Question, found: Found, ranked: Ranked) -> Flow[Winners]:
    """Return the rows of the winners, the remarks on episodes, what is absent, and the turns beside, all at once.

    For an explanation, those behind the winners have rows too. With them are the turns that say nothing.
    """
    most = question.limit + (FURTHER if question.explain else 0)
    ids = {kind: ids_of(ranked.ranked.get(kind, [])[:most]) for kind in KINDS}
    if not question.explain:
        ids["episodes"] = ids_of(ranked.ranked.get("episodes", [])[: most + SPARE])
    reads = [_read_rows(kind, ids[kind], found) for kind in KINDS]
    episodes = ids["episodes"][: question.limit + SPARE]
    # Only the hits of the search itself are known to pass a filter.
    joined = episodes if question.max_tokens and not question.where else []
    flows = [*reads, *_read_remarks(episodes, found), _read_absent(episodes[: question.limit], question, found)]
    *answers, disputed, ended, absent, beside = yield from in_step([*flows, read_turns(joined, found.instants)])
    stored = dict(zip(KINDS, answers, strict=True))
    episode_rows = [row["episode"] for [row] in stored["episodes"].values()]
    messages = {row["id"]: row["content"] for row in episode_rows if row["kind"] == "message"}
    # An emoji may be all of a message.
    fillers = (yield from find_fillers(messages, beside, found.instants)) if has_words(question.text) else set()
    return stored, _join(disputed, ended), absent, beside, fillers


def _read_rows(kind: Kind, ids: Sequence[str], found: Found) -> Flow[RowsById]:
    """Return the rows of *ids*; a node that is deleted by now, or was not yet known then, has none."""
    if not ids:
        return {}
    reader, instants = READERS[kind], found.instants
    extra = {**instants.params, "sources": SOURCES} if kind == "facts" else {}
    answers = yield from read(reader.query, ids=list(ids), **extra)
    stored: Sequence[Row] = answers
    if kind == "facts":
        stored = yield from add_standing(answers, point_of((instants.since, instants.until), instants.believed_at))
    by_id: RowsById = {}
    for row in reversed(stored):
        if kind not in HAVE_SAVE_TIME or (row[reader.name]["created_at"] or 0) <= instants.believed_at:
            by_id.setdefault(row[reader.name]["id"], []).append(row)
    if kind == "facts" and instants.vagueness is not None:
        for periods in by_id.values():
            periods.sort(key=lambda row: -instants.nearness(row["belief"]["known_from"], row["belief"]["invalid_at"]))
    return by_id


def _read_absent(episodes: Sequence[str], question: Question, found: Found) -> Flow[list[Fact]]:
    """Return what has ended with nothing in its place, if the question is about one instant, such as the present."""
    instants = found.instants
    if not question.max_tokens or question.where or instants.until - instants.since > 1:
        return []
    point = point_of((instants.since, instants.until), instants.believed_at)
    return (yield from read_absent(episodes, question.text, point))


def _with_absent(results: SearchResults, absent: Sequence[Fact]) -> SearchResults:
    facts = (*results.facts[:BEFORE_ABSENT], *absent, *results.facts[BEFORE_ABSENT:])
    return results.model_copy(update={"facts": facts}) if absent else results


def _values(kind: Kind, stored: RowsById, ranked: Ranked, limit: int, fillers: Collection[str]) -> tuple[Any, ...]:
    """Return the winners of one kind, best first; a fact once for each of its periods that fit, the latest first."""
    candidates = ranked.ranked.get(kind, [])
    winners = [scored for scored in candidates if scored[0] not in fillers][:limit]
    return tuple(_value(kind, row, score) for id_, score in winners for row in stored.get(id_, ()))[:limit]


def _value(kind: Kind, row: Row, score: float | None = None) -> Any:
    reader = READERS[kind]
    return reader.value(row if kind == "facts" else row[reader.name], score)


def _texts(stored: Mapping[Kind, RowsById]) -> dict[Kind, dict[str, str]]:
    texts = {}
    for kind in KINDS:
        texts[kind] = {id_: text_of(_value(kind, first)) for id_, (first, *_) in stored[kind].items()}
    return texts


def _add_remarks(
    episodes: Sequence[Episode], remarks: Remarks, beside: Beside, question: Question, found: Found
) -> Flow[tuple[Episode, ...]]:
    """Return *episodes* with remarks and questions, each followed by those that its remarks refer to, and its answer.

    They are as many as before.
    """
    referred = {remark.by for episode in episodes for remark in remarks.get(episode.id, ()) if remark.by}
    asked = pair_turns(episodes, beside)
    answers = {question.episode: id_ for id_, question in asked.items()}
    referred |= asked.keys()
    if question.where:  # only the hits of the search itself are known to pass the filter
        hits = found.hits["episodes"]
        referred &= {id_ for retriever in RETRIEVERS for id_, _ in hits.of(retriever)}
    missing = sorted(referred - {episode.id for episode in episodes})
    others, disputed, ended = yield from in_step(
        [_read_rows("episodes", missing, found), *_read_remarks(missing, found)]
    )
    remarks = remarks | _join(disputed, ended)
    lines: dict[str, Episode] = {}
    for episode in episodes:
        lines.setdefault(episode.id, episode)
        for other in (*(remark.by for remark in remarks.get(episode.id, ())), answers.get(episode.id)):
            for row in others.get(other or "", ()):
                lines.setdefault(row["episode"]["id"], rows.to_episode(row["episode"], episode.score))
    kept = list(lines.values())[: len(episodes)]
    return tuple(_complete(episode, remarks, asked) for episode in kept)


def _complete(episode: Episode, remarks: Remarks, asked: Mapping[str, Asked]) -> Episode:
    return episode.model_copy(update={"remarks": tuple(remarks.get(episode.id, ())), "asked": asked.get(episode.id)})


def _read_remarks(ids: Sequence[str], found: Found) -> tuple[Flow[Remarks], Flow[Remarks]]:
    """Return how to read the remarks on the episodes of *ids*: statements that are disputed, and that are over."""
    believed_at, until = found.instants.believed_at, found.instants.until
    disputed = _read_remarks_by(beliefs.REMARKS, ids=list(ids), believed_at=believed_at)
    return disputed, _read_remarks_by(beliefs.ENDED, ids=list(ids), believed_at=believed_at, until=until)


def _read_remarks_by(query: str, ids: list[str], **params: int) -> Flow[Remarks]:
    if not ids:
        return {}
    answers = yield from read(query, ids=ids, **params)
    remarks: Remarks = {}
    for row in answers:
        remarks.setdefault(row["id"], []).append(rows.to_remark(row))
    return remarks


def _join(disputed: Remarks, ended: Remarks) -> Remarks:
    return {id_: [*disputed.get(id_, ()), *ended.get(id_, ())] for id_ in disputed.keys() | ended.keys()}


def _filters_episodes_or_facts(question: Question) -> bool:
    """Return whether the filter is about more than kinds of entities: a summary also tells what other episodes say."""
    if question.where is None:
        return False
    return any(filters.field_of(comparison).of != "entity" for comparison in filters.comparisons(question.where))


def _without_summaries(results: SearchResults) -> SearchResults:
    """Leave the summaries out: they tell what is so now, by all that was ever said."""
    entities = tuple(entity.model_copy(update={"summary": ""}) for entity in results.entities)
    communities = tuple(community.model_copy(update={"summary": ""}) for community in results.communities)
    return results.model_copy(update={"entities": entities, "communities": communities})


# Explanations


def explain(
    context: Context, texts: Texts, found: Found, ranked: Ranked, limit: int, fillers: Collection[str] = ()
) -> tuple[Explanation, ...]:
    """Return why the results in *context* have their ranks, and why other candidates are not among the *limit* best."""
    explanations: list[Explanation] = []
    for kind in KINDS:
        explanations += _explain_results(kind, context, found, ranked)
        explanations += _explain_others(kind, context, texts, found, ranked, limit, fillers)
    return tuple(explanations)


def _explain_results(kind: Kind, context: Context, found: Found, ranked: Ranked) -> Iterator[Explanation]:
    """Yield the explanations of the results, in their order; each period of a fact has a line of its own."""
    lines: defaultdict[str, deque[str]] = defaultdict(deque)
    for line in context.lines:
        if line.kind == kind:
            lines[line.id].append(line.text)
    reasons = {skipped.id: skipped.left_out for skipped in context.left_out if skipped.kind == kind}
    for rank, value in enumerate(_results(kind, context), start=1):
        id_ = id_of(value)
        has_line = bool(lines[id_])
        text = lines[id_].popleft() if has_line else text_of(value)
        update = {"rank": rank} if has_line else {"rank": rank, "left_out": reasons.get(id_)}
        yield _explain_one(kind, id_, text, found, ranked).model_copy(update=update)


def _explain_others(
    kind: Kind, context: Context, texts: Texts, found: Found, ranked: Ranked, limit: int, fillers: Collection[str]
) -> Iterator[Explanation]:
    """Yield the explanations of the candidates that are no results, best first."""
    results = {id_of(value) for value in _results(kind, context)}
    for id_, _ in ranked.ranked.get(kind, [])[: limit + FURTHER]:
        if id_ not in results:
            behind = FILLER if id_ in fillers else f"not among the first {limit}"
            reason = behind if id_ in texts[kind] else GONE[kind]
            explanation = _explain_one(kind, id_, texts[kind].get(id_, ""), found, ranked)
            yield explanation.model_copy(update={"left_out": reason})


def _explain_one(kind: Kind, id_: str, text: str, found: Found, ranked: Ranked) -> Explanation:
    """Return by which retrievers a candidate was found, and its score after each stage of ranking."""
    stages = ranked.stages.get(kind, {}).get(id_, ())
    return Explanation(kind=kind, id=id_, text=text, hits=tuple(_hits(kind, id_, found)), scores=tuple(stages))


def _explain_selection(
    explanations: Sequence[Explanation], before: SearchResults, after: SearchResults
) -> tuple[Explanation, ...]:
    """Return *explanations* that say of the results *before* that are not there *after*: they were not selected."""
    ids = {kind: _ids(before, kind) - _ids(after, kind) for kind in KINDS}
    update = {"left_out": NOT_SELECTED}
    return tuple(each.model_copy(update=update) if each.id in ids[each.kind] else each for each in explanations)


def _ids(results: SearchResults, kind: Kind) -> set[str]:
    return {value.id for value in getattr(results, kind)}


def _hits(kind: Kind, id_: str, found: Found) -> Iterator[Hit]:
    if kind in found.hits:
        for retriever in RETRIEVERS:
            for rank, (hit, score) in enumerate(found.hits[kind].of(retriever), start=1):
                if hit == id_:
                    yield Hit(retriever=retriever, rank=rank, score=score)


def _results(kind: Kind, context: Context) -> Sequence[Value]:
    results: Sequence[Value] = getattr(context.results, kind)
    return results
