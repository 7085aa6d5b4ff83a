"""The results of operations: usage of models, and what adding, forgetting, evicting, exporting or importing did."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kg_memory.models.graph import EpisodeStatus, Ruling, Value, VerdictKind

COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "dropped")


class Usage(BaseModel):
    """How much a language model was used: numbers of requests and tokens. Add two usages with ``+``."""

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    """Requests that the model answered, with a valid answer or not."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Tokens as the server counts them; 0 if it does not report them."""
    cached_tokens: int = 0
    """The part of the input tokens that the server had cached, and charges less for."""
    dropped: int = 0
    """The number of invalid items in answers, which were dropped."""
    given_up: tuple[str, ...] = ()
    """The names of the `kg_memory.models.budget.LADDER` rungs whose calls were left out for lack of budget."""

    def __add__(self, other: Usage) -> Usage:
        given_up = tuple(dict.fromkeys((*self.given_up, *other.given_up)))
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS}, given_up=given_up)


class StepUsage(Usage):
    """The model usage of one step of reading an episode; `seconds` is how long the step took, with all waiting."""

    step: str
    seconds: float


class DailyUsage(Usage):
    """The model usage of a namespace on one day (UTC), with its cost `money`; None without prices in the settings."""

    day: date
    money: float | None = None


class Range(Value):
    """An estimated number: its likely value, and the lowest and the highest one."""

    low: float
    likely: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


class Estimate(Value):
    """The estimated cost of reading `episodes` episodes. Only `to_read` of them cost anything.

    `finished` ones were read before, and `skipped` ones would be skipped. `seconds` is the fastest and the slowest
    time: with all model calls in parallel, and one after the other; None if unknown. `past` is the number of episodes
    of the namespace on which the estimate is based; below 20, typical values are used.
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
        """Return the sum of both estimates; `money` and `seconds` are None if either has none."""
        counts = ("episodes", "to_read", "finished", "skipped", "calls", "input_tokens", "output_tokens", "past")
        whole = {name: getattr(self, name) + getattr(other, name) for name in counts}
        money = self.money + other.money if self.money and other.money else None
        seconds = None
        if self.seconds and other.seconds:
            seconds = (self.seconds[0] + other.seconds[0], self.seconds[1] + other.seconds[1])
        return Estimate(**whole, money=money, seconds=seconds)


class Dropped(Value):
    """An entity or fact that was read from an episode but not stored: its `text`, and the `reason`.

    A fact that was stored without one of its objects is listed too. A ``part`` is a part of a long text that the model
    declined to read; its `text` has the beginning and the end of the part.
    """

    kind: Literal["entity", "fact", "part"]
    text: str
    reason: str


class AddResult(Value):
    """The result of adding one episode: its id, and what was stored.

    `episode` is the id, and `new` is False if it had been added before. `facts` are the sentences of the facts that it
    states, `ended` of facts that it ended, and `pending` of facts that wait for review. `dropped` has entities and
    facts that were read but not stored. If `status` is not ``done``, `error` says why reading failed, or `skipped` why
    it was not tried. `unmapped` has the facts of a mapping that the record does not state, with reasons. `steps` is the
    model usage of each step of reading.
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
        """The model usage of all steps together."""
        return sum(self.steps, Usage())


class PreviewedVerdict(Value):
    """How a fact in a text that is only previewed relates to a stored fact, whose id is `existing`.

    `verdict` is the relation, such as ``duplicate`` or ``supersedes``. `ruling` is what would happen to two
    contradicting facts if the text were added.
    """

    fact: str
    existing: str
    existing_sentence: str
    verdict: VerdictKind
    confidence: float
    reason: str
    ruling: Ruling | None = None


class Preview(Value):
    """What adding a text to the memory would change. Nothing was stored.

    `facts`, `known`, `ended` and `pending` are sentences: of new facts, of facts that exist already, of facts that
    would end, and of facts that would wait for review. `entities` are the names of new entities, `merged` of existing
    ones. `skipped` says why the text would not be read. `usage` is the cost of the preview; adding the text costs about
    the same again.
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
    """The number of episodes, entities, facts and other objects in a namespace.

    `blocks` (versions of texts that agents edit) are not counted in `episodes`. `waiting` episodes will be read,
    `failed` ones could not be read, and `skipped` ones are not to be read. `reviews` are verdicts that wait for a
    person. `paused` says whether new episodes are refused, see `GraphMemory.pause`.
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
    """The result of refreshing the communities, groups of entities: how many there are, changed, and were removed.

    Communities that `changed` have a new summary. `levels` is the number of levels (communities of communities).
    `drift` is the share of entities that are in another community than before, None if there were none before.
    `questions` is the number of model calls, and `usage` their usage.
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
    """The outdated data that an eviction deleted, or would delete in a dry run.

    `beliefs` is the number of beliefs that had ended. `facts`, `entities` and `episodes` are ids; the episodes had
    expired. `texts` maps ids to texts, but not those of deleted episodes.
    """

    beliefs: int = 0
    facts: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    dry_run: bool = False
    at: datetime
    texts: dict[str, str] = Field(default_factory=dict)


class Residue(Value):
    """A trace of deleted content that is still stored, in the property `name` of a node or relationship.

    `label` and `id` are those of the node or relationship. `trace` says what was found: an ``id``, ``word``, ``name``,
    ``quote``, ``text`` of an episode, or ``vector``. With ``replica``, a replica has not deleted the content yet:
    `name` is its address, or ``replica_url`` for the one in the settings.
    """

    label: str
    name: str
    id: str = ""
    trace: str


class ForgetReceipt(Value):
    """The result of `privacy.forget`: the ids of everything that was deleted, or would be deleted in a dry run.

    `episodes`, `facts` and `entities` are deleted. `restored` facts are true again, because the fact that ended them is
    deleted. `changed` facts have another wording or time. `unread` episodes made sense only together with deleted ones;
    `episodes.resume` reads them again. `redacted` has the new ids of episodes of which some characters were deleted.
    `texts` has the texts of the ids, in a dry run only.

    `parts` is the number of transactions. `residue` lists the traces found afterwards: empty if there are none, None in
    a dry run. Ids are always searched for. Words, names, quotes and vectors are searched for on request, in `searched`
    properties. `erased` says whether the server's files are clean too; if not, `advice` says what to do. `cleared` is
    the number of caches of this process that were emptied. `checkpoints` are the threads whose LangGraph checkpoints
    were deleted. `receipt` is the id in the audit log, and `head` the hash of its entry.
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
"""The fields of a receipt that a dry run fills."""


class AuditEntry(Value):
    """An entry of the audit log about one deletion: its kind, when and by whom, but no deleted text.

    `what`, `namespace` and `messages` (the first 1,000) are salted hashes. `residue` is the number of traces of deleted
    content that were found. Before anything is deleted, an entry is written in which `complete` is False; without a
    second entry of the same `receipt`, the deletion is running or was killed. `before` is the hash of the previous
    entry, `hash` that of this one.
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
    """The result of verifying the audit log: its `problems`, and its number of `entries`.

    `head` is the hash of the last entry, None for an empty log. `pending` is the number of deletions that began and did
    not end: they are running, or were killed.
    """

    entries: int
    head: str | None = None
    problems: tuple[str, ...] = ()
    pending: int = 0

    @property
    def ok(self) -> bool:
        """Whether no problems were found in the log."""
        return not self.problems


class ExportResult(Value):
    """The result of exporting `namespace`: `records` has the number of nodes by label, and the number of relationships.

    `bytes` is the size of the exported text before compression, and `sha256` its hash.
    """

    namespace: str
    records: dict[str, int]
    bytes: int
    sha256: str = ""


class ImportResult(Value):
    """The result of importing data into `namespace`: `records` has the number of records of each kind.

    `embedded` is the number of vectors that were computed again. `replaced` says whether the content from before was
    deleted. `left_out` counts records of another memory that are not supported, and `repeated` records that were stored
    before. `unread` has the errors of episodes that were saved but could not be read.
    """

    namespace: str
    records: dict[str, int]
    embedded: int = 0
    replaced: bool = False
    left_out: dict[str, int] = Field(default_factory=dict)
    repeated: int = 0
    unread: tuple[str, ...] = ()
