"""Times as users give them, for asking: datetimes, ISO 8601 text or plain words, in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kg_memory.errors import InputError
from kg_memory.temporal.interval import EPOCH, OPEN_END, OPEN_START, Interval, instant, micros
from kg_memory.text.dates import parse_when

Given = datetime | str | None
Window = tuple[int, int]
"""``[since, until)`` in microseconds."""
EVER: Window = (OPEN_START, OPEN_END + 1)


def moment(name: str, given: Given, time: int) -> int:
    """Return the first instant of *given* in microseconds; *time*, which is now, if it is left out.

    Errors: `InputError` for anything that is no time.
    """
    if given is None:
        return time
    start = _interval(name, given, time).start
    if start is None:
        raise InputError(f"{name} is {given!r}, which has no beginning: give an instant, or use during")
    return micros(start, default=time)


def asked_window(as_of: Given, during: object, time: int) -> Window | None:
    """Return the window that the parameters ask about; ``None`` when they ask about none.

    Errors: `InputError` when there are both, or one is no time.
    """
    if during is None:
        if as_of is None:
            return None
        at = moment("as_of", as_of, time)
        return at, at + 1
    if as_of is not None:
        raise InputError("as_of and during are both given: leave one out")
    if isinstance(during, str):
        interval = _interval("during", during, time)
        since, until = interval.start, interval.end
    elif isinstance(during, Sequence) and len(during) == 2:
        since, until = (_interval("during", each, time).start if each is not None else None for each in during)
    else:
        raise InputError(f"during is {during!r}: give two times, or one period such as '2019' or 'last March'")
    window = micros(since, default=OPEN_START), micros(until, default=OPEN_END + 1)
    if window[0] >= window[1]:
        raise InputError(f"during ends before it begins: {during!r}")
    return window


def _interval(name: str, given: object, time: int) -> Interval:
    if isinstance(given, datetime | str):
        try:
            return parse_when(given, instant(time) or EPOCH)
        except ValueError as error:
            raise InputError(f"{name} is {given!r}: {error}") from None
    raise InputError(f"{name} is {given!r}: give a datetime, ISO 8601 text or words such as 'last March'")
