"""Step 7, judge: which facts are known already, and what the others have to do with what is known (Zep 2.2.2, 2.2.3).

What is said again is found by code; all that is left is one question for the whole episode, about facts that share an
endpoint (C49, D32): first whether both say the same, and only then whether one ends or refutes the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_memory.falkor.queries import ingestion as cypher
from kg_memory.ingestion.records import IngestionState, NewFact, NewVerdict, Related
from kg_memory.ingestion.verdicts import Known, answered, pairs_of, told
from kg_memory.llm.prompts.answers import FactVerdict
from kg_memory.runtime.effects import embed, read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_END, OPEN_START, WIDTH
from kg_memory.temporal.policy import ConflictPolicy, Relation
from kg_memory.text.identity import verdict_id

FARTHEST = 0.5
"""Cosine distance beyond which a fact that shares an endpoint is no candidate; one of the same family is one at any."""


def judge(state: IngestionState, settings: Settings) -> Flow[dict[str, Any]]:
    """Mark what is said again, and note what ends or refutes what, at once or after review.

    It asks only about pairs that were not `judged` before: ahead of its turn, or before another writer came first. What
    was `related` then is not looked up again, if it was that of the same facts.
    """
    looked = state.get("related")
    if looked is None or looked["of"] != _asked_of(state["facts"]):
        looked = yield from related(state["facts"], settings)
    candidates = [dict(each) for each in looked["found"]]
    facts, pairs = compared(state, candidates)
    policy = ConflictPolicy.from_settings(settings)
    asked = {new: told(new, among, facts, state) for new, among in pairs.items()}
    judged = yield from answered(asked, state.get("judged") or {})
    found = [
        (new, known, FactVerdict.model_validate(verdict))
        for new, among in pairs.items()
        for known, pair in zip(among, pairs_of(asked[new]), strict=True)
        if (verdict := judged[pair])
        and verdict["verdict"] != "unrelated"  # as good as not listed
        and policy.is_noted(verdict["confidence"])
    ]
    found += list(_declared(facts, pairs, {(new, known["fact"]["id"]) for new, known, _ in found}, policy))
    marked = _marked(facts, found, policy)
    stored = {fact["id"]: fact["same_as"] for fact in marked if fact["same_as"]}
    facts = [
        {
            **fact,
            "same_as": stored.get(fact["same_as"] or "", fact["same_as"]),
            "retold": is_first(fact, candidates[new].get(fact["same_as"] or ""), state),
        }
        for new, fact in enumerate(marked)
    ]
    found = [
        (new, {**known, "fact": {**known["fact"], "id": stored.get(known["fact"]["id"], known["fact"]["id"])}}, each)
        for new, known, each in found
    ]
    verdicts = _verdicts(facts, found, state["namespace"], policy)
    rejudged = _rejudged(facts, pairs, verdicts, state["namespace"])
    return {
        "facts": facts, "verdicts": verdicts, "rejudged": rejudged, "judged": judged, "based_on": looked["revisions"],
        "histories": looked["histories"], "related": None,
    }  # fmt: skip


def compared(
    state: IngestionState, candidates: Sequence[dict[str, Known]]
) -> tuple[list[NewFact], dict[int, list[Known]]]:
    """Return the facts, those marked that are said again, and of which known ones, by its place, each is to be judged.

    What the episode itself says is added to the *candidates*.
    """
    for each in _siblings(state):
        candidates[each["new"]].setdefault(each["fact"]["id"], each)
    facts: list[NewFact] = [
        {**fact, "same_as": _again(fact, known), "corrects": False, "refuted": False, "retold": False}
        for fact, known in zip(state["facts"], candidates, strict=True)
    ]
    return facts, {new: pairs for new, fact in enumerate(facts) if (pairs := _open(fact, candidates[new], state))}


def identity(fact: Mapping[str, Any]) -> str:
    """Return the id under which the fact is stored: the known one's, when it says the same."""
    return str(fact["same_as"] or fact["id"])


Found = tuple[int, Known, FactVerdict]
"""The place of a new fact, a known one, and what the two have to do with each other."""


def _open(fact: NewFact, known: Mapping[str, Known], state: IngestionState) -> list[Known]:
    """Return those known facts about which the model is to be asked.

    Two facts are judged by the words in which each was said first; so they are judged again when these arrive late.
    """
    if fact["same_as"] is None:
        return list(known.values())
    again = known[fact["same_as"]]
    others = [each for id_, each in known.items() if id_ != fact["same_as"]] if is_first(fact, again, state) else []
    return [again, *others] if _redated(fact, again) else others


def is_first(fact: NewFact, known: Known | None, state: IngestionState) -> bool:
    """Tell whether the words of *fact* were said before those by which the known fact that it is again is told.

    Words that tell only an end ("no longer") come last, whenever they were said.
    """
    ours = (only_ends(fact), fact["said_at"], state["episode"]["id"])
    return known is not None and ours < (known["told_end"], known["told_at"], known["told_by"])


def _begin(fact: NewFact) -> int:
    return fact["said_at"] if fact["valid_at"] == OPEN_START else fact["valid_at"]


def _siblings(state: IngestionState) -> Iterable[Known]:
    """Yield what the episode itself says before of the same subject, where that has one at a time, as known facts."""
    facts = state["facts"]
    for new, fact in enumerate(facts):
        for other in facts[:new]:
            same = (other["subject_id"], other["predicate"]) == (fact["subject_id"], fact["predicate"])
            if same and fact["one_at_a_time"] and other["id"] != fact["id"]:
                yield {"new": new, **as_known(other, state)}


def as_known(fact: NewFact, state: IngestionState) -> Known:
    """Return a fact of an episode that is not saved yet as a known one."""
    entities = state["entities"]
    names = {"subject": entities[fact["subject"]]["name"], "sentence": fact["sentence"]}
    said = {name: fact[name] for name in ("id", "subject_id", "predicate")}
    times = {"valid_at": fact["valid_at"], "invalid_at": fact["invalid_at"]}
    return {
        "fact": {**names, **said}, "object_ids": fact["object_ids"],
        "objects": [entities[each]["name"] for each in fact["objects"]], "told_at": fact["said_at"],
        "told_by": state["episode"]["id"], "told_end": only_ends(fact), "beliefs": [times], **times,
    }  # fmt: skip


def only_ends(fact: NewFact) -> bool:
    """Tell whether all that *fact* tells is an end in the past."""
    return fact["valid_at"] == OPEN_START and fact["invalid_at"] <= fact["said_at"]


def _marked(facts: list[NewFact], found: Iterable[Found], policy: ConflictPolicy) -> list[NewFact]:
    """Return *facts* with what the verdicts say of each: a duplicate, a correction of itself, a passing state."""
    marked = list(facts)
    for new, known, each in sorted(found, key=lambda one: -one[2].confidence):
        fact, id_ = marked[new], known["fact"]["id"]
        if not policy.takes_effect(each.confidence):
            break  # a copy loses less than a wrong merge, and a state that goes on less than one that was cut
        if each.verdict == "duplicate" and fact["same_as"] is None:
            marked[new] = {**fact, "same_as": id_}
        elif each.verdict == "conflicts" and fact["same_as"] == id_:
            marked[new] = {**fact, "corrects": each.holds == "new", "refuted": each.holds == "known"}
        elif each.verdict == "temporary" and fact["invalid_at"] == OPEN_END:
            marked[new] = {**fact, "invalid_at": fact["window_end"]}
    return marked


def _verdicts(facts: list[NewFact], found: Iterable[Found], namespace: str, policy: ConflictPolicy) -> list[NewVerdict]:
    """Return which facts end or refute which, one a pair; what one episode says of one time contradicts not itself."""
    stated = {(identity(fact), _begin(fact)) for fact in facts}
    verdicts: dict[str, NewVerdict] = {}
    for new, known, each in sorted(found, key=lambda one: -one[2].confidence):
        ours, theirs = facts[new], known["fact"]["id"]
        kind = each.verdict
        if (
            (theirs, _begin(ours)) in stated
            or theirs == identity(ours)
            or not policy.may_contradict(kind, relation(ours), _known_relation(known))
        ):
            continue
        id_ = verdict_id(namespace, identity(ours), theirs)
        verdicts.setdefault(
            id_,
            {
                "id": id_, "new": identity(ours), "known": theirs, "kind": kind,
                "ruling": policy.rule(kind, each.confidence),
                "confidence": each.confidence, "holds": each.holds, "reason": each.reason,
            },
        )  # fmt: skip
    return list(verdicts.values())


def relation(fact: NewFact) -> Relation:
    """Return what *fact* relates, as the policy judges it."""
    ends = fact["subject_id"], fact["predicate"], frozenset(fact["object_ids"])
    return Relation(*ends, fact["one_at_a_time"], fact["declared"])


def _known_relation(known: Known) -> Relation:
    return Relation(known["fact"]["subject_id"], known["fact"]["predicate"], frozenset(known["object_ids"]))


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


def _declared(
    facts: list[NewFact], asked: Mapping[int, list[Known]], judged: set[tuple[int, str]], policy: ConflictPolicy
) -> Iterable[Found]:
    """Yield the pairs that cannot both hold as a person or the settings say so, where the model told nothing else."""
    for new, known in ((new, known) for new, found in asked.items() for known in found):
        fact, other = facts[new], known["fact"]
        if policy.excludes(relation(fact), _known_relation(known)) and (new, other["id"]) not in judged:
            reason = f"{fact['predicate']} is declared to hold for one at a time"
            told = {"fact": new, "known": 0, "verdict": "supersedes", "holds": "new", "reason": reason}
            yield new, known, FactVerdict.model_validate({**told, "confidence": 1.0})


def related(facts: Sequence[NewFact], settings: Settings) -> Flow[Related]:
    """Return, for each new fact, the known ones by their ids: of the same pair, of its family, or near in meaning.

    With them, the revisions of the entities that it is about: what changes later is seen when it is saved; and the
    histories of facts that are known in the same words.
    """
    found = [dict[str, Known]() for _ in facts]
    revisions = {id_: 0 for fact in facts for id_ in (fact["subject_id"], *fact["object_ids"])}
    asked = _asked_of(facts)
    if not facts:
        return Related(of=asked, found=found, revisions=revisions, histories=[])
    vectors = yield from embed([each["sentence"] for each in asked])
    rows = [{**each, "embedding": vector} for each, vector in zip(asked, vectors, strict=True)]
    ends = [(new, fact["subject_id"], each) for new, fact in enumerate(facts) for each in fact["object_ids"]]
    pairs = [
        {"new": new, "subject": one, "object": other}
        for new, subject, object_ in ends
        for one, other in ((subject, object_), (object_, subject))
    ]
    told_of = yield from read(
        cypher.RELATED_FACTS, ends=sorted(revisions), pairs=pairs, facts=rows, farthest=FARTHEST,
        limit=settings.candidates,
    )  # fmt: skip
    histories = []
    for row in told_of:
        match row["kind"]:
            case "revision":
                revisions[row["fact"]["id"]] = row["fact"]["revision"]
            case "history":
                histories.append(row["fact"])
            case _:
                found[row["new"]].setdefault(row["fact"]["id"], row)
    return Related(of=asked, found=found, revisions=revisions, histories=histories)


def _asked_of(facts: Sequence[NewFact]) -> list[dict[str, Any]]:
    """Return all by which what is `related` to *facts* is found; the sentence by its vector."""
    return [
        {
            "new": new,
            "id": fact["id"],
            "sentence": fact["sentence"],
            "subject": fact["subject_id"],
            "objects": fact["object_ids"],
            "predicate": fact["predicate"],
            "family": fact["family"],
            "one_at_a_time": fact["one_at_a_time"] is not False,
            "begin": _begin(fact),
        }
        for new, fact in enumerate(facts)
    ]


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
