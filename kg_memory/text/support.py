"""Measure how well the words that a fact is quoted from support it, by code.

A reader may work out what a pronoun stands for and when "last week" was, and tells things in its own words. It may not
bring names, numbers and dates of its own, tell what no word of its source tells, or drop a "not". What cannot be
checked, such as words of a language without a list here, counts as supported. Pure; takes time in proportion to the
texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat
from math import prod
from typing import NamedTuple

from kg_memory.text.passage import LIGHT, Claim, Passage, characters_of, language_of, matter_of, proper_words
from kg_memory.text.support_chinese import find_clause, is_about_other, is_open
from kg_memory.text.support_clauses import OTHER_MOOD, OTHER_SUBJECT, find_clauses, rate_mood, rate_subject
from kg_memory.text.support_dates import is_time_told
from kg_memory.text.support_denials import rate_denials
from kg_memory.text.support_objects import rate_objects
from kg_memory.text.tokenise import terms
from kg_memory.text.word_match import HAN, LISTS, SAME_MEANING, WORD, Words, read_numbers, to_key

NO_SPAN = "its quote is not in the message"
NO_NAME = "a name in it is in neither the message nor those before it"
NO_PARTICULAR = "a name or a number in its sentence is not in the message"
NO_TIME = "its time is not told"
NO_MATTER = "its words are not those of the message"
SUBJECT = "its subject is another one"
OBJECT = "its words have something else in the place of a name"
MOOD = "its words do not tell it as so"
DENIAL = "one of the two denies it"
_REFERS_CHINESE = {"person": re.compile("[他她其你您们]"), "": re.compile("[它这那此其]")}
_DATE_NUMBER = re.compile(
    r"(\d{4}-\d\d(?:-\d\d)?)(?!\d)|((?:19|20)\d\d)(?!\d)"
    r"|(\d{1,2})(?:st|nd|rd|th)?\s(?=(?:of\s)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))"
    r"|\b([0-9]{1,2}[:.][0-9]{2})\b|([0-9]{1,2})\s?(?=[ap]\.?m\b)"
    r"|([0-9]{1,4})(?=[\u5e74\u6708\u65e5\u53f7\u70b9\u65f6])",
    re.IGNORECASE,
)


class Support(NamedTuple):
    """The degree to which a claim is supported, from 0 to 1, and the `span` of the content that does it.

    `reason` is what lacks most. The span `is_exact` where the whole quote stands there.
    """

    score: float
    span: tuple[int, int] | None
    reason: str = ""
    is_exact: bool = False


def measure_support(claim: Claim, passage: Passage) -> Support:
    """Return how well the quote of *claim*, and what was read with it, support it."""
    span, share = find_span(claim.quote, passage.content)
    source = Words(passage.content[slice(*span)]) if span else passage.words
    factors = [(1.0, ""), (share, NO_SPAN), (_rate_names(claim, source, passage), NO_NAME)]
    factors += (
        (_rate_particulars(claim, source, passage), NO_PARTICULAR),
        (_rate_times(claim, source, passage), NO_TIME),
    )
    if passage.language and not passage.is_record and language_of(claim.sentence) == passage.language:
        factors += ((_rate_matter(claim, source, passage), NO_MATTER), (rate_denials(claim, source, passage), DENIAL))
        factors += ((rate_objects(claim, source, passage), OBJECT), *_rate_clauses(claim, span, passage))
    score = prod(factor for factor, _ in factors)
    return Support(round(score, 3), span, min(factors)[1], span is not None and share == 1.0)


def _rate_clauses(claim: Claim, span: tuple[int, int] | None, passage: Passage) -> list[tuple[float, str]]:
    """Return whether the clause of the claim is about its subject, and tells it as so."""
    if span is None:
        return []
    if passage.language == "chinese":
        clause = find_clause(claim, span, passage.content)
        return [
            (OTHER_SUBJECT if is_about_other(claim, clause, passage) else 1.0, SUBJECT),
            (OTHER_MOOD if is_open(claim, clause) else 1.0, MOOD),
        ]
    clauses = list(find_clauses(claim, span, passage.content))
    return [(rate_subject(claim, clauses, passage), SUBJECT), (rate_mood(claim, clauses), MOOD)]


# The span


def find_span(quote: str, content: str) -> tuple[tuple[int, int] | None, float]:
    """Return where *quote*, or most of its words, stands in *content*, and the share of the quote that stands there."""
    exact = locate(quote, content)
    if exact is not None:
        return exact, 1.0
    spans = [(to_key(match[0]), match.start(), match.end()) for match in _UNIT.finditer(content)]
    needed = Counter(to_key(match[0]) for match in _UNIT.finditer(quote))
    most = needed.total()
    if not most:
        return None, _WITHOUT_SPAN
    width, inside, hits, best = most + most // 2 + 2, Counter[str](), 0, (0, 0)
    for place, (key, _, _) in enumerate(spans):
        inside[key] += 1
        hits += inside[key] <= needed[key]
        if place >= width:
            old = spans[place - width][0]
            hits -= inside[old] <= needed[old]
            inside[old] -= 1
        best = max(best, (hits, -place))
    share, place = best[0] / most, -best[1]
    if share < _MOST_WORDS:
        return None, _WITHOUT_SPAN
    within = [span for span in spans[max(place - width + 1, 0) : place + 1] if span[0] in needed]
    return (within[0][1], within[-1][2]), share


def locate(quote: str, content: str) -> tuple[int, int] | None:
    """Return the place of *quote* in *content*, ignoring case and spaces."""
    quote = quote.strip()
    if not quote:
        return None
    start = content.find(quote)
    if start >= 0:
        return start, start + len(quote)
    if " ".join(quote.casefold().split()) not in " ".join(content.casefold().split()):
        return None  # at once: the search below may take the product of both lengths
    match = re.search(r"\s+".join(map(re.escape, quote.split())), content, re.IGNORECASE)
    return match.span() if match else None


# Names and numbers


def _rate_names(claim: Claim, source: Words, passage: Passage) -> float:
    """Return how far each of the entities is named, or referred to."""
    types = chain(claim.types, repeat(""))
    least = 1.0
    for names, kind in zip(claim.names, types, strict=False):
        ratings = (_rate_name(name, kind.casefold(), claim, source, passage) for name in names)
        least = min(least, max(ratings, default=1.0))
    return least


def _rate_name(name: str, kind: str, claim: Claim, source: Words, passage: Passage) -> float:
    words, is_in = list(proper_words(name)), _is_named if kind in _NAMED_TYPES else _is_nearly_named
    if not words:
        if not passage.language:
            return 1.0
        words, is_in = [word for word in WORD.findall(name) if terms(word) and not word.isdecimal()], _is_told
    if not words:
        return 1.0
    here = sum(is_in(word, passage.words) for word in words) / len(words)
    if is_in is _is_told and here:
        return 1.0
    before = sum(is_in(word, passage.words) or is_in(word, passage.context) for word in words) / len(words)
    if here == 1.0 or all(is_in(word, passage.speakers) or is_in(word, passage.words) for word in words):
        return 1.0
    if before < 1.0 and here < 0.5:
        return _PART_OF_NAME if before >= 0.5 else (_NO_NAME if passage.language else 1.0)
    if not any(is_in(word, Words(claim.sentence)) for word in words):
        return 1.0  # the sentence calls it otherwise
    common = (key for key in map(to_key, WORD.findall(name)) if terms(key) and key not in set(map(to_key, words)))
    is_meant = here >= 0.5 or any(key in source.keys for key in common)
    is_meant = is_meant or (is_in is _is_told and passage.language == "english" and not _unused(claim, source))
    return 1.0 if is_meant or _refers_back(words, kind, claim, source, passage) else _NAMED_BEFORE


def _is_nearly_named(word: str, words: Words) -> bool:
    """Return whether a name is in *words*, or half the characters of one that a reader may have made up: 戒烟, 抽烟."""
    characters = HAN.findall(word)
    return _is_named(word, words) or (
        bool(characters) and 2 * sum(char in words.han for char in characters) >= len(word)
    )


def _is_told(word: str, words: Words) -> bool:
    return words.has(to_key(word)) or words.names(word)


def _refers_back(words: Sequence[str], kind: str, claim: Claim, source: Words, passage: Passage) -> bool:
    """Return whether the span may speak of what only an earlier text names, and names nothing else instead."""
    last = Words(passage.previous[-1][0] if passage.previous else "")
    if passage.language == "chinese" and passage.answers and kind != "person":
        last = Words(passage.asked)
    is_last = all(_is_named(word, last) or _is_told(word, last) for word in words)
    follows = is_last and (passage.answers or len(passage.content) < _SHORT)
    if passage.language == "chinese":
        return follows or bool(_REFERS_CHINESE["person" if kind == "person" else ""].search(source.text))
    spoken = {word.casefold().partition("'")[0] for word in WORD.findall(source.text.replace("’", "'"))}
    group = kind in _GROUP_TYPES and not _WE.isdisjoint(map(str.casefold, passage.words.words))
    pronouns = _PRONOUNS.get(kind, _THING_PRONOUNS)
    if kind not in _PRONOUNS and kind not in _GROUP_TYPES and not words[-1].endswith("s"):
        pronouns -= _PLURAL
    if not (follows or group or not spoken.isdisjoint(pronouns)):
        return False
    return _unused(claim, source) <= _UNUSED


def _unused(claim: Claim, source: Words) -> int:
    """Return how many words of the span the sentence leaves out; a name counts as several."""
    sentence = Words(claim.sentence)
    names = (word for word in source.words[1:] if not word.islower() and to_key(word) not in LIGHT and terms(word))
    if any(not sentence.names(word) for word in names):
        return 1 + _UNUSED
    return sum(not sentence.has(key) for key in matter_of(source, claim))


def _is_named(word: str, words: Words) -> bool:
    if words.names(word):
        return True
    characters = HAN.findall(word)
    return bool(characters) and sum(char in words.han for char in characters) >= _SAME_HAN * len(characters)


def _rate_particulars(claim: Claim, source: Words, passage: Passage) -> float:
    """Return how far the names and numbers of the sentence are those of its source."""
    sentence = Words(claim.sentence)
    times = read_numbers(f"{claim.begin or ''} {claim.end or ''}")
    dates = _DATE_NUMBER.findall(claim.sentence)
    dated = read_numbers(" ".join(chain.from_iterable(dates)))
    names = read_numbers(" ".join(chain.from_iterable(claim.names)))
    others = read_numbers(_DATE_NUMBER.sub(" ", claim.sentence)) - _SMALL
    strange = set[str]((dated - passage.numbers - times) | (others - passage.told_numbers))
    beside = read_numbers(_DATE_NUMBER.sub(" ", source.text)) - _SMALL - sentence.numbers
    strange |= others - source.numbers - names if beside else set()
    rating = _NO_NUMBER if strange else 1.0
    if passage.language != "english":
        return rating
    own = {to_key(word) for name in chain.from_iterable(claim.names) for word in WORD.findall(name)}
    for word in sentence.words[1:]:
        is_name = word[0].isupper() and to_key(word) not in own | LIGHT and word.casefold() not in LIGHT
        if is_name and not passage.words.names(word) and not passage.context.names(word):
            return min(rating, _NO_CAPITAL)
    return rating


def _rate_times(claim: Claim, source: Words, passage: Passage) -> float:
    if not passage.language:
        return 1.0
    told = (is_time_told(time, passage.at, passage.times_by(source.text)) for time in (claim.begin, claim.end))
    return 1.0 if all(told) else _TIME_NOT_TOLD


# Words


def _rate_matter(claim: Claim, source: Words, passage: Passage) -> float:
    """Return how far the words of the sentence are those of the span, of the message, or of those before it."""
    sentence = Words(claim.sentence)
    ratings = [_rate_key(key, source, passage) for key in matter_of(sentence, claim)]
    ratings += [_rate_character(char, source, passage) for char in characters_of(sentence, claim)]
    if not ratings:
        return 1.0
    rating = min(1.0, _LEAST_MATTER + sum(ratings) / len(ratings) * _MATTER_SLOPE)
    verbs = [to_key(word) for word in claim.predicate.casefold().split("_")]
    first = next((verb for verb in verbs if terms(verb) and verb not in LIGHT), "")
    if first not in sentence.keys or first in _PLAIN_VERBS or _tells_verb(first, source, passage):
        return rating
    return rating * (_VERB_NOT_TOLD if sum(ratings) < 0.6 * len(ratings) else _VERB_IMPLIED)


def _tells_verb(verb: str, source: Words, passage: Passage) -> bool:
    """Return whether the span has the verb, or one that tells the same; elsewhere it must be the verb itself."""
    return source.has(verb) or max(passage.words.rate(verb), passage.context.rate(verb)) > SAME_MEANING


def _has(passage: Passage, key: str) -> bool:
    return passage.words.has(key) or passage.context.has(key)


def _rate_key(key: str, source: Words, passage: Passage) -> float:
    return max(source.rate(key), _IN_MESSAGE * passage.words.rate(key), _IN_CONTEXT * passage.context.rate(key))


def _rate_character(char: str, source: Words, passage: Passage) -> float:
    if source.has_character(char):
        return 1.0
    if passage.words.has_character(char):
        return _IN_MESSAGE
    return _IN_CONTEXT if passage.context.has_character(char) else 0.0


_UNIT = re.compile(rf"{HAN.pattern}|[^\W_]+?(?={HAN.pattern})|[^\W_]+(?:['’][^\W_]+)*")
_PERSON_PRONOUNS = frozenset("he him his she her hers they them their theirs who whom whose you your one".split())
_PRONOUNS = {
    "person": _PERSON_PRONOUNS,
    "place": frozenset("there here where home".split()),
    "pet": _PERSON_PRONOUNS | {"it", "its"},
}
_THING_PRONOUNS = frozenset(
    "it its it's that this these those there here one ones they them which same such so both".split()
)
_PLURAL = frozenset("they them these those ones both".split())
_PLAIN_VERBS = frozenset(map(to_key, LISTS["plain_verbs"].split()))
_NAMED_TYPES = frozenset("person place organization organisation pet".split())
_GROUP_TYPES = frozenset("organization organisation group team company".split())
_WE = frozenset("we our us ours we're we've we'll your you".split())
_SMALL = frozenset(("0", "1", "2"))
_SAME_HAN, _SHORT, _UNUSED = 0.7, 60, 1
_MOST_WORDS, _WITHOUT_SPAN = 0.6, 0.45
_PART_OF_NAME, _NO_NAME, _NAMED_BEFORE = 0.7, 0.2, 0.45
_NO_NUMBER, _NO_CAPITAL, _TIME_NOT_TOLD = 0.4, 0.3, 0.4
_LEAST_MATTER, _MATTER_SLOPE, _VERB_NOT_TOLD, _VERB_IMPLIED = 0.2, 1.4, 0.45, 0.49
_IN_MESSAGE, _IN_CONTEXT = 0.85, 0.7
