"""Questions and their answers: in a conversation, a turn that answers the one just before it is shown with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kg_memory.falkor.rows import Row
from kg_memory.models.graph import Asked, Episode
from kg_memory.text.sentences import content_words, split_sentences
from kg_memory.text.small_talk import is_filler

LONGEST_TURN, LONGEST_QUESTION = 2000, 160
"""The characters of a turn whose question is looked for, and of a question that its answer carries, at most."""
SPARE = 5
"""The turns behind the best that are looked at, in the place of those that say nothing."""


def find_fillers(episodes: Mapping[str, Row]) -> set[str]:
    """Return which *episodes* say nothing: "Noted.", and "Sure!" where nothing was asked or proposed.

    They are rows of `queries.winners` by id.
    """
    messages = {id_: row for id_, row in episodes.items() if row["episode"]["kind"] == "message"}
    fillers = set()
    for id_, row in messages.items():
        content, before = row["episode"]["content"], row["before"]
        if is_filler(content, None) or (before and is_filler(content, before["content"])):
            fillers.add(id_)
    return fillers


def pair_turns(episodes: Iterable[Episode], beside: Mapping[str, Row]) -> dict[str, Asked]:
    """Return the questions that turns answer, by the ids of these: *episodes*, and the turns that answer them."""
    pairs: dict[str, Asked] = {}
    for episode in episodes:
        row = beside.get(episode.id, {})
        before, after = row.get("before"), row.get("after")
        if before and (question := find_question(before["content"])):
            names = {"episode": before["id"], "source_id": before["source_id"], "speaker": before["speaker"]}
            pairs[episode.id] = Asked(question=question, **names)
        if after and (question := find_question(episode.content)):
            names = {"episode": episode.id, "source_id": episode.source_id, "speaker": episode.speaker}
            pairs[after["id"]] = Asked(question=question, **names)
    return pairs


def find_question(content: str) -> str:
    """Return the last question of a turn that ends with one, if it asks about something; else ""."""
    asking = [sentence.text for sentence in split_sentences(content)[-2:] if sentence.asks]
    if not asking or not content_words(asking[-1]) or len(asking[-1]) > LONGEST_QUESTION:
        return ""
    return asking[-1]
