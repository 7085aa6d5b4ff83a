"""The verbs that ask a memory: search, and the context for a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from kg_memory.memory import calls
from kg_memory.memory.looking_back import During, Time
from kg_memory.memory.verbs import Verbs
from kg_memory.models.context import Context
from kg_memory.models.graph import SearchResults
from kg_memory.retrieval.context.render import context_of
from kg_memory.retrieval.context.templates import Template
from kg_memory.retrieval.graph import course
from kg_memory.retrieval.recipe import Recipe
from kg_memory.runtime.graph import Course
from kg_memory.text.identity import DEFAULT_NAMESPACE

LEAST_LINES = 10
TOKENS_A_LINE = 60
"""What a line of one kind takes of a context, with its share of those of the others."""


class Searching(Verbs):
    """Questions, and what is known about them.

    Facts are those that hold now, or held *as_of* another instant, or at some time *during* a period, by what is
    believed now, or was *believed_at* another instant; see `LookingBack` for how times are given. Without these, time
    words in the question count ("where did Ann live in 2019?", "before she moved"): `SearchResults.asked` tells.
    *unreviewed*
    takes in what waits for review. Summaries tell of now, so a question about the past gets none.

    *thread* is the conversation that asks: what it last spoke of is found more easily; *center* is the name of an
    entity near which to look. *where* is what must be so of what is found, such as ``{"speaker": "Ann"}`` or
    ``{"type": "Person"}``: see `kg_memory.models.filters`. *recipe* is how it is searched and ranked, by name or as a
    `kg_memory.retrieval.recipe.Recipe`. With *explain* it is told of each thing why it stands where it does, and what
    was left
    out and why, in `SearchResults.why`.
    """

    def search(
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
        center: str | None = None,
        where: Mapping[str, Any] | None = None,
        recipe: Recipe | str | Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> SearchResults:
        """Find facts, entities, communities and episodes, at most *limit* of each, best first; see `Searching`.

        Errors: `InputError`, `DatabaseError`, `EmbeddingError`.
        """
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {"center": center, "where": where, "recipe": recipe, "explain": explain}
        asked = calls.question(question, namespace, {"limit": limit}, times, thread, how)
        return calls.found(self._asking.invoke(asked | _untold(asked)))

    async def asearch(
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
        center: str | None = None,
        where: Mapping[str, Any] | None = None,
        recipe: Recipe | str | Mapping[str, Any] | None = None,
        explain: bool = False,
    ) -> SearchResults:
        """`search`, for asyncio."""
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {"center": center, "where": where, "recipe": recipe, "explain": explain}
        asked = calls.question(question, namespace, {"limit": limit}, times, thread, how)
        return calls.found(await self._asking.ainvoke(asked | _untold(asked)))

    def context(
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
        center: str | None = None,
        where: Mapping[str, Any] | None = None,
        recipe: Recipe | str | Mapping[str, Any] | None = None,
        template: Template | str | None = None,
        explain: bool = False,
    ) -> Context:
        """Return what an agent needs to answer *question*: dated and sourced lines, within *max_tokens*.

        It is a string, which also has what was `found`, its `lines`, what was `left_out` and its `tokens`. *limit* is
        how many of each kind may be told; without one, as many as there is room for. *template* is
        how it is written: ``plain``, ``zep``, ``xml``, ``json``, ``zeph``, or a `Template`. The rest is as in
        `Searching`. Errors: as `search`.
        """
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {"center": center, "where": where, "recipe": recipe, "explain": explain, "template": _name(template)}
        limits = {"max_tokens": max_tokens, "limit": _most(max_tokens) if limit is None else limit}
        asked = calls.question(question, namespace, limits, times, thread, how)
        return context_of(self._asking.invoke(asked), _form(template))

    async def acontext(
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
        center: str | None = None,
        where: Mapping[str, Any] | None = None,
        recipe: Recipe | str | Mapping[str, Any] | None = None,
        template: Template | str | None = None,
        explain: bool = False,
    ) -> Context:
        """`context`, for asyncio."""
        times = {"as_of": as_of, "during": during, "believed_at": believed_at, "unreviewed": unreviewed}
        how = {"center": center, "where": where, "recipe": recipe, "explain": explain, "template": _name(template)}
        limits = {"max_tokens": max_tokens, "limit": _most(max_tokens) if limit is None else limit}
        asked = calls.question(question, namespace, limits, times, thread, how)
        return context_of(await self._asking.ainvoke(asked), _form(template))

    @cached_property
    def retrieval(self) -> Any:
        """The compiled retrieval graph; as a part of another graph it keeps its checkpoints there."""
        return self._asking.graph.compile(name="retrieval")

    @cached_property
    def _asking(self) -> Course:
        return course(self.driver.reading(), self.settings)


def _untold(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what spares a search the writing of a context, which only an explanation quotes."""
    return {} if "explain" in asked else {"max_tokens": 0}


def _most(max_tokens: Any) -> int:
    """Return how many of each kind there may be room for."""
    return max(LEAST_LINES, max_tokens // TOKENS_A_LINE) if isinstance(max_tokens, int) else LEAST_LINES


def _name(template: Template | str | None) -> str | None:
    return template if isinstance(template, str) else None


def _form(template: Template | str | None) -> Template | None:
    return template if isinstance(template, Template) else None
