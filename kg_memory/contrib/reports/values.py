"""Reports as pydantic models, and their rendering as text, Markdown and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from kg_memory.contrib.variants.decay import Decay
from kg_memory.models.graph import Change, Entity, Episode, Fact, IdentityDecision, Review, Value
from kg_memory.retrieval.context.lines import escape_line
from kg_memory.text.dated import day_in_figures, period_in_figures
from kg_memory.validation import validate_choice

Form = Literal["text", "json", "markdown"]
FORMS: tuple[Form, ...] = get_args(Form)
_MARKS = re.compile(r"([\\`*_\[\]<>#|])")
"""Characters with a meaning in Markdown."""
_LAYOUTS = {"text": ("{}", "\n{}:", "  {}", "    $ {}"), "markdown": ("# {}", "\n## {}\n", "- {}", "  - `{}`")}
"""Format strings of the title, a section heading, a line and a command, by form."""


class ReportLine(NamedTuple):
    """A line of a report, and the shell commands with which a person can decide the question in it, if any."""

    text: str
    commands: tuple[str, ...] = ()


class Chapter(NamedTuple):
    """A section of a report: a title and lines. A section without lines is not shown."""

    title: str
    lines: list[ReportLine]


class Report(Value):
    """Base class of reports on the memory. `believed_at` is the time as of which the memory is shown."""

    believed_at: datetime

    @property
    def title(self) -> str:
        """The heading of the report."""
        raise NotImplementedError

    def sections(self) -> Iterator[Chapter]:
        """Yield the sections of the report. Sections without lines are not shown."""
        raise NotImplementedError

    def render(self, form: Form = "text") -> str:
        """Return the report as ``text``, ``markdown`` or ``json``. Errors: `InputError` if *form* is none of these."""
        if validate_choice("form", form, FORMS) == "json":
            return self.model_dump_json(indent=2)
        return _render(self.title, (section for section in self.sections() if section.lines), form)

    def __str__(self) -> str:
        return self.render()


class Arbitration(Value):
    """A question for a person, with its id and the shell commands that decide it.

    `kind` is ``admission``, ``supersedes`` or ``conflicts`` for facts, or ``identity`` for two entities.
    """

    id: str
    kind: str
    question: str
    reason: str = ""
    confidence: float | None = None
    commands: tuple[str, ...] = ()


class Fading(Value):
    """A fact that nobody has stated or used for long; its state `decay` is "dim", "softly_forgotten" or "forgotten"."""

    fact: Fact
    decay: Decay


class Counts(Value):
    """Numbers of changes in a period.

    `episodes`: messages saved. `recorded`: beliefs saved; a belief is a period in which a fact counts as true.
    `closed`: beliefs withdrawn or replaced.
    """

    episodes: int = 0
    recorded: int = 0
    closed: int = 0


class Digest(Report):
    """A report on the changes from `since` to `until` (exclusive), and on the questions that a person has to decide.

    - `pending`: open questions. `conflicts`: contradictions that were settled in the period.
    - `changes`: the latest changes of facts. `merges`: entities that were merged or split.
    - `failed`: messages that could not be read. `expiring`: messages that expire soon.
    - `fading`: facts that nobody has used for long. `counts_before`: the counts of the previous period.
    """

    since: datetime
    until: datetime
    counts: Counts
    counts_before: Counts
    pending: tuple[Arbitration, ...] = ()
    conflicts: tuple[Arbitration, ...] = ()
    changes: tuple[Change, ...] = ()
    merges: tuple[IdentityDecision, ...] = ()
    failed: tuple[Episode, ...] = ()
    expiring: tuple[Episode, ...] = ()
    fading: tuple[Fading, ...] = ()

    @property
    def title(self) -> str:
        """The heading: ``"Digest from 2024-05-01 to 2024-05-08"``."""
        return f"Digest from {day_in_figures(self.since)} to {day_in_figures(self.until)}"

    def sections(self) -> Iterator[Chapter]:
        """Yield the sections: numbers, open questions, changes, merges, and messages and facts to check."""
        now, before = self.counts, self.counts_before
        yield Chapter(
            "Numbers, with those of as long a time before",
            [
                ReportLine(f"messages saved: {now.episodes} ({before.episodes})"),
                ReportLine(f"beliefs recorded: {now.recorded} ({before.recorded})"),
                ReportLine(f"beliefs closed: {now.closed} ({before.closed})"),
            ],
        )
        yield Chapter("Waits for your decision", list(map(_arbitration_line, self.pending)))
        yield Chapter("Contradictions that were settled", list(map(_arbitration_line, self.conflicts)))
        yield Chapter("Changed", list(map(_change_line, self.changes)))
        yield Chapter("Merged and split", list(map(_merge_line, self.merges)))
        yield Chapter("Could not be read", [_episode_line(episode, episode.reason or "") for episode in self.failed])
        expiring = [(episode, f"until {day_in_figures(episode.expires_at)}") for episode in self.expiring]  # type: ignore[arg-type]
        yield Chapter("Expires", [_episode_line(episode, until) for episode, until in expiring])
        yield Chapter("Fades", [ReportLine(f"{one.decay.replace('_', ' ')}: {_text(one.fact)}") for one in self.fading])


class Identity(Report):
    """A report on a person: the facts about them, and the changes of these facts since `since`.

    `states` are true now, `plans` are intended, and `events` have happened, latest first. `entity` has a summary of the
    person; it is None in a report on the past.
    """

    name: str
    as_of: datetime | None = None
    since: datetime
    entity: Entity | None = None
    states: tuple[Fact, ...] = ()
    plans: tuple[Fact, ...] = ()
    events: tuple[Fact, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def title(self) -> str:
        """The heading: the name of the person."""
        return escape_line(self.name)

    def sections(self) -> Iterator[Chapter]:
        """Yield the sections: the summary, current facts, plans, events and changes."""
        summary = self.entity.summary if self.entity else ""
        yield Chapter("Summary", [ReportLine(escape_line(summary))] if summary else [])
        yield Chapter("Is so", list(map(_fact_line, self.states)))
        yield Chapter("Plans", list(map(_fact_line, self.plans)))
        yield Chapter("Happened", list(map(_fact_line, self.events)))
        yield Chapter(f"Changed since {day_in_figures(self.since)}", list(map(_change_line, self.changes)))


class Handoff(Report):
    """Notes for the next session or agent: open questions, plans, decisions, changes and the last messages.

    `pending` are open questions, and `episodes` the last messages, earliest first. If `thread` is set, plans, decisions
    and messages are only from this conversation.
    """

    thread: str | None = None
    as_of: datetime | None = None
    pending: tuple[Arbitration, ...] = ()
    plans: tuple[Fact, ...] = ()
    decisions: tuple[Fact, ...] = ()
    changes: tuple[Change, ...] = ()
    episodes: tuple[Episode, ...] = ()

    @property
    def title(self) -> str:
        """The heading: ``"Handoff"``, or with a conversation ``"Handoff of support-42"``."""
        return f"Handoff of {escape_line(self.thread)}" if self.thread else "Handoff"

    def sections(self) -> Iterator[Chapter]:
        """Yield the sections: next steps, decisions, open questions, changes and messages."""
        yield Chapter("Next steps", list(map(_fact_line, self.plans)))
        yield Chapter("Decisions", list(map(_fact_line, self.decisions)))
        yield Chapter("Open questions", list(map(_arbitration_line, self.pending)))
        yield Chapter("Changed last", list(map(_change_line, self.changes)))
        yield Chapter("Said last", [_episode_line(episode, day_in_figures(episode.at)) for episode in self.episodes])


def describe_review(review: Review) -> str:
    """Return the change that *review* decides: ``Ann lives in Oslo ends: Ann lives in Bergen``.

    Here the new fact is that Ann lives in Oslo, and it ends the fact that she lives in Bergen.
    """
    pending, existing = _text(review.pending), _text(review.existing)
    if review.kind == "admission":
        return f"Remember: {pending}?"
    return f"{pending} {'contradicts' if review.kind == 'conflicts' else 'ends'}: {existing}"


def describe_identity_doubt(doubt: IdentityDecision) -> str:
    """Return *doubt* as a question: ``Is Annie the same as Ann?``."""
    second = doubt.second.name if doubt.second else "?"
    return f"Is {escape_line(second)} the same as {escape_line(doubt.entity.name)}?"


def _text(fact: Fact) -> str:
    """Return the sentence of *fact* with its period, escaped: "Ann lives in Oslo (2024 - now)"."""
    sentence, period = escape_line(fact.sentence), period_in_figures(fact)
    return f"{sentence} ({period})" if period else sentence


def _fact_line(fact: Fact) -> ReportLine:
    return ReportLine(_text(fact))


def _arbitration_line(one: Arbitration) -> ReportLine:
    reason = f" Reason: {escape_line(one.reason).rstrip('.')}." if one.reason else ""
    return ReportLine(f"{one.question}{reason} [{one.id}]", one.commands)


def _change_line(change: Change) -> ReportLine:
    return ReportLine(f"{day_in_figures(change.at)} {change.kind}: {_text(change.fact)}")


def _merge_line(decision: IdentityDecision) -> ReportLine:
    second = escape_line(decision.second.name) if decision.second else ""
    text = f"{decision.kind}: {escape_line(decision.entity.name)} {second} [{decision.id}]"
    return ReportLine(text.replace("  ", " "))


def _episode_line(episode: Episode, note: str) -> ReportLine:
    speaker = f"{escape_line(episode.speaker)}: " if episode.speaker else ""
    return ReportLine(f"{speaker}{escape_line(episode.content)} ({escape_line(note)}) [{episode.id}]")


def _render(title: str, sections: Iterable[Chapter], form: str) -> str:
    heading, section_heading, item, command = _LAYOUTS[form]
    escape = (lambda text: _MARKS.sub(r"\\\1", text)) if form == "markdown" else str
    lines = [heading.format(escape(title))]
    for section in sections:
        lines.append(section_heading.format(escape(section.title)))
        for line in section.lines:
            lines += [item.format(escape(line.text)), *(command.format(each) for each in line.commands)]
    return "\n".join(lines) + "\n"
