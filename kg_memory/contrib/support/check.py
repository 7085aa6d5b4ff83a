"""The support check (plug-in ``support`` of kind ``checks``): rates how well a message's words support a read fact.

The quote must occur in the message; names, numbers, dates and content words of the fact in the quote, the message or
messages before it. The quote must state the fact, not deny, ask or suppose it, or state it about a relative. Text that
cannot be compared, such as a language without word lists, counts as supported. A fact below `Settings.min_support` is
rejected if no words of the message state it, else marked as weak. Pure functions, linear in the length of the texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, dropwhile, zip_longest
from typing import NamedTuple

from kg_memory.contrib.support.passage import (
    DATE_NUMBER,
    HAN,
    LIGHT,
    LIGHT_CHINESE,
    LISTS,
    PATTERNS,
    SAME_MEANING,
    WORD,
    Claim,
    Passage,
    Words,
    characters_of,
    find_span,
    language_of,
    make_passage,
    matter_of,
    names_of,
    proper_words,
    read_numbers,
    to_key,
)
from kg_memory.contrib.support.times import is_time_told
from kg_memory.ingestion.facts import FactReading
from kg_memory.ingestion.records import StatedFact
from kg_memory.ingestion.state import Draft
from kg_memory.settings import Settings
from kg_memory.text.tokenise import terms


class Support(NamedTuple):
    """How well a text supports a fact, 0 to 1; the supporting part (`span`), and whether it has the whole quote."""

    score: float
    span: tuple[int, int] | None
    is_exact: bool


def measure_support(claim: Claim, passage: Passage) -> Support:
    """Rate how well the message *passage* supports *claim*, a fact read from it, and find the supporting part."""
    span, share = find_span(claim.quote, passage.content)
    source = Words(passage.content[slice(*span)]) if span else passage.words
    score = share * _rate_names(claim, source, passage)
    score *= _rate_numbers(claim, source, passage) * _rate_times(claim, source, passage)
    if passage.language and not passage.is_record and language_of(claim.sentence) == passage.language:
        score *= _rate_matter(claim, source, passage) * _rate_denials(claim, source, passage)
        score *= _OTHER_SUBJECT if _is_about_other(claim, source, passage) else 1.0
        score *= _OTHER_MOOD if _is_open(claim, source) else 1.0
    return Support(round(score, 3), span, span is not None and share == 1.0)


class SupportCheck:
    """Rates how well an episode supports the facts that were read from it; *draft* is the episode being ingested."""

    def __init__(self, draft: Draft, settings: Settings) -> None:
        self._draft, self._settings = draft, settings
        self._passages: dict[int, Passage] = {}

    def __call__(self, stated: StatedFact, reading: FactReading) -> StatedFact | None:
        """Return *stated* with its support by the message, or ``None`` if the message does not state it at all."""
        piece, fact = reading.piece, reading.fact
        if piece.start not in self._passages:
            self._passages[piece.start] = make_passage(self._draft, piece, self._settings)
        count = len(self._draft.entities)
        entities = [self._draft.entities[place] for place in (fact.subject, *fact.objects) if 0 <= place < count]
        claim = Claim(
            fact.sentence,
            fact.predicate,
            list(map(names_of, entities)),
            fact.quote or piece.content,
            fact.kind,
            fact.valid_at,
            fact.invalid_at,
            [entity.type for entity in entities],
        )
        support = measure_support(claim, self._passages[piece.start])
        is_weak = support.score < self._settings.min_support
        if is_weak and support.span is None:
            return None
        start, end = support.span or (0, len(piece.content))
        return replace(
            stated,
            start=piece.start + start,
            end=piece.start + end,
            quoted=support.is_exact,
            support=support.score,
            weak=is_weak,
            confidence=min(stated.confidence, support.score) if is_weak else stated.confidence,
        )


# Names, numbers and times


def _rate_names(claim: Claim, source: Words, passage: Passage) -> float:
    entities = zip_longest(claim.names, claim.types[: len(claim.names)], fillvalue="")
    ratings = ([_rate_name(name, kind, claim, source, passage) for name in names] for names, kind in entities)
    return min((max(own, default=1.0) for own in ratings), default=1.0)


def _rate_name(name: str, kind: str, claim: Claim, source: Words, passage: Passage) -> float:
    """Return how well the text names or refers to the entity *name*, from 0 to 1."""
    words, is_in, is_common = list(proper_words(name)), _is_named, False
    if not words and passage.language:
        words, is_in = [word for word in WORD.findall(name) if terms(word) and not word.isdecimal()], _has_word
        is_common = True
    if not words:
        return 1.0

    def share(*texts: Words) -> float:
        return sum(any(is_in(word, text) for text in texts) for word in words) / len(words)

    here = share(passage.words)
    if here == 1.0 or (is_common and here) or share(passage.speakers, passage.words) == 1.0:
        return 1.0
    before = share(passage.words, passage.context)
    if before < 1.0 and here < 0.5:
        return _PART_OF_NAME if before >= 0.5 else (_NO_NAME if passage.language else 1.0)
    if here >= 0.5 or not share(Words(claim.sentence)):
        return 1.0
    is_meant = is_common and passage.language == "english" and not _count_unused(claim, source)
    return 1.0 if is_meant or _refers_back(words, kind.casefold(), claim, source, passage) else _NAMED_BEFORE


def _is_named(word: str, text: Words) -> bool:
    characters = HAN.findall(word)
    return text.names(word) or (
        bool(characters) and sum(char in text.han for char in characters) >= _SAME_HAN * len(characters)
    )


def _has_word(word: str, text: Words) -> bool:
    return text.has(to_key(word)) or text.names(word)


def _refers_back(words: Sequence[str], kind: str, claim: Claim, source: Words, passage: Passage) -> bool:
    """Return whether *source*, a fact's quote, means an entity by a pronoun, or replies to a message that names it."""
    is_chinese = passage.language == "chinese"
    continues = passage.answers and len(passage.asked) < _SHORT and _has_pronoun(passage.asked)  # "How was it?"
    last = Words("\n".join(text for text, _ in passage.previous[-2 if continues else -1 :]))
    if is_chinese and passage.answers and kind != "person":
        last = Words(passage.asked)
    is_last = all(_is_named(word, last) or _has_word(word, last) for word in words)
    follows = is_last and (passage.answers or len(passage.content) < _SHORT)
    if is_chinese:
        return follows or not _REFERS_CHINESE.get(kind, _THING_CHINESE).isdisjoint(source.text)
    return (follows or _has_pronoun(source.text, kind)) and _count_unused(claim, source) <= 1


def _has_pronoun(text: str, kind: str = "thing") -> bool:
    spoken = {word.casefold().partition("'")[0] for word in WORD.findall(text.replace("’", "'"))}
    return not spoken.isdisjoint(_PRONOUNS.get(kind, _OF_THINGS))


def _count_unused(claim: Claim, source: Words) -> int:
    """Return the number of content words of the quote *source* that the fact's sentence lacks; 2 if it lacks a name."""
    sentence = Words(claim.sentence)
    names = (word for word in source.words[1:] if not word.islower() and to_key(word) not in LIGHT and terms(word))
    if any(not sentence.names(word) for word in names):
        return 2
    return sum(not sentence.has(key) for key in matter_of(source, claim))


def _rate_numbers(claim: Claim, source: Words, passage: Passage) -> float:
    """Return 1.0 if the numbers in the fact's sentence occur in the text or follow from its dates, else 0.4."""
    dates = " ".join(chain.from_iterable(DATE_NUMBER.findall(claim.sentence)))
    strange = read_numbers(dates) - passage.numbers - read_numbers(f"{claim.begin or ''} {claim.end or ''}")
    others = read_numbers(DATE_NUMBER.sub(" ", claim.sentence)) - _SMALL
    strange |= others - passage.told_numbers
    if read_numbers(DATE_NUMBER.sub(" ", source.text)) - _SMALL - read_numbers(claim.sentence):
        strange |= others - source.numbers - read_numbers(" ".join(chain.from_iterable(claim.names)))
    return _OTHER_NUMBER if strange else 1.0


def _rate_times(claim: Claim, source: Words, passage: Passage) -> float:
    if not passage.language:
        return 1.0
    told = (is_time_told(time, passage.at, passage.times_by(source.text)) for time in (claim.begin, claim.end))
    return 1.0 if all(told) else _OTHER_TIME


# Content words


def _rate_matter(claim: Claim, source: Words, passage: Passage) -> float:
    """Rate how many content words of the fact's sentence occur in its quote or near it, from 0 to 1."""
    sentence = Words(claim.sentence)
    ratings = [_rate_key(key, source, passage) for key in matter_of(sentence, claim)]
    ratings += [_rate_character(char, source, passage) for char in characters_of(sentence, claim)]
    if not ratings:
        return 1.0
    rating = min(1.0, _LEAST_MATTER + sum(ratings) / len(ratings) * _MATTER_SLOPE)
    verbs = [to_key(word) for word in claim.predicate.casefold().split("_")]
    first = next((verb for verb in verbs if terms(verb) and verb not in LIGHT), "")
    if first not in sentence.keys or first in _PLAIN_VERBS or _has_verb(first, source, passage):
        return rating
    return rating * (_VERB_NOT_TOLD if sum(ratings) < 0.6 * len(ratings) else _VERB_IMPLIED)


def _has_verb(verb: str, source: Words, passage: Passage) -> bool:
    return source.has(verb) or max(passage.words.rate(verb), passage.context.rate(verb)) > SAME_MEANING


def _rate_key(key: str, source: Words, passage: Passage) -> float:
    return max(source.rate(key), _IN_MESSAGE * passage.words.rate(key), _IN_CONTEXT * passage.context.rate(key))


def _rate_character(char: str, source: Words, passage: Passage) -> float:
    texts = ((source, 1.0), (passage.words, _IN_MESSAGE), (passage.context, _IN_CONTEXT))
    return next((rating for text, rating in texts if text.has_character(char)), 0.0)


# Statements: not denied, not of a relative, not open


def _rate_denials(claim: Claim, source: Words, passage: Passage) -> float:
    """Return 1.0 if the fact's sentence and its quote *source* agree on negation (both "not", or neither), else 0.3."""
    if passage.language == "chinese":
        return _rate_denials_chinese(claim, source.text)
    sentence = Words(claim.sentence)
    if _denies(claim.sentence):
        return 1.0 if _is_denial_told(claim.sentence, source) else _DENIED
    if claim.kind == "former" or not _denies(source.text):
        return 1.0
    shared = {key for key in map(to_key, source.words) if key not in LIGHT and sentence.has(key) and terms(key)}
    denied, affirmed = _split_by_denial(source.text, shared)
    return _DENIED if denied - affirmed or not shared else 1.0


def _is_denial_told(text: str, source: Words) -> bool:
    """Return whether the quote *source* supports the denial in *text*.

    "I never was vegan" supports "Ann is not vegan", for example.
    """
    if len(PATTERNS["not"].findall(text)) > max(len(PATTERNS["not"].findall(source.text)), 1):
        return False  # a double negation: "nobody was not"
    if PATTERNS["long_ago"].search(source.text):
        return True
    is_over = PATTERNS["over"].search(text) is not None
    behind = (to_key(word) for clause in _find_denied(text) for word in clause)
    first = next((key for key in behind if key in source.keys and terms(key)), "")
    denied, affirmed = _split_by_denial(source.text, {first})
    if affirmed - denied and not is_over:
        return False
    denials = _DENIALS | _ENDS if is_over else _DENIALS
    return _denies(source.text) or not denials.isdisjoint(map(str.casefold, source.words))


def _denies(text: str) -> bool:
    return any(map(_is_negator, chain.from_iterable(_split_clauses(text))))


def _split_clauses(text: str) -> list[list[str]]:
    plain = PATTERNS["not_only"].sub(" ", text.replace("’", "'"))
    return [WORD.findall(clause) for clause in PATTERNS["clause"].split(plain)]


def _is_negator(word: str) -> bool:
    return word.casefold() in _NEGATORS or word.casefold().endswith("n't")


def _find_denied(text: str) -> Iterator[list[str]]:
    """Yield for each clause of *text* the words after its first negation: ``"I do not like it" -> ["like", "it"]``."""
    for clause in _split_clauses(text):
        yield list(dropwhile(lambda word: not _is_negator(word), clause))[1:]


def _split_by_denial(text: str, keys: set[str]) -> tuple[set[str], set[str]]:
    """Return those of *keys* (word stems) that occur in *text*, as two sets: right after a negation, and elsewhere."""
    denied, affirmed = set[str](), set[str]()
    for clause in _split_clauses(text):
        last = -_NEAR - 1
        for place, word in enumerate(clause):
            if _is_negator(word):
                last = place
            elif (key := to_key(word)) in keys:
                (denied if place - last <= _NEAR else affirmed).add(key)
    return denied, affirmed


def _rate_denials_chinese(claim: Claim, text: str) -> float:
    denied, told = _denied_chinese(claim.sentence), _denied_chinese(text)
    if denied and not told:
        over = PATTERNS["over_chinese"].search(claim.sentence) and PATTERNS["ends_chinese"].search(text)
        return 1.0 if over else _DENIED
    ends = PATTERNS["ends_chinese"].search(claim.sentence) and not PATTERNS["never_chinese"].search(text)
    is_over = claim.kind == "former" or ends
    if told and not denied and not is_over:
        return _DENIED if any(map(Words(claim.sentence).has_character, told - LIGHT_CHINESE)) else 1.0
    return 1.0


def _denied_chinese(text: str) -> set[str]:
    """Return the characters that are negated in the Chinese *text*: each negation, and up to three characters after."""
    plain = PATTERNS["not_only_chinese"].sub("", text)
    return set("".join(match[0] for match in PATTERNS["not_chinese"].finditer(plain)))


def _is_about_other(claim: Claim, source: Words, passage: Passage) -> bool:
    """Return whether the fact is about the speaker, but its quote about someone else: "My sister lives in Oslo"."""
    text, sentence, spoken = source.text.replace("’", "'"), Words(claim.sentence), Words(passage.speaker)
    names = [words for one in chain.from_iterable(claim.names[:1]) if (words := WORD.findall(one)) and "'" not in one]
    if any(all(map(spoken.names, words)) for words in names):
        relative = PATTERNS["relative"].match(text)
        if relative is None:
            return False
        return not (sentence.has(to_key(relative[1])) if relative[1] else relative[2][-1] in claim.sentence)
    is_person = next(iter(claim.types), "").casefold() == "person" and passage.speaker and "\n" not in passage.content
    is_of_self = is_person and PATTERNS["tells_of_self"].match(text)
    return bool(is_of_self and names and not any(map(source.names, chain.from_iterable(names))))


def _is_open(claim: Claim, source: Words) -> bool:
    """Return whether the quote only asks, supposes or plans the content of the fact, or says "used to"."""
    if claim.kind == "plan" or any(PATTERNS[name].search(claim.sentence) for name in ("supposes", "open")):
        return False
    text, words = source.text.replace("’", "'"), claim.sentence.casefold().split()
    past = PATTERNS["used_to"].search(text)
    if past is not None and f"{past[1].casefold()}s" in words:
        return True
    return PATTERNS["supposes"].search(text) is not None or PATTERNS["asks"].match(text) is not None


_PERSON_PRONOUNS = frozenset("he him his she her hers they them their theirs who whom whose you your one".split())
_PRONOUNS = {
    "person": _PERSON_PRONOUNS,
    "place": frozenset("there here where home".split()),
    "pet": _PERSON_PRONOUNS | {"it", "its"},
}
_OF_THINGS = frozenset("it its that this these those there here one ones they them which same such so both".split())
_REFERS_CHINESE = {"person": frozenset("他她其你您们")}
_THING_CHINESE = frozenset("它这那此其")
_PLAIN_VERBS = frozenset(map(to_key, LISTS["plain_verbs"].split()))
_NEGATORS, _DENIALS, _ENDS = (frozenset(LISTS[name].split()) for name in ("negators", "denials", "ends"))
_SMALL = frozenset(("0", "1", "2"))
_SAME_HAN, _SHORT, _NEAR = 0.7, 60, 5
_PART_OF_NAME, _NO_NAME, _NAMED_BEFORE = 0.7, 0.2, 0.45
_OTHER_NUMBER, _OTHER_TIME, _OTHER_SUBJECT, _OTHER_MOOD, _DENIED = 0.4, 0.4, 0.4, 0.45, 0.3
_LEAST_MATTER, _MATTER_SLOPE, _VERB_NOT_TOLD, _VERB_IMPLIED = 0.2, 1.4, 0.45, 0.49
_IN_MESSAGE, _IN_CONTEXT = 0.85, 0.7
