"""The reports of operations: usage, and the results of adding, refreshing, forgetting, exporting and importing."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kg_memory.models.graph import EpisodeStatus, Ruling, Value, VerdictKind

COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "dropped")


class Usage(BaseModel):
    """The model usage of one request or of many; it can be added and subtracted."""

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    """Requests that the model answered, validly or not."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Both as the server counts them; 0 if it does not."""
    cached_tokens: int = 0
    """The part of the input tokens that the server had cached, and charges less for."""
    dropped: int = 0
    """Invalid items of answers that were dropped."""
    given_up: tuple[str, ...] = ()
    """The questions not asked because a budget ran out, by the names of `kg_memory.models.budget.LADDER`, once each."""

    def __add__(self, other: Usage) -> Usage:
        given_up = tuple(dict.fromkeys((*self.given_up, *other.given_up)))
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS}, given_up=given_up)


class StepUsage(Usage):
    """The usage of a step of an ingestion; `seconds` includes all waiting."""

    step: str
    seconds: float


class DailyUsage(Usage):
    """The usage of a namespace on a day (UTC); `money` by the prices in the settings, None without."""

    day: date
    money: float | None = None


class Range(Value):
    """The range of a figure, and its likely value."""

    low: float
    likely: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


class Estimate(Value):
    """The cost of reading some `episodes`: only those `to_read` cost anything.

    `finished` were read before, `skipped` have nothing in them that is read. `seconds`, where it is known, is from all
    asked at once to one after the other. `past` is how many episodes of the namespace it comes from: with 20 or
    more, that is what is likely; else a measured conversation is.
    """

    episodes: int
    to_read: int
    finished: int
    skipped: int
    calls: Range
    input_tokens: Range
    output_tokens: Range
    money: Range | None = None
    seconds: tuple[float, float] | None = None
    past: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        """Return what both take; what is not known of one is not known of both."""
        counts = ("episodes", "to_read", "finished", "skipped", "calls", "input_tokens", "output_tokens", "past")
        whole = {name: getattr(self, name) + getattr(other, name) for name in counts}
        money = self.money + other.money if self.money and other.money else None
        seconds = None
        if self.seconds and other.seconds:
            seconds = (self.seconds[0] + other.seconds[0], self.seconds[1] + other.seconds[1])
        return Estimate(**whole, money=money, seconds=seconds)


class Dropped(Value):
    """An entity or a fact that the reading names and the memory does not take: its `text`, and the `reason`.

    A fact that is taken without one of its objects is among them too, and so is a part of a long text that the model
    declines to read, with the beginning and the end of the part as its text.
    """

    kind: Literal["entity", "fact", "part"]
    text: str
    reason: str


class AddResult(Value):
    """The result of adding one episode.

    `new` is false if the same episode had been added before. `facts` are the sentences of the facts that it states,
    `ended` those of facts that no longer hold because of it, `pending` those that wait for review. `dropped` is what
    was read and not taken, with reasons: nothing is lost silently. A declared start that changes nothing is among it.
    If `status` is not done, `error` is why it could not be read, or `skipped` why it was not to be. `unmapped` are the
    facts of a mapping that the record does not state, each with the reason. `steps` is the usage of each step in order,
    and `usage` their sum.
    """

    episode: str
    new: bool
    status: EpisodeStatus = EpisodeStatus.DONE
    entities: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    error: str | None = None
    skipped: str | None = None
    unmapped: tuple[str, ...] = ()
    steps: tuple[StepUsage, ...] = ()

    @property
    def usage(self) -> Usage:
        """The usage of all steps."""
        return sum(self.steps, Usage())


class PreviewedVerdict(Value):
    """A verdict on a fact that a text states and a stored one, `existing` by its id; see `models.graph.VerdictKind`.

    `ruling` is what it would do, if it is about a contradiction.
    """

    fact: str
    existing: str
    existing_sentence: str
    verdict: VerdictKind
    confidence: float
    reason: str
    ruling: Ruling | None = None


class Preview(Value):
    """The effects that reading a text would have.

    `facts` are the sentences that would be new, `known` those that are known already. `ended` would hold no longer, and
    `pending` would wait for review. `entities` would be new, and `merged` would be taken for stored ones. `skipped` is
    why it would not be read. `usage` is what the preview took: reading takes about the same again.
    """

    facts: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    verdicts: tuple[PreviewedVerdict, ...] = ()
    skipped: str | None = None
    usage: Usage = Usage()


class Stats(Value):
    """The size of a namespace; `reviews` are verdicts that wait for a person.

    `messages` of the episodes are of that kind. `blocks` are versions of blocks, which are counted apart. `waiting` are
    episodes not yet read to the end, `failed` those that could not be, `skipped` those not to be read.
    `paused` says that nothing new is remembered; see `GraphMemory.pause`.
    """

    episodes: int = 0
    messages: int = 0
    blocks: int = 0
    waiting: int = 0
    failed: int = 0
    skipped: int = 0
    entities: int = 0
    facts: int = 0
    current_facts: int = 0
    reviews: int = 0
    communities: int = 0
    paused: bool = False


class CommunityRefresh(Value):
    """The result of refreshing the communities: their number, and how many were summarised again or removed.

    `levels` is the number of levels. `drift` is the share of the entities that are in another community than before, or
    were in none, if there were communities. `questions` is how many the model was asked, and `usage` their usage.
    """

    communities: int = 0
    levels: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    drift: float | None = None
    questions: int = 0
    usage: Usage = Usage()


class EvictionResult(Value):
    """The things evicted `at` that time, or so in a dry run: the number of `beliefs`, and the ids of the rest.

    `beliefs` are closed ones, and `episodes` expired ones, which were forgotten. `texts` has the texts of some ids, but
    not of what was forgotten.
    """

    beliefs: int = 0
    facts: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    dry_run: bool = False
    at: datetime
    texts: dict[str, str] = Field(default_factory=dict)


class Residue(Value):
    """A `trace` of forgotten content: the property `name` of a node or relation, by its label and id.

    The trace is an ``id``, a ``word``, a ``name``, a ``quote``, the ``text`` of a message or a ``vector``.
    A ``replica`` that does not have the deletion is named by its address; ``replica_url`` is that of the settings.
    """

    label: str
    name: str
    id: str = ""
    trace: str


class ForgetReceipt(Value):
    """The things forgotten `at` that time, or so in a dry run: the ids of the `episodes`, `facts` and `entities`.

    `restored` are facts that hold again, as what had ended them is gone; `changed` are those with other wordings or
    times. `unread` are episodes to be read again by `resume`: they made sense only together with what was forgotten. Of
    the `redacted` episodes only some characters were removed; these are their new ids. `texts` has the texts of the ids
    in a dry run only: a receipt keeps no text.

    The work took so many `parts`, each of them atomic. `residue` are the traces found afterwards, empty if all is well
    and None in a dry run: ids, and on request words, names, quotes and vectors in so many `searched` properties.
    `erased` tells whether the server's files are free of it too; if not, `advice` says what to do. `cleared` is the
    number of caches and buffers of this process that were emptied, such as those of its streams of events.
    `checkpoints` are the threads whose checkpoints were deleted. In the audit log it has the id `receipt`, and its
    entry the hash `head`.
    """

    kind: str = "episode"
    episodes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    parts: int = 1
    dry_run: bool = False
    at: datetime
    by: str = "user"
    reason: str = ""
    texts: dict[str, str] = Field(default_factory=dict)
    residue: tuple[Residue, ...] | None = None
    searched: int = 0
    erased: bool | None = None
    advice: str = ""
    cleared: int = 0
    checkpoints: tuple[str, ...] = ()
    receipt: str = ""
    head: str = ""


PLANNED = ("kind", "episodes", "facts", "entities", "restored", "changed", "redacted")
"""The fields of a receipt that make up a plan of what would go."""


class AuditEntry(Value):
    """The entry `number` of the audit log: something was forgotten `at` that time, without its text.

    `what`, `namespace` and the `messages` (the first 1,000) are salted hashes. `residue` is the number of traces found,
    of ids or in so many `searched` properties. An entry that is not `complete` was made before anything was deleted: it
    has the number of `episodes` to delete, and is the last one of a call that is under way or was killed. `before` is
    the hash of the previous entry, `hash` its own.
    """

    number: int
    receipt: str
    kind: str
    what: str
    namespace: str
    messages: tuple[str, ...] = ()
    by: str
    reason: str = ""
    at: datetime
    episodes: int = 0
    facts: int = 0
    entities: int = 0
    residue: int | None = None
    searched: int = 0
    erased: bool | None = None
    complete: bool = True
    before: str
    hash: str


class AuditReport(Value):
    """The result of verifying the audit log: the `problems`, the number of `entries`, and the hash of the last, `head`.

    `pending` is the number of calls that were begun and did not end: they are under way, or were killed.
    """

    entries: int
    head: str | None = None
    problems: tuple[str, ...] = ()
    pending: int = 0

    @property
    def ok(self) -> bool:
        """Whether the log has no problems."""
        return not self.problems


class ExportResult(Value):
    """The result of exporting `namespace`: the number of nodes of each label, and of relations.

    `bytes` is the size of its lines before compression, `sha256` their hash.
    """

    namespace: str
    records: dict[str, int]
    bytes: int
    sha256: str = ""


class ImportResult(Value):
    """The result of importing into `namespace`: the number of each record, and of vectors that were computed again.

    `replaced` tells whether the previous content was deleted. `left_out` counts what another memory's export has that
    is not supported here, and `repeated` the records that were there before. `unread` has the errors of messages that
    were saved but could not be read.
    """

    namespace: str
    records: dict[str, int]
    embedded: int = 0
    replaced: bool = False
    left_out: dict[str, int] = Field(default_factory=dict)
    repeated: int = 0
    unread: tuple[str, ...] = ()
