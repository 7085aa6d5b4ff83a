"""Decide: uncertain verdicts, doubts about who is who, facts to retract or replace, entities to merge or split."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kg_memory.cli.command import (
    call_verb,
    name_option,
    namespace_of,
    open_memory,
    open_to_change,
    open_to_look,
    review_command,
    verb_arguments,
)
from kg_memory.cli.commands import CHOICES
from kg_memory.cli.output import SHORT, Screen, ask_line, cell, count_noun, count_waiting, is_terminal, login
from kg_memory.cli.show import show_list
from kg_memory.cli.views import DOES, DONE, proposed_validity, said_by, since, until, validity
from kg_memory.errors import InputError
from kg_memory.maintenance.review.decide import Choice
from kg_memory.models.graph import ConflictStrategy, Fact, IdentityDecision, Review
from kg_memory.temporal.policy import ConflictPolicy

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory

_SEARCHED = 10_000
"""Verdicts and decisions that are searched for a shortened id, at most."""
_SOURCES = 3
"""Sources shown of each fact, at most."""
_LETTERS: Mapping[str, Choice] = {"a": "accept", "r": "reject", "e": "edit"}
_EDITS = ("verdict", "valid_at", "invalid_at")
Waiting = Review | IdentityDecision
_WINS: Mapping[ConflictStrategy, str] = {
    "model": "the model prefers it",
    "trust": "its source is trusted more",
    "incumbent": "its source is trusted more, or was first",
    "confidence": "it was stated with more confidence",
}
"""Why the other of two facts wins."""
_EDIT_HELP = """\
  verdict: supersedes (one ends the other), conflicts (only one is true), complements, temporary or unrelated (both
  hold). Dates: 2019, 2019-05, 2019-05-03 or words such as last March; the end may be open. Enter keeps the value."""


def review(arguments: Namespace, screen: Screen) -> int:
    """Decide the named verdict; else ask about each at a terminal, and list them elsewhere."""
    choice = next((name for name in CHOICES if getattr(arguments, name) is not None), None)
    _check(arguments, choice)
    if choice is not None:
        with open_to_change(arguments, screen) as memory:
            _decide(memory, arguments, choice, screen)
    elif arguments.list or arguments.decided or screen.as_json or not is_terminal():
        with open_to_look(arguments, screen) as memory:
            _list(memory, arguments, screen)
    else:
        with open_to_change(arguments, screen) as memory:
            _ask_about_all(memory, arguments, screen)
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
    namespace, begin = namespace_of(arguments), getattr(arguments, choice)
    given = verb_arguments(memory, arguments)
    doubts = memory.reviews.identities(namespace=namespace, limit=_SEARCHED)
    named = [doubt.id for doubt in doubts if begin and doubt.id.startswith(begin)]
    if len(named) == 1 and choice in ("accept", "reject"):
        _show_identities([memory.reviews.decide_identity(named[0], choice, **given)], arguments, screen)  # type: ignore[arg-type]
        return
    reviews = memory.reviews.list(namespace=namespace, limit=_SEARCHED)
    state, where = "waits", "--list shows them; name a decided one by its whole id"
    if choice == "undo":
        reviews += memory.reviews.list(decided=True, namespace=namespace, limit=_SEARCHED)
        state, where = "was decided", "--decided shows them"
    id_ = _whole(begin, (each.id for each in reviews), f"review that {state}", f"{review_command(arguments)} {where}")
    verb: Callable[..., Review] = memory.reviews.undo if choice == "undo" else memory.reviews.decide
    decided = verb(id_, **({} if choice == "undo" else {"choice": choice}), **given)
    _show_decision(decided, arguments, screen, undo=choice != "undo")


def _whole(begin: str, ids: Iterable[str], noun: str, hint: str) -> str:
    """Return the one of *ids* that *begin* begins, or *begin* itself if it is long enough to be a whole id.

    Errors: `InputError` if it begins several, or none.
    """
    named = sorted({id_ for id_ in ids if begin and id_.startswith(begin)})
    if len(named) == 1:
        return named[0]
    if named:
        raise InputError(f"{begin!r} begins more than one {noun} ({len(named)}): give more of the id")
    if len(begin) > SHORT:
        return begin
    raise InputError(f"no {noun} begins with {begin!r}: {hint}")


def correct(arguments: Namespace, screen: Screen) -> int:
    """Retract a fact, or replace it by the fact that a text states."""
    opened = open_memory if arguments.command.name == "replace" else open_to_change
    with opened(arguments, screen) as memory:
        decided = call_verb(memory, arguments)
    _show_decision(decided, arguments, screen)
    return 0


def _show_decision(decided: Review, arguments: Namespace, screen: Screen, *, undo: bool = True) -> None:
    if screen.prints_json(decided):
        return
    for line in describe_outcome(decided):
        screen.line(line)
    if undo:
        screen.line(f"Undo it: {review_command(arguments)} --undo {decided.id}", "dim")


def _list(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    """List the verdicts that wait, or that were decided, and the doubts that wait."""
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
        screen.note(f"{count} about who is who: --accept ID makes them one, --reject ID keeps two")


# Ask a person


def _ask_about_all(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    """Show and ask about each verdict and doubt until the person quits; each decision is kept at once."""
    given = {"by": arguments.by or login(), "namespace": namespace_of(arguments)}
    seen: set[str] = set()
    decided = 0
    try:
        while (each := _next(memory, given["namespace"], seen)) is not None:
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


def _next(memory: GraphMemory, namespace: str, seen: set[str]) -> Waiting | None:
    """Return the earliest verdict or doubt that is not *seen*: a decision may bring up another one."""
    place: dict[str, Any] = {"namespace": namespace, "limit": len(seen) + 1}
    waiting: list[Waiting] = [*memory.reviews.list(**place), *memory.reviews.identities(**place)]
    return next((each for each in waiting if each.id not in seen), None)


def _ask_about(
    memory: GraphMemory, each: Waiting, given: Mapping[str, str], arguments: Namespace, screen: Screen
) -> bool | None:
    """Return whether the person decided about a verdict or doubt; None to quit."""
    screen.line()
    if isinstance(each, Review):
        _show_verdict(each, memory.settings.conflict_strategy, screen)
        prompt, letters = "accept, reject, edit, skip or quit? ", "aresq"
    else:
        _show_doubt(each, screen)
        prompt, letters = "accept (they are one), reject (they are two), skip or quit? ", "arsq"
    while (letter := _choose(prompt, letters)) in "are":
        edit = _ask_for_edit(each, screen) if letter == "e" and isinstance(each, Review) else {}
        reason = None if edit is None else ask_line("  why (Enter for none): ")
        if edit is None or reason is None:
            continue
        who: dict[str, Any] = {"reason": reason, **given}
        try:
            if isinstance(each, Review):
                decided = memory.reviews.decide(each.id, _LETTERS[letter], seen=each.ruling, **edit, **who)
                _show_decision(decided, arguments, screen)
            else:
                choice: Any = _LETTERS[letter]
                _show_identities([memory.reviews.decide_identity(each.id, choice, **who)], arguments, screen)
        except InputError as error:
            screen.line(f"Not decided: {error}", "red")
            if letter != "e":  # somebody else has decided meanwhile
                return False
        else:
            return True
    return False if letter == "s" else None


def _choose(prompt: str, letters: str) -> str:
    """Return which of *letters* the answer begins with; "q" at the end of the input."""
    while True:
        answer = ask_line(prompt)
        if answer is None:
            return "q"
        if answer and answer[0].lower() in letters:
            return answer[0].lower()


def _ask_for_edit(review: Review, screen: Screen) -> dict[str, Any] | None:
    """Return the changes that the person enters, None if there is none."""
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
    screen.line(f"{review.kind.capitalize()}? (confidence {review.confidence:.2f})", "bold magenta")
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
    screen.line(f"One or two? (confidence {doubt.confidence or 0.0:.2f})", "bold magenta")
    for entity, latest in zip((doubt.entity, doubt.second), doubt.latest, strict=True):
        screen.line(f"  {cell(entity.name if entity else '')}: {cell(' '.join(latest))}", "bold")


# Merge and split entities


def entities(arguments: Namespace, screen: Screen) -> int:
    """List the entities or the decisions about them, merge, split, or undo."""
    _check_names(arguments)
    with (open_to_look if arguments.action in ("list", "decisions") else open_to_change)(arguments, screen) as memory:
        listed = {"namespace": namespace_of(arguments), "limit": arguments.limit}
        if arguments.action == "list":
            show_list(memory, memory.entities.list(**listed), arguments, screen)
        elif arguments.action == "decisions":
            decisions = memory.entities.decisions(**listed)
            show_list(memory, decisions, arguments, screen, "Nothing was merged or split.")
        else:
            _change_entities(memory, arguments, screen)
    return 0


def _change_entities(memory: GraphMemory, arguments: Namespace, screen: Screen) -> None:
    given, (first, *others) = verb_arguments(memory, arguments), arguments.names
    who = {name: given[name] for name in ("by", "reason", "namespace")}
    if arguments.action == "merge":
        _show_identities(memory.entities.merge(first, *others, **who), arguments, screen)
    elif arguments.action == "split":
        _show_identities([memory.entities.split(first, **given)], arguments, screen)
    else:
        decisions = memory.entities.decisions(namespace=who["namespace"], limit=_SEARCHED)
        ids, hint = (each.id for each in decisions), "kg-memory entities decisions shows them"
        undone = memory.entities.undo(_whole(first, ids, "decision", hint), **who)
        if not screen.prints_json(undone):
            screen.line(describe_identity(undone))


def _check_names(arguments: Namespace) -> None:
    """Refuse options that would have no effect.

    Errors: `InputError`.
    """
    action, names = arguments.action, arguments.names
    most = {"merge": None, "split": 1, "undo": 1}.get(action, 0)
    if most is not None and len(names) > most:
        raise InputError(f"entities {action} takes {most} names, got {len(names)}; quote names with spaces")
    if action == "merge" and len(names) < 2:
        raise InputError("entities merge needs the entity to keep and those to merge into it; give two names or ids")
    if action in ("split", "undo") and not names:
        raise InputError(f"entities {action} needs {'the name of an entity' if action == 'split' else 'an ID'}")
    if action != "split" and (arguments.facts or arguments.episodes or arguments.name or arguments.type):
        raise InputError("--fact, --episode, --as and --type can be given only to entities split")
    if arguments.reason and action not in ("merge", "split", "undo"):
        raise InputError("--reason goes with entities merge, split or undo")


def _show_identities(decisions: list[IdentityDecision], arguments: Namespace, screen: Screen) -> None:
    if screen.prints_json(decisions):
        return
    for decision in decisions:
        screen.line(describe_identity(decision))
        screen.line(f"Undo it: kg-memory entities undo {decision.id}{name_option(arguments)}", "dim")


# In words


def describe_identity(decision: IdentityDecision) -> str:
    """Return the effect of a decision about who is who, in a sentence."""
    name, second = cell(decision.entity.name), cell(decision.second.name if decision.second else "")
    moved = f"; {count_noun(decision.facts, 'fact')} moved" if decision.facts else ""
    if decision.state == "undone":
        now = f"{name} is one" if decision.kind == "split" else f"{name} and {second} are two"
        return f"Undone: {now} again."
    if decision.state == "waiting":
        return f"Undone: whether {name} and {second} are one waits for review again."
    if decision.state == "apart":
        return f"Kept apart: {name} and {second} are two."
    if decision.kind == "split":
        return f"Split: {second} is another than {name}{moved}."
    return f"Merged into {name} ({', '.join(map(cell, decision.entity.aliases))}){moved}."


def describe_acceptance(review: Review, strategy: ConflictStrategy) -> str:
    """Return the effect of accepting *review*."""
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
    """Return the state of *review* and of its two facts, a line each."""
    last = review.decisions[-1].decision if review.decisions else None
    lines = [f"{DONE[last].capitalize()}: {DOES[review.ruling]}."] if last else []
    facts = {fact.id: fact for fact in (review.pending, review.existing)}
    return [*lines, *(f"  {cell(fact.sentence)}: {_state(fact, review)}" for fact in facts.values())]


def _state(fact: Fact, review: Review) -> str:
    if fact.reviewed or fact.expired_at is not None:
        return validity(fact)
    waits = fact.id == review.existing.id or review.ruling != "waiting"
    return "waits for another verdict" if waits else "waits for review"


def _start(fact: Fact) -> float:
    start = fact.valid_at or fact.known_from
    return start.timestamp() if start else float("-inf")
