"""The results of searches: matches, contexts for prompts, profiles, and views of an entity, a fact or a community."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Literal, Self, TypeVar

from kg_memory.models.graph import Community, Consequence, Entity, Episode, Fact, Kind, Precision, Review, Source, Value

T = TypeVar("T")


class Paged(list[T]):
    """One page of a list. Pass `next` as the argument *after* to get the following page; None on the last page."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002 - as in answers over HTTP
        super().__init__(items)
        self.next = next


class QueryTime(Value):
    """The time that a question asks about: from `since` until before `until`; None is an open end.

    `believed_at`: answer as the memory would have answered at that time. `words`: the time words in the question, such
    as "last May", or None. `reading`: a sentence that explains how the time was understood.
    """

    since: datetime | None = None
    until: datetime | None = None
    believed_at: datetime
    words: str | None = None
    reading: str


class Hit(Value):
    """A search that found a result: its `retriever` (``words``, ``meaning``, ``graph``), `rank` and `score` there."""

    retriever: str
    rank: int
    score: float


class Explanation(Value):
    """Why a search result has its rank, or why it was left out.

    `text` is its line in the prompt text. `rank` is its place among the results of its kind, from 1. `left_out` is why
    it was left out, or None. `hits` are the searches that found it. `scores` are its scores after each ranking step:
    ``(("fused", 0.9), ("recency", 0.8))``.
    """

    kind: Kind
    id: str
    text: str = ""
    rank: int | None = None
    hits: tuple[Hit, ...] = ()
    scores: tuple[tuple[str, float], ...] = ()
    left_out: str | None = None


class Answerable(Value):
    """Whether the memory can answer a question: ``yes``, ``unlikely`` or ``no``; true in a condition if ``yes``.

    `reason` says why not, such as "nothing here is about Lily". If `abstains`, the relevance is below
    `Settings.abstain_below`, and prompt texts only say that the memory does not know.
    """

    value: Literal["yes", "unlikely", "no"]
    reason: str = ""
    abstains: bool = False

    def __bool__(self) -> bool:
        return self.value == "yes"

    def __str__(self) -> str:
        return f"The memory does not know this: {self.reason}." if self.reason else self.value


class SearchResults(Value):
    """The results of a search, best first in each kind; `episodes` are stored messages and texts.

    `time` is the time that the question asks about. `relevance` is the probability, from 0 to 1, that the memory has an
    answer; `answerable` is the conclusion from it. `explanations` are set on request. `skipped` are search methods that
    the recipe left out. `degraded` is set if the embedding model failed, so that only words and the graph were
    searched. `namespaces`: those that were searched, if several.
    """

    question: str
    time: QueryTime | None = None
    facts: tuple[Fact, ...] = ()
    entities: tuple[Entity, ...] = ()
    communities: tuple[Community, ...] = ()
    episodes: tuple[Episode, ...] = ()
    relevance: float | None = None
    answerable: Answerable | None = None
    explanations: tuple[Explanation, ...] = ()
    skipped: tuple[str, ...] = ()
    degraded: str | None = None
    namespaces: tuple[str, ...] = ()

    @property
    def home(self) -> str | None:
        """The first of `namespaces`, or None without any. Its results are shown without the name of a namespace."""
        return self.namespaces[0] if self.namespaces else None

    @property
    def abstains(self) -> bool:
        """Whether the memory only says that it does not know the answer."""
        return self.answerable is not None and self.answerable.abstains


class Line(Value):
    """One line of a prompt text: its text, its estimated tokens, and the `kind` and `id` of the result it shows.

    `heading` is the day above the line if lines are grouped by day, else "".
    """

    kind: Kind
    id: str
    text: str
    tokens: int
    heading: str = ""


class Context(str):
    """Text for a prompt: a `str` that also has the search results from which it was made.

    `results` are all search results. `lines` are the lines of the text, one for each result in it. `left_out` explains
    why other results are not in the text. `tokens` is the estimated length of the text.
    """

    __slots__ = ("left_out", "lines", "results", "tokens")

    results: SearchResults
    tokens: int
    lines: tuple[Line, ...]
    left_out: tuple[Explanation, ...]

    def __new__(
        cls,
        text: str = "",
        results: SearchResults | None = None,
        *,
        tokens: int = 0,
        lines: Sequence[Line] = (),
        left_out: Sequence[Explanation] = (),
    ) -> Self:
        context = super().__new__(cls, text)
        context.results = SearchResults(question="") if results is None else results
        context.tokens, context.lines, context.left_out = tokens, tuple(lines), tuple(left_out)
        return context


class Neighbourhood(Value):
    """The entities and facts around an entity in the graph, up to some number of facts away."""

    depths: dict[str, int]
    """The distance of each entity in steps, by entity id; 0 is the entity itself."""
    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()


class Neighbour(Value):
    """An entity that is linked to another entity by facts about both; `facts` is the number of these facts."""

    name: str
    type: str = "Entity"
    facts: int


class StaleFact(Value):
    """A fact that may have changed since it was last stated, and a question to ask the user about it.

    `freshness`, from 0 to 1, is how likely it still holds, by its age and kind; see `GraphMemory.facts.stale`.
    """

    fact: Fact
    freshness: float
    last_said: datetime
    question: str


class TimelineEvent(Value):
    """A date in the history of a fact: when it ``began`` or ``ended``; without a known start, when it was ``said``."""

    at: datetime
    precision: Precision = "instant"
    kind: Literal["began", "ended", "said"]
    fact: Fact


class FactExplanation(Value):
    """The evidence for a fact, its history, and the facts that depend on it (`consequences`).

    `sources` are the quotes that state it. `verdicts` say how it relates to other facts. `evolution` has the facts that
    it replaced and that replaced it, in order. `fact` is None if it was not believed at the requested time.
    """

    fact: Fact | None
    sources: tuple[Source, ...] = ()
    verdicts: tuple[Review, ...] = ()
    evolution: tuple[Fact, ...] = ()
    consequences: tuple[Consequence, ...] = ()


class CommunityCard(Value):
    """An overview of a community (a group of entities): its latest facts or smaller groups, and the group around it."""

    community: Community
    facts: tuple[Fact, ...] = ()
    parts: tuple[Community, ...] = ()
    part_of: Community | None = None


class EntityCard(Value):
    """An overview of an entity: its latest facts, closest neighbours, latest messages about it, and communities."""

    entity: Entity
    facts: tuple[Fact, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    episodes: tuple[Episode, ...] = ()
    communities: tuple[Community, ...] = ()


class ProfileSlot(Value):
    """One entry of a profile: its `content`, `when` it is true (in words), and the ids of the `facts` it is based on.

    `mark` is ``disputed``, ``doubtful``, ``not confirmed by its words`` or empty.
    """

    content: str
    when: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    precision: Precision = "instant"
    end_precision: Precision = "instant"
    confidence: float = 1.0
    mark: str = ""
    facts: tuple[str, ...]


class ProfileSubTopic(Value):
    """A sub-topic of a profile, such as "employer" in "work". Of its entries, the ones that hold longest come first."""

    name: str
    description: str = ""
    slots: tuple[ProfileSlot, ...]


class ProfileTopic(Value):
    """A topic of a profile with its sub-topics, in the order in which the profile schema lists them."""

    name: str
    description: str = ""
    sub_topics: tuple[ProfileSubTopic, ...]


class Profile(Value):
    """The current facts about an entity, grouped by topic; ``str(profile)`` is text for a prompt.

    `left_out` has the ids of the facts for which `max_tokens` left no room. `tokens` is the estimated length of the
    text.
    """

    entity: str
    topics: tuple[ProfileTopic, ...] = ()
    left_out: tuple[str, ...] = ()
    text: str = ""
    tokens: int = 0

    @cached_property
    def facts(self) -> frozenset[str]:
        """The ids of all facts in the profile."""
        slots = (slot for topic in self.topics for sub_topic in topic.sub_topics for slot in sub_topic.slots)
        return frozenset(id_ for slot in slots for id_ in slot.facts)

    def __str__(self) -> str:
        return self.text
