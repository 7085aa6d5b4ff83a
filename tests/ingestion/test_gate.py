"""Greetings and thanks: what is not asked about, and what must be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory import GraphMemory
from kg_memory.ingestion.gate import LONGEST, says_nothing
from tests.scripted import Scripted

PEOPLE = ("Ann Lee", "Bob", "王芳")
AT = "2024-05-01T10:00:00Z"


@pytest.mark.parametrize(
    "content",
    [
        "Hi!", "hello there 👋", "Good morning, everyone! How are you today?", "Hey Bob, how's it going?", "Thanks!",
        "Thank you so much, Ann!", "THANKS A LOT", "You’re very welcome, Ann Lee", "Bye! Take care.", "See you soon",
        "Have a great weekend!", "hahaha", "ha ha ha", "😂😂", "...", ";)", "你好！", "大家好，早上好。", "谢谢你，王芳", "哈哈哈",
        "不客气，再见", "Ｔｈａｎｋｓ！", "\u202eThanks",
    ],
)  # fmt: skip
def test_a_greeting_or_thanks_says_nothing(content: str) -> None:
    assert says_nothing(content, PEOPLE)


@pytest.mark.parametrize(
    "content",
    [
        "yes", "No.", "ok", "Sure!", "👍", "Ann", "so", "and then", "Hi Oslo", "Thanks, I moved to Oslo.", "See you tomorrow",
        "Thank you for the book", "Good morning from Rome", "Thanks Cy", "How are you and your sister?", "Merci", "42",
        "早上好，我在巴黎", "谢谢你的书", "好的", "是", "I appreciate it when it rains", "ha" * LONGEST, "Hi " * LONGEST,
    ],
)  # fmt: skip
def test_whatever_may_say_something_is_read(content: str) -> None:
    assert not says_nothing(content, PEOPLE)


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
