"""The policy on contradictions: what a verdict does, and which of two contradicting facts wins.

A model, a declaration or a person gives a *verdict* about two facts: how they relate, and with what confidence. The
policy turns it into a *ruling*, the effect of the verdict on beliefs, and decides between facts that cannot both be
true. All such rules of the package are here. `ConflictPolicy.weigh` says how much a statement counts in conflicts,
successions and corrections, where it gives way only to a statement that counts at least as much. `ConflictPolicy.beats`
compares two facts that conflict. To add a strategy, add its name to `kg_memory.models.graph.ConflictStrategy`, and a
case to `weigh`, `beats` and `expect_winner`.
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
"""The verdicts after which both facts hold."""
Weight = float
"""How much a statement counts; a greater weight wins."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on how the facts *new* and *existing* (ids) relate, and its effect, the *ruling*.

    If both ids are the same, the verdict is about that fact alone. *preferred* is the fact that the model believes.
    *refused* is the fact that a person rejected, at *refused_at* (microseconds since the epoch). While the ruling is
    "waiting" for review, *kind* is the ruling after acceptance.
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
        """Whether a person retracted the fact and has not undone the retraction."""
        return self.new == self.existing and self.ruling == "refused" and self.refused_at is not None

    @property
    def is_admission(self) -> bool:
        """Whether the verdict is about one new fact, which is not believed until a person admits it."""
        return self.new == self.existing and self.ruling == "waiting"

    def retracts(self, statement: Statement) -> bool:
        """Return whether this verdict retracts the fact of *statement*, so that the statement does not count.

        A statement that arrived after the retraction is not affected.
        """
        is_about = self.is_retraction and self.new == statement.fact
        return is_about and self.refused_at is not None and statement.arrived_at <= self.refused_at


@dataclass(frozen=True, slots=True)
class Relation:
    """The subject, predicate and objects of a fact, to find out whether it can contradict another fact.

    *single_valued* says whether a subject has one object of this predicate at a time, as with LIVES_IN; None if
    unknown. *declared* means that a person or the settings said so; otherwise it is a guess.
    """

    subject: str
    predicate: str
    objects: frozenset[str]
    single_valued: bool | None = None
    declared: bool = False


@dataclass(frozen=True, slots=True)
class FactStrength:
    """How strong a fact is in a conflict with another: its greatest weight, and when it was first and last stated.

    *first_stated* and *last_stated* have the form of `Statement.order`. The id of the fact breaks ties.
    """

    fact: str
    weight: Weight
    first_stated: Order
    last_stated: Order

    @property
    def order(self) -> tuple[Weight, Order, str]:
        """A sort key: claims of greater weight are greater, and of equal weight the ones that were stated later."""
        return (self.weight, self.last_stated, self.fact)


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """The rules that decide which of two contradicting facts wins, and whether a verdict waits for a person.

    A verdict with a confidence of at least *auto_threshold* takes effect, one of at least *review_threshold* waits for
    review. *strategy* says what counts: ``trust``, ``confidence``, ``recency``, ``incumbent`` (first stated) or
    ``model``.
    """

    strategy: ConflictStrategy = "trust"
    auto_threshold: float = 0.85
    review_threshold: float = 0.5
    withhold: bool = False
    """Whether a fact in review is not believed until a person decides; else both facts are believed, as disputed."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the policy with the strategy and thresholds of *settings*."""
        return cls(
            settings.conflict_strategy,
            settings.auto_threshold,
            settings.review_threshold,
            settings.disputes == "withhold",
        )

    # The effect of a verdict
    def is_noted(self, confidence: float) -> bool:
        """Return whether a verdict with *confidence* (0 to 1) is stored at all, either to take effect or for review."""
        return confidence >= self.review_threshold

    def takes_effect(self, confidence: float) -> bool:
        """Return whether a verdict with *confidence* (0 to 1) takes effect without a decision by a person."""
        return confidence >= self.auto_threshold

    def rule(self, kind: VerdictKind, confidence: float) -> Ruling:
        """Return the effect of a new verdict of *kind*; "waiting" if its *confidence* is too low to take effect."""
        return to_ruling(kind) if self.takes_effect(confidence) else "waiting"

    def excludes(self, new: Relation, existing: Relation) -> bool:
        """Return whether *new* and *existing* cannot both hold, as with Ann LIVES_IN Oslo and Ann LIVES_IN Rome.

        They have the same subject, different objects, and the same predicate, which is declared single-valued. The
        later fact then supersedes the earlier one, whatever the model says.
        """
        same = (new.subject, new.predicate) == (existing.subject, existing.predicate)
        return same and new.declared and bool(new.single_valued) and new.objects.isdisjoint(existing.objects)

    def may_contradict(self, kind: VerdictKind, new: Relation, existing: Relation) -> bool:
        """Return whether a verdict of *kind* lets one of the facts *new* and *existing* end or refute the other.

        If their predicate is declared to have several values at a time, one value does not supersede another.
        """
        is_plural = new.declared and new.single_valued is False and new.predicate == existing.predicate
        return kind in CONTRADICTIONS and not (kind == "supersedes" and is_plural)

    # The winner of a conflict
    def weigh(self, statement: Statement | Fact) -> Weight:
        """Return the weight of *statement*: by the strategy, its trust, its confidence, or 0 for every statement.

        A statement cannot shorten the period of a contradicting statement of greater weight.
        """
        match self.strategy:
            case "confidence":
                return statement.confidence
            case "trust" | "incumbent":
                return statement.trust
            case "recency" | "model":
                return 0.0

    def may_change(self, statement: Statement, target: Statement) -> bool:
        """Return whether *statement* has enough weight to correct or end *target*, a statement of the same fact."""
        return self.weigh(statement) >= self.weigh(target)

    def claim(self, fact: str, statements: Sequence[Statement]) -> FactStrength:
        """Return how strong the fact with the id *fact* is in conflicts, computed from its *statements*."""
        orders = [statement.order for statement in statements]
        return FactStrength(fact, max(map(self.weigh, statements)), min(orders), max(orders))

    def beats(self, claim: FactStrength, rival: FactStrength, preferred: Collection[str | None]) -> bool:
        """Return whether the fact of *claim* wins a conflict with the fact of *rival*, by the strategy.

        *preferred* are the ids of the facts that the model believes; only the strategy "model" uses them.
        """
        match self.strategy:
            case "model" if (claim.fact in preferred) != (rival.fact in preferred):
                return claim.fact in preferred
            case "incumbent" if claim.weight == rival.weight:
                return (claim.first_stated, claim.fact) < (rival.first_stated, rival.fact)
            case "recency" | "confidence" | "trust" | "model" | "incumbent":
                return claim.order > rival.order

    def expect_winner(self, later: Fact, earlier: Fact, preferred: str | None) -> str | None:
        """Return the id of the fact that would probably win a conflict, without reading all statements of both.

        *later* was first stated after *earlier*. *preferred* is the id of the fact that the model believes; the
        strategy "model" returns it.
        """
        if self.strategy == "model":
            return preferred
        lead = self.weigh(later) - self.weigh(earlier)
        wins = lead > 0 or (lead == 0 and self.strategy != "incumbent")
        return later.id if wins else earlier.id


StatementsByFact = Mapping[str, Sequence[Statement]]


def to_ruling(kind: VerdictKind) -> Ruling:
    """Return the effect of an accepted verdict of *kind*: "supersedes", "conflicts", or "both" if both facts hold."""
    if kind == "supersedes" or kind == "conflicts":  # noqa: PLR1714 - so narrows the type
        return kind
    return "both"


def is_reopened(verdict: Verdict, stated: Collection[str], arrived_at: int) -> bool:
    """Return whether a refused *verdict* must be reviewed again, because an episode states the refused fact again.

    *stated* are the ids of the facts that the episode states, *arrived_at* is when it arrived, in microseconds. An
    episode that arrived before the refusal does not count. A retraction is never reopened.
    """
    if verdict.ruling != "refused" or verdict.is_retraction or verdict.refused not in stated:
        return False
    return verdict.refused_at is None or arrived_at > verdict.refused_at


def facts_in_review(
    verdicts: Collection[Verdict], by_fact: StatementsByFact, to_admit: Collection[str] = ()
) -> set[str]:
    """Return the ids of the facts that wait for review by a person.

    Of two facts that a waiting verdict links, usually the one first stated later waits. Facts in *to_admit* (ids)
    always wait. *by_fact* has the statements by fact id.
    """
    refused = find_refused(verdicts)
    unsure = rivals_by(verdicts, "waiting")
    waiting, settled = set(to_admit), set[str]()
    candidates = (unsure.keys() & by_fact.keys()) - refused - waiting
    for fact in sorted(candidates, key=lambda fact: _first_stated(fact, by_fact)):
        (waiting if unsure[fact] & settled else settled).add(fact)
    return waiting


def facts_to_admit(verdicts: Iterable[Verdict]) -> set[str]:
    """Return the ids of the facts that are not believed until a person admits them."""
    return {verdict.new for verdict in verdicts if verdict.is_admission}


def fact_in_question(verdict: Verdict, by_fact: StatementsByFact) -> str:
    """Return the id of the fact in *verdict* that a person accepts or rejects: the one that was first stated later.

    *by_fact* has the statements by fact id.
    """
    return max(verdict.new, verdict.existing, key=lambda fact: _first_stated(fact, by_fact))


def find_refused(verdicts: Iterable[Verdict]) -> set[str | None]:
    """Return the ids of the facts that a person rejected in *verdicts*."""
    return {verdict.refused for verdict in verdicts if verdict.ruling == "refused"}


def rivals_by(verdicts: Iterable[Verdict], ruling: Ruling) -> defaultdict[str, set[str]]:
    """Return the facts that verdicts with this *ruling* link to each fact: ``{fact id: {ids of other facts}}``.

    Each link is listed under both of its facts.
    """
    rivals: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        if verdict.ruling == ruling:
            rivals[verdict.new].add(verdict.existing)
            rivals[verdict.existing].add(verdict.new)
    return rivals


def _first_stated(fact: str, by_fact: StatementsByFact) -> tuple[Order, str]:
    """Return a sort key that puts facts in the order in which they were first stated.

    *fact* is a fact id, *by_fact* has the statements by fact id.
    """
    return min((statement.order, fact) for statement in by_fact[fact])
