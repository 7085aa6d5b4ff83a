"""The search step: its terms, and how it is driven by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.effects import Embed, Query
from kg_memory.flow import run
from kg_memory.retrieval.search import LONGEST_QUESTION, MOST_POSTINGS, MOST_TERMS, rarity, search, weighed
from kg_memory.settings import Settings


def frequencies(*counts: int) -> list[dict[str, Any]]:
    return [{"term": f"t{place}", "facts": count} for place, count in enumerate(counts)]


def test_rare_terms_weigh_more_and_come_first() -> None:
    terms = weighed(frequencies(90, 1, 10), "facts", 100)
    assert [each["term"] for each in terms] == ["t1", "t2", "t0"]
    assert terms[0]["idf"] > terms[1]["idf"] > terms[2]["idf"] > 0


def test_terms_that_no_fact_has_are_left_out() -> None:
    assert weighed(frequencies(0, 0), "facts", 100) == []


def test_common_terms_are_left_out_once_there_are_too_many_postings() -> None:
    terms = weighed(frequencies(10, MOST_POSTINGS, 20), "facts", 100_000)
    assert [each["term"] for each in terms] == ["t0", "t2"]


def test_a_term_that_is_everywhere_is_kept_where_there_is_no_other() -> None:
    assert len(weighed(frequencies(MOST_POSTINGS * 2), "facts", MOST_POSTINGS * 2)) == 1


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_rarity_is_never_negative_and_falls_with_frequency(frequency: int, documents: int) -> None:
    assert 0 <= rarity(frequency + 1, documents) <= rarity(frequency, documents)


def effects_of(question: Any) -> list[Any]:
    seen: list[Any] = []

    def perform(effect: Any) -> Any:
        seen.append(effect)
        return [[1.0]] if isinstance(effect, Embed) else []

    instants = {"since": 0, "until": 1, "believed_at": 0, "lenient": False, "unreviewed": False}
    run(search({"question": question, "instants": instants}, Settings()), perform)
    return seen


@pytest.mark.parametrize("question", ["", None, "?!", "\ud800\x00", 17 * "🎉"])
def test_a_question_without_letters_costs_no_query_and_no_embedding(question: Any) -> None:
    assert effects_of(question) == []


def test_a_question_is_embedded_once_as_a_question() -> None:
    [embedded] = [each for each in effects_of("Where does Ann live?") if isinstance(each, Embed)]
    assert embedded == Embed(("Where does Ann live?",), role="query")


def test_a_very_long_question_is_cut() -> None:
    seen = effects_of(" ".join(f"word{number}" for number in range(10_000)))
    [embedded] = [each for each in seen if isinstance(each, Embed)]
    assert len(embedded.texts[0]) == LONGEST_QUESTION
    assert all(len(each.params.get("terms", ())) <= MOST_TERMS for each in seen if isinstance(each, Query))


def test_nothing_is_ever_written() -> None:
    assert not any(each.write for each in effects_of("Where does Ann live?") if isinstance(each, Query))
