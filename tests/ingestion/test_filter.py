"""Greetings, thanks and turns without surprise: what is not asked about, and what must be."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.errors import SettingsError
from kg_memory.ingestion.filter import LONGEST_TURN, surprise
from kg_memory.models.graph import EpisodeStatus
from kg_memory.settings import Settings
from kg_memory.text.small_talk import LONGEST, is_filler, says_nothing
from tests.ingestion.conftest import Open
from tests.scripted import HashEmbeddings, Scripted

PEOPLE = ("Ann Lee", "Bob", "王芳")
AT = "2024-05-01T10:00:00Z"


@pytest.mark.parametrize(
    "content",
    [
        "Hi!", "hello there 👋", "Good morning, everyone! How are you today?", "Hey Bob, how's it going?", "Thanks!",
        "Thank you so much, Ann!", "THANKS A LOT", "You’re very welcome, Ann Lee", "Bye! Take care.", "See you soon",
        "Have a great weekend!", "hahaha", "ha ha ha", "😂😂", "...", ";)", "你好！", "大家好，早上好。", "谢谢你，王芳", "哈哈哈",
        "不客气，再见", "Ｔｈａｎｋｓ！", "\u202eThanks", "Gotta run, bye!", "Sounds great!", "Wow, that's so cool, Bob!", "Nice one!",
        "Ttyl, take care!", "Thanks for your help, I'm here for you!", "So good to hear that. Talk to you later!", "太好了！",
    ],
)  # fmt: skip
def test_a_greeting_or_thanks_says_nothing(content: str) -> None:
    assert says_nothing(content, PEOPLE)


@pytest.mark.parametrize(
    "content",
    [
        "yes", "No.", "ok", "Sure!", "👍", "Ann", "so", "and then", "Hi Oslo", "Thanks, I moved to Oslo.", "See you tomorrow",
        "Thank you for the book", "Good morning from Rome", "Thanks Cy", "How are you and your sister?", "Merci", "42",
        "Sounds like a plan", "Same here!", "That was great", "Sounds great, see you on Friday!", "I gotta run a marathon",
        "Great news: I moved", "Good to hear from Rome", "Yes, sounds great!", "Agreed!", "早上好，我在巴黎", "谢谢你的书", "好的", "是", "I appreciate it when it rains", "ha" * LONGEST, "Hi " * LONGEST,
    ],
)  # fmt: skip
def test_whatever_may_say_something_is_read(content: str) -> None:
    assert not says_nothing(content, PEOPLE)


REACTIONS = (
    "Sounds great!",
    "No problem!",
    "Any time.",
    "Perfect, thanks!",
    "That's great",
    "Gotta run, bye!",
    "没关系",
)


@pytest.mark.parametrize(
    "turn",
    [
        "Shall we go to Oslo on Friday?", "Shall we go to Oslo on Friday", "Let’s go to Oslo!", "I’ll bring the cake.",
        "You could join us in Oslo.", "How about pasta", "We meet at 8.", "Come over on Sunday", "我们去奥斯陆吧", "When suits you?",
        "Tell me your mood.",
    ],
)  # fmt: skip
def test_a_reaction_to_a_question_or_a_proposal_is_read(turn: str) -> None:
    assert not any(says_nothing(reaction, PEOPLE, ["I like Oslo.", turn]) for reaction in REACTIONS)
    assert says_nothing("Thanks, bye!", PEOPLE, [turn])


FILLERS = (
    "Noted.", "Got it, thanks!", "Sure! I'll remember that.", "Understood. I’ll keep that in mind.", "Thanks!", "Hi!",
    "Thanks for letting me know!", "I've noted that.", "知道了", "我会记住的。",
)  # fmt: skip
ASSENTS = ("Sure!", "OK", "Of course!", "Sounds great!", "好的")
SAYING = (
    "Yes", "No", "no.", "Yes, Tuesday", "Tuesday", "Sure, on Tuesday", "Got it from Mia", "I kept it.", "I will keep it",
    "I saved it", "Noted: nuts", "👍", "42", "Oslo", "是", "不", "好的，周二",
)  # fmt: skip


@pytest.mark.parametrize("before", [None, "I live in Oslo.", "Remember that I am 42.", "Shall we meet on Monday?"])
def test_an_acknowledgement_is_a_filler_and_an_answer_never_is(before: str | None) -> None:
    assert [text for text in FILLERS if not is_filler(text, before)] == []
    assert [text for text in SAYING if is_filler(text, before)] == []


def test_an_assent_is_a_filler_only_where_nothing_was_asked_or_proposed() -> None:
    assert all(is_filler(text, "I live in Oslo.") for text in ASSENTS)
    assert not any(is_filler(text, before) for text in ASSENTS for before in ("Can you come?", "Let's meet at 8", None))


def test_a_reaction_to_anything_else_says_nothing() -> None:
    assert all(says_nothing(reaction, PEOPLE, ["I moved to Oslo. It rains a lot here."]) for reaction in REACTIONS)


def test_an_agreed_plan_is_read_and_praise_is_not(memory: GraphMemory, namespace: str) -> None:
    said = (
        ("Ann", "Shall we go to Oslo on Friday?"), ("Ann", "It rains there."), ("Bob", "Sounds great!"),
        ("Ann", "I moved to Rome."), ("Bob", "Sounds great!"), ("Bob", "Gotta run, bye!"),
    )  # fmt: skip
    skipped = []
    for minute, (speaker, content) in enumerate(said):
        at = f"2024-05-01T10:{minute:02}:00Z"
        added = memory.add(content, speaker=speaker, at=at, thread="t", namespace=namespace)
        skipped.append(added.skipped is not None)
    assert skipped == [False, False, False, False, True, True]


@given(content=st.text(max_size=40), people=st.lists(st.text(max_size=10), max_size=3))
def test_any_text_is_judged_and_a_number_or_an_unknown_word_is_always_read(content: str, people: list[str]) -> None:
    says_nothing(content, people)
    assert not says_nothing(f"{content} Wxyzv", people) or "wxyzv" in " ".join(people).casefold()


def test_a_greeting_is_saved_and_found_and_costs_no_call(memory: GraphMemory, model: Scripted, namespace: str) -> None:
    told: dict[str, Any] = {"at": AT, "namespace": namespace, "thread": "t"}
    memory.add("I moved to Oslo.", speaker="Ann", **told)
    asked = len(model.asked)
    added = memory.add("Thanks, Ann!", speaker="Bob", **told)
    assert len(model.asked) == asked
    assert (added.entities, added.facts) == (("Bob",), ())
    assert added.skipped == "a greeting, thanks or the like: there is nothing in it to remember"
    assert memory.stats(namespace=namespace).waiting == 0
    assert memory.search("who said thanks", namespace=namespace).episodes
    assert memory.add("I moved to Rome.", speaker="Bob", **told).skipped is None


def test_a_text_or_a_record_is_always_read(memory: GraphMemory, model: Scripted, namespace: str) -> None:
    memory.add("Hello", kind="text", at=AT, namespace=namespace)
    memory.add('"Hello"', kind="json", at=AT, namespace=namespace)
    assert len(model.asks("extract_text")) == len(model.asks("extract_json")) == 1


# --- Turns without surprise ---

TALK = (
    "I live in Oslo now",
    "Oslo is great I live here now",
    "You live in Oslo now",
    "Rome has cats",
    "Rome cats purr",
)


class Fixed(HashEmbeddings):
    """Places of lines that are laid down: those in the same group are alike."""

    def _vector(self, text: str) -> list[float]:
        place = 0 if "Oslo" in text else 1 if "Rome" in text else 2
        return [float(each == place) for each in range(self.dimensions)]


@pytest.fixture
def gated(opened: Open) -> Open:
    return lambda threshold=0.7, **changes: opened(embeddings=Fixed(), surprise_threshold=threshold, **changes)


def told(memory: GraphMemory, namespace: str, contents: Iterable[str], **given: Any) -> list[bool]:
    """Add messages one after the other, and return which of them were skipped."""
    place = {"thread": "t", "namespace": namespace, "speaker": "Ann", **given}
    start = memory.stats(namespace=namespace).episodes
    times = (f"2024-05-01T10:{start + minute:02}:00Z" for minute, _ in enumerate(contents))
    return [memory.add(each, at=at, **place).skipped is not None for each, at in zip(contents, times, strict=True)]


def test_the_surprise_is_the_angle_to_the_average_of_what_came_before() -> None:
    assert surprise([1.0, 0.0], [[1.0, 0.0], [3.0, 0.0]]) == 0
    assert surprise([0.0, 2.0], [[1.0, 0.0]]) == 1
    assert surprise([-1.0, 0.0], [[1.0, 0.0]]) == 2
    assert surprise([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]) == pytest.approx(1 - 0.5**0.5)
    assert surprise([0.0, 0.0], [[1.0, 0.0]]) == surprise([1.0, 0.0], [[1.0, 0.0], [-1.0, 0.0]]) == 1


def test_it_is_off_unless_it_is_set(memory: GraphMemory, namespace: str) -> None:
    assert not any(told(memory, namespace, ["I live in Oslo", "I live in Oslo"]))


def test_a_turn_like_those_before_it_is_saved_and_not_read(gated: Open, model: Scripted, namespace: str) -> None:
    """A message below `surprise_threshold` is saved and not read.

    Features: C51.
    """
    memory = gated()
    assert told(memory, namespace, TALK) == [False, True, True, False, True]
    assert len(model.asks("extract_message")) == 2
    [skipped, *_] = memory.episodes.list(namespace=namespace, status=EpisodeStatus.SKIPPED)
    assert skipped.reason == "it differs little from the messages before it: surprise 0.684, see surprise_threshold"
    assert memory.search("who purrs", namespace=namespace).episodes
    assert told(memory, namespace, ["Oslo again"], thread="another") == [False]


def test_after_some_in_a_row_the_next_is_read_nevertheless(gated: Open, namespace: str) -> None:
    same = [f"Oslo {number}" for number in range(8)]
    assert told(gated(), namespace, same) == [False, *[True] * 5, False, True]
    memory = gated(max_skip_turns=2)
    assert told(memory, f"{namespace} two", same[:5]) == [False, True, True, False, True]
    assert told(gated(max_skip_turns=0), f"{namespace} none", same[:3]) == [False] * 3


def test_many_at_once_are_skipped_as_one_by_one(gated: Open, namespace: str) -> None:
    said = [f"Oslo {number}" for number in range(4)]
    memory = gated(max_skip_turns=2)
    many = [
        {"content": each, "at": f"2024-05-01T10:{place:02}:00Z", "thread": thread, "speaker": "Ann"}
        for place, each in enumerate(said)
        for thread in ("a", "b")
    ]
    skipped = [each.skipped is not None for each in memory.add_many(many, namespace=namespace)]
    assert skipped == [False, False, True, True, True, True, False, False]
    assert told(memory, f"{namespace} one by one", said) == [False, True, True, False]


def test_a_text_a_record_a_long_turn_and_what_is_asked_for_are_read_however_alike(gated: Open, namespace: str) -> None:
    memory = gated()
    assert told(memory, namespace, ["Oslo one", "Oslo two"]) == [False, True]
    assert told(memory, namespace, ["Oslo three"], kind="text") == [False]
    assert told(memory, namespace, ['{"home": "Oslo"}'], kind="json") == [False]
    assert told(memory, namespace, ["Oslo" + "o" * LONGEST_TURN]) == [False]
    [again] = memory.episodes.retry(namespace=namespace, skipped=True)
    assert again.skipped is None


@pytest.mark.parametrize("wrong", [{"surprise_threshold": -0.1}, {"surprise_threshold": 2.1}, {"max_skip_turns": -1}])
def test_a_gate_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        Settings(**wrong)  # type: ignore[arg-type]
