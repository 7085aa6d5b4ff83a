"""Judge by rules what a new fact has to do with a known one: whether both say the same, or one ends or refutes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from kg_memory.offline import sameness
from kg_memory.offline.denials import denies
from kg_memory.offline.measures import changed_number
from kg_memory.offline.moods import PASSING
from kg_memory.offline.passing import is_passing
from kg_memory.offline.patterns import FUNCTIONAL, NOT
from kg_memory.offline.sameness import clause_of, key, said
from kg_memory.text import predicates
from kg_memory.text.dates import parse_instant

SURE, OPEN, UNSURE = 0.95, 0.7, 0.2
"""How sure a rule is; where it is open which of two is right, a person is to look at them."""

_OPPOSITES = {
    frozenset(pair)
    for pair in (
        ("LIKES", "DISLIKES"), ("LIKES", "HATES"), ("LOVES", "DISLIKES"), ("LOVES", "HATES"),
        ("PREFERS", "DISLIKES"), ("PREFERS", "HATES"),
    )
}  # fmt: skip
_CORRECTS = re.compile(
    r"\bcorrection\b|\bI (?:meant|misspoke|mistyped|was (?:wrong|mistaken)|made a mistake|got (?:it|that) wrong)\b|"
    r"\b(?:sorry|oops|wait|actually|apologies)\b[^.!?]{0,80}[,;—–-]\s?(?:and )?not\b|"
    r"\b(?:sorry|oops|wait)\b[^.!?]{0,80}\bnot\b[^.!?]{1,60}\bbut\b|\bmy mistake\b|"
    r"\b(?:that|it)(?:'s| is| was) (?:wrong|not (?:true|right|correct)|incorrect)\b|"
    r"说错了|更正|纠正|搞错了|记错了|弄错了|写错了|不对[，,]",
    re.IGNORECASE,
)
"""How one takes back what was said."""
_PERHAPS_CORRECTS = re.compile(
    r"(?:(?:no|oh|well|wait|hmm|sorry|oops)[,.]? )*(?:actually|in fact)\b|(?:oops|wait|sorry)[,.]|其实|事实上|"
    r"不是(?!很)",
    re.IGNORECASE,
)
"""How a sentence begins that may take something back, unless it tells a change."""
_CHANGES = re.compile(
    r"\b(?:moved|moving|relocated|switched|joined|left|quit|changed|started|began|became|promoted|hired|married|"
    r"since|now|just|recently|no longer|anymore)\b|搬|换|改|加入|入职|跳槽|离职|现在|最近|刚",
    re.IGNORECASE,
)
_MOVES = re.compile(r"\b(?:moved|relocated|switched|instead|emigrated)\b|搬|换|跳槽", re.IGNORECASE)
_TOO = re.compile(
    r"\b(?:also|as well(?! as)|both|another|besides|in addition|additionally|part[- ]time|on the side|side (?:job|gig|"
    r"project|hustle)|a second|(?:my|our) (?:second|other))\b|\btoo(?=\s*(?:[.,;!)]|$))|"
    r"也(?!许)|还(?![是在没有要]|可以)|另外|同时|兼职|兼任|第二[份个家]|副业",
    re.IGNORECASE,
)
_ENDS_IN_TOO = re.compile(r",\s?(?:too|as well|also)[.!\s]*$", re.IGNORECASE)
_BORN = re.compile(r"\b(?:was|were) born\b|出生", re.IGNORECASE)
_NO = re.compile(r"(?:no|nope)[,.!]|不[，,。]|不是[，,]", re.IGNORECASE)
_RATHER_THAN = r"(?:\b(?:to|over|than|instead of|not|from|replaced)\s|不是|比起?|代替|取代)\s?(?:the |my |an? )?"
"""What stands before the one of two that is preferred less."""

Fact = Mapping[str, Any]


class Judgement(NamedTuple):
    """A verdict on two facts, how sure it is (0 to 1), which of the two holds, and why."""

    verdict: str
    confidence: float
    holds: str
    reason: str


def judge(new: Fact, known: Fact) -> Judgement:
    """Return what *new* has to do with *known*; where no rule is sure, nothing.

    Which of the two was said first counts, and not which arrived first.
    """
    pair = _Pair.of(new, known)
    if new["subject"] == known["subject"]:
        for rule in _RULES:
            found = rule(pair)
            if found is not None:
                return found
    return Judgement("unrelated", UNSURE, "new", "They have nothing to do with each other.")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two facts of one subject, by arrival and by which was said later."""

    new: Fact
    known: Fact
    later: Fact
    earlier: Fact

    @classmethod
    def of(cls, new: Fact, known: Fact) -> _Pair:
        ours, theirs = _time(new, "said_at"), _time(known, "said_at")
        known_later = ours is not None and theirs is not None and theirs > ours
        return cls(new, known, known, new) if known_later else cls(new, known, new, known)

    @property
    def later_side(self) -> str:
        return "new" if self.later is self.new else "known"

    @property
    def alike(self) -> bool:
        return bool(self.new["predicate"] == self.known["predicate"])

    @property
    def shared(self) -> set[str]:
        return {key(one) for one in self.new["objects"]} & {key(one) for one in self.known["objects"]}

    @property
    def ended(self) -> bool:
        """Whether one of the two is told as over."""
        return bool(self.new.get("invalid_at") or self.known.get("invalid_at"))

    @property
    def one_at_a_time(self) -> bool:
        """Whether the two are values of what holds for one object at a time."""
        predicate = self.new["predicate"]
        field = sameness.one_at_a_time(predicate) and _is_field(self.new) and _is_field(self.known)
        return self.alike and (field or predicate in FUNCTIONAL or bool(self.known.get("one_at_a_time")))


def _redates(pair: _Pair) -> Judgement | None:
    """The same state with another date, as a correction."""
    dates = _time(pair.new, "valid_at"), _time(pair.known, "valid_at")
    if not sameness.says_the_same(pair.new, pair.known) or dates[0] is None or dates[1] is None:
        return None
    if dates[0] != dates[1] and _takes_back(pair.later):
        return Judgement("conflicts", SURE, pair.later_side, "It gives another date, as a correction.")
    if dates[0].year != dates[1].year and _happens_once(pair):
        return _disputed(pair, "It happens once, and each gives another year.")
    return None


def _opposes(pair: _Pair) -> Judgement | None:
    opposite = frozenset((pair.new["predicate"], pair.known["predicate"])) in _OPPOSITES
    if not opposite or not pair.shared or pair.ended:
        return None
    return Judgement("supersedes", SURE, pair.later_side, "It is liked or disliked, and that changed.")


def _says_not(pair: _Pair) -> Judgement | None:
    """What is not so now, and what says that it is: each ends the other, unless the later one tells of before."""
    for denial, other in ((pair.new, pair.known), (pair.known, pair.new)):
        if denial["predicate"] != NOT + other["predicate"] or not pair.shared or pair.ended:
            continue
        if other is pair.later and _began_before(other, denial):
            return Judgement("conflicts", SURE, pair.later_side, "One denies what the other tells.")
        return Judgement("supersedes", SURE, pair.later_side, "It is so, or it is not, and that changed.")
    return None


def _denies(pair: _Pair) -> Judgement | None:
    """What was never so, and yet was: the one said last holds, but what began since has only ended the "never"."""
    for denial, other in ((pair.new, pair.known), (pair.known, pair.new)):
        if not denies(denial, other):
            continue
        if denial is pair.later or _began_before(other, denial):
            return Judgement("conflicts", SURE, pair.later_side, "One denies what the other tells.")
        if pair.shared:
            return Judgement("supersedes", SURE, pair.later_side, "It was never so before, and now it is.")
    return None


def _repeats(pair: _Pair) -> Judgement | None:
    same = sameness.says_the_same(pair.new, pair.known)
    return Judgement("duplicate", SURE, "new", "Both say the same.") if same else None


def _corrects(pair: _Pair) -> Judgement | None:
    """Another object for the same, as a correction of it."""
    if not pair.alike or pair.shared:
        return None
    words, takes_back = said(pair.later), _takes_back(pair.later)
    # "Nordlys, not Acme" corrects; "Nordlys now, not Acme" tells a change.
    names_it = any(_not_but(words, name) for name in pair.earlier["objects"])
    if not (takes_back and (names_it or pair.one_at_a_time)) and not (
        names_it and pair.one_at_a_time and _CHANGES.search(words) is None
    ):
        return None
    return Judgement("conflicts", SURE, pair.later_side, "It corrects what was said before.")


def _adds(pair: _Pair) -> Judgement | None:
    """A second value beside the first."""
    if not pair.one_at_a_time or pair.shared:
        return None
    if any(_is_added(one) for one in (pair.new, pair.known)):
        return Judgement("complements", SURE, "new", "It is told as a second one, beside the other.")
    return None


def _passes(pair: _Pair) -> Judgement | None:
    """A passing state beside a lasting one."""
    kinds = pair.new["predicate"], pair.known["predicate"]
    away = PASSING.get(kinds[0]) == kinds[1] or PASSING.get(kinds[1]) == kinds[0]
    if pair.shared or not (away or pair.one_at_a_time):
        return None
    ours, theirs = is_passing(pair.new), is_passing(pair.known)
    if ours and not theirs:
        return Judgement("temporary", SURE, "new", "It is a passing state, and ends nothing that lasts.")
    if theirs and not ours:
        return Judgement("complements", SURE, "new", "The known one is a passing state.")
    return None


def _replaces(pair: _Pair) -> Judgement | None:
    """Another value of what has one at a time, whichever of the two came first."""
    if not pair.one_at_a_time or pair.shared:
        return None
    if _happens_once(pair):
        return _disputed(pair, "It happens once, and each tells another.")
    return Judgement("supersedes", SURE, pair.later_side, "Only one holds at a time, and it changed.")


def _prefers(pair: _Pair) -> Judgement | None:
    if not pair.alike or pair.new["predicate"] != "PREFERS" or pair.shared or pair.ended:
        return None
    less = [rf"{_RATHER_THAN}{re.escape(name)}(?![A-Za-z0-9])" for name in pair.earlier["objects"]]
    if _is_added(pair.later) or not any(re.search(one, said(pair.later), re.IGNORECASE) for one in less):
        return None
    return Judgement("supersedes", SURE, pair.later_side, "It is preferred instead.")


def _measures(pair: _Pair) -> Judgement | None:
    told = changed_number(pair.later, pair.earlier)
    return Judgement("supersedes", 0.9, pair.later_side, f"It is another number now: {told}.") if told else None


# The first that answers wins.
_RULES: tuple[Callable[[_Pair], Judgement | None], ...] = (
    _redates, _opposes, _says_not, _denies, _repeats, _corrects, _adds, _passes, _replaces, _prefers, _measures,
)  # fmt: skip


def _time(fact: Fact, name: str) -> datetime | None:
    return parse_instant(fact.get(name))


def _is_field(fact: Fact) -> bool:
    """Return whether a fact comes from a field with one value of a record."""
    return str(fact["sentence"]).startswith(f"{fact['subject']}: ") and " is " in fact["sentence"]


def _began_before(fact: Fact, denial: Fact) -> bool:
    began, moment = _time(fact, "valid_at"), _time(denial, "said_at")
    return began is not None and moment is not None and began < moment


def _happens_once(pair: _Pair) -> bool:
    """Return whether both tell of what happens once in a life."""
    rule = predicates.canonical_predicate(pair.new["predicate"])
    once = rule is not None and rule.family in ("birth", "death")
    return pair.alike and (once or all(_BORN.search(said(one)) for one in (pair.new, pair.known)))


def _disputed(pair: _Pair, reason: str) -> Judgement:
    """Return that only one of two can be right: the later one where it says no to the other, else a person must say."""
    sure = SURE if _NO.match(said(pair.later)) else OPEN
    return Judgement("conflicts", sure, pair.later_side, reason)


def _takes_back(fact: Fact) -> bool:
    """Return whether *fact* is told as a correction."""
    words = said(fact)
    if _CORRECTS.search(words) is not None:
        return True
    opens = _PERHAPS_CORRECTS.match(words) is not None
    return opens and (_CHANGES.search(words) is None or _has_not(words))


def _has_not(words: str) -> bool:
    return re.search(r"[,;—–-]\s?(?:and )?not\b|而?不是|并非", words, re.IGNORECASE) is not None


def _not_but(words: str, name: str) -> bool:
    """Return whether *words* say that it is not *name*."""
    plain = re.escape(name)
    pattern = rf"(?:\bnot|\bnever|而?不是|并非|没有?)\s?(?:to |in |at |for |a |an |the |从|在|住在|搬到)*{plain}(?!\w)"
    return re.search(pattern, words, re.IGNORECASE) is not None


def _is_added(fact: Fact) -> bool:
    clause = clause_of(fact)
    added = _TOO.search(clause) is not None or _ENDS_IN_TOO.search(said(fact)) is not None
    return added and _MOVES.search(clause) is None
