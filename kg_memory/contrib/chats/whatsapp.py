"""Read chats that WhatsApp exported as text on iOS or Android, in any language.

Each language has its own form of dates, times and system messages. So a time stamp is recognised by its five or six
numbers. The order of day, month and year is inferred from all time stamps of the file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from kg_memory.contrib.chats.formats import Line
from kg_memory.contrib.chats.records import Report, Thread
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text import read_table

DateOrder = Literal["dmy", "mdy", "ymd"]
DATE_ORDERS: tuple[DateOrder, ...] = ("dmy", "mdy", "ymd")
MOST_BEFORE = 5
"""The most lines of an earlier message before the first message of a chat that was cut."""
_LRM = "\u200e"
_MARKS = dict.fromkeys(map(ord, "\ufeff\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"))
_SPACES = dict.fromkeys((0xA0, 0x2007, 0x2009, 0x202F), " ")
_HEADS = (
    re.compile(r"\[(?P<stamp>[^\]]{8,45})\]\s?(?P<rest>.*)"),
    re.compile(r"(?P<stamp>\d.{8,45}?)\s[-–—]\s(?P<rest>.*)"),
    re.compile(r"(?P<stamp>\d{4}\s?년.{8,30}?), (?P<rest>.*)"),
    re.compile(r"(?P<stamp>\d.{8,30}?:\d\d(?: ?[AaPp][Mm])?): (?P<rest>.*)"),
)
# A quote that is open at the colon belongs to a system message: Ann changed the group name to "Trip: Rome".
_WHO = re.compile(
    r"(?P<who>(?:[^:：\"“”„«»]|\"[^\":：]*\"|[“„][^“”:：]*[“”]|«[^«»:：]*»){1,60}?)\s?(?::(?:\s|$)|：\s?)(?P<said>.*)"
)
_MARKED = re.compile(rf"[:：]\s{{0,2}}{_LRM}")
_BETWEEN_DATE = re.compile(r"\s?[./\-年月년월]?\s?")
_BETWEEN_TIME = re.compile(r"\s?(?:[:.：h]|min)\s?")
_FILE_DATE = re.compile(r"(?:[A-Z]{3}-(\d{4})(\d\d)(\d\d)-WA|-(\d{4})-(\d\d)-(\d\d)-\d\d-\d\d-\d\d\.)")
_TAGGED = re.compile(r"<[^<>:：]{2,30}\s?[:：]\s?([^<>]+\.\w{1,5})>")
_APPENDED = re.compile(r"(?P<name>\S.*?\.\w{2,5}) \([^()]{3,40}\)(?P<caption>(?:\n.*)?)", re.DOTALL)
_ANDROID_NAME = re.compile(r"(?:IMG|VID|AUD|PTT|STK|DOC)-\d{8}-WA\d+")


class Stamp(NamedTuple):
    """A parsed WhatsApp time stamp whose three date *numbers* are in an unknown order of day, month and year."""

    numbers: tuple[str, str, str]
    separator: str
    time: timedelta

    def at(self, order: DateOrder) -> datetime | None:
        """Return the time of the stamp, its date read in *order*, such as "dmy"; None for an invalid date.

        Years before 2000 are invalid. Years after 2400 are read as years of the Buddhist calendar.
        """
        day, month, year = (int(self.numbers[order.index(part)]) for part in "dmy")
        year += 2000 if year < 100 else 0
        year -= 543 if year > 2400 else 0
        if not year >= 2000:
            return None
        try:
            return datetime(year, month, day, tzinfo=UTC) + self.time
        except (ValueError, OverflowError):
            return None


@dataclass
class _Said:
    """A message of a WhatsApp chat: its line number, time stamp, text, and speaker (None for system messages)."""

    number: int
    stamp: Stamp
    text: str
    who: str | None


def parse_stamp(text: str) -> Stamp | None:
    """Parse *text* as a WhatsApp time stamp of any language, such as "01.05.24, 10:00"; return None if it is none."""
    numbers = list(re.finditer(r"\d+", text))
    if len(numbers) not in (5, 6):
        return None
    is_time_first = re.fullmatch(r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?\b.*[/\-]\d+[/\-]\d+", text) is not None
    split = len(numbers) - 3 if is_time_first else 3
    days, hours = (numbers[split:], numbers[:split]) if is_time_first else (numbers[:split], numbers[split:])
    separators = [_between(text, *pair) for pair in pairwise(days)]
    if not all(_BETWEEN_DATE.fullmatch(each) for each in separators):
        return None
    if not all(_BETWEEN_TIME.fullmatch(_between(text, *pair)) for pair in pairwise(hours)):
        return None
    rest = text[: days[0].start()] if is_time_first else text[days[-1].end() :]
    words = "".join(char for char in rest.casefold() if unicodedata.category(char)[0] in "LM")
    hour, minute, second = (*(int(each[0]) for each in hours), 0)[:3]
    if len(hours[1][0]) != 2 or hour > 24 or minute > 59 or second > 60 or len(words) > 14:
        return None
    time = timedelta(hours=_to_24(hour, GLUE.sub("", words)), minutes=minute, seconds=second)
    return Stamp((days[0][0], days[1][0], days[2][0]), separators[0].strip()[:1], time)


def _between(text: str, left: re.Match[str], right: re.Match[str]) -> str:
    return text[left.end() : right.start()]


def _to_24(hour: int, words: str) -> int:
    if words in AM:
        return hour % 12
    if words in PM:
        return hour % 12 + 12
    return hour + 12 if words in NOON and hour < 11 else hour


def is_whatsapp(lines: Iterable[str]) -> bool:
    """Return whether *lines* are a WhatsApp chat: one of the first begins a message, and some message has a speaker."""
    written = [line for line in lines if line.strip()]
    openings = [(line, found) for line in map(_tidy, written[:MOST_BEFORE]) if (found := _open(line, _HEADS))]
    if not openings:
        return False
    first, (head, *_) = openings[0]
    is_iso = re.fullmatch(r"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?\].*", first) is not None
    if is_iso and not any(_LRM in line for line in written):
        return False  # a plain chat, which `formats.read_chat` reads
    rests = [found[2] for line in written if (found := _open(_tidy(line), (head,)))]
    return any(_WHO.fullmatch(rest) for rest in rests)


def _tidy(line: str) -> str:
    return line.translate(_MARKS).translate(_SPACES).strip()


def _open(line: str, heads: Iterable[re.Pattern[str]]) -> tuple[re.Pattern[str], Stamp, str] | None:
    for head in heads:
        if (match := head.fullmatch(line)) and (stamp := parse_stamp(match["stamp"])):
            return head, stamp, match["rest"]
    return None


def read_whatsapp(lines: Iterable[Line], path: Path, order: DateOrder | None, report: Report) -> Iterator[EpisodeInput]:
    """Yield the messages of a WhatsApp chat as episodes, without system and deleted messages."""
    said: list[_Said] = []
    heads: Iterable[re.Pattern[str]] = _HEADS
    for number, line in lines:
        opened = _open(_tidy(line), heads)
        if opened is None:
            if said:
                said[-1].text += f"\n{line.rstrip()}"
            elif line.strip():
                report(InputError(f"line {number}: it continues a message that is not in the file: remove the line"))
            continue
        head, stamp, rest = opened
        heads = (head,)
        spoken = _WHO.fullmatch(rest)
        marked = _MARKED.search(EDITED.split(line)[0].rstrip(f" {_LRM}"))
        text, who = (spoken["said"], spoken["who"].lstrip("~ ")) if spoken else (rest, None)
        said.append(_Said(number, stamp, _LRM + text if marked else text, who))
    order = order or infer_order(said, path)
    named = path.absolute().parent.name.removesuffix(".zip") if path.stem == "_chat" else path.stem
    thread = Thread("whatsapp", re.sub(r" \(\d+\)$", "", named), "", report)  # "(1)" is of a second download
    for each in said:
        at = each.stamp.at(order)
        if at is None:
            date = "/".join(each.stamp.numbers)
            problem = f"{date} is not a date in the order {order}: try another --date-order"
            report(InputError(f"line {each.number}: {problem}"))
        else:
            yield from thread.say(None, each.who, _content(each), at)


def _content(said: _Said) -> str:
    """Return the text of the message *said*; files in it become "[attachment: photo.jpg]".

    "" for system messages and deleted messages.
    """
    is_marked, text = said.text.startswith(_LRM), EDITED.sub("", said.text.translate(_MARKS)).strip()
    if said.who is None or DELETED.fullmatch(text):
        return ""
    if _TAGGED.search(text):
        return _TAGGED.sub(lambda match: f"[attachment: {match[1]}]", text)
    appended = _APPENDED.fullmatch(text)
    if appended and (is_marked or _ANDROID_NAME.match(text) or ATTACHED.search(text)):
        return f"{appended['caption'].strip()}\n[attachment: {appended['name']}]".strip()
    if re.fullmatch(r"<[^<>]{3,60}>", text):
        return f"[attachment: {text[1:-1]}]"
    if (is_marked or _LRM in said.text) and OMITTED.fullmatch(text):
        return f"[attachment: {text}]"
    return "" if is_marked and not re.search(r"https?://|\n", text) else text


def infer_order(said: list[_Said], path: Path) -> DateOrder:
    """Guess the order of day, month and year in the dates of a chat: "dmy". Errors: `InputError` if ambiguous."""
    # Drop orders with dates in the future, then with more steps back in time, then with fewer matching file names.
    latest = datetime.now(UTC) + timedelta(days=2)
    times: dict[DateOrder, list[datetime]] = {}
    for order in DATE_ORDERS:
        if found := [at for each in said if (at := each.stamp.at(order)) is not None]:
            times[order] = found
    most = max(map(len, times.values()), default=0)  # stamps in a quoted chat may have another order
    times = {order: each for order, each in times.items() if len(each) == most}
    times = {order: each for order, each in times.items() if max(each) < latest} or times
    # Steps back of over two hours are a sign of wrongly parsed dates.
    fewest = {order: sum(b < a - timedelta(hours=2) for a, b in pairwise(each)) for order, each in times.items()}
    times = {order: each for order, each in times.items() if fewest[order] == min(fewest.values())}
    named = {order: _count_named(said, order) for order in times}
    times = {order: each for order, each in times.items() if named[order] == max(named.values())}
    if len(times) > 1:
        times.pop("ymd", None)  # a two-digit year does not come first in any language
    if len({tuple(each) for each in times.values()}) > 1 and said[0].stamp.separator in ("/", ""):
        example = said[0].stamp.separator.join(said[0].stamp.numbers)
        raise InputError(
            f"{path}: the dates in this chat, such as {example}, can be day/month or month/day: pass --date-order dmy "
            "or --date-order mdy"
        )
    return next(iter(times), "dmy")


def _count_named(said: list[_Said], order: DateOrder) -> int:
    """Count the attachments in *said* named by the date of their message, such as "IMG-20240501-WA0001.jpg"."""
    count = 0
    for each in said:
        if (match := _FILE_DATE.search(each.text)) and (at := each.stamp.at(order)):
            year, month, day = (int(number) for number in match.groups() if number)
            count += (at.year, at.month, at.day) == (year, month, day)
    return count


# Texts that WhatsApp itself writes, in its most used languages


_TEXTS: Mapping[str, str] = read_table(__package__, "whatsapp.toml")


def _phrase_pattern(name: str) -> str:
    phrases = "|".join(_TEXTS[name].splitlines())
    return f"(?:{phrases})"


GLUE = re.compile(r"^(?:klo|kl|um|à|às|alle|plkst|ob|lúc|г|日|일|u|o(?!dp))(?=.|$)")
"""Words between the date and the time of a stamp."""
AM, PM, NOON = (frozenset(_TEXTS[name].split()) for name in ("am", "pm", "noon"))
DELETED = re.compile(f"{_phrase_pattern('deleted')}[.。]?", re.IGNORECASE)
OMITTED = re.compile(f".{{0,80}}{_phrase_pattern('omitted')}.{{0,12}}", re.IGNORECASE)
"""Text in place of an attachment that was not exported, such as "image omitted"."""
EDITED = re.compile(rf"\s*<[^<>]*{_phrase_pattern('edited')}[^<>]*>\s*$", re.IGNORECASE)
ATTACHED = re.compile(rf"\({_phrase_pattern('attached')}", re.IGNORECASE)
