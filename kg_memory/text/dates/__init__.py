"""Dates in text and in questions, English and Chinese, resolved against the time when it was said."""

from kg_memory.text.dates.asked import TimeWords, asked_times, parse_when
from kg_memory.text.dates.events import AskedEvent
from kg_memory.text.dates.find import find_dates
from kg_memory.text.dates.instants import parse_instant, parse_period
from kg_memory.text.dates.periods import DateMention

__all__ = [
    "AskedEvent",
    "DateMention",
    "TimeWords",
    "asked_times",
    "find_dates",
    "parse_instant",
    "parse_period",
    "parse_when",
]
