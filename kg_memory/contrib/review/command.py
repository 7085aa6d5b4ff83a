"""``kg-memory review``: let a person decide uncertain facts and possible duplicates, by id or one after another."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kg_memory.cli.command import namespace_of, open_to_change, open_to_look, review_command, verb_arguments, whole_id
from kg_memory.cli.output import Screen, ask_line, cell, count_noun, count_waiting, is_terminal, login
from kg_memory.cli.show import show_list
from kg_memory.cli.views import proposed_validity, said_by, since, until, validity
from kg_memory.contrib.review.decide import show_decision, show_identities
from kg_memory.errors import InputError, NotFound
from kg_memory.maintenance.review.decide import Choice
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import OUTCOMES, ConflictStrategy, Fact, IdentityDecision, Review
from kg_memory.temporal.policy import ConflictPolicy

_CHOICES = ("accept", "reject", "edit", "undo")
"""The options that decide a review."""
_SOURCES = 3
"""The most sources that are shown for each fact."""
_LETTERS: Mapping[str, Choice] = {"a": "accept", "r": "reject", "e": "edit"}
_EDITS = ("verdict", "valid_at", "invalid_at")
Waiting = Review | IdentityDecision
_WINS: Mapping[ConflictStrategy, str] = {
    "model": "the model prefers it",
    "trust": "its source is trusted more",
    "incumbent": "its source is trusted more, or was first",
    "confidence": "it was stated with more confidence",
}
"""Why one of two contradicting facts wins, by `Settings.conflict_strategy`."""
_EDIT_HELP = """\
  verdict: supersedes (one ends the other), conflicts (only one is true), complements, temporary or unrelated (both
  hold). Dates: 2019, 2019-05, 2019-05-03 or words such as last March; the end may be open. Enter keeps the value."""


def review(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory review``: let a person decide uncertain facts and possible duplicates."""
    choice = next((name for name in _CHOICES if getattr(arguments, name) is not None), None)
    _check_options(arguments, choice)
    if choice is not None:
        with open_to_change(arguments, screen) as memory:
            _decide(memory, arguments, choice, screen)
    elif arguments.list or arguments.decided or screen.as_json or not is_terminal():
        with open_to_look(arguments, screen) as memory:
            _print_reviews(memory, arguments, screen)
    else:
        with open_to_change(arguments, screen) as memory:
            _ask_about_all(memory, arguments, screen)
    return 0


def _check_options(arguments: Namespace, choice: str | None) -> None:
    edits = [f"--{name.replace('_', '-')}" for name in _EDITS if getattr(arguments, name) is not None]
    if edits and choice != "edit":
        raise InputError(f"{', '.join(edits)} can be given only with --edit ID: add it")
    if choice == "edit" and not edits:
        raise InputError("--edit changes nothing: add --verdict, --valid-at or --invalid-at")
    if arguments.reason and choice is None:
        raise InputError("--reason needs a decision: add --accept, --reject, --edit or --undo with an ID")


def _decide(memory: GraphMemory, arguments: Namespace, choice: str, screen: Screen) -> None:
    begin, given = getattr(arguments, choice), verb_arguments(memory, arguments)
    if choice in ("accept", "reject"):
        doubt = whole_id(memory, arguments, "Identity", begin, shortest=1)
        with suppress(NotFound):  # it is the id of a review
            show_identities([memory.reviews.decide_identity(doubt, choice, **given)], arguments, screen)  # type: ignore[arg-type]
            return
    verdict = whole_id(memory, arguments, "Verdict", begin, shortest=1)
    verb: Callable[..., Review] = memory.reviews.undo if choice == "undo" else memory.reviews.decide
    decided = verb(verdict, **({} if choice == "undo" else {"choice": choice}), **given)
    show_decision(decided, arguments, screen, undo=choice != "undo")


def _print_reviews(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    """Print the reviews of facts, waiting or decided, and the questions whether two entities are the same."""
    place, command = {"namespace": namespace_of(arguments), "limit": arguments.limit}, review_command(arguments)
    reviews = memory.reviews.list(decided=arguments.decided, **place)
    empty = "Nothing was decided yet." if arguments.decided else "Nothing waits for review."
    show_list(memory, reviews, arguments, screen, empty)
    if screen.as_json:
        return
    if reviews and arguments.decided:
        screen.note(f"Undo one by {command} --undo ID")
    elif reviews:
        waiting = count_waiting(len(reviews), "verdict")
        screen.note(f"{waiting}: decide by {command} --accept ID, --reject ID or --edit ID")
    doubts = [] if arguments.decided else memory.reviews.identities(**place)
    if doubts:
        screen.values(doubts)
        count = count_noun(len(doubts), "doubt")
        screen.note(f"{count} about identities: --accept ID merges the two entities, --reject ID keeps them apart")


# Ask a person


def _ask_about_all(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    """Ask the person about each open review until they quit; each decision is stored before the next question."""
    given = {"by": arguments.by or login(), "namespace": namespace_of(arguments)}
    seen: set[str] = set()
    decided = 0
    try:
        while (each := _next_waiting(memory, given["namespace"], seen)) is not None:
            if not seen:
                screen.line(f"You decide as {given['by']}.", "dim")
            seen.add(each.id)
            is_decided = _ask_about(memory, each, given, arguments, screen)
            if is_decided is None:
                break
            decided += is_decided
    finally:
        if seen:
            left = memory.stats(namespace=given["namespace"]).reviews
            waiting = count_waiting(left, "fact").replace("wait", "still wait") if left else "nothing else waits"
            screen.line(f"{decided} decided; {waiting}.", "bold")
    if not seen:
        screen.line("Nothing waits for review.")


def _next_waiting(memory: GraphMemory, namespace: str, seen: set[str]) -> Waiting | None:
    place: dict[str, Any] = {"namespace": namespace, "limit": len(seen) + 1}
    # Read again each time: a decision can add new reviews.
    waiting: list[Waiting] = [*memory.reviews.list(**place), *memory.reviews.identities(**place)]
    return next((each for each in waiting if each.id not in seen), None)


def _ask_about(
    memory: GraphMemory, each: Waiting, given: Mapping[str, str], arguments: Namespace, screen: Screen
) -> bool | None:
    """Ask the person to decide *each*, a review; return whether they decided it, or None if they quit."""
    screen.line()
    if isinstance(each, Review):
        _show_verdict(each, memory.settings.conflict_strategy, screen)
        prompt, letters = "accept, reject, edit, skip or quit? ", "aresq"
    else:
        _show_doubt(each, screen)
        prompt, letters = "accept (they are one), reject (they are two), skip or quit? ", "arsq"
    while (letter := _ask_letter(prompt, letters)) in "are":
        edit = _ask_for_edit(each, screen) if letter == "e" and isinstance(each, Review) else {}
        reason = None if edit is None else ask_line("  why (Enter for none): ")
        if edit is None or reason is None:
            continue
        who: dict[str, Any] = {"reason": reason, **given}
        try:
            if isinstance(each, Review):
                decided = memory.reviews.decide(each.id, _LETTERS[letter], seen=each.ruling, **edit, **who)
                show_decision(decided, arguments, screen)
            else:
                choice: Any = _LETTERS[letter]
                show_identities([memory.reviews.decide_identity(each.id, choice, **who)], arguments, screen)
        except InputError as error:
            screen.line(f"Not decided: {error}", "red")
            if letter != "e":  # someone else has decided it meanwhile
                return False
        else:
            return True
    return False if letter == "s" else None


def _ask_letter(prompt: str, letters: str) -> str:
    while True:
        answer = ask_line(prompt)
        if answer is None:
            return "q"
        if answer and answer[0].lower() in letters:
            return answer[0].lower()


def _ask_for_edit(review: Review, screen: Screen) -> dict[str, Any] | None:
    """Ask the person to correct *review*; return the new values by name, or None if nothing changes.

    In the dict, None means that a value stays.
    """
    screen.line(_EDIT_HELP, "dim")
    fact, edit = review.pending, {}
    current = (review.kind, since(fact), until(fact) or "still so")
    for name, label, value in zip(_EDITS, ("verdict", "so since", "so until"), current, strict=True):
        edit[name] = ask_line(f"  {label} [{value}]: ") or None
    if not any(edit.values()):
        screen.line("Nothing is changed.")
        return None
    return edit


def _show_verdict(review: Review, strategy: ConflictStrategy, screen: Screen) -> None:
    screen.line(f"{review.kind.capitalize()}? (confidence {review.confidence:.2f})", "bold")
    sides: list[tuple[str, Fact, Callable[[Fact], str]]] = [("waits", review.pending, proposed_validity)]
    if review.kind != "admission":
        sides.append(("against", review.existing, validity))
    for label, fact, held in sides:
        screen.line(f"  {label:<9}{cell(fact.sentence)} ({held(fact)})", "bold")
        for source in fact.sources[:_SOURCES]:
            screen.line(f'{"":11}{cell(said_by(source))}: "{cell(source.quote)}"')
    screen.line(f"  {'because':<9}{cell(review.reason) or 'no reason was given'}")
    screen.line(f"  {'accept':<9}{describe_acceptance(review, strategy)}", "green")
    screen.line(f"  {'reject':<9}it is not believed, and all else stays as it is", "yellow")


def _show_doubt(doubt: IdentityDecision, screen: Screen) -> None:
    screen.line(f"One or two? (confidence {doubt.confidence or 0.0:.2f})", "bold")
    for entity, latest in zip((doubt.entity, doubt.second), doubt.latest, strict=True):
        screen.line(f"  {cell(entity.name if entity else '')}: {cell(' '.join(latest))}", "bold")


def describe_acceptance(review: Review, strategy: ConflictStrategy) -> str:
    """Return a sentence about the consequences for the two facts if *review* is accepted."""
    if review.kind == "admission":
        return "it is believed"
    if review.kind in OUTCOMES:
        return "it is believed, and the plan ended with it"
    if review.kind == "supersedes":
        if _start_seconds(review.pending) >= _start_seconds(review.existing):
            return f"it is believed, and the other ended where it began ({since(review.pending)})"
        return f"it is believed, and ended where the other began ({since(review.existing)})"
    winner = ConflictPolicy(strategy).expect_winner(review.pending, review.existing, review.preferred)
    if winner == review.pending.id:
        return "it is believed, and the other not any more"
    if winner == review.existing.id:
        return f"it is not believed, but the other: {_WINS[strategy]}"
    return f"only one of them is believed, by {strategy}"


def _start_seconds(fact: Fact) -> float:
    start = fact.valid_at or fact.known_from
    return start.timestamp() if start else float("-inf")
