"""Which statements of one fact are about the same stay, and what they tell of it: corrected, refined and ended.

Said of one fact, "since May", "until July", "no, until June" are one stay; "again since 2024" is another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg_memory.temporal.truth import Statement

_HOUR = 3600 * 1_000_000
"""By which a stretch may be shorter than it is on the calendar, where clocks are put forward."""
Counts = Callable[["Statement"], float]
"""How much a statement counts by the strategy."""


def stated_of(own: Iterable[Statement], counts: Counts) -> list[Statement]:
    """Return what is said of one fact, as far as it was not corrected, with the finest starts and the ends told."""
    left = _corrected(own, counts)
    left = [_refined(each, left) if each.width else each for each in left]
    ending = [each for each in left if each.ends]
    left = [_ended(each, ending, counts) for each in left]
    return [each for each in left if not (each.only_ends and any(_tells_more(other, each, counts) for other in left))]


def _corrected(own: Iterable[Statement], counts: Counts) -> list[Statement]:
    """Return what is said of one fact once each correction has taken the place of what it corrects.

    A correction gives a start or an end, and leaves the other as it was told. After one, whoever tells another date
    of the same stay corrects it too: which of two was found to be a correction depends on which came first.
    """
    left: list[Statement] = []
    for each in sorted(own, key=lambda one: (one.said_at, one.id, one.valid_at, one.invalid_at, one.width)):
        gives = not each.undated or each.ends
        alike = (other for other in left if other.corrects and counts(other) >= counts(each))
        if gives and (each.corrects or any(_disputes(each, other) for other in alike)):
            left = _correct(left, replace(each, corrects=True), counts)
        else:
            left.append(each)
    return left


def _refined(each: Statement, own: Iterable[Statement]) -> Statement:
    """Return *each* with the finer start that another statement of the same fact gives it."""
    finer = [
        (-other.width, other.said_at, other.id, other.valid_at, other.precision)
        for other in own
        if other.valid_at != other.said_at  # which tells only that it is so now
        and other.width < each.width
        and each.valid_at <= other.valid_at < min(each.latest - _HOUR, each.invalid_at)
    ]
    *_, valid_at, precision = max(finer, default=(each.valid_at, each.precision))
    return replace(each, valid_at=valid_at, precision=precision)


def _ended(each: Statement, own: Iterable[Statement], counts: Counts) -> Statement:
    """Return *each* with the first end that is told of it."""
    ends = [other for other in own if other.ends and _ends(other, each) and counts(other) >= counts(each)]
    first = min((each, *ends), key=lambda one: (one.invalid_at, one.end_width))
    return replace(each, invalid_at=first.invalid_at, end_precision=first.end_precision)


def _tells_more(other: Statement, each: Statement, counts: Counts) -> bool:
    """Tell whether *other* tells a start before the end that is all that *each* tells, or an earlier end."""
    if not other.only_ends:
        return other.begin <= each.invalid_at
    return other.invalid_at < each.invalid_at and counts(other) >= counts(each)


def _ends(other: Statement, each: Statement) -> bool:
    """Tell whether *other*, about the same fact, ends what *each* states."""
    if each.ends and not other.undated and other.valid_at != each.valid_at:
        return False  # two stays, each with dates of its own
    past = other.invalid_at <= each.said_at and other.said_at < each.said_at
    if past and (each.ends or not each.corrects):
        return False  # said to hold when that end was known and past
    return other.invalid_at > each.begin or (each.undated and other.only_ends)


def _disputes(each: Statement, other: Statement) -> bool:
    """Tell whether *each* gives a start, or an end, where *other* gives one that lies elsewhere."""
    if (other.said_at, other.id) >= (each.said_at, each.id):
        return False
    if each.undated:
        return other.ends and abs(each.invalid_at - other.invalid_at) > max(each.end_width, other.end_width)
    # That it is so now is no start.
    told = not other.undated and not each.ends and each.valid_at != each.said_at
    return told and (each.latest < other.begin or other.latest < each.begin)


def _correct(left: Sequence[Statement], each: Statement, counts: Counts) -> list[Statement]:
    """Return what the correction *each* leaves of what was said before it, and what it says itself."""
    spans = [_ended(one, [*left, each], counts) for one in (*left, each)]
    *others, ours = spans
    before = [
        one
        for one, span in zip(left, others, strict=True)
        if (one.said_at, one.id) < (each.said_at, each.id)
        and counts(one) <= counts(each)
        and _same_stay(span, ours, left)
    ]
    kept = [one for one in left if one not in before]
    kept += [more for one in before if (more := _rest(one, each)) is not None]
    gone = [one.said_at for one in before if one.only_ends]
    if each.only_ends and gone:
        # It was known from then on that it was over: what was said to hold anew after that does so still.
        each = replace(each, said_at=max(each.invalid_at, min(gone)))
    return [*kept, each]


def _rest(one: Statement, correction: Statement) -> Statement | None:
    """Return what is left of *one*: its start, or its end, where the *correction* gives the other."""
    if correction.undated:
        if not one.ends:
            return one
        until = replace(one, invalid_at=correction.invalid_at, end_precision=correction.end_precision)
        return None if one.only_ends else until
    if correction.ends or not one.ends:
        return None
    since = replace(one, valid_at=correction.valid_at, precision=correction.precision)
    return replace(since, said_at=correction.said_at, id=correction.id)


def _same_stay(one: Statement, other: Statement, own: Iterable[Statement]) -> bool:
    """Tell whether both overlap, and nothing began anew between the two ends where only an end is told."""
    first, last = sorted((one, other), key=lambda each: each.invalid_at)
    if not (one.begin < other.invalid_at and other.begin < one.invalid_at):
        return False
    return not (one.only_ends or other.only_ends) or not any(
        first.invalid_at <= each.begin < last.invalid_at and not each.only_ends and not _ends(first, each)
        for each in own
    )
