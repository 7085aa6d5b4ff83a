"""Embedding models are retried, and invalid vectors never reach the database."""

import asyncio
import json
import math
from sys import float_info

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from kg_memory.errors import EmbeddingError, SettingsError
from kg_memory.llm.embeddings import make_reliable, open_embedding_model, to_unit_vectors, vector_model_name
from tests.openai_wire import BASE_URL, body, failure, openai_wire, vectors
from tests.sleeping import Sleeping


@pytest.fixture
def sleeping():
    return Sleeping()


@pytest.fixture(params=["sync", "async"])
def embed(request, sleeping):
    """Return a function that embeds texts by OpenAI's client, without real pauses."""
    opened = open_embedding_model("test-embedder", BASE_URL, dimensions=2)
    remote = make_reliable(opened.model, sleeper=sleeping.sleeper, limiter=sleeping.limiter)

    def verb(*texts: str) -> list[list[float]]:
        if request.param == "sync":
            return remote.embed_documents(list(texts))
        return asyncio.run(remote.aembed_documents(list(texts)))

    return verb


@pytest.fixture
def wire():
    with openai_wire() as router:
        yield router.post("/embeddings")


def test_embed_sends_texts_in_one_request(embed, wire):
    wire.mock(return_value=vectors([3.0, 4.0], [0.0, 2.0]))
    assert embed("Oslo", "成都") == [[0.6, 0.8], [0.0, 1.0]]
    sent = body(wire.calls[0])
    assert sent["input"] == ["Oslo", "成都"]
    assert (sent["dimensions"], sent["encoding_format"]) == (2, "float")
    assert wire.call_count == 1


def test_embed_request_replaces_invalid_text(embed, wire):
    wire.mock(return_value=vectors(*[[1.0, 0.0]] * 3))
    embed("", "a\ud800b", "x" * 100_000)
    assert body(wire.calls[0])["input"] == [".", "a?b", "x" * 8000]


def test_embed_sends_no_request_for_no_texts(embed, wire):
    assert embed() == []
    assert wire.call_count == 0


def test_embed_divides_texts_if_server_limits_their_number(embed, wire):
    def at_most(most):
        def answer(request):
            texts = json.loads(request.content)["input"]
            return failure(413, "batch size") if len(texts) > most else vectors(*([len(text), 1.0] for text in texts))

        return answer

    texts = ["x" * size for size in range(1, 41)]
    expected = to_unit_vectors([[size, 1.0] for size in range(1, 41)], texts)
    wire.mock(side_effect=at_most(20))
    for requests in (3, 3 + 2):  # 40, 20 and 20 texts; then the limit is known
        assert embed(*texts) == expected
        assert wire.call_count == requests
    wire.mock(side_effect=at_most(5))  # as if these texts were too long: that is not learnt
    assert embed(*texts) == expected
    wire.mock(side_effect=at_most(20))
    before = wire.call_count
    assert embed(*texts) == expected
    assert wire.call_count == before + 2


def test_embed_learns_no_limit_from_one_text_that_is_refused(embed, wire):
    def without_zero(request):
        texts = json.loads(request.content)["input"]
        return failure(400, "bad") if "0" in texts else vectors(*[[1.0, 1.0]] * len(texts))

    wire.mock(side_effect=without_zero)
    with pytest.raises(EmbeddingError):
        embed(*"1203")
    assert [wire.call_count, len(embed(*"1234")), wire.call_count] == [5, 4, 6]


def test_embed_waits_out_rate_limit(embed, wire, sleeping):
    wire.mock(side_effect=[failure(429, headers={"retry-after": "3"}), vectors([1.0, 0.0])])
    assert embed("Oslo") == [[1.0, 0.0]]
    assert 3 <= sleeping.slept[0] < 3.5


@pytest.mark.parametrize("character", ["成", "🙂", "é", "x"])
def test_embed_cuts_long_text_by_bytes(embed, wire, character):
    wire.mock(return_value=vectors([1.0, 0.0]))
    embed("a" + character * 20_000)
    (sent,) = body(wire.calls[0])["input"]
    assert 8000 - len(character.encode()) < len(sent.encode()) <= 8000
    assert set(sent) <= {"a", character}


def test_embed_query_uses_query_method_of_model():
    class TwoWays(Embeddings):
        def embed_documents(self, texts):
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text):
            return [0.0, 1.0]

    model = make_reliable(TwoWays())
    assert model.embed_query("where?") == [0.0, 1.0]
    assert asyncio.run(model.aembed_query("where?")) == [0.0, 1.0]
    assert model.embed_documents(["there"]) == [[1.0, 0.0]]
    assert make_reliable(model) is model


def test_embeddings_without_key_or_of_another_type_are_refused():
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        open_embedding_model("text-embedding-3-small")
    with pytest.raises(SettingsError, match="LangChain Embeddings"):
        make_reliable("text-embedding-3-small")


def test_vector_model_name_returns_name_of_model():
    assert vector_model_name(open_embedding_model("e5", BASE_URL)) == "e5"
    assert vector_model_name(DeterministicFakeEmbedding(size=2)).endswith("DeterministicFakeEmbedding")


# --- checks


@pytest.mark.parametrize(
    "vector", [[math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0], [], ["a", "b"], [None, 1.0], "ab", None, 3, [[1.0], [2.0]]]
)
def test_unit_vectors_error_names_position_not_text(vector):
    with pytest.raises(EmbeddingError, match="text 1") as error:
        to_unit_vectors([[1.0, 0.0], vector], ["first", "secret"])
    assert "secret" not in str(error.value)


def test_unit_vectors_refuse_different_dimensions():
    with pytest.raises(EmbeddingError, match="must have 2 dimensions, got 1"):
        to_unit_vectors([[1.0, 0.0], [1.0]], ["a", "b"])
    with pytest.raises(EmbeddingError, match="must have 3 dimensions, got 2"):
        to_unit_vectors([[1.0, 0.0]], ["a"], 3)


@pytest.mark.parametrize("text", ["", "  \n", "?!", "🙂"])
def test_unit_vectors_replace_zero_vector_of_wordless_text(text):
    assert to_unit_vectors([[0.0, 0.0]], [text]) == [[1.0, 0.0]]


def test_unit_vectors_scale_numbers_beyond_single_precision():
    assert to_unit_vectors([[3e300, 4e300], [3e-200, 4e-200]], ["a", "b"]) == [pytest.approx([0.6, 0.8])] * 2


@pytest.mark.parametrize(("length", "stays"), [(1 - 1e-9, True), (1 + 1e-9, True), (1.001, False), (0.999, False)])
def test_unit_vectors_keep_vector_of_length_one(length, stays):
    """Rounding by the database does not count as another length."""
    vector = [0.6 * length, 0.8 * length]
    (unit,) = to_unit_vectors([vector], ["a"])
    assert (unit == vector) is stays
    assert math.hypot(*unit) == pytest.approx(1.0, rel=1e-7)


def test_unit_vectors_convert_numpy_vectors():
    (unit,) = to_unit_vectors(pytest.importorskip("numpy").array([[3.0, 4.0]], dtype="float32"), ["a"])
    assert unit == pytest.approx([0.6, 0.8])
    assert all(type(number) is float for number in unit)


@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_unit_vectors_have_length_one_or_are_refused(vector):
    try:
        (unit,) = to_unit_vectors([vector], ["words"])
    except EmbeddingError:
        assert not float_info.min <= math.hypot(*vector) < math.inf
    else:
        assert math.hypot(*unit) == pytest.approx(1.0)


def test_embed_refuses_another_number_of_vectors(embed, wire):
    wire.mock(return_value=vectors([1.0, 0.0], [1.0, 0.0]))
    with pytest.raises(EmbeddingError, match="2 vectors for 1"):
        embed("Oslo")
