"""The policy on contradictions: what a verdict does, and which of two facts wins.

A model, a declaration or a person gives a *verdict* about two facts: how they relate, and how sure that is. The policy
turns it into a *ruling*, what the verdict does to beliefs, and decides between facts that cannot both be true. Nothing
else in the package does. `ConflictPolicy.weigh` says how much a statement counts: in conflicts, in successions and in
corrections, where it gives way only to one that counts more. `ConflictPolicy.beats` compares two facts that conflict.
For another strategy, add its name to
`kg_memory.models.graph.ConflictStrategy`, and its case to these two and to `expect_winner`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from kg_memory.models.graph import ConflictStrategy, Fact, Ruling, VerdictKind
from kg_memory.temporal.statements import Order, Statement

if TYPE_CHECKING:
    from kg_memory.settings import Settings

Contradiction = Literal["supersedes", "conflicts"]
CONTRADICTIONS: tuple[VerdictKind, ...] = ("supersedes", "conflicts")
"""The verdicts after which two facts do not hold at the same time."""
COMPATIBLE: tuple[VerdictKind, ...] = ("complements", "temporary", "unrelated")
"""The verdicts that let both facts hold."""
Weight = float
"""The weight of a statement, the greater the better."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict about two facts, and its ruling; *preferred* is the fact that the model believes.

    *refused* is the fact that a person rejected, *refused_at* when. *kind* is what the verdict would do while it waits
    for review. One about a single fact retracts it.
    """

    new: str
    existing: str
    ruling: Ruling
    preferred: str | None = None
    refused: str | None = None
    kind: Contradiction = "supersedes"
    refused_at: int | None = None

    @property
    def is_retraction(self) -> bool:
        """Whether a person retracted the fact, and did not undo that."""
        return self.new == self.existing and self.ruling == "refused" and self.refused_at is not None

    @property
    def is_admission(self) -> bool:
        """Whether a new fact waits for a person because of its worth, and not because of another fact."""
        return self.new == self.existing and self.ruling == "waiting"

    def retracts(self, statement: Statement) -> bool:
        """Return whether *statement* is of the fact that this retracts, and had arrived by then."""
        is_about = self.is_retraction and self.new == statement.fact
        return is_about and self.refused_at is not None and statement.arrived_at <= self.refused_at


@dataclass(frozen=True, slots=True)
class Relation:
    """A subject, a predicate and objects. *single_valued*: a subject has one object of this predicate at a time.

    That was *declared* by a person or the settings, else it is a guess.
    """

    subject: str
    predicate: str
    objects: frozenset[str]
    single_valued: bool | None = None
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """The strength of one of the facts in a conflict: its weightiest statement, and when it was stated first and last.

    These are the `Statement.order` of the two. The id of the fact breaks the last tie.
    """

    fact: str
    weight: Weight
    first_stated: Order
    last_stated: Order

    @property
    def order(self) -> tuple[Weight, Order, str]:
        """The key by which the claim stated last is the strongest of those with the same weight."""
        return (self.weight, self.last_stated, self.fact)


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """The rules by which one of two facts wins, and a verdict takes effect or waits for a person."""

    strategy: ConflictStrategy = "trust"
    auto_threshold: float = 0.85
    review_threshold: float = 0.5
    withhold: bool = False
    """Whether a fact in review is not believed until a person decides; else both are, and disputed."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the policy that *settings* ask for."""
        return cls(
            settings.conflict_strategy,
            settings.auto_threshold,
            settings.review_threshold,
            settings.disputes == "withhold",
        )

    # What a verdict does

    def is_noted(self, confidence: float) -> bool:
        """Return whether a verdict of that *confidence* is kept at all, if only to be reviewed."""
        return confidence >= self.review_threshold

    def takes_effect(self, confidence: float) -> bool:
        """Return whether a verdict of that *confidence* takes effect without a person."""
        return confidence >= self.auto_threshold

    def rule(self, kind: VerdictKind, confidence: float) -> Ruling:
        """Return the ruling of a verdict that was just found."""
        return to_ruling(kind) if self.takes_effect(confidence) else "waiting"

    def excludes(self, new: Relation, existing: Relation) -> bool:
        """Return whether both cannot hold at once whatever the model says, as the predicate is declared single-valued.

        The later one then supersedes the other.
        """
        same = (new.subject, new.predicate) == (existing.subject, existing.predicate)
        return same and new.declared and bool(new.single_valued) and new.objects.isdisjoint(existing.objects)

    def may_contradict(self, kind: VerdictKind, new: Relation, existing: Relation) -> bool:
        """Return whether a verdict of that *kind* is one that ends or refutes a fact.

        Of a predicate that is declared to have several values, one value does not supersede another.
        """
        is_plural = new.declared and new.single_valued is False and new.predicate == existing.predicate
        return kind in CONTRADICTIONS and not (kind == "supersedes" and is_plural)

    # Who wins

    def weigh(self, statement: Statement | Fact) -> Weight:
        """Return how much *statement* counts: one that counts less takes no time from a rival that counts more."""
        match self.strategy:
            case "confidence":
                return statement.confidence
            case "trust" | "incumbent":
                return statement.trust
            case "recency" | "model":
                return 0.0

    def may_change(self, statement: Statement, target: Statement) -> bool:
        """Return whether *statement* may correct or end what *target* says of the same fact."""
        return self.weigh(statement) >= self.weigh(target)

    def claim(self, fact: str, statements: Sequence[Statement]) -> Claim:
        """Return the strength of *fact* by its *statements*."""
        orders = [statement.order for statement in statements]
        return Claim(fact, max(map(self.weigh, statements)), min(orders), max(orders))

    def beats(self, claim: Claim, rival: Claim, preferred: Collection[str | None]) -> bool:
        """Return whether *claim* wins a conflict with *rival*, given which of the two the model *preferred*."""
        match self.strategy:
            case "model" if (claim.fact in preferred) != (rival.fact in preferred):
                return claim.fact in preferred
            case "incumbent" if claim.weight == rival.weight:
                return (claim.first_stated, claim.fact) < (rival.first_stated, rival.fact)
            case "recency" | "confidence" | "trust" | "model" | "incumbent":
                return claim.order > rival.order

    def expect_winner(self, later: Fact, earlier: Fact, preferred: str | None) -> str | None:
        """Return which of two facts would win, as far as that is known without all their statements.

        They are in the order in which they were first stated; *preferred* is the one that the model prefers.
        """
        if self.strategy == "model":
            return preferred
        lead = self.weigh(later) - self.weigh(earlier)
        wins = lead > 0 or (lead == 0 and self.strategy != "incumbent")
        return later.id if wins else earlier.id


StatementsByFact = Mapping[str, Sequence[Statement]]


def to_ruling(kind: VerdictKind) -> Ruling:
    """Return the ruling of a verdict of that *kind* that a person gives or accepts."""
    if kind == "supersedes" or kind == "conflicts":  # noqa: PLR1714 - so narrows the type
        return kind
    return "both"


def is_reopened(verdict: Verdict, stated: Collection[str], arrived_at: int) -> bool:
    """Return whether *verdict* waits for review again as what arrived at that time has the *stated* facts.

    What had arrived before it was refused, and is read again, tells nothing new. A retraction never waits.
    """
    if verdict.ruling != "refused" or verdict.is_retraction or verdict.refused not in stated:
        return False
    return verdict.refused_at is None or arrived_at > verdict.refused_at


def facts_in_review(
    verdicts: Collection[Verdict], by_fact: StatementsByFact, to_admit: Collection[str] = ()
) -> set[str]:
    """Return the facts in review: they are disputed, or not believed until then, see `ConflictPolicy.withhold`.

    An unsure verdict makes that one of its facts wait that was first stated later, unless the other waits or was
    refused itself. Those *to_admit* wait whatever the other.
    """
    refused = find_refused(verdicts)
    unsure = rivals_by(verdicts, "waiting")
    waiting, settled = set(to_admit), set[str]()
    candidates = (unsure.keys() & by_fact.keys()) - refused - waiting
    for fact in sorted(candidates, key=lambda fact: _first_stated(fact, by_fact)):
        (waiting if unsure[fact] & settled else settled).add(fact)
    return waiting


def facts_to_admit(verdicts: Iterable[Verdict]) -> set[str]:
    """Return the facts that wait for admission: they are not believed until then, whatever the policy."""
    return {verdict.new for verdict in verdicts if verdict.is_admission}


def fact_in_question(verdict: Verdict, by_fact: StatementsByFact) -> str:
    """Return the fact about which a person decides: the one of the two that was first stated later."""
    return max(verdict.new, verdict.existing, key=lambda fact: _first_stated(fact, by_fact))


def find_refused(verdicts: Iterable[Verdict]) -> set[str | None]:
    """Return the facts that a person rejected."""
    return {verdict.refused for verdict in verdicts if verdict.ruling == "refused"}


def rivals_by(verdicts: Iterable[Verdict], ruling: Ruling) -> defaultdict[str, set[str]]:
    """Return, for each fact, those that verdicts with that *ruling* link it to."""
    rivals: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        if verdict.ruling == ruling:
            rivals[verdict.new].add(verdict.existing)
            rivals[verdict.existing].add(verdict.new)
    return rivals


def _first_stated(fact: str, by_fact: StatementsByFact) -> tuple[Order, str]:
    return min((statement.order, fact) for statement in by_fact[fact])
