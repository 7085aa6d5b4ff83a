"""``kg-memory ingest``: save the conversations, texts and records in files as episodes, and extract their facts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from kg_memory.cli.command import namespace_of, open_memory, review_command, settings_of
from kg_memory.cli.output import Cell, ProgressMeter, Screen, count_noun, count_waiting
from kg_memory.contrib.chats import Reading, read, survey
from kg_memory.contrib.chats.survey import Survey
from kg_memory.errors import InputError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import EpisodeInput
from kg_memory.models.operations import Estimate, Range

SHOWN_PROBLEMS = 10


def ingest(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory ingest``: check all files, save their episodes, and extract facts; return the exit code.

    If a file is invalid, nothing is saved.
    """
    how = {name: getattr(arguments, name) for name in ("format", "at", "strict", "date_order")}
    how["max_content"] = settings_of(arguments).max_content
    readings = [read(path, **how) for path in arguments.files]
    surveys = [_survey_and_print(reading, screen) for reading in readings]
    problems = [str(problem) for reading in readings for problem in reading.problems]
    with open_memory(arguments, screen) as memory:
        if memory.driver.model.by_rules:
            screen.note("reading offline, by rules: run kg-memory doctor to see how to use a language model")
        parts = chain.from_iterable(_grouped(reading, arguments) for reading in readings)
        if arguments.dry_run:
            _show_estimate(memory, parts, surveys, screen)
            show_problems(problems, screen)
            return 0
        before = _finish_earlier_run(memory, namespace_of(arguments), screen)
        meter = ProgressMeter(sum(survey.messages for survey in surveys), screen)
        meter.unread.update(before.unread)  # cleared for episodes that these files contain too
        try:
            for namespace, episodes in parts:
                problems += _add(memory, namespace, episodes, meter, strict=arguments.strict)
        except KeyboardInterrupt:
            saved = f"{meter.saved} of {count_noun(meter.total, 'episode')} saved, {meter.read} of them read"
            screen.note(f"{saved}. Nothing is lost: run the same command again to continue from here.")
            raise
    _report(before, meter, problems, review_command(arguments), screen)
    return bool(meter.unread) or (bool(problems) and not meter.done)


def _survey_and_print(reading: Reading, screen: Screen) -> Survey:
    found = survey(reading)
    screen.note(f"{reading.path}: {count_noun(found.messages, 'episode')} ({reading.format})")
    return found


def _add(
    memory: GraphMemory, namespace: str, episodes: Iterator[EpisodeInput], meter: ProgressMeter, *, strict: bool
) -> list[str]:
    """Save *episodes* and extract their facts; return an error message for each rejected one."""
    refused: list[str] = []
    while True:
        meter.start_call()
        try:
            memory.add_many(meter.count_saved(episodes), namespace=namespace, progress=meter.progress)
        except InputError as error:
            if strict:
                raise
            refused.append(str(error))  # *episodes* continues after the refused one
        else:
            return refused


def _finish_earlier_run(memory: GraphMemory, namespace: str, screen: Screen) -> ProgressMeter:
    stats = memory.stats(namespace=namespace)
    meter = ProgressMeter(stats.waiting, screen)
    if stats.failed:
        failed = count_noun(stats.failed, "episode")
        screen.note(f"{failed} of earlier runs could not be read: run kg-memory retry to read them again")
    if meter.total:
        waiting = count_noun(meter.total, "episode")
        screen.note(f"{waiting} of an earlier run saved but not completely read: finishing these first")
        memory.episodes.resume(namespace=namespace, progress=meter.progress)
    return meter


def _grouped(episodes: Iterable[EpisodeInput], arguments: Namespace) -> Iterator[tuple[str, Iterator[EpisodeInput]]]:
    """Yield (namespace, messages): one pair or, with --namespace-per-conversation, one for each conversation."""
    namespace = namespace_of(arguments)
    if not arguments.namespace_per_conversation:
        yield namespace, iter(episodes)
        return
    for name, group in groupby(episodes, key=lambda episode: (episode.thread or "").split("/")[0]):
        yield (f"{namespace}/{name}" if name else namespace), group


def _report(before: ProgressMeter, meter: ProgressMeter, problems: list[str], review: str, screen: Screen) -> None:
    """Print the counts of messages and facts, the cost, and what to do about errors and facts in review."""
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
        screen.note("Run kg-memory retry to read them again; until then, search finds only their words.")
    show_problems(problems, screen)


def show_problems(problems: Sequence[str], screen: Screen, label: str = "left out", more: str = "more") -> None:
    """Print the first ten of *problems*, each after *label*, and the number of the others, followed by *more*."""
    for problem in problems[:SHOWN_PROBLEMS]:
        screen.note(f"{label}: {problem}")
    if len(problems) > SHOWN_PROBLEMS:
        screen.note(f"... and {len(problems) - SHOWN_PROBLEMS} {more} (--json lists all)")


def _show_estimate(
    memory: GraphMemory, parts: Iterable[tuple[str, Iterable[EpisodeInput]]], surveys: Sequence[Survey], screen: Screen
) -> None:
    """Print, for ``--dry-run``, what the files contain and what it would cost to read them with the model."""
    estimates = [memory.usage.estimate(episodes, namespace=namespace) for namespace, episodes in parts]
    if not estimates:
        screen.line("There is nothing to read.")
        return
    whole = sum(estimates[1:], estimates[0])
    model, plan = memory.driver.model, memory.settings.plan
    if screen.prints_json({"plan": plan, "model": model.name, **whole.model_dump(), "files": surveys}):
        return
    for found in surveys:
        screen.line(found.describe())
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
    """Yield table rows (name, likely, lowest, highest) for a cost estimate: ``("calls", "120", "90", "150")``."""

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
