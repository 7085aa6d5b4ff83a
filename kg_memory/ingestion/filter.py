"""Filter out episodes not to read: attacks, greetings, repetitions of the memory, turns without surprise (C51)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import hypot
from operator import mul

from kg_memory.errors import EmbeddingError
from kg_memory.ingestion.records import EpisodeRecord
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import Vector, embed
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.context_markers import SUPPLIED, ZEPH_HEAD, Marker
from kg_memory.text.identity import canonical_sentence

PHATIC = "a greeting, thanks or the like: there is nothing in it to remember"
SUSPECT = "it looks like a prompt injection ({}): read it by `kg-memory retry --skipped` and its id, if it is none"
ECHO = "it only repeats what the memory supplied: there is nothing new in it"
UNSURPRISING = "it differs little from the turns before it (surprise {:.3f}): it is not read"

LONGEST = 120
"""Characters; a longer text is no greeting."""
LONGEST_TURN = 160
"""Characters; a longer turn is read however little it surprises: see `docs/plans.md`."""
# Not words of assent and denial: as an answer to a question they state something.
_PHRASES = """
hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day|night)|morning
|welcome back|how are (?:you|things)(?: doing)?(?: today)?|how (?:is|s) it going|what s up|whats up|long time no see
|thanks|thank you|thx|ty|cheers|many thanks|much appreciated|(?:i )?(?:really )?appreciate it
|thanks a (?:lot|ton|million)
|you re (?:very |most )?welcome|you are (?:very |most )?welcome|(?:it s |it was )?my pleasure|no problem|no worries
|don t mention it|any ?time
|bye|goodbye|good bye|bye bye|see (?:you|ya)(?: later| soon| around)?|take care|stay safe|(?:talk|chat|catch you) soon
|have a (?:nice|good|great|lovely|wonderful) (?:day|evening|night|weekend|week|one|time)
|(?:a ?)?(?:ha ?){1,9}|(?:he){2,9}|lol|rofl|lmao
|你好|您好|大家好|嗨|哈喽|早|早安|早上好|上午好|中午好|下午好|晚上好|晚安|好久不见
|谢谢|谢谢[你您啦了]|多谢|感谢|十分感谢|非常感谢|辛苦了|不客气|不用谢|别客气|没关系|再见|拜拜|回头见|保重|哈{2,9}|呵{2,9}|嘻{2,9}
""".replace("\n", "")
_ADDED = "there|all|everyone|everybody|guys|team|folks|again|so much|very much|a lot|you too|and|so|oh|well|then|now"
_PHATIC = re.compile(rf"(?:(?:{_PHRASES}|{_ADDED})(?:\s+|$))+")
_ONLY_ADDED = re.compile(rf"(?:(?:{_ADDED})(?:\s+|$))*")
_ANSWERS = frozenset("👍👎👌🆗✅✔☑❌✖❎🙅🙆")
"""Pictures that say yes or no."""
_ZEPH = re.compile(
    rf"^{re.escape(ZEPH_HEAD)}(?:- [^\n]*\(confidence: \d\.\d\d(?:, not reviewed)?\)(?:\n|$))+", re.MULTILINE
)
"""A context in the layout of Zep."""


def why_skipped(draft: Draft, settings: Settings) -> Flow[str | None]:
    """Return why the episode is not to be read, if it is not.

    Only a message is left out because it says nothing, or nothing new.
    """
    episode = draft.episode
    if not draft.pieces:
        return ECHO
    if is_suspect(episode, settings):
        return SUSPECT.format(", ".join(episode.flags))
    if settings.read_all or episode.kind != "message":
        return None
    people = {episode.speaker or "", *(message.speaker or "" for message in draft.previous)}
    words = " ".join("".join(piece.content for piece in draft.pieces).split())
    if says_nothing(words, people):
        return PHATIC
    reason = yield from _lack_of_surprise(draft, settings)
    return reason


def count_skips(window: Sequence[Draft], settings: Settings) -> Flow[list[Draft]]:
    """Return the drafts of *window*, received in this order, with how many were skipped before each once it is read.

    That counts those of the window too, of one thread in the order of time; so all are read as if one by one.
    """
    if settings.surprise_threshold == 0:
        return list(window)
    try:
        yield from embed([draft.episode.line for draft in window])
    except EmbeddingError:
        return list(window)  # each episode fails by itself in its turn
    drafts: list[Draft] = []
    last: dict[str, tuple[int, int]] = {}
    for received in window:
        thread, at = received.episode.thread_key, received.episode.at
        before, skips = last.get(thread, (at, received.skips))
        draft = received.with_records(skips=skips if before <= at else received.skips)
        drafts.append(draft)
        skipped = draft.status == "skipped" or (yield from why_skipped(draft, settings)) is not None
        last[thread] = at, draft.skips + 1 if skipped else 0
    return drafts


def is_suspect(episode: EpisodeRecord, settings: Settings) -> bool:
    """Return whether the episode has flags (C13), and neither its source is trusted nor a person has it read."""
    if settings.read_all or not episode.flags:
        return False
    return {"*", episode.source}.isdisjoint(settings.trusted_sources)


def _lack_of_surprise(draft: Draft, settings: Settings) -> Flow[str | None]:
    """Return how little the turn differs from those before it, if it is to be skipped; not many in a row are."""
    if settings.surprise_threshold == 0 or len(draft.episode.content) > LONGEST_TURN:
        return None
    if not draft.previous or draft.skips >= settings.max_skip_turns:
        return None
    lines = [draft.episode.line, *(message.line for message in draft.previous)]
    own, *before = yield from embed(lines)  # its own vector is stored when it is saved
    distance = surprise(own, before)
    return UNSURPRISING.format(distance) if distance < settings.surprise_threshold else None


def surprise(own: Vector, before: Sequence[Vector]) -> float:
    """Return how far a vector lies from the average of those *before* it: 1 less their cosine, from 0 to 2."""
    total = [sum(numbers) for numbers in zip(*before, strict=True)]
    lengths = hypot(*own) * hypot(*total)
    return 1 - sum(map(mul, own, total)) / lengths if lengths else 1.0


def says_nothing(content: str, people: Iterable[str] = ()) -> bool:
    """Return whether *content* is but a greeting, thanks, a farewell or laughter, perhaps to one of *people*."""
    if len(content) > LONGEST or not _ANSWERS.isdisjoint(content):
        return False
    text = canonical_sentence(content)
    if not text:
        return True
    names = {part for name in map(canonical_sentence, people) for part in (name, *name.split()[:1])}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    text = " ".join(text.split())
    return bool(_PHATIC.fullmatch(text)) and not _ONLY_ADDED.fullmatch(text)


def without_contexts(content: str) -> str:
    """Return *content* with spaces for each character of a context in it, so that all else keeps its place.

    A context that the memory supplied is recognised by its marks, to the letter; one in other words is not.
    """
    for mark in SUPPLIED:
        content = _without(content, mark)
    return _ZEPH.sub(lambda match: " " * len(match[0]), content)


def _without(content: str, mark: Marker) -> str:
    parts: list[str] = []
    place = 0
    while (start := content.find(mark.begin, place)) >= 0:
        end = content.find(mark.end, start + len(mark.begin))
        if end < 0:
            break
        end += len(mark.end)
        parts += [content[place:start], " " * (end - start)]
        place = end
    return "".join((*parts, content[place:]))
