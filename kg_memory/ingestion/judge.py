"""Step 7, judge: which facts are known already, and what the others have to do with what is known (Zep 2.2.2, 2.2.3).

What is said again is found by code; all that is left is one question for the whole episode, about facts that share an
endpoint (C49, D32): first whether both say the same, and only then whether one ends or refutes the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from kg_memory import vocabulary
from kg_memory.effects import embed, read
from kg_memory.falkor import cypher
from kg_memory.flow import Flow
from kg_memory.identity import verdict_id
from kg_memory.ingestion.batches import ask_in_batches
from kg_memory.ingestion.state import IngestionState, NewFact, NewVerdict
from kg_memory.prompts import JUDGE
from kg_memory.prompts.answers import FactVerdict
from kg_memory.settings import Settings
from kg_memory.temporal import OPEN_END, OPEN_START, WIDTH, instant

FARTHEST = 0.5
"""Cosine distance beyond which a fact that shares an endpoint is no candidate; one of the same family is one at any."""

Known = dict[str, Any]
"""A known fact, as `cypher` tells it."""


def judge(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Mark what is said again, and note what ends or refutes what, at once or after review.

    Done again, as another writer came first, it asks only about what that writer added.
    """
    ends = sorted({id_ for fact in state["facts"] for id_ in (fact["subject_id"], *fact["object_ids"])})
    based_on = dict.fromkeys(ends, 0)
    if ends:  # before the candidates are read: what changes after this is seen when it is saved
        rows = yield from read(cypher.REVISIONS, ids=ends)
        based_on |= {row["id"]: row["revision"] for row in rows}
    candidates = yield from _candidates(state, settings)
    for each in _siblings(state):
        candidates[each["new"]].setdefault(each["fact"]["id"], each)
    facts: list[NewFact] = [
        {**fact, "same_as": _again(fact, known), "corrects": False, "refuted": False, "retold": False}
        for fact, known in zip(state["facts"], candidates, strict=True)
    ]
    pairs = {new: pairs for new, fact in enumerate(facts) if (pairs := _open(fact, candidates[new], state))}
    judged = yield from _judged(state, pairs)
    found = [
        (new, known, FactVerdict.model_validate(told))
        for new, among in pairs.items()
        for known in among
        if (told := judged[_pair(new, known)])
        and told["verdict"] != "unrelated"  # as good as not listed
        and told["confidence"] >= settings.review_threshold
    ]
    found += list(_declared(facts, pairs, {(new, known["fact"]["id"]) for new, known, _ in found}))
    marked = _marked(facts, found, settings)
    stored = {fact["id"]: fact["same_as"] for fact in marked if fact["same_as"]}
    facts = [
        {
            **fact,
            "same_as": stored.get(fact["same_as"] or "", fact["same_as"]),
            "retold": _is_first(fact, candidates[new].get(fact["same_as"] or ""), state),
        }
        for new, fact in enumerate(marked)
    ]
    found = [
        (new, {**known, "fact": {**known["fact"], "id": stored.get(known["fact"]["id"], known["fact"]["id"])}}, each)
        for new, known, each in found
    ]
    verdicts = _verdicts(facts, found, state["namespace"], settings)
    rejudged = _rejudged(facts, pairs, verdicts, state["namespace"])
    return {"facts": facts, "verdicts": verdicts, "rejudged": rejudged, "judged": judged, "based_on": based_on}


def identity(fact: Mapping[str, Any]) -> str:
    """Return the id under which the fact is stored: the known one's, when it says the same."""
    return str(fact["same_as"] or fact["id"])


Found = tuple[int, Known, FactVerdict]
"""The place of a new fact, a known one, and what the two have to do with each other."""


def _judged(state: IngestionState, pairs: Mapping[int, list[Known]]) -> Flow[dict[str, Any]]:
    """Return what the model says of each pair, empty for those that have nothing to do with each other."""
    judged = dict(state.get("judged") or {})
    asked = {
        new: unseen
        for new, among in pairs.items()
        if (unseen := [known for known in among if _pair(new, known) not in judged])
    }
    answers = yield from ask_in_batches(JUDGE, "facts", [_told(new, among, state) for new, among in asked.items()])
    judged |= {_pair(new, known): {} for new, among in asked.items() for known in among}
    for each in chain.from_iterable(answer.verdicts for answer in answers):
        if 0 <= each.known < len(asked.get(each.fact, ())):
            judged[_pair(each.fact, asked[each.fact][each.known])] = each.model_dump()
    return judged


def _pair(new: int, known: Known) -> str:
    return f"{new} {known['fact']['id']}"


def _open(fact: NewFact, known: Mapping[str, Known], state: IngestionState) -> list[Known]:
    """Return those known facts about which the model is to be asked.

    Two facts are judged by the words in which each was said first; so they are judged again when these arrive late.
    """
    if fact["same_as"] is None:
        return list(known.values())
    again = known[fact["same_as"]]
    others = [each for id_, each in known.items() if id_ != fact["same_as"]] if _is_first(fact, again, state) else []
    return [again, *others] if _redated(fact, again) else others


def _is_first(fact: NewFact, known: Known | None, state: IngestionState) -> bool:
    """Tell whether the words of *fact* were said before those by which the known fact that it is again is told.

    Words that tell only an end ("no longer") come last, whenever they were said.
    """
    ours = (only_ends(fact), fact["said_at"], state["episode"]["id"])
    return known is not None and ours < (known["told_end"], known["told_at"], known["told_by"])


def _begin(fact: NewFact) -> int:
    return fact["said_at"] if fact["valid_at"] == OPEN_START else fact["valid_at"]


def _siblings(state: IngestionState) -> Iterable[Known]:
    """Yield what the episode itself says before of the same subject, where that has one at a time, as known facts."""
    facts, entities = state["facts"], state["entities"]
    for new, fact in enumerate(facts):
        for other in facts[:new]:
            same = (other["subject_id"], other["predicate"]) == (fact["subject_id"], fact["predicate"])
            if same and fact["one_at_a_time"] and other["id"] != fact["id"]:
                names = {"subject": entities[other["subject"]]["name"], "sentence": other["sentence"]}
                told = {name: other[name] for name in ("id", "subject_id", "predicate")}
                times = {"valid_at": other["valid_at"], "invalid_at": other["invalid_at"]}
                yield {
                    "new": new, "fact": {**names, **told}, "object_ids": other["object_ids"],
                    "objects": [entities[each]["name"] for each in other["objects"]], "told_at": other["said_at"],
                    "told_by": state["episode"]["id"], "told_end": only_ends(other), "beliefs": [times], **times,
                }  # fmt: skip


def only_ends(fact: NewFact) -> bool:
    """Tell whether all that *fact* tells is an end in the past."""
    return fact["valid_at"] == OPEN_START and fact["invalid_at"] <= fact["said_at"]


def _marked(facts: list[NewFact], found: Iterable[Found], settings: Settings) -> list[NewFact]:
    """Return *facts* with what the verdicts say of each: a duplicate, a correction of itself, a passing state."""
    marked = list(facts)
    for new, known, each in sorted(found, key=lambda one: -one[2].confidence):
        fact, id_ = marked[new], known["fact"]["id"]
        if each.confidence < settings.auto_threshold:
            break  # a copy loses less than a wrong merge, and a state that goes on less than one that was cut
        if each.verdict == "duplicate" and fact["same_as"] is None:
            marked[new] = {**fact, "same_as": id_}
        elif each.verdict == "conflicts" and fact["same_as"] == id_:
            marked[new] = {**fact, "corrects": each.holds == "new", "refuted": each.holds == "known"}
        elif each.verdict == "temporary" and fact["invalid_at"] == OPEN_END:
            marked[new] = {**fact, "invalid_at": fact["window_end"]}
    return marked


def _verdicts(facts: list[NewFact], found: Iterable[Found], namespace: str, settings: Settings) -> list[NewVerdict]:
    """Return which facts end or refute which, one a pair; what one episode says of one time contradicts not itself."""
    stated = {(identity(fact), _begin(fact)) for fact in facts}
    verdicts: dict[str, NewVerdict] = {}
    for new, known, each in sorted(found, key=lambda one: -one[2].confidence):
        ours, theirs = facts[new], known["fact"]["id"]
        plural = ours["declared"] and ours["one_at_a_time"] is False and known["fact"]["predicate"] == ours["predicate"]
        kind = each.verdict
        if (
            (theirs, _begin(ours)) in stated
            or theirs == identity(ours)
            or kind not in ("supersedes", "conflicts")
            or (kind == "supersedes" and plural)
        ):
            continue
        id_ = verdict_id(namespace, identity(ours), theirs)
        verdicts.setdefault(
            id_,
            {
                "id": id_, "new": identity(ours), "known": theirs, "kind": kind,
                "ruling": kind if each.confidence >= settings.auto_threshold else "waiting",
                "confidence": each.confidence, "holds": each.holds, "reason": each.reason,
            },
        )  # fmt: skip
    return list(verdicts.values())


def _rejudged(
    facts: list[NewFact], pairs: Mapping[int, list[Known]], verdicts: Iterable[NewVerdict], namespace: str
) -> list[NewVerdict]:
    """Return the verdicts that take the place of those that were found by words said later."""
    found = {each["id"]: each for each in verdicts}
    rejudged: list[NewVerdict] = []
    for new, known in ((new, known) for new, among in pairs.items() for known in among):
        ours, theirs = identity(facts[new]), known["fact"]["id"]
        if facts[new]["retold"] and ours != theirs:
            id_ = verdict_id(namespace, ours, theirs)
            nothing: NewVerdict = {
                "id": id_, "new": ours, "known": theirs, "kind": "unrelated", "ruling": "both", "confidence": 1.0,
                "holds": "new", "reason": "so by the words in which it was said first",
            }  # fmt: skip
            rejudged.append(found.get(id_, nothing))
    return rejudged


def _declared(facts: list[NewFact], asked: Mapping[int, list[Known]], judged: set[tuple[int, str]]) -> Iterable[Found]:
    """Yield the pairs that cannot both hold as a person or the settings say so, where the model told nothing else."""
    for new, known in ((new, known) for new, found in asked.items() for known in found):
        fact, other = facts[new], known["fact"]
        same = (fact["subject_id"], fact["predicate"]) == (other["subject_id"], other["predicate"])
        one = fact["declared"] and fact["one_at_a_time"] and set(fact["object_ids"]).isdisjoint(known["object_ids"])
        if same and one and (new, other["id"]) not in judged:
            reason = f"{fact['predicate']} is declared to hold for one at a time"
            told = {"fact": new, "known": 0, "verdict": "supersedes", "holds": "new", "reason": reason}
            yield new, known, FactVerdict.model_validate({**told, "confidence": 1.0})


def _candidates(state: IngestionState, settings: Settings) -> Flow[list[dict[str, Known]]]:
    """Return, for each new fact, the known ones by their ids: of the same pair, of its family, or near in meaning."""
    facts, found = state["facts"], [dict[str, Known]() for _ in state["facts"]]
    if not facts:
        return found
    vectors = yield from embed([fact["sentence"] for fact in facts])
    rows = [
        {
            "new": new,
            "subject": facts[new]["subject_id"],
            "objects": facts[new]["object_ids"],
            "predicate": facts[new]["predicate"],
            "family": facts[new]["family"],
            "one_at_a_time": facts[new]["one_at_a_time"] is not False,
            "begin": _begin(facts[new]),
            "embedding": vector,
        }
        for new, vector in enumerate(vectors)
    ]
    ends = [(new, fact["subject_id"], each) for new, fact in enumerate(facts) for each in fact["object_ids"]]
    pairs = [
        {"new": new, "subject": one, "object": other}
        for new, subject, object_ in ends
        for one, other in ((subject, object_), (object_, subject))
    ]
    related = yield from read(
        cypher.RELATED_FACTS, pairs=pairs, facts=rows, farthest=FARTHEST, limit=settings.candidates
    )
    for row in related:
        found[row["new"]].setdefault(row["fact"]["id"], row)
    return found


def _again(fact: NewFact, found: Mapping[str, Known]) -> str | None:
    """Return the known fact that is *fact* beyond doubt: in the same words, or of the same pair and one at a time."""
    if fact["id"] in found:
        return fact["id"]
    if not fact["one_at_a_time"]:
        return None
    same = [
        id_
        for id_, known in found.items()
        if known["fact"]["predicate"] == fact["predicate"]
        and known["fact"]["subject_id"] == fact["subject_id"]
        and set(known["object_ids"]) == set(fact["object_ids"])
    ]
    return min(same, default=None)


def _redated(fact: NewFact, known: Known) -> bool:
    """Tell whether *fact* gives a start, or an end, that is none of those that are known: it may correct them."""
    starts = [each["valid_at"] for each in known["beliefs"] if each["valid_at"] != OPEN_START]
    ends = [each["invalid_at"] for each in known["beliefs"] if each["invalid_at"] != OPEN_END]
    width = WIDTH[fact["precision"]]
    claims = fact["said_from"] is not None and fact["valid_at"] not in (OPEN_START, fact["said_at"])
    restarts = claims and bool(starts) and all(abs(start - fact["valid_at"]) > width for start in starts)
    return restarts or (fact["invalid_at"] != OPEN_END and bool(ends) and fact["invalid_at"] not in ends)


def _told(new: int, found: list[Known], state: IngestionState) -> dict[str, Any]:
    """Return a new fact and the known ones as the prompt is told them, each under its place in the list as its id."""
    fact, entities, episode = state["facts"][new], state["entities"], state["episode"]
    # An entity that got a fuller name is told under that name on both sides.
    names = {each["id"]: each["name"] for each in entities}
    return {
        "id": new,
        "subject": entities[fact["subject"]]["name"],
        "predicate": fact["predicate"],
        "objects": [entities[each]["name"] for each in fact["objects"]],
        "sentence": fact["sentence"],
        "quote": episode["content"][fact["start"] : fact["end"]],
        "said_at": _iso(episode["at"]),
        "valid_at": _iso(fact["valid_at"]),
        "invalid_at": _iso(fact["invalid_at"]),
        "one_at_a_time": bool(fact["one_at_a_time"]),
        "existing": [_known(row, place, names, fact) for place, row in enumerate(found)],
    }


def _known(row: Known, place: int, names: Mapping[str, str], new: NewFact) -> dict[str, Any]:
    fact = row["fact"]
    rule = vocabulary.canonical(fact["predicate"])
    one_at_a_time = new["one_at_a_time"] if fact["predicate"] == new["predicate"] else rule and rule.one_at_a_time
    return {
        "id": place,
        "subject": names.get(fact["subject_id"], fact["subject"]),
        "predicate": fact["predicate"],
        "objects": [names.get(id_, name) for id_, name in zip(row["object_ids"], row["objects"], strict=True)],
        "sentence": fact["sentence"],
        "said_at": _iso(row["told_at"]),
        "valid_at": _iso(row["valid_at"]),
        "invalid_at": _iso(row["invalid_at"]),
        "one_at_a_time": bool(one_at_a_time),
    }


def _iso(micros: int | None) -> str | None:
    moment = instant(micros)
    return moment.isoformat() if moment else None
