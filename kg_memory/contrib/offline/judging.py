"""Finds by rules how two facts relate: whether they say the same, or one ends or contradicts the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator

from kg_memory.contrib.offline.clauses import NEVER, PASSING, passes
from kg_memory.contrib.offline.facts import name_key
from kg_memory.contrib.offline.lexicon import words_without_speaker
from kg_memory.contrib.offline.records import has_one_value
from kg_memory.contrib.offline.statements import FUNCTIONAL, NOT, WORDS
from kg_memory.temporal.interval import parse_instant, parse_period
from kg_memory.text import predicates

SURE, OPEN, UNSURE = 0.95, 0.7, 0.2
"""Confidences of rules; a verdict with `OPEN` is put up for review by a person."""

_OPPOSITES = {frozenset((like, dislike)) for like in ("LIKES", "LOVES", "PREFERS") for dislike in ("DISLIKES", "HATES")}
_RETURNS = re.compile(r"\b(?:again|back|rejoined|returned)\b|再次|又|重新|回", re.IGNORECASE)
_HAS_NOT = re.compile(r"[,;—–-]\s?(?:and )?not\b|而?不是|并非", re.IGNORECASE)
_MOVES = re.compile(r"\b(?:moved|relocated|switched|instead|emigrated)\b|搬|换|跳槽", re.IGNORECASE)
_NO = re.compile(r"(?:no|nope)[,.!]|不[，,。]|不是[，,]", re.IGNORECASE)
_GENERIC = frozenset("SAYS_ABOUT RELATES_TO MENTIONS THINKS PLANS HELPS MADE WORKS_ON RECEIVED NEVER_DID".split())
"""Predicates that two facts can share although they state different things."""
_EVENTS = frozenset({"VISITED", "ATTENDED", "MET", "BOUGHT", "READ", "WATCHED", "LOST", "SOLD"})
_SAME_WORDS = 0.75
"""The share of common words from which two sentences say the same."""
_NEGATION = re.compile(r"\b(?:not|never|no longer|without|cannot|nobody|nothing)\b|n['’]t\b|[不没未]", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")


def _first_instant(text: str | None) -> str | None:
    period = parse_period(text)
    return period.start.isoformat() if period and period.start else None


Moment = Annotated[str | None, BeforeValidator(_first_instant)]


class JudgedFact(BaseModel, frozen=True):
    """A fact as the prompt `judge` shows it; its times are ISO 8601 texts.

    `quote` is the passage of the message that states the fact. `one_at_a_time`: the predicate has only one value at a
    time, as an address does.
    """

    subject: str
    predicate: str
    objects: tuple[str, ...]
    sentence: str
    said_at: str | None = None
    valid_at: Moment = None
    invalid_at: Moment = None
    one_at_a_time: Annotated[bool, BeforeValidator(bool)] = False
    quote: str | None = None

    @property
    def words(self) -> str:
        """The words that state the fact: its quote or, without a quote, its sentence without the speaker's name."""
        return self.quote or re.split(": |：", self.sentence, maxsplit=1)[-1]

    @property
    def object_keys(self) -> set[str]:
        """The names of the objects, normalised by `name_key`."""
        return {name_key(name) for name in self.objects}


class Judgement(NamedTuple):
    """The relation of two facts, such as "duplicate", "supersedes" or "conflicts"."""

    verdict: str
    confidence: float
    holds: str
    reason: str


def judge_facts(new: JudgedFact, existing: JudgedFact) -> Judgement:
    """Return the relation of the facts *new* and *existing*, such as "supersedes"; "unrelated" if no rule applies."""
    if new.subject == existing.subject:
        pair = _Pair.of(new, existing)
        for rule in _RULES:
            judgement = rule(pair)
            if judgement is not None:
                return judgement
    return Judgement("unrelated", UNSURE, "new", "The facts are unrelated.")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two facts about one subject: `existing` was stored before `new`, and `earlier` stated before `later`."""

    new: JudgedFact
    existing: JudgedFact
    later: JudgedFact
    earlier: JudgedFact

    @classmethod
    def of(cls, new: JudgedFact, existing: JudgedFact) -> _Pair:
        """Return the pair of two facts; *new* is the later one, unless the times of the statements say otherwise."""
        ours, theirs = parse_instant(new.said_at), parse_instant(existing.said_at)
        swapped = ours is not None and theirs is not None and theirs > ours
        return cls(new, existing, existing, new) if swapped else cls(new, existing, new, existing)

    @property
    def alike(self) -> bool:
        """Whether both facts have the same predicate."""
        return self.new.predicate == self.existing.predicate

    @property
    def shared_objects(self) -> set[str]:
        """The normalised names of the objects that both facts have, such as {"oslo"}."""
        return self.new.object_keys & self.existing.object_keys

    @property
    def ended(self) -> bool:
        """Whether at least one of the facts has an end."""
        return bool(self.new.invalid_at or self.existing.invalid_at)

    @property
    def one_at_a_time(self) -> bool:
        """Whether both facts have the same predicate, and it has only one value at a time, as an address does."""
        predicate = self.new.predicate
        fields = has_one_value(predicate) and _is_field(self.new) and _is_field(self.existing)
        return self.alike and (fields or predicate in FUNCTIONAL or self.existing.one_at_a_time)

    def later_wins(self, verdict: str, reason: str, confidence: float = SURE) -> Judgement:
        """Return a judgement with this *verdict* (how the facts relate), in which the later fact prevails."""
        return Judgement(verdict, confidence, "new" if self.later is self.new else "known", reason)

    def dispute(self, reason: str) -> Judgement:
        """Return the judgement "conflicts", in which the later fact prevails."""
        return self.later_wins("conflicts", reason, SURE if _NO.match(self.later.words) else OPEN)


def _judge_dates(pair: _Pair) -> Judgement | None:
    """Judge facts that differ only in dates: in conflict if one corrects the other, or both date a birth or death."""
    if not says_the_same(pair.new, pair.existing):
        return None
    for new, existing in ((pair.new.valid_at, pair.existing.valid_at), (pair.new.invalid_at, pair.existing.invalid_at)):
        stated = new and existing and pair.later.said_at not in (new, existing)
        if stated and new != existing and _corrects_date(pair.later):
            return pair.later_wins("conflicts", "The later fact corrects the date.")
        if new and existing and new[:4] != existing[:4] and _happens_once(pair):
            return pair.dispute("It happens once, and the facts give different years.")
    return None


def _judge_opposites(pair: _Pair) -> Judgement | None:
    opposite = frozenset((pair.new.predicate, pair.existing.predicate)) in _OPPOSITES
    if not opposite or not pair.shared_objects or pair.ended:
        return None
    return pair.later_wins("supersedes", "The preference has changed.")


def _judge_denial(pair: _Pair) -> Judgement | None:
    """Judge a fact and its negation: a later "never" contradicts the fact; else the later normally ends the earlier."""
    for denial, fact in ((pair.new, pair.existing), (pair.existing, pair.new)):
        is_never = denial.predicate == NEVER + fact.predicate
        is_not_now = denial.predicate == NOT + fact.predicate and not pair.ended
        if not pair.shared_objects or not (is_never or is_not_now):
            continue
        if (is_never and denial is pair.later) or (fact is pair.later and _began_before(fact, denial)):
            return pair.later_wins("conflicts", "One fact denies the other.")
        return pair.later_wins("supersedes", "A fact and its negation cannot both hold, and it has changed.")
    return None


def _judge_repeat(pair: _Pair) -> Judgement | None:
    same = says_the_same(pair.new, pair.existing)
    return Judgement("duplicate", SURE, "new", "Both facts say the same.") if same else None


def _judge_correction(pair: _Pair) -> Judgement | None:
    if not pair.alike or pair.shared_objects:
        return None
    words = pair.later.words
    # "Nordlys, not Acme" is a correction, "Nordlys now, not Acme" a change.
    names_it = any(_denies_name(words, name) for name in pair.earlier.objects)
    if _is_correction(pair.later):
        # "I live in Lund, not in Uppsala" corrects Uppsala, and no home before it.
        corrects = names_it or (pair.one_at_a_time and _HAS_NOT.search(words) is None)
    else:
        corrects = names_it and pair.one_at_a_time and WORDS["changes"].search(words) is None
    return pair.later_wins("conflicts", "The later fact corrects the earlier one.") if corrects else None


def _judge_addition(pair: _Pair) -> Judgement | None:
    if not pair.one_at_a_time or pair.shared_objects or not (_is_addition(pair.new) or _is_addition(pair.existing)):
        return None
    return Judgement("complements", SURE, "new", "One value is stated as an addition to the other.")


def _judge_temporary(pair: _Pair) -> Judgement | None:
    ours, theirs = pair.new.predicate, pair.existing.predicate
    if pair.shared_objects or not (PASSING.get(ours) == theirs or PASSING.get(theirs) == ours or pair.one_at_a_time):
        return None
    new_passes, existing_passes = _is_temporary(pair.new), _is_temporary(pair.existing)
    if new_passes and not existing_passes:
        return Judgement("temporary", SURE, "new", "The new fact is a temporary state beside the lasting one.")
    if existing_passes and not new_passes:
        return Judgement("complements", SURE, "new", "The existing fact is a temporary state.")
    return None


def _judge_replacement(pair: _Pair) -> Judgement | None:
    if not pair.one_at_a_time or pair.shared_objects:
        return None
    if _happens_once(pair):
        return pair.dispute("It happens once, and the facts give different values.")
    return pair.later_wins("supersedes", "Only one value holds at a time, and it has changed.")


_RULES: tuple[Callable[[_Pair], Judgement | None], ...] = (
    _judge_dates,
    _judge_opposites,
    _judge_denial,
    _judge_repeat,
    _judge_correction,
    _judge_addition,
    _judge_temporary,
    _judge_replacement,
)
"""The rules in order; a rule that does not apply returns None, and the first one that applies decides."""


def _is_field(fact: JudgedFact) -> bool:
    """Return whether the sentence of *fact* has the form of a JSON field with one value: "Order 17: item is Chair"."""
    return fact.sentence.startswith(f"{fact.subject}: ") and " is " in fact.sentence


def _began_before(fact: JudgedFact, denial: JudgedFact) -> bool:
    began, denied = parse_instant(fact.valid_at), parse_instant(denial.said_at)
    return began is not None and denied is not None and began < denied


def _happens_once(pair: _Pair) -> bool:
    rule = predicates.canonical_predicate(pair.new.predicate)
    once = rule is not None and rule.family in ("birth", "death")
    return pair.alike and (once or all(re.search(r"\bborn\b|出生", fact.words) for fact in (pair.new, pair.existing)))


def _is_correction(fact: JudgedFact) -> bool:
    words = fact.words
    corrects = WORDS["corrects"].search(words) is not None
    return corrects and (WORDS["changes"].search(words) is None or _HAS_NOT.search(words) is not None)


def _corrects_date(fact: JudgedFact) -> bool:
    corrects = WORDS["corrects"].search(fact.words) is not None and _RETURNS.search(fact.words) is None
    return corrects or _HAS_NOT.search(fact.words) is not None


def _denies_name(words: str, name: str) -> bool:
    plain = re.escape(name)
    pattern = rf"(?:\bnot|\bnever|而?不是|并非|没有?)\s?(?:to |in |at |for |a |an |the |从|在|住在|搬到)*{plain}(?!\w)"
    return re.search(pattern, words, re.IGNORECASE) is not None


def _is_addition(fact: JudgedFact) -> bool:
    return WORDS["too"].search(fact.words) is not None and _MOVES.search(fact.words) is None


def _is_temporary(fact: JudgedFact) -> bool:
    return fact.predicate.startswith(("STAYS_IN", "TEMPORARILY_")) or passes(fact.words)


def says_the_same(new: JudgedFact, existing: JudgedFact) -> bool:
    """Return whether two facts mean the same, by their subjects, objects, predicates, dates and words."""
    if new.subject != existing.subject or set(new.objects) != set(existing.objects):
        return False
    alike = new.predicate == existing.predicate
    if bool(new.invalid_at) != bool(existing.invalid_at) and not alike:
        return False
    if alike and new.predicate not in _GENERIC and new.predicate not in _EVENTS:
        return True
    other_day = new.valid_at and existing.valid_at and new.valid_at[:10] != existing.valid_at[:10]
    if (alike and new.predicate in _EVENTS and other_day) or _differs(new.words, existing.words):
        return False
    ours, theirs = words_without_speaker(new.sentence), words_without_speaker(existing.sentence)
    return len(ours & theirs) / len(ours | theirs) >= _SAME_WORDS if ours and theirs else alike


def _differs(ours: str, theirs: str) -> bool:
    if bool(_NEGATION.search(ours)) != bool(_NEGATION.search(theirs)):
        return True
    return sorted(_NUMBER.findall(ours)) != sorted(_NUMBER.findall(theirs))
