"""The results of operations: usage of models, and what adding, forgetting, evicting, exporting or importing did."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kg_memory.models.graph import EpisodeStatus, Ruling, Value, VerdictKind

COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "dropped")


class Usage(BaseModel):
    """The usage of a language model by one call or many: requests and tokens. Add two with ``+``."""

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
    """The usage of a language model by one step of reading an episode; `seconds` includes all waiting."""

    step: str
    seconds: float


class DailyUsage(Usage):
    """The usage of a namespace on one day (UTC); `money` follows the prices in the settings, None without prices."""

    day: date
    money: float | None = None


class Range(Value):
    """An estimated number: its likely value, and its lowest and highest."""

    low: float
    likely: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


class Estimate(Value):
    """The estimated cost of reading `episodes` episodes, of which only `to_read` cost anything.

    `finished` were read before, and `skipped` would be skipped. `seconds` is the time if all calls run at once, and if
    they run one after the other; None if unknown. `past` is the number of episodes of the namespace that the estimate
    is based on; with fewer than 20, the likely values come from a measured conversation.
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
        """Return the cost of both estimates together; `money` and `seconds` are None if either is unknown."""
        counts = ("episodes", "to_read", "finished", "skipped", "calls", "input_tokens", "output_tokens", "past")
        whole = {name: getattr(self, name) + getattr(other, name) for name in counts}
        money = self.money + other.money if self.money and other.money else None
        seconds = None
        if self.seconds and other.seconds:
            seconds = (self.seconds[0] + other.seconds[0], self.seconds[1] + other.seconds[1])
        return Estimate(**whole, money=money, seconds=seconds)


class Dropped(Value):
    """An entity or fact that was read from an episode and not stored: its `text`, and the `reason`.

    A fact that was stored without one of its objects is listed too. ``part`` is a part of a long text that the model
    declined to read, with the beginning and the end of the part as `text`.
    """

    kind: Literal["entity", "fact", "part"]
    text: str
    reason: str


class AddResult(Value):
    """The result of adding one episode.

    `episode` is its id, and `new` is False if it had been added before. `facts` are the sentences of the facts that it
    states, `ended` of facts that no longer hold because of it, and `pending` of facts that wait for review. `dropped`
    lists what was read and not stored, with the reasons. If `status` is not ``done``, `error` says why it could not be
    read, or `skipped` why it was skipped. `unmapped` lists the facts of a mapping that the record does not state, with
    the reasons. `steps` is the usage of each ingestion step, in order.
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
        """The usage of all steps together."""
        return sum(self.steps, Usage())


class PreviewedVerdict(Value):
    """A judgement how a fact in a previewed text relates to a stored fact, whose id is `existing`.

    `verdict` is the relation, such as ``duplicate`` or ``supersedes``; `ruling` is its effect if the text is added and
    the two contradict each other.
    """

    fact: str
    existing: str
    existing_sentence: str
    verdict: VerdictKind
    confidence: float
    reason: str
    ruling: Ruling | None = None


class Preview(Value):
    """What reading a text would change; nothing was stored.

    Sentences: `facts` would be new, `known` exist already, `ended` would no longer hold, and `pending` would wait for
    review. Names: `entities` would be new, and `merged` would be recognised as existing ones. `skipped` says why the
    text would not be read. `usage` is the cost of the preview; adding the text costs about the same again.
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
    """The number of objects in a namespace.

    `messages` are the episodes of that kind; `blocks` (versions of agent-edited texts) are not counted in `episodes`.
    `waiting` episodes are not read yet, `failed` ones could not be read, and `skipped` ones are not to be read.
    `reviews` are verdicts that wait for a person. `paused` is whether new episodes are refused; see
    `GraphMemory.pause`.
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
    """The result of refreshing the communities: their number, and how many changed or were removed.

    Communities that `changed` were summarised again. `levels` is the number of levels (communities of communities).
    `drift` is the share of the entities that are in another community than before, None if there were no communities.
    `questions` is the number of calls to the model, and `usage` their usage.
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
    """The outdated data that an eviction removed, or would remove in a dry run.

    `beliefs` is the number of closed beliefs; `facts`, `entities` and `episodes` are ids; the episodes had expired and
    were deleted. `texts` maps some of the ids to their texts, except for deleted episodes.
    """

    beliefs: int = 0
    facts: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    dry_run: bool = False
    at: datetime
    texts: dict[str, str] = Field(default_factory=dict)


class Residue(Value):
    """A trace of deleted content that was found in the property `name` of a node or relationship.

    `label` and `id` are those of the node or relationship. `trace` is what was found: an ``id``, a ``word``, a
    ``name``, a ``quote``, the ``text`` of an episode or a ``vector``. With the trace ``replica``, `name` is the address
    of a replica that has not deleted the content yet, or ``replica_url`` for the one in the settings.
    """

    label: str
    name: str
    id: str = ""
    trace: str


class ForgetReceipt(Value):
    """The result of `privacy.forget`: the ids of everything that was deleted, or would be deleted in a dry run.

    `episodes`, `facts` and `entities` are deleted. `restored` facts are true again, because the fact that ended them is
    deleted; `changed` facts have another wording or time. `unread` episodes need to be read again, by
    `episodes.resume`, because they made sense only together with deleted ones. `redacted` has the new ids of episodes
    of which only some characters were deleted. `texts` has the texts of the ids, in a dry run only.

    `parts` is the number of atomic steps. `residue` lists the traces found afterwards: empty if there are none, None in
    a dry run. Ids are always searched for; words, names, quotes and vectors only on request, and `searched` is the
    number of properties that were searched for them. `erased` says whether the server's files are clean too; if not,
    `advice` says what to do. `cleared` is the number of caches and buffers of this process that were emptied.
    `checkpoints` are the threads whose LangGraph checkpoints were deleted. `receipt` is the id in the audit log, and
    `head` the hash of the log's entry.
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
    """One entry of the audit log: the kind of a deletion, `at` which time and by whom, without any deleted text.

    `what`, `namespace` and `messages` (the first 1,000) are salted hashes. `residue` is the number of traces of deleted
    content that were found: of ids, or in `searched` properties. `complete` is False for the entry that is written
    before anything is deleted; it has the number of `episodes` to delete, and if it is the last one of a receipt, the
    call is running or was killed. `before` is the hash of the previous entry, and `hash` its own.
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
    """The result of verifying the audit log: its `problems`, and the number and last hash of its entries.

    `entries` is their number, and `head` the hash of the last one, None for an empty log. `pending` is the number of
    deletions that began and did not end: they are running, or were killed.
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
    """The result of exporting `namespace`: `records` has the number of nodes by label, and of relationships.

    `bytes` is the size of the exported lines before compression, and `sha256` their hash.
    """

    namespace: str
    records: dict[str, int]
    bytes: int
    sha256: str = ""


class ImportResult(Value):
    """The result of importing into `namespace`: `records` has the number of records of each kind.

    `embedded` is the number of vectors that were computed again. `replaced` says whether the former content was
    deleted. `left_out` counts records of another memory that are not supported, and `repeated` those that were stored
    before. `unread` has the errors of episodes that were saved but could not be read.
    """

    namespace: str
    records: dict[str, int]
    embedded: int = 0
    replaced: bool = False
    left_out: dict[str, int] = Field(default_factory=dict)
    repeated: int = 0
    unread: tuple[str, ...] = ()
