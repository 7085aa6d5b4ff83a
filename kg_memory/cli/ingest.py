"""Read files and episodes again or at first, list the costs, and declare facts."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kg_memory.cli.command import (
    namespace_of,
    open_memory,
    open_to_look,
    review_command,
    settings_of,
    verb_arguments,
    whole_id,
)
from kg_memory.cli.output import Cell, ProgressBar, Screen, count_noun, count_waiting
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult, Usage
from kg_memory.plugins import load_plugin

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.models.operations import Estimate, Range

_SHOWN_PROBLEMS = 10
Row = dict[str, Any]


class Survey(Protocol):
    """A summary of a file."""

    messages: int

    def describe(self) -> str:
        """Return the summary in a line."""


class Reading(Protocol):
    """A file as episodes, as a plug-in reads it: each iteration gives the same, and the `problems` that it met."""

    path: Path
    problems: list[InputError]

    @property
    def format(self) -> str:
        """The name of its format."""

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be a chat in an unknown form."""

    def __iter__(self) -> Iterator[EpisodeInput]: ...


def ingest(arguments: Namespace, screen: Screen) -> int:
    """Read the files through once, to find their faults before anything is stored; then remember them.

    Returns 1 if any that were saved remain unread.
    """
    how = {name: getattr(arguments, name) for name in ("format", "at", "strict", "date_order")}
    how["max_content"] = settings_of(arguments).max_content
    read = load_plugin("readers", "files").read
    readings: list[Reading] = [read(path, **how) for path in arguments.files]
    surveys = [_look_through(reading, screen) for reading in readings]
    problems = [str(problem) for reading in readings for problem in reading.problems]
    with open_memory(arguments, screen) as memory:
        if memory.driver.model.by_rules:
            screen.note("reading offline, by rules: kg-memory doctor says how to have a model read")
        parts = chain.from_iterable(_apart(reading, arguments) for reading in readings)
        if arguments.dry_run:
            _show_estimate(memory, parts, surveys, screen)
            return 0
        before = _finish(memory, namespace_of(arguments), screen)
        meter = ProgressBar(sum(survey.messages for survey in surveys), screen)
        meter.unread.update(before.unread)  # episodes that are in the files too are tried again
        with meter:
            problems += _add_parts(memory, parts, meter, screen, strict=arguments.strict)
    _report(before, meter, problems, review_command(arguments), screen)
    return bool(meter.unread)


def _add_parts(
    memory: GraphMemory,
    parts: Iterable[tuple[str, Iterator[EpisodeInput]]],
    meter: ProgressBar,
    screen: Screen,
    *,
    strict: bool,
) -> list[str]:
    """Remember the episodes of each namespace, and return why some were refused."""
    try:
        return [
            problem
            for namespace, episodes in parts
            for problem in _add(memory, namespace, episodes, meter, strict=strict)
        ]
    except KeyboardInterrupt:
        screen.note(
            f"{meter.saved} of {count_noun(meter.total, 'episode')} saved, {meter.read} of them read. "
            "Nothing is lost: run the same command again, and it goes on from here."
        )
        raise


def _look_through(reading: Reading, screen: Screen) -> Survey:
    """Return a summary of a file, after all of it was read."""
    survey: Survey = load_plugin("readers", "files").survey(reading)
    screen.note(f"{reading.path}: {count_noun(survey.messages, 'episode')} ({reading.format})")
    if reading.is_doubtful:
        screen.note(f"{reading.path} is read as JSON records, not as a conversation: --records if that is right")
    return survey


def _add(
    memory: GraphMemory, namespace: str, episodes: Iterator[EpisodeInput], meter: ProgressBar, *, strict: bool
) -> list[str]:
    """Remember *episodes*; return why some were refused, as when an id is stored already with another content."""
    refused: list[str] = []
    while True:
        meter.next()
        try:
            memory.add_many(meter.count_saved(episodes), namespace=namespace, progress=meter.progress)
        except InputError as error:
            if strict:
                raise
            refused.append(str(error))  # the iterator stands behind the refused one: go on there
        else:
            return refused


def _finish(memory: GraphMemory, namespace: str, screen: Screen) -> ProgressBar:
    """Read the episodes that an earlier run saved but did not finish."""
    stats = memory.stats(namespace=namespace)
    meter = ProgressBar(stats.waiting, screen)
    if stats.failed:
        failed = count_noun(stats.failed, "episode")
        screen.note(f"{failed} of earlier runs could not be read: kg-memory retry reads them again")
    if meter.total:
        waiting = count_noun(meter.total, "episode")
        screen.note(f"{waiting} of an earlier run saved, but not read to the end: finishing first")
        with meter:
            memory.episodes.resume(namespace=namespace, progress=meter.progress)
    return meter


def _apart(episodes: Iterable[EpisodeInput], arguments: Namespace) -> Iterator[tuple[str, Iterator[EpisodeInput]]]:
    """Yield *episodes* with their namespace: all together, or conversation by conversation.

    A conversation is what its threads have in common: their name up to the first slash.
    """
    namespace = namespace_of(arguments)
    if not arguments.namespace_per_conversation:
        yield namespace, iter(episodes)
        return
    for name, group in groupby(episodes, key=lambda episode: (episode.thread or "").split("/")[0]):
        yield (f"{namespace}/{name}" if name else namespace), group


def _report(before: ProgressBar, meter: ProgressBar, problems: list[str], review: str, screen: Screen) -> None:
    """Print the outcome of an ingest: the episodes that an earlier run left are in *before*."""
    finished, reviews, usage = before.read, before.reviews + meter.reviews, before.usage + meter.usage
    if screen.as_json:
        figures = {name: getattr(meter, name) for name in ("new", "known", "facts")}
        tokens = {name: getattr(usage, name) for name in ("calls", "input_tokens", "cached_tokens", "output_tokens")}
        speed = {"seconds": round(meter.seconds, 2), "per_second": round(meter.rate, 1)}
        left = {"problems": problems, "unread": list(meter.unread.values())}
        figures = {"episodes": meter.done, **figures, "finished": finished, "reviews": reviews}
        screen.json({**figures, **tokens, **speed, **left})
        return
    parts = [f"{meter.new} new"]
    if meter.known:
        parts.append(f"{meter.known} there already, skipped")
    if finished:
        parts.append(f"{finished} of an earlier run finished")
    screen.line(f"{count_noun(meter.done, 'episode')}: {', '.join(parts)}", "bold")
    speed_text = f"{meter.seconds:.1f} s, {meter.rate:.1f} episodes a second"
    screen.line(f"{count_noun(meter.facts, 'fact')} read from them ({speed_text})")
    if usage.calls:
        cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
        tokens_text = f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"
        screen.line(f"{count_noun(usage.calls, 'call')} of the model: {tokens_text}")
    if reviews:
        screen.line(f"{count_waiting(reviews, 'fact')} for review: {review}", "yellow")
    if meter.unread:
        first = next(iter(meter.unread.values()))
        screen.note(f"{count_noun(len(meter.unread), 'episode')} saved but not read: {first}")
        screen.note("kg-memory retry tries again; the words of the messages are found meanwhile.")
    for problem in problems[:_SHOWN_PROBLEMS]:
        screen.note(f"left out: {problem}")
    if len(problems) > _SHOWN_PROBLEMS:
        screen.note(f"... and {len(problems) - _SHOWN_PROBLEMS} more (--json lists all)")


def read_again(arguments: Namespace, screen: Screen) -> int:
    """Read episodes to the end, again, or by a better plan; return 1 if any cannot be read.

    The command ``resume`` reads saved episodes, ``retry`` failed ones, and ``deepen`` those of a cheaper plan.
    """
    name, namespace = arguments.command.name, namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        given, before = verb_arguments(memory, arguments), memory.stats(namespace=namespace)
        if name == "deepen":
            total = len(memory.episodes.deepen(**{**given, "dry_run": True}))
            if arguments.dry_run:
                return _tell_number(total, screen)
        elif name == "retry":
            given["episodes"] = [whole_id(memory, arguments, "Episode", id_) for id_ in arguments.ids] or None
            total = len(arguments.ids) or before.failed + before.skipped * arguments.skipped
        else:
            total = min(before.waiting, arguments.limit or before.waiting)
        with ProgressBar(total, screen) as meter:
            verb: Any = getattr(memory.episodes, name)
            added = verb(**given, progress=meter.progress)
        facts = memory.stats(namespace=namespace).facts - before.facts
    failed = [result for result in added if result.error]
    if screen.prints_json(added):
        return bool(failed)
    read = count_noun(len(added) - len(failed), "episode")
    screen.line(f"{read} read, {len(failed)} failed; {count_noun(facts, 'fact')} more than before")
    for result in failed:
        screen.note(f"{result.episode}: {result.error}")
    return bool(failed)


def _tell_number(episodes: int, screen: Screen) -> int:
    if not screen.prints_json({"episodes": episodes}):
        screen.line(f"{count_noun(episodes, 'episode')} would be read again")
    return 0


def _show_estimate(
    memory: GraphMemory,
    parts: Iterable[tuple[str, Iterable[EpisodeInput]]],
    surveys: Sequence[Survey],
    screen: Screen,
) -> None:
    """Print the contents of files, and the cost of reading *parts*, the episodes of each namespace."""
    estimates = [memory.usage.estimate(episodes, namespace=namespace) for namespace, episodes in parts]
    if not estimates:
        screen.line("There is nothing to read.")
        return
    whole = sum(estimates[1:], estimates[0])
    model, plan = memory.driver.model, memory.settings.plan
    if screen.prints_json({"plan": plan, "model": model.name, **whole.model_dump(), "files": surveys}):
        return
    for survey in surveys:
        screen.line(survey.describe())
    screen.line(_summary(whole), "bold")
    if model.by_rules:
        screen.line("It is read by rules, which costs nothing.")
    elif whole.to_read:
        screen.line(f"{model.name} will be asked by the plan {plan}, for all of them:")
        screen.table(("what", "likely", "from", "to"), list(_rows(whole)))
        if whole.money is None:
            screen.note("Set KG_MEMORY_BUDGET_INPUT_PRICE and _OUTPUT_PRICE, for a million tokens, to see it in money.")


def _summary(estimate: Estimate) -> str:
    parts = [f"{estimate.to_read} to read"]
    if estimate.finished:
        parts.append(f"{estimate.finished} there already")
    if estimate.skipped:
        parts.append(f"{estimate.skipped} with nothing in them to read")
    return f"{count_noun(estimate.episodes, 'episode')}: {', '.join(parts)}"


def _rows(estimate: Estimate) -> Iterable[tuple[Cell, ...]]:
    def row(name: str, amount: Range, form: str) -> tuple[Cell, ...]:
        return name, *(format(end, form) for end in (amount.likely, amount.low, amount.high))

    yield row("calls", estimate.calls, ",.0f")
    yield row("tokens in", estimate.input_tokens, ",.0f")
    yield row("tokens out", estimate.output_tokens, ",.0f")
    if estimate.money is not None:
        yield row("money", estimate.money, ",.4f")
    if estimate.seconds is not None:
        low, high = estimate.seconds
        yield "seconds", "", f"{low:,.0f}", f"{high:,.0f}"


def usage(arguments: Namespace, screen: Screen) -> int:
    """List the cost of reading by day, and the spent part of the budget."""
    namespace = namespace_of(arguments)
    with open_to_look(arguments, screen) as memory:
        spent = memory.usage.spent(namespace=namespace, days=arguments.days)
        is_paused, budget = memory.stats(namespace=namespace).paused, memory.settings.budget
    period = "today" if arguments.days == 1 else f"in the last {arguments.days} days"
    screen.values(spent, empty=f"Nothing was asked {period}.")
    if is_paused:
        screen.note(f"{namespace} is paused: nothing new is remembered until kg-memory unpause")
    if budget.day:
        today = sum((day for day in spent if day.day == datetime.now(UTC).date()), Usage())
        shares = (f"{budget.measure(today, name):,.6g} of {limit:,} {name}" for name, limit in budget.day)
        screen.note(f"of today's budget are spent: {', '.join(shares)}")
    return 0


# Declare


def declare(arguments: Namespace, screen: Screen) -> int:
    """State the fact of the command line, or all of a file; return 1 if any is saved but not finished."""
    rows = _rows_of(arguments)
    mapping = _parse(_read(arguments.mapping), f"{arguments.mapping}") if arguments.mapping else None
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory, ProgressBar(len(rows), screen) as meter:
        added = memory.facts.add_many(rows, mapping=mapping, namespace=namespace, progress=meter.progress)
    _report_declared(added, meter.seconds, screen)
    return any(result.error for result in added)


def _rows_of(arguments: Namespace) -> Sequence[Row]:
    words = arguments.words
    options = {name: value for name in arguments.parameters if (value := getattr(arguments, name)) is not None}
    if arguments.file is None:
        if arguments.mapping is not None or len(words) < 2:
            raise InputError("no fact is stated: give SUBJECT PREDICATE [OBJECT ...], or a --file")
        return [{"subject": words[0], "predicate": words[1], "object": words[2:] or None, **options}]
    if words:
        raise InputError(f"--file must stand alone, got {' '.join(words)!r} too; leave one of them out")
    rows = list(_read_rows(arguments.file))
    if not rows:
        raise InputError(f"{arguments.file} has no facts in it: give rows, or check the file")
    if arguments.mapping:
        return rows
    numbered = enumerate({**options, **row} for row in rows)
    identify_rows = load_plugin("readers", "facts").identify_rows
    return [row for _, row in identify_rows(numbered, arguments.file)]


def _read_rows(path: Path) -> Iterator[Row]:
    if path.suffix.lower() in (".csv", ".tsv"):
        yield from (row for _, row in load_plugin("readers", "facts").read_table(path))
    elif path.suffix.lower() == ".json":
        document = _parse(_read(path), f"{path}")
        yield from document if isinstance(document, list) else [document]
    else:
        for number, line in enumerate(_read(path).split("\n"), 1):
            if line.strip():
                yield _parse(line, f"{path}:{number}")


def _read(path: Path) -> str:
    """Return the text of a file.

    Errors: `InputError`.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): name a file with UTF-8 text") from None
    if not text.strip():
        raise InputError(f"{path} is empty: name a file with facts in it")
    return text


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not valid JSON ({error}): correct it") from None


def _report_declared(added: Sequence[AddResult], seconds: float, screen: Screen) -> None:
    facts = sum(len(result.facts) for result in added)
    again, rate = sum(not result.new for result in added), facts / seconds
    notes = {
        "ended": [text for result in added for text in result.ended],
        "unmapped": [text for result in added for text in result.unmapped],
        "dropped": [f"{loss.text}: {loss.reason}" for result in added for loss in result.dropped],
        "skipped": [result.skipped for result in added if result.skipped],
        "errors": [result.error for result in added if result.error],
    }
    if screen.as_json:
        numbers = {"facts": facts, "again": again, "seconds": round(seconds, 2), "per_second": round(rate, 1)}
        screen.json({**numbers, **notes})
        return
    repeated = f", {again} there already" if again else ""
    screen.line(f"{count_noun(facts, 'fact')} stated{repeated} ({seconds:.1f} s, {rate:.0f} facts a second)", "bold")
    for name, texts in notes.items():
        for text in texts[:_SHOWN_PROBLEMS]:
            screen.note(f"{name}: {text}")
        if len(texts) > _SHOWN_PROBLEMS:
            screen.note(f"... and {len(texts) - _SHOWN_PROBLEMS} more {name} (--json lists all)")
