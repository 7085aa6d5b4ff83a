"""Figures of retrieval, intervals, judging by rules and sampling, against manual values and properties."""

import json
import math
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.evaluation import judges, report, run
from kg_memory.contrib.evaluation.datasets.niah import load_niah
from kg_memory.contrib.evaluation.datasets.people import CATEGORIES, LOCOMO, load_locomo
from kg_memory.contrib.evaluation.judges import reader_prompt
from kg_memory.contrib.evaluation.options import EvaluationOptions, select
from kg_memory.contrib.evaluation.records import Question
from kg_memory.errors import InputError
from tests.evaluation.locomo import write

SOURCES = ("a", "b", "c", "d")


def test_retrieval_figures_match_manual_values():
    figures = report.retrieval_figures(SOURCES, frozenset({"b", "d", "x"}))
    assert (figures["recall@1"], figures["all@5"]) == (0, 0)
    assert figures["recall@5"] == figures["recall@20"] == pytest.approx(2 / 3)
    gained, best = 1 / math.log2(3) + 1 / math.log2(5), 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert figures["nDCG@10"] == pytest.approx(gained / best)
    for sources, found in ((SOURCES, 1), (("a", "a", *SOURCES), 1), ((), 0)):
        figures = report.retrieval_figures(sources, frozenset({"a"}))
        assert (figures["nDCG@10"], figures["all@5"], figures["recall@20"]) == (found, found, found)


def test_bootstrap_interval_matches_manual_values():
    # A share of 50 right answers of 100 has a standard error of 0.05.
    mean, low, high = report.bootstrap([0, 1] * 50, 3)
    assert mean == 0.5
    assert low == pytest.approx(0.402, abs=0.02)
    assert high == pytest.approx(0.598, abs=0.02)
    assert report.bootstrap([0, 1] * 50, 3) == (mean, low, high)


def test_kendall_matches_manual_values():
    assert report.kendall([1, 2, 3]) == 1
    assert report.kendall([2, 1, 3]) == pytest.approx(1 / 3)
    assert report.kendall([3, 1, 2]) == pytest.approx(-1 / 3)
    assert report.kendall([1]) == 0


@pytest.mark.parametrize(
    ("expected", "answer", "strict", "lenient"),
    [
        ("7 May 2023", "2023-05-07", 1, 1),
        ("7 May 2023", "It was on May 7th, 2023.", 0, 1),
        ("7 May 2023", "8 May 2023", 0, 0),
        ("two goats", "The 2 goats.", 1, 1),
        ("1,200", "1200", 1, 1),
        ("1200", "12000", 0, 0),
        ("3.50", "3.5", 1, 1),
        ("a red canoe", "She bought a red canoe", 0, 1),
        ("cat", "concatenate", 0, 0),
        ("", "anything", 0, 0),
        ("北京", "北京", 1, 1),
    ],
)
def test_judge_by_rules_returns_strict_and_lenient(expected, answer, strict, lenient):
    question = Question("1", "?", "c", expected)
    assert judges.judge_by_rules(question, answer) == {"strict": strict, "lenient": lenient}


def test_choice_is_recognised_by_letter_or_text():
    for choices in (("coffee", "a cup of tea", "milk"), ("(a) coffee", "(b) a cup of tea", "(c) milk")):
        question = Question("1", "?", "c", choices[1], choices=choices)
        assert reader_prompt(question, "").count("(b)") == 1
        for answer in ("b", "(b)", "B.", "The answer is (b).", "Option b", "a cup of tea", "b) a cup of tea"):
            assert judges.judge_by_rules(question, answer)["strict"] == 1
            assert judges.judge_by_rules(replace(question, answer=choices[2]), answer)["strict"] == 0
    for answer in ("coffee or milk", "none of them", "(a) or (c)", "z"):
        assert judges.choice(answer, ("coffee", "tea", "milk")) is None


def test_judge_by_rules_accepts_unknown_if_unanswerable():
    question = Question("1", "?", "c", answerable=False)
    assert judges.judge_by_rules(question, "The notes do not say; it is not known.")["strict"] == 1
    assert judges.judge_by_rules(question, "4711")["strict"] == 0


@given(st.text(string.printable, max_size=60), st.text(string.printable, max_size=60))
def test_strict_verdict_implies_lenient_verdict(expected, answer):
    verdict = judges.judge_by_rules(Question("1", "?", "c", expected), answer)
    assert verdict["strict"] <= verdict["lenient"]


def test_sample_covers_categories_and_is_nested(tmp_path):
    """A sample has all categories of questions, and a larger sample contains the smaller one.

    Features: A57.
    """
    conversations = load_locomo(write(tmp_path / "l.json", "c1", "c2", "c3"))
    options = EvaluationOptions("locomo", (), tmp_path)

    def keys(limit: int, seed: int = 0) -> set[str]:
        return select(LOCOMO, conversations, replace(options, limit=limit, seed=seed)).keys

    chosen = select(LOCOMO, conversations, replace(options, limit=4))
    assert {question.category for part in chosen for question in part.questions} == set(CATEGORIES.values()) - {
        "adversarial"
    }
    assert keys(4) < keys(9) < keys(100)
    assert len(keys(100)) == 18
    assert keys(9) == keys(9)
    assert any(keys(9) != keys(9, seed) for seed in (1, 2, 3))
    asked = select(LOCOMO, conversations, replace(options, categories=("adversarial",), conversations=("c2",)))
    assert asked.keys == {"c2/7"}


def test_locomo_events_become_rubric_questions(tmp_path):
    """Event summaries of LoCoMo become one question per person and session, judged by a rubric.

    Features: J3.
    """
    path = write(tmp_path / "l.json", "c1")
    [sample] = json.loads(path.read_text(encoding="utf-8"))
    events = {"Nora": ["Nora buys a goat.", "Nora goes to Ghent."], "Piet": [], "date": "8 May, 2023"}
    path.write_text(json.dumps([{**sample, "event_summary": {"events_session_1": events}}]), encoding="utf-8")
    conversations = load_locomo(path)
    options = EvaluationOptions("locomo", (), tmp_path, judge="rules", categories=("event_summary",))
    chosen = select(LOCOMO, conversations, options)
    [question] = [question for part in chosen for question in part.questions]
    assert "Nora around 8 May, 2023" in question.text
    assert question.rubric == ("Nora buys a goat.", "Nora goes to Ghent.")
    assert run.open_judge(LOCOMO, replace(options, categories=()), run.Ledger({}, {})).calls(question) == 0
    with pytest.raises(InputError, match="rubrics"):
        run.open_judge(LOCOMO, options, run.Ledger({}, {}))
    path.write_text(json.dumps([{**sample, "event_summary": {"events_session_1": {"Nora": ["x"]}}}]), encoding="utf-8")
    with pytest.raises(InputError, match="event_summary of c1 lacks the field 'date'"):
        load_locomo(path)


def test_niah_needles_appear_once_at_their_depth():
    """Each needle is in exactly one message, at the depth that its category names.

    Features: J1.
    """
    [hay] = load_niah(None, "4k")
    assert load_niah(None, "4k") == [hay]
    texts = [episode.content for episode in hay.episodes]
    places = {episode.source_id: place for place, episode in enumerate(hay.episodes)}
    for question in hay.questions:
        if question.answerable:
            [source] = question.evidence
            assert sum(question.answer in text for text in texts) == 1
            depth = int(question.category.split("depth ")[1].split(" ")[0])
            assert places[source] / len(texts) == pytest.approx(depth / 100, abs=0.05)
        else:
            thing = question.text.split("of ", 1)[1].rstrip("?")
            assert not any(thing in text for text in texts)
    assert 2_000 < sum(len(text) / 3.5 for text in texts) < 5_000
