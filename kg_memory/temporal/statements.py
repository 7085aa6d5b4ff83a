"""Statements: what single messages say about when a fact holds, and how statements of the same fact are combined.

A later statement may correct, refine or end an earlier one. "Since May", "until July" and "no, until June" are about
the same period of a fact; "again since 2024" begins another period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kg_memory.models.graph import Precision
from kg_memory.temporal.interval import HOUR, OPEN_END, OPEN_START, WIDTH, last_instant

Order = tuple[int, int, str]
Teller = Literal["subject", "other", "assistant"]
"""The author of a statement: the subject of the fact, another person, or an assistant."""
Rank = tuple[int, int, bool, int, str, str]
# The time by which a period may be shorter than on the calendar, when clocks go forward.
_CLOCK_CHANGE = HOUR


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim by one message that a fact holds from *valid_at* to *invalid_at*.

    *fact*, *id*: the ids of the fact and the message. *stated_at*: the time of the message. *arrived_at*: when the
    memory received it. Times are microseconds since the epoch. *precision*, *end_precision*: how exact the start and
    end are. *corrects*: the statement replaces the dates that earlier statements gave for the same period.
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
    """Whether the end was already past when it was stated; then a rival that began earlier does not move it."""
    over_at: int = OPEN_END
    """When a rival began that was stated later, if that shows that this undated statement was out of date."""
    is_plan: bool = False
    """Whether it tells a plan; its start is the planned date, but the plan exists since it was stated."""
    goes_on: bool = False
    """Whether it says that what began at its start still holds when it is made, as in "since 2020"."""

    @property
    def order(self) -> Order:
        """A sort key for statements: by the time when they were made and, at equal times, when they were received."""
        return (self.stated_at, self.arrived_at, self.id)

    @property
    def rank(self) -> Rank:
        """A sort key that orders statements by start; of equal starts, the older statement is first."""
        return (self.begin, self.stated_at, not self.undated, self.arrived_at, self.id, self.fact)

    @property
    def undated(self) -> bool:
        """Whether the statement gives no start date."""
        return self.valid_at == OPEN_START

    @property
    def tells_start(self) -> bool:
        """Whether the statement gives a start date other than the time of its message."""
        return self.valid_at not in (OPEN_START, self.stated_at)

    @property
    def ends(self) -> bool:
        """Whether the statement gives an end date."""
        return self.invalid_at != OPEN_END

    @property
    def width(self) -> int:
        """How uncertain the start is, in microseconds: 31 days for "in May"."""
        return WIDTH[self.precision]

    @property
    def end_width(self) -> int:
        """How uncertain the end is, in microseconds: 31 days for "until May"."""
        return WIDTH[self.end_precision]

    @property
    def only_ends(self) -> bool:
        """Whether the statement gives an end in the past and no start, as in "I no longer live in Oslo"."""
        return self.undated and self.invalid_at <= self.stated_at

    @property
    def begin(self) -> int:
        """The start of the period, in microseconds since the epoch.

        Without a start date, it is the time of the message, or `over_at` if that is earlier. For "I no longer live in
        Oslo" it is `OPEN_START`.
        """
        return min(self.stated_at, self.over_at) if self.undated and not self.only_ends else self.valid_at

    @property
    def earliest(self) -> int:
        """The earliest time at which the fact may have begun, in microseconds since the epoch."""
        return OPEN_START if self.precision == "by" else self.begin

    @property
    def latest(self) -> int:
        """The latest time at which the fact may have begun, in microseconds: for "in May", the end of 31 May."""
        return last_instant(self.begin, self.precision)


MayChange = Callable[[Statement, Statement], bool]
"""Function that returns whether its first statement may correct or end its second, about the same fact."""


def reconcile(statements: Iterable[Statement], may_change: MayChange) -> list[Statement]:
    """Combine all *statements* of one fact into statements that give the periods in which it holds.

    "Since 2024", "since May 2024" and "until July 2024" give May to July 2024. Corrected and redundant statements are
    left out. ``may_change(a, b)``: whether *a* may correct or end *b*.
    """
    claims = list(statements)
    # "In Rome since 2020" also says "I live in Rome", which a rival stated before does not end.
    claims += [replace(one, valid_at=OPEN_START, precision="instant") for one in claims if one.goes_on and not one.ends]
    current = _apply_corrections(claims, may_change)
    current = [_refine(one, current) if one.width or one.end_width else one for one in current]
    ending = [statement for statement in current if statement.ends]
    current = [_with_earliest_end(statement, ending, may_change) for statement in current]
    return [statement for statement in current if not _is_redundant(statement, current, may_change)]


def _apply_corrections(statements: Iterable[Statement], may_change: MayChange) -> list[Statement]:
    """Return the *statements* of one fact, earliest first, with their dates replaced by those of later corrections.

    For example, the correction "No, since 2020" changes "since 2021" to "since 2020". A later statement with other
    dates than a correction counts as a correction too. ``may_change(a, b)``: whether *a* may correct or end *b*.
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


def _refine(statement: Statement, statements: Sequence[Statement]) -> Statement:
    """Return *statement* with its vague dates replaced by more exact ones that lie within them.

    Its start "2024" becomes "May 2024" if another of *statements* gives that month; likewise for its end.
    """
    starts = [(one.valid_at, one.precision, one) for one in statements]
    ends = [(one.invalid_at, one.end_precision, one) for one in statements]
    valid_at, precision = _finest(statement.valid_at, statement.precision, statement.invalid_at, starts)
    invalid_at, end_precision = _finest(statement.invalid_at, statement.end_precision, OPEN_END, ends)
    if invalid_at <= valid_at:  # "from May 2024 until 2024" began in May, and ended some time after
        invalid_at, end_precision = statement.invalid_at, statement.end_precision
    return replace(
        statement, valid_at=valid_at, precision=precision, invalid_at=invalid_at, end_precision=end_precision
    )


def _finest(
    date: int, precision: Precision, before: int, dates: Iterable[tuple[int, Precision, Statement]]
) -> tuple[int, Precision]:
    """Return the most exact of *dates*, with its precision, in the unit of time (*precision*) that begins at *date*.

    *dates*: ``(date, precision, its statement)``; only those earlier than *before* count. Of equally exact dates, the
    one stated last is taken; if none is more exact, *date* itself.
    """
    last = min(last_instant(date, precision) - _CLOCK_CHANGE, before)
    finer = [
        (-WIDTH[other], source.order, at, other)
        for at, other, source in dates
        if date <= at < last
        and WIDTH[other] < WIDTH[precision]
        and other != "by"  # "by May" is no exact date
        and at != source.stated_at  # nor is the time of the statement
    ]
    return max(finer)[2:] if finer else (date, precision)


def _with_earliest_end(statement: Statement, ending: Iterable[Statement], may_change: MayChange) -> Statement:
    """Return *statement* with the earliest of these ends: its own, and those that *ending* gives for the same period.

    *ending*: statements of the same fact. ``may_change(a, b)``: whether *a* may correct or end *b*.
    """
    ends = [other for other in ending if other.ends and _may_end(other, statement) and may_change(other, statement)]
    first = min((statement, *ends), key=lambda one: (one.invalid_at, one.end_width))
    stands = first.ends and first.invalid_at <= first.stated_at and first.end_precision != "by"
    return replace(statement, invalid_at=first.invalid_at, end_precision=first.end_precision, end_stands=stands)


def _is_redundant(statement: Statement, statements: Iterable[Statement], may_change: MayChange) -> bool:
    """Return whether *statement* adds nothing to the other *statements* of the same fact.

    "Ann lives in Oslo", said in 2020, adds nothing to "Ann lived in Oslo from 2019 to 2021". ``may_change(a, b)``:
    whether *a* may correct or end *b*.
    """
    if statement.only_ends:
        return any(_makes_redundant(source, statement, may_change) for source in statements)
    return statement.undated and any(_made_within(source, statement, may_change) for source in statements)


def _made_within(source: Statement, statement: Statement, may_change: MayChange) -> bool:
    """Return whether *statement*, which has no start date, was made within the period that *source* gives.

    "Ann lives in Oslo", said in 2020, was made within "Ann lived in Oslo from 2019 to 2021". False if *source* states a
    future end, or ``may_change(source, statement)`` is False.
    """
    if not source.end_stands or source.only_ends or not may_change(source, statement):
        return False
    is_before = not source.undated or source.order < statement.order
    return is_before and source.begin <= statement.begin < source.invalid_at


def _makes_redundant(source: Statement, ending: Statement, may_change: MayChange) -> bool:
    """Return whether *source* makes *ending* redundant, which states only an end: "I no longer live in Oslo".

    Both are about one fact. A *source* with a start must begin by that end. A *source* with only an end must be
    earlier, and ``may_change(source, ending)`` be True.
    """
    if not source.only_ends:
        return source.begin <= ending.invalid_at
    return source.invalid_at < ending.invalid_at and may_change(source, ending)


def _may_end(source: Statement, statement: Statement) -> bool:
    """Return whether the end date in *source* can be the end of *statement*, another statement of the same fact."""
    if statement.ends and not source.undated and source.valid_at != statement.valid_at:
        return False  # they are about two periods
    is_past = source.invalid_at <= statement.stated_at and source.stated_at < statement.stated_at
    if is_past and (statement.ends or not statement.corrects):
        return False  # the fact was stated after this end, so it held again
    return source.invalid_at > statement.begin or (statement.undated and source.only_ends)


def _disputes(statement: Statement, earlier: Statement) -> bool:
    """Return whether *statement* gives a start or end that contradicts *earlier*, a statement of the same fact.

    Dates that are equal within their precision do not. The result is False if *earlier* was not made first.
    """
    if earlier.order >= statement.order:
        return False
    if statement.undated:
        apart = abs(statement.invalid_at - earlier.invalid_at)
        return earlier.ends and apart > max(statement.end_width, earlier.end_width)
    # The time of a statement is not a start.
    if earlier.undated or statement.ends or statement.valid_at == statement.stated_at:
        return False
    return statement.latest < earlier.earliest or earlier.latest < statement.earliest


def _correct(current: Sequence[Statement], correction: Statement, may_change: MayChange) -> list[Statement]:
    """Return the *current* statements of a fact with their dates corrected, followed by *correction*.

    Only earlier statements about the same period are corrected; those whose dates are all replaced are left out.
    ``may_change(a, b)``: whether *a* may correct or end *b*.
    """
    everything = [*current, correction]
    *ended, corrected_period = [_with_earliest_end(statement, everything, may_change) for statement in everything]
    corrected = [
        statement
        for statement, period in zip(current, ended, strict=True)
        if statement.order < correction.order
        and may_change(correction, statement)
        and _share_period(period, corrected_period, current)
    ]
    remaining = [statement for statement in current if statement not in corrected]
    remainders = (_apply_correction_to(statement, correction) for statement in corrected)
    remaining += [remainder for remainder in remainders if remainder is not None]
    earlier_ends = [statement.stated_at for statement in corrected if statement.only_ends]
    if correction.only_ends and earlier_ends:
        # The end was known since then. Back-date the correction, so that later statements of the fact survive it.
        correction = replace(correction, stated_at=max(correction.invalid_at, min(earlier_ends)))
    return [*remaining, correction]


def _apply_correction_to(statement: Statement, correction: Statement) -> Statement | None:
    """Return *statement* with the start or end that *correction* gives; None if it keeps no date of its own.

    A *correction* of only the end leaves a statement without an end unchanged.
    """
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
    """Return whether *one* and *another*, statements of one fact, are about the same period.

    Their periods must overlap. If one of them gives only an end, none of *statements* may begin a new period between
    the two ends.
    """
    first, last = sorted((one, another), key=lambda statement: statement.invalid_at)
    if not (one.begin < another.invalid_at and another.begin < one.invalid_at):
        return False
    if not (one.only_ends or another.only_ends):
        return True
    return not any(_begins_between(statement, first, last) for statement in statements)


def _begins_between(statement: Statement, first: Statement, last: Statement) -> bool:
    """Return whether *statement* begins a new period after the end in *first* and before the end in *last*.

    Example: "left Oslo in 2019" (*first*), "moved to Oslo in 2020" (*statement*), "left Oslo in 2021" (*last*).
    """
    between = first.invalid_at <= statement.begin < last.invalid_at
    return between and not statement.only_ends and not _may_end(first, statement)
