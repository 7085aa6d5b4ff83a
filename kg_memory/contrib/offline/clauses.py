"""Read the clause around a verb: whether it is denied, planned or imagined, and whether it passes."""

from __future__ import annotations

import re

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import DENIABLE, NOT, WORDS, Change, Span

NEVER = "NEVER_"
"""The prefix of a predicate that never held."""
NEVER_DID = "NEVER_DID"
"""The predicate of a denial whose verb no pattern knows."""

_SUPPOSED = re.compile(
    r"\b(?:if|unless|wish(?:es|ed)?|imagin(?:e|ed|ing)|suppos(?:e|ing)|pretend(?:ed|ing)?|dreamt|what if|as though)\b",
    re.IGNORECASE,
)
_WOULD = re.compile(r"\bwould(?:n't| not)?\s(?:\w+\s){0,2}$", re.IGNORECASE)
_WOULD_OR_HAD = re.compile(r"'d\s(?:\w+ly\s|never\s|still\s|probably\s|be\s|have\s)*$", re.IGNORECASE)
_NOT_DONE = re.compile(
    r"\b(?:almost|nearly)\s\S+$|\b(?:could|should)(?:n't| not)?(?:'ve| have)\s(?:\w+ly\s)?\S+$|"
    r"\b(?:was|were) (?:\w+ly |just |about |(?:never|not) )?(?:going|about)$",
    re.IGNORECASE,
)
"""A verb after words by which it did not come to that, or perhaps not: "almost moved", "could have moved"."""
_SAYS_OF_SPEAKER = re.compile(
    r"\b(?:thinks?|thought|believes?|believed|says?|said|claims?|claimed|assumes?|assumed|reckons?|suspects?|swears?|"
    r"insists?|insisted|suggests?|suggested|recommends?|recommended|(?:tells?|told) (?:everyone|everybody|people|them|"
    r"him|her))(?: that)?\s(?:I|we)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\b(?:I|we)\b", re.IGNORECASE)
_SUBJECT = re.compile(r"\b(?:I|we|you|he|she|they|it|who)\b", re.IGNORECASE)
_KNOWS = re.compile(r"\b(?:doctors?|doc|gp|dentist|physician|allergist|therapist|nutritionist|vet)\s", re.IGNORECASE)
"""Those who say what is so, where they say it of their patient."""
_SAYS_OF_SPEAKER_CHINESE = re.compile(
    r"(?<![跟和对向给与])(?<![跟和对向给与]我)(?<![跟和对向给与]我的)(?:爸爸?|妈妈?|父亲|母亲|朋友|同事|老板|家人|姐姐?|哥哥?|妹妹|弟弟|"
    r"[他她]们?|大家|别人|有人)(?:一直|也|都|总)?(?:以为|觉得|认为|说)我们?[^，。]{0,6}$"
)
_SUPPOSED_CHINESE = re.compile(r"如果|假如|假设|要是|倘若|若是|即使|万一|想象|幻想|做梦|本来会|的话|差一?点|险些")
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
"""Words that limit a denial: "I don't use Flask for this"."""
_AHEAD = (
    r"\b(?:will|would|might|(?<!in )(?-i:may)|could|going to|gonna|want(?:s|ed)? to|plan(?:s|ning)? (?:to|on)|"
    r"hop(?:e|es|ing) to|thinking (?:of|about)|considering|if|should|like to|love to|try(?:ing)? to|about to|dream of|"
    r"let's"
)
_PLANNED = re.compile(rf"(?:{_AHEAD}|to)|['’]ll|['’]d)\s(?:\w+\s){{0,1}}$", re.IGNORECASE)
# "I had to quit" is an end, "I want to quit" is not.
_END_PLANNED = re.compile(rf"(?:{_AHEAD})|['’]ll)\s(?:\w+\s){{0,1}}$", re.IGNORECASE)
CLAUSE_START = re.compile(r"\b(?:and|but|or|so|then)\b|[,;:()]|\s[-–—]+\s|--")
_CLAUSE_END = re.compile(
    r"[,;:.!?—–](?=\s|$)|\s(?:but|because|although|though|while|when|if|so)\s|\sand\s(?:I|we|he|she|it|they|now|"
    r"then)\b",
    re.IGNORECASE,
)
_NO_DEEDS = frozenset(
    "thought felt knew known liked enjoyed loved imagined expected realized realised been left quit stopped forgot "
    "forgotten failed missed regretted looked minded wanted needed dreamed dreamt stop".split()
)
"""Verbs that are no deed, or whose denial means that something goes on: "I never left Oslo"."""
_WISHES = frozenset({"PLANS", "LIKES", "PREFERS", "DISLIKES"})
PASSING = {
    "LIVES_IN": "STAYS_IN",
    "STAYS_IN": "STAYS_IN",
    "WORKS_AT": "TEMPORARILY_WORKS_AT",
    "WORKS_AS": "TEMPORARILY_WORKS_AS",
    "STUDIES_AT": "TEMPORARILY_STUDIES_AT",
}
"""The predicate of a passing state, by that of the lasting one."""
_SPAN = (
    r"(?:days?|nights?|weeks?|weekends?|months?|fortnight|spring|summer|fall|autumn|winter|semester|term|holidays?|"
    r"season)"
)
_FOR = (
    rf"\bfor (?:the|a|this|a few|a couple of|several|some|one|two|three|four|five|six|\d{{1,2}}) (?:next |coming |"
    rf"whole |rest of the )?{_SPAN}\b"
)
_IF_NOTHING_BEGINS = re.compile(
    rf"{_FOR}|\b(?:(?<!from )(?<!since )(?<!starting )(?:this|next)|over the|during the) {_SPAN}\b|\b(?:until|till|"
    rf"through) (?:next |the end|mon|tues|wednes|thurs|fri|"
    rf"satur|sun|tomorrow)|\b(?:today|tonight|right now)\b|这(?:一?周|个?星期|个?礼拜|几天|个?周末|个月|两天)|本周|"
    rf"今天|"
    rf"今晚|这个?(?:夏天|暑假|寒假|冬天)",
    re.IGNORECASE,
)


def is_disclaimed(text: str, at: int) -> bool:
    """Return whether words about the clause at *at* in *text* deny it: nobody does so, or it is not true."""
    text = text.replace("’", "'")
    ends = [0, *(end.end() for end in WORDS["is_over"].finditer(text))]
    begin = max(end for end in ends if end <= at)
    stop = next((end for end in ends if end > at), len(text))
    denial = WORDS["denies"].search(text, begin, stop)
    return denial is not None and (denial["whole"] is not None or denial.start() <= at)


def interpret_verb(predicate: str, change: Change, text: str, verb: Span) -> tuple[str, Change] | None:
    """Return what *verb* in *text* makes of *predicate* and *change*, or ``None`` where nothing real is stated."""
    before, words = text[: verb[0]], text[slice(*verb)]
    if is_disclaimed(text, verb[0]) or _is_said_by_another(before):
        return None
    if _is_unreal(CLAUSE_START.split(before)[-1], words, wishes=predicate in _WISHES):
        return None
    if _is_denied(before, words, predicate):
        goes_on = change == "ends" and not _STATE_OF_PAST.match(words)  # "never left", but not "never lived in"
        return None if change == "plans" or goes_on else (NEVER + predicate, "never")
    planned = {"ends": _END_PLANNED, "plans": None}.get(change, _PLANNED)
    if planned is not None and planned.search(before):
        return "PLANS", "plans"
    only_denied = change == "ends" and predicate in DENIABLE
    if change == "ends" and not only_denied:
        return predicate, change
    negated = _DO_NOT.match(words.replace("’", "'")) if only_denied else _NEGATED.search(before.replace("’", "'"))
    if negated:
        # "I didn't work at" ends nothing.
        deniable = change != "plans" and predicate in DENIABLE and not _NOT_THEN.search(before.replace("’", "'"))
        return _interpret_negation(predicate, text, verb) if deniable else None
    if change in ("is", "passes") and predicate in PASSING and passes(_clause_around(text, verb)):
        return PASSING[predicate], "passes"
    return None if change == "passes" else (predicate, change)


def _interpret_negation(predicate: str, text: str, verb: Span) -> tuple[str, Change] | None:
    """Return an end for "no longer", else that *predicate* does not hold now, which says nothing about before."""
    before, words = text[: verb[0]].replace("’", "'"), text[slice(*verb)].replace("’", "'")
    clause = _CLAUSE_END.split(text[verb[0] :], maxsplit=1)[0]
    if re.search(r"\bno longer\s(?:\w+\s){0,2}$", before, re.IGNORECASE):
        return predicate, "ends"
    if not _DO_NOT.match(words) and not _NOT_NOW.search(before):
        return None  # "not only", "not sure that"
    if _NO_LONGER.search(clause):
        return predicate, "ends"
    return None if _IN_PART.search(text[verb[1] : verb[0] + len(clause)]) else (NOT + predicate, "is")


def _clause_around(text: str, verb: Span) -> str:
    """Return the clause of *verb* in *text*, with up to three words and a comma before it."""
    cuts = [0, *(cut.end() for cut in CLAUSE_START.finditer(text, 0, verb[0]))]
    start = next((cut for cut in reversed(cuts) if verb[0] - cut > 0), 0)
    if cuts.index(start) > 0 and len(text[cuts[cuts.index(start) - 1] : start].split()) <= 3:
        start = cuts[cuts.index(start) - 1]
    end = _CLAUSE_END.search(text, verb[1])
    return text[start : end.start() if end else len(text)]


def _is_unreal(lead: str, verb: str, *, wishes: bool = False) -> bool:
    """Return whether *verb*, after *lead* in its clause, is only supposed; a verb that *wishes* may follow "would"."""
    plain = lead.replace("’", "'")
    begun = verb.replace("’", "'").casefold()
    if _NOT_DONE.search(plain + " ".join(begun.split()[: 2 if begun.startswith(("have ", "'ve ")) else 1])):
        return True
    if _SUPPOSED.search(plain) or wishes:
        return _SUPPOSED.search(plain) is not None
    return _WOULD.search(plain) is not None or (_WOULD_OR_HAD.search(plain) is not None and not is_past(verb))


def _is_said_by_another(before: str) -> bool:
    """Return whether the verb after *before* is what others say or think of the speaker: "he says I live in"."""
    said = list(_SAYS_OF_SPEAKER.finditer(before))
    if not said or _SUBJECT.search(before, said[-1].end()):
        return False
    lead = before[: said[-1].start()]
    clause = CLAUSE_START.split(lead)[-1]
    # "I called and said I live in Oslo"
    who = clause if clause.strip() else lead
    return _SPEAKER.search(who) is None and _KNOWS.search(who) is None


def is_unreal_chinese(text: str, verb: Span) -> bool:
    """Return whether *verb* in *text* is denied, only supposed, or said by others of the speaker."""
    before, after = text[: verb[0]], text[verb[1] :]
    if is_disclaimed(text, verb[0]) or _SAYS_OF_SPEAKER_CHINESE.search(before):
        return True
    return _SUPPOSED_CHINESE.search(before) is not None or re.match(r"[^，。；]{0,12}的话", after) is not None


def _is_denied(before: str, verb: str, predicate: str) -> bool:
    """Return whether *verb*, after *before*, never happened: "I've never used", but not "I never use"."""
    plain = before.replace("’", "'")
    if predicate in _FEELS:
        return False
    return _NEVER_PERFECT.search(plain) is not None or (_NEVER_PAST.search(plain) is not None and is_past(verb))


def is_denied_chinese(before: str) -> bool:
    """Return whether the words after *before* never held."""
    return _NEVER_CHINESE.search(before) is not None


def find_denials(text: str) -> list[tuple[str, Span]]:
    """Return each thing in *text* that the speaker never did: its predicate, and the characters of its object."""
    denials = []
    for match in _DENIED.finditer(text):
        verb = match["verb"].casefold()
        if is_past(verb) and verb not in _NO_DEEDS:
            denials.append((f"{NEVER}USES" if verb == "used" else NEVER_DID, match.span("what")))
    for match in _DENIED_CHINESE.finditer(text):
        uses = match["what"].startswith(("用", "使用"))
        denials.append((f"{NEVER}USES" if uses else NEVER_DID, match.span("what")))
    return denials


def is_past(verb: str) -> bool:
    """Return whether *verb* is in the past tense."""
    first = "".join(verb.casefold().split()[:1])
    irregular = first in lexicon.IRREGULAR and not first.endswith("ing")
    return irregular or first.endswith("ed") or first in ("been", "read")


def passes(words: str) -> bool:
    """Return whether a state in these *words* will soon be over by itself."""
    plain = words.replace("’", "'")
    if WORDS["passes"].search(plain):
        return True
    return _IF_NOTHING_BEGINS.search(plain) is not None and WORDS["begins"].search(plain) is None
