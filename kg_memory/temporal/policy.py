"""The policy on contradictions: what the verdict on two facts causes, and which of two contradicting facts wins.

A model, an application or a person gives a *verdict*: how two facts relate ("supersedes", "conflicts", ...), with a
confidence. The policy turns it into a *ruling*, the effect of the verdict on the stored beliefs. It also decides
between facts that cannot both be true. All such rules of the package are here. `ConflictPolicy.weigh` returns the
weight of a statement; only a statement of at least the same weight may correct, end or succeed it.
`ConflictPolicy.beats` compares two facts that conflict. To add a strategy, add its name to
`kg_memory.models.graph.ConflictStrategy`, and a case to `weigh`, `beats` and `expect_winner`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, cast

from kg_memory.models.graph import OUTCOMES, ConflictStrategy, Fact, PlanOutcome, Ruling, VerdictKind
from kg_memory.temporal.statements import Order, Statement

if TYPE_CHECKING:
    from kg_memory.settings import Settings

Contradiction = Literal["supersedes", "conflicts", PlanOutcome]
CONTRADICTIONS: tuple[VerdictKind, ...] = ("supersedes", "conflicts", *OUTCOMES)
"""The verdicts after which two facts do not hold at the same time."""
COMPATIBLE: tuple[VerdictKind, ...] = ("complements", "temporary", "unrelated")
"""The verdicts after which both facts hold."""
Weight = float
"""How much a statement counts; a greater weight wins."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The relation of two facts, *new* and *existing*, and its effect, the *ruling*.

    - *new*, *existing*: the ids of the facts. Both are the same if the verdict is about a single fact.
    - *ruling*: "supersedes" (*new* ended *existing*), "conflicts" (one of them is not believed), "both" (both are),
      "waiting" (a person must decide), "refused" (a person rejected a fact), or the outcome of a plan.
    - *kind*: the ruling that a "waiting" verdict gets once a person accepts it.
    - *preferred*: the id of the fact that the model believes.
    - *refused*: the id of the fact that a person rejected, at *refused_at* (microseconds since the epoch).
    """

    new: str
    existing: str
    ruling: Ruling
    preferred: str | None = None
    refused: str | None = None
    kind: Contradiction = "supersedes"
    refused_at: int | None = None

    @property
    def plan(self) -> str:
        """The id of the planned fact, if `ruling` is an outcome of a plan, such as "fulfilled".

        It is the one of the two facts that is not `preferred`.
        """
        return self.existing if self.preferred == self.new else self.new

    @property
    def is_retraction(self) -> bool:
        """Whether a person retracted the fact and has not undone the retraction."""
        return self.new == self.existing and self.ruling == "refused" and self.refused_at is not None

    @property
    def is_admission(self) -> bool:
        """Whether the verdict is a question to a person about a single new fact: may it be believed?"""
        return self.new == self.existing and self.ruling == "waiting"

    def retracts(self, statement: Statement) -> bool:
        """Return whether a person retracted the fact of *statement* after the statement had arrived."""
        is_about = self.is_retraction and self.new == statement.fact
        return is_about and self.refused_at is not None and statement.arrived_at <= self.refused_at


@dataclass(frozen=True, slots=True)
class Relation:
    """The subject, predicate and objects of a fact, to decide whether it can contradict another fact.

    *single_valued*: whether a subject has one object at a time, as with LIVES_IN; None if unknown. *declared*: whether
    a person or the settings said so.
    """

    subject: str
    predicate: str
    objects: frozenset[str]
    single_valued: bool | None = None
    declared: bool = False


@dataclass(frozen=True, slots=True)
class FactStrength:
    """How strong a fact is in a conflict: the greatest weight of its statements, and when they were made.

    *first_stated* and *last_stated*: sort keys like `Statement.order`. *fact*: the id of the fact.
    """

    fact: str
    weight: Weight
    first_stated: Order
    last_stated: Order

    @property
    def order(self) -> tuple[Weight, Order, str]:
        """A sort key: weaker facts come first, and of equally strong facts the one stated earlier."""
        return (self.weight, self.last_stated, self.fact)


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """The rules that decide which of two contradicting facts wins, and whether a verdict needs a person's review.

    A verdict (how two facts relate) with a confidence of at least *auto_threshold* takes effect; with at least
    *review_threshold* it waits for review; else it is dropped. *strategy* is the criterion for conflicts: ``trust``,
    ``confidence``, ``recency``, ``incumbent`` (the fact stated first wins) or ``model`` (the model's choice).
    """

    strategy: ConflictStrategy = "trust"
    auto_threshold: float = 0.85
    review_threshold: float = 0.5
    withhold: bool = False
    """Whether a fact in review is not believed until a person decides; else both facts are believed, as disputed."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the policy for the `conflict_strategy`, the thresholds and the `disputes` of *settings*."""
        withhold = settings.disputes == "withhold"
        return cls(settings.conflict_strategy, settings.auto_threshold, settings.review_threshold, withhold)

    # The effect of a verdict
    def takes_effect(self, confidence: float) -> bool:
        """Return whether a verdict (how two facts relate) takes effect without review; *confidence* is 0 to 1."""
        return confidence >= self.auto_threshold

    def rule(self, kind: VerdictKind, confidence: float) -> Ruling:
        """Return the effect of a verdict of *kind* on two facts, such as "supersedes".

        If *confidence* (0 to 1) is too low, the effect is "waiting": a person must review the verdict.
        """
        return to_ruling(kind) if self.takes_effect(confidence) else "waiting"

    def excludes(self, new: Relation, existing: Relation) -> bool:
        """Return whether the facts *new* and *existing* cannot both hold: Ann LIVES_IN Oslo, and Ann LIVES_IN Rome.

        True if they have the same subject, different objects, and the same predicate, declared as single-valued. Then
        the later fact supersedes the earlier one, whatever the model answers.
        """
        same = (new.subject, new.predicate) == (existing.subject, existing.predicate)
        return same and new.declared and bool(new.single_valued) and new.objects.isdisjoint(existing.objects)

    def may_contradict(self, kind: VerdictKind, new: Relation, existing: Relation) -> bool:
        """Return whether a relation of two facts, *kind*, such as "supersedes", can end or disprove one of them.

        For example, "supersedes" cannot if the predicate is declared to have several values at a time.
        """
        is_plural = new.declared and new.single_valued is False and new.predicate == existing.predicate
        return kind in CONTRADICTIONS and not (kind == "supersedes" and is_plural)

    # The winner of a conflict
    def weigh(self, statement: Statement | Fact) -> Weight:
        """Return the weight of *statement* in conflicts: its trust, its confidence or 0, depending on the strategy."""
        match self.strategy:
            case "confidence":
                return statement.confidence
            case "trust" | "incumbent":
                return statement.trust
            case "recency" | "model":
                return 0.0

    def may_change(self, statement: Statement, target: Statement) -> bool:
        """Return whether *statement* may correct or end *target*: its weight must be at least that of *target*."""
        return self.weigh(statement) >= self.weigh(target)

    def claim(self, fact: str, statements: Sequence[Statement]) -> FactStrength:
        """Return how strong the fact with the id *fact* is in conflicts, computed from all its *statements*."""
        orders = [statement.order for statement in statements]
        return FactStrength(fact, max(map(self.weigh, statements)), min(orders), max(orders))

    def beats(self, claim: FactStrength, rival: FactStrength, preferred: Collection[str | None]) -> bool:
        """Return whether the fact with the strength *claim* wins a conflict with the fact with the strength *rival*.

        *preferred* are the ids of the facts that the model believes. Only the strategy "model" uses them.
        """
        match self.strategy:
            case "model" if (claim.fact in preferred) != (rival.fact in preferred):
                return claim.fact in preferred
            case "incumbent" if claim.weight == rival.weight:
                return (claim.first_stated, claim.fact) < (rival.first_stated, rival.fact)
            case "recency" | "confidence" | "trust" | "model" | "incumbent":
                return claim.order > rival.order

    def expect_winner(self, later: Fact, earlier: Fact, preferred: str | None) -> str | None:
        """Return the id of the fact that will probably win a conflict, guessed without reading all statements.

        *later* was first stated after *earlier*. *preferred*: the id of the fact that the model believes, or None.
        """
        if self.strategy == "model":
            return preferred
        lead = self.weigh(later) - self.weigh(earlier)
        return later.id if lead > 0 or (lead == 0 and self.strategy != "incumbent") else earlier.id


StatementsByFact = Mapping[str, Sequence[Statement]]


def to_ruling(kind: VerdictKind) -> Ruling:
    """Return the effect of an accepted relation *kind*: *kind* if it ends or refutes a fact, else "both"."""
    return cast("Ruling", kind) if kind in CONTRADICTIONS else "both"


def is_reopened(verdict: Verdict, stated: Collection[str], arrived_at: int) -> bool:
    """Return whether a person must decide *verdict* again, because a message states the fact again that was rejected.

    *stated*: ids of the facts that the message states. *arrived_at*: when it was received, in microseconds since the
    epoch. A retraction is never reviewed again.
    """
    if verdict.ruling != "refused" or verdict.is_retraction or verdict.refused not in stated:
        return False
    return verdict.refused_at is None or arrived_at > verdict.refused_at


def facts_in_review(
    verdicts: Collection[Verdict], by_fact: StatementsByFact, to_admit: Collection[str] = ()
) -> set[str]:
    """Return the ids of the facts that a person must accept or reject, because one of *verdicts* waits for review.

    A verdict says how two facts relate. Of its two facts, the one that was stated later is in review; but if the other
    one is in review because of another verdict, this verdict puts none in review. *by_fact*: the statements of each
    fact, by its id. *to_admit*: ids of facts that are in review anyway.
    """
    refused = find_refused(verdicts)
    unsure = rivals_by(verdicts, "waiting")
    waiting, believed = set(to_admit), set[str]()
    candidates = (unsure.keys() & by_fact.keys()) - refused - waiting
    for fact in sorted(candidates, key=lambda fact: _first_stated_key(fact, by_fact)):
        (waiting if unsure[fact] & believed else believed).add(fact)
    return waiting


def facts_to_admit(verdicts: Iterable[Verdict]) -> set[str]:
    """Return the ids of the new facts that the memory does not believe until a person admits them."""
    return {verdict.new for verdict in verdicts if verdict.is_admission}


def fact_in_question(verdict: Verdict, by_fact: StatementsByFact) -> str:
    """Return the id of the fact that a review of *verdict* accepts or rejects: of its two facts, the later one.

    *by_fact*: the statements of each fact, by its id; the later fact was first stated later.
    """
    return max(verdict.new, verdict.existing, key=lambda fact: _first_stated_key(fact, by_fact))


def find_refused(verdicts: Iterable[Verdict]) -> set[str | None]:
    """Return the ids of the facts that a person rejected."""
    return {verdict.refused for verdict in verdicts if verdict.ruling == "refused"}


def rivals_by(verdicts: Iterable[Verdict], *rulings: Ruling) -> defaultdict[str, set[str]]:
    """Return the facts related to each fact by verdicts with one of *rulings*: ``{"f1": {"f2"}, "f2": {"f1"}}``.

    A ruling is the effect of a verdict on two facts, such as "supersedes".
    """
    rivals: defaultdict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        if verdict.ruling in rulings:
            rivals[verdict.new].add(verdict.existing)
            rivals[verdict.existing].add(verdict.new)
    return rivals


def _first_stated_key(fact: str, by_fact: StatementsByFact) -> tuple[Order, str]:
    return min((statement.order, fact) for statement in by_fact[fact])
