"""The names that a question may contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.retrieval.question import HYPHENS, LONGEST_NAME, MOST_WORDS, name_keys
from kg_memory.text.identity import alias_key


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the Queen of Norway?", {"Queen of Norway", "norway"}),
        ("Is “Ann's” cat (Milo) James' cat? St. Mary's?", {"Ann", "Milo", "James", "St. Mary"}),
        ("Does she like C++ more?", {"C++"}),
        ("Who is ann@example.com?", {"ann@example.com"}),
        ("Who maintains the letter sorting machine of the post-office?", {"letter-sorting-machine", "post office"}),
        ("王小明现在住在北京吗？", {"王小明", "北京"}),
    ],
)
def test_name_keys_include_every_stretch_of_words(question, names):
    keys = name_keys(question)
    assert set(map(alias_key, names)) <= set(keys)
    assert alias_key("the") not in keys


def test_name_keys_are_few_for_ten_thousand_words():
    keys = name_keys(" ".join(f"word{number}" for number in range(10_000)))
    assert len(keys) <= MOST_WORDS * (LONGEST_NAME + len(HYPHENS))
    assert len(name_keys("猫狗鸟鱼" * 10_000)) < 100_000


@given(st.text(st.characters(exclude_categories=()), max_size=100))
def test_name_keys_are_unique_and_of_fixed_length(question):
    keys = name_keys(question)
    assert all(len(key) == 32 for key in keys)
    assert len(keys) == len(set(keys))
