"""Duplicates in a context: equal lines are merged, doubtful ones stay."""

from typing import Any

import pytest

from kg_memory.models.graph import Entity, Remark
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.context.templates import render
from kg_memory.text.sentences import fold
from tests.retrieval.findings import JUNE, MAY, PLENTY, episode, fact, source


def texts(*, most: int = PLENTY, **found: Any) -> list[str]:
    return [line.text for line in render(SearchResults(question="Ann", **found), most).lines]


def left_out(**found: Any) -> list[tuple[str, str, str | None]]:
    context = render(SearchResults(question="Ann", **found), PLENTY)
    return [(each.id, each.text, each.left_out) for each in context.left_out]


def test_fold_ignores_case_width_and_final_punctuation():
    assert fold("“Ann”  lives in ＯＳＬＯ!") == fold("ann lives in Oslo.")
    assert fold("安娜住在奥斯陆。") == fold("安娜住在奥斯陆")
    assert fold("Ann does not live in Oslo") != fold("Ann does live in Oslo")
    assert fold("Ann lived in Oslo") != fold("Ann lives in Oslo")
    distinct = ("🎉", "🥶", "-5 degrees", "5 degrees", "C++", "C", "$9", "€9", "Oslo?", "Oslo", "!", ".")
    assert len({fold(text) for text in distinct}) == len(distinct)


def test_render_merges_facts_of_same_words_and_time():
    one = fact(valid_at=MAY, sources=(source(source_id="m1"),))
    other = fact("Ann lives in Oslo.", valid_at=MAY, sources=(source(source_id="m2"),))
    assert texts(facts=(one, other)) == ["- Ann lives in Oslo (since 1 May 2023) [m1, m2]"]
    assert left_out(facts=(one, other)) == [("Ann lives in Oslo.", "Ann lives in Oslo.", "same as Ann lives in Oslo")]


@pytest.mark.parametrize(
    "other",
    [
        fact(id="2", valid_at=JUNE), fact(id="2", valid_at=MAY, precision="month"), fact(id="2"),
        fact(id="2", valid_at=MAY, reviewed=False), fact("Ann lived in Oslo", valid_at=MAY),
        fact("Ann does not live in Oslo", valid_at=MAY), fact("Ann lives in Oslo now", valid_at=MAY),
    ],
)  # fmt: skip
def test_render_lists_facts_of_other_words_or_time_separately(other):
    assert len(texts(facts=(fact(valid_at=MAY), other))) == 2


def test_render_merges_same_message_of_same_day():
    again = episode("i moved to oslo!", id="other", at=MAY.replace(hour=9))
    assert texts(episodes=(episode(), again)) == ["- [abcdef01, other] Ann: I moved to Oslo"]


@pytest.mark.parametrize(
    "other",
    [
        episode(id="2", speaker="Bob"),
        episode(id="2", at=JUNE),
        episode("I moved to Oslo again", id="2"),
        episode(id="2", remarks=(Remark(kind="disputed", sentence="x"),)),
    ],
)
def test_render_lists_message_of_other_speaker_day_or_status(other):
    assert len(texts(episodes=(episode(), other))) == 2


LIVES = fact(valid_at=MAY, sources=(source("abcdef0123456", quote="I live in Oslo."),))
SAID = episode("I live in Oslo.")
DISPUTED = episode("I live in Oslo.", remarks=(Remark(kind="disputed", sentence="x"),))


def test_render_omits_message_that_adds_nothing_to_its_fact():
    assert texts(facts=(LIVES,), episodes=(SAID,)) == ["- Ann lives in Oslo (since 1 May 2023) [abcdef01]"]
    assert left_out(facts=(LIVES,), episodes=(SAID,)) == [(SAID.id, "I live in Oslo.", f"same as {LIVES.id}")]


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (LIVES, episode("I live in Oslo, by the river.")),  # more words than are quoted
        (LIVES.model_copy(update={"sentence": "Ann moved"}), SAID),  # another wording
        (LIVES.model_copy(update={"sentence": "Ann does not live in Oslo"}), SAID),  # a denial in one alone
        (LIVES.model_copy(update={"subject": "Bob"}), SAID),  # said by someone else
        (LIVES.model_copy(update={"valid_at": JUNE}), SAID),  # said on another day
        (LIVES.model_copy(update={"valid_at": None}), SAID),  # the only date that is known
        (LIVES, SAID.model_copy(update={"id": "another"})),  # no source of the fact
        (LIVES, DISPUTED),  # a warning
    ],
)
def test_render_lists_message_that_adds_something(one, line):
    assert len(texts(facts=(one,), episodes=(line,))) == 2


QUOTED = LIVES.model_copy(update={"sentence": "Ann: I live in Oslo."})


@pytest.mark.parametrize(
    ("one", "line", "text"),
    [
        (QUOTED, episode("I live in Oslo, by the river."), "I live in Oslo, by the river."),
        (QUOTED.model_copy(update={"valid_at": JUNE}), SAID, "I live in Oslo. (since 1 June 2023)"),
        (QUOTED.model_copy(update={"valid_at": None}), SAID, "I live in Oslo."),
        (QUOTED, DISPUTED, "I live in Oslo. (disputed)"),
    ],
    ids=["more words", "another day", "no date", "a warning"],
)
def test_render_merges_fact_that_only_quotes_its_message(one, line, text):
    assert texts(facts=(one,), episodes=(line,)) == [f"- [abcdef01] Ann: {text}"]
    assert left_out(facts=(one,), episodes=(line,)) == [(one.id, one.sentence, f"same as {line.id}")]


def test_render_lists_message_if_its_fact_does_not_fit():
    long = fact("Ann " + "talks and " * 40, id="long")
    assert texts(facts=(long, LIVES), episodes=(SAID,), most=60) == ["- [abcdef01] Ann: I live in Oslo."]


def test_render_omits_later_fact_that_its_message_repeats():
    """The best fact comes first and replaces its message; a later fact gives way to its message."""
    other = fact("Bob lives in Rome", subject="Bob", objects=("Rome",))
    context = render(SearchResults(question="Ann", facts=(other, LIVES), episodes=(SAID,)), PLENTY)
    assert [line.id for line in context.lines] == [other.id, SAID.id]
    assert [(each.id, each.left_out) for each in context.left_out] == [(LIVES.id, f"same as {SAID.id}")]


def test_render_omits_entity_without_summary():
    oslo = Entity(id="1", name="Oslo", type="Place")
    assert texts(facts=(fact(),), entities=(oslo,)) == ["- Ann lives in Oslo (date unknown) [01234567]"]
    assert left_out(facts=(fact(),), entities=(oslo,)) == [("1", "Oslo", "it has no summary")]
    assert len(texts(facts=(fact(),), entities=(oslo.model_copy(update={"summary": "A city."}),))) == 2
    assert texts(entities=(oslo,)) == []


@pytest.mark.parametrize(
    ("name", "summaries", "told"),
    [
        ("Ann", ["Ann lives in Oslo.", "Ann lives in Oslo (since 2024-05).", "Lives in Oslo."], 1),
        ("Oslo", ["Ann lives in Oslo"], 1),
        ("Bob", ["Ann lives in Oslo."], 2),
        ("Ann", ["Ann lived in Oslo.", "Ann lives in Oslo, and paints", "Ann lives in Os", "?"], 2),
    ],
)
def test_render_omits_entity_whose_summary_is_a_fact(name, summaries, told):
    for summary in summaries:
        entity = Entity(id="1", name=name, type="Thing", summary=summary)
        assert len(texts(facts=(fact(),), entities=(entity,))) == told, summary
