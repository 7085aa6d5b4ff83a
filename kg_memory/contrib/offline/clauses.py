"""Interprets the clause of a verb: its position, its dates, and whether it is negated, planned or hypothetical."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import DENIABLE, NOT, WORDS, Change, Span, TextStatement, is_chinese
from kg_memory.text.dates import DateMention
from kg_memory.text.sentences import Sentence

NEVER = "NEVER_"
"""The prefix of a predicate that was never true, such as NEVER_USES."""

_WOULD = re.compile(r"\bwould(?:n't| not)?\s(?:\w+\s){0,2}$", re.IGNORECASE)
_WOULD_OR_HAD = re.compile(r"'d\s(?:\w+ly\s|never\s|still\s|probably\s|be\s|have\s)*$", re.IGNORECASE)
_SPEAKER = re.compile(r"\b(?:I|we|doctor)\b", re.IGNORECASE)
_SUPPOSED_CHINESE = re.compile(r"如果|假如|假设|要是|倘若|若是|即使|万一|想象|幻想|做梦|本来会|的话|差一?点|险些")
_NEVER_PAST = re.compile(r"\bnever\s(?:\w+ly\s|ever\s|once\s|even\s)*$", re.IGNORECASE)
_NOT_THEN = re.compile(r"(?:\bdid|\bhave|\bhas|\bhad)(?:n't| not)\s(?:\w+\s){0,2}$", re.IGNORECASE)
_STATE_OF_PAST = re.compile(r"(?:lived|worked)\b", re.IGNORECASE)
_NEVER_CHINESE = re.compile(r"(?:从来没有?|从没有?|从未|未曾|从来不|根本没有?|压根没有?)(?:再|曾)?$")
_FEELS = frozenset({"THINKS", "PLANS", "LIKES", "DISLIKES", "PREFERS", "ENJOYED", "IS_A", "IS_FROM", "LOST", "STARTED"})

_NEGATED = re.compile(r"(?:\bnot|n['’]t|\bnever|\bno longer|\bwithout)\s(?:\w+\s){0,2}$", re.IGNORECASE)
_DO_NOT = re.compile(r"(?:don't|doesn't)\s", re.IGNORECASE)
_NO_LONGER = re.compile(r"\bno more\b|\bany ?more\b|\bany longer\b", re.IGNORECASE)
_AHEAD = (
    r"\b(?:will|would|might|(?<!in )(?-i:may)|could|going to|gonna|want(?:s|ed)? to|plan(?:s|ning)? (?:to|on)|"
    r"hop(?:e|es|ing) to|thinking (?:of|about)|considering|if|should|like to|love to|try(?:ing)? to|about to|dream of|"
    r"let's"
)
_PLANNED = re.compile(rf"(?:{_AHEAD}|to)|['’]ll|['’]d)\s(?:\w+\s){{0,1}}$", re.IGNORECASE)
# "I had to quit" is an end, "I want to quit" is not.
_END_PLANNED = re.compile(rf"(?:{_AHEAD})|['’]ll)\s(?:\w+\s){{0,1}}$", re.IGNORECASE)
CLAUSE_START = re.compile(r"\b(?:and|but|or|so|then)\b|[,;:()]|\s[-–—]+\s|--")
_WISHES = frozenset({"PLANS", "LIKES", "PREFERS", "DISLIKES"})
PASSING = {
    "LIVES_IN": "STAYS_IN",
    "STAYS_IN": "STAYS_IN",
    "WORKS_AT": "TEMPORARILY_WORKS_AT",
    "WORKS_AS": "TEMPORARILY_WORKS_AS",
    "STUDIES_AT": "TEMPORARILY_STUDIES_AT",
}
"""The predicate of a temporary state, by the predicate of the lasting one."""
_CHINESE_BORDER = re.compile(r"[，,；;。！!？?：:\n]")
_JOINS = re.compile(r"and|but|or|so|then|yet|[;\n]", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'’-]*")
_NAMES_SUBJECT = frozenset("i we you he she they it there".split())
_SUBJECT_WORDS = 5
"""The most words between the start of a clause and its verb."""
_LONGEST_JOIN = 80
_FIRST_WORDS = re.compile(r"(?:[\s,;:，；：)）–—-]|(?:and|but|so|then|yet)\b)+", re.IGNORECASE)
"""Words at the start of a clause that join it to the previous one."""
_LEAD = 30
"""The most characters before the first clause that are quoted with it, as in "Sorry, I live in Bergen"."""
_CHINESE_LEAD = 6
_NO_VERB_AFTER = lexicon.DETERMINERS | frozenset("of for in on at with from by his her like".split())


def is_disclaimed(text: str, at: int) -> bool:
    """Return whether *text* denies the clause at index *at*: "Nobody lives here", "It's not true that I moved"."""
    text = text.replace("’", "'")
    ends = [0, *(end.end() for end in WORDS["is_over"].finditer(text))]
    begin = max(end for end in ends if end <= at)
    denial = WORDS["denies"].search(text, begin, next((end for end in ends if end > at), len(text)))
    return denial is not None and (denial["whole"] is not None or denial.start() <= at)


def interpret_verb(predicate: str, change: Change, text: str, verb: Span) -> tuple[str, Change] | None:
    """Return the predicate and the change that a verb states in its sentence, or None if it states no fact."""
    before, words = text[: verb[0]], text[slice(*verb)]
    if is_disclaimed(text, verb[0]) or _is_said_by_another(before):
        return None
    if _is_unreal(CLAUSE_START.split(before)[-1], words, wishes=predicate in _WISHES):
        return None
    if _is_denied(before, words, predicate):
        goes_on = change == "ends" and not _STATE_OF_PAST.match(words)  # "never left" continues, "never lived in" not
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
    """Return (predicate, change) of a negated verb: ("NOT_LIVES_IN", "is") for "doesn't live in".

    "no longer lives in" gives ("LIVES_IN", "ends"), and a partial negation such as "not only" gives None.
    """
    before, words = text[: verb[0]].replace("’", "'"), text[slice(*verb)].replace("’", "'")
    clause = WORDS["clause_end"].split(text[verb[0] :], maxsplit=1)[0]
    if re.search(r"\bno longer\s(?:\w+\s){0,2}$", before, re.IGNORECASE):
        return predicate, "ends"
    if not _DO_NOT.match(words) and not WORDS["not_now"].search(before):
        return None  # "not only", "not sure that"
    if _NO_LONGER.search(clause):
        return predicate, "ends"
    return None if WORDS["in_part"].search(text[verb[1] : verb[0] + len(clause)]) else (NOT + predicate, "is")


def _clause_around(text: str, verb: Span) -> str:
    """Return the text of the verb's clause, with a leading phrase of up to three words: "This week, I work at Acme"."""
    cuts = [0, *(cut.end() for cut in CLAUSE_START.finditer(text, 0, verb[0]))]
    start = cuts[-1]
    if len(cuts) > 1 and len(text[cuts[-2] : start].split()) <= 3:
        start = cuts[-2]
    end = WORDS["clause_end"].search(text, verb[1])
    return text[start : end.start() if end else len(text)]


def _is_unreal(lead: str, verb: str, *, wishes: bool = False) -> bool:
    """Return whether a verb is hypothetical or its action did not happen: "if I moved", "I almost moved"."""
    plain = lead.replace("’", "'")
    begun = verb.replace("’", "'").casefold()
    if WORDS["not_done"].search(plain + " ".join(begun.split()[: 2 if begun.startswith(("have ", "'ve ")) else 1])):
        return True
    if WORDS["supposed"].search(plain) or wishes:
        return WORDS["supposed"].search(plain) is not None
    return _WOULD.search(plain) is not None or (_WOULD_OR_HAD.search(plain) is not None and not is_past(verb))


def _is_said_by_another(before: str) -> bool:
    said = WORDS["says_of_speaker"].search(before)
    return said is not None and _SPEAKER.search(before[: said.start()]) is None


def is_unreal_chinese(text: str, verb: Span) -> bool:
    """Return whether the Chinese *verb* in *text* is denied, hypothetical, or said by others about the speaker."""
    before, after = text[: verb[0]], text[verb[1] :]
    if is_disclaimed(text, verb[0]) or WORDS["says_of_speaker_chinese"].search(before):
        return True
    return _SUPPOSED_CHINESE.search(before) is not None or re.match(r"[^，。；]{0,12}的话", after) is not None


def _is_denied(before: str, verb: str, predicate: str) -> bool:
    """Return whether a verb never happened: True for "I've never used it", but False for "I never use it"."""
    plain = before.replace("’", "'")
    if predicate in _FEELS:
        return False
    return WORDS["never_perfect"].search(plain) is not None or (_NEVER_PAST.search(plain) is not None and is_past(verb))


def is_denied_chinese(before: str) -> bool:
    """Return whether *before*, the text before a Chinese verb, says that it never happened: 我从来没有 (I never)."""
    return _NEVER_CHINESE.search(before) is not None


def is_past(verb: str) -> bool:
    """Return whether the first word of *verb* is in the past tense."""
    first = "".join(verb.casefold().split()[:1])
    irregular = first in lexicon.IRREGULAR and not first.endswith("ing")
    return irregular or first.endswith("ed") or first in ("been", "read")


def passes(words: str) -> bool:
    """Return whether *words* limit a state to a short time: "for two weeks", "this summer"."""
    plain = words.replace("’", "'")
    if WORDS["passes"].search(plain):
        return True
    return WORDS["for_a_time"].search(plain) is not None and WORDS["begins"].search(plain) is None


# The clause of a verb, and its dates.


def find_clause_dates(text: str, verb: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[DateMention]:
    """Return the *dates* in the clause of *verb*, which may be the dates of the fact stated there."""
    own = [clause for clause in _clauses(text, verbs, dates) if clause[0] < verb[1] and verb[0] < clause[1]]
    return [date for date in dates if any(start <= date.start < end for start, end in own)]


def find_clause(text: str, verb: Span, verbs: Sequence[Span], dates: Sequence[DateMention] = ()) -> Span:
    """Return the position of the clause of *verb* in *text*, to quote it; *verbs* has the positions of all verbs."""
    clauses = _clauses(text, verbs, dates)
    start, end = next(((start, end) for start, end in clauses if start <= verb[0] < end), clauses[0])
    short = start <= (_CHINESE_LEAD if is_chinese(text) else _LEAD)
    if short and not any(begin < start for begin, _ in verbs) and _is_lead(text[:start]):
        start = 0
    if end < len(text):
        ending = text[max(end - _LONGEST_JOIN, 0) : end]
        end -= len(ending) - len(WORDS["last_words"].sub("", ending))
    joins = _FIRST_WORDS.match(text, start, end)
    start = joins.end() if joins and joins.end() <= verb[0] else start
    return start, max(end, verb[1])


def with_clauses(
    statements: Sequence[TextStatement], sentence: Sentence, dates: Sequence[DateMention] = ()
) -> list[TextStatement]:
    """Set the clause of each of *statements*, which *sentence* states by a verb; *dates* are those in the sentence."""
    start, placed = sentence.start, []
    verbs = [(one.verb[0] - start, one.verb[1] - start) for one in statements if one.verb]
    for statement, verb in zip(statements, verbs, strict=True):
        begin, end = find_clause(sentence.text, verb, verbs, dates)
        placed.append(replace(statement, clause=(begin + start, max(end + start, statement.objects[0].end))))
    return placed


def _is_lead(words: str) -> bool:
    """Return whether a quote of a clause should include *words*, which precede the clause."""
    if WORDS["corrects"].search(words):
        return True
    lows = {word.replace("’", "'") for word in _WORD.findall(words)}
    return lows.isdisjoint(lexicon.AUXILIARIES | lexicon.VERB_FORMS)


def _clauses(text: str, verbs: Sequence[Span], dates: Sequence[DateMention]) -> list[Span]:
    """Return (start, end) of each clause of *text*; no clause ends inside one of *verbs* or *dates*."""
    chinese = is_chinese(text)
    border = _CHINESE_BORDER if chinese else WORDS["border"]
    outside = (token for token in border.finditer(text) if not _is_in_date(dates, token.start()))
    tokens = [token for token in outside if not any(start < token.start() < end for start, end in verbs)]
    starts: list[tuple[int, bool]] = [(0, True)]
    joins = chinese
    for place, token in enumerate(tokens):
        stop = tokens[place + 1].start() if place + 1 < len(tokens) else len(text)
        joins = joins or _JOINS.fullmatch(token[0]) is not None
        if stop - token.end() < 2 and not chinese:
            continue  # ", and" is one border
        after = (token.end(), stop)
        dated = _has_date(dates, *after) and _is_bare(text, after, dates)
        if chinese or dated or token[0] in ";\n" or _begins_clause(text, after, verbs, dates):
            starts.append((token.end(), joins))
        joins = chinese
    return _merge_date_clauses(text, starts, dates)


def _merge_date_clauses(text: str, starts: Sequence[tuple[int, bool]], dates: Sequence[DateMention]) -> list[Span]:
    """Return the clauses of *text* after merging those that are only a date with a neighbour."""
    clauses: list[Span] = []
    opening: int | None = None
    for place, (start, joins) in enumerate(starts):
        end = starts[place + 1][0] if place + 1 < len(starts) else len(text)
        if _has_date(dates, start, end) and _is_bare(text, (start, end), dates):
            if joins and end < len(text):
                opening = start if opening is None else opening
            elif clauses:
                clauses[-1] = (clauses[-1][0], end)
            continue
        clauses.append((start if opening is None else opening, end))
        opening = None
    return clauses


def _begins_clause(text: str, span: Span, verbs: Sequence[Span], dates: Sequence[DateMention]) -> bool:
    """Return whether the words at *span* in *text* begin a clause, because they contain a verb.

    *verbs* and *dates* are those in *text*.
    """
    place, previous = 0, ""
    for match in _WORD.finditer(text, *span):
        if _is_in_date(dates, match.start()):
            continue
        word = match[0].casefold().replace("’", "'")
        if word.split("'")[0] in _NAMES_SUBJECT or any(start <= match.start() < end for start, end in verbs):
            return True
        if word in lexicon.BE or word in ("has", "have", "had", "born"):
            return True
        if word == "to":
            break  # an infinitive does not start a clause
        if _is_verb(word, previous if place else "") and previous not in _NO_VERB_AFTER:
            return True
        place, previous = place + 1, word if match[0].islower() else f"{word}s"
        if place > _SUBJECT_WORDS:
            break
    return False


def _is_verb(word: str, noun: str) -> bool:
    """Return whether *word* can be the verb of a clause; *noun* is the subject before it, or ""."""
    if word not in lexicon.VERB_FORMS or word.endswith("ing"):
        return False
    return word.endswith("ed") or word in lexicon.IRREGULAR or (bool(noun) and _agrees(noun, word))


def _agrees(noun: str, verb: str) -> bool:
    """Return whether *noun* and *verb* agree, so that only one ends in "s": "friends help" and "a friend helps"."""
    return noun.endswith("s") != (verb.endswith("s") and not verb.endswith("ss"))


def _is_bare(text: str, span: Span, dates: Sequence[DateMention]) -> bool:
    """Return whether the words at *span* in *text* are only dates and function words: "and in June 2019"."""
    kept = list(text[span[0] : span[1]])
    for date in dates:
        for at in range(max(date.start, span[0]), min(date.end, span[1])):
            kept[at - span[0]] = " "
    rest = "".join(kept)
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(rest)]
    light = all(word in lexicon.FUNCTION or word in lexicon.AUXILIARIES or word.endswith("ly") for word in words)
    return light and not re.search(r"[\u4e00-\u9fff]", rest)


def _has_date(dates: Sequence[DateMention], start: int, end: int) -> bool:
    return any(start <= date.start < end for date in dates)


def _is_in_date(dates: Sequence[DateMention], at: int) -> bool:
    return any(date.start <= at < date.end for date in dates)
