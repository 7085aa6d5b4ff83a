"""Needle in a haystack: generated small talk with hidden facts, at several depths and lengths, with exact answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kg_memory.contrib.evaluation.records import Conversation, Criterion, Dataset, Question
from kg_memory.contrib.evaluation.systems import dated_line
from kg_memory.errors import InputError
from kg_memory.models.graph import EpisodeInput
from kg_memory.text.tokenise import estimate_tokens
from kg_memory.validation import validate_choice

LENGTHS = {"4k": 4_000, "16k": 16_000, "64k": 64_000}
DEPTHS = (0, 25, 50, 75, 100)
"""Positions of the needles, in percent of the conversation before them."""
VARIANTS = ("all", *LENGTHS)
PER_THREAD = 20
START = datetime(2024, 1, 8, 9, tzinfo=UTC)
_ASKED_FROM = 2
"""The number of needles at each depth."""

_THINGS = (
    "greenhouse|boat shed|archive room|bike cellar|music studio|wine cupboard|garden gate|"
    "server cabinet|tool chest|attic hatch|mail box|piano room|pottery kiln|sauna hut"
).split("|")
_OWNERS = ("Mirela", "Tobias", "Anneke", "Rashid", "Solveig", "Kwame", "Yuki", "Ines")
_SPEAKERS = ("Mara", "Jonas")
_OPENINGS = ("Honestly,", "By the way,", "Well,", "You know,", "Today", "As usual,", "Funny enough,", "Again")
_SUBJECTS = ("the neighbour", "my sister", "our old teacher", "the baker", "a colleague", "the postman", "my cousin")
_VERBS = ("talked about", "complained about", "praised", "forgot", "asked about", "joked about", "worried about")
_TOPICS = (
    "the weather|the bus|a new recipe|the football match|the garden|an old film|the traffic|"
    "a long novel|the market|the holidays|the stairs|a noisy street|the tomatoes|a lost umbrella"
).split("|")
_ENDINGS = ("and I had to laugh", "but nobody listened", "for the whole evening", "which surprised me", "once more")


def load_niah(path: Path | None, variant: str | None = None) -> list[Conversation]:
    """Generate conversations of several lengths with hidden facts; *variant* determines the text."""
    if path is not None:
        raise InputError("niah needs no file, as it is generated: leave out --data")
    names = LENGTHS if variant in (None, "all") else [validate_choice("the variant of niah", variant, VARIANTS)]
    return [_conversation(name, LENGTHS[name]) for name in names]


def _conversation(name: str, tokens: int) -> Conversation:
    """Generate a conversation with about *tokens* tokens of small talk, hidden facts, and questions about them."""
    draw = random.Random(f"niah {name}")  # noqa: S311 - the same text each time
    needles = list(_needles(draw, len(DEPTHS) * _ASKED_FROM + 1))
    told, absent = needles[:-1], needles[-1]
    hay = list(_small_talk(draw, tokens))
    places: dict[int, list[int]] = {}
    for number in range(len(told)):
        places.setdefault(round(DEPTHS[number % len(DEPTHS)] / 100 * len(hay)), []).append(number)
    texts: list[tuple[str, int | None]] = []
    for place in range(len(hay) + 1):
        texts += [(told[number][0], number) for number in places.get(place, ())]
        texts += [(text, None) for text in hay[place : place + 1]]
    episodes = [_episode(text, place, name) for place, (text, _) in enumerate(texts)]
    at = {number: episodes[place].source_id or "" for place, (_, number) in enumerate(texts) if number is not None}
    asked_at = START + timedelta(days=len(episodes) // PER_THREAD + 1)
    questions = []
    for number, (_, question, answer) in enumerate(told):
        category = f"{name}, depth {DEPTHS[number % len(DEPTHS)]} %"
        found = Question(f"{number + 1}", question, category, answer, frozenset({at[number]}), asked_at=asked_at)
        questions.append(found)
    nothing = Question("absent", absent[1], f"{name}, absent", None, asked_at=asked_at, answerable=False)
    return Conversation(f"niah-{name}", episodes, [*questions, nothing])


def _needles(draw: random.Random, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield *count* facts to hide in a conversation, each as (sentence, question, answer).

    Some facts have the same owner or the same thing (``Yuki's sauna hut``), so that one word is not enough to find a
    fact.
    """
    for owner, thing in draw.sample([(owner, thing) for owner in _OWNERS for thing in _THINGS], count):
        code = f"{draw.randrange(1000, 9999)}-{draw.choice('ABCDEFGHKLMNP')}{draw.randrange(10, 99)}"
        text = f"The code of {owner}'s {thing} is {code}, please remember it."
        yield text, f"What is the code of {owner}'s {thing}?", code


def _small_talk(draw: random.Random, tokens: int) -> Iterator[str]:
    size = 0
    while size < tokens:
        text = " ".join(draw.choice(words) for words in (_OPENINGS, _SUBJECTS, _VERBS, _TOPICS, _ENDINGS)) + "."
        size += estimate_tokens(dated_line(_episode(text, 0, "")))
        yield text


def _episode(text: str, place: int, name: str) -> EpisodeInput:
    thread, minute = divmod(place, PER_THREAD)
    return EpisodeInput(
        content=text,
        speaker=_SPEAKERS[place % 2],
        at=START + timedelta(days=thread, minutes=minute),
        thread=f"niah-{name}/{thread + 1}",
        source_id=f"niah-{name}/{place + 1}",
    )


NIAH = Dataset(
    name="niah",
    title="Needle in a haystack",
    licence="generated by kg-memory, Apache-2.0",
    source="generated: no file is needed",
    load=load_niah,
    criteria={"": Criterion("rules")},
    variants=VARIANTS,
)
