"""No text that has a word is kept back by the quick look at how its words begin."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kg_memory.maintenance.forgetting.residue import Sieve
from kg_memory.text.tokenise import terms

ODD = "dying lying tying skies ability hoping relational flies tied 1,000 007 v12 camelCase HTTPServer café naïve 奥斯陆 x".split()
WORDS = st.one_of(st.sampled_from(ODD), st.text("abcdeilnrsty'0129-_éß", min_size=1, max_size=9), st.text(max_size=4))
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@given(said=TEXTS, other=TEXTS, third=TEXTS)
def test_a_text_with_one_of_the_words_passes(said, other, third):
    words = set(terms(said))
    sieve = Sieve(words)
    for text in (said, f"{other} {said}", f"{third}\n{said.upper()}", other, third):
        assert sieve.passes(text) or words.isdisjoint(terms(text))


def test_a_text_without_them_mostly_does_not():
    sieve = Sieve(terms("Zebulon lives in Kyoto"))
    assert not sieve.passes("Ann moved to Paris with her brother, and found work there")
    assert not Sieve([]).passes("Zebulon")
