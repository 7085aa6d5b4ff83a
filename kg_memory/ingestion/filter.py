"""Decide which texts the model does not read: injections, greetings, repeated contexts, messages with little news."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from math import hypot
from operator import mul
from typing import Literal, get_args

from kg_memory.falkor.queries.episodes import PREVIOUS_STATUSES
from kg_memory.ingestion.records import EpisodeRecord
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import Vector, embed, fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import read_table
from kg_memory.text.context_markers import SUPPLIED, ZEPH_HEAD, Marker
from kg_memory.text.tokenise import find_all, replace_matches, says_nothing

PHATIC = "a greeting, thanks or the like: there is nothing in it to remember"
SUSPECT = "it looks like a prompt injection ({}): if it is harmless, read it with `kg-memory retry --skipped ID`"
BLOCK = "a version of a block, which is not read"
ECHO = "it only repeats a context of this memory: there is nothing new in it"
UNSURPRISING = "it differs little from the messages before it: surprise {:.3f}, see surprise_threshold"

LONGEST_TURN = 160
"""Characters above which a message is always read, however similar to the messages before it: see `docs/plans.md`."""
_ZEPH = re.compile(
    rf"^{re.escape(ZEPH_HEAD)}(?:- [^\n]*\(confidence: \d\.\d\d"
    r"(?:, (?:not reviewed|disputed|not confirmed by its words))?\)(?:\n|$))+",
    re.MULTILINE,
)
"""A context (prompt text of a memory) in Zeph's layout."""


def why_skipped(draft: Draft, settings: Settings) -> Flow[str | None]:
    """Return why the model must not read the episode, such as "it is a greeting", or None."""
    episode = draft.episode
    if episode.kind == "block":
        return BLOCK
    if not draft.pieces:
        return ECHO
    if is_suspect(episode, settings):
        return SUSPECT.format(", ".join(episode.flags))
    if settings.read_all or episode.kind != "message":
        return None
    people = {episode.speaker or "", *(message.speaker or "" for message in draft.previous)}
    words = " ".join("".join(piece.content for piece in draft.pieces).split())
    if says_nothing(words, people, _turns_before(draft)):
        return PHATIC
    return (yield from _lack_of_surprise(draft, settings))


def is_suspect(episode: EpisodeRecord, settings: Settings) -> bool:
    """Return whether the episode looks like a prompt injection, so that the model must not read it."""
    is_trusted = not {"*", episode.source}.isdisjoint(settings.trusted_sources)
    return bool(episode.flags) and not settings.read_all and not is_trusted


def _lack_of_surprise(draft: Draft, settings: Settings) -> Flow[str | None]:
    """Return the reason to skip a message that means nearly the same as those before it; None to process it."""
    if settings.surprise_threshold == 0 or len(draft.episode.text) > LONGEST_TURN or not draft.previous:
        return None
    lines = [draft.episode.line, *(message.line for message in draft.previous)]
    own, *before = yield from embed(lines)  # `save` stores the first vector
    distance = surprise(own, before)
    if distance >= settings.surprise_threshold:
        return None
    episode = draft.episode
    latest = yield from fetch(
        PREVIOUS_STATUSES,
        id=episode.id,
        thread_key=episode.thread_key,
        at=episode.at,
        created_at=episode.created_at,
        limit=settings.max_skip_turns,
    )
    many = len(latest) == settings.max_skip_turns and all(row["status"] == "skipped" for row in latest)
    return None if many else UNSURPRISING.format(distance)


def surprise(own: Vector, before: Sequence[Vector]) -> float:
    """Return the cosine distance of *own* from the average of *before*, 0 (same meaning) to 2 (opposite)."""
    total = [sum(numbers) for numbers in zip(*before, strict=True)]
    lengths = hypot(*own) * hypot(*total)
    return 1 - sum(map(mul, own, total)) / lengths if lengths else 1.0


def _turns_before(draft: Draft) -> list[str]:
    speaker = draft.episode.speaker_name
    if speaker is None:
        return [message.content for message in draft.previous[-1:]]
    turns = takewhile(lambda message: message.speaker != speaker, reversed(draft.previous))
    return [message.content for message in turns]


def without_contexts(content: str) -> str:
    """Return *content* with each context of this memory replaced by spaces; its length stays the same."""
    for mark in SUPPLIED:
        content = _blank_sections(content, mark)
    return _ZEPH.sub(lambda match: " " * len(match[0]), content)


def _blank_sections(content: str, mark: Marker) -> str:
    parts: list[str] = []
    offset = 0
    while (start := content.find(mark.begin, offset)) >= 0:
        end = content.find(mark.end, start + len(mark.begin))
        if end < 0:
            break
        end += len(mark.end)
        # As many spaces keep the offsets of the other text.
        parts += [content[offset:start], " " * (end - start)]
        offset = end
    return "".join((*parts, content[offset:]))


# Known patterns of prompt injection: text that gives orders to the model that reads it
#
# The patterns catch common attacks only. The actual protection is that prompts fence all data and contexts escape it.
# They avoid false alarms: "remember that ..." is an ordinary message to a memory.

Flag = Literal[
    "override", "persona", "prompt_leak", "secrecy", "exfiltration", "forged_turn", "forged_fence", "hidden_text"
]
FLAGS: tuple[Flag, ...] = get_args(Flag)


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile *patterns* into one that matches where any of them does; ``%name%`` stands for ``_WORDS[name]``."""
    groups: dict[str, list[str]] = {}
    for pattern in patterns:
        for name, words in _WORDS.items():
            pattern = pattern.replace(f"%{name}%", words)  # noqa: PLW2901
        lead = next((lead for lead in (r"\b", r"^\W{0,6}", "^") if pattern.startswith(lead)), "")
        foreign = not lead and not pattern.removeprefix("(?:")[0].isascii()
        groups.setdefault(r"(?![\x00-\x7f])" if foreign else lead, []).append(pattern.removeprefix(lead))
    return re.compile("|".join(rf"{lead}(?:{'|'.join(group)})" for lead, group in groups.items()), re.MULTILINE)


HIDDEN_TEXT = re.compile(
    "(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0000-\U000e007f]{4,}"  # tag characters outside flag emojis
    "|[\u200b\u200c\u200d\u2060-\u2064\ufeff]{12,}"
    "|[\U000e0100-\U000e01ef]{4,}"
    "|[\u202d\u202e][^\\W\\d_\u0590-\u08ff]{2}"  # Latin letters in reversed order
)
_INJECTIONS = read_table(__package__, "injections.toml")
_WORDS: Mapping[str, str] = _INJECTIONS["words"]
_PATTERNS: Mapping[Flag, re.Pattern[str]] = {flag: _any(each) for flag, each in _INJECTIONS["patterns"].items()}

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_SPACED = re.compile(r"(?<!\w)(?:[^\W\d_][ \t.*_-]){2,}[^\W\d_](?!\w)")
_SEPARATORS = re.compile(r"[ \t.*_-]")
_FOREIGN = "авекмнорстухіјѕһԁԛԝαβεηικνορτυχ"
_LOOKALIKE = re.compile(f"[{_FOREIGN}]")
_LOOKALIKES = str.maketrans(_FOREIGN, "abekmhopctyxijshdqwabeniknoptux")


def injection_flags(text: str) -> tuple[Flag, ...]:
    """Return the kinds of prompt injection found in *text*: ``("override",)``; empty for none."""
    plain = _readable(text)
    texts = dict.fromkeys((plain, plain.translate(_LOOKALIKES) if _LOOKALIKE.search(plain) else plain))
    flags = {name for name, pattern in _PATTERNS.items() if any(any(find_all(pattern, each)) for each in texts)}
    if any(find_all(HIDDEN_TEXT, text)):
        flags.add("hidden_text")
    return tuple(flag for flag in FLAGS if flag in flags)


def _readable(text: str) -> str:
    """Normalise *text* for pattern matching; spaced letters are joined: ``"i g n o r e" -> "ignore"``."""
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold().replace("’", "'")
    text = replace_matches(_SPACED, lambda match: _SEPARATORS.sub("", match[0]), text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
