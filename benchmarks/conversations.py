"""Load the conversations of LoCoMo and BEAM, with those questions that name evidence turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kg_memory.contrib.evaluation.datasets import assistants
from kg_memory.contrib.evaluation.datasets.people import load_locomo
from kg_memory.contrib.evaluation.records import Conversation


def turn(source_id: str | None) -> str:
    """Return the name of a turn in its conversation: the part of its source id after the last slash."""
    return (source_id or "").rpartition("/")[2]


def turn_names(conversation: Conversation) -> list[str]:
    """Return the names of the turns, in order."""
    return [turn(episode.source_id) for episode in conversation.episodes]


def locomo_conversations(path: Path) -> list[Conversation]:
    """Return the conversations in a LoCoMo file, with the questions of categories 1 to 4 that have evidence."""
    return _with_evidence(load_locomo(path))


def beam_conversations(data: Path, wanted: str | None = None) -> list[Conversation]:
    """Return the BEAM chats in a folder, with questions that have evidence; *wanted* selects names, as in "1,2"."""
    names = {assistants.beam_name(chat) for chat in beam_chats(data, wanted)}
    return _with_evidence(chat for chat in assistants.load_beam(data) if chat.name in names)


def beam_chats(data: Path, wanted: str | None = None) -> list[Path]:
    """Return the folders of the BEAM chats in *data*, sorted; *wanted* selects names, as in "1,2"."""
    names = wanted.split(",") if wanted else None
    return [chat for chat in assistants.beam_chats(data) if names is None or chat.name in names]


def _with_evidence(conversations: Iterable[Conversation]) -> list[Conversation]:
    found = []
    for conversation in conversations:
        asked = [question for question in conversation.questions if question.evidence and question.answerable]
        named = [replace(question, evidence=frozenset(map(turn, question.evidence))) for question in asked]
        found.append(replace(conversation, questions=named))
    return found
