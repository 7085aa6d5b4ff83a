"""BM25: the rarity of words, which of them are looked up, and what is found on a real FalkorDB."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.models.filters import parse_filter
from kg_memory.retrieval import retrievers
from kg_memory.retrieval.ranking import Scored
from tests.retrieval.many import INSTANTS, Many

NUMBERS = st.integers(0, 10**6)


@pytest.fixture
def at_most_twenty_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrievers, "LOOKED_AT", 20)
    monkeypatch.setattr(retrievers, "WEIGHED", 20)


def frequencies(*counts: int) -> dict[str, int]:
    return {f"t{place}": count for place, count in enumerate(counts)}


def search(many: Many, often: dict[str, int], texts: int, *, length: float = 9.0, wanted: int = 10) -> list[Scored]:
    """Return the facts with words that occur *often* in *texts* of a mean *length*."""
    scope = retrievers.Scope("facts", texts, wanted, INSTANTS)
    return many.run(retrievers.search_words(scope, often, texts, length))  # type: ignore[no-any-return]


def names(found: list[Scored]) -> list[str]:
    return [id_ for id_, _ in found]


def test_weigh_terms_puts_rare_terms_first():
    terms = retrievers.weigh_terms(frequencies(90, 1, 10), 100)
    assert [each["term"] for each in terms] == ["t1", "t2", "t0"]
    assert terms[0]["idf"] > terms[1]["idf"] > terms[2]["idf"] > 0
    assert retrievers.weigh_terms({}, 100) == []


MOST = retrievers.MOST_POSTINGS


def test_measure_leading_omits_common_terms_unless_alone():
    assert retrievers.measure_leading({}) == (0, 0)
    assert retrievers.measure_leading(frequencies(90, 1, 10)) == (3, 101)
    assert retrievers.measure_leading(frequencies(10, MOST, 20)) == (2, 30)
    assert retrievers.measure_leading(frequencies(10, MOST, 20), 2.0) == (3, MOST + 30), "of many texts"
    assert retrievers.measure_leading(frequencies(MOST * 2)) == (1, MOST * 2)


@pytest.mark.parametrize(
    ("counts", "looked", "rare", "pairs"),
    [
        ((90, 1, 10, 100, 80), 11, ["t1", "t2"], [["t4", "t0"], ["t4", "t3"], ["t0", "t3"]]),
        ((90, 1, 10), 101, ["t1", "t2", "t0"], []),
        ((90, 1, 10), 11, ["t1", "t2"], []),
        ((), 10, [], []),
        ((11, 90), 10, [], []),
        ((1, *[90] * 20), 10, [], []),  # too many pairs
    ],
)
def test_pick_rare_returns_rare_terms_and_pairs_of_common_terms(counts, looked, rare, pairs):
    assert retrievers.pick_rare(frequencies(*counts), looked) == (rare, pairs)


@given(st.lists(st.integers(1, 10**6), max_size=80), st.integers(1, 2000))
def test_pick_rare_stays_within_bound_and_pairs_other_terms(counts, looked):
    often = frequencies(*counts)
    rare, pairs = retrievers.pick_rare(often, looked)
    assert sum(often[term] for term in rare) <= looked
    assert not set(rare) & {term for pair in pairs for term in pair}
    assert all(often[one] <= often[other] for one, other in pairs)


@given(NUMBERS, NUMBERS)
def test_rarity_is_not_negative_and_falls_with_frequency(frequency, documents):
    assert 0 <= retrievers.rarity(frequency + 1, documents) <= retrievers.rarity(frequency, documents)


@given(st.floats(0, 100), st.lists(st.integers(0, 50), max_size=5), st.integers(0, 50))
def test_coverage_is_a_share_and_rises_with_best_score(best, counts, documents):
    rows = frequencies(*counts)
    terms = list(rows)
    assert 0 <= retrievers.coverage(best, rows, terms, documents) <= 1
    assert retrievers.coverage(best, rows, terms, documents) <= retrievers.coverage(best + 1, rows, terms, documents)


def test_coverage_is_low_for_unknown_words():
    rows = frequencies(1)
    best = retrievers.rarity(1, 10)
    assert retrievers.coverage(best, rows, ["t0"], 10) == 1
    assert retrievers.coverage(best, rows, ["t0", "unknown"], 10) < 0.5
    assert retrievers.coverage(best, rows, [], 10) == 0


def test_search_words_runs_no_query_without_words_or_facts():
    for scope, rows in (
        (retrievers.Scope("facts", 5, 5, INSTANTS), {}),
        (retrievers.Scope("facts", 0, 5, INSTANTS), frequencies(1)),
    ):
        with pytest.raises(StopIteration) as ended:
            next(retrievers.search_words(scope, rows, 5, None))
        assert ended.value.value == []


def test_search_words_returns_bm25_scores(many):
    many.facts(
        [{"id": "short", "n": 4, "terms": {"oslo": 1}}, {"id": "long", "n": 16, "terms": {"oslo": 2, "rain": 1}}]
    )
    found = search(many, {"oslo": 2, "rain": 1}, 2, length=10.0)

    def part(term: int, times: int, length: int) -> float:
        long = 1 - retrievers.B + retrievers.B * length / 10
        return retrievers.rarity(term, 2) * times / (times + retrievers.K1 * long)

    expected = {"short": part(2, 1, 4), "long": part(2, 2, 16) + part(1, 1, 16)}
    assert names(found) == ["long", "short"]
    assert all(math.isclose(score, expected[id_], abs_tol=1e-6) for id_, score in found)


def test_search_words_ranks_rare_word_hits_by_common_words(many):
    common = [{"id": f"f{i:04}", "n": 4, "terms": {"oslo": 1}} for i in range(30)]
    rare = [{"id": "one", "n": 4, "terms": {"rain": 1}}, {"id": "both", "n": 4, "terms": {"rain": 1, "oslo": 1}}]
    many.facts([*common, *rare])
    assert names(search(many, {"oslo": MOST, "rain": 2}, 2 * MOST, length=4.0)) == ["both", "one"]


@pytest.mark.usefixtures("at_most_twenty_texts")
def test_search_words_finds_text_with_two_common_words(many):
    many.facts(
        [{"id": f"r{i:02}", "n": 90, "terms": {"rain": 1}} for i in range(15)]
        + [{"id": f"o{i:02}", "n": 9, "terms": {"oslo": 1}} for i in range(39)]
        + [{"id": f"s{i:02}", "n": 9, "terms": {"sun": 1}} for i in range(39)]
        + [{"id": "two", "n": 9, "terms": {"oslo": 1, "sun": 1}}]
    )
    rows = {"oslo": 40, "rain": 15, "sun": 40}
    assert retrievers.pick_rare(rows, 20) == (["rain"], [["oslo", "sun"]])
    assert names(search(many, rows, 94)) == ["two", *(f"r{i:02}" for i in range(9))]
    assert len(search(many, rows, 94, wanted=30)) == 30  # of which few have two: those with one are found as well


@pytest.mark.usefixtures("at_most_twenty_texts")
def test_search_words_prefers_texts_with_rare_words(many):
    """More texts match than the search looks at."""
    many.facts(
        [{"id": f"f{i:03}", "n": 9, "terms": {"oslo": 1} | ({"rain": 1} if i % 10 == 9 else {})} for i in range(200)]
    )
    assert names(search(many, {"oslo": 200, "rain": 20}, 200)) == [f"f{i:03}" for i in range(9, 100, 10)]


@pytest.mark.usefixtures("at_most_twenty_texts")
def test_search_words_prefers_shortest_texts_for_one_word(many):
    many.facts([{"id": f"f{i:03}", "n": 300 - i, "terms": {"oslo": 1}} for i in range(200)])
    assert names(search(many, {"oslo": 200}, 200)) == [f"f{i:03}" for i in range(199, 189, -1)]


def test_search_words_weighs_rarest_words_of_long_text(many):
    words = {f"w{i:03}": 1 for i in range(3 * retrievers.MOST_WEIGHED)}
    many.facts([{"id": "rare", "n": 9, "terms": {"w000": 1}}, {"id": "all", "n": 9, "terms": words}])
    rows = {word: 1 + place for place, word in enumerate(words)}
    found = search(many, rows, 1000)
    each = [retrievers.rarity(1 + place, 1000) / (1 + retrievers.K1) for place in range(retrievers.MOST_WEIGHED)]
    assert names(found) == ["all", "rare"]
    assert found[0][1] == pytest.approx(sum(each), rel=1e-4)


def test_search_words_is_not_starved_by_ended_facts(many):
    many.facts(
        [{"id": f"f{i:04}", "n": 4 if i < 2995 else 8, "terms": {"oslo": 1}, "over": i < 2995} for i in range(3000)]
    )
    assert names(search(many, {"oslo": 3000}, 3000, length=5.0, wanted=20)) == [f"f{i:04}" for i in range(2995, 3000)]


def test_search_words_finds_all_facts_of_selective_filter(many):
    many.facts(
        [
            {"id": f"f{i:04}", "n": 4 if i > 2 else 100, "terms": {"oslo": 1}, "predicate": "P" if i > 2 else "RARE"}
            for i in range(3000)
        ]
    )
    words = {"oslo": 3000}
    for where in ({"predicate": "RARE"}, {"$or": [{"predicate": "RARE"}, {"predicate": "RARER"}]}):
        scope = many.run(retrievers.narrow_scope(retrievers.Scope("facts", 3000, 20, INSTANTS, parse_filter(where))))
        found = many.run(retrievers.search_words(scope, words, 3000, 5.0))
        assert names(found) == ["f0000", "f0001", "f0002"]
        assert len({score for _, score in found}) == 1
