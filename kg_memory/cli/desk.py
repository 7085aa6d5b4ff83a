"""A sitting at the terminal: what waits for review is shown one by one, and decided by a key."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kg_memory.cli.keys import END, Keys
from kg_memory.cli.screen import Screen, cell, counted
from kg_memory.cli.wording import SHORT, proposed, since, standing, until
from kg_memory.errors import InputError
from kg_memory.models.graph import ConflictStrategy, Fact, Review
from kg_memory.temporal.policy import ConflictPolicy

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

VERDICTS = ("supersedes", "conflicts", "complements", "temporary", "unrelated")
DONE = {"accept": "accepted", "reject": "rejected", "edit": "edited", "undo": "undone"}
DOES = {
    "supersedes": "one ended where the other began", "conflicts": "only one of them is believed",
    "both": "both hold", "refused": "what waited is not believed", "waiting": "it waits again",
}  # fmt: skip
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


class Desk:
    """The queue of what waits, and what was decided about it in this sitting."""

    def __init__(self, memory: GraphMemory, namespace: str, by: str, screen: Screen, keys: Keys) -> None:
        self._memory = memory
        self._namespace = namespace
        self._by = by
        self._screen = screen
        self._keys = keys
        self._decided: list[tuple[str, str]] = []
        """The ids, and what was decided, the last one at the end."""
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
        found = self._memory.reviews.list(namespace=self._namespace, limit=len(self._skipped) + 1)
        return next((each for each in found if each.id not in self._skipped), None)

    def _ask(self, review: Review) -> bool:
        """Do what a key says about *review*, and tell whether to go on."""
        while True:
            key = self._keys.key(_PROMPT)
            if key in ("q", END):
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
            self._keys.line(f"  {name} [{known}]: ")
            for name, known in (
                ("verdict", review.kind),
                ("so since", since(fact)),
                ("so until", until(fact) or "still so"),
            )
        ]
        if None in answers or not any(answers):
            self._screen.line("Nothing is changed.")
            return False
        begun, valid_at, invalid_at = answers
        verdict = next((each for each in VERDICTS if begun and each.startswith(begun.lower())), None)
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
        for line in became(review):
            self._screen.line(line, "green")

    def _show(self, review: Review) -> None:
        done = len(self._decided) + len(self._skipped)
        total = max(self._memory.stats(namespace=self._namespace).reviews + len(self._decided), done + 1)
        line = self._screen.line
        line()
        line(f"{done + 1} of {total}: {review.kind}? (confidence {review.confidence:.2f})", "bold magenta")
        sides = ("waits", review.pending, proposed), ("against", review.existing, standing)
        for label, fact, held in sides:
            line(f"  {label:<9}{cell(fact.sentence)} ({held(fact)})", "bold")
            for each in fact.sources[:_SOURCES]:
                name = f" [{each.source_id}]" if each.source_id else ""
                who = cell(f"{each.speaker or 'text'}, {each.at:%Y-%m-%d}{name}")
                line(f'{"":11}{who}: "{cell(each.quote)}"')
        line(f"  {'because':<9}{cell(review.reason) or 'no reason was given'}")
        line(f"  {'accept':<9}{accepted(review, self._memory.settings.conflict_strategy)}", "green")
        line(f"  {'reject':<9}it is not believed, and the other stays as it is", "yellow")
        line(f"  {'id':<9}{review.id[:SHORT]}", "dim")

    def _sum_up(self) -> None:
        counts = Counter(DONE[choice] for _, choice in self._decided)
        told = ", ".join(f"{number} {choice}" for choice, number in counts.items()) or "nothing decided"
        left = self._memory.stats(namespace=self._namespace).reviews
        wait = f"{counted(left, 'fact')} still {'waits' if left == 1 else 'wait'}" if left else "nothing else waits"
        self._screen.line(f"{told[0].upper()}{told[1:]}; {wait}.", "bold")


def accepted(review: Review, strategy: ConflictStrategy) -> str:
    """Return what happens if *review* is accepted, in words."""
    if review.kind == "supersedes":
        if _start(review.pending) >= _start(review.existing):
            return f"it is believed, and the other ended where it began ({since(review.pending)})"
        return f"it is believed, and ended where the other began ({since(review.existing)})"
    winner = ConflictPolicy(strategy).expect_winner(review.pending.id, review.preferred)
    if winner == review.pending.id:
        return "it is believed, and the other not any more"
    if winner == review.existing.id:
        return "it is not believed: the model holds the other"
    return f"only one of them is believed, by {strategy}"


def became(review: Review) -> list[str]:
    """Return what became of *review* and of its facts, a line each."""
    last = review.decisions[-1].decision if review.decisions else None
    lines = [f"{DONE[last].capitalize()}: {DOES[review.ruling]}."] if last else []
    return [*lines, *(f"  {cell(fact.sentence)}: {_state(fact, review)}" for fact in (review.pending, review.existing))]


def _state(fact: Fact, review: Review) -> str:
    if fact.reviewed or fact.expired_at is not None:
        return standing(fact)
    other = fact.id == review.existing.id or review.ruling != "waiting"
    return "waits for another verdict" if other else "waits for review"


def _start(fact: Fact) -> float:
    known = fact.valid_at or fact.known_from
    return known.timestamp() if known else float("-inf")
