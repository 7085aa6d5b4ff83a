"""Whether the clause that a claim is read from is about its subject, and tells it as so.

"My sister moved to Oslo" tells nothing of who says it, and "if I moved to Oslo" no move. English only. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from kg_memory.text.passage import LIGHT, Claim, Passage
from kg_memory.text.tokenise import terms
from kg_memory.text.verbs import IRREGULAR
from kg_memory.text.word_match import LISTS, WORD, Words, to_key

OTHER_SUBJECT, OTHER_MOOD = 0.4, 0.45
"""The ratings of a claim about another one than its clause, and of one that its clause does not tell as so."""
_REACH = 300
"""The characters around a span in which the ends of its sentences are looked for."""
_MOST_CLAUSES = 8
_SENTENCE = re.compile(r"(?:[.!?\n]|[\u2600-\u27bf\U0001f300-\U0001faff])+[\s\"'”’)]*")
_CLAUSE_END = re.compile(
    r"[;:()\u2013\u2014]|\s-+\s|,"
    r"|\b(?:and|but|so|because|since|though|although|while|whereas|that|who|which|until|when|where)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"[;:()\u2013\u2014]|\s-+\s|,|\b(?:but|so|because|since|though|although|while|whereas)\b", re.IGNORECASE
)
_TAG = re.compile(r",\s*(?:right|huh|eh|no|yes|(?:is|are|was|do|does|did|has|have|ca|wo)n't \w+)\s*\?", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:^|[,;:\u2013\u2014]|\b(?:and|so|but|or|hey|oh|wait|wow)\b)\s*"
    r"(?:do|does|did|is|are|was|were|has|have|had|will|would|can|could|should|wanna|who)(?:n't)?\s",
    re.IGNORECASE,
)
_ALONE = frozenset("i i'm i've i'd i'll im".split())
_FIRST = _ALONE | frozenset("we we're we've we'd we'll".split())
_THEIR = frozenset("her his their your".split())
_OWNED = re.compile(r"(\w+)'s (?:\w+ )?(\w+)\b")
_WITH = re.compile(r"\bwith (?:my|our)\b", re.IGNORECASE)
_OBJECT_FIRST = frozenset("me my mine myself".split())
_OUR = frozenset("we we're we've we'd we'll us our ours".split())
_SUBJECTS = frozenset(
    """you you're you've you'd you'll y'all he he's he'd he'll she she's she'd she'll they they're they've they'd
    they'll""".split()
)
_OTHERS = _SUBJECTS | frozenset("your yours who who's him his her hers them their theirs".split())
_ARTICLES = frozenset("a an the my our your his her their this that some one".split())
_FORMS = dict(pair.split(":") for pair in LISTS["verb_forms"].split())
_PERSONS, _HELPERS = frozenset(LISTS["persons"].split()), frozenset(LISTS["helpers"].split())
_AUXILIARIES = frozenset(
    """am is are was were be been being has have had do does did will would can could may might shall should must
    not""".split()
)
_ADVERBS = frozenset(
    "just also still really never always now finally already even not only actually both all ever once".split()
)
_MARKED = re.compile(
    r"\b(?:if|unless|whether|might|(?-i:may)|maybe|perhaps|would|could|should|will|gonna|going to|wants?|wanna"
    r"|wish(?:es)?|hop(?:e|es|ing) (?:to|for|that)|plan(?:s|ning)? (?:to|on)|intend(?:s|ing)?|thinking (?:of|about)"
    r"|consider(?:s|ing)?|dream(?:s|ing)? of|almost|nearly|(?:was|were) going to"
    r"|(?:supposed|about|trying|looking|tempted) to)\b"
    r"|\b(?:i|you|he|she|it|we|they|that)'ll\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:if|unless|might|(?-i:may)|maybe|perhaps|would|could|should|will|shall|won't|going to|about to|due|next|until"
    r"|almost|nearly|apparently|(?:is|are|was|were) to|when|as soon as|once|has to|have to|tr(?:y|ies|ied|ying) to"
    r"|(?:want|wish|hop|plan|intend|think|thought|consider|dream|suggest|propos|ask|wonder|offer|expect|promis"
    r"|agre|need|must|look|decid|invit|prefer|like|lov|mean|meant|hesitat|toy|aim|schedul)\w*)\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:tomorrow|tonight|soon|next (?:week|month|year|summer|spring|fall|autumn|winter)|later this)\b", re.IGNORECASE
)
_PAST = re.compile(rf"\b(?:\w+ed|was|were|had|used|{'|'.join(IRREGULAR)})\b", re.IGNORECASE)
_USED_TO = re.compile(r"\bused to\b", re.IGNORECASE)
_BE = frozenset("am is are was were be been being gets got i'm he's she's it's they're you're we're".split())
_PARTICIPLE = re.compile(r"\w+(?:ed|en|[td])$", re.IGNORECASE)


class Clause(NamedTuple):
    """A clause with a word that a claim shares with it.

    The words are those of its sentence, of which the clause's begin at `begin` and the shared one stands at `place`;
    `before` is the text up to there, from where no "and" but another word joins it.
    """

    sentence: str
    words: Sequence[str]
    begin: int
    place: int
    before: str
    passive: bool
    is_first: bool


def rate_subject(claim: Claim, clauses: Sequence[Clause], passage: Passage) -> float:
    """Return whether one of the clauses may be about the subject of the claim, where that is a person."""
    subject = _Subject.of(claim, passage)
    if not clauses or not passage.speaker or not subject.is_person:
        return 1.0
    if not subject.is_speaker and "\n" in passage.content:
        return 1.0  # a letter in it may be another one's
    if _has_other_owner(claim, clauses[0], passage):
        return OTHER_SUBJECT
    return 1.0 if any(_may_be_about(clause, claim, subject) for clause in clauses) else OTHER_SUBJECT


def rate_mood(claim: Claim, clauses: Sequence[Clause]) -> float:
    """Return whether one of the clauses tells the claim as so, where the claim does."""
    if claim.kind == "plan" or _OPEN.search(claim.sentence):
        return 1.0
    is_past = claim.kind == "event" and _PAST.search(claim.sentence) is not None
    is_present = claim.kind == "state" and not is_past and not _PAST.search(claim.sentence)
    is_open = all(
        (clause.is_first and _is_open(clause))
        or (is_past and _FUTURE.search(clause.sentence))
        or (is_present and clause.is_first and _USED_TO.search(clause.before))
        for clause in clauses
    )
    return OTHER_MOOD if clauses and is_open else 1.0


def find_clauses(claim: Claim, span: tuple[int, int], content: str) -> Iterator[Clause]:
    """Yield the clauses of *content* in which the first word stands that the claim shares with the span."""
    start, text = _widen(span, content)
    own = {to_key(word) for names in claim.names[:1] for name in names for word in WORD.findall(name)}
    places = [(match[0], match.start()) for match in WORD.finditer(text)]
    inside = range(span[0] - start, span[1] - start)
    told, is_first = WORD.findall(claim.sentence), True
    for place, word in enumerate(told):
        key = _lemma(word)
        is_date = word[0].isupper() and key in LIGHT
        if is_date or to_key(word) in own or word.casefold() in _HELPERS or not terms(word):
            continue
        shared = [at for other, at in places if at in inside and _lemma(other) == key]
        if shared:
            passive = _is_passive(told, place)
            yield from (_to_clause(text, at, passive=passive, is_first=is_first) for at in shared[:_MOST_CLAUSES])
            return
        is_first = False


def _widen(span: tuple[int, int], content: str) -> tuple[int, str]:
    """Return where the sentences of the span start, and their text."""
    first, last = max(span[0] - _REACH, 0), min(span[1] + _REACH, len(content))
    starts = [match.end() for match in _SENTENCE.finditer(content, first, span[0])]
    end = _SENTENCE.search(content, max(span[1] - 1, span[0]), last)
    start = starts[-1] if starts else first
    return start, content[start : end.end() if end else last].replace("’", "'")


def _is_passive(words: Sequence[str], place: int) -> bool:
    before = [word.casefold() for word in words[max(place - 3, 0) : place] if not word.endswith("ly")]
    is_led = bool(before) and before[-1] in _BE and _PARTICIPLE.match(words[place]) is not None
    return is_led or words[place + 1 : place + 2] == ["by"]


def _to_clause(text: str, at: int, *, passive: bool, is_first: bool) -> Clause:
    start = max((match.end() for match in _SENTENCE.finditer(text, 0, at)), default=0)
    end = _SENTENCE.search(text, at)
    sentence, at = text[start : end.end() if end else len(text)], at - start
    begin = max((match.end() for match in _CLAUSE_END.finditer(sentence, 0, at)), default=0)
    words = [(match[0], match.start()) for match in WORD.finditer(sentence)]
    joined = max((match.end() for match in _BREAK.finditer(sentence, 0, at)), default=0)
    places = [where for _, where in words]
    told, place = [word for word, _ in words], bisect_left(places, at)
    passive = passive or _is_passive(told, place)
    return Clause(sentence, told, bisect_left(places, begin), place, sentence[joined:at], passive, is_first)


@lru_cache(maxsize=16_384)
def _lemma(word: str) -> str:
    return to_key(_FORMS.get(word.casefold()) or IRREGULAR.get(word.upper(), word))


# Who


class _Subject(NamedTuple):
    """The subject of a claim: the keys of its names, and whether it is a person, writes the message, or takes part."""

    keys: frozenset[str]
    is_person: bool
    is_speaker: bool
    takes_part: bool

    @classmethod
    def of(cls, claim: Claim, passage: Passage) -> _Subject:
        names = [name for name in (claim.names[0] if claim.names else ()) if WORD.search(name)]
        parts, spoken = WORD.findall(passage.speaker), Words(passage.speaker)
        first = next(iter(WORD.findall(claim.sentence)), "")
        keys = frozenset(to_key(word) for name in names for word in WORD.findall(name))
        is_speaker = (to_key(first) not in keys and first in parts) or any(
            all(map(spoken.names, WORD.findall(name))) or all(map(Words(name).names, parts))
            for name in names
            if "'" not in name
        )
        takes_part = any(all(map(passage.speakers.names, WORD.findall(name))) for name in names)
        kind = next(iter(claim.types), "").casefold()
        return cls(keys, is_speaker or takes_part or kind == "person", is_speaker, takes_part)


def _has_other_owner(claim: Claim, clause: Clause, passage: Passage) -> bool:
    """Return whether "Ann's brother" is one of others in the clause: "her brother", where Ann says it."""
    owned = _OWNED.match(claim.sentence.replace("’", "'"))
    if owned is None or owned[2].casefold() not in _PERSONS:
        return False
    is_own = owned[1] in WORD.findall(passage.speaker)
    owners = set(map(str.casefold, re.findall(rf"([\w']+) {owned[2]}\b", clause.sentence)))
    return bool(owners) and owners <= (_THEIR if is_own else {"my", "our"})


def _may_be_about(clause: Clause, claim: Claim, subject: _Subject) -> bool:
    told = Words(claim.sentence)
    doers = [] if clause.passive or not clause.is_first else _find_doers(clause, claim)
    if doers:
        is_joined = not subject.is_speaker and _WITH.search(clause.sentence) is not None
        return is_joined or any(_is_doer(doer, subject, told) for doer in doers)
    if any(to_key(word.removesuffix("'s")) in subject.keys for word in clause.words):
        return True
    words = list(map(str.casefold, clause.words))
    before = words[clause.begin : clause.place] if subject.is_speaker else words
    persons = [word.removesuffix("'s") for place, word in enumerate(before) if _is_person(before, place)]
    spoken = set(words)
    if subject.is_speaker:
        if not spoken.isdisjoint(_FIRST | {"me", "us", "mine"}) or not (persons or spoken.isdisjoint({"my", "our"})):
            return True
        return all(told.has(to_key(word)) for word in persons) and (not clause.is_first or _SUBJECTS.isdisjoint(before))
    is_first = not spoken.isdisjoint(_ALONE | _OBJECT_FIRST)
    is_kin = bool(persons) and not subject.takes_part
    return not is_first or is_kin or not spoken.isdisjoint(_OTHERS | _OUR)


def _find_doers(clause: Clause, claim: Claim) -> list[str]:
    """Return the words for who does what the shared word tells, if it follows on them: "Ann and I", "my sister"."""
    words, place = clause.words, clause.place - 1
    while place >= 0 and (words[place].casefold() in _ADVERBS | _AUXILIARIES or words[place].endswith(("ly", "n't"))):
        if words[place].casefold() in _SUBJECTS:
            break
        place -= 1
    if place > 1 and words[place - 1 : place + 1] == ["of", "mine"]:
        place -= 2
    if place < clause.begin:
        return []
    word = words[place].casefold()
    is_name = words[place][0].isupper() and bool(terms(word)) and to_key(word) not in LIGHT
    is_name = is_name and (place > 0 or any(words[0] in WORD.findall(name) for names in claim.names for name in names))
    if not (is_name or word in _FIRST | _SUBJECTS or _is_person(list(map(str.casefold, words)), place)):
        return []
    joined = place > 1 and words[place - 1].casefold() == "and"
    return [words[place], words[place - 2]] if joined else [" ".join(words[max(place - 1, 0) : place + 1])]


def _is_doer(doer: str, subject: _Subject, told: Words) -> bool:
    owner, _, word = doer.casefold().rpartition(" ")
    if word in _FIRST:
        return subject.is_speaker or word not in _ALONE
    if word in _SUBJECTS:
        return not subject.is_speaker
    is_owned = subject.takes_part or subject.is_speaker or (owner.endswith("'s") and to_key(owner) in subject.keys)
    is_kin = word in _PERSONS and (not is_owned or told.has(to_key(word)))
    return to_key(word.removesuffix("'s")) in subject.keys or is_kin


def _is_person(words: Sequence[str], place: int) -> bool:
    """Return whether a word stands for a person by what they are to another: "my sister"."""
    near = words[max(place - 3, 0) : place]
    is_led = not _ARTICLES.isdisjoint(near) or any(word.endswith("'s") for word in near)
    return is_led and words[place].removesuffix("'s") in _PERSONS


# Whether


def _is_open(clause: Clause) -> bool:
    """Return whether a clause asks, or tells what may be, would be or is still to be."""
    if clause.sentence.rstrip(" \"')”").endswith("?") and not _TAG.search(clause.sentence):
        until = " ".join(clause.words[: clause.place]) + " "
        if _ASKS.search(until):
            return True
    marked = list(_MARKED.finditer(clause.before))
    if not marked:
        return False
    after = list(map(str.casefold, WORD.findall(clause.before[marked[-1].end() :])))
    return marked[-1][0].casefold() in ("if", "unless", "whether", "maybe", "perhaps", "wish") or not any(
        word in _FIRST | _SUBJECTS or _is_person(after, place) for place, word in enumerate(after)
    )
