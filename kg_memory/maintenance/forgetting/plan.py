"""Plan the deletion of one batch of episodes (stored messages): what is deleted, and how the other data change.

The beliefs (periods in which the memory holds a fact to be true) are computed again, as if the forgotten episodes had
never been added. Facts that they ended hold again. Facts that only they state were never believed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from kg_memory.falkor.queries.identities import REASONS_ABOUT
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.invalidate import read_history, revise_beliefs, to_belief, to_statement
from kg_memory.ingestion.postings import to_terms
from kg_memory.ingestion.records import Revision
from kg_memory.maintenance.forgetting import cypher
from kg_memory.maintenance.forgetting.look import Impact, add_ends, is_own_predicate, pick_keys, reword, split_name
from kg_memory.maintenance.identities.move import Parameters, entity_row, evidence_of
from kg_memory.runtime.effects import embed, fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.beliefs import Belief, History
from kg_memory.temporal.interval import OPEN_END
from kg_memory.temporal.policy import ConflictPolicy
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, decision_id

_Times = tuple[int, int, bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned deletion.

    - `parameters`: those of the query `cypher.FORGET`.
    - `restored`: ids of facts that hold again. `changed`: ids of other facts with new dates.
    - `sentences`: the sentences of the restored and changed facts, by id.
    """

    parameters: Parameters
    restored: list[str]
    changed: list[str]
    sentences: dict[str, str]


def plan_removal(impact: Impact, settings: Settings, namespace: str, time: int) -> Flow[Plan]:
    """Return which nodes to delete together with messages, and how the remaining nodes change."""
    gone_facts = [id_ for id_, fact in impact.facts.items() if _is_gone(fact, impact, settings)]
    parameters = yield from _plan_facts(impact, gone_facts)
    parameters |= yield from _plan_verdicts(impact, gone_facts)
    history = yield from read_history({*impact.ids_of("state"), *gone_facts})
    belief_rows = yield from fetch(cypher.BELIEFS, ids=sorted({*history.statements, *gone_facts}))
    _remove_from_history(history, impact, gone_facts, parameters["unrefuted"])
    causes = impact.forgotten.ids.union(parameters["gone_decisions"])
    recorded_by = (namespace, decision_id(namespace, " ".join(sorted(impact.forgotten.ids)), time))
    plan = _plan_beliefs(history, belief_rows, causes, ConflictPolicy.from_settings(settings), recorded_by)
    gone_beliefs = {row["belief"]["id"] for row in belief_rows if row["fact"] in gone_facts}
    reworded = (row["id"] for row in parameters["reworded"])
    ends = yield from add_ends(impact, {*gone_facts, *impact.ids_of("state"), *reworded, *plan.sentences})
    parameters |= yield from _plan_entities(impact, ends)
    touched = [*impact.gone_entities, *(row["id"] for row in parameters["entities"])]
    parameters |= yield from _plan_unused(impact, gone_facts, touched)
    based_on = [pick_keys(entity, "id", "revision", "mentioned") for entity in impact.entities.values()]
    statuses = [pick_keys(episode, "id", "status") for episode in impact.episodes]
    redacted = [{"id": id_, **row} for id_, row in impact.redactions.items()]
    parameters |= {
        **plan.parameters,
        "based_on": based_on,
        "threads": impact.threads,
        "episodes": statuses,
        "links": [] if impact.redactions else relink(impact.episodes),
        "places": impact.postings,
        "scrubbed_identities": (yield from _select_reasons(impact)),
        "unread": (yield from _select_unread(impact, gone_facts)),
        "redacted": redacted,
        "gone_episodes": sorted(impact.forgotten.ids - impact.redactions.keys()),
        "gone_facts": gone_facts,
        "gone_entities": sorted(impact.gone_entities),
        "gone_beliefs": sorted(gone_beliefs.union(plan.parameters["gone_beliefs"])),
    }
    return replace(plan, parameters=parameters)


# Facts and verdicts


def _is_gone(fact: Row, impact: Impact, settings: Settings) -> bool:
    if all(row["id"] in impact.forgotten.ids for row in fact["statements"]):
        return True
    if not impact.gone_entities.isdisjoint((fact["subject"], *fact["objects"])):
        return True
    return is_own_predicate(fact["predicate"], impact.forgotten, impact.other_words[fact["id"]], settings.fact_types)


def _plan_facts(impact: Impact, gone_facts: Collection[str]) -> Flow[Parameters]:
    """Return query parameters to update the facts that remain, which are all except *gone_facts* (ids)."""
    names = {id_: remaining[0] for id_, remaining in impact.names.items() if remaining}
    stated = impact.ids_of("state")
    evidence: list[Parameters] = []
    sentences: dict[str, str] = {}
    valid_again: list[Parameters] = []
    for id_, fact in impact.facts.items():
        if id_ in gone_facts:
            continue
        sentence, wording = reword(fact, names, impact.forgotten, impact.other_words[id_])
        if id_ in stated or wording != fact["wording"]:
            evidence.append({"id": id_, "wording": wording, **_evidence(fact, impact)})
        if sentence != fact["sentence"]:
            sentences[id_] = sentence
        if id_ in stated:
            valid_again += [{"episode": row["id"], "fact": id_} for row in _select_valid(fact, impact.forgotten.ids)]
    vectors = yield from embed(list(sentences.values()))
    reworded: list[Parameters] = []
    for (id_, sentence), vector in zip(sentences.items(), vectors, strict=True):
        counts = tokenise.count_fact_terms(sentence, impact.facts[id_]["predicate"])
        postings = {"n": counts.total(), "terms": to_terms(counts)}
        reworded.append({"id": id_, "sentence": sentence, "embedding": vector, **postings})
    return {"evidence": evidence, "reworded": reworded, "unrefuted": valid_again}


def _evidence(fact: Row, impact: Impact) -> Parameters:
    evidence = evidence_of([row for row in fact["statements"] if row["id"] not in impact.forgotten.ids])
    if fact["told_by"] not in impact.forgotten.ids:
        evidence |= pick_keys(fact, "told_at", "told_by", "told_end")
    return evidence


def _select_valid(fact: Row, gone: Collection[str]) -> list[Row]:
    """Return the refuted statements of *fact* that become valid again without the episodes *gone*."""
    remaining = [row for row in fact["statements"] if row["id"] not in gone]
    refuted = [row for row in remaining if row["refuted"]]
    was_corrected = any(row["corrects"] for row in fact["statements"] if row["id"] in gone)
    is_corrected = any(row["corrects"] for row in remaining)
    return refuted if len(refuted) == len(remaining) or (was_corrected and not is_corrected) else []


def _plan_verdicts(impact: Impact, gone_facts: Collection[str]) -> Flow[Parameters]:
    """Return the query parameters that update verdicts (stored relations of two facts)."""
    verdicts = {row["id"]: row for row in (yield from fetch(cypher.VERDICTS, ids=sorted(impact.facts)))}
    gone = {id_: row for id_, row in verdicts.items() if not {row["new"], row["known"]}.isdisjoint(gone_facts)}
    scrubbed: list[Parameters] = []
    for id_, row in verdicts.items():
        is_own = row["episode"] in impact.forgotten.ids
        is_doubtful = is_own or not impact.forgotten.words.isdisjoint(tokenise.terms(row["reason"] or ""))
        if id_ not in gone and is_doubtful:
            scrubbed.append({"id": id_, "reason": "", "episode": None if is_own else row["episode"]})
    decisions = set(chain.from_iterable(row["decisions"] for row in gone.values()))
    return {"scrubbed": scrubbed, "gone_verdicts": sorted(gone), "gone_decisions": sorted(decisions)}


def _select_reasons(impact: Impact) -> Flow[list[str]]:
    """Return the ids of merge and split decisions whose stored reason contains words of the deleted episodes."""
    rows = yield from fetch(REASONS_ABOUT)
    words = impact.forgotten.words
    return [row["id"] for row in rows if not words.isdisjoint(tokenise.terms(" ".join(row["texts"])))]


# Beliefs


def _remove_from_history(
    history: History, impact: Impact, gone_facts: Collection[str], valid_again: Iterable[Row]
) -> None:
    """Remove from *history* the statements of deleted messages, and all data about the facts *gone_facts*."""
    for id_, verdict in list(history.verdicts.items()):
        if verdict.new in gone_facts or verdict.existing in gone_facts:
            del history.verdicts[id_]
            history.edits.pop(id_, None)
    for fact, own in list(history.statements.items()):
        history.statements[fact] = {key: row for key, row in own.items() if row.id not in impact.forgotten.ids}
        if fact in gone_facts or not history.statements[fact]:
            del history.statements[fact]
    for episode, fact in sorted({(row["episode"], row["fact"]) for row in valid_again}):
        for statement in impact.facts[fact]["statements"]:
            if statement["id"] == episode:
                history.add_statement(to_statement(fact, statement))


def _plan_beliefs(
    history: History, rows: Iterable[Row], causes: Collection[str], policy: ConflictPolicy, recorded_by: tuple[str, str]
) -> Plan:
    """Compute the beliefs (periods of facts) anew from the messages that remain after a deletion; return the changes.

    The `parameters` are ``gone_beliefs``, ids of beliefs to delete; ``reopened``, beliefs that now end later,
    ``{"id": ..., "until": microseconds since the epoch}``; and those of beliefs to end and to add.

    *history*: the remaining statements and the current beliefs. *rows*: all beliefs about the same facts. *causes*: ids
    of the deleted messages and decisions; beliefs that were stored because of them are deleted. *recorded_by*: the
    namespace, and the id of this deletion.
    """
    removed: list[str] = []
    saved = set[int]()
    remaining: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        own, belief = remaining[row["fact"]], row["belief"]
        if belief["cause"] in causes:
            removed.append(belief["id"])
            saved.add(belief["created_at"])
        else:
            own.append(belief)
    before = {fact: list(beliefs) for fact, beliefs in history.beliefs.items()}
    reopened: list[Parameters] = []
    for fact, own in remaining.items():
        kept = [belief for belief in history.beliefs[fact] if belief.id not in removed]
        for belief in own if fact in history.statements else ():
            until = _find_end(belief, own)
            if belief["expired_at"] in saved and until > belief["expired_at"]:
                reopened.append({"id": belief["id"], "until": until})
                if until == OPEN_END:
                    kept.append(to_belief(belief))
        history.beliefs[fact] = kept
    revision = revise_beliefs(history, policy, *recorded_by)
    restored, changed = _compare(before, history, revision)
    sentences = {fact: history.sentences[fact] for fact in (*restored, *changed)}
    parameters = {"gone_beliefs": removed, "reopened": reopened, **revision.to_parameters()}
    return Plan(parameters, restored, changed, sentences)


def _find_end(belief: Row, beliefs: Iterable[Row]) -> int:
    """Return when *belief* ends once the message that replaced it is deleted, or `OPEN_END`.

    Times are in microseconds.
    """
    # A belief may expire before its own creation if a clock was set back.
    others = (row["created_at"] for row in beliefs if row["id"] != belief["id"])
    return min((at for at in others if at > belief["expired_at"]), default=OPEN_END)


def _compare(
    before: Mapping[str, Iterable[Belief]], history: History, revision: Revision
) -> tuple[list[str], list[str]]:
    """Return the ids of facts that become true again by a deletion, and of other facts with changed dates."""
    after: defaultdict[str, set[_Times]] = defaultdict(set)
    for fact in history.statements:
        after[fact] |= _times(belief for belief in history.beliefs[fact] if belief.id not in revision.closed)
    for new in revision.beliefs:
        after[new.fact] |= _times([Belief(new.id, new.period, new.proposed)])
    earlier = {fact: _times(before.get(fact, ())) for fact in after}
    restored = [fact for fact, times in after.items() if _is_current(times) and not _is_current(earlier[fact])]
    changed = [fact for fact, times in after.items() if times != earlier[fact] and fact not in restored]
    return sorted(restored), sorted(changed)


def _times(beliefs: Iterable[Belief]) -> set[_Times]:
    return {(belief.period.valid_at, belief.period.invalid_at, belief.proposed) for belief in beliefs}


def _is_current(times: Iterable[_Times]) -> bool:
    return any(until == OPEN_END and not proposed for _, until, proposed in times)


# Entities and the rest


def _plan_entities(impact: Impact, changed: Iterable[str]) -> Flow[Parameters]:
    """Return the query parameters that update the remaining entities: their times, names, vectors and aliases."""
    lost = {id_: impact.find_lost_names(id_) for id_ in impact.entities}
    touched = impact.ids_of("mention").union(changed, (id_ for id_, names in lost.items() if names))
    rows: list[Parameters] = []
    renamed: dict[str, str] = {}
    unnamed: list[Parameters] = []
    for id_ in sorted(touched - impact.gone_entities):
        entity, names = impact.entities[id_], impact.names[id_]
        seen = (at for at in (entity["first_seen"], entity["last_seen"]) if at is not None)
        rows.append(entity_row(id_, names, seen))
        if names[0] != entity["name"]:
            renamed[entity["key"]] = names[0]
        aliases = set(map(alias_key, lost[id_])).difference(map(alias_key, names))
        unnamed += [{"key": entity["key"], "alias": alias} for alias in sorted(aliases)]
    vectors = yield from embed(list(renamed.values()))
    named = [
        {"key": key, "name": name, "embedding": vector}
        for (key, name), vector in zip(renamed.items(), vectors, strict=True)
    ]
    return {"entities": rows, "renamed": named, "unnamed": unnamed}


def _plan_unused(impact: Impact, gone_facts: Iterable[str], touched: Sequence[str]) -> Flow[Parameters]:
    """Return the communities, predicates and aliases to delete, as query parameters."""
    communities = yield from fetch(cypher.COMMUNITIES, ids=touched)
    learned = yield from fetch(cypher.LEARNED_PREDICATES)
    used = {impact.facts[id_][name] for id_ in gone_facts for name in ("predicate", "wording")}
    words = impact.forgotten.words
    names = (row["name"] for row in learned)
    unused = [name for name in names if name in used or not words.isdisjoint(split_name(name))]
    lost = chain.from_iterable(map(impact.find_lost_names, impact.entities))
    return {
        "gone_communities": [row["id"] for row in communities],
        "gone_predicates": unused,
        "gone_aliases": sorted(set(map(alias_key, lost))),
    }


def _select_unread(impact: Impact, gone_facts: Iterable[str]) -> Flow[list[str]]:
    """Return the ids of other messages to extract again, as they state a deleted fact or mention a deleted entity."""
    unread = {row["id"] for row in (yield from fetch(cypher.MENTIONING, ids=sorted(impact.gone_entities)))}
    for id_ in gone_facts:
        unread.update(row["id"] for row in impact.facts[id_]["statements"])
    return sorted(unread - impact.forgotten.ids)


def relink(episodes: Iterable[Row]) -> list[dict[str, str]]:
    """Return new links between the neighbours of deleted episodes: ``[{"before": "a", "after": "c"}]``."""
    after = {episode["id"]: episode["after"] for episode in episodes}

    def skip(ids: Iterable[str]) -> list[str]:
        return list(chain.from_iterable(skip(after[id_]) if id_ in after else [id_] for id_ in ids))

    links: list[dict[str, str]] = []
    for episode in episodes:
        for before in episode["before"]:
            if before not in after:
                links += [{"before": before, "after": id_} for id_ in skip(episode["after"])]
    return links
