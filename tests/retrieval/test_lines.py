"""Texts of context lines: short and clean."""

import time

import pytest
from hypothesis import given

from kg_memory.models.results import QueryTime
from kg_memory.retrieval.context.lines import LineMaker
from kg_memory.text.sentences import excerpt, one_line
from tests.retrieval.findings import HARM, MAY, episode, fact, source


@given(HARM)
def test_one_line_removes_control_characters(text):
    line = one_line(text)
    assert line == line.strip()
    assert one_line(line) == line
    line.encode()
    assert not set(line) & set("\n\r\t\x00\x1b\u2028\u2029\u202a\u202b\u202d\u202e\u2066\u2067\ufeff\ufffe\uffff")


def test_one_line_preserves_other_scripts_and_symbols():
    for text in ("我搬到了北京。", "Zoë, Łódź", "مرحبا بالعالم", "🎉 50 % – “so”", "नमस्ते"):
        assert one_line(text) == text


def test_excerpt_returns_stretch_with_words_of_question():
    text = "word " * 2000 + "the treasure lies under the old oak " + "word " * 2000
    stretch = excerpt(text, {"treasur", "oak"}, 300)
    assert "the treasure lies under the old oak" in stretch
    assert (stretch[:2], stretch[-2:]) == ("… ", " …")
    assert len(stretch) <= 304


def test_excerpt_prefers_content_to_greetings():
    text = "Thanks for the tip, Caroline. Last month I got hurt and took a break from pottery. I'll do that."
    assert excerpt(text, {"book"}, 60) == "… Last month I got hurt and took a break from pottery. …"


def test_excerpt_cuts_long_text_without_spaces():
    assert len(excerpt("x" * 100_000, set(), 500)) <= 504
    assert excerpt("?! " * 400, {"oak"}, 300)
    assert "答案" in excerpt("无" * 5000 + "答案" + "无" * 5000, {"答案"}, 300)


def test_one_line_handles_huge_text_quickly():
    begin = time.process_time()
    assert len(one_line("\x00 <b>word</b>\n" * 1_000_000)) <= 504
    assert time.process_time() - begin < 5


def test_line_of_equal_items_lists_all_sources():
    one = fact(sources=(source(source_id="m1"), source("ab")))
    other = fact(id="other", sources=(source(source_id="m2"), source(source_id="m1")))
    assert LineMaker(str).make([one, other]).sources == ("m1", "ab", "m2")
    said = LineMaker(str).make([episode(source_id="m1"), episode(source_id="x" * 65)])
    assert said.sources == ("m1", "abcdef01")


def test_line_maker_raises_for_unknown_type():
    with pytest.raises(TypeError, match="QueryTime"):
        LineMaker(str).make([QueryTime(believed_at=MAY, reading="now")])
