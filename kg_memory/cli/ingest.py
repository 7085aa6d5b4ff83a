"""``kg-memory ingest``, ``retry``, ``deepen`` and ``usage``: read files and episodes, and list the costs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import TYPE_CHECKING

from kg_memory.cli.command import namespace_of, open_memory, open_to_look, review_command, settings_of, whole_ids
from kg_memory.cli.output import Cell, ProgressBar, Screen, count_noun, count_waiting
from kg_memory.cli.survey import Reading, Survey, survey_episodes
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import AddResult, DailyUsage, Usage
from kg_memory.plugins import load_plugin

if TYPE_CHECKING:
    from kg_memory.memory.memory import GraphMemory
    from kg_memory.models.budget import Budget
    from kg_memory.models.operations import Estimate, Range

_SHOWN_PROBLEMS = 10


@dataclass(frozen=True)
class Outcome:
    """Result of an ingest; figures count episodes unless they say otherwise.

    `reviews` are the facts that wait for a person, `calls` the requests that the model answered. `problems` tell what
    was left out, `unread` why those that are saved could not be read.
    """

    episodes: int
    new: int
    known: int
    finished: int
    facts: int
    reviews: int
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float
    per_second: float
    problems: list[str]
    unread: list[str]


def ingest(arguments: Namespace, screen: Screen) -> int:
    """Read the files through once, to find their faults before anything is stored; then remember them.

    Returns 1 if any that were saved remain unread.
    """
    limit = settings_of(arguments).max_content
    how = {name: getattr(arguments, name) for name in ("format", "at", "strict", "date_order")}
    read = load_plugin("readers", "files").read
    readings: list[Reading] = [read(path, **how) for path in arguments.files]
    surveys, problems = _look_through(readings, limit, screen)
    total = sum(survey.messages for survey in surveys)
    with open_memory(arguments, screen) as memory:
        if memory.driver.model.by_rules:
            screen.note("reading offline, by rules: kg-memory doctor says how to have a model read")
        if arguments.dry_run:
            apart = (_apart(_within_limit(reading, limit), arguments) for reading in readings)
            show_estimate(memory, chain.from_iterable(apart), screen, surveys)
            return 0
        before = _finish(memory, namespace_of(arguments), screen)
        with ProgressBar(total, screen) as meter:
            meter.unread.update(before.unread)  # those that are in the files too are tried again
            try:
                for reading in readings:
                    for namespace, episodes in _apart(_within_limit(reading, limit), arguments):
                        problems += _add(memory, namespace, episodes, meter, strict=arguments.strict)
            except KeyboardInterrupt:
                screen.note(
                    f"{meter.saved} of {count_noun(total, 'episode')} saved, {meter.read} of them read. "
                    "Nothing is lost: run the same command again, and it goes on from here."
                )
                raise
    finished, usage = before.done - len(before.unread), before.usage + meter.usage
    outcome = Outcome(
        meter.done,
        meter.new,
        meter.known,
        finished,
        meter.facts,
        before.reviews + meter.reviews,
        usage.calls,
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
        round(meter.seconds, 2),
        round(meter.rate, 1),
        problems,
        list(meter.unread.values()),
    )
    _report(outcome, review_command(arguments), screen)
    return bool(meter.unread)


def _look_through(readings: list[Reading], limit: int, screen: Screen) -> tuple[list[Survey], list[str]]:
    """Return the contents of the files, and what in them cannot be read."""
    surveys = []
    problems: list[str] = []
    for reading in readings:
        survey = survey_episodes(reading, _within_limit(reading, limit))
        screen.note(f"{reading.path}: {count_noun(survey.messages, 'episode')} ({reading.format})")
        if reading.is_doubtful:
            screen.note(f"{reading.path} is read as JSON records, not as a conversation: --records if that is right")
        problems += map(str, reading.problems)
        surveys.append(survey)
    return surveys, problems


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


def _within_limit(reading: Reading, limit: int) -> Iterator[EpisodeInput]:
    """Yield the episodes that are short enough; add a problem for each of the others."""
    for episode in reading:
        if len(episode.content) <= limit:
            yield episode
            continue
        problem = InputError(
            f"{reading.path}: the content that begins {episode.content[:40]!r} has {len(episode.content)} characters, "
            f"and the limit is {limit}: split it, or raise KG_MEMORY_MAX_CONTENT"
        )
        if reading.strict:
            raise problem
        reading.problems.append(problem)


def _apart(episodes: Iterator[EpisodeInput], arguments: Namespace) -> Iterator[tuple[str, Iterator[EpisodeInput]]]:
    """Yield *episodes* with their namespace: all together, or conversation by conversation.

    A conversation is what its threads have in common: their name up to the first slash.
    """
    namespace = namespace_of(arguments)
    if not arguments.namespace_per_conversation:
        yield namespace, episodes
        return
    for name, group in groupby(episodes, key=lambda episode: (episode.thread or "").split("/")[0]):
        yield (f"{namespace}/{name}" if name else namespace), group


def _report(outcome: Outcome, review: str, screen: Screen) -> None:
    if screen.as_json:
        screen.json(asdict(outcome))
        return
    parts = [f"{outcome.new} new"]
    if outcome.known:
        parts.append(f"{outcome.known} there already, skipped")
    if outcome.finished:
        parts.append(f"{outcome.finished} of an earlier run finished")
    screen.line(f"{count_noun(outcome.episodes, 'episode')}: {', '.join(parts)}", "bold")
    speed = f"{outcome.seconds:.1f} s, {outcome.per_second:.1f} episodes a second"
    screen.line(f"{count_noun(outcome.facts, 'fact')} read from them ({speed})")
    if outcome.calls:
        cached = f" ({outcome.cached_tokens:,} of them cached)" if outcome.cached_tokens else ""
        tokens = f"{outcome.input_tokens:,} tokens in{cached}, {outcome.output_tokens:,} out"
        screen.line(f"{count_noun(outcome.calls, 'call')} of the model: {tokens}")
    if outcome.reviews:
        screen.line(f"{count_waiting(outcome.reviews, 'fact')} for review: {review}", "yellow")
    if outcome.unread:
        screen.note(f"{count_noun(len(outcome.unread), 'episode')} saved but not read: {outcome.unread[0]}")
        screen.note("The same command tries again; what was said is found by its words meanwhile.")
    for problem in outcome.problems[:_SHOWN_PROBLEMS]:
        screen.note(f"left out: {problem}")
    if len(outcome.problems) > _SHOWN_PROBLEMS:
        screen.note(f"... and {len(outcome.problems) - _SHOWN_PROBLEMS} more (--json lists all)")


def report(added: Sequence[AddResult], screen: Screen, describe: Callable[[int, int], str]) -> int:
    """Print the counts by *describe*, and each error; return 1 if any failed."""
    failed = [result for result in added if result.error]
    if screen.as_json:
        screen.json([result.model_dump(mode="json") for result in added])
        return bool(failed)
    screen.line(describe(len(added) - len(failed), len(failed)))
    for result in failed:
        screen.note(f"{result.episode}: {result.error}")
    return bool(failed)


def resume(arguments: Namespace, screen: Screen) -> int:
    """Read what is saved but not read to the end; return 1 if any cannot be read."""
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        waiting = memory.stats(namespace=namespace).waiting
        waiting = waiting if arguments.limit is None else min(waiting, arguments.limit)
        with ProgressBar(waiting, screen) as meter:
            added = memory.episodes.resume(namespace=namespace, limit=arguments.limit, progress=meter.progress)
    return report(added, screen, _count_read)


def _count_read(read: int, failed: int) -> str:
    return f"{count_noun(read, 'episode')} read, {count_noun(failed, 'episode')} failed"


def retry(arguments: Namespace, screen: Screen) -> int:
    """Read again what failed, and what was skipped if asked; return 1 if any fails again."""
    namespace = namespace_of(arguments)
    with open_memory(arguments, screen) as memory:
        stats = memory.stats(namespace=namespace)
        ids = whole_ids(memory, arguments, "Episode", arguments.ids)
        total = len(ids) or stats.failed + (stats.skipped if arguments.skipped else 0)
        with ProgressBar(total, screen) as meter:
            added = memory.episodes.retry(
                namespace=namespace, episodes=ids or None, skipped=arguments.skipped, progress=meter.progress
            )
    return report(
        added,
        screen,
        lambda read, failed: f"{count_noun(read, 'episode')} read, {count_noun(failed, 'episode')} failed again",
    )


def deepen(arguments: Namespace, screen: Screen) -> int:
    """Read episodes again by a better plan, or count them; return 1 if any cannot be read."""
    namespace = namespace_of(arguments)
    how = {"namespace": namespace, "limit": arguments.limit, "skipped": arguments.skipped}
    with open_memory(arguments, screen) as memory:
        episodes = memory.episodes.deepen(arguments.to, dry_run=True, **how)
        if arguments.dry_run:
            if screen.as_json:
                screen.json({"episodes": len(episodes)})
            else:
                screen.line(f"{count_noun(len(episodes), 'episode')} would be read again")
            return 0
        facts = memory.stats(namespace=namespace).facts
        with ProgressBar(len(episodes), screen) as meter:
            added = memory.episodes.deepen(arguments.to, progress=meter.progress, **how)
        facts = memory.stats(namespace=namespace).facts - facts
    return report(
        added,
        screen,
        lambda read, _: f"{count_noun(read, 'episode')} read again, {count_noun(facts, 'fact')} found anew",
    )


_COLUMNS = ("day", "calls", "tokens in", "of them cached", "tokens out", "money")
_STYLES = ("cyan", "bold")


def show_estimate(
    memory: GraphMemory,
    groups: Iterable[tuple[str, Iterable[EpisodeInput]]],
    screen: Screen,
    surveys: Sequence[Survey] = (),
) -> None:
    """Print the contents of files, and what reading *groups* of episodes, by their namespaces, will take."""
    if not screen.as_json:
        for survey in surveys:
            screen.line(survey.describe())
    estimates = [memory.usage.estimate(episodes, namespace=namespace) for namespace, episodes in groups]
    if not estimates:
        screen.line("There is nothing to read.")
        return
    first, *others = estimates
    whole = sum(others, first)
    if screen.as_json:
        plan = {"plan": memory.settings.plan, "model": memory.driver.model.name}
        screen.json({**plan, **whole.model_dump(mode="json"), "files": [survey.to_json() for survey in surveys]})
        return
    screen.line(_summary(whole), "bold")
    if memory.driver.model.by_rules:
        screen.line("It is read by rules, which costs nothing.")
    elif whole.to_read:
        screen.line(f"{memory.driver.model.name} will be asked by the plan {memory.settings.plan}, for all of them:")
        screen.table(("what", "likely", "from", "to"), list(_rows(whole)), ("", "bold"))
        if whole.money is None:
            screen.note("Set KG_MEMORY_BUDGET_INPUT_PRICE and _OUTPUT_PRICE, for a million tokens, to see it in money.")


def usage(arguments: Namespace, screen: Screen) -> int:
    """List the cost of reading by day, and the spent part of the budget."""
    with open_to_look(arguments, screen) as memory:
        spent = memory.usage.spent(namespace=namespace_of(arguments), days=arguments.days)
        is_paused = memory.stats(namespace=namespace_of(arguments)).paused
        budget = memory.settings.budget
    if screen.as_json:
        screen.json([day_usage.model_dump(mode="json", exclude={"dropped", "given_up"}) for day_usage in spent])
        return 0
    if spent:
        screen.table(_COLUMNS, [_row(day_usage) for day_usage in spent], _STYLES)
    else:
        screen.line("Nothing was asked " + ("today." if arguments.days == 1 else f"in the last {arguments.days} days."))
    if is_paused:
        screen.note(f"{namespace_of(arguments)} is paused: nothing new is remembered until kg-memory unpause")
    if budget.day:
        today = [day_usage for day_usage in spent if day_usage.day == datetime.now(UTC).date()]
        screen.note(f"of today's budget are spent: {_shares(budget, today)}")
    return 0


def _row(day_usage: DailyUsage) -> tuple[Cell, ...]:
    counts = (day_usage.calls, day_usage.input_tokens, day_usage.cached_tokens, day_usage.output_tokens)
    return f"{day_usage.day}", *(f"{count:,}" for count in counts), _money(day_usage.money)


def _shares(budget: Budget, today: list[DailyUsage]) -> str:
    spent = sum(today, Usage())
    return ", ".join(f"{budget.measure(spent, name):,.6g} of {limit:,} {name}" for name, limit in budget.day)


def _summary(estimate: Estimate) -> str:
    parts = [f"{estimate.to_read} to read"]
    if estimate.finished:
        parts.append(f"{estimate.finished} there already")
    if estimate.skipped:
        parts.append(f"{estimate.skipped} with nothing in them to read")
    return f"{count_noun(estimate.episodes, 'episode')}: {', '.join(parts)}"


def _rows(estimate: Estimate) -> Iterable[tuple[Cell, ...]]:
    yield "calls", *(f"{amount:,.0f}" for amount in _ends(estimate.calls))
    yield "tokens in", *(f"{amount:,.0f}" for amount in _ends(estimate.input_tokens))
    yield "tokens out", *(f"{amount:,.0f}" for amount in _ends(estimate.output_tokens))
    if estimate.money is not None:
        yield "money", *map(_money, _ends(estimate.money))
    if estimate.seconds is not None:
        low, high = estimate.seconds
        yield "seconds", "", f"{low:,.0f}", f"{high:,.0f}"


def _ends(amount: Range) -> tuple[float, float, float]:
    return amount.likely, amount.low, amount.high


def _money(amount: float | None) -> str:
    return "" if amount is None else f"{amount:,.4f}"
