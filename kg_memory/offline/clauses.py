"""Read the clause around a verb: whether it is denied, planned or imagined, whether it passes, and its dates."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.offline.statements import DENIABLE, NOT, Change, Span, is_chinese
from kg_memory.text import lexicon
from kg_memory.text.dates import DateMention

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
"""Words that limit a denial: "I don't use Flask for this"."""
_AHEAD = (
    r"\b(?:will|would|might|may|could|going to|gonna|want(?:s|ed)? to|plan(?:s|ning)? (?:to|on)|hop(?:e|es|ing) to|"
    r"thinking (?:of|about)|considering|if|should|like to|love to|try(?:ing)? to|about to|dream of|let's"
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
_ALWAYS = re.compile(
    r"\b(?:temporar(?:y|ily)|for now|for the time being|for a while|briefly|on (?:a )?(?:business|work) trip|"
    r"on (?:vacation|holiday|secondment|leave)|(?:staying|crashing|couch[- ]?surfing) (?:with|at|in)|house[- ]?sitting|"
    r"visiting|filling in|covering for|on loan|interim)\b|暂时|临时|短期|出差|借住|借调|度假|旅游|探亲|暂住|代班|"
    r"住(?:几|两|三|一)(?:天|周|个月|晚)|待(?:几|两|三|一)(?:天|周|个月|晚)",
    re.IGNORECASE,
)
_IF_NOTHING_BEGINS = re.compile(
    rf"{_FOR}|\b(?:(?<!from )(?<!since )(?<!starting )(?:this|next)|over the|during the) {_SPAN}\b|\b(?:until|till|"
    rf"through) (?:next |the end|mon|tues|wednes|thurs|fri|"
    rf"satur|sun|tomorrow)|\b(?:today|tonight|right now)\b|这(?:一?周|个?星期|个?礼拜|几天|个?周末|个月|两天)|本周|"
    rf"今天|"
    rf"今晚|这个?(?:夏天|暑假|寒假|冬天)",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\b(?:moved|relocated|emigrated|settled|joined|join|start(?:s|ed|ing)?|began|hired|promoted|switched|became|"
    r"got|landed|accepted|"
    r"quit|left|married|engaged)\b|\b(?:have|has|'ve)\s(?:\w+\s){0,2}(?:been|lived|worked|studied)\b|"
    r"搬|加入|入职|换|改|开始|跳槽|升|毕业",
    re.IGNORECASE,
)
# A clause may begin after these; the words that follow decide.
_BORDER = re.compile(
    r"[,;:()\n]|[.!?…]+(?=\s)|\s[-–—]+\s|--|—|\b(?:and|but|or|so|then|yet|because|since|as|although|though|while|"
    r"whereas|after|before|who|which|that(?=\s(?:was|were|is|are|has|had)\b))\b",
    re.IGNORECASE,
)
_CHINESE_BORDER = re.compile(r"[，,；;。！!？?：:\n]")
_JOINS = re.compile(r"and|but|or|so|then|yet|[;\n]", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'’-]*")
_NAMES_SUBJECT = frozenset("i we you he she they it there".split())
_NO_NAMES = re.compile(
    r"在|从|自|于|就|也|又|还|都|便|并且?|而且?|但是?|不过|所以|因此|然后|后来|接着|已经|终于|刚刚?|一直|\s"
)
_PERFECTIVE = re.compile("[了过]")
_SUBJECT_WORDS = 5
"""The most words between a border and the verb of the clause after it."""


def interpret_verb(predicate: str, change: Change, text: str, verb: Span) -> tuple[str, Change] | None:
    """Return what *verb* in *text* makes of *predicate* and *change*, or ``None`` where nothing real is stated."""
    before, words = text[: verb[0]], text[slice(*verb)]
    if _is_unreal(CLAUSE_START.split(before)[-1], words, wishes=predicate in _WISHES):
        return None
    if _is_denied(before, words, predicate):
        goes_on = change == "ends" and not _STATE_OF_PAST.match(words)  # "never left", but not "never lived in"
        return None if change == "plans" or goes_on else (NEVER + predicate, "never")
    planned = {"ends": _END_PLANNED, "plans": None}.get(change, _PLANNED)
    if planned is not None and planned.search(before):
        return "PLANS", "plans"
    negated = _DO_NOT.match(words.replace("’", "'")) if change == "ends" else _NEGATED.search(before.replace("’", "'"))
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
    if _SUPPOSED.search(plain) or wishes:
        return _SUPPOSED.search(plain) is not None
    if _WOULD.search(plain):
        return True
    return _WOULD_OR_HAD.search(plain) is not None and not _is_past(verb)


def is_unreal_chinese(before: str, after: str) -> bool:
    """Return whether the words between *before* and *after* are only supposed."""
    return _SUPPOSED_CHINESE.search(before) is not None or re.match(r"[^，。；]{0,12}的话", after) is not None


def _is_denied(before: str, verb: str, predicate: str) -> bool:
    """Return whether *verb*, after *before*, never happened: "I've never used", but not "I never use"."""
    plain = before.replace("’", "'")
    if predicate in _FEELS:
        return False
    return _NEVER_PERFECT.search(plain) is not None or (_NEVER_PAST.search(plain) is not None and _is_past(verb))


def is_denied_chinese(before: str) -> bool:
    """Return whether the words after *before* never held."""
    return _NEVER_CHINESE.search(before) is not None


def find_denials(text: str) -> list[tuple[str, Span]]:
    """Return each thing in *text* that the speaker never did: its predicate, and the characters of its object."""
    denials = []
    for match in _DENIED.finditer(text):
        verb = match["verb"].casefold()
        if _is_past(verb) and verb not in _NO_DEEDS:
            denials.append((f"{NEVER}USES" if verb == "used" else NEVER_DID, match.span("what")))
    for match in _DENIED_CHINESE.finditer(text):
        uses = match["what"].startswith(("用", "使用"))
        denials.append((f"{NEVER}USES" if uses else NEVER_DID, match.span("what")))
    return denials


def _is_past(verb: str) -> bool:
    first = "".join(verb.casefold().split()[:1])
    irregular = first in lexicon.IRREGULAR and not first.endswith("ing")
    return irregular or first.endswith("ed") or first in ("been", "read")


def passes(words: str) -> bool:
    """Return whether a state in these *words* will soon be over by itself."""
    plain = words.replace("’", "'")
    if _ALWAYS.search(plain):
        return True
    return _IF_NOTHING_BEGINS.search(plain) is not None and _BEGINS.search(plain) is None


# Dates.


def find_clause_dates(text: str, verb: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[DateMention]:
    """Return those of the *dates* in *text* that date *verb*; *verbs* are all verbs that were read in it.

    "I was born in Rome in 1990 and I work at Acme": 1990 does not date the work. A date that opens the sentence also
    dates the verbs that follow with the same subject: "In May I went to Rome and met Tom".
    """
    clauses = _clauses(text, verbs, dates)
    own = [place for place, (start, end) in enumerate(clauses) if start < verb[1] and verb[0] < end]
    inside = [date for date in dates for place in own if clauses[place][0] <= date.start < clauses[place][1]]
    if inside or not own or not own[0] or not _may_inherit(text, verb):
        return inside
    place = own[0]
    if not _is_bare(text, (clauses[place][0], verb[0]), dates):
        return []
    while place > 0:
        place -= 1
        start, end = clauses[place]
        first = next((date for date in dates if start <= date.start < end), None)
        if first is not None:
            opens = _is_bare(text, (start, first.start), dates) or text[start : first.start].strip() in ("我", "我们")
            return [first] if opens else []
        before = min((begin for begin, _ in verbs if start <= begin < end), default=end)
        if not _is_bare(text, (start, before), dates):
            return []
    return []


def _clauses(text: str, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[Span]:
    """Split *text* where a clause with a verb of its own begins; a date between commas goes to its neighbour."""
    chinese = is_chinese(text)
    border = _CHINESE_BORDER if chinese else _BORDER
    tokens = [token for token in border.finditer(text) if not _is_in_date(dates, token.start())]
    cuts: list[tuple[int, bool]] = [(0, True)]
    joins = chinese
    for place, token in enumerate(tokens):
        stop = tokens[place + 1].start() if place + 1 < len(tokens) else len(text)
        joins = joins or _JOINS.fullmatch(token[0]) is not None
        if stop - token.end() < 2 and not chinese:
            continue  # ", and" is one border
        after = (token.end(), stop)
        dated = _has_date(dates, *after) and _is_bare(text, after, dates)
        if chinese or dated or token[0] in ";\n" or _opens(text, after, verbs, dates):
            cuts.append((token.end(), joins))
        joins = chinese
    return _join_dates(text, cuts, dates)


def _join_dates(text: str, cuts: Sequence[tuple[int, bool]], dates: Sequence[DateMention]) -> list[Span]:
    """Join a clause that is only a date to the next one if it opens the text or follows "and", else to the last."""
    clauses: list[Span] = []
    opening: int | None = None
    for place, (start, joins) in enumerate(cuts):
        end = cuts[place + 1][0] if place + 1 < len(cuts) else len(text)
        if _has_date(dates, start, end) and _is_bare(text, (start, end), dates):
            if joins and end < len(text):
                opening = start if opening is None else opening
            elif clauses:
                clauses[-1] = (clauses[-1][0], end)
            continue
        clauses.append((start if opening is None else opening, end))
        opening = None
    return clauses


def _opens(text: str, span: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> bool:
    """Return whether *span* begins a clause: with a subject and a verb, or a verb at once."""
    place = 0
    for match in _WORD.finditer(text, *span):
        if _is_in_date(dates, match.start()):
            continue
        word = match[0].casefold().replace("’", "'")
        if word.split("'")[0] in _NAMES_SUBJECT or any(start <= match.start() < end for start, end in verbs):
            return True
        if word in lexicon.BE or word in ("has", "have", "had", "born"):
            return True
        if word == "to":
            break  # "to push" has no subject of its own
        if word in lexicon.VERB_FORMS and not word.endswith("ing"):
            past = word.endswith("ed") or word in lexicon.IRREGULAR
            if past or place:
                return True
        place += 1
        if place > _SUBJECT_WORDS:
            break
    return False


def _is_bare(text: str, span: Span, dates: Sequence[DateMention]) -> bool:
    """Return whether *span* has only dates and small words."""
    kept = list(text[span[0] : span[1]])
    for date in dates:
        for at in range(max(date.start, span[0]), min(date.end, span[1])):
            kept[at - span[0]] = " "
    rest = "".join(kept)
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(rest)]
    light = all(
        (word in lexicon.FUNCTION or word in lexicon.AUXILIARIES or word.endswith("ly"))
        and word.split("'")[0] not in _NAMES_SUBJECT
        for word in words
    )
    return light and not re.search(r"[\u4e00-\u9fff]", _NO_NAMES.sub("", rest))


def _has_date(dates: Sequence[DateMention], start: int, end: int) -> bool:
    return any(start <= date.start < end for date in dates)


def _is_in_date(dates: Sequence[DateMention], at: int) -> bool:
    return any(date.start <= at < date.end for date in dates)


def _may_inherit(text: str, verb: Span) -> bool:
    """Return whether the verb may have the date of the one before: "and work at", 在…工作 hold now."""
    if is_chinese(text):
        return _PERFECTIVE.search(text, verb[0], verb[1] + 1) is not None
    first = _WORD.search(text, *verb)
    word = first[0].casefold() if first else ""
    return word not in lexicon.VERBS and word.removesuffix("s") not in lexicon.VERBS
