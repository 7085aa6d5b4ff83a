"""A LangChain retriever of what is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Self, get_args

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config, patch_config
from pydantic import ConfigDict, Field, field_validator, model_validator

from kg_memory.adapters.namespace import NamespaceTemplate, place_here, validate_search_options
from kg_memory.errors import InputError
from kg_memory.memory.listing import During, Time
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Community, Entity, Episode, Fact, Kind
from kg_memory.models.results import SearchResults
from kg_memory.retrieval.question import ask
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.validation import validate_count

TIMES = ("as_of", "during", "believed_at", "unreviewed")
OPTIONS = ("recipe", "where", "center")
SETTINGS = ("k", "kinds", "thread", *TIMES, *OPTIONS)


class KGRetriever(BaseRetriever):
    """Finds the *k* best documents of a question: facts, and what was said word for word.

    *kinds* are facts, episodes, entities and communities, each ranked by itself: the documents are the first of each,
    in the order of *kinds*, then the second of each, and so on. The rest is as in `GraphMemory.search`. All of it can
    be given by call too (``retriever.invoke(question, k=3)``) and by LangChain's ``configurable_fields``.
    The *namespace* is filled in from the runtime's context where a graph runs, else from ``config["configurable"]``,
    whose ``thread_id`` is the *thread* unless one is given. A *memory* left out is the one that the environment's
    settings name; ``retriever.memory.close()`` closes it. An empty question finds nothing.
    A document is a fact's sentence, an episode's words or a summary. Its metadata is the rest of what was found, named
    as in `kg_memory.models.graph` and JSON-plain, with the *kind* and, for a fact, its first source. The `relevance`
    in it is
    that of the whole search: how likely the memory holds an answer. Below `Settings.abstain_below` there are none.
    Errors: `InputError`, `DatabaseError`.
    """

    model_config = ConfigDict(extra="forbid")

    memory: GraphMemory = Field(default_factory=GraphMemory, exclude=True, repr=False)
    namespace: str = "{user_id}"
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

    @field_validator("namespace")
    @classmethod
    def _is_template(cls, namespace: str) -> str:
        return NamespaceTemplate(namespace).template

    @model_validator(mode="after")
    def _search_options_are_valid(self) -> Self:
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
        if not isinstance(query, str) or query.strip():
            settings = self._settings(overrides)
            state = self._question_state(query, settings, running)
            config = patch_config(running, callbacks=run_manager.get_child())
            # Retrievers run side by side: checkpoints of the graph around them would mix up their steps on a resume.
            graph = self.memory.graphs.retrieval.copy({"checkpointer": False})
            found = yield from call(graph, "invoke", state, config)
            return documents(SearchResults.model_validate(found["results"]), settings["kinds"], settings["k"])
        return []

    _get_relevant_documents, _aget_relevant_documents = both(_find)

    def _settings(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a call: its *overrides*, else the retriever's own."""
        if unknown := overrides.keys() - set(SETTINGS):
            raise InputError(f"unknown options {sorted(unknown)}; use {', '.join(SETTINGS)}")
        settings = {name: getattr(self, name) if overrides.get(name) is None else overrides[name] for name in SETTINGS}
        return {**settings, "k": validate_count("k", settings["k"]), "kinds": _validate_kinds(settings["kinds"])}

    def _question_state(
        self, query: str, settings: Mapping[str, Any], running: RunnableConfig | None
    ) -> dict[str, Any]:
        """Return *query* as the retrieval graph takes it."""
        place = place_here(NamespaceTemplate(self.namespace), running)
        limits, times = {"limit": settings["k"]}, {name: settings[name] for name in TIMES}
        options = {name: settings[name] for name in OPTIONS}
        question = ask(query, limits, times, settings["thread"] or place.thread, options)
        return {**question.as_state(), "namespace": place.namespace}


def documents(results: SearchResults, kinds: Iterable[Kind], k: int) -> list[Document]:
    """Return the *k* best of *results* as documents: the first of each of *kinds*, then the second, and so on.

    There are none where the memory abstains.
    """
    if results.abstains:
        return []
    ranked = [
        (rank, place, _document(item, results))
        for place, kind in enumerate(kinds)
        for rank, item in enumerate(islice(_visible_items(results, kind), k))
    ]
    return [document for *_, document in sorted(ranked, key=lambda entry: entry[:2])][:k]


def _visible_items(results: SearchResults, kind: Kind) -> Iterator[Fact | Episode | Entity | Community]:
    return (item for item in getattr(results, kind) if not (isinstance(item, Episode) and item.withheld))


def _document(item: Fact | Episode | Entity | Community, results: SearchResults) -> Document:
    """Return *item* as a document; its metadata is the rest of it, JSON-plain, and for a fact its first source."""
    plain = item.model_dump(mode="json", exclude={"id", "sentence", "content", "sources", "kind"})
    match item:
        case Fact(sentence=text, sources=sources):
            first = sources[0].model_dump(mode="json") if sources else {}
            plain |= first | {"episodes": [source.episode for source in sources]}
        case Episode(content=text):
            plain |= {"episode": item.id, "episode_kind": str(item.kind)}
        case Entity() | Community():
            text = f"{item.name}: {item.summary}" if item.summary else item.name
    kind = type(item).__name__.lower()
    plain |= {"kind": kind, "relevance": results.relevance}
    if results.degraded:
        plain["degraded"] = results.degraded
    return Document(page_content=text, id=item.id, metadata=plain)


def _validate_kinds(kinds: Any) -> tuple[Kind, ...]:
    chosen = tuple(kinds) if isinstance(kinds, Iterable) else ()
    if not chosen or set(chosen) - set(get_args(Kind)) or len(set(chosen)) < len(chosen):
        raise InputError(f"kinds must be some of {', '.join(get_args(Kind))}, each once, got {kinds!r}")
    return chosen
