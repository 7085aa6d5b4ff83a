"""MEME (arXiv 2605.12477): 100 episodes with changes that others follow from, deletions and exact recall.

Some questions are asked before the change and others after it. So each episode gives two conversations: ``.../before``
ends where the first are asked, and ``.../after`` where the others are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kg_memory.contrib.evaluation.datasets._files import read_json, require
from kg_memory.contrib.evaluation.datasets._records import malformed
from kg_memory.contrib.evaluation.datasets._sessions import Names, following, messages, moment
from kg_memory.contrib.evaluation.records import Conversation, Criterion, Dataset, Question
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput

FORM = "a JSON list of episodes with episode_id, sessions, before_questions and after_questions"
VARIANTS = ("filler32k", "nofiller")
_ROOTED = ("Cas", "Abs")
"""Their answers follow from a change of the episode's root: what tells of the root is evidence too."""
_DELETED = "Del"
_GONE = (
    "The user asked to delete this. The answer is right only if it says that it was deleted, or is not known, and does "
    "not tell the deleted value."
)
_UNCERTAIN = (
    "What this rested on has changed. The answer is right only if it says that it is uncertain or may have changed; "
    "it may tell what was so before. The old value as if it were still so is wrong."
)
_CHANGED = (
    "The expected answer follows from a change. The answer is right only if it gives the expected value as what is so "
    "now. The old value, both, or only what would be so if something changed, is wrong."
)


def load(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Return two conversations for each episode of a file, or of the file of *variant* in a folder.

    Raises: `InputError` if it is no such file.
    """
    variant = variant or VARIANTS[0]
    path = require(path, "meme", f"meme_{variant}.json, or the folder that it is in")
    path = require(path / f"meme_{variant}.json", "meme", f"meme_{variant}.json") if path.is_dir() else path
    episodes = read_json(path)
    if not isinstance(episodes, list):
        raise InputError(f"{path} holds no JSON list: give {FORM}")
    names, conversations = Names(), []
    for number, raw in enumerate(episodes, start=1):
        with malformed(path, number, FORM):
            name = names.unique(f"{raw.get('domain', 'meme')}-{raw['episode_id']}")
            conversations += [_conversation(raw, name, phase) for phase in ("before", "after")]
    return conversations


def _conversation(raw: Mapping[str, Any], name: str, phase: str) -> Conversation:
    asked = raw[f"{phase}_questions"]
    names = Names()
    episodes: list[EpisodeInput] = []
    told: dict[str, set[str]] = {}
    for session in raw["sessions"][: asked["position_after_session"] + 1]:
        thread = names.unique(str(session["session_id"]))
        at = following(moment(session["timestamp"]), episodes)
        said = dict(messages(session["conversation"], thread, at))
        episodes += said.values()
        for fact in session.get("gold_facts") or ():
            told.setdefault(fact["entity"], set()).update(_sources(fact, said))
    questions = []
    for place, entry in enumerate(asked["questions"], start=1):
        task = entry["task_type"]
        entities = [*entry.get("entity", ()), *([raw["root"]] if task in _ROOTED and "root" in raw else ())]
        gold = entry["gold_answer"] if "gold_answer" in entry else entry["expected_answer"]
        question = Question(
            id=str(place),
            text=entry["question"],
            category=task if phase == "after" else f"{task} before",
            answer=str(gold),
            evidence=frozenset().union(*(told.get(entity, ()) for entity in entities)),
            asked_at=moment(asked["timestamp"]),
            asker="user",
            answerable=phase == "before" or task != _DELETED,
        )
        questions.append(question)
    return Conversation(f"{name}/{phase}", episodes, questions)


def _sources(fact: Mapping[str, Any], said: Mapping[int, EpisodeInput]) -> set[str]:
    """Return the ids of the messages that tell *fact*: of its turn, or where that is not known of all from the user."""
    if (turn := said.get(fact.get("conveyed_in_turn", -1))) is not None:
        return {str(turn.source_id)}
    return {str(turn.source_id) for turn in said.values() if turn.speaker == "user"}


DATASET = Dataset(
    name="meme",
    title="MEME",
    licence="CC BY 4.0",
    source="https://huggingface.co/datasets/meme-benchmark/MEME",
    load=load,
    criteria=MappingProxyType(
        {
            "": Criterion(),
            "Cas": Criterion(strict=_CHANGED, lenient=_CHANGED),
            "Abs": Criterion(strict=_UNCERTAIN, lenient=_UNCERTAIN),
            "Del": Criterion(strict=_GONE, lenient=_GONE),
        }
    ),
    variants=VARIANTS,
)
