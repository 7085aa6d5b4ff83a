"""The probability that the memory contains an answer, and the reason why it may not."""

from dataclasses import astuple, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.models.graph import KINDS
from kg_memory.models.results import Answerable
from kg_memory.retrieval import answerable
from kg_memory.retrieval.ranking import NO_HITS, Hits
from kg_memory.retrieval.retrievers import rarity
from kg_memory.text.identity import alias_key
from kg_memory.text.tokenise import terms

COUNTS: Any = dict.fromkeys(KINDS, 1000)
ASKED = answerable.QuestionStatistics(
    ["oslo", "like"], {kind: {"oslo": 2, "like": 400} for kind in KINDS}, COUNTS, frozenset({alias_key("Ann")})
)
RARE, COMMON = rarity(2, 1000), rarity(400, 1000)
SCORED = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1000)).map(
    lambda found: sorted(found.items(), key=lambda one: -one[1])
)
SHARES = st.floats(0, 1)
UNANSWERED: tuple[Any, ...] = ("unlikely", "no")
EVIDENCE = st.builds(answerable.Evidence, *[SHARES] * 5, st.floats(-1, 1))


def hits(words: Any = (), meaning: Any = (), kind: str = "facts") -> Any:
    return {**dict.fromkeys(KINDS, NO_HITS), kind: Hits(list(words), list(meaning), [])}


def told(found: Any, *rows: Any) -> float:
    return answerable.probability(answerable.weigh_evidence(ASKED, found, *rows))


@given(SCORED, SCORED, st.sampled_from(KINDS), st.floats(0, 2), st.lists(st.text(max_size=3), max_size=3))
def test_relevance_is_a_probability(words, meaning, kind, distance, texts):
    own = {id_ for id_, _ in (*words, *meaning)}
    tellers = {id_: ["Ann"] for id_ in sorted(own)[: 2 * (kind == "facts")]}
    baseline = {"distance": distance, "speakers": []}
    asked = replace(ASKED, terms=texts)
    found = answerable.weigh_evidence(asked, hits(words, meaning, kind), tellers, baseline=baseline)
    assert 0 <= answerable.probability(found) <= 1
    assert all(0 <= each <= 1 for each in astuple(found)[:-1])
    assert -1 <= found.told <= 1


@given(st.floats(0, 10), st.floats(0, 10), SCORED)
def test_relevance_rises_with_coverage(one, other, meaning):
    low, high = sorted((one, other))
    assert told(hits([("a", low)], meaning)) <= told(hits([("a", high)], meaning))


@given(EVIDENCE, st.sampled_from(list(answerable.Evidence.__slots__)), SHARES)
def test_relevance_rises_with_each_kind_of_evidence(found, name, value):
    low, high = (replace(found, **{name: each}) for each in sorted((value, getattr(found, name))))
    assert answerable.probability(low) <= answerable.probability(high)


def test_evidence_weights_are_positive():
    assert min(astuple(answerable.WEIGHTS)) > 0


def test_relevance_is_unlikely_without_hits():
    assert told(hits()) < answerable.UNLIKELY


def test_relevance_is_higher_for_rare_word():
    nearest = [("a", 0.9), ("b", 0.5)]
    assert told(hits([("a", RARE)], nearest)) > told(hits([("a", COMMON)], nearest))


def test_relevance_is_higher_if_words_and_vectors_agree():
    words = [("a", RARE), ("b", COMMON)]
    assert told(hits(words, [("a", 0.9), ("b", 0.1)])) > told(hits(words, [("b", 0.9), ("a", 0.1)]))


def test_relevance_is_higher_if_named_person_said_it():
    found = hits([("a", 9.0), ("b", 1.0)], [("a", 0.9), ("b", 0.1)])
    by_ann, by_bob = {"a": ["Ann"], "b": ["Bob"]}, {"a": ["Bob"], "b": ["Ann"]}
    assert answerable.weigh_evidence(ASKED, found, by_ann).told > 0
    assert answerable.weigh_evidence(ASKED, found, by_bob).told < 0
    assert told(found, by_ann) > told(found) > told(found, by_bob)
    assert answerable.weigh_evidence(replace(ASKED, subjects=frozenset()), found, {}).told == 0


def test_nearness_is_relative_to_usual_distance():
    assert answerable.nearness([("a", 0.5)], 0.5) == 0.5
    assert answerable.nearness([("a", 0.9)], 0.5) > 0.5 > answerable.nearness([("a", 0.2)], 0.5)
    both = [("a", 0.9), ("b", 0.1)]
    assert answerable.nearness(both, 0.5, 1000) == 0.5, "the mean of both"
    assert answerable.nearness(both, 0.5, 20) == answerable.nearness(both[:1], 0.5), "of few texts only the first"


def test_relevance_without_vectors_uses_defaults():
    by_words = answerable.weigh_evidence(ASKED, hits([("a", RARE)]))
    assert by_words == answerable.Evidence(known=1.0, covered=by_words.covered)
    no_lines = answerable.weigh_evidence(ASKED, hits([("a", RARE)], [("a", 0.9)]), [], [])
    assert no_lines.lines == answerable.Evidence().lines


def test_relevance_ignores_names_and_summaries():
    for kind in ("entities", "communities"):
        assert told(hits([("a", 100.0)], [("a", 0.9)], kind)) == told(hits())


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What does Lily do?", "nothing here is about Lily"),
        ("What is Lily's salary?", "nothing here is about Lily"),
        ("What is Ann's salary?", 'Ann is known, but nothing here tells of "salary"'),
        ("salary?", 'nothing here tells of "salary"'),
        ("Describe Oslo", 'nothing here tells of "Describe"'),
        ("Does Ann like Oslo?", "Ann is known, but what comes close was told by others"),
        ("Who likes Oslo?", answerable.FAR),
        ("Who is it?", answerable.WORDLESS),
        ("安娜的工资是多少？", 'nothing here tells of "安娜的工资是多少"'),
    ],
)
def test_explain_doubt_returns_the_reason(question, reason):
    often = {"facts": {"ann": 5, "oslo": 2, "like": 400}}
    asked = replace(ASKED, terms=terms(question), frequencies=often)
    assert answerable.explain_doubt(question, asked, answerable.Evidence(told=-0.5)) == reason


def test_judge_answers_yes_or_abstains_below_threshold():
    relevances = (1.0, answerable.UNLIKELY - 0.001, answerable.NO - 0.001)
    verdicts = [answerable.judge_answerable(relevance, "why", 0.0) for relevance in relevances]
    assert [each.value for each in verdicts if each] == ["yes"]
    assert verdicts == [Answerable(value="yes"), *(Answerable(value=each, reason="why") for each in UNANSWERED)]
    for relevance in (answerable.NO, 0.7):
        strict = answerable.judge_answerable(relevance, "why", 0.8)
        assert (bool(strict), strict.abstains, strict.value) == (False, True, "unlikely")
        assert str(strict) == "The memory does not know this: why."
    assert answerable.judge_answerable(None, "why", 0.8) is None
