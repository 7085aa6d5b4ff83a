"""Open the database, the language model, the embedding model and the reranker (which ranks search results).

Which ones is chosen by arguments of `GraphMemory.open` or by the settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from kg_memory.errors import EmbeddingUnavailable, ModelUnavailable, SettingsError
from kg_memory.falkor import schema
from kg_memory.falkor.connect import ADVICE, Database
from kg_memory.falkor.graph_store import FalkorDriver, GraphStore
from kg_memory.falkor.wire import EncodedVector
from kg_memory.llm.budget import make_meter
from kg_memory.llm.cross_encoders import ModelCrossEncoder
from kg_memory.llm.embeddings import ReliableEmbeddings, make_reliable, open_embedding_model, unwrap, vector_model_name
from kg_memory.models.budget import NO_BUDGET, Budget
from kg_memory.plugins import Host, LocalHost, load_plugin
from kg_memory.runtime.driver import Driver, Embedder
from kg_memory.runtime.effects import Ask, CrossEncoder, Embeddings, Model, both
from kg_memory.runtime.flow import SIDE_BY_SIDE, Flow
from kg_memory.settings import LOCAL_EMBEDDINGS, OFFLINE, Settings

if TYPE_CHECKING:
    from langchain_core.cross_encoders import BaseCrossEncoder
    from langchain_core.language_models import BaseChatModel

    Reranker = CrossEncoder | BaseCrossEncoder | BaseChatModel | str
    """The types of the argument *reranker* of `GraphMemory.open`."""

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
"""Cosine similarities of names from which two entities are merged, the model is asked, or they are linked; and of
sentences from which two facts are compared. Vectors of the local model are close together: unrelated names reach
0.89, "Room 101" and "Room 102" 0.95, "Acme" and "Acme Corp" 0.96. Contradictory sentences go down to 0.853; half of
all pairs of facts about one person in LoCoMo are below 0.85."""


class NoModel:
    """Placeholder for the language model and the embedding model in a memory without models.

    Each call raises `ModelUnavailable` or `EmbeddingUnavailable` with the text *why*.
    """

    name = schema.ANY_MODEL
    by_rules = False

    def __init__(self, why: str) -> None:
        self._why = why

    def _answer(self, _: Ask) -> Flow[NoReturn]:
        yield from ()
        raise ModelUnavailable(self._why)

    answer, aanswer = both(_answer)

    def _embed(self, _: Any) -> Flow[NoReturn]:
        yield from ()
        raise EmbeddingUnavailable(self._why)

    embed_documents, aembed_documents = embed_query, aembed_query = both(_embed)


def without_models(settings: Settings, why: str) -> dict[str, Any]:
    """Return keyword arguments for `GraphMemory.open` that open a memory without models, so without an API key."""
    none = NoModel(why)
    settings = replace(settings, rerank_url=None, rerank_model=None, maintenance=None)
    return {"settings": settings, "model": none, "embeddings": none}


def local_host(settings: Settings, on_wait: Callable[[str], None]) -> LocalHost:
    """Return the host that runs the embedded database server according to *settings*."""
    host: LocalHost = load_plugin("hosts", "embedded")(settings, on_wait)
    return host


class NamedServer:
    """A database server at a URL from the user; this process neither starts nor stops it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self) -> str:
        return self._url

    def close(self) -> None:
        """Do nothing: the server was not started by this process."""

    def advice(self) -> str:
        """Return instructions for the user, for the error message if the server cannot be reached."""
        return ADVICE


def host(settings: Settings, on_wait: Callable[[str], None] | None) -> Host:
    """Return the database server that *settings* choose: the one at `Settings.url`, or the embedded one."""
    return local_host(settings, on_wait or logger.info) if settings.url is None else NamedServer(settings.url)


def database(settings: Settings, on_wait: Callable[[str], None] | None) -> Database:
    """Return the database for *settings*, with its read replica if one is set; it connects at the first query."""
    primary, old = host(settings, on_wait), settings.allow_old_falkordb
    wait, least = settings.wait_replicas, settings.min_replicas
    if wait and settings.url is None:
        raise SettingsError("wait_replicas needs url, as the embedded server has no replicas; set url as well")
    replica = None if settings.replica_url is None else NamedServer(settings.replica_url)
    if replica is not None and settings.url is None:
        raise SettingsError("replica_url needs url; set url to the server that has this replica")
    return Database(
        primary, allow_old=old, advice=primary.advice, wait_replicas=wait, min_replicas=least, replica=replica
    )


@cache
def rules() -> Model:
    """Return the offline model, which answers by built-in rules instead of a language model.

    One instance per process.
    """
    offline: Model = load_plugin("models", OFFLINE)()
    return offline


def model(option: BaseChatModel | Model | str | None, settings: Settings) -> Model:
    """Return the language model to use: *option* if given, else the one in `Settings.model`, else the default.

    Errors: `SettingsError`.
    """
    if option is not None and not isinstance(option, str):
        return option if isinstance(option, Model) else _wrap_chat_model(option, settings)
    name = option or settings.model
    if name is None and (settings.api_key or settings.base_url):
        name = OPENAI_MODEL
    if name is None or name == OFFLINE:
        if name is None:
            logger.warning("no model and no OPENAI_API_KEY: reading by offline rules; set KG_MEMORY_MODEL to choose")
        return rules()
    return _wrap_chat_model(name, settings)


def _wrap_chat_model(option: BaseChatModel | str, settings: Settings) -> Model:
    # Imported here: OpenAI's client takes 0.5 s to import, and the offline model does not need it.
    from kg_memory.llm.chat import ChatModel, open_chat_model  # noqa: PLC0415

    if isinstance(option, str):
        server = (settings.base_url, settings.api_key, settings.model_timeout, settings.max_answer_tokens)
        option = open_chat_model(option, *server)
    chat = ChatModel(option)
    chat.limiter.limit(settings.requests_per_minute, settings.tokens_per_minute)
    return chat


def scorer(option: Reranker | None, settings: Settings, model: Model) -> CrossEncoder:
    """Return the cross-encoder, a model that scores how well a text answers a question."""
    if option is not None and not isinstance(option, str):
        return _wrap_scorer(option, settings)
    named = option or settings.rerank_url or settings.rerank_model
    if named is None:
        return ModelCrossEncoder(model)
    if named.startswith(("http://", "https://")):
        server: CrossEncoder = load_plugin("scorers", "server")(
            named, settings.rerank_model, settings.rerank_api_key, timeout=settings.model_timeout
        )
        return server
    return ModelCrossEncoder(rules() if named == OFFLINE else _wrap_chat_model(named, settings))


def _wrap_scorer(option: CrossEncoder | BaseCrossEncoder | BaseChatModel, settings: Settings) -> CrossEncoder:
    """Wrap a chat model or a LangChain cross-encoder as a `CrossEncoder`; raise `SettingsError` for another type."""
    from langchain_core.cross_encoders import BaseCrossEncoder  # noqa: PLC0415 - takes 0.3 s to import
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415

    if isinstance(option, BaseChatModel):
        return ModelCrossEncoder(_wrap_chat_model(option, settings))
    if isinstance(option, BaseCrossEncoder):
        wrapped: CrossEncoder = load_plugin("scorers", "langchain")(option)
        return wrapped
    if isinstance(option, CrossEncoder):
        return option
    raise SettingsError(
        f"reranker must be the URL of a rerank endpoint, a LangChain chat model or cross-encoder, a name, or an object "
        f"with name, scores and ascores, got {type(option).__name__}"
    )


def embeddings(option: Embeddings | str | None, settings: Settings, model: Model) -> Embeddings:
    """Return the embedding model to use: *option* if given, else `Settings.embedding_model`, else a default.

    Errors: `SettingsError`.
    """
    if isinstance(option, NoModel):
        return option
    if option is not None and not isinstance(option, str):
        return _limit_rate(make_reliable(option), settings)
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
    side_by_side: int = SIDE_BY_SIDE,
) -> FalkorDriver:
    """Return the driver of a memory, which runs its model calls, embeddings and database queries."""
    meter = make_meter(model, budget, rules or model)
    embedder = Embedder(embeddings, vector_model_name, EncodedVector)
    if dimension := getattr(unwrap(embeddings), "dimension", None):  # some models know it before the first call
        embedder.length = dimension
    store, scorer = GraphStore(database, embedder), scorer or ModelCrossEncoder(model)
    return Driver(model, embedder, store, scorer, meter=meter, side_by_side=side_by_side)


def adapt_to_model(settings: Settings, model: Model) -> Settings:
    """Return *settings* with `model` set to the name of *model*, and for the offline model `plan` to ``thorough``."""
    settings = settings.with_(model=model.name)
    return settings.with_(plan="thorough") if model.by_rules else settings


def thresholds(settings: Settings, embeddings: Embeddings) -> Settings:
    """Return *settings* with each similarity threshold that is None set to the default for the embedding model."""
    suited = LOCAL_THRESHOLDS if vector_model_name(embeddings) == LOCAL_EMBEDDINGS else THRESHOLDS
    own = {name: getattr(settings, name) for name in suited if getattr(settings, name) is not None}
    chosen = {**suited, **own}
    if "ask_threshold" not in own:
        chosen["ask_threshold"] = min(chosen["ask_threshold"], chosen["merge_threshold"])
    if "merge_threshold" not in own:
        chosen["merge_threshold"] = max(chosen["ask_threshold"], chosen["merge_threshold"])
    return settings.with_(**chosen)
