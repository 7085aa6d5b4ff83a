"""What one episode carries through the ingestion graph: small and JSON-plain, never an embedding.

The input is flat: the fields of an `EpisodeInput` and the namespace. What a run may change is the context.
"""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, Literal, Required

from typing_extensions import TypedDict

from kg_memory.llm import prompts
from kg_memory.models.graph import ConflictStrategy, Precision, Ruling, VerdictKind
from kg_memory.runtime import config
from kg_memory.runtime.config import setting
from kg_memory.runtime.forms import shown
from kg_memory.text.identity import DEFAULT_NAMESPACE


class IngestionInput(TypedDict, total=False):
    """What to remember, and where; only `content` is needed."""

    content: Required[
        Annotated[str, shown("What is to be remembered: words, or a JSON record.", examples=["I live in Oslo now."])]
    ]
    kind: Annotated[Literal["message", "text", "json"], shown("What the content is.", "message")]
    speaker: Annotated[str | None, shown("Who said it.", None, examples=["Ann"])]
    at: Annotated[str | None, shown("When it was said, in ISO 8601; now if left out.", None, examples=["2024-05-01"])]
    thread: Annotated[str | None, shown("The conversation that it belongs to.", None)]
    source: Annotated[str | None, shown("Where it comes from.", None, examples=["slack"])]
    source_id: Annotated[str | None, shown("Its id there; the same id is the same episode, stored once.", None)]
    trust: Annotated[float, shown("How far the source is believed, from 0 to 1.", 1.0, minimum=0, maximum=1)]
    expires_at: Annotated[str | None, shown("When it is to be forgotten, in ISO 8601; never if left out.", None)]
    namespace: Annotated[str, shown("Whose memory it goes into.", DEFAULT_NAMESPACE)]
    known: Annotated[str | None, shown("Its id, if it was saved before: then it is read only if it is there.", None)]


class IngestionContext(config.Context):
    """How this run reads, where it is to differ from the memory's settings and prompts."""

    instructions: str = setting("instructions", "Further wishes for what is extracted.", "extract", "facts")
    previous_messages: int = setting("previous_messages", "How many earlier messages are seen.", "receive", ge=0, le=50)
    plan: Literal["economy", "standard", "thorough"] = setting("plan", "How much is asked about an episode.", "extract")
    read_all: bool = setting("read_all", "Whether also greetings and the like are read.", "extract")
    reflections: int = setting("reflections", "How often it looks for what it missed.", "reflect", ge=0, le=5)
    auto_threshold: float = setting(
        "auto_threshold", "Confidence from which a verdict takes effect at once.", "judge", ge=0, le=1
    )
    review_threshold: float = setting(
        "review_threshold", "Confidence from which a verdict waits for review.", "judge", ge=0, le=1
    )
    conflict_strategy: ConflictStrategy = setting(
        "conflict_strategy", "Which of two facts that conflict is believed.", "invalidate"
    )
    extract_message_prompt: str = config.prompt(prompts.EXTRACT_MESSAGE, "extract", "How a message is read.")
    extract_text_prompt: str = config.prompt(prompts.EXTRACT_TEXT, "extract", "How a text is read.")
    extract_json_prompt: str = config.prompt(prompts.EXTRACT_JSON, "extract", "How a JSON record is read.")
    read_prompt: str = config.prompt(prompts.READ, "extract", "How entities and facts are read together.")
    reflect_prompt: str = config.prompt(prompts.REFLECT, "reflect", "How the entities are looked through.")
    resolve_prompt: str = config.prompt(prompts.RESOLVE, "resolve", "How it is told which entities are known.")
    facts_prompt: str = config.prompt(prompts.FACTS, "facts", "How the facts are read.")
    predicates_prompt: str = config.prompt(prompts.PREDICATES, "facts", "How a new predicate gets its name.")
    judge_prompt: str = config.prompt(prompts.JUDGE, "judge", "How new facts are held against known ones.")
    summarise_prompt: str = config.prompt(prompts.SUMMARISE, "summarise", "How entities are summarised.")


class Piece(TypedDict):
    """A stretch of the episode's content that is read at once; `start` is its place in it."""

    content: str
    start: int


class NewEntity(TypedDict, total=False):
    """An entity that the episode mentions; `key` and `id` are those of the known one, once resolved.

    `called` are the names by which this episode mentions it; where it is known under another, `name` is not among them.
    One that was `evicted` is found again once it is mentioned.
    """

    name: str
    called: list[str]
    type: str
    key: str
    id: str
    known: bool
    evicted: bool
    renamed: bool
    aliases: list[str]


class Identity(TypedDict):
    """Which of the known entities that it was told *among*, by their ids, a new one is the `same_as`, if any.

    `name` is the fullest name of the two.
    """

    among: list[str]
    same_as: str | None
    name: str


class StatedByName(TypedDict):
    """A fact as it was read together with its entities, which it has by name: a dumped `answers.StatedFact`."""

    piece: int
    fact: dict[str, Any]


class NewFact(TypedDict, total=False):
    """A fact that the episode states, between entities given by their place in `entities`.

    `start` and `end` are the characters of the content that state it, `quoted` whether its quote was found there.
    `predicate` is the canonical one, `wording` the one that was read; whether it holds for one object at a time was
    `declared` by a person or the settings, or is a guess. `same_as` is the id of the known fact that says the same;
    one that `corrects` takes the place of what was said of that before, one that is `refuted` was corrected before it
    came, and one that is `retold` was said before the words that the known one has now. Times are microseconds since
    the epoch; `window_end` is the end of the period in which a coarse `valid_at` lies.
    """

    id: str
    subject: int
    subject_id: str
    predicate: str
    wording: str
    one_at_a_time: bool | None
    declared: bool
    family: str | None
    objects: list[int]
    object_ids: list[str]
    sentence: str
    start: int
    end: int
    quoted: bool
    said_from: str | None
    said_until: str | None
    said_at: int
    valid_at: int
    invalid_at: int
    precision: Precision
    end_precision: Precision
    window_end: int
    confidence: float
    edge_type: str
    same_as: str | None
    corrects: bool
    refuted: bool
    retold: bool


class NewVerdict(TypedDict):
    """What was found about a new fact and a known one, by their ids, and what it does; see `model.Review`."""

    id: str
    new: str
    known: str
    kind: VerdictKind
    ruling: Ruling
    confidence: float
    holds: Literal["new", "known"]
    reason: str


class NewPredicate(TypedDict):
    """A predicate that was not in the vocabulary; see `model.PredicateInfo`."""

    name: str
    canonical: str
    one_at_a_time: bool | None
    origin: str


class Related(TypedDict):
    """What was looked up of facts (`of`): the known ones each may have to do with, by their ids, and the revisions.

    Of those that are known in the same words, `histories` are what `kg_memory.ingestion.revise.read_history` reads.
    """

    of: list[dict[str, Any]]
    found: list[dict[str, dict[str, Any]]]
    revisions: dict[str, int]
    histories: list[dict[str, Any]]


class IngestionState(IngestionInput, total=False):
    """The input, and what each step adds to it.

    `forgotten` is how often something had been forgotten when the episode was saved, and `predicates_at` when one was
    learned or corrected last; `again` tells that more was since then, and so the episode is read anew. `stated` are the
    facts where they are read together with the entities, before these are resolved; `skipped` tells why nothing was
    asked about the episode, `skips` how many right before it in its thread were not asked about, and `status` how far
    it is. `answers` are what the model answered before, when reading it was broken off or ahead of its turn; so were
    entities `identified` and predicates `learned`. `judged` is what the model said of each pair of a new fact and a
    known one, and `based_on` the revisions of the entities that it was based on; `related` is what both were looked up
    in, from the first question about the facts until they are judged, and `histories` what is known of some of them as
    `Related` has it. `touched`, `closed`, `beliefs`,
    `ended`, `waiting` and `revived` are those of `kg_memory.ingestion.revise.Revision`; `reopened` are the verdicts
    that wait
    again. `stale` are the entities that are to be summarised, as `cypher.SAVE` tells them. `linked` is how many links
    between entities were made, and `unlinked` for how many there was no time. `steps` are what each step took, as
    dumped `kg_memory.models.usage.StepUsage`.
    """

    episode: dict[str, Any]
    new: bool
    done: bool
    forgotten: int
    predicates_at: int
    again: bool
    previous: list[dict[str, Any]]
    skips: int
    pieces: list[Piece]
    entities: list[NewEntity]
    stated: list[StatedByName] | None
    skipped: str
    status: str
    answers: dict[str, str]
    identified: dict[str, Identity]
    facts: list[NewFact]
    predicates: list[NewPredicate]
    learned: list[NewPredicate]
    judged: dict[str, Any]
    related: Related | None
    based_on: dict[str, int]
    histories: list[dict[str, Any]]
    verdicts: list[NewVerdict]
    rejudged: list[NewVerdict]
    reopened: list[str]
    touched: list[str]
    closed: list[str]
    beliefs: list[dict[str, Any]]
    ended: list[str]
    waiting: list[str]
    revived: list[str]
    saved_at: int
    stale: list[dict[str, Any]]
    linked: int
    unlinked: int
    steps: Annotated[list[dict[str, Any]], add]
