"""What was found as a text for a prompt, purely: dated facts, entities, communities and lines of conversation.

Each thing is one line, and no stored text can forge a line or close a section.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from html import escape
from math import ceil

from kg_memory.model import Community, Entity, Episode, Fact, Found, Precision, Remark
from kg_memory.retrieval.state import KINDS, Kind
from kg_memory.words import tokens

HEADINGS: Mapping[Kind, str] = {
    "facts": "Facts, each with the time in which it holds; of an event, that is when it takes place. [sources]",
    "entities": "Who and what they are about.",
    "communities": "Groups of things that belong together.",
    "episodes": "What was said, word for word. [source] (time)",
}
TAGS: Mapping[Kind, str] = {
    "facts": "FACTS", "entities": "ENTITIES", "communities": "COMMUNITIES", "episodes": "EPISODES",
}  # fmt: skip
SHARES: Mapping[Kind, float] = {"facts": 4.0, "entities": 1.5, "communities": 0.5, "episodes": 4.0}
"""How fast each kind takes its turn to fill the budget."""
LONGEST_TEXT = 500
"""Characters of one text; what is longer is told by the stretch that fits the question best."""
SEARCHED = 100_000
LONGEST_REFERENCE = 32
"""Characters of a source's own id that stand behind each line; a UUID would cost more than it tells."""
_LAST_NOON = datetime(9999, 12, 31, 12, tzinfo=UTC)
_SEASONS = ("winter", "spring", "summer", "autumn")
_PIECE = re.compile(r".{1,120}(?:\s|$)|.{1,120}", re.DOTALL)
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uac00-\ud7a3\uf900-\uffef\U00010000-\U0010ffff]"
)
_WIDE = re.compile("[^\x00-\x7f]")


def render(found: Found, max_tokens: int) -> str:
    """Return the best lines of *found* that fit into about *max_tokens*; "" when none does.

    A kind ends at its first line that does not fit, so no line stands in for a better one.
    """
    wanted = set(tokens(found.question))
    lines: dict[Kind, Iterator[str]] = {
        "facts": (fact_line(each, wanted) for each in found.facts),
        "entities": (entity_line(each, wanted) for each in found.entities),
        "communities": (community_line(each, wanted) for each in found.communities),
        "episodes": (episode_line(each, wanted) for each in found.episodes),
    }
    kept: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
    room = max_tokens
    while lines:
        kind = min(lines, key=lambda one: (len(kept[one]) + 1) / SHARES[one])
        line = next((each for each in lines[kind] if each not in kept[kind]), None)
        cost = estimate(line or "") + (0 if kept[kind] else _section_cost(kind))
        if line is None or cost > room:
            del lines[kind]
        else:
            kept[kind].append(line)
            room -= cost
    return "\n\n".join(_section(kind, kept[kind]) for kind in KINDS if kept[kind])


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, for no tokenizer in particular; rather too many than too few."""
    dense = len(_DENSE.findall(text))
    wide = len(_WIDE.findall(text)) - dense
    return ceil((len(text) - dense - wide) / 3.5 + wide / 2 + dense * 1.2) + 1


def fact_line(fact: Fact, wanted: set[str]) -> str:
    """Return a fact with the time in which it holds and what states it."""
    references = ", ".join(dict.fromkeys(_reference(each.source_id, each.episode) for each in fact.sources))
    line = f"- {told(fact.sentence, wanted)} ({held(fact)})"
    return f"{line} [{references}]" if references else line


def entity_line(entity: Entity, wanted: set[str]) -> str:
    """Return an entity with what is known of it."""
    return f"- {told(entity.name)} ({told(entity.type)})" + (entity.summary and f": {told(entity.summary, wanted)}")


def community_line(community: Community, wanted: set[str]) -> str:
    """Return a community with what it is about."""
    return f"- {told(community.name)}" + (community.summary and f": {told(community.summary, wanted)}")


def episode_line(episode: Episode, wanted: set[str]) -> str:
    """Return an episode as a line of conversation."""
    speaker = f"{told(episode.speaker)}: " if episode.speaker else ""
    reference = _reference(episode.source_id, episode.id)
    line = f"- [{reference}] ({day(episode.at)}) {speaker}{told(episode.content, wanted)}"
    return line + "".join(f" ({mark})" for mark in dict.fromkeys(map(_mark, episode.remarks)))


def told(text: str, wanted: set[str] = frozenset(), length: int = LONGEST_TEXT) -> str:  # type: ignore[assignment]
    """Return *text* on one line and escaped, or a stretch of it when it is too long."""
    visible = "".join(" " if unicodedata.category(char) in _BREAKS else char for char in text[:SEARCHED])
    return escape(excerpt(" ".join(visible.split()), wanted, length), quote=False)


def excerpt(text: str, wanted: set[str], length: int) -> str:
    """Return about *length* characters of *text*, around where most of the *wanted* words are."""
    if len(text) <= length:
        return text
    pieces = [match.span() for match in _PIECE.finditer(text)]
    hits = [len(wanted.intersection(tokens(text[start:end]))) for start, end in pieces]
    wide = max(length // 120, 1)
    best = max(range(len(pieces)), key=lambda place: (sum(hits[place : place + wide]), -place))
    start = pieces[best][0]
    end = min(start + length, len(text))
    start = min(start, max(end - length, 0))
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")


def held(fact: Fact) -> str:
    """Return when a fact was so, as people write it; a whole day is that day."""
    start, end = fact.valid_at, fact.invalid_at
    exact = {fact.precision, fact.end_precision} <= {"instant", "day"}
    if exact and start and end and start == _midnight(start) and end - start == timedelta(days=1):
        return day(start)
    known = f"by {day(fact.known_from)}" if fact.known_from else "date unknown"
    begin = coarse(start, fact.precision) if start else known
    until = coarse(end, fact.end_precision) if end else "now"
    return f"{begin} - {until}" + ("" if fact.reviewed else ", not reviewed")


def coarse(moment: datetime, precision: Precision) -> str:
    """Return a date only as exactly as it is known; a year, say, may have begun in another time zone."""
    if precision != "instant" and moment < _LAST_NOON:
        moment = _midnight(moment + timedelta(hours=12))
    if precision in ("instant", "day", "week"):
        return f"week of {day(moment)}" if precision == "week" else day(moment)
    if precision == "season":
        return f"{_SEASONS[(moment.month % 12) // 3]} {moment:%Y}"
    return f"{moment:%Y-%m}" if precision == "month" else f"{moment:%Y}"


def _mark(remark: Remark) -> str:
    """Return a remark as it stands behind a line, with where to read on."""
    other = f"[{_reference(remark.by_source_id, remark.by)}]" if remark.by else ""
    if remark.kind == "contradicts":
        return f"contradicts {other}"
    what = {"ended": "no longer so", "refused": "not accepted"}.get(remark.kind, remark.kind)
    since = f" since {coarse(remark.at, remark.precision)}" if remark.at else ""
    return f"{what}{since}" + (f": see {other}" if other else "")


def day(moment: datetime) -> str:
    """Return a date, with the time of day where it has one."""
    return f"{moment:%Y-%m-%d}" if moment == _midnight(moment) else f"{moment:%Y-%m-%d %H:%M}"


# Control characters, marks that turn the direction of writing, and line and paragraph separators.
_BREAKS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _reference(source_id: str | None, episode: str) -> str:
    """Return how an episode is referred to: by the source's own id where that is short, else by ours, shortened."""
    return told(source_id) if source_id and len(source_id) <= LONGEST_REFERENCE else episode[:8]


def _section(kind: Kind, lines: list[str]) -> str:
    return "\n".join((HEADINGS[kind], f"<{TAGS[kind]}>", *lines, f"</{TAGS[kind]}>"))


def _section_cost(kind: Kind) -> int:
    return estimate(_section(kind, [])) + 1
