"""Questions and their answers: in a conversation, a turn that answers the one just before it is shown with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kg_memory.falkor.queries.episodes import TURNS_BESIDE
from kg_memory.falkor.rows import Row
from kg_memory.models.graph import Asked, Episode
from kg_memory.retrieval.plugins import Instants
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import SESSION_GAP
from kg_memory.text.sentences import content_words, split_sentences
from kg_memory.text.small_talk import is_filler

LONGEST_TURN, LONGEST_QUESTION = 2000, 160
"""The characters of a turn whose question is looked for, and of a question that its answer carries, at most."""
SPARE = 5
"""The turns behind the best that are looked at, in the place of those that say nothing."""
Beside = Mapping[str, Row]
"""The turns of others just ``before`` and ``after`` some messages, by their ids."""


def read_turns(ids: Sequence[str], instants: Instants) -> Flow[Beside]:
    """Return what others said just before and after the messages of *ids*, as far as it was known then."""
    if not ids:
        return {}
    params = {"believed_at": instants.believed_at, "gap": SESSION_GAP, "length": LONGEST_TURN}
    rows = yield from read(TURNS_BESIDE, ids=list(ids), **params)
    return {row["id"]: row for row in rows}


def find_fillers(contents: Mapping[str, str], beside: Beside, instants: Instants) -> Flow[set[str]]:
    """Return which messages, by their ids, say nothing: "Noted.", and "Sure!" where nothing was asked or proposed.

    The turns *beside* them are read where they are not known.
    """
    fillers = {id_ for id_, content in contents.items() if is_filler(content, None)}
    unsure = [id_ for id_, content in contents.items() if id_ not in fillers and is_filler(content, "")]
    known = {**beside, **(yield from read_turns([id_ for id_ in unsure if id_ not in beside], instants))}
    before = {id_: known[id_]["before"]["content"] for id_ in unsure if id_ in known and known[id_]["before"]}
    return fillers | {id_ for id_, turn in before.items() if is_filler(contents[id_], turn)}


def pair_turns(episodes: Iterable[Episode], beside: Beside) -> dict[str, Asked]:
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
