"""Statements, and how those of one fact correct, refine and end each other.

"Since May", "until July" and "no, until June" are about one period of a fact; "again since 2024" is about another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import HOUR, OPEN_END, OPEN_START, WIDTH, last_instant

Order = tuple[int, int, str]
Teller = Literal["subject", "other", "assistant"]
"""The author of a statement: the subject of the fact, somebody else, or an assistant."""
Rank = tuple[int, int, bool, int, str, str]
_CLOCK_CHANGE = HOUR
"""A stretch may be this much shorter than on the calendar, where clocks go forward."""


@dataclass(frozen=True, slots=True)
class Statement:
    """An assertion, by the episode *id* at *stated_at*, that a fact holds in ``[valid_at, invalid_at)``.

    The episode arrived at *arrived_at*: of those of one time the one that arrived last was stated last. *precision* is
    that of `valid_at`, *end_precision* that of `invalid_at`. One that *corrects* replaces earlier
    statements about the same period, as far as it gives a start or an end.
    """

    fact: str
    id: str
    stated_at: int
    valid_at: int = OPEN_START
    invalid_at: int = OPEN_END
    precision: Precision = "instant"
    confidence: float = 1.0
    trust: float = 1.0
    corrects: bool = False
    end_precision: Precision = "instant"
    arrived_at: int = 0
    teller: Teller = "other"
    end_stands: bool = False
    """Whether the end was past when it was told: then no rival that began before it moves it."""
    over_at: int = OPEN_END
    """When a rival had begun that was told later: an undated statement was out of date when it was made."""

    @property
    def order(self) -> Order:
        """The key by which statements are ordered as they were made."""
        return (self.stated_at, self.arrived_at, self.id)

    @property
    def rank(self) -> Rank:
        """Its place in history: by its start, then by when it was made; the rest breaks ties."""
        return (self.begin, self.stated_at, not self.undated, self.arrived_at, self.id, self.fact)

    @property
    def undated(self) -> bool:
        """Whether it gives no start."""
        return self.valid_at == OPEN_START

    @property
    def tells_start(self) -> bool:
        """Whether it gives a start; the time when it was made is none, as it only was so then."""
        return self.valid_at not in (OPEN_START, self.stated_at)

    @property
    def ends(self) -> bool:
        """Whether it gives an end."""
        return self.invalid_at != OPEN_END

    @property
    def width(self) -> int:
        """The length of the longest stretch in which it may have begun."""
        return WIDTH[self.precision]

    @property
    def end_width(self) -> int:
        """The length of the longest stretch in which it may have ended."""
        return WIDTH[self.end_precision]

    @property
    def only_ends(self) -> bool:
        """Whether it gives nothing but an end in the past ("no longer")."""
        return self.undated and self.invalid_at <= self.stated_at

    @property
    def begin(self) -> int:
        """The start; for an undated statement, unless it only ends, when it was made, as it was so then."""
        return min(self.stated_at, self.over_at) if self.undated and not self.only_ends else self.valid_at

    @property
    def earliest(self) -> int:
        """The first instant at which it may have begun."""
        return OPEN_START if self.precision == "by" else self.begin

    @property
    def latest(self) -> int:
        """The last instant at which it may have begun."""
        return last_instant(self.begin, self.precision)


MayChange = Callable[[Statement, Statement], bool]
"""Whether the first statement may correct or end what the second says of the same fact."""


def reconcile(statements: Iterable[Statement], may_change: MayChange) -> list[Statement]:
    """Return the statements of one fact without those that were corrected, with the finest starts and the ends."""
    current = _apply_corrections(statements, may_change)
    current = [_refine(statement, current) if statement.width else statement for statement in current]
    ending = [statement for statement in current if statement.ends]
    current = [_end(statement, ending, may_change) for statement in current]
    return [statement for statement in current if not _is_redundant(statement, current, may_change)]


def _apply_corrections(statements: Iterable[Statement], may_change: MayChange) -> list[Statement]:
    """Return the statements of one fact, earliest first, where corrections have replaced what they correct.

    A correction gives a start or an end, and leaves the other as it was. After one, any statement with another date
    for the same period is a correction too: which of two was marked as one depends on which arrived first.
    """
    current: list[Statement] = []
    for statement in sorted(statements, key=lambda one: (one.order, one.valid_at, one.invalid_at, one.width)):
        corrections = [one for one in current if one.corrects and may_change(one, statement)]
        corrects = statement.corrects or any(_disputes(statement, correction) for correction in corrections)
        if corrects and (statement.ends or not statement.undated):
            current = _correct(current, replace(statement, corrects=True), may_change)
        else:
            current.append(statement)
    return current


def _refine(statement: Statement, statements: Iterable[Statement]) -> Statement:
    """Return *statement* with the finest start that another one of the same fact gives it."""
    last = min(statement.latest - _CLOCK_CHANGE, statement.invalid_at)
    finer = [
        (-source.width, source.order, source.valid_at, source.precision)
        for source in statements
        if source.valid_at != source.stated_at  # a statement about the present gives no start
        and source.width < statement.width
        and statement.valid_at <= source.valid_at < last
    ]
    if not finer:
        return statement
    *_, valid_at, precision = max(finer)
    return replace(statement, valid_at=valid_at, precision=precision)


def _end(statement: Statement, ending: Iterable[Statement], may_change: MayChange) -> Statement:
    """Return *statement* with the first end that it or one of *ending* gives it."""
    ends = [
        source for source in ending if source.ends and _may_end(source, statement) and may_change(source, statement)
    ]
    first = min((statement, *ends), key=lambda one: (one.invalid_at, one.end_width))
    stands = first.ends and first.invalid_at <= first.stated_at and first.end_precision != "by"
    return replace(statement, invalid_at=first.invalid_at, end_precision=first.end_precision, end_stands=stands)


def _is_redundant(statement: Statement, statements: Iterable[Statement], may_change: MayChange) -> bool:
    """Return whether *statement* only ends, and another gives a start before that end, or an earlier end.

    Or it says without dates what held then by another, whose end stands: it is no return after a rival.
    """
    if statement.only_ends:
        return any(_says_more(source, statement, may_change) for source in statements)
    return statement.undated and any(_covers(source, statement, may_change) for source in statements)


def _covers(source: Statement, statement: Statement, may_change: MayChange) -> bool:
    if not source.end_stands or source.only_ends or not may_change(source, statement):
        return False
    is_before = not source.undated or source.order < statement.order
    return is_before and source.begin <= statement.begin < source.invalid_at


def _says_more(source: Statement, ending: Statement, may_change: MayChange) -> bool:
    if not source.only_ends:
        return source.begin <= ending.invalid_at
    return source.invalid_at < ending.invalid_at and may_change(source, ending)


def _may_end(source: Statement, statement: Statement) -> bool:
    """Return whether the end that *source* gives is that of the period that *statement* is about."""
    if statement.ends and not source.undated and source.valid_at != statement.valid_at:
        return False  # two periods, with dates of their own
    is_past = source.invalid_at <= statement.stated_at and source.stated_at < statement.stated_at
    if is_past and (statement.ends or not statement.corrects):
        return False  # stated to hold when that end was known and past
    return source.invalid_at > statement.begin or (statement.undated and source.only_ends)


def _disputes(statement: Statement, earlier: Statement) -> bool:
    """Return whether *statement* gives a start, or an end, that contradicts the one that *earlier* gives."""
    if earlier.order >= statement.order:
        return False
    if statement.undated:
        apart = abs(statement.invalid_at - earlier.invalid_at)
        return earlier.ends and apart > max(statement.end_width, earlier.end_width)
    # A statement about the present gives no start.
    if earlier.undated or statement.ends or statement.valid_at == statement.stated_at:
        return False
    return statement.latest < earlier.earliest or earlier.latest < statement.earliest


def _correct(current: Sequence[Statement], correction: Statement, may_change: MayChange) -> list[Statement]:
    """Return what *correction* leaves of the *current* statements, and itself."""
    everything = [*current, correction]
    *ended, corrected_period = [_end(statement, everything, may_change) for statement in everything]
    corrected = [
        statement
        for statement, period in zip(current, ended, strict=True)
        if statement.order < correction.order
        and may_change(correction, statement)
        and _share_period(period, corrected_period, current)
    ]
    remaining = [statement for statement in current if statement not in corrected]
    remainders = (_subtract(statement, correction) for statement in corrected)
    remaining += [remainder for remainder in remainders if remainder is not None]
    earlier_ends = [statement.stated_at for statement in corrected if statement.only_ends]
    if correction.only_ends and earlier_ends:
        # It was known from then on that it was over: back-date the correction, so later restatements survive it.
        correction = replace(correction, stated_at=max(correction.invalid_at, min(earlier_ends)))
    return [*remaining, correction]


def _subtract(statement: Statement, correction: Statement) -> Statement | None:
    """Return what is left of *statement*: its start, or its end, where *correction* gives the other."""
    if correction.undated:
        if not statement.ends:
            return statement
        end = correction.invalid_at, correction.end_precision
        return None if statement.only_ends else replace(statement, invalid_at=end[0], end_precision=end[1])
    if correction.ends or not statement.ends:
        return None
    stated_at, arrived_at, id_ = correction.order
    start = replace(statement, valid_at=correction.valid_at, precision=correction.precision)
    return replace(start, stated_at=stated_at, arrived_at=arrived_at, id=id_)


def _share_period(one: Statement, another: Statement, statements: Iterable[Statement]) -> bool:
    """Return whether both overlap, and, where one only ends, nothing began anew between the two ends."""
    first, last = sorted((one, another), key=lambda statement: statement.invalid_at)
    if not (one.begin < another.invalid_at and another.begin < one.invalid_at):
        return False
    if not (one.only_ends or another.only_ends):
        return True
    return not any(_begins_between(statement, first, last) for statement in statements)


def _begins_between(statement: Statement, first: Statement, last: Statement) -> bool:
    between = first.invalid_at <= statement.begin < last.invalid_at
    return between and not statement.only_ends and not _may_end(first, statement)
