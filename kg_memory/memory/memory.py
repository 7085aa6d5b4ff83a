"""`GraphMemory`: the class that users open, with the methods to add, search and administer memories."""

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
from kg_memory.memory.adding import Input, Progress, Tally, add_input, add_inputs, count_items, date_input, input_state
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
from kg_memory.retrieval.question import lines_within, make_search_query
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime import telemetry
from kg_memory.runtime.effects import Embeddings, Model
from kg_memory.runtime.flow import Flow
from kg_memory.runtime.lifecycle import Closing
from kg_memory.settings import SLEEP_AFTER, RedactHook, Settings
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespaces

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from kg_memory.memory.open import Reranker


class GraphMemory(Group, Closing):
    """Long-term memory of an LLM agent: stores episodes (messages, texts, records) as a temporal knowledge graph.

    Example::

        with GraphMemory.open() as memory:
            memory.add("I moved to Oslo last week.", speaker="Ann", namespace="ann")
            print(memory.context("Where does Ann live?", namespace="ann"))

    `add` stores an episode, and extracts dated facts with their sources; `search` and `context` find them. Other
    methods are in groups: `facts`, `entities`, `episodes`, `communities`, `reviews`, `predicates`, `privacy`, `usage`,
    `data` and `graphs`. Each method has an async twin, named with ``a``: `aadd`, `asearch`, ``memory.facts.aabout``.

    Each *namespace* (a user, a project) is a separate graph; the default is ``"default"``. The constructor connects to
    the database at the first call, `open` immediately.
    """

    reports: Any
    """The group of methods of the plug-in `kg_memory.contrib.reports`; other plug-ins may add groups of their own."""

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
        """Create a memory that connects at the first call; `open` describes the arguments and the errors."""
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
        engine = Engine(driver, opening.adapt_to_model(opening.thresholds(settings, vectors), chosen))
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
        sleep_after = SLEEP_AFTER if settings.sleep_after is None and settings.url is None else settings.sleep_after
        services = {"maintenance": settings.maintenance, "sleeping": sleep_after}
        self._services = [load_plugin("services", name)(engine, how) for name, how in services.items() if how]

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
        """Open the database and the models, and return the memory; close it with `close` or ``with``.

        *url* is a server, such as ``falkor://host:6379``; None is `Settings.url`, else an embedded database is started.
        *model* is a LangChain chat model, a name, or ``"offline"`` (built-in rules, no model). None is
        `Settings.model`, else an OpenAI model if there is an API key or a `base_url`, else ``"offline"``.
        *embeddings* is a LangChain embedding model, a name, or ``"offline"``; None is `Settings.embedding_model`, else
        the one that suits *model*.
        *reranker* scores how well texts answer a question, for some recipes: the URL of a rerank endpoint, a chat
        model or its name, a LangChain cross-encoder, or a `CrossEncoder`; None is that of the settings, else *model*.
        *redact* removes secrets from episodes before they are stored: ``"secrets"`` (keys and passwords, the default),
        ``"personal"``, a function from text to text, or ``"none"``; see `kg_memory.text.redaction`.
        *budget* limits the model's cost; see `docs/budgets.md`. *settings* has all other options; None reads the
        environment variables ``KG_MEMORY_*``. *on_wait* gets a message before each long wait, such as a download.

        Raises `DatabaseError` if the database cannot be reached or started, `SettingsError` for an invalid value, and
        `MissingExtra` if an optional package is not installed.
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
        """Open a memory as `open` does, without blocking the event loop.

        ``async with await GraphMemory.aopen() as memory: ...`` closes the memory at the end of the block.
        """
        how: dict[str, Any] = {"model": model, "embeddings": embeddings, "reranker": reranker, "redact": redact}
        return await asyncio.to_thread(cls.open, url, **how, budget=budget, settings=settings, on_wait=on_wait)

    @property
    def driver(self) -> FalkorDriver:
        """The driver that runs the database queries and model calls of this memory."""
        return self._engine.driver

    @property
    def settings(self) -> Settings:
        """The settings in effect. Reading plan and thresholds that were not given have the defaults for the models."""
        return self._engine.settings

    def close(self) -> None:
        """Stop background maintenance and disconnect from the database.

        An embedded server stops `Settings.idle_seconds` after its last client disconnected. Episodes that are saved but
        not read yet (as with the plan ``economy``) stay stored; a later `episodes.resume` reads them.
        """
        for service in self._services:
            service.stop()
        self.driver.close()
        self._database.close()

    async def aclose(self) -> None:
        """Close the memory as `close` does, without blocking the event loop."""
        for service in self._services:
            await asyncio.to_thread(service.stop)
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
        """Store one episode (a message, a text or a JSON record), extract its facts, and return what was learned.

        *speaker* is the author of a message.
        *at* is when it was said: a datetime or ISO 8601 text (UTC without an offset); None is now.
        *thread* is the id of its conversation.
        *source* and *source_id* are the system that it comes from and its id there. Content with the same *source_id*,
        or else with the same content, speaker, thread and time, is stored once.
        *kind* is ``"message"``, ``"text"`` or ``"json"``.
        *trust*, from 0 to 1, is how far the source is believed; by default it decides between conflicting facts.
        *expires_at* is when it expires: from then on no search returns the episode or the facts that it alone states,
        and the next `privacy.evict` deletes them; see `docs/eviction.md`. None is `Settings.default_ttl` from now.
        *labels* are values for filters: ``labels={"tags": ["vip"]}`` is found by ``where={"labels.tags": "vip"}``.
        *mapping* says which facts a JSON record states, so that no model is asked; see `docs/declared.md`.

        The episode is stored before its facts are extracted: after a failure, `episodes.resume` or `retry` goes on.
        Raises `InputError` for an invalid argument, `MemoryPaused`, `DatabaseError`, `ModelError` and `EmbeddingError`.
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
        """Store many episodes (messages, texts or records), extract their facts, and return one result for each.

        Each is an `EpisodeInput`, a dict of its fields, or a string, the content of a message. *progress* is called
        with a `Progress` after each. If one cannot be read, its `AddResult.error` says why, and the others are still
        processed. Other errors are raised as by `add`.
        """
        tally = Tally(count_items("episodes", episodes, "episodes"), progress)
        clock = self.driver.today
        return add_inputs(self._engine, (date_input(episode, clock) for episode in episodes), namespace, tally)

    add_many, aadd_many = verb(_add_many)

    def _search(
        self,
        question: str,
        *,
        namespace: str | Sequence[str] = DEFAULT_NAMESPACE,
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
        """Search for *question*, and return the matching facts, entities, communities and episodes.

        *namespace* is the memory to search, or a list of several, such as ``["ann", "team-red"]``: these get one
        ranking, and each result its `namespace`. Each kind has at most *limit* results, best first. Without times, only
        facts that hold now are returned.
        *as_of* is a time at which facts must hold; *during* a period in which they must hold at some time: two times,
        or words such as ``"last March"``. *believed_at* searches what was believed at that time. `Facts` has the
        formats of times. For a past time, summaries of entities and communities are left out: they describe the
        present. Time words in *question* itself ("in 2019") only change the order.
        *unreviewed* includes facts that wait for a person's review. *thread* is the id of the conversation that asks:
        entities mentioned there last rank higher.
        *center* is the name of an entity, or a list of names, near which to search. *asker* is the name of the person
        whom "I", "my" and "the user" in the question mean.
        *where* filters the results: ``{"speaker": "Ann"}``, ``{"type": "Person"}``; see `kg_memory.models.filters`.
        *recipe* chooses how to search and rank: a name, a dict or a `kg_memory.retrieval.recipe.Recipe`.
        *explain* adds `SearchResults.explanations`: why each result has its rank, and what was left out.

        Raises `InputError`, `DatabaseError` and `EmbeddingError`.
        """
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {"center": center, "asker": asker, "where": where, "recipe": recipe, "explain": explain}
        home, *how["recall_from"] = validate_namespaces(namespace)
        asked = make_search_query(question, {"limit": limit}, times, thread, how)
        if not explain:
            asked = replace(asked, max_tokens=0)  # do not write the context: only explanations need its lines
        context: Context = yield from self._engine.answer(asked, home)
        return context.results

    search, asearch = verb(_search)

    def _context(
        self,
        question: str,
        *,
        namespace: str | Sequence[str] = DEFAULT_NAMESPACE,
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
        """Search a namespace for *question*, and return the results as text for a prompt: dated lines with sources.

        The text is a `str` of at most *max_tokens* tokens, with the attributes `results` (all search results), `lines`,
        `left_out` (results that did not fit) and `tokens`. *limit* is the maximum number of results of each kind; None
        is as many as may fit. *template* is the format: ``plain``, ``zep``, ``xml``, ``json``, ``zeph``, or a
        `Template`. Lines from other namespaces than the first begin with the name: ``[team-red]``. The other parameters
        and the errors are those of `search`.
        """
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how: dict[str, Any] = {"center": center, "asker": asker, "where": where, "recipe": recipe, "explain": explain}
        how["template"] = template
        home, *how["recall_from"] = validate_namespaces(namespace)
        limits = {"max_tokens": max_tokens, "limit": lines_within(max_tokens) if limit is None else limit}
        return self._engine.answer(make_search_query(question, limits, times, thread, how), home)

    context, acontext = verb(_context)

    def _stats(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[Stats]:
        """Return the numbers of episodes, entities, facts, communities and waiting reviews in the namespace."""
        return read_stats()

    stats, astats = verb(_stats)

    def _pause(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[bool]:
        """Stop the namespace from accepting new episodes, in all processes, until `unpause`.

        Returns False if it was paused before. While it is paused, methods that add episodes raise `MemoryPaused`, and
        LangGraph nodes and middleware save nothing. Searching, reviewing, forgetting and `episodes.resume` still work.
        """
        return set_paused(paused=True)

    pause, apause = verb(_pause)

    def _unpause(self, *, namespace: str = DEFAULT_NAMESPACE) -> Flow[bool]:
        """End a `pause`: accept new episodes again. Returns False if the namespace was not paused."""
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
        """Return the current facts about the entity *name*, such as home and job, grouped by topic and sub-topic.

        ``str(profile)`` is text for a prompt, which changes only when the entity's facts do. No model is called.
        *schema* has your own topics, as a dict or the path of a TOML or JSON file; *strict* leaves out facts that fit
        none of them. *max_tokens* limits the text; None is no limit. *prefer_topics* come first; *only_topics* leaves
        out all others. *max_subtopics* limits the sub-topics of a topic: the smallest are joined as ``other``.
        *max_slot_tokens* limits each line. *as_of* and *believed_at* select another time, as in `search`. See
        `docs/profile.md`. Raises `InputError`.
        """
        limits: dict[str, Any] = {"max_tokens": max_tokens, "max_subtopics": max_subtopics}
        limits |= {"max_slot_tokens": max_slot_tokens, "prefer_topics": prefer_topics, "only_topics": only_topics}
        return run_plugin("profile", name, schema, limits, (as_of, believed_at), strict=strict)

    profile, aprofile = verb(_profile)
