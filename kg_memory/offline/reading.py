"""Read an episode, in the language that it is written in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kg_memory.offline.chinese import read_chinese
from kg_memory.offline.corrections import TAKES_BACK, corrected
from kg_memory.offline.mentions import mentions
from kg_memory.offline.scene import Reading, Scene, Statement
from kg_memory.offline.spans import PERSON, Mention
from kg_memory.offline.statements import read_english

_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]{2,}")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
ASSISTANTS = frozenset({"assistant", "ai", "ai assistant", "bot", "chatbot", "system", "tool", "助手", "机器人"})
"""Speakers whose messages state no facts."""
MOST_NAMES = 10
"""Names that are kept of an assistant's message."""
_RECALLED = 4
"""How many of the messages before a correction may be what it corrects."""
LONGEST = 60_000
"""Characters that are read; the caller splits longer texts."""


def read_episode(
    episode: Mapping[str, Any], previous: Sequence[Mapping[str, Any]], known: Sequence[str] = ()
) -> Reading:
    """Return what a message or text mentions and states; *previous* serves to tell who is meant."""
    content = _CODE.sub(lambda code: " " * len(code[0]), episode["content"][:LONGEST])
    speaker = episode.get("speaker") or None
    scene = _scene(speaker, previous, known)
    reading = _read(content, scene)
    if TAKES_BACK.search(content):
        reading = corrected(content, reading, _said_before(previous, scene))
    if speaker is not None and speaker.casefold() in ASSISTANTS:
        # What an assistant explains and advises is about nobody: its names alone are kept.
        return Reading(reading.mentions[:MOST_NAMES], ())
    return reading


def _read(content: str, scene: Scene) -> Reading:
    return read_chinese(content, scene) if is_chinese(content) else read_english(content, scene)


def _said_before(previous: Sequence[Mapping[str, Any]], scene: Scene) -> list[tuple[Statement, str]]:
    """Return what the speaker stated last, each with the message that states it."""
    own = [one["content"][:2000] for one in previous[-_RECALLED:] if one.get("speaker") == scene.speaker]
    return [(one, content) for content in own for one in _read(content, scene).statements]


def read_fields(
    episode: Mapping[str, Any], previous: Sequence[Mapping[str, Any]], entities: Sequence[Mapping[str, Any]]
) -> Reading:
    """Return what an episode states, knowing what it calls its *entities*."""
    return read_episode(episode, previous, [name for one in entities for name in called(one)])


def called(entity: Mapping[str, Any]) -> Sequence[str]:
    """Return the names by which the episode mentions *entity*: those to look for, whatever it is known as elsewhere."""
    names: Sequence[str] = entity.get("called") or [entity["name"]]
    return names


def is_chinese(text: str) -> bool:
    """Return whether *text* is mainly Chinese."""
    return len(_HAN.findall(text)) > len(_LATIN.findall(text))


def _scene(speaker: str | None, previous: Sequence[Mapping[str, Any]], known: Sequence[str]) -> Scene:
    others = [one["speaker"] for one in previous if one.get("speaker") and one["speaker"] != speaker]
    listener = others[-1] if others else None
    names = tuple(dict.fromkeys(name for name in (speaker, *others, *known) if name))
    return Scene(speaker, listener, names, _last_person(previous, {speaker, listener}))


def _last_person(previous: Sequence[Mapping[str, Any]], present: set[str | None]) -> Mention | None:
    """Return the person whom "he" or "she" means when the message itself names none: the last that was named."""
    for message in reversed(previous[-2:]):
        if is_chinese(message["content"]):
            return None
        people = [
            one
            for one in mentions(message["content"][:2000], message.get("speaker"), ())
            if one.type == PERSON and one.name not in present
        ]
        if people:
            return people[-1]
    return None
