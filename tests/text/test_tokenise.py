"""The tokenizer of the word index."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.text import tokenise
from kg_memory.text.tokenise import MAX_LENGTH, count_terms, terms

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


TERMS = [
    # English is split, folded and stemmed.
    ("She was running to the shops", ["run", "shop"]),
    ("I moved to Oslo in May 2023", ["move", "oslo", "may", "2023"]),
    ("user_id", ["user", "id"]),
    ("getUserName", ["getusernam", "get", "user", "name"]),
    ("HTTPServer", ["httpserver", "http", "server"]),
    ("half-hearted, isn't it?", ["half", "heart"]),
    ("we don’t know O’Brien’s dog", ["know", "o", "brien", "dog"]),
    ("2023-05-01 at 10am for $1,000", ["2023", "5", "1", "10am", "10", "1000"]),
    ("mp3", ["mp3", "mp"]),
    ("it is what it is", []),
    ("Will, May and Mark", ["will", "may", "mark"]),
    # Scripts without spaces become pairs of characters.
    ("我的猫叫什么名字？", ["猫叫", "名字"]),
    ("她搬到了北京。", ["搬到", "北京"]),
    ("猫", ["猫"]),
    ("２０２３年５月", ["2023", "年", "5", "月"]),
    ("東京に行きました", ["東京", "行", "きま", "まし", "した"]),
    ("コーヒー", ["コー", "ーヒ", "ヒー"]),
    ("학교에서", ["학교", "교에", "에서"]),
    ("ไทย", ["ไท", "ทย"]),
    ("हिन्दी में", ["हिन्दी", "में"]),
    ("我用 Python 写代码", ["用", "python", "写代", "代码"]),
    # Each emoji is a word.
    ("🐙🐙", ["🐙", "🐙"]),
    ("party🎉tonight", ["parti", "🎉", "tonight"]),
    ("🇳🇴🇸🇪", ["🇳🇴", "🇸🇪"]),
    ("👍🏽 👍🏿 👍", ["👍", "👍", "👍"]),
    ("👩‍💻", ["👩", "💻"]),
    ("❤️ ☕", ["❤", "☕"]),
    ("?! … → ©", []),
    # Control characters and lone surrogates only split; words and numbers are cut.
    ("red\x00green\ud800blue", ["red", "green", "blue"]),
    ("x" * 100_000, ["x" * MAX_LENGTH]),
    ("7" * 100_000, ["7" * MAX_LENGTH]),
    *((text, []) for text in ("", " \n\t", "?!… —", "\x00\x1f\x7f", "\ud800\udfff", "__", "''", "\u0301", "of the")),
]


@pytest.mark.parametrize(("text", "words"), TERMS)
def test_terms_are_the_folded_and_stemmed_words(text, words):
    assert terms(text) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CAFÉ", "cafe"),
        ("Ärger", "ärger"),
        ("Łódź", "lodz"),
        ("İstanbul", "istanbul"),
        ("Straße", "STRASSE"),
        ("Иван", "иван"),
        ("Ελλάδα", "ελλαδα"),
        ("كِتَابٌ", "كتاب"),
        ("ﬁne", "fine"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("٤٢", "42"),
        ("soft\u00adware", "software"),
        ("é", "e\u0301"),
    ],
)
def test_terms_unifies_spellings_of_one_word(one, other):
    assert terms(one) == terms(other) != []


def test_terms_of_a_question_match_inflected_words():
    """Features: A39."""
    assert set(terms("Which dogs were adopted?")) & set(terms("Ann is adopting a dog")) == {"adopt", "dog"}


def test_terms_of_a_chinese_question_match_its_answer():
    """Features: D8."""
    assert {"北京"} <= set(terms("你现在住在北京吗？")) & set(terms("我上个月搬到了北京。"))


def test_count_terms_multiplies_by_the_weight():
    assert count_terms("dog cat dogs", weight=4) == {"dog": 8, "cat": 4}


def test_terms_is_thread_safe():
    text = " ".join(f"{stem}{suffix}" for stem in ("run", "swim", "paint") for suffix in ("s", "ning", "ed", "er"))
    fresh = [f"{text} salt{number}ing peppers{number % 7}ed" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(terms, fresh)) == [terms(item) for item in fresh]


@given(ANY_TEXT)
def test_terms_of_any_text_are_short_and_can_be_stored(text):
    words = terms(text)
    assert words == terms(text)
    for word in words:
        assert 0 < len(word.encode().decode()) <= MAX_LENGTH
        assert "\x00" not in word


@given(st.text(st.characters(max_codepoint=127)))
def test_terms_of_ascii_are_the_same_within_other_text(text):
    assert [*terms(text), "e"] == terms(f"{text} é")


@given(ANY_TEXT, ANY_TEXT)
def test_terms_of_joined_texts_are_the_terms_of_both(one, other):
    assert terms(f"{one}\n{other}") == terms(one) + terms(other)


@given(
    st.lists(st.sampled_from(["word ", "I've ", "1,000", "\n", "。", "她搬到", "ß", "🎉", " ", "x" * 30]), max_size=40)
)
def test_terms_of_a_long_text_are_the_same_in_parts(parts):
    text = "".join(parts)
    whole = terms(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenise, "PART", 25)
        assert terms(text) == whole
