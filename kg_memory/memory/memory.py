"""`GraphMemory`: the memory that a user opens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kg_memory.falkor.graph_store import FalkorDriver
from kg_memory.memory import open as opening
from kg_memory.memory._verb import Engine, Graphs, Group, run_plugin, verb
from kg_memory.memory.adding import (
    Input,
    Progress,
    Tally,
    add_input,
    add_inputs,
    count_items,
    date_input,
    input_state,
)
from kg_memory.memory.communities import Communities
from kg_memory.memory.data import Data
from kg_memory.memory.declaring import FactMapping, add_record
from kg_memory.memory.entities import Entities
from kg_memory.memory.episodes import Episodes, read_stats, set_paused
from kg_memory.memory.facts import Facts
from kg_memory.memory.listing import During, Time
from kg_memory.memory.predicates import Predicates
from kg_memory.memory.privacy import Privacy
from kg_memory.memory.reviews import Reviews
from kg_memory.memory.usage import UsageReports
from kg_memory.models.budget import Budget
from kg_memory.models.graph import EpisodeKind
from kg_memory.models.operations import AddResult, Stats
from kg_memory.models.results import Context, Profile, SearchResults
from kg_memory.plugins import load_plugin, plugin_names
from kg_memory.retrieval.context.lines import Template
from kg_memory.retrieval.question import ask, lines_within
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Model
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import Closing
from kg_memory.settings import RedactHook, Settings
from kg_memory.validation import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from kg_memory.memory.open import Reranker


class GraphMemory(Group, Closing):
    """Long-term memory as a temporal knowledge graph: episodes in, dated and sourced facts out.

    Every verb has an ``a`` twin for asyncio. Each namespace (a user, a project) has a graph of its own.
    It connects at first use; `open` connects at once, so that errors show where it is opened.

    Search and context return facts that hold now, or held *as_of* another instant, or at some time *during* a period,
    by what is believed now, or was *believed_at* another instant; see `Facts` for how times are given. Without these,
    time words in the question choose what comes first ("where did Ann live in 2019?", "before she moved"): see
    `SearchResults.time`. *unreviewed* includes what waits for review. Summaries describe the present, so a time in
    the past that is given leaves them out.

    *thread* is the conversation that asks: what it last spoke of is found more easily. *center* is the name of an
    entity near which to look, or several names. *asker* is the name of who asks: whom "I", "my" and "the user" in the
    question mean. *where* filters the results, such as ``{"speaker": "Ann"}`` or ``{"type": "Person"}``: see
    `kg_memory.models.filters`.
    *recipe* sets how to search and rank, by name or as a `kg_memory.retrieval.recipe.Recipe`. *explain* adds the
    `SearchResults.explanations`: why each result stands where it does, and what was left out and why.
    """

    reports: Any
    """A group of verbs of a plug-in, `kg_memory.contrib.reports`; other plug-ins may add more."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        model: BaseChatModel | Model | str | None = None,
        embeddings: Embeddings | str | None = None,
        reranker: Reranker | None = None,
        redact: RedactHook | str | None = None,
        budget: Budget | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        settings = (settings or Settings.from_env()).with_(redact=redact, budget=budget)
        if settings.telemetry and not telemetry.is_on():
            telemetry.instrument()
        self._database = opening.database(settings, on_wait)
        chosen = opening.model(model, settings)
        vectors = opening.embeddings(embeddings, settings, chosen)
        scorer = opening.scorer(reranker, settings, chosen)
        driver = opening.open_driver(
            chosen,
            vectors,
            self._database,
            scorer=scorer,
            budget=settings.budget,
            rules=opening.rules(),
            side_by_side=settings.parallel,
        )
        engine = Engine(driver, opening.plan(opening.thresholds(settings, vectors), chosen))
        super().__init__(engine)
        self.facts = Facts(engine)
        self.entities = Entities(engine)
        self.episodes = Episodes(engine)
        self.communities = Communities(engine)
        self.reviews = Reviews(engine)
        self.predicates = Predicates(engine)
        self.privacy = Privacy(engine)
        self.usage = UsageReports(engine)
        self.data = Data(engine)
        self.graphs = Graphs(engine)
        for name in plugin_names("groups"):
            setattr(self, name, load_plugin("groups", name)(engine))
        self._maintainer: Any = None
        if settings.maintenance is not None:
            self._maintainer = load_plugin("services", "maintenance")(engine, settings.maintenance)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        model: BaseChatModel | Model | str | None = None,
        embeddings: Embeddings | str | None = None,
        reranker: Reranker | None = None,
        redact: RedactHook | str | None = None,
        budget: Budget | None = None,
        settings: Settings | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> Self:
        """Open the embedded database, or the server at *url* (``falkor://host:6379``).

        *model* is a LangChain chat model, a model's name, or ``"offline"``; *embeddings* likewise.
        *reranker* scores for a recipe with a cross-encoder: the URL of a rerank endpoint, a chat model or its name, a
        LangChain cross-encoder or a `CrossEncoder`; else the model does.
        *redact* removes secrets from all that is remembered, keys and passwords by default; ``"none"`` removes
        nothing; see `kg_memory.text.redaction`.
        *budget* limits what reading may cost; see `docs/budgets.md`.
        *on_wait* is called with a message at each longer wait, such as a download. Errors: `DatabaseError`,
        `SettingsError`, `MissingExtra`.
        """
        settings = (settings or Settings.from_env()).with_(url=url, budget=budget)
        memory = cls(settings, model=model, embeddings=embeddings, reranker=reranker, redact=redact, on_wait=on_wait)
        memory._database.client()
        return memory

    @classmethod
    async def aopen(
        cls,
        url: str | None = None,
        *,
        model: BaseChatModel | Model | str | None = None,
        embeddings: Embeddings | str | None = None,
        reranker: Reranker | None = None,
        redact: RedactHook | str | None = None,
        budget: Budget | None = None,
        settings: Settings | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> Self:
        """`open`, for asyncio; ``async with await GraphMemory.aopen() as memory`` closes it."""
        how: dict[str, Any] = {"model": model, "embeddings": embeddings, "reranker": reranker, "redact": redact}
        return await asyncio.to_thread(cls.open, url, **how, budget=budget, settings=settings, on_wait=on_wait)

    @property
    def driver(self) -> FalkorDriver:
        """The driver that performs the I/O of this memory."""
        return self._engine.driver

    @property
    def settings(self) -> Settings:
        """The settings as they apply, with the model's plan and thresholds."""
        return self._engine.settings

    def close(self) -> None:
        """Disconnect from the database; an embedded server stops some time after its last client left.

        What is saved and not read yet, as by the plan ``economy``, is read by `resume`.
        """
        if self._maintainer is not None:
            self._maintainer.stop()
        self.driver.close()
        self._database.close()

    async def aclose(self) -> None:
        """`close`, for asyncio."""
        if self._maintainer is not None:
            await asyncio.to_thread(self._maintainer.stop)
        await asyncio.to_thread(self.driver.close)
        await self._database.aclose()

    def _add(
        self,
        content: str,
        *,
        speaker: str | None = None,
        at: date | str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        thread: str | None = None,
        source: str | None = None,
        source_id: str | None = None,
        kind: EpisodeKind | str = EpisodeKind.MESSAGE,
        trust: float = 1.0,
        expires_at: date | str | None = None,
        labels: Mapping[str, Any] | None = None,
        mapping: FactMapping | None = None,
    ) -> Flow[AddResult]:
        """Remember one message, text or JSON record, and return the result.

        *at* is when it was said (a naive datetime is UTC), now if left out. *trust*, 0 to 1, is how far the source is
        believed, where `Settings.conflict_strategy` is ``trust``. The same *source_id*, or without one the same
        content, speaker, thread and time, is the same episode and is stored once. After *expires_at* no search finds
        it or the facts that it alone states, and the next `evict` forgets them; see `docs/eviction.md`.
        *labels* are for filters, such as ``{"agent": "support", "tags": ["vip"]}``: ``where={"labels.tags": "vip"}``
        finds it and the facts in it; see `kg_memory.models.labels`.
        *mapping* says which facts a JSON record states, so that no model reads it; see `docs/declared.md`.
        The episode is stored first: whatever fails later, `resume` finishes it.
        Errors: `InputError`, `DatabaseError`, `ModelError`, `EmbeddingError`.
        """
        fields: dict[str, Any] = {"speaker": speaker, "at": at, "thread": thread, "source": source}
        fields |= {"source_id": source_id, "trust": trust, "expires_at": expires_at, "labels": labels}
        if mapping is not None:
            return add_record(self._engine, content, kind, mapping, fields, namespace)
        return add_input(self._engine, input_state({"content": content, "kind": kind, **fields}), namespace)

    add, aadd = verb(_add)

    def _add_many(
        self,
        episodes: Iterable[Input],
        *,
        namespace: str = DEFAULT_NAMESPACE,
        progress: Callable[[Progress], None] | None = None,
    ) -> Flow[list[AddResult]]:
        """Remember *episodes* in their order, calling *progress* after each; see `add`.

        One that the models cannot read does not block the others: its `AddResult` has a `problem`.
        """
        tally = Tally(count_items("episodes", episodes, "episodes"), progress)
        clock = self.driver.today
        return add_inputs(self._engine, (date_input(episode, clock) for episode in episodes), namespace, tally)

    add_many, aadd_many = verb(_add_many)

    def _search(
        self,
        question: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        limit: int = 10,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
        thread: str | None = None,
        center: str | Sequence[str] | None = None,
        asker: str | None = None,
        where: Mapping[str, Any] | None = None,
        recipe: Recipe | str | Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> Flow[SearchResults]:
        """Find facts, entities, communities and episodes, at most *limit* of each, best first; see `GraphMemory`.

        Errors: `InputError`, `DatabaseError`, `EmbeddingError`.
        """
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {"center": center, "asker": asker, "where": where, "recipe": recipe, "explain": explain}
        asked = ask(question, {"limit": limit}, times, thread, how)
        if not explain:
            asked = replace(asked, max_tokens=0)  # no context is written, which only an explanation quotes
        context: Context = yield from self._engine.answer(asked, namespace)
        return context.results

    search, asearch = verb(_search)

    def _context(
        self,
        question: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        max_tokens: int = 1500,
        limit: int | None = None,
        as_of: Time | None = None,
        during: During | None = None,
        believed_at: Time | None = None,
        unreviewed: bool = False,
        thread: str | None = None,
        center: str | Sequence[str] | None = None,
        asker: str | None = None,
        where: Mapping[str, Any] | None = None,
        recipe: Recipe | str | Mapping[str, Any] | None = None,
        template: Template | str | None = None,
        explain: bool = False,
    ) -> Flow[Context]:
        """Return what an agent needs to answer *question*: dated and sourced lines, within *max_tokens*.

        It is a string that also has the results it was `found` in, its `lines`, its `left_out` lines and its `tokens`.
        *limit* is how many of each kind it may have; by default as many as there is room for. *template* sets the
        format: ``plain``, ``zep``, ``xml``, ``json``, ``zeph``, or a `Template`. For the rest see `GraphMemory`.
        Errors: as `search`.
        """
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how: dict[str, Any] = {"center": center, "asker": asker, "where": where, "recipe": recipe, "explain": explain}
        how["template"] = template
        limits = {"max_tokens": max_tokens, "limit": lines_within(max_tokens) if limit is None else limit}
        return self._engine.answer(ask(question, limits, times, thread, how), namespace)

    context, acontext = verb(_context)

    def _stats(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[Stats]:
        """Count what the namespace holds."""
        return read_stats()

    stats, astats = verb(_stats)

    def _pause(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[bool]:
        """Remember nothing new in the namespace, in any process, until `unpause`; return whether it was not paused.

        What is added is refused (`MemoryPaused`), and nodes, middleware and stores pass over it. What was saved before
        is still read; searches, decisions and forgetting go on. `stats` tells whether it is paused.
        """
        return set_paused(paused=True)

    pause, apause = verb(_pause)

    def _unpause(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[bool]:
        """Remember again what is added from now on; return whether the namespace was paused."""
        return set_paused(paused=False)

    unpause, aunpause = verb(_unpause)

    def _profile(
        self,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        schema: Mapping[str, Any] | str | Path | None = None,
        strict: bool = False,
        max_tokens: int | None = None,
        prefer_topics: Sequence[str] = (),
        only_topics: Sequence[str] = (),
        max_subtopics: int = 15,
        max_slot_tokens: int = 128,
        as_of: Time | None = None,
        believed_at: Time | None = None,
    ) -> Flow[Profile]:
        """Return the states that hold of the entity called *name*, by topic and sub-topic; `str` of it is for a prompt.

        *schema* has your topics, a dict or the path of a TOML or JSON file; without *strict* the default topics and
        ``other`` take the rest. See `docs/profile.md`. Its text stays the same, byte for byte, until something about
        the entity changes. Errors: `InputError`.
        """
        limits: dict[str, Any] = {"max_tokens": max_tokens, "max_subtopics": max_subtopics}
        limits |= {"max_slot_tokens": max_slot_tokens, "prefer_topics": prefer_topics, "only_topics": only_topics}
        return run_plugin("profile", name, schema, limits, (as_of, believed_at), strict=strict)

    profile, aprofile = verb(_profile)
