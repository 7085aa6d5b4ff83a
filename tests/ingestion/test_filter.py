"""Greetings, thanks and unsurprising turns are skipped; all other messages are read."""

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
from kg_memory.text.tokenise import LONGEST_GREETING, is_filler, says_nothing
from tests.ingestion.conftest import Open
from tests.scripted import HashEmbeddings

PEOPLE = ("Ann Lee", "Bob", "王芳")
AT = "2024-05-01T10:00:00Z"


GREETINGS = (
    "Hi! | hello there 👋 | Good morning, everyone! How are you today? | Hey Bob, how's it going? | Thanks! | "
    "Thank you so much, Ann! | THANKS A LOT | You’re very welcome, Ann Lee | Bye! Take care. | See you soon | "
    "Have a great weekend! | hahaha | ha ha ha | 😂😂 | ... | ;) | 你好！ | 大家好，早上好。 | 谢谢你，王芳 | 哈哈哈 | "
    "不客气，再见 | Ｔｈａｎｋｓ！ | \u202eThanks | Gotta run, bye! | Sounds great! | Wow, that's so cool, Bob! | "
    "Nice one! | Ttyl, take care! | Thanks for your help, I'm here for you! | "
    "So good to hear that. Talk to you later! | 太好了！"
).split(" | ")


@pytest.mark.parametrize("content", GREETINGS)
def test_says_nothing_is_true_for_greetings_and_thanks(content):
    assert says_nothing(content, PEOPLE)


CONTENTS = (
    "yes | No. | ok | Sure! | 👍 | Ann | so | and then | Hi Oslo | Thanks, I moved to Oslo. | See you tomorrow | "
    "Thank you for the book | Good morning from Rome | Thanks Cy | How are you and your sister? | Merci | 42 | "
    "Sounds like a plan | Same here! | That was great | Sounds great, see you on Friday! | I gotta run a marathon | "
    "Great news: I moved | Good to hear from Rome | Yes, sounds great! | Agreed! | 早上好，我在巴黎 | 谢谢你的书 | "
    "好的 | 是 | I appreciate it when it rains"
).split(" | ")


@pytest.mark.parametrize("content", [*CONTENTS, "ha" * LONGEST_GREETING, "Hi " * LONGEST_GREETING])
def test_says_nothing_is_false_for_possible_content(content):
    assert not says_nothing(content, PEOPLE)


REACTIONS = (
    "Sounds great!", "No problem!", "Any time.", "Perfect, thanks!", "That's great", "Gotta run, bye!", "没关系",
)  # fmt: skip


PROPOSALS = (
    "Shall we go to Oslo on Friday? | Shall we go to Oslo on Friday | Let’s go to Oslo! | I’ll bring the cake. | "
    "You could join us in Oslo. | How about pasta | We meet at 8. | Come over on Sunday | 我们去奥斯陆吧 | "
    "When suits you? | Tell me your mood."
).split(" | ")


@pytest.mark.parametrize("turn", PROPOSALS)
def test_reaction_to_question_or_proposal_is_read(turn):
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
def test_is_filler_is_true_for_acknowledgements_not_answers(before):
    assert [text for text in FILLERS if not is_filler(text, before)] == []
    assert [text for text in SAYING if is_filler(text, before)] == []


def test_assent_is_filler_only_after_a_plain_statement():
    assert all(is_filler(text, "I live in Oslo.") for text in ASSENTS)
    assert not any(is_filler(text, before) for text in ASSENTS for before in ("Can you come?", "Let's meet at 8", None))


def test_reaction_to_a_statement_says_nothing():
    assert all(says_nothing(reaction, PEOPLE, ["I moved to Oslo. It rains a lot here."]) for reaction in REACTIONS)


def test_reply_to_proposal_is_read_and_praise_is_skipped(memory, namespace):
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
def test_says_nothing_is_false_with_an_unknown_word(content, people):
    says_nothing(content, people)
    assert not says_nothing(f"{content} Wxyzv", people) or "wxyzv" in " ".join(people).casefold()


def test_greeting_is_stored_and_found_without_model_call(memory, model, namespace):
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


def test_text_and_json_episodes_are_always_read(memory, model, namespace):
    memory.add("Hello", kind="text", at=AT, namespace=namespace)
    memory.add('"Hello"', kind="json", at=AT, namespace=namespace)
    assert len(model.asks("extract_text")) == len(model.asks("extract_json")) == 1


# --- Turns without surprise ---

TALK = (
    "I live in Oslo now", "Oslo is great I live here now", "You live in Oslo now", "Rome has cats", "Rome cats purr",
)  # fmt: skip


class Fixed(HashEmbeddings):
    """Fixed embeddings: all texts about Oslo have one vector, all about Rome another."""

    def _vector(self, text: str) -> list[float]:
        place = 0 if "Oslo" in text else 1 if "Rome" in text else 2
        return [float(each == place) for each in range(self.dimensions)]


@pytest.fixture
def gated(opened: Open) -> Open:
    return lambda threshold=0.7, **changes: opened(embeddings=Fixed(), surprise_threshold=threshold, **changes)


def add_all(memory: GraphMemory, namespace: str, contents: Iterable[str], **given: Any) -> list[bool]:
    """Add messages one after the other, and return which of them were skipped."""
    place = {"thread": "t", "namespace": namespace, "speaker": "Ann", **given}
    start = memory.stats(namespace=namespace).episodes
    times = (f"2024-05-01T10:{start + minute:02}:00Z" for minute, _ in enumerate(contents))
    return [memory.add(each, at=at, **place).skipped is not None for each, at in zip(contents, times, strict=True)]


def test_surprise_is_cosine_distance_to_average_of_previous():
    assert surprise([1.0, 0.0], [[1.0, 0.0], [3.0, 0.0]]) == 0
    assert surprise([0.0, 2.0], [[1.0, 0.0]]) == 1
    assert surprise([-1.0, 0.0], [[1.0, 0.0]]) == 2
    assert surprise([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]) == pytest.approx(1 - 0.5**0.5)
    assert surprise([0.0, 0.0], [[1.0, 0.0]]) == surprise([1.0, 0.0], [[1.0, 0.0], [-1.0, 0.0]]) == 1


def test_surprise_filter_is_off_by_default(memory, namespace):
    assert not any(add_all(memory, namespace, ["I live in Oslo", "I live in Oslo"]))


def test_unsurprising_turn_is_stored_but_not_read(gated, model, namespace):
    """A message below `surprise_threshold` is saved and not read.

    Features: C51.
    """
    memory = gated()
    assert add_all(memory, namespace, TALK) == [False, True, True, False, True]
    assert len(model.asks("extract_message")) == 2
    [skipped, *_] = memory.episodes.list(namespace=namespace, status=EpisodeStatus.SKIPPED)
    assert skipped.reason == "it differs little from the messages before it: surprise 0.684, see surprise_threshold"
    assert memory.search("who purrs", namespace=namespace).episodes
    assert add_all(memory, namespace, ["Oslo again"], thread="another") == [False]


def test_max_skip_turns_limits_consecutive_skips(gated, namespace):
    same = [f"Oslo {number}" for number in range(8)]
    assert add_all(gated(), namespace, same) == [False, *[True] * 5, False, True]
    memory = gated(max_skip_turns=2)
    assert add_all(memory, f"{namespace} two", same[:5]) == [False, True, True, False, True]
    assert add_all(gated(max_skip_turns=0), f"{namespace} none", same[:3]) == [False] * 3


def test_add_many_skips_the_same_turns_as_add(gated, namespace):
    said = [f"Oslo {number}" for number in range(4)]
    memory = gated(max_skip_turns=2)
    many = [
        {"content": each, "at": f"2024-05-01T10:{place:02}:00Z", "thread": thread, "speaker": "Ann"}
        for place, each in enumerate(said)
        for thread in ("a", "b")
    ]
    skipped = [each.skipped is not None for each in memory.add_many(many, namespace=namespace)]
    assert skipped == [False, False, True, True, True, True, False, False]
    assert add_all(memory, f"{namespace} one by one", said) == [False, True, True, False]


def test_surprise_filter_skips_only_short_messages(gated, namespace):
    """Texts, records, long turns and retried episodes are read even if they differ little from the turns before."""
    memory = gated()
    assert add_all(memory, namespace, ["Oslo one", "Oslo two"]) == [False, True]
    assert add_all(memory, namespace, ["Oslo three"], kind="text") == [False]
    assert add_all(memory, namespace, ['{"home": "Oslo"}'], kind="json") == [False]
    assert add_all(memory, namespace, ["Oslo" + "o" * LONGEST_TURN]) == [False]
    [again] = memory.episodes.retry(namespace=namespace, skipped=True)
    assert again.skipped is None


@pytest.mark.parametrize("wrong", [{"surprise_threshold": -0.1}, {"surprise_threshold": 2.1}, {"max_skip_turns": -1}])
def test_settings_refuse_invalid_surprise_filter_values(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        Settings(**wrong)  # type: ignore[arg-type]
