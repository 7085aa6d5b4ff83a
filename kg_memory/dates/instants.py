"""The instants that a language model writes, and the ISO dates in texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_INSTANT = re.compile(
    r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})"
    r"(?:[T ]\s?(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s?(?P<zone>Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?)?)?",
    re.ASCII | re.IGNORECASE,
)


def parse_instant(text: str | None) -> datetime | None:
    """Return the instant that *text* names in ISO 8601, in UTC, or ``None`` when it names none.

    Without a zone it is UTC, a date alone is its midnight, a month or a year alone its first day.
    """
    match = _INSTANT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    try:
        return instant_of(match, UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def instant_of(match: re.Match[str], zone: tzinfo) -> datetime:
    """Return the aware instant of a match that has the groups of `_INSTANT`."""
    parts = match.groupdict()
    fraction = (parts["fraction"] or "")[:6].ljust(6, "0")
    return datetime(
        int(parts["year"]),
        int(parts["month"] or 1),
        int(parts["day"] or 1),
        int(parts["hour"] or 0),
        int(parts["minute"] or 0),
        int(parts["second"] or 0),
        int(fraction),
        tzinfo=_zone(parts["zone"], zone),
    )


def _zone(written: str | None, default: tzinfo) -> tzinfo:
    if written is None:
        return default
    if written.upper() in ("Z", "UTC"):
        return UTC
    digits = written[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if written[0] == "-" else offset)
