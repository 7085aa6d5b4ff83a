"""The names that a question may contain."""

from hypothesis import given
from hypothesis import strategies as st

from kg_memory.retrieval.question import HYPHENS, LONGEST_NAME, MOST_WORDS, name_keys
from kg_memory.text.identity import alias_key


def test_name_keys_include_every_stretch_of_words():
    keys = name_keys("Who is the Queen of Norway?")
    assert alias_key("Queen of Norway") in keys
    assert alias_key("norway") in keys
    assert alias_key("the") not in keys


def test_name_keys_ignore_possessive_and_punctuation():
    keys = name_keys("Is “Ann's” cat (Milo) James' cat? St. Mary's?")
    assert {alias_key(name) for name in ("Ann", "Milo", "James", "St. Mary")} <= set(keys)


def test_name_keys_include_name_with_punctuation():
    assert alias_key("C++") in name_keys("Does she like C++ more?")
    assert alias_key("ann@example.com") in name_keys("Who is ann@example.com?")


def test_name_keys_match_names_with_and_without_hyphens():
    keys = name_keys("Who maintains the letter sorting machine of the post-office?")
    assert {alias_key("letter-sorting-machine"), alias_key("post office")} <= set(keys)


def test_name_keys_find_chinese_name_in_sentence():
    assert {alias_key("王小明"), alias_key("北京")} <= set(name_keys("王小明现在住在北京吗？"))


def test_name_keys_are_few_for_ten_thousand_words():
    keys = name_keys(" ".join(f"word{number}" for number in range(10_000)))
    assert len(keys) <= MOST_WORDS * (LONGEST_NAME + len(HYPHENS))
    assert len(name_keys("猫狗鸟鱼" * 10_000)) < 100_000


@given(st.text(st.characters(exclude_categories=()), max_size=100))
def test_name_keys_are_unique_and_of_fixed_length(question):
    keys = name_keys(question)
    assert all(len(key) == 32 for key in keys)
    assert len(keys) == len(set(keys))
