"""Dates in text and in questions, English and Chinese, resolved relative to the time when they were written."""

from kg_memory.text.dates.events import EventTime
from kg_memory.text.dates.find import find_dates
from kg_memory.text.dates.periods import DateMention
from kg_memory.text.dates.questions import TimeWords, find_times, parse_when

__all__ = ["DateMention", "EventTime", "TimeWords", "find_dates", "find_times", "parse_when"]
