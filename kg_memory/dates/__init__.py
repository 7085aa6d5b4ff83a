"""Dates in text, English and Chinese, resolved against the time when it was said."""

from kg_memory.dates.find import find_dates
from kg_memory.dates.instants import parse_instant
from kg_memory.dates.periods import DateMention

__all__ = ["DateMention", "find_dates", "parse_instant"]
