"""Cross-encoders return scores from 0 to 1 in the order of the texts, or raise a clear error."""

import asyncio
import json
import math

import httpx
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from kg_memory.contrib.offline import OfflineModel
from kg_memory.contrib.scorers import SERVER_BATCH, LangChainCrossEncoder, RerankServer
from kg_memory.errors import ModelError, ModelUnavailable, SettingsError
from kg_memory.llm.chat import ChatModel
from kg_memory.llm.cross_encoders import MAX_TEXT, ModelCrossEncoder
from kg_memory.memory.memory import GraphMemory
from kg_memory.memory.open import scorer
from kg_memory.runtime.driver import check_scores
from kg_memory.runtime.effects import CrossEncoder
from kg_memory.settings import Settings
from tests.openai_wire import body
from tests.scripted import Scripted
from tests.sleeping import Sleeping

URL = "http://rerank.test/v1/rerank"
QUESTION = "Where does Ann live?"


@pytest.fixture(params=["sync", "async"])
def ask(request):
    """Return a function that scores texts by a cross-encoder, sync or async."""

    def verb(encoder: CrossEncoder, texts: list[str], question: str = QUESTION) -> list[float]:
        if request.param == "sync":
            return encoder.scores(question, texts)
        return asyncio.run(encoder.ascores(question, texts))

    return verb


# --- a language model


def relevant(**words: float):
    """A rule that finds a text as relevant as the first of *words* that is in it."""

    def rule(fields):
        scores = []
        for field in fields["texts"]:
            values = [value for word, value in words.items() if word in field["text"]]
            scores += [{"text": field["id"], "relevance": value} for value in values[:1]]
        return {"scores": scores}

    return Scripted(score=rule)


def test_model_cross_encoder_scores_omitted_texts_zero(ask):
    assert ask(ModelCrossEncoder(relevant(Oslo=10, Bergen=2.5)), ["in Bergen", "a cat", "in Oslo"]) == [0.25, 0.0, 1.0]


def test_model_cross_encoder_asks_nothing_for_no_texts(ask):
    model = relevant()
    assert ask(ModelCrossEncoder(model), []) == []
    assert model.asked == []


def test_model_cross_encoder_asks_each_text_once_in_batches(ask):
    model = relevant(text=5)
    texts = [f"text {place}" for place in range(45)] * 2 + ["text " + "x" * 10_000]
    assert ask(ModelCrossEncoder(model), texts) == [0.5] * 91
    requests = [field["text"] for fields in model.asks("score") for field in fields["texts"]]
    assert len(requests) == len(set(requests)) == 46
    assert len(model.asked) == 3
    assert max(map(len, requests)) == MAX_TEXT


@given(st.permutations(["in Oslo", "in Bergen", "a cat", "a dog", "北京"]), st.integers(0, 5))
def test_model_cross_encoder_ignores_order_of_texts(texts, favoured):
    def first_of_the_list(fields):
        return {"scores": [{"text": field["id"], "relevance": field["id"] + favoured} for field in fields["texts"]]}

    scores = ModelCrossEncoder(Scripted(score=first_of_the_list)).scores(QUESTION, texts)
    expected = ModelCrossEncoder(Scripted(score=first_of_the_list)).scores(QUESTION, sorted(texts))
    assert dict(zip(texts, scores, strict=True)) == dict(zip(sorted(texts), expected, strict=True))


def test_model_cross_encoder_drops_unknown_ids_and_clamps_scores(ask):
    scores = [{"text": 7, "relevance": 9}, {"text": 0, "relevance": 99}, {"text": 1, "relevance": -1}]
    model = Scripted(score=lambda _: {"scores": scores})
    assert ask(ModelCrossEncoder(model), ["a", "b", "c"]) == [1.0, 0.0, 0.0]


def chat(*answers: str) -> ModelCrossEncoder:
    return ModelCrossEncoder(ChatModel(GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers]))))


def test_model_cross_encoder_repairs_answers_of_chat_model(ask):
    good = json.dumps({"scores": [{"text": 1, "relevance": "8"}, {"text": 0, "relevance": "very"}]})
    assert ask(chat("no idea", good), ["a", "b"]) == [0.0, 0.8]


def test_offline_cross_encoder_counts_common_words(ask):
    encoder = ModelCrossEncoder(OfflineModel())
    texts = ["Ann lives in Oslo", "Ann has a cat", "It rains", "", "?!", "安住在奥斯陆"]
    result = ask(encoder, texts)
    assert result == ask(encoder, texts)
    assert result[0] > result[1] > result[2] == result[3] == result[4] == 0
    assert ask(encoder, ["Ann live"]) == [1.0]
    assert ask(encoder, texts, "") == [0.0] * 6
    assert ask(encoder, texts, "安住在哪里?")[5] > 0


# --- a rerank server


def reranker(sleeping: Sleeping | None = None, **options) -> RerankServer:
    sleeping = sleeping or Sleeping()
    return RerankServer(URL, **options, sleeper=sleeping.sleeper, limiter=sleeping.limiter)


@pytest.fixture
def wire():
    with respx.mock(assert_all_called=False) as router:
        yield router.post(URL)


def results(*scores: float, name: str = "relevance_score") -> httpx.Response:
    """The scores as servers send them: best first, by the index of the text."""
    ranked = sorted(enumerate(scores), key=lambda each: -each[1])
    return httpx.Response(200, json={"results": [{"index": index, name: score} for index, score in ranked]})


def by_number(request: httpx.Request) -> httpx.Response:
    """Score each text by the number at its end."""
    return results(*(float(text.split()[-1]) for text in json.loads(request.content)["documents"]))


def test_rerank_server_gets_common_request_format(ask, wire):
    wire.mock(return_value=results(0.2, 0.9))
    assert ask(reranker(model="judge-1", api_key="secret"), ["in Bergen", "in Oslo"]) == [0.2, 0.9]
    assert body(wire.calls[0]) == {"model": "judge-1", "query": QUESTION, "documents": ["in Bergen", "in Oslo"]}
    assert wire.calls[0].request.headers["authorization"] == "Bearer secret"


def test_rerank_server_request_omits_unset_model_and_key(ask, wire):
    wire.mock(return_value=results(0.2, name="score"))
    assert ask(reranker(), ["in Oslo"]) == [0.2]
    assert "model" not in body(wire.calls[0])
    assert "authorization" not in wire.calls[0].request.headers


def test_rerank_server_detects_and_remembers_bare_format(ask, wire):
    def bare(request):
        if "texts" not in json.loads(request.content):
            return httpx.Response(422, text="missing field `texts`")
        return httpx.Response(200, json=[{"index": 1, "score": 0.7}, {"index": 0, "score": 0.1}])

    wire.mock(side_effect=bare)
    encoder = reranker()
    assert ask(encoder, ["a", "b"]) == [0.1, 0.7]
    assert ask(encoder, ["a", "b"]) == [0.1, 0.7]
    assert ["texts" in body(call) for call in wire.calls] == [False, True, True]


def test_rerank_server_error_names_first_refusal(ask, wire):
    wire.mock(side_effect=[httpx.Response(400, text="query too long"), httpx.Response(422, text="no documents")])
    with pytest.raises(ModelError, match=r"query too long.*server's log"):
        ask(reranker(), ["a"])


def test_rerank_server_gets_texts_in_batches(ask, wire):
    wire.mock(side_effect=by_number)
    texts = [f"text {place / 100}" for place in range(SERVER_BATCH * 2 + 1)]
    assert ask(reranker(), texts) == [place / 100 for place in range(SERVER_BATCH * 2 + 1)]
    assert sorted(len(body(call)["documents"]) for call in wire.calls) == [1, SERVER_BATCH, SERVER_BATCH]


def test_rerank_server_maps_logits_to_zero_to_one_in_order(ask, wire):
    wire.mock(side_effect=by_number)
    encoder = reranker()
    result = ask(encoder, ["t -800", "t -3.5", "t 0", "t 0.5", "t 9", "t 800"])
    assert result == sorted(result)
    assert (result[0], result[2], result[5]) == (0.0, 0.5, 1.0)
    assert ask(encoder, ["t 0.5"]) == [result[3]]


def test_rerank_server_request_replaces_invalid_text(ask, wire):
    wire.mock(return_value=results(0.1, 0.2, 0.3))
    ask(reranker(), ["", "a\ud800b", "x" * 100_000], "where\ud800")
    assert body(wire.calls[0]) == {"query": "where?", "documents": [".", "a?b", "x" * 8000]}


def test_rerank_server_rate_limit_is_waited_out(ask, wire):
    wire.mock(side_effect=[httpx.Response(429, headers={"retry-after": "3"}), httpx.Response(503), results(0.4)])
    sleeping = Sleeping()
    assert ask(reranker(sleeping), ["a"]) == [0.4]
    assert 3 <= sleeping.slept[0] < 3.5


@pytest.mark.parametrize(
    ("reply", "error", "advice"),
    [
        (httpx.Response(500, text="oops"), ModelUnavailable, "oops.*try again later"),
        (httpx.Response(429), ModelUnavailable, "try again later"),
        (httpx.Response(401, text="bad key"), SettingsError, "KG_MEMORY_RERANK_API_KEY"),
        (httpx.Response(403), SettingsError, "api_key"),
        (httpx.Response(404, text="no such model"), SettingsError, "ends in /rerank"),
        (httpx.Response(307, headers={"location": "http://elsewhere"}), SettingsError, "rerank_url. to the address"),
        (httpx.Response(413, text="too large"), ModelError, "too large"),
        (httpx.Response(200, text="<html>"), ModelUnavailable, "check its URL"),
        (httpx.Response(200, json={"error": "x"}), ModelError, "0 scores for 2 texts"),
        (httpx.Response(200, text="null"), ModelError, "0 scores for 2 texts"),
        (httpx.Response(200, json=["a"]), ModelError, "index None of 2"),
        (results(0.5), ModelError, "1 scores for 2 texts"),
        (results(0.5, 0.6, 0.7), ModelError, "index 2 of 2"),
        (httpx.Response(200, json=[{"index": -1, "score": 0.5}]), ModelError, "index -1 of 2"),
        (httpx.Response(200, json=[{"index": "0", "score": 0.5}]), ModelError, "index '0' of 2"),
        (httpx.Response(200, json=[{"index": True, "score": 0.5}]), ModelError, "index True of 2"),
        (httpx.Response(200, json=[{"index": 0, "score": 0.5}] * 2), ModelError, "repeated index"),
        (httpx.Response(200, text='[{"index": 0, "score": NaN}]'), ModelError, "no finite score for text 0"),
        (httpx.Response(200, text='[{"index": 0, "score": 1e999}]'), ModelError, "no finite score for text 0"),
        (httpx.Response(200, json=[{"index": 0, "score": 10**400}]), ModelError, "no finite score for text 0"),
        (httpx.Response(200, json=[{"index": 0, "score": None}]), ModelError, "no finite score for text 0"),
        (httpx.Response(200, json=[{"index": 0, "score": "0.5"}]), ModelError, "no finite score for text 0"),
        (httpx.Response(200, json=[{"index": 0}]), ModelError, "no finite score for text 0"),
    ],
)
def test_rerank_server_failure_raises_error_with_advice(ask, wire, reply, error, advice):
    wire.mock(return_value=reply)
    with pytest.raises(error, match=advice) as raised:
        ask(reranker(api_key="secret"), ["a", "b"])
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("error", "pauses"), [(httpx.ConnectError("refused"), 4), (httpx.ReadTimeout("too slow"), 1)])
def test_rerank_server_unreachable_raises_model_unavailable(ask, wire, error, pauses):
    wire.mock(side_effect=error)
    sleeping = Sleeping()
    with pytest.raises(ModelUnavailable, match=r"at rerank.test failed .*check its URL"):
        ask(reranker(sleeping), ["a"])
    assert len(sleeping.slept) == pauses


@pytest.mark.parametrize(
    "url", ["", "rerank.test/rerank", "ftp://x/rerank", "http://", "http:///rerank", "http://[x/rerank"]
)
def test_rerank_server_refuses_invalid_url(url):
    with pytest.raises(SettingsError, match="http://localhost:8080/rerank"):
        RerankServer(url)


def test_rerank_server_name_omits_password_of_url():
    assert RerankServer("https://ann:secret@host/rerank?key=hidden", "m").name == "the reranker m at host"


# --- LangChain's own


class Pairs(BaseCrossEncoder):
    """Scores a text by the number at its end."""

    model_name = "pairs"

    def score(self, text_pairs):
        return [float(text.split()[-1]) for _, text in text_pairs]


def test_langchain_cross_encoder_scores_pairs(ask):
    encoder = LangChainCrossEncoder(Pairs())
    assert encoder.name == "pairs"
    assert ask(encoder, ["t 0.7", "t 0.1"]) == [0.7, 0.1]
    assert ask(encoder, []) == []
    result = ask(encoder, ["t -2", "t 0", "t 3"])
    assert result == sorted(result)
    assert result[1] == 0.5
    with pytest.raises(ModelError, match=r"pairs failed .*set-up"):
        ask(encoder, ["no number"])
    with pytest.raises(ModelError, match="scored text 0"):
        check_scores(ask(encoder, ["t nan"]), ["t nan"], encoder.name)


# --- checks


@pytest.mark.parametrize("odd", [math.nan, math.inf, -0.1, 1.1, "0.5", None, True, [0.5]])
def test_check_scores_error_names_position_not_text(odd):
    with pytest.raises(ModelError, match=r"odd-encoder scored text 1 .*from 0 to 1") as raised:
        check_scores([0.5, odd], ["first", "secret"], "odd-encoder")
    assert "secret" not in str(raised.value)


def test_check_scores_converts_numpy_scores():
    numpy = pytest.importorskip("numpy")
    result = check_scores(numpy.array([0.25, 1.0], dtype="float32"), ["a", "b"], "x")
    assert result == [0.25, 1.0]
    assert all(type(item) is float for item in result)


# --- choice of the reranker


class Own:
    name = "own"

    def scores(self, question, texts):
        return [0.5] * len(texts)

    async def ascores(self, question, texts):
        return [0.5] * len(texts)


def test_scorer_prefers_argument_over_settings_over_model():
    """The `reranker` argument takes precedence over the settings, and these over the chat model.

    Features: A50.
    """
    own, model = Own(), OfflineModel()
    served = Settings(rerank_url=URL, rerank_model="judge-1", rerank_api_key="secret")
    assert scorer(own, served, model) is own
    assert scorer(Pairs(), served, model).name == "pairs"
    assert scorer(None, served, model).name == "the reranker judge-1 at rerank.test"
    assert scorer("https://other/rerank", served, model).name == "the reranker judge-1 at other"
    assert scorer("offline", served, Scripted()).name == "offline"
    assert scorer("gpt-x", Settings(api_key="k"), model).name == "gpt-x"
    assert scorer(None, Settings(rerank_model="gpt-x", api_key="k"), model).name == "gpt-x"
    assert scorer(None, Settings(), model).name == "offline"
    assert scorer(GenericFakeChatModel(messages=iter([])), Settings(), model).name == "GenericFakeChatModel"


@pytest.mark.parametrize("wrong", [7, object(), ["http://x"], OfflineModel()])
def test_scorer_refuses_values_that_are_no_reranker(wrong):
    with pytest.raises(SettingsError, match="URL of a rerank endpoint"):
        scorer(wrong, Settings(), OfflineModel())


def test_memory_accepts_reranker_and_scores_offline_by_default(server):
    settings = Settings(url=server.url, model="offline", embedding_model="offline")
    with GraphMemory(settings, reranker=URL) as memory:
        assert memory.driver.scorer.name == "the reranker at rerank.test"
    with respx.mock, GraphMemory.open(settings=settings) as memory:
        assert memory.driver.scorer.name == "offline"
        assert memory.driver.scorer.scores("Oslo?", ["Oslo", "Rome"]) == [1.0, 0.0]
