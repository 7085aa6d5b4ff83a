"""The answers of a memory: search results, contexts, profiles, and views of an entity and its surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Literal, Self, TypeVar

from kg_memory.models.graph import Community, Consequence, Entity, Episode, Fact, Kind, Precision, Review, Source, Value

T = TypeVar("T")


class Paged(list[T]):
    """A page of a list: `next` is the `after` of the page behind it, and None at the end."""

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002 - as in answers over HTTP
        super().__init__(items)
        self.next = next


class QueryTime(Value):
    """The time of a question: what was so at some time in ``[since, until)``, as `believed_at` that time.

    `words` are those of the question that name it, if it was not an argument. `reading` states it in a sentence.
    """

    since: datetime | None = None
    until: datetime | None = None
    believed_at: datetime
    words: str | None = None
    reading: str


class Hit(Value):
    """The `rank` and the `score` at which a `retriever` (``words``, ``meaning``, ``graph``) found something."""

    retriever: str
    rank: int
    score: float


class Explanation(Value):
    """An explanation of the rank of a result, or of why it was left out.

    `text` is its line in the context, if it has one. `rank` is its place among the results of its kind, from 1; if it
    is None, or there is no line, `left_out` is the reason. `hits` are the searches that found it, and `scores` its
    score after each step of ranking.
    """

    kind: Kind
    id: str
    text: str = ""
    rank: int | None = None
    hits: tuple[Hit, ...] = ()
    scores: tuple[tuple[str, float], ...] = ()
    left_out: str | None = None


class Answerable(Value):
    """Whether the memory holds an answer: yes, unlikely or no, by the relevance of a search; true for yes.

    `reason` says why not, as in "nothing here is about Lily". `abstains` says that the relevance is below
    `Settings.abstain_below`: then contexts, tools and documents say no more than that the memory does not know.
    """

    value: Literal["yes", "unlikely", "no"]
    reason: str = ""
    abstains: bool = False

    def __bool__(self) -> bool:
        return self.value == "yes"

    def __str__(self) -> str:
        return f"The memory does not know this: {self.reason}." if self.reason else self.value


class SearchResults(Value):
    """The results of a search, best first in each kind, and the `time` of the question.

    `relevance`, 0 to 1, is the probability that the memory holds an answer, if half of all questions have one, and
    `answerable` what follows from it, with the reason. A search without words has neither. `explanations` covers each
    result and what was left out, if the search was asked to explain. `skipped` are the retrievers that a recipe with
    `route` left out. `degraded` is why the search went by words and graph alone, where the embedding model failed.
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

    @property
    def abstains(self) -> bool:
        """Whether the memory only says that it does not know."""
        return self.answerable is not None and self.answerable.abstains


class Line(Value):
    """A line of a context: the `kind` and the `id` of its subject, its text, and about how many tokens that has."""

    kind: Kind
    id: str
    text: str
    tokens: int


class Context(str):
    """A text for a prompt: a string that knows its contents.

    `results` are those of the search, `lines` the ones in the text, in its order, and `left_out` explains the others.
    `tokens` is the estimated length of the text.
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
    """The surroundings of an entity at a time (C31): entities with their distance in steps, and the facts."""

    depths: dict[str, int]
    """The distance of each entity, by its id."""
    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()


class Neighbour(Value):
    """An entity that shares so many `facts` with another."""

    name: str
    type: str = "Entity"
    facts: int


class FactExplanation(Value):
    """The reasons for a fact: its statements, the verdicts about it, what superseded what, and what rests on it.

    `fact` is None where it was not believed at the time that is asked about.
    """

    fact: Fact | None
    sources: tuple[Source, ...] = ()
    verdicts: tuple[Review, ...] = ()
    evolution: tuple[Fact, ...] = ()
    consequences: tuple[Consequence, ...] = ()


class CommunityCard(Value):
    """An overview of a community: the latest facts among its members, or its parts, and the community around it."""

    community: Community
    facts: tuple[Fact, ...] = ()
    parts: tuple[Community, ...] = ()
    part_of: Community | None = None


class EntityCard(Value):
    """An overview of an entity: its latest facts, closest neighbours, latest mentions, and communities."""

    entity: Entity
    facts: tuple[Fact, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    episodes: tuple[Episode, ...] = ()
    communities: tuple[Community, ...] = ()


class ProfileSlot(Value):
    """A fact in a profile: its `content`, `when` it is so in words, and the ids of the `facts` that say so.

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
    """A sub-topic with its slots, what is so for the longest time first."""

    name: str
    description: str = ""
    slots: tuple[ProfileSlot, ...]


class ProfileTopic(Value):
    """A topic with its sub-topics, in the order of the schema."""

    name: str
    description: str = ""
    sub_topics: tuple[ProfileSubTopic, ...]


class Profile(Value):
    """The states that hold of an entity, by topic; `str` gives its `text`, for a prompt.

    `left_out` are the ids of facts that have no room within `max_tokens`. `tokens` is the estimated length of the text.
    """

    entity: str
    topics: tuple[ProfileTopic, ...] = ()
    left_out: tuple[str, ...] = ()
    text: str = ""
    tokens: int = 0

    @cached_property
    def facts(self) -> frozenset[str]:
        """The ids of the facts in it."""
        slots = (slot for topic in self.topics for sub_topic in topic.sub_topics for slot in sub_topic.slots)
        return frozenset(id_ for slot in slots for id_ in slot.facts)

    def __str__(self) -> str:
        return self.text
