"""Whether the words that a claim is quoted from have something else in the place of one of its entities. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kg_memory.text.passage import LIGHT, LIGHT_CHINESE, Claim, Passage
from kg_memory.text.pronouns import PRONOUNS
from kg_memory.text.tokenise import terms
from kg_memory.text.word_match import HAN, LISTS, WORD, Words, to_key

REPLACED = 0.4
"""The rating of a claim that puts an entity where its source has another one."""
_ARTICLES = frozenset("a an the my our your his her their its this that these those some".split())
_FUNCTION = frozenset(LISTS["helpers"].split()) - _ARTICLES
_LONGEST_CHINESE = 8


def rate_objects(claim: Claim, source: Words, passage: Passage) -> float:
    """Return whether no entity of the claim stands where the source has another."""
    others = claim.names[1:]
    for names in others:
        name = max((name for name in names if name and name in claim.sentence), key=len, default="")
        if not name or any(map(source.names, WORD.findall(name))):
            continue
        if HAN.search(name):
            is_replaced = passage.language == "chinese" and _is_replaced_chinese(name, claim.sentence, source.text)
        else:
            is_replaced = passage.language == "english" and _is_replaced(name, claim, source)
        if is_replaced:
            return REPLACED
    return 1.0


def _is_replaced(name: str, claim: Claim, source: Words) -> bool:
    """Return whether the two words before *name* stand in the source too, before another noun."""
    before = _simplify(WORD.findall(claim.sentence[: claim.sentence.find(name)]))
    subject = {to_key(word) for each in claim.names[:1] for part in each for word in WORD.findall(part)}
    if not before:
        return False
    lead = before[-2:] if before[-1].casefold() in _FUNCTION else before[-1:]
    sentence, spoken = Words(claim.sentence), _simplify(source.words)
    if lead[0].casefold() not in _FUNCTION and to_key(lead[0]) not in subject:
        fillers = list(_follow(spoken, list(map(to_key, lead))))
        if fillers:
            return all(_is_other(word, sentence) for word in fillers)
    fillers = (
        list(_follow(spoken, list(map(to_key, lead[-1:]))))
        if before[-1].casefold() in _FUNCTION and name[0].isupper()
        else []
    )
    return bool(fillers) and all(word[0].isupper() and _is_other(word, sentence) for word in fillers)


def _simplify(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.casefold() not in _ARTICLES]


def _follow(words: Sequence[str], lead: Sequence[str]) -> Iterator[str]:
    """Yield the words right behind those of *lead*."""
    keys = list(map(to_key, words))
    for place in range(len(keys) - len(lead)):
        if keys[place : place + len(lead)] == lead:
            yield words[place + len(lead)]


def _is_other(word: str, sentence: Words) -> bool:
    key = to_key(word)
    return (
        word.casefold() not in PRONOUNS | _FUNCTION and bool(terms(word)) and key not in LIGHT and not sentence.has(key)
    )


def _is_replaced_chinese(name: str, sentence: str, source: str) -> bool:
    """Return whether the characters around *name* stand in the source too, with others between them."""
    left, _, right = sentence.partition(name)
    lead, rest = _end_of(left), right[:2]
    if lead not in source and rest in source:
        lead = lead[-1:]
    if len(lead) + len(rest) < 2 + (len(lead) < 2) or lead not in source:
        return False
    after = source.partition(lead)[2]
    filler = after.partition(rest)[0] if len(rest) == 2 and rest in after else after
    filler = next(iter(_split(filler)), "")
    characters = [char for char in filler if char not in LIGHT_CHINESE]
    return (
        0 < len(filler) <= _LONGEST_CHINESE
        and bool(characters)
        and not any(char in left + right for char in characters)
    )


def _end_of(text: str) -> str:
    run = ""
    for char in reversed(text):
        if not HAN.match(char) or len(run) == 2:
            break
        run = char + run
    return run


def _split(text: str) -> Iterator[str]:
    run = ""
    for char in text:
        if not HAN.match(char) and not char.isalnum():
            break
        run += char
    yield run
