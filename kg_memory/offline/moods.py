"""Tell what is only imagined, denied or corrected from what is stated, by the words around its verb."""

from __future__ import annotations

import re

from kg_memory.offline import lexicon
from kg_memory.offline.passing import passes
from kg_memory.offline.patterns import DENIABLE, NOT, Change

NEVER = "NEVER_"
"""How the predicate of what is denied begins."""
NEVER_DID = "NEVER_DID"
"""The predicate of what is denied by a verb that no pattern knows."""

_SUPPOSED = re.compile(
    r"\b(?:if|unless|wish(?:es|ed)?|imagin(?:e|ed|ing)|suppos(?:e|ing)|pretend(?:ed|ing)?|dreamt|what if|as though)\b",
    re.IGNORECASE,
)
_WOULD = re.compile(r"\bwould(?:n't| not)?\s(?:\w+\s){0,2}$", re.IGNORECASE)
_WOULD_OR_HAD = re.compile(r"'d\s(?:\w+ly\s|never\s|still\s|probably\s|be\s|have\s)*$", re.IGNORECASE)
_SUPPOSED_CHINESE = re.compile(r"如果|假如|假设|要是|倘若|若是|即使|万一|想象|幻想|做梦|本来会|的话")
_NEVER_PERFECT = re.compile(
    r"(?:\bhave|\bhas|\bhad|'ve|'s|'d)\s(?:\w+ly\s)?never\s(?:\w+ly\s|ever\s|once\s|even\s)*$", re.IGNORECASE
)
_NEVER_PAST = re.compile(r"\bnever\s(?:\w+ly\s|ever\s|once\s|even\s)*$", re.IGNORECASE)
_NOT_THEN = re.compile(r"(?:\bdid|\bhave|\bhas|\bhad)(?:n't| not)\s(?:\w+\s){0,2}$", re.IGNORECASE)
_STATE_OF_PAST = re.compile(r"(?:lived|worked)\b", re.IGNORECASE)
_NEVER_CHINESE = re.compile(r"(?:从来没有?|从没有?|从未|未曾|从来不|根本没有?|压根没有?)(?:再|曾)?$")
_DENIED = re.compile(
    r"\b(?:I|we)(?:['’]ve|['’]d| have| had)? (?:\w+ly )?never (?:\w+ly |ever |once |"
    r"even )*(?P<verb>[a-z'-]+)\b(?P<what>[^,;:.!?()\n–—]*)",
    re.IGNORECASE,
)
_DENIED_CHINESE = re.compile(r"(?:从来没有?|从没有?|从未|未曾|根本没有?|压根没有?)(?P<what>[^，,；;。！!？?\n]+)")
_FEELS = frozenset({"THINKS", "PLANS", "LIKES", "DISLIKES", "PREFERS", "ENJOYED", "IS_A", "IS_FROM", "LOST", "STARTED"})

_NEGATED = re.compile(r"(?:\bnot|n['’]t|\bnever|\bno longer|\bwithout)\s(?:\w+\s){0,2}$", re.IGNORECASE)
_NOT_NOW = re.compile(
    r"(?:\bnot|n't|\bnever)\s(?:(?:currently|actually|presently|really|personally|even|ever|yet|now)\s)*$",
    re.IGNORECASE,
)
_DO_NOT = re.compile(r"(?:don't|doesn't)\s", re.IGNORECASE)
_NO_LONGER = re.compile(r"\bno more\b|\bany ?more\b|\bany longer\b", re.IGNORECASE)
_IN_PART = re.compile(
    r"\s(?:for|with|without|alone|on|at(?! all\b| the moment\b| present\b)|as|to|in|full[- ]?time|part[- ]?time|every|"
    r"today|tonight|this|during)\b",
    re.IGNORECASE,
)
"""What makes a denial one of a part only: "I don't use Flask for this"."""
_AHEAD = (
    r"\b(?:will|would|might|may|could|going to|gonna|want(?:s|ed)? to|plan(?:s|ning)? (?:to|on)|hop(?:e|es|ing) to|"
    r"thinking (?:of|about)|considering|if|should|like to|love to|try(?:ing)? to|about to|dream of|let's"
)
_PLANNED = re.compile(rf"(?:{_AHEAD}|to)|['’]ll|['’]d)\s(?:\w+\s){{0,1}}$", re.IGNORECASE)
# "I had to quit" is an end, "I want to quit" is none.
_END_PLANNED = re.compile(rf"(?:{_AHEAD})|['’]ll)\s(?:\w+\s){{0,1}}$", re.IGNORECASE)
_CLAUSE_START = re.compile(r"\b(?:and|but|or|so|then)\b|[,;:()]|\s[-–—]+\s|--")
_CLAUSE_END = re.compile(
    r"[,;:.!?—–](?=\s|$)|\s(?:but|because|although|though|while|when|if|so)\s|\sand\s(?:I|we|he|she|it|they|now|"
    r"then)\b",
    re.IGNORECASE,
)
_NO_DEEDS = frozenset(
    "thought felt knew known liked enjoyed loved imagined expected realized realised been left quit stopped forgot "
    "forgotten "
    "failed missed regretted looked minded wanted needed dreamed dreamt stop".split()
)
"""Verbs that tell no deed, or that go on when they are denied: "I never left Oslo"."""
_WISHES = frozenset({"PLANS", "LIKES", "PREFERS", "DISLIKES"})
PASSING = {
    "LIVES_IN": "STAYS_IN", "STAYS_IN": "STAYS_IN", "WORKS_AT": "TEMPORARILY_WORKS_AT",
    "WORKS_AS": "TEMPORARILY_WORKS_AS", "STUDIES_AT": "TEMPORARILY_STUDIES_AT",
}  # fmt: skip
"""What a passing state is called, by the lasting one."""

Span = tuple[int, int]


def meant(predicate: str, change: Change, text: str, verb: Span) -> tuple[str, Change] | None:
    """Return the predicate and the change that *verb* of *text* tells, or ``None`` where it tells nothing real."""
    before, words = text[: verb[0]], text[slice(*verb)]
    if is_unreal(_CLAUSE_START.split(before)[-1], words, wishes=predicate in _WISHES):
        return None
    if is_denied(before, words, predicate):
        return None if change == "plans" or (change == "ends" and keeps_on(words)) else (NEVER + predicate, "never")
    planned = {"ends": _END_PLANNED, "plans": None}.get(change, _PLANNED)
    if planned is not None and planned.search(before):
        return "PLANS", "plans"
    negated = _DO_NOT.match(words.replace("’", "'")) if change == "ends" else _NEGATED.search(before.replace("’", "'"))
    if negated:
        known = change != "plans" and predicate in DENIABLE and not is_undone(before)
        return _negated(predicate, text, verb) if known else None
    if change in ("is", "passes") and predicate in PASSING and passes(clause_around(text, verb)):
        return PASSING[predicate], "passes"
    return None if change == "passes" else (predicate, change)


def _negated(predicate: str, text: str, verb: Span) -> tuple[str, Change] | None:
    """Return the end that "no longer" tells, or that it is not so now, which tells of no time before."""
    before, words = text[: verb[0]].replace("’", "'"), text[slice(*verb)].replace("’", "'")
    clause = _CLAUSE_END.split(text[verb[0] :], maxsplit=1)[0]
    if re.search(r"\bno longer\s(?:\w+\s){0,2}$", before, re.IGNORECASE):
        return predicate, "ends"
    if not _DO_NOT.match(words) and not _NOT_NOW.search(before):
        return None  # "not only", "not sure that"
    if _NO_LONGER.search(clause):
        return predicate, "ends"
    return None if _IN_PART.search(text[verb[1] : verb[0] + len(clause)]) else (NOT + predicate, "is")


def clause_around(text: str, verb: Span) -> str:
    """Return the clause of *verb* in *text*, with the few words before a comma that open it."""
    cuts = [0, *(cut.end() for cut in _CLAUSE_START.finditer(text, 0, verb[0]))]
    start = next((cut for cut in reversed(cuts) if verb[0] - cut > 0), 0)
    if cuts.index(start) > 0 and len(text[cuts[cuts.index(start) - 1] : start].split()) <= 3:
        start = cuts[cuts.index(start) - 1]
    end = _CLAUSE_END.search(text, verb[1])
    return text[start : end.start() if end else len(text)]


def is_unreal(lead: str, verb: str, *, wishes: bool = False) -> bool:
    """Return whether *verb*, after *lead* in its clause, tells what would be, not what is; "would love to" *wishes*."""
    plain = lead.replace("’", "'")
    if _SUPPOSED.search(plain) or wishes:
        return _SUPPOSED.search(plain) is not None
    if _WOULD.search(plain):
        return True
    return _WOULD_OR_HAD.search(plain) is not None and not _is_past(verb)


def is_unreal_chinese(before: str, after: str) -> bool:
    """Return whether what stands between *before* and *after* is but supposed."""
    return _SUPPOSED_CHINESE.search(before) is not None or re.match(r"[^，。；]{0,12}的话", after) is not None


def is_denied(before: str, verb: str, predicate: str) -> bool:
    """Return whether *verb*, after *before*, was never so, as a whole: "I've never used", and not "I never use"."""
    plain = before.replace("’", "'")
    if predicate in _FEELS:
        return False
    return _NEVER_PERFECT.search(plain) is not None or (_NEVER_PAST.search(plain) is not None and _is_past(verb))


def is_denied_chinese(before: str) -> bool:
    """Return whether what follows *before* was never so."""
    return _NEVER_CHINESE.search(before) is not None


def is_undone(before: str) -> bool:
    """Return whether what follows *before* did not happen then, which ends nothing: "I didn't work at"."""
    return _NOT_THEN.search(before.replace("’", "'")) is not None


def keeps_on(verb: str) -> bool:
    """Return whether *verb* tells an end, so that denied it goes on: "never left", but not "never lived in"."""
    return _STATE_OF_PAST.match(verb) is None


def denied(text: str) -> list[tuple[str, Span]]:
    """Return what *text* tells that the speaker never did: the predicate, and where what was not done stands."""
    found = [match for match in _DENIED.finditer(text) if _is_participle(match)]
    told = [(match["verb"].casefold() == "used", match.span("what")) for match in found]
    told += [(match["what"].startswith(("用", "使用")), match.span("what")) for match in _DENIED_CHINESE.finditer(text)]
    return [(f"{NEVER}USES" if used else NEVER_DID, span) for used, span in told]


def _is_participle(match: re.Match[str]) -> bool:
    verb = match["verb"].casefold()
    return _is_past(verb) and verb not in _NO_DEEDS


def _is_past(verb: str) -> bool:
    words = verb.casefold().split()
    first = words[0] if words else ""
    return (
        first.endswith("ed") or (first in lexicon.IRREGULAR and not first.endswith("ing")) or first in ("been", "read")
    )
