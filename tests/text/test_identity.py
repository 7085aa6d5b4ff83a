import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kg_memory.text import identity

ANY_TEXT = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\x00\ud800\udfff\n\u2028\u200b İßǆﬁ"))
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
KEY = re.compile(r"[0-9a-f]{32}")
NORMALISED = (identity.replace_unstorable, identity.display_name, identity.canonical_name)


@given(ANY_TEXT)
def test_normalised_text_can_always_be_stored(text):
    for normalised in (*NORMALISED, identity.canonical_sentence):
        made = normalised(text)
        assert "\x00" not in made
        made.encode("utf-8")


@given(ANY_TEXT, ANY_TEXT)
def test_keys_and_ids_have_a_fixed_format(one, other):
    assert KEY.fullmatch(identity.alias_key(one))
    assert KEY.fullmatch(identity.entity_key(one, other))
    assert KEY.fullmatch(identity.thread_key(one))
    assert UUID.fullmatch(identity.episode_id(one, [other, None]))
    assert UUID.fullmatch(identity.entity_id(one, other))
    assert UUID.fullmatch(identity.fact_id(one, other, one, [other], one))
    assert UUID.fullmatch(identity.belief_id(one, other, one, 1, 2))


@given(ANY_TEXT)
def test_display_name_is_one_clean_line_within_512_bytes(name):
    shown = identity.display_name(name)
    assert len(shown.encode()) <= identity.LONGEST_NAME
    assert shown == shown.strip()
    assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in shown)


@given(ANY_TEXT)
def test_normalisation_is_idempotent(text):
    for normalised in NORMALISED:
        assert normalised(normalised(text)) == normalised(text)


ASCII = st.text(st.characters(max_codepoint=127), max_size=40)


@given(ASCII | st.text("aB \t\x1f~", min_size=90, max_size=700) | st.tuples(ASCII, st.just(" "), ASCII).map("".join))
@example("")
@example(" " * 600)
@example("A" * 511 + " B")
@example("A" * 512 + " B")
@example("A b" * 300)
@example("a\x7fb\x1cc\x0bd")
def test_canonical_name_of_ascii_equals_full_normalisation(name):
    long_way = identity.display_name(unicodedata.normalize("NFKC", identity.display_name(name)).casefold())
    assert identity.canonical_name(name) == long_way


@given(st.text(st.characters(categories=("L", "N", "Zs")), max_size=60))
def test_replace_unstorable_leaves_storable_text(text):
    assert identity.replace_unstorable(text) == text


SPELLINGS = ("ann berg", "ANN BERG", "  Ann   Berg ", "Ann\tBerg", "Ann\nBerg", "Ａｎｎ　Ｂｅｒｇ", "Ann\u00a0Berg")
EQUIVALENT = [("STRASSE", "straße"), ("é", "e\u0301"), ("ﬁn", "fin"), ("２０２４", "2024")]
MARKED = [("İZMİR", "izmir"), ("ışıl", "IŞIL"), ("\u202bأحمد\u202c", "أحمد"), ("Ann\u200b", "\ufeffann")]


@pytest.mark.parametrize(("one", "other"), [*(("Ann Berg", other) for other in SPELLINGS), *EQUIVALENT, *MARKED])
def test_keys_ignore_case_width_and_spacing(one, other):
    """Features: C4."""
    assert identity.alias_key(other) == identity.alias_key(one)
    assert identity.entity_key(other, "person") == identity.entity_key(one, "Person")


@pytest.mark.parametrize(("one", "other"), [("Ann", "Anne"), ("Room 101", "Room 102"), ("李明", "李鸣"), ("A B", "AB")])
def test_alias_key_differs_for_other_names(one, other):
    assert identity.alias_key(one) != identity.alias_key(other)


def test_entity_key_depends_on_the_type():
    assert identity.entity_key("Jordan", "Person") != identity.entity_key("Jordan", "Place")
    assert identity.alias_key("Jordan") == identity.alias_key("jordan")


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4), st.lists(st.text(max_size=4), min_size=1, max_size=4))
def test_episode_id_differs_for_distinct_parts(one, other):
    assert (identity.episode_id("n", one) == identity.episode_id("n", other)) == (one == other)


def test_ids_separate_their_parts():
    assert identity.episode_id("n", ["ab", "c"]) != identity.episode_id("n", ["a", "bc"])
    assert identity.episode_id("n", ["1:a", ""]) != identity.episode_id("n", ["", "1:a"])
    assert identity.entity_key("b", "a") != identity.entity_key("a", "b")


def test_ids_depend_on_the_namespace():
    assert identity.episode_id("a", ["x"]) != identity.episode_id("b", ["x"])
    assert identity.entity_id("a", "k") != identity.entity_id("b", "k")


def test_fact_id_ignores_the_order_of_objects():
    """It depends on their number, and on the sentence without its case and spacing."""
    one = identity.fact_id("n", "s", "P", ["a", "b"], "It is so.")
    assert one == identity.fact_id("n", "s", "P", ["b", "a"], "it is  SO")
    assert one != identity.fact_id("n", "s", "P", ["a"], "It is so.")
    assert one != identity.fact_id("n", "s", "P", ["a", "b"], "It is not so.")


def test_ids_and_keys_of_different_kinds_differ():
    assert identity.entity_id("n", "x") != identity.episode_id("n", ["x"])
    assert identity.thread_key(None) == identity.thread_key("")
    assert identity.thread_key("t") != identity.alias_key("t")


def test_display_name_is_never_cut_within_a_character():
    assert identity.display_name("é" * 5000) == "é" * 256
    assert identity.display_name("𝔘" * 5000) == "𝔘" * 128
