"""Opening the server, the model and the embedding model that the settings name."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from langchain_core.embeddings import Embeddings

from kg_memory.errors import EmbeddingUnavailable, ModelUnavailable, SettingsError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import ADVICE, Database
from kg_memory.falkor.graph_store import FalkorDriver, GraphStore
from kg_memory.falkor.hosts import Host, local_host
from kg_memory.falkor.wire import EncodedVector
from kg_memory.llm.budget import make_meter
from kg_memory.llm.cross_encoders import ModelCrossEncoder
from kg_memory.llm.embeddings import ReliableEmbeddings, make_reliable, open_embedding_model, unwrap, vector_model_name
from kg_memory.models.budget import NO_BUDGET, Budget
from kg_memory.plugins import load_plugin
from kg_memory.runtime.driver import Driver, Embedder
from kg_memory.runtime.effects import Ask, CrossEncoder, Model, both
from kg_memory.runtime.flow import SIDE_BY_SIDE, Flow
from kg_memory.settings import LOCAL_EMBEDDINGS, OFFLINE, Settings

if TYPE_CHECKING:
    from langchain_core.cross_encoders import BaseCrossEncoder
    from langchain_core.language_models import BaseChatModel

    Reranker = CrossEncoder | BaseCrossEncoder | BaseChatModel | str
    """The kinds of rerankers that a memory takes."""

logger = logging.getLogger("kg_memory")

OPENAI_MODEL = "gpt-4.1-mini"
OPENAI_EMBEDDINGS = "text-embedding-3-small"
THRESHOLDS = {"merge_threshold": 0.92, "ask_threshold": 0.60, "note_link_threshold": 0.85, "compare_threshold": 0.5}
LOCAL_THRESHOLDS = {
    "merge_threshold": 0.985,
    "ask_threshold": 0.92,
    "note_link_threshold": 0.95,
    "compare_threshold": 0.85,
}
"""Cosines of names from which two are one, from which the model is asked, and from which two entities are linked; and
of sentences from which two facts are compared. The local model's lie close together: unrelated names reach 0.89, "Acme"
and "Acme Corp" 0.96, "Room 101" and "Room 102" 0.95. Contradictory pairs reach down to 0.853 by it, and half of all
pairs of facts about one person in LoCoMo are below 0.85."""


class NoModel(Embeddings):
    """Stands in for all models of a memory that is only looked into; whoever asks it is told *why* there is none."""

    name = schema.ANY_MODEL
    by_rules = False

    def __init__(self, why: str) -> None:
        self._why = why

    def _answer(self, _: Ask) -> Flow[NoReturn]:
        yield from ()
        raise ModelUnavailable(self._why)

    answer, aanswer = both(_answer)

    def embed_documents(self, texts: list[str]) -> NoReturn:
        raise EmbeddingUnavailable(self._why)

    def embed_query(self, text: str) -> NoReturn:
        raise EmbeddingUnavailable(self._why)


def without_models(settings: Settings, why: str) -> dict[str, Any]:
    """Return the arguments by which `GraphMemory.open` needs no model, and no key of one, as *why* says."""
    none = NoModel(why)
    settings = replace(settings, rerank_url=None, rerank_model=None, maintenance=None)
    return {"settings": settings, "model": none, "embeddings": none}


class NamedServer:
    """The server that the settings name."""

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self) -> str:
        return self._url

    def close(self) -> None:
        """Nothing to let go: the server is somebody else's."""

    def advice(self) -> str:
        """Return what to do where the server cannot be reached."""
        return ADVICE


def host(settings: Settings, on_wait: Callable[[str], None] | None) -> Host:
    """Return where the database is; *on_wait* is called at waits."""
    return local_host(settings, on_wait or logger.info) if settings.url is None else NamedServer(settings.url)


def database(settings: Settings, on_wait: Callable[[str], None] | None) -> Database:
    """Return the database, with its replica where the settings name one.

    Errors: `SettingsError` for a replica of the embedded server, which has none.
    """
    primary, old = host(settings, on_wait), settings.allow_old_falkordb
    wait, least = settings.wait_replicas, settings.min_replicas
    if wait and settings.url is None:
        raise SettingsError("wait_replicas is set but url is not: the embedded server has no replicas")
    replica = None if settings.replica_url is None else NamedServer(settings.replica_url)
    if replica is not None and settings.url is None:
        raise SettingsError("replica_url is set but url is not: set url to the server that it is a replica of")
    return Database(
        primary, allow_old=old, advice=primary.advice, wait_replicas=wait, min_replicas=least, replica=replica
    )


@cache
def rules() -> Model:
    """Return the offline model, which answers by rules; all memories of a process share it."""
    offline: Model = load_plugin("models", OFFLINE)()
    return offline


def model(option: BaseChatModel | Model | str | None, settings: Settings) -> Model:
    """Return what answers questions: the given model, the one that the settings name, else the default.

    The default is OpenAI's when there is a key, or the server at `base_url`; else the offline reader.
    """
    if isinstance(option, NoModel):
        return option
    if option is not None and not isinstance(option, str):
        return _given_model(option, settings)
    name = option or settings.model
    if name is None and (settings.api_key or settings.base_url):
        name = OPENAI_MODEL
    if name is None or name == OFFLINE:
        if name is None:
            logger.warning("no model and no OPENAI_API_KEY: reading offline, by rules; set KG_MEMORY_MODEL to choose")
        return rules()
    return _chat(name, settings)


def _given_model(option: BaseChatModel | Model, settings: Settings) -> Model:
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - takes 0.3 s to import

    if isinstance(option, BaseChatModel):
        return _chat(option, settings)
    if isinstance(option, Model):
        return option
    raise SettingsError(f"the model is a {type(option).__name__}: pass a LangChain chat model, a name or 'offline'")


def _chat(option: BaseChatModel | str, settings: Settings) -> Model:
    # OpenAI's client takes half a second to import, and reading offline does without it.
    from kg_memory.llm.chat import ChatModel, open_chat_model  # noqa: PLC0415

    if isinstance(option, str):
        server = (settings.base_url, settings.api_key, settings.model_timeout, settings.max_answer_tokens)
        option = open_chat_model(option, *server)
    chat = ChatModel(option)
    chat.limiter.limit(settings.requests_per_minute, settings.tokens_per_minute)
    return chat


def scorer(option: Reranker | None, settings: Settings, model: Model) -> CrossEncoder:
    """Return the cross-encoder: the given one, the one that the settings name, else *model*.

    A text is the URL of a rerank endpoint, or the name of a chat model.
    """
    if option is not None and not isinstance(option, str):
        return _given_scorer(option, settings)
    named = option or settings.rerank_url or settings.rerank_model
    if named is None:
        return ModelCrossEncoder(model)
    if named.startswith(("http://", "https://")):
        server: CrossEncoder = load_plugin("scorers", "server")(
            named, settings.rerank_model, settings.rerank_api_key, timeout=settings.model_timeout
        )
        return server
    return ModelCrossEncoder(rules() if named == OFFLINE else _chat(named, settings))


def _given_scorer(option: CrossEncoder | BaseCrossEncoder | BaseChatModel, settings: Settings) -> CrossEncoder:
    from langchain_core.cross_encoders import BaseCrossEncoder  # noqa: PLC0415 - takes 0.3 s to import
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415

    if isinstance(option, BaseChatModel):
        return ModelCrossEncoder(_chat(option, settings))
    if isinstance(option, BaseCrossEncoder):
        wrapped: CrossEncoder = load_plugin("scorers", "langchain")(option)
        return wrapped
    if isinstance(option, CrossEncoder):
        return option
    raise SettingsError(
        f"the reranker is a {type(option).__name__}: pass the URL of a rerank endpoint, a LangChain chat model "
        "or cross-encoder, a name, or an object with name, scores and ascores"
    )


def embeddings(option: Embeddings | str | None, settings: Settings, model: Model) -> Embeddings:
    """Return the embedding model: the given one, the one that the settings name, else what goes with *model*."""
    if isinstance(option, NoModel):
        return option
    if isinstance(option, Embeddings):
        return _limit_rate(make_reliable(option), settings)
    if option is not None and not isinstance(option, str):
        raise SettingsError(f"embeddings is a {type(option).__name__}: pass a LangChain Embeddings object or 'offline'")
    name = option or settings.embedding_model
    if name is None:
        name = OPENAI_EMBEDDINGS if settings.api_key and not settings.base_url and not model.by_rules else OFFLINE
    if name == OFFLINE:
        return make_reliable(load_plugin("embeddings", OFFLINE)())
    url = settings.embedding_base_url or settings.base_url
    opened = open_embedding_model(name, url, settings.api_key, settings.embedding_dimensions, settings.model_timeout)
    return _limit_rate(opened, settings)


def _limit_rate(model: ReliableEmbeddings, settings: Settings) -> ReliableEmbeddings:
    model.limiter.limit(settings.requests_per_minute, settings.tokens_per_minute)
    return model


def open_driver(
    model: Model,
    embeddings: Embeddings,
    database: Database,
    *,
    scorer: CrossEncoder | None = None,
    budget: Budget = NO_BUDGET,
    rules: Model | None = None,
    clock: Callable[[], int] | None = None,
    side_by_side: int = SIDE_BY_SIDE,
) -> FalkorDriver:
    """Return what performs the effects of flows, with these models, within *budget*.

    *rules* answers the questions that have an answer by rules, where the budget has no room to ask the model. Without
    *scorer* the model scores.
    """
    meter = make_meter(model, budget, rules or model)
    embedder = Embedder(embeddings, vector_model_name, EncodedVector)
    if dimension := getattr(unwrap(embeddings), "dimension", None):  # known before the first text
        embedder.length = dimension
    store, scorer = GraphStore(database, embedder), scorer or ModelCrossEncoder(model)
    return Driver(model, embedder, store, scorer, meter=meter, clock=clock, side_by_side=side_by_side)


def plan(settings: Settings, model: Model) -> Settings:
    """Return *settings* with the *model*, and the plan that suits it: rules read better step by step."""
    settings = settings.with_(model=model.name)
    return settings.with_(plan="thorough") if model.by_rules else settings


def thresholds(settings: Settings, embeddings: Embeddings) -> Settings:
    """Return *settings* with the thresholds that suit the embedding model, where none were set.

    Where only one was set, the other keeps to its side of it.
    """
    suited = LOCAL_THRESHOLDS if vector_model_name(embeddings) == LOCAL_EMBEDDINGS else THRESHOLDS
    own = {name: getattr(settings, name) for name in suited if getattr(settings, name) is not None}
    chosen = {**suited, **own}
    if "ask_threshold" not in own:
        chosen["ask_threshold"] = min(chosen["ask_threshold"], chosen["merge_threshold"])
    if "merge_threshold" not in own:
        chosen["merge_threshold"] = max(chosen["ask_threshold"], chosen["merge_threshold"])
    return settings.with_(**chosen)
