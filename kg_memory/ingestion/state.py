"""The state of the ingestion graph: its input, the settings of one run, and the results of the steps so far (`Draft`).

A step takes a `Draft` and returns the fields to update. In LangGraph's checkpoints and in Studio the same fields are
JSON, without embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from operator import add
from typing import Annotated, Any, Literal, Required, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from kg_memory.errors import AnswerError, BudgetSpent, ModelError, ModelUnavailable
from kg_memory.falkor.queries.episodes import KEEP_ANSWER
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import (
    JSON,
    LONG_CONTENT,
    NO_GROUNDS,
    NOT_RECEIVED,
    CandidateFact,
    Comparison,
    EntityMention,
    EpisodeRecord,
    Grounds,
    Loss,
    NamedFact,
    NewPredicate,
    NewVerdict,
    PairVerdict,
    Piece,
    PreviousMessage,
    ResolvedEntity,
    Revision,
    Span,
    StatedFact,
    pick,
)
from kg_memory.models.graph import ConflictStrategy
from kg_memory.models.ontology import FactType
from kg_memory.runtime.caches import GraphCache
from kg_memory.runtime.config import RunConfig, describe_key, setting_field
from kg_memory.runtime.effects import Ask, PromptTemplate, ask_model, in_threads, without_model, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings, UndatedStart
from kg_memory.temporal.interval import weekday_name
from kg_memory.validation import DEFAULT_NAMESPACE

Answer = TypeVar("Answer", bound=BaseModel)
T = TypeVar("T")
MOST_AT_ONCE = 200
"""The most facts and entities that one query writes: the database answers no other query meanwhile."""
BATCH = 25
"""The most items in one question to the model; an answer cannot cover more."""


class IngestionInput(TypedDict, total=False):
    """The input of the ingestion graph: an episode to remember. Only `content` is required."""

    content: Required[
        Annotated[
            str, describe_key("The text to remember, or a JSON record as a string.", examples=["I live in Oslo now."])
        ]
    ]
    kind: Annotated[Literal["message", "text", "json", "fact"], describe_key("The kind of the content.", "message")]
    speaker: Annotated[str | None, describe_key("The name of the speaker.", None, examples=["Ann"])]
    at: Annotated[
        str | None, describe_key("When it was said, in ISO 8601; by default now.", None, examples=["2024-05-01"])
    ]
    thread: Annotated[str | None, describe_key("The id of the conversation it belongs to.", None)]
    source: Annotated[str | None, describe_key("The system it comes from.", None, examples=["slack"])]
    source_id: Annotated[str | None, describe_key("Its id in the source; an id is stored only once.", None)]
    trust: Annotated[float, describe_key("How far the source is trusted, from 0 to 1.", 1.0, minimum=0, maximum=1)]
    expires_at: Annotated[str | None, describe_key("When to forget it, in ISO 8601; by default never.", None)]
    labels: Annotated[
        Mapping[str, Any] | None, describe_key("To filter by.", None, examples=[{"agent": "support", "tags": ["vip"]}])
    ]
    namespace: Annotated[str, describe_key("The namespace to store it in.", DEFAULT_NAMESPACE)]
    saved_id: Annotated[
        str | None, describe_key("Its episode id if it was saved before; it is read unless it was forgotten.", None)
    ]


class IngestionContext(RunConfig):
    """Settings of one ingestion run that override those of the memory."""

    instructions: str = setting_field("instructions", "Additional instructions to the model.", "extract", "facts")
    previous_messages: int = setting_field(
        "previous_messages", "Number of earlier messages shown to the model.", "receive", ge=0, le=50
    )
    plan: Literal["economy", "standard", "thorough"] = setting_field(
        "plan", "How many questions to ask the model about an episode.", "extract"
    )
    read_all: bool = setting_field("read_all", "Whether to read greetings and flagged episodes too.", "extract")
    reflections: int = setting_field("reflections", "Times to ask for missed entities.", "reflect", ge=0, le=5)
    auto_threshold: float = setting_field(
        "auto_threshold", "Confidence from which a verdict takes effect at once.", "dedupe", "invalidate", ge=0, le=1
    )
    review_threshold: float = setting_field(
        "review_threshold", "Confidence from which a verdict waits for review.", "invalidate", ge=0, le=1
    )
    undated_start: UndatedStart = setting_field(
        "undated_start", "The start of a state that is stated without one.", "date"
    )
    conflict_strategy: ConflictStrategy = setting_field(
        "conflict_strategy", "Which of two conflicting facts is believed.", "invalidate"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The state of one ingestion: the input (`given`), the stored episode, and the results of the steps so far.

    Fields by the step that sets them:

    - receive: the stored `episode`; `answers`, the model's answers from an interrupted attempt; `interrupted`, the
      number of processes killed while reading the episode; `forgotten`, the number of deletions in the namespace when
      the episode was saved; `previous` messages; the `pieces` to read.
    - extract: `mentions`, the entities named; `stated`, the facts if they were read with the entities; `skipped`, the
      reason for not reading the episode; `dropped`, the entities and facts left out (`facts` adds to them).
    - resolve: `entities`; `predicates_at`, when a predicate was last learned or corrected.
    - facts and date: `facts`; `predicates`, the ones learned.
    - dedupe: marks on `facts` that exist already; `later`, the facts left for the next parts; `comparisons` with
      existing facts; `grounds`; `judged`, the verdicts by pair.
    - invalidate: `verdicts`; `rejudged`, verdicts that replace earlier ones; `reopened`, the ids of verdicts that wait
      for review again; `revision`, the changes of beliefs.
    - save: `retry_from`, the step to go back to; `conflicts`, how often other writers forced that; `part`, the number
      of parts saved, and `earlier`, their facts; `saved_at`; `stale`, the rows of entities that need a new summary.
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = DEFAULT_NAMESPACE
    episode: EpisodeRecord = NOT_RECEIVED
    new: bool = False
    done: bool = False
    interrupted: int = 0
    status: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    forgotten: int = 0
    previous: tuple[PreviousMessage, ...] = ()
    pieces: tuple[Piece, ...] = ()
    mentions: tuple[EntityMention, ...] = ()
    stated: tuple[NamedFact, ...] | None = None
    skipped: str | None = None
    dropped: tuple[Loss, ...] = ()
    entities: tuple[ResolvedEntity, ...] = ()
    predicates_at: int | None = None
    earlier: tuple[StatedFact, ...] = ()
    facts: tuple[StatedFact, ...] = ()
    later: tuple[StatedFact, ...] = ()
    part: int = 0
    predicates: tuple[NewPredicate, ...] = ()
    judged: dict[str, PairVerdict | None] = field(default_factory=dict)
    comparisons: tuple[Comparison, ...] = ()
    grounds: Grounds = NO_GROUNDS
    verdicts: tuple[NewVerdict, ...] = ()
    rejudged: tuple[NewVerdict, ...] = ()
    reopened: tuple[str, ...] = ()
    revision: Revision = field(default_factory=Revision)
    retry_from: str | None = None
    conflicts: int = 0
    saved_at: int = 0
    stale: list[JSON] = field(default_factory=list)
    linked: int = 0
    unlinked: int = 0
    steps: Annotated[list[JSON], add] = field(default_factory=list)

    @classmethod
    def of(cls, values: Row) -> Draft:
        """Create a `Draft`, the state of one ingestion, from *values*.

        Values that are not its fields are put into `given`.
        """
        records = {name: value for name, value in values.items() if name in _RECORDS}
        return cls(given={name: value for name, value in values.items() if name not in records}, **records)

    def prompt_fields(self, piece: Piece | None = None) -> JSON:
        """Return the fields of a prompt about a part of the text: ``{"episode": {...}, "previous": [...]}``."""
        if piece is None:
            piece = self.pieces[0] if self.pieces else Piece("")
        kind, speaker, at = self.episode.kind, self.episode.speaker_name, self.episode.at_iso
        episode = {"kind": kind, "content": piece.content, "speaker": speaker, "at": at, "weekday": weekday_name(at)}
        return {"episode": episode, "previous": [asdict(message) for message in self.previous]}


def type_fields(settings: Settings) -> JSON:
    """Return the types declared in *settings* as prompt fields: ``{"entity_types": {...}, "fact_types": [...]}``."""
    entity_types = {declared.name: declared.description for declared in settings.entity_types}
    return {"entity_types": entity_types, "fact_types": list(map(_show_fact_type, settings.fact_types))}


def _show_fact_type(declared: FactType) -> JSON:
    shown_type = asdict(declared)
    shown_type["one_at_a_time"] = shown_type.pop("single_valued")  # the word of the prompts
    return shown_type


Update = dict[str, Any]
"""The fields of `Draft` that a step sets, by name."""
TypedStep = Callable[[Draft, Settings], Flow[Update]]


def on_values(step: TypedStep) -> Callable[[Row, Settings], Flow[Update]]:
    """Convert *step*, a function of a `Draft`, to a LangGraph node, which takes the state as a dict."""

    @wraps(step, assigned=("__name__", "__doc__"))  # spans are named by this module
    def run(values: Row, settings: Settings) -> Flow[Update]:
        draft = Draft.of(values)
        flow = step(draft, settings)
        return (yield from spare_loop(draft, without_model(flow) if draft.episode.is_declared else flow))

    return run


def spare_loop(draft: Draft, flow: Flow[T]) -> Flow[T]:
    """Return *flow*, marked to run in a thread if the text of *draft* is long enough to block an event loop."""
    return in_threads(flow) if len(draft.episode.content or str(draft.given.get("content"))) > LONG_CONTENT else flow


_INPUT = get_type_hints(IngestionInput, include_extras=True)
_RECORDS = {name: hint for name, hint in get_type_hints(Draft, include_extras=True).items() if name != "given"}
IngestionState: Any = TypedDict("IngestionState", {**_RECORDS, **_INPUT}, total=False)  # type: ignore[misc]
"""The state schema of the graph: the input, and the fields of `Draft` as JSON."""
_ADAPTERS = {name: TypeAdapter[Any](hint) for name, hint in _RECORDS.items()}


def encode(values: Row) -> Row:
    """Convert a graph state with dataclasses to JSON, for LangGraph's checkpoints; `decode` reverses it."""
    return to_jsonable_python(values)  # type: ignore[no-any-return]


def decode(state: Row) -> Row:
    """Convert a JSON graph state back to a state with dataclasses; the inverse of `encode`."""
    return {
        name: _ADAPTERS[name].validate_python(value) if name in _ADAPTERS and value is not None else value
        for name, value in state.items()
    }


def as_candidate(fact: StatedFact, draft: Draft) -> CandidateFact:
    """Return the unsaved *fact* in the form of a stored one, so that other new facts can be compared with it."""
    names = [entity.name for entity in draft.entities]
    words = pick(fact, "id", "subject_id", "predicate", "object_ids", "sentence", "stated_at", "only_ends")
    times = pick(fact, "valid_at", "invalid_at", "precision", "end_precision")
    return CandidateFact(
        **words,
        **times,
        subject=names[fact.subject],
        objects=tuple(names[index] for index in fact.objects),
        stated_by=draft.episode.id,
        arrived_at=draft.episode.created_at,
        kind="state" if fact.kind == "former" else fact.kind,
        beliefs=(Span(fact.valid_at, fact.invalid_at),),
    )


def find_answers(state: Row, model: str) -> GraphCache | None:
    """Return a cache of the answers that *model* gave about the message in *state*; None without a message."""
    if "episode" not in state:
        return None
    return cache_in_episode(state["episode"].id, model, state.get("answers") or {}, done=bool(state.get("done")))


# Questions


def ask_about(draft: Draft, make: Callable[[Draft], Ask]) -> Flow[Any]:
    """Ask the model the question ``make(draft)``; if it refuses, once more without the previous messages.

    Errors: `ModelError`.
    """
    try:
        return (yield make(draft))
    except ModelError as error:
        if not draft.previous or isinstance(error, ModelUnavailable | BudgetSpent | AnswerError):
            raise
    return (yield make(replace(draft, previous=())))


def ask_in_batches(
    prompt: PromptTemplate[Answer], key: str, items: Sequence[Any], fields: Mapping[str, Any] | None = None
) -> Flow[list[Answer]]:
    """Ask the model about *items*, up to 25 in each of several parallel requests; return one answer per request."""
    if not items:
        return []
    batches = (items[start : start + BATCH] for start in range(0, len(items), BATCH))
    answers: list[Answer] = yield from every(ask_model(prompt, **{key: batch, **(fields or {})}) for batch in batches)
    return answers


# The names of the prompts whose answers are stored with an episode; others are cheaper to ask again.
_KEPT = frozenset("read read_window reflect facts extract_message extract_text extract_json".split())


def cache_in_episode(episode: str, model: str, answers: Mapping[str, str], *, done: bool = False) -> GraphCache:
    """Return a cache of the model's answers about one message, which are stored in the database with it."""

    def store(key: str, answer: str) -> Flow[Any]:
        return write(KEEP_ANSWER, id=episode, key=key, answer=answer, **NO_USAGE)

    return GraphCache(episode, model, answers, None if done else store, _KEPT)
