"""The results of operations: usage of models, and what adding, forgetting, evicting, exporting or importing did."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kg_memory.models.graph import EpisodeStatus, Ruling, Value, VerdictKind

COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens", "dropped")


class Usage(BaseModel):
    """How much a language model was used: the numbers of requests and of tokens. Add two usages with ``+``."""

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
    """The model usage of one step of processing an episode (a stored message or text).

    `step` is the name of the step; `seconds` is how long it took, with all waiting.
    """

    step: str
    seconds: float


class DailyUsage(Usage):
    """The model usage of one namespace on one day (UTC). `money` is its cost, None if the settings have no prices."""

    day: date
    money: float | None = None


class Range(Value):
    """An estimated number: its most likely value, and its lowest and highest value."""

    low: float
    likely: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


class Estimate(Value):
    """The estimated cost of processing `episodes` episodes (messages or texts).

    `to_read` of them cost something; `finished` are done, `skipped` would be skipped. `seconds`: the shortest time
    (model calls in parallel) and the longest. `past`: the stored episodes used for the estimate; below 20, typical
    values are used.
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
    """Something in a message that was not stored, or not read: its `text`, and the `reason`.

    `kind`: "entity" or "fact" (extracted, but not stored), or "part" (of a long text: the model refused to read it).
    """

    kind: Literal["entity", "fact", "part"]
    text: str
    reason: str


class AddResult(Value):
    """The result of adding one episode (a message, text or record): its id, and what was stored.

    - `facts`, `ended`, `pending`: sentences of facts that it states, that it ends, and that wait for a person's review.
    - `dropped`: extracted, but not stored. `unmapped`: facts of a mapping that the record lacks, with reasons.
    - `error`, `skipped`: why processing failed, or was not tried. `new`: False if it was added before.
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
    """The relation of a fact in a previewed text, which is not stored, to the stored fact with the id `existing`.

    `verdict`: such as ``duplicate`` or ``supersedes``. `ruling`: the effect that it would have if the text were added;
    for example, ``supersedes`` ends the stored fact, and ``waiting`` asks a person.
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

    Sentences: `facts` are new, `known` facts are stored already, `ended` facts would end, and `pending` facts would
    wait for review. `entities` are the names of new entities, `merged` the names of entities that are stored already.
    `skipped` says why the text would not be processed. `usage` is the cost of the preview; adding the text costs about
    as much again.
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
    """The number of episodes (stored messages and texts), entities, facts and other objects in a namespace.

    `blocks`: texts that agents edit. `waiting`, `failed`, `skipped`: episodes not yet processed, with errors, left out.
    `reviews`: pairs of facts that wait for a person's decision. `paused`: new episodes are refused.
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
    """The result of recomputing the communities (groups of entities): how many there are, changed, and were removed.

    `drift`: the share of entities whose community changed, 0 to 1; None without earlier communities. `questions`: the
    number of model calls.
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
    """The outdated data that `evict` removed, or would remove in a dry run.

    - `facts`, `entities`: ids that searches no longer find. They stay stored, except entities without facts.
    - `episodes`: ids of deleted messages, which had expired. `texts`: the removed texts, by id.
    - `beliefs`: the number of deleted periods of facts that the memory considered true before they were corrected.
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

    `label`, `id`: the node or relationship. `trace`: the kind of content found (``id``, ``word``, ``name``, ``quote``,
    ``text`` or ``vector``), or ``replica`` if `name` is the address of a replica that may still have it.
    """

    label: str
    name: str
    id: str = ""
    trace: str


class ForgetReceipt(Value):
    """The result of `privacy.forget`: the ids of everything that was deleted, or would be deleted in a dry run.

    `episodes` (messages), `facts` and `entities` are deleted. `restored` facts are true again, because the fact that
    ended them is deleted. `changed` facts have another wording or time. `unread` episodes made sense only together with
    deleted ones; `episodes.resume` processes them again. `redacted` has the new ids of episodes of which some
    characters were deleted. `texts` maps ids to texts, in a dry run only.

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
    """An entry of the audit log about a deletion: its kind, when and by whom, but no deleted text.

    A deletion has two entries with the same `receipt`: one before it (`complete` is False) and one after it. `what`
    (the thing deleted, such as a person), `namespace` and `messages` are salted hashes. `residue`: the number of traces
    of deleted content that were found, which should be 0. `before`: the hash of the previous entry.
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
    """The result of verifying the audit log: the `problems` found, and the number of `entries`.

    `head` is the hash of the last entry, None for an empty log. `pending` is the number of deletions that have begun
    but not ended: they are running, or were killed.
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
    """The result of exporting `namespace`. `records` counts nodes by label, and relationships: ``{"fact": 12, ...}``.

    `bytes` is the size of the exported text before compression, and `sha256` its hash.
    """

    namespace: str
    records: dict[str, int]
    bytes: int
    sha256: str = ""


class ImportResult(Value):
    """The result of importing data into `namespace`. `records`: the number of imported records of each kind.

    `embedded`: vectors computed again. `replaced`: the earlier content was deleted. `left_out`: unsupported records,
    counted by reason. `repeated`: records stored before. `unread`: errors of messages that were saved but not
    processed.
    """

    namespace: str
    records: dict[str, int]
    embedded: int = 0
    replaced: bool = False
    left_out: dict[str, int] = Field(default_factory=dict)
    repeated: int = 0
    unread: tuple[str, ...] = ()
