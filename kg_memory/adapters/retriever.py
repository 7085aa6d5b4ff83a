"""`KGRetriever`: a LangChain retriever that searches the memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, get_args

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config, patch_config
from pydantic import ConfigDict, Field, model_validator

from kg_memory.adapters.namespace import NamespaceTemplate, place_here, validate_search_options
from kg_memory.errors import InputError
from kg_memory.memory.listing import During, Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Community, Entity, Episode, Fact, Kind
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.question import make_search_query
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

TIMES = ("as_of", "during", "believed_at", "unreviewed")
OPTIONS = ("recipe", "where", "center")
SETTINGS = ("k", "kinds", "thread", *TIMES, *OPTIONS)


class KGRetriever(BaseRetriever):
    """LangChain retriever that searches the memory and returns facts and episodes as documents.

    Example::

        retriever = KGRetriever(memory, namespace="ann", k=5)
        documents = retriever.invoke("Where does Ann live?")

    - *memory*: None opens the one that the environment's settings name; close it with ``retriever.memory.close()``.
    - *namespace*: a template, filled in for each call from the running graph's context or ``config["configurable"]``,
      whose ``thread_id`` is used if *thread* is None.
    - *recall_from*: templates of further namespaces to search.
    - *k*: the number of documents.
    - *kinds*: which of ``"facts"``, ``"episodes"``, ``"entities"`` and ``"communities"`` to return. Each kind is ranked
      by itself; the documents are the best of each kind, then the second best of each, and so on.
    - The other fields: as in `GraphMemory.search`.

    All fields except *memory*, *namespace* and *recall_from* can also be set by call, as in
    ``retriever.invoke(question, k=3)``, and all by LangChain's ``configurable_fields``.

    The text of a document is a fact's sentence, an episode's content, or name and summary of an entity or community.
    Its metadata has the other fields of that object (see `kg_memory.models.graph`) as plain JSON, the ``kind``, for a
    fact also its first source, and the ``relevance`` of the search: the probability that the memory has an answer.
    A blank question, or a relevance below `Settings.abstain_below`, returns no documents.
    Errors: `InputError` for invalid options or a namespace without a value; `DatabaseError`.
    """

    model_config = ConfigDict(extra="forbid")

    memory: GraphMemory = Field(default_factory=GraphMemory, exclude=True, repr=False)
    namespace: str = "{user_id}"
    recall_from: tuple[str, ...] = ()
    k: int = 10
    kinds: tuple[Kind, ...] = ("facts", "episodes")
    as_of: Time | None = None
    during: During | None = None
    believed_at: Time | None = None
    unreviewed: bool = False
    thread: str | None = None
    recipe: Recipe | str | None = None
    where: dict[str, Any] | None = None
    center: str | list[str] | None = None

    def __init__(self, memory: GraphMemory | None = None, **settings: Any) -> None:
        super().__init__(**({} if memory is None else {"memory": memory}), **settings)

    @model_validator(mode="after")
    def _options_are_valid(self) -> Self:
        NamespaceTemplate(self.namespace, self.recall_from)
        validate_search_options(self.recipe, self.where)
        return self

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        config = ensure_config(config)
        return super().invoke(input, config, running=config, **kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        config = ensure_config(config)
        return await super().ainvoke(input, config, running=config, **kwargs)

    def _find(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        running: RunnableConfig | None = None,
        **overrides: Any,
    ) -> Flow[list[Document]]:
        """Return the search results for *query* as documents; none for a blank query."""
        if not isinstance(query, str) or query.strip():
            settings = self._settings(overrides)
            state = self._retrieval_input(query, settings, running)
            config = patch_config(running, callbacks=run_manager.get_child())
            # No checkpoints: retrievers may run in parallel, and a resumed graph would mix up their steps.
            graph = self.memory.graphs.retrieval.copy({"checkpointer": False})
            found = yield from call(graph, "invoke", state, config)
            return documents(SearchResults.model_validate(found["results"]), settings["kinds"], settings["k"])
        return []

    _get_relevant_documents, _aget_relevant_documents = both(_find)

    def _settings(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        if unknown := overrides.keys() - set(SETTINGS):
            raise InputError(f"unknown options {sorted(unknown)}; use {', '.join(SETTINGS)}")
        settings = {name: getattr(self, name) if overrides.get(name) is None else overrides[name] for name in SETTINGS}
        return {**settings, "k": validate_count("k", settings["k"]), "kinds": _validate_kinds(settings["kinds"])}

    def _retrieval_input(
        self, query: str, settings: Mapping[str, Any], running: RunnableConfig | None
    ) -> dict[str, Any]:
        place = place_here(NamespaceTemplate(self.namespace, self.recall_from), running)
        limits, times = {"limit": settings["k"]}, {name: settings[name] for name in TIMES}
        options = {"recall_from": place.recall_from} | {name: settings[name] for name in OPTIONS}
        question = make_search_query(query, limits, times, settings["thread"] or place.thread, options)
        return {**question.as_state(), "namespace": place.namespace}


def documents(results: SearchResults, kinds: Iterable[Kind], k: int) -> list[Document]:
    """Return the best *k* results of a search as LangChain documents; [] if the memory has no answer."""
    if results.abstains:
        return []
    ranked = [
        (rank, place, item)
        for place, kind in enumerate(kinds)
        for rank, item in enumerate(item for item in getattr(results, kind) if not getattr(item, "withheld", False))
    ]
    return [_to_document(item, results) for *_, item in sorted(ranked, key=lambda entry: entry[:2])[:k]]


def _to_document(item: Fact | Episode | Entity | Community, results: SearchResults) -> Document:
    """Convert one search result to a LangChain document: its text is the content, its other fields the metadata."""
    plain = item.model_dump(mode="json", exclude={"id", "sentence", "content", "sources", "kind"})
    match item:
        case Fact(sentence=text, sources=sources):
            first = sources[0].model_dump(mode="json") if sources else {}
            plain |= first | {"episodes": [source.episode for source in sources]}
        case Episode(content=text):
            plain |= {"episode": item.id, "episode_kind": str(item.kind)}
        case Entity() | Community():
            text = f"{item.name}: {item.summary}" if item.summary else item.name
    plain |= {"kind": type(item).__name__.lower(), "relevance": results.relevance}
    if results.degraded:
        plain["degraded"] = results.degraded
    return Document(page_content=text, id=item.id, metadata=plain)


def _validate_kinds(kinds: Any) -> tuple[Kind, ...]:
    chosen = tuple(kinds) if isinstance(kinds, Iterable) else ()
    if not chosen or set(chosen) - set(get_args(Kind)) or len(set(chosen)) < len(chosen):
        raise InputError(f"kinds must be some of {', '.join(get_args(Kind))}, each once, got {kinds!r}")
    return chosen
