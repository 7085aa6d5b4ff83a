"""``kg-memory review``: list and decide uncertain verdicts, at a terminal or by one command each."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kg_memory.cli import identities
from kg_memory.cli.command import namespace_of, open_to_change, open_to_look, review_command
from kg_memory.cli.keyboard import END, Keyboard
from kg_memory.cli.output import (
    SHORT,
    Screen,
    cell,
    count_waiting,
    first_quote,
    login,
    proposed_validity,
    said_by,
    since,
    source,
    until,
    validity,
    when,
)
from kg_memory.errors import InputError
from kg_memory.models.graph import ConflictStrategy, Fact, Review
from kg_memory.temporal.policy import ConflictPolicy

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

CHOICES = ("accept", "reject", "edit", "undo")
_SEARCHED = 10_000
"""Verdicts that are searched for a shortened id, at most."""
_EDITS = ("verdict", "valid_at", "invalid_at")


def review(arguments: Namespace, screen: Screen) -> int:
    """Decide the named verdict; else ask about each at a terminal, and list them elsewhere."""
    choice = next((name for name in CHOICES if getattr(arguments, name) is not None), None)
    _check(arguments, choice)
    decided = arguments.decided
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and not screen.as_json
    decides = choice is not None or (terminal and not (arguments.list or decided))
    opened = open_to_change(arguments, screen) if decides else open_to_look(arguments, screen)
    with opened as memory:
        if choice is not None:
            _decide(memory, arguments, choice, screen)
        elif decides:
            place, keys = (namespace_of(arguments), arguments.by or login()), Keyboard()
            session = ReviewSession(memory, *place, screen, keys)
            session.sit()
            if not session.quitted:
                identities.sit(memory, *place, screen, keys)
        else:
            (_list_decided if decided else _list)(memory, arguments, screen)
    return 0


def _check(arguments: Namespace, choice: str | None) -> None:
    """Refuse options that would have no effect.

    Errors: `InputError`.
    """
    edits = [f"--{name.replace('_', '-')}" for name in _EDITS if getattr(arguments, name) is not None]
    if edits and choice != "edit":
        raise InputError(f"{', '.join(edits)} can be given only with --edit ID")
    if choice == "edit" and not edits:
        raise InputError("nothing is edited: give --verdict, --valid-at or --invalid-at")
    if arguments.reason and choice is None:
        raise InputError("--reason goes with a decision: give --accept, --reject, --edit or --undo with an ID")


def _decide(memory: GraphMemory, arguments: Namespace, choice: str, screen: Screen) -> None:
    namespace = namespace_of(arguments)
    doubt = identities.find_doubt(memory, namespace, getattr(arguments, choice))
    if doubt is not None and choice in ("accept", "reject"):
        identities.decide_doubt(memory, doubt, arguments, screen)
        return
    id_ = _whole(memory, arguments, choice)
    why = {"by": arguments.by or login(), "reason": arguments.reason, "namespace": namespace}
    if choice == "undo":
        decided = memory.reviews.undo(id_, **why)
    else:
        edit = {name: getattr(arguments, name) for name in _EDITS}
        decided = memory.reviews.decide(id_, choice, **edit, **why)  # type: ignore[arg-type]
    if screen.as_json:
        screen.json(decided.model_dump(mode="json"))
        return
    for line in describe_outcome(decided):
        screen.line(line)
    if choice != "undo":
        screen.line(f"Undo it: {review_command(arguments)} --undo {decided.id}", "dim")


def _whole(memory: GraphMemory, arguments: Namespace, choice: str) -> str:
    """Return the id of the verdict that the id given with *choice* begins, which may be a whole one of any verdict.

    It is looked for among those that wait, and, to undo, among those that were decided. Errors: `InputError` when it
    is the begin of several, or can name none.
    """
    begin, namespace = getattr(arguments, choice), namespace_of(arguments)
    reviews = memory.reviews.list(namespace=namespace, limit=_SEARCHED)
    if choice == "undo":
        reviews += memory.reviews.list(decided=True, namespace=namespace, limit=_SEARCHED)
    ids = sorted({review_.id for review_ in reviews if begin and review_.id.startswith(begin)})
    if len(ids) == 1:
        return ids[0]
    what = "review that was decided" if choice == "undo" else "review that waits"
    if ids:
        raise InputError(f"{begin!r} begins more than one {what} ({len(ids)}): give more of the id")
    if len(begin) > SHORT:
        return str(begin)
    if choice == "undo":
        raise InputError(f"no {what} begins with {begin!r}: {review_command(arguments)} --decided shows them")
    raise InputError(
        f"no {what} begins with {begin!r}: {review_command(arguments)} --list shows them; name one that "
        "was decided by its whole id"
    )


def _list(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    reviews = memory.reviews.list(namespace=namespace_of(arguments), limit=arguments.limit)
    rows = [_row(review_) for review_ in reviews]
    columns = ("id", "verdict", "confidence", "waits", "against", "said", "source")
    styles = ("dim", "yellow", "", "bold", "bold", "", "dim")
    screen.values(reviews, columns, rows, styles, empty="Nothing waits for review.")
    if reviews and not screen.as_json:
        command = review_command(arguments)
        screen.note(
            f"{count_waiting(len(reviews), 'verdict')}: decide by {command} --accept ID, --reject ID or --edit ID"
        )
    identities.list_doubts(memory, arguments, screen)


def _row(review: Review) -> tuple[str | float, ...]:
    waiting, against = review.pending, review.existing
    return (
        review.id[:SHORT],
        review.kind,
        review.confidence,
        f"{waiting.sentence} ({proposed_validity(waiting)})",
        "" if review.kind == "admission" else f"{against.sentence} ({validity(against)})",
        first_quote(waiting),
        source(waiting),
    )


def _list_decided(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    reviews = memory.reviews.list(decided=True, namespace=namespace_of(arguments), limit=arguments.limit)
    columns = ("id", "verdict", "decided", "by", "at", "why", "said later", "said before")
    styles = ("dim", "yellow", "", "", "", "dim", "bold", "bold")
    screen.values(
        reviews, columns, [_decision_row(review_) for review_ in reviews], styles, empty="Nothing was decided yet."
    )
    if reviews and not screen.as_json:
        screen.note(f"Undo one by {review_command(arguments)} --undo ID")


def _decision_row(review: Review) -> tuple[str, ...]:
    last, waiting, against = review.decisions[-1], review.pending, review.existing
    return (
        review.id[:SHORT],
        review.kind,
        f"{DONE[last.decision]}: {DOES[review.ruling]}",
        last.by,
        when(last.at),
        last.reason,
        f"{waiting.sentence} ({validity(waiting)})",
        f"{against.sentence} ({validity(against)})",
    )


VERDICTS = ("supersedes", "conflicts", "complements", "temporary", "unrelated")
DONE = {"accept": "accepted", "reject": "rejected", "edit": "edited", "undo": "undone"}
DOES = {
    "supersedes": "one ended where the other began",
    "conflicts": "only one of them is believed",
    "both": "both hold",
    "refused": "what waited is not believed",
    "waiting": "it waits again",
}
_PROMPT = "[a]ccept  [r]eject  [e]dit  [s]kip  [u]ndo  [q]uit  [?] > "
_LAST_PROMPT = "Nothing else waits. [u]ndo the last decision, any other key ends > "
_HELP = """\
  a  accept: the verdict takes effect, the fact that waits is believed as far as the verdict says
  r  reject: the fact that waits is not believed, the other stays as it is
  e  edit: another verdict, or other dates of the fact that waits; then it takes effect
  s  skip: it goes on waiting
  u  undo the last decision of this sitting
  q  quit: what is decided is kept, the rest goes on waiting (Ctrl-C does the same)
A decision is kept with your name, the time and the reason, if you give one."""
_EDIT_HELP = """\
  verdict: supersedes (one ends the other), conflicts (only one is true), complements, temporary or unrelated
  (both hold). Dates: 2019, 2019-05, 2019-05-03 or words such as last March; so until may be
  open: it has not ended. Enter keeps what is in brackets."""
_SOURCES = 3


class ReviewSession:
    """Asks about the waiting verdicts one by one, and can undo the decisions of this session."""

    def __init__(self, memory: GraphMemory, namespace: str, by: str, screen: Screen, keys: Keyboard) -> None:
        self._memory = memory
        self._namespace = namespace
        self._by = by
        self._screen = screen
        self._keys = keys
        self._decided: list[tuple[str, str]] = []
        """The ids, and what was decided, the last one at the end."""
        self.quitted = False
        self._skipped: set[str] = set()

    def sit(self) -> None:
        """Show and ask until nothing waits or the person quits; each decision is kept at once."""
        first = self._next()
        if first is None:
            self._screen.line("Nothing waits for review.")
            return
        self._screen.line(f"You decide as {self._by}. ? explains the keys.", "dim")
        try:
            while self._turn():
                pass
        except KeyboardInterrupt:
            self._screen.line()
            raise
        finally:
            self._sum_up()

    def _turn(self) -> bool:
        """Ask about the next one; tell whether to go on."""
        review = self._next()
        if review is not None:
            self._show(review)
            return self._ask(review)
        if not self._decided or self._keys.key(_LAST_PROMPT) != "u":
            return False
        self._undo()
        return True

    def _next(self) -> Review | None:
        """Return the earliest that waits and was not skipped; others may decide meanwhile, so it is looked up anew."""
        reviews = self._memory.reviews.list(namespace=self._namespace, limit=len(self._skipped) + 1)
        return next((review for review in reviews if review.id not in self._skipped), None)

    def _ask(self, review: Review) -> bool:
        """Do what a key says about *review*, and tell whether to go on."""
        while True:
            key = self._keys.key(_PROMPT)
            if key in ("q", END):
                self.quitted = True
                return False
            if key == "s":
                self._skipped.add(review.id)
                return True
            if (key in ("a", "r") and self._decide(review, "accept" if key == "a" else "reject")) or (
                key == "e" and self._edit(review)
            ):
                return True
            if key == "u" and self._undo():
                return True
            if key in ("?", "h"):
                self._screen.line(_HELP)
            elif key not in "areu":
                self._screen.line("No such key: ? explains them.", "dim")

    def _edit(self, review: Review) -> bool:
        self._screen.line(_EDIT_HELP, "dim")
        fact = review.pending
        answers = [
            self._keys.line(f"  {name} [{current}]: ")
            for name, current in (
                ("verdict", review.kind),
                ("so since", since(fact)),
                ("so until", until(fact) or "still so"),
            )
        ]
        if None in answers or not any(answers):
            self._screen.line("Nothing is changed.")
            return False
        begun, valid_at, invalid_at = answers
        verdict = next((name_ for name_ in VERDICTS if begun and name_.startswith(begun.lower())), None)
        if begun and verdict is None:
            self._screen.line(f"{begun!r} is no verdict: use one of {', '.join(VERDICTS)}. Nothing is changed.", "red")
            return False
        edit = {"verdict": verdict, "valid_at": valid_at or None, "invalid_at": invalid_at or None}
        return self._decide(review, "edit", **edit)

    def _decide(self, review: Review, choice: Any, **edit: Any) -> bool:
        """Ask why, decide, and say what became of it; tell whether it was decided."""
        reason = self._keys.line("  why (Enter for none): ")
        if reason is None:
            self._screen.line("Nothing is decided about this one.")
            return False
        made: dict[str, Any] = {"by": self._by, "reason": reason, "namespace": self._namespace, "seen": review.ruling}
        try:
            decided = self._memory.reviews.decide(review.id, choice, **made, **edit)
        except InputError as error:
            self._screen.line(f"Not decided: {error}", "red")
            left = self._next()
            return left is None or left.id != review.id  # somebody else has decided about it
        self._decided.append((review.id, choice))
        self._tell(decided)
        return True

    def _undo(self) -> bool:
        """Undo the last decision of this sitting, and tell whether there was one."""
        if not self._decided:
            self._screen.line("Nothing was decided in this sitting. kg-memory review --undo ID undoes an earlier one.")
            return False
        id_, _ = self._decided.pop()
        try:
            self._tell(self._memory.reviews.undo(id_, by=self._by, namespace=self._namespace))
        except InputError as error:
            self._screen.line(f"Not undone: {error}", "red")
        return True

    def _tell(self, review: Review) -> None:
        for line in describe_outcome(review):
            self._screen.line(line, "green")

    def _show(self, review: Review) -> None:
        done = len(self._decided) + len(self._skipped)
        total = max(self._memory.stats(namespace=self._namespace).reviews + len(self._decided), done + 1)
        line = self._screen.line
        line()
        line(f"{done + 1} of {total}: {review.kind}? (confidence {review.confidence:.2f})", "bold magenta")
        sides = [("waits", review.pending, proposed_validity), ("against", review.existing, validity)]
        for label, fact, held in sides[:1] if review.kind == "admission" else sides:
            line(f"  {label:<9}{cell(fact.sentence)} ({held(fact)})", "bold")
            for source_ in fact.sources[:_SOURCES]:
                line(f'{"":11}{cell(said_by(source_))}: "{cell(source_.quote)}"')
        line(f"  {'because':<9}{cell(review.reason) or 'no reason was given'}")
        line(f"  {'accept':<9}{describe_acceptance(review, self._memory.settings.conflict_strategy)}", "green")
        line(f"  {'reject':<9}it is not believed, and all else stays as it is", "yellow")
        line(f"  {'id':<9}{review.id[:SHORT]}", "dim")

    def _sum_up(self) -> None:
        counts = Counter(DONE[choice] for _, choice in self._decided)
        summary = ", ".join(f"{number} {choice}" for choice, number in counts.items()) or "nothing decided"
        left = self._memory.stats(namespace=self._namespace).reviews
        wait = count_waiting(left, "fact").replace("wait", "still wait") if left else "nothing else waits"
        self._screen.line(f"{summary[0].upper()}{summary[1:]}; {wait}.", "bold")


_WINS: Mapping[ConflictStrategy, str] = {
    "model": "the model prefers it",
    "trust": "its source is trusted more",
    "incumbent": "its source is trusted more, or was first",
    "confidence": "it was stated with more confidence",
}
"""Why the other of two facts wins."""


def describe_acceptance(review: Review, strategy: ConflictStrategy) -> str:
    """Describe the effect of accepting *review*."""
    if review.kind == "admission":
        return "it is believed"
    if review.kind == "supersedes":
        if _start(review.pending) >= _start(review.existing):
            return f"it is believed, and the other ended where it began ({since(review.pending)})"
        return f"it is believed, and ended where the other began ({since(review.existing)})"
    winner = ConflictPolicy(strategy).expect_winner(review.pending, review.existing, review.preferred)
    if winner == review.pending.id:
        return "it is believed, and the other not any more"
    if winner == review.existing.id:
        return f"it is not believed, but the other: {_WINS[strategy]}"
    return f"only one of them is believed, by {strategy}"


def describe_outcome(review: Review) -> list[str]:
    """Describe the state of *review* and of its two facts, a line each."""
    last = review.decisions[-1].decision if review.decisions else None
    lines = [f"{DONE[last].capitalize()}: {DOES[review.ruling]}."] if last else []
    return [*lines, *(f"  {cell(fact.sentence)}: {_state(fact, review)}" for fact in (review.pending, review.existing))]


def _state(fact: Fact, review: Review) -> str:
    if fact.reviewed or fact.expired_at is not None:
        return validity(fact)
    waits = fact.id == review.existing.id or review.ruling != "waiting"
    return "waits for another verdict" if waits else "waits for review"


def _start(fact: Fact) -> float:
    start = fact.valid_at or fact.known_from
    return start.timestamp() if start else float("-inf")
