"""The state of the ingestion graph: its input, what one run may change, and the draft that the steps work on.

A step reads a `Draft` and returns the records that it adds. Where LangGraph runs the steps, checkpoints and Studio have
the same records as JSON; no embedding is ever in them.
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

from kg_memory.errors import ModelRefusal
from kg_memory.falkor.queries.episodes import KEEP_ANSWER
from kg_memory.falkor.queries.usage import NO_USAGE
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import (
    JSON,
    LONG_CONTENT,
    NO_GROUNDS,
    NOT_RECEIVED,
    Comparison,
    EpisodeRecord,
    Grounds,
    Loss,
    Mention,
    NamedFact,
    NewPredicate,
    NewVerdict,
    PairVerdict,
    Piece,
    PreviousMessage,
    ResolvedEntity,
    Revision,
    StatedFact,
)
from kg_memory.models.graph import ConflictStrategy, UndatedStart
from kg_memory.models.ontology import FactType
from kg_memory.runtime.caches import GraphCache
from kg_memory.runtime.config import RunConfig, describe_key, setting_field
from kg_memory.runtime.effects import Ask, Prompt, ask, in_threads, without_model, write
from kg_memory.runtime.flow import Flow, every
from kg_memory.settings import Settings
from kg_memory.temporal.interval import weekday
from kg_memory.validation import DEFAULT_NAMESPACE

Answer = TypeVar("Answer", bound=BaseModel)
BATCH = 25
"""The most items of a question about many: an answer cannot cover more."""


class IngestionInput(TypedDict, total=False):
    """An episode to remember, and where; only `content` is needed."""

    content: Required[
        Annotated[
            str, describe_key("What is to be remembered: words, or a JSON record.", examples=["I live in Oslo now."])
        ]
    ]
    kind: Annotated[Literal["message", "text", "json", "fact"], describe_key("What the content is.", "message")]
    speaker: Annotated[str | None, describe_key("Who said it.", None, examples=["Ann"])]
    at: Annotated[
        str | None, describe_key("When it was said, in ISO 8601; now if left out.", None, examples=["2024-05-01"])
    ]
    thread: Annotated[str | None, describe_key("The conversation that it belongs to.", None)]
    source: Annotated[str | None, describe_key("Where it comes from.", None, examples=["slack"])]
    source_id: Annotated[str | None, describe_key("Its id there; the same id is the same episode, stored once.", None)]
    trust: Annotated[float, describe_key("How far the source is believed, from 0 to 1.", 1.0, minimum=0, maximum=1)]
    expires_at: Annotated[str | None, describe_key("When it is to be forgotten, in ISO 8601; never if left out.", None)]
    labels: Annotated[
        Mapping[str, Any] | None, describe_key("For filters.", None, examples=[{"agent": "support", "tags": ["vip"]}])
    ]
    namespace: Annotated[str, describe_key("Whose memory it goes into.", DEFAULT_NAMESPACE)]
    saved_id: Annotated[
        str | None, describe_key("Its id, if it was saved before: it is read only if it is still there.", None)
    ]


class IngestionContext(RunConfig):
    """Settings of one run, where they are to differ from the memory's."""

    instructions: str = setting_field("instructions", "Further wishes for what is extracted.", "extract", "facts")
    previous_messages: int = setting_field(
        "previous_messages", "How many earlier messages are seen.", "receive", ge=0, le=50
    )
    plan: Literal["economy", "standard", "thorough"] = setting_field(
        "plan", "How much is asked about an episode.", "extract"
    )
    read_all: bool = setting_field("read_all", "Whether also greetings and the like are read.", "extract")
    reflections: int = setting_field("reflections", "How often it looks for what it missed.", "reflect", ge=0, le=5)
    auto_threshold: float = setting_field(
        "auto_threshold", "Confidence from which a verdict takes effect at once.", "dedupe", "invalidate", ge=0, le=1
    )
    review_threshold: float = setting_field(
        "review_threshold", "Confidence from which a verdict waits for review.", "invalidate", ge=0, le=1
    )
    undated_start: UndatedStart = setting_field(
        "undated_start", "The start of what is so now, told without one.", "date"
    )
    conflict_strategy: ConflictStrategy = setting_field(
        "conflict_strategy", "Which of two facts that conflict is believed.", "invalidate"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An episode on its way through the graph: what is `given`, and what the steps add.

    By the step that writes them:

    - receive: `answers` are what the model answered when reading the episode was broken off, `interrupted` is how many
      processes ended while they read it. `forgotten` is how often something had been forgotten when the episode was
      saved.
    - extract: `mentions`; `stated` are the facts where these are read together with the entities; `skipped` tells why
      the episode is not read. `dropped` is what was read and is not taken; facts adds to it.
    - resolve: `entities`, and when a predicate was learned or corrected last (`predicates_at`).
    - facts and date: `facts`, and the `predicates` that are new. dedupe marks the facts that are known.
    - dedupe: `facts` of the part that is saved next, and those of `later` parts; `comparisons` with known facts;
      `grounds`; `judged` are the verdicts on pairs of facts.
    - invalidate: `verdicts`, those that take the place of earlier ones (`rejudged`), the ids of those that wait for
      review again (`reopened`), and the `revision` of beliefs.
    - save: `retry_from` is the step to go back to, after how many `conflicts` with other writers; else `saved_at`, and
      the rows of entities whose summaries are `stale`. Of many facts `part` counts the parts that are saved, and
      `earlier` are their facts; in the end all are `facts` again.
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
    mentions: tuple[Mention, ...] = ()
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
        """Return the draft with these *values*, by their keys; what is no record is given."""
        records = {name: value for name, value in values.items() if name in _RECORDS}
        return cls(given={name: value for name, value in values.items() if name not in records}, **records)

    def prompt_fields(self, piece: Piece | None = None) -> JSON:
        """Return what prompts about *piece* show: the piece as an episode, and what came before it.

        Without one, the first piece stands for the whole episode.
        """
        if piece is None:
            piece = self.pieces[0] if self.pieces else Piece("")
        kind, speaker, at = self.episode.kind, self.episode.speaker_name, self.episode.at_iso
        episode = {"kind": kind, "content": piece.content, "speaker": speaker, "at": at, "weekday": weekday(at)}
        return {"episode": episode, "previous": [asdict(message) for message in self.previous]}


def type_fields(settings: Settings) -> JSON:
    """Return what prompts show of the declared types."""
    entity_types = {declared.name: declared.description for declared in settings.entity_types}
    return {"entity_types": entity_types, "fact_types": list(map(_show_fact_type, settings.fact_types))}


def _show_fact_type(declared: FactType) -> JSON:
    shown_type = asdict(declared)
    shown_type["one_at_a_time"] = shown_type.pop("single_valued")  # the word of the prompts
    return shown_type


Update = dict[str, Any]
"""The records that a step adds, by their keys in the state."""
TypedStep = Callable[[Draft, Settings], Flow[Update]]


def on_values(step: TypedStep) -> Callable[[Row, Settings], Flow[Update]]:
    """Return *step* as a node runs it: from the values of the steps before to what it adds to them.

    Of declared facts the model is not asked.
    """

    @wraps(step, assigned=("__name__", "__doc__"))  # the module, by which spans are named, is this one
    def run(values: Row, settings: Settings) -> Flow[Update]:
        draft = Draft.of(values)
        flow = step(draft, settings)
        return (yield from spare_loop(draft, without_model(flow) if draft.episode.is_declared else flow))

    return run


def spare_loop(draft: Draft, flow: Flow[Update]) -> Flow[Update]:
    """Return *flow* so that it does not hold up an event loop, however long the episode of *draft* is."""
    content = draft.episode.content or str(draft.given.get("content"))
    return in_threads(flow) if len(content) > LONG_CONTENT else flow


_INPUT = get_type_hints(IngestionInput, include_extras=True)
_RECORDS = {name: hint for name, hint in get_type_hints(Draft, include_extras=True).items() if name != "given"}
IngestionState: Any = TypedDict("IngestionState", {**_RECORDS, **_INPUT}, total=False)  # type: ignore[misc]
"""The schema of the graph: the input, and the records of `Draft` as JSON."""
_ADAPTERS = {name: TypeAdapter[Any](hint) for name, hint in _RECORDS.items()}


def encode(values: Row) -> Row:
    """Return the *values* of the steps as JSON."""
    return to_jsonable_python(values)  # type: ignore[no-any-return]


def decode(state: Row) -> Row:
    """Return the values of the steps in a state of JSON."""
    return {
        name: _ADAPTERS[name].validate_python(value) if name in _ADAPTERS and value is not None else value
        for name, value in state.items()
    }


def find_answers(state: Row, model: str) -> GraphCache | None:
    """Store the model's answers with the episode of *state*, until it is done."""
    if "episode" not in state:
        return None
    return cache_in_episode(state["episode"].id, model, state.get("answers") or {}, done=bool(state.get("done")))


# Questions


def ask_about(draft: Draft, make: Callable[[Draft], Ask]) -> Flow[Any]:
    """Return the answer to the question that *make* asks about *draft*.

    Where the model declines, it is asked once more without the messages before: one of them may be why.
    """
    try:
        return (yield make(draft))
    except ModelRefusal:
        if not draft.previous:
            raise
    return (yield make(replace(draft, previous=())))


def ask_in_batches(
    prompt: Prompt[Answer], key: str, items: Sequence[Any], fields: Mapping[str, Any] | None = None
) -> Flow[list[Answer]]:
    """Ask *prompt* about *items*, which are its field *key*, in parallel batches, and return the answer to each batch.

    No items: no question, and no answers.
    """
    if not items:
        return []
    batches = (items[start : start + BATCH] for start in range(0, len(items), BATCH))
    answers: list[Answer] = yield from every(ask(prompt, **{key: batch, **(fields or {})}) for batch in batches)
    return answers


_KEPT = frozenset("read read_window reflect facts extract_message extract_text extract_json".split())
"""The names of the prompts whose answers are stored with an episode."""


def cache_in_episode(episode: str, model: str, answers: Mapping[str, str], *, done: bool = False) -> GraphCache:
    """Return the answers of *model* that are stored with *episode*; once it is *done*, none is added.

    Only answers to reading questions are stored: these are dear, and the others cost less than storing them.
    """

    def store(key: str, answer: str) -> Flow[Any]:
        return write(KEEP_ANSWER, id=episode, key=key, answer=answer, **NO_USAGE)

    return GraphCache(episode, model, answers, None if done else store, _KEPT)
