"""How likely the memory holds something about a question."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kg_memory.models.graph import KINDS
from kg_memory.retrieval.fuse import NO_HITS, Hits
from kg_memory.retrieval.retrievers import rarity
from kg_memory.retrieval.search import USUALLY_AGREED, agreement, evidence, probability, relevance

COUNTS: Any = dict.fromkeys(KINDS, 1000)
FREQUENCIES: Any = {kind: {"oslo": 2, "like": 400} for kind in KINDS}
TERMS = ["oslo", "like"]
RARE, COMMON = rarity(2, 1000), rarity(400, 1000)
SCORED = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1000)).map(
    lambda found: sorted(found.items(), key=lambda one: -one[1])
)
SHARES = st.floats(0, 1)


def hits(words: Any = (), meaning: Any = (), kind: str = "facts") -> Any:
    return {**dict.fromkeys(KINDS, NO_HITS), kind: Hits(list(words), list(meaning), [])}


def told(found: Any) -> float:
    return relevance(found, FREQUENCIES, TERMS, COUNTS)


@given(SCORED, SCORED, st.sampled_from(KINDS), st.lists(st.text(max_size=3), max_size=3))
def test_it_is_a_probability_whatever_was_found(words: Any, meaning: Any, kind: str, terms: list[str]) -> None:
    found = hits(words, meaning, kind)
    assert 0 <= relevance(found, FREQUENCIES, terms, COUNTS) <= 1
    assert all(0 <= each <= 1 for each in evidence(found, FREQUENCIES, terms, COUNTS))


@given(st.floats(0, 10), st.floats(0, 10), SCORED)
def test_it_rises_with_what_is_covered(one: float, other: float, meaning: Any) -> None:
    low, high = sorted((one, other))
    assert told(hits([("a", low)], meaning)) <= told(hits([("a", high)], meaning))


@given(SHARES, SHARES, SHARES)
def test_it_rises_with_each_feature(one: float, other: float, fixed: float) -> None:
    low, high = sorted((one, other))
    assert probability(low, fixed) <= probability(high, fixed)
    assert probability(fixed, low) <= probability(fixed, high)


def test_where_nothing_is_found_it_is_unlikely() -> None:
    assert told(hits()) < 0.1


def test_a_rare_word_says_more_than_a_common_one() -> None:
    nearest = [("a", 0.9), ("b", 0.5)]
    assert told(hits([("a", RARE)], nearest)) > 0.5 > told(hits([("a", COMMON)], nearest))


def test_words_and_meaning_that_agree_say_more_than_those_that_do_not() -> None:
    words = [("a", RARE), ("b", COMMON)]
    assert told(hits(words, [("a", 0.9), ("b", 0.1)])) > told(hits(words, [("b", 0.9), ("a", 0.1)]))


def test_agreement_is_whole_where_one_is_first_by_both_and_half_where_none_is_in_both() -> None:
    both = Hits([("a", 9.0), ("b", 1.0)], [("a", 0.9), ("b", 0.1)], [])
    apart = Hits([("a", 9.0)], [("b", 0.9)], [])
    assert agreement(both) == 1
    assert agreement(apart) == 0.5
    assert agreement(NO_HITS) == 0


def test_a_search_by_words_alone_is_judged_by_what_is_usual() -> None:
    assert evidence(hits([("a", RARE)]), FREQUENCIES, TERMS, COUNTS)[1] == USUALLY_AGREED


def test_names_and_summaries_are_no_evidence() -> None:
    for kind in ("entities", "communities"):
        assert told(hits([("a", 100.0)], [("a", 0.9)], kind)) == told(hits())
