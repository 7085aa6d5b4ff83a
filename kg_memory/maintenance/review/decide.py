"""Verdicts that wait for a person, and what persons decided: listed, decided, undone (D20).

A decision changes no fact and no statement: it changes what the verdict does, and the beliefs that follow are closed
and recorded like any others. Each is kept, with who made it, when and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from kg_memory.errors import DatabaseUnavailable, InputError
from kg_memory.falkor import rows
from kg_memory.falkor.queries import facts as cypher
from kg_memory.ingestion.revise import Revision, read_history, revise_beliefs, revive, to_edit, to_verdict
from kg_memory.ingestion.save import LEFT
from kg_memory.ingestion.summarise import refresh
from kg_memory.models.graph import SOURCES, Fact, Review, Ruling, VerdictKind
from kg_memory.retrieval.time_window import Given, moment
from kg_memory.runtime.effects import now, read, write
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.beliefs import History
from kg_memory.temporal.interval import EPOCH, OPEN_END, instant
from kg_memory.temporal.policy import (
    COMPATIBLE,
    CONTRADICTIONS,
    ConflictPolicy,
    fact_in_question,
    facts_in_review,
    to_ruling,
)
from kg_memory.text.dates import parse_when
from kg_memory.text.identity import decision_id, replace_unstorable
from kg_memory.validation import validate_count

Choice = Literal["accept", "reject", "edit"]
WAITING: tuple[Ruling, ...] = ("waiting",)
LONGEST_REASON = 2000
ATTEMPTS = 50
"""How often it is tried to write while others write about the same entities."""
After = Callable[[Mapping[str, Any], History, int], dict[str, Any]]
"""What a verdict does after a decision, by what is stored of it, the history of its facts and the time."""
_DATES = ("edited_from", "edited_until", "edited_precision", "edited_end_precision")
_STATE = ("ruling", "refused", "edited", *_DATES)
OPEN = "open"
"""The end of what has not ended, for an edit that takes an end back."""
_AT_ONCE = (100, 500)
"""How many waiting verdicts are looked at together, at least and at most."""


def reviews(limit: int, skip: int = 0, *, decided: bool = False) -> Flow[list[Review]]:
    """Return the verdicts that a person can decide about now, earliest first.

    One between two facts that both wait is not among them: it is asked when the one said before waits no more. With
    *decided* it is those about which persons decided, by their latest decision, the last one first.
    """
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    found: Sequence[Mapping[str, Any]]
    if decided:
        found = yield from read(cypher.DECIDED_REVIEWS, rulings=list(get_args(Ruling)), **page)
    else:
        found = yield from _waiting(**page)
    told = yield from _told(found)
    return told


def conflicts(limit: int, skip: int = 0) -> Flow[list[Review]]:
    """Return the facts that cannot both be true, settled by the strategy or waiting, earliest first (D15)."""
    found = yield from _listed(("conflicts", *WAITING), ("conflicts",), limit, skip)
    return found


def decide(
    review: str,
    choice: Choice,
    *,
    by: str,
    reason: str,
    edit: Mapping[str, Any],
    policy: ConflictPolicy,
    namespace: str,
    seen: Ruling | None = None,
) -> Flow[Review]:
    """Decide about a verdict, and return it as it is then.

    To *accept* lets it take effect, to *reject* refuses the fact that waits, to *edit* gives another `verdict`, or
    other dates to the fact that waits (`valid_at`, and `invalid_at`, which may be `OPEN`), and accepts it. *seen* is
    what the verdict did when it was looked at. Errors: `InputError`, also when it does something else meanwhile.
    """
    _check(choice, by, reason, edit)
    if seen is not None and seen not in get_args(Ruling):
        raise InputError(f"seen is {seen!r}: give the ruling of the review, one of {', '.join(get_args(Ruling))}")

    def after(row: Mapping[str, Any], history: History, time: int) -> dict[str, Any]:
        told = row["verdict"]
        _check_seen(row, seen)
        waits = fact_in_question(history.verdicts[told["id"]], history.statements_by_fact())
        state = {name: told[name] for name in _STATE} | {"ruling": told["kind"], "refused": None}
        if choice == "reject":
            return state | {"ruling": "refused", "refused": waits}
        return state | (_edited(waits, edit, history, time, state) if choice == "edit" else {})

    found = yield from _decided(review, after, (choice, by, reason), policy, namespace)
    return found


def undo(review: str, *, by: str, reason: str, policy: ConflictPolicy, namespace: str) -> Flow[Review]:
    """Undo the last decision about a verdict that is not undone yet, and return it as it is then.

    Errors: `InputError` when there is none.
    """
    _check("accept", by, reason, {})

    def before(row: Mapping[str, Any], _history: History, _time: int) -> dict[str, Any]:
        standing: list[Mapping[str, Any]] = []
        for each in row["decisions"]:
            if each["decision"] == "undo":
                standing.pop()
            else:
                standing.append(each)
        if not standing:
            raise InputError(f"nothing was decided about {review!r}: there is nothing to undo")
        state: dict[str, Any] = json.loads(standing[-1]["before"])
        return state

    found = yield from _decided(review, before, ("undo", by, reason), policy, namespace)
    return found


def _listed(rulings: Sequence[Ruling], kinds: Sequence[VerdictKind], limit: int, skip: int) -> Flow[list[Review]]:
    page = {"limit": validate_count("limit", limit), "skip": validate_count("skip", skip, 0)}
    found = yield from read(cypher.REVIEWS, rulings=list(rulings), kinds=list(kinds), **page)
    told = yield from _told(found)
    return told


def _waiting(limit: int, skip: int) -> Flow[list[Mapping[str, Any]]]:
    """Return the verdicts whose fact that waits does so for one that does not wait itself."""
    size = min(max(skip + limit, _AT_ONCE[0]), _AT_ONCE[1])
    found: list[Mapping[str, Any]] = []
    read_so_far = 0
    while len(found) < skip + limit:
        kept = {"rulings": list(WAITING), "kinds": list(CONTRADICTIONS)}
        page = yield from read(cypher.REVIEWS, **kept, limit=size, skip=read_so_far)
        if page:
            history = yield from read_history({id_ for row in page for id_ in _sides(row)})
            found += _asked(page, history)
        if len(page) < size:
            break
        read_so_far += size
    return found[skip : skip + limit]


def _asked(page: Sequence[Mapping[str, Any]], history: History) -> list[Mapping[str, Any]]:
    """Return the verdicts of *page* of which the later fact waits, and the other does not and was not refused."""
    said, verdicts = history.statements_by_fact(), history.verdicts.values()
    waits = facts_in_review(verdicts, said)
    aside = waits | {each.refused for each in verdicts}
    later = [fact_in_question(to_verdict(row["verdict"]), said) for row in page]
    return [row for row, fact in zip(page, later, strict=True) if fact in waits and aside & {*_sides(row)} == {fact}]


def _told(found: Sequence[Mapping[str, Any]]) -> Flow[list[Review]]:
    """Return the verdicts of *found* with their facts."""
    if not found:
        return []
    ids = sorted({id_ for row in found for id_ in _sides(row)})
    history = yield from read_history(ids)
    facts: dict[str, Fact] = {}
    for row in (yield from read(cypher.TELL_FACTS, ids=ids, past=True, sources=SOURCES)):
        told = row if row["belief"] else {**row, "belief": _never_believed(row["fact"]["id"], history, found)}
        fact = rows.to_fact(told)  # in the order in which they were believed: the last one counts
        known = facts.get(fact.id)
        if known is None or known.expired_at is not None or fact.expired_at is None:
            facts[fact.id] = fact
    return [
        _review(row, facts, fact_in_question(to_verdict(row["verdict"]), history.statements_by_fact())) for row in found
    ]


def _never_believed(fact: str, history: History, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the times of a fact that lost a conflict as soon as it was said: those of its last statement."""
    last = max(history.statements[fact].values(), key=lambda each: each.order)
    judged = min(row["verdict"]["created_at"] for row in found if fact in _sides(row))
    return {
        "valid_at": last.valid_at, "invalid_at": last.invalid_at, "precision": last.precision,
        "end_precision": last.end_precision, "known_from": last.begin, "created_at": judged,
        "expired_at": judged, "reviewed": False, "trust": last.trust,
    }  # fmt: skip


def _review(row: Mapping[str, Any], facts: Mapping[str, Fact], waiting: str) -> Review:
    told = row["verdict"]
    sides = {"new": told["new"], "known": told["known"]}
    [against] = (id_ for id_ in sides.values() if id_ != waiting)
    decisions = tuple(rows.to_decision(each) for each in row["decisions"])
    return Review(
        id=told["id"], kind=told["kind"], ruling=told["ruling"], confidence=told["confidence"], reason=told["reason"],
        waiting=facts[waiting], against=facts[against], holds=sides.get(told["holds"] or ""),
        created_at=rows.to_datetime(told["created_at"]), decisions=decisions,
        decided_by=decisions[-1].by if decisions else "auto", decided_at=decisions[-1].at if decisions else None,
    )  # fmt: skip


def _stored(review: object) -> Flow[dict[str, Any]]:
    found = (
        (yield from read(cypher.VERDICT, id=replace_unstorable(review))) if isinstance(review, str) and review else []
    )
    if not found:
        raise InputError(f"there is no review {review!r} in this namespace: memory.reviews() lists those that wait")
    return found[0]


def _decided(
    review: str, after: After, made: tuple[str, str, str], policy: ConflictPolicy, namespace: str
) -> Flow[Review]:
    """Write down a decision and all that follows from it, and return the verdict anew.

    It is computed again where facts about the same entities were changed meanwhile.
    """
    row = yield from _stored(review)
    for _ in range(ATTEMPTS):
        based_on = yield from read(cypher.REVISIONS_OF_FACTS, ids=list(_sides(row)))
        history, time = (yield from read_history(_sides(row))), (yield from now())
        written = yield from _write(
            row, history, after(row, history, time), (*made, time), (policy, namespace), based_on
        )
        if written is not None:
            yield from revive(written.revived)
            yield from refresh(since=time, before=time - LEFT)
            found = yield from _told([(yield from _stored(review))])
            return found[0]
        again = yield from _stored(review)
        if again != row:
            raise InputError(f"{review!r} was decided by somebody else meanwhile: look at it again")
    raise DatabaseUnavailable(f"others changed the same facts {ATTEMPTS} times while this was decided: try again later")


def _write(
    row: Mapping[str, Any], history: History, after: Mapping[str, Any], made: tuple[str, str, str, int],
    how: tuple[ConflictPolicy, str], based_on: Sequence[Mapping[str, Any]],
) -> Flow[Revision | None]:  # fmt: skip
    """Write it if nothing was changed since *history* was read, and return what it changed."""
    told, (decision, by, reason, time), (policy, namespace) = row["verdict"], made, how
    id_ = decision_id(namespace, told["id"], time)
    history.set_verdict(told["id"], to_verdict({**told, **after}), to_edit(after))
    revision = revise_beliefs(history, policy, namespace, id_)
    before = json.dumps({name: told[name] for name in _STATE})
    kept = {
        "id": id_,
        "decision": decision,
        "by": replace_unstorable(by),
        "at": time,
        "reason": replace_unstorable(reason),
        "before": before,
    }
    written = yield from write(
        cypher.DECIDE, verdict=told["id"], expected=told["ruling"], now=time, **after,
        decision={**kept, "ruling": after["ruling"]}, based_on=list(based_on),
        **revision.to_parameters(),
    )  # fmt: skip
    return revision if written else None


def _check(choice: object, by: object, reason: object, edit: Mapping[str, Any]) -> None:
    if choice not in get_args(Choice):
        raise InputError(f"the decision is {choice!r}: use one of {', '.join(get_args(Choice))}")
    if not isinstance(by, str) or not by.strip():
        raise InputError(f"by is {by!r}: say who decides")
    if len(by) > LONGEST_REASON:
        raise InputError(f"by has {len(by)} characters: use at most {LONGEST_REASON}")
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise InputError(f"the reason is no text of at most {LONGEST_REASON} characters: make it shorter")
    given = {name for name, value in edit.items() if value is not None}
    if choice == "edit" and not given:
        raise InputError("nothing is edited: give a verdict, valid_at or invalid_at")
    if choice != "edit" and given:
        raise InputError(f"{', '.join(sorted(given))} can be given only to edit")


def _check_seen(row: Mapping[str, Any], seen: Ruling | None) -> None:
    told, decisions = row["verdict"], row["decisions"]
    if seen in (None, told["ruling"]):
        return
    what = f"was decided by {decisions[-1]['by']}" if decisions else "was judged anew"
    raise InputError(f"{told['id']!r} {what} meanwhile ({told['ruling']}, not {seen}): look at it again")


def _edited(
    fact: str, edit: Mapping[str, Any], history: History, time: int, state: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the verdict does after *edit* of *state*: another ruling, or other dates of *fact*."""
    kind = state["ruling"] if edit.get("verdict") is None else edit["verdict"]
    if kind not in CONTRADICTIONS + COMPATIBLE:
        raise InputError(f"the verdict is {kind!r}: use one of {', '.join(CONTRADICTIONS + COMPATIBLE)}")
    after: dict[str, Any] = {"ruling": to_ruling(kind)}
    given = dates(edit, time)
    if not given:
        return after
    kept = {name: state[name] if state["edited"] == fact else None for name in _DATES}
    edited = kept | given
    last = max(history.statements[fact].values(), key=lambda each: each.order)
    since = last.valid_at if edited["edited_from"] is None else edited["edited_from"]
    until = last.invalid_at if edited["edited_until"] is None else edited["edited_until"]
    if since >= until:
        raise InputError("invalid_at is not after valid_at: give a later end")
    return after | edited | {"edited": fact}


def dates(edit: Mapping[str, Any], time: int) -> dict[str, Any]:
    """Return the dates that *edit* gives and how exact each is, as they are stored; *time* is now.

    Errors: `InputError` for anything that is no time.
    """
    found: dict[str, Any] = {}
    for name, at, precision in (
        ("valid_at", "edited_from", "edited_precision"),
        ("invalid_at", "edited_until", "edited_end_precision"),
    ):
        given: Given = edit.get(name)
        if name == "invalid_at" and isinstance(given, str) and given.strip().lower() == OPEN:
            found |= {at: OPEN_END, precision: "instant"}
        elif given is not None:
            # What is no time is an error of `moment`.
            found |= {at: moment(name, given, time), precision: parse_when(given, instant(time) or EPOCH).precision}
    return found


def _sides(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["verdict"]["new"], row["verdict"]["known"]
