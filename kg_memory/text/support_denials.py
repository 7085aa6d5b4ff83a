"""Whether a claim and the words that it is quoted from agree on a "not". Pure."""

from __future__ import annotations

import re

from kg_memory.text.passage import LIGHT, LIGHT_CHINESE, Claim, Passage, matter_of
from kg_memory.text.tokenise import terms
from kg_memory.text.word_match import HAN, LISTS, WORD, Words, to_key

DENIED = 0.3
"""The rating of a claim that its source denies, or that denies its source."""
_BEFORE = 12
"""The characters before a span in which a "no" is looked for."""
_CLAUSE = re.compile(r"[.!?;:\n\u3002\uff01\uff1f\uff1b]|,|\uff0c")
_DENIES_CHINESE = re.compile("[不没未无别莫勿]([\u3400-\u9fff]{0,3})|取消")
_ENDS_CHINESE = re.compile("[戒退离停掉断缺少忘]|取消|以前|原来|曾|过")
_NO_DENIAL_CHINESE = re.compile(
    "不错|不过|不但|不仅|不止|不光|不管|不然|差不多|不好意思|没问题|没错|特别|分别|别的|别人|要不|是不是|有没有|对不对|好不好|不久"
)
_NOT_ONLY = re.compile(
    r"\bnot (?:only|just|to mention|least|that|kidding|joking)\b|\bno (?:doubt|wonder|kidding|problem|worries)\b"
    r"|\bwhy not\b|\bor not\b",
    re.IGNORECASE,
)
_OTHER = re.compile(r"\b(?:an)?other\b|\btoo\b|\balso\b", re.IGNORECASE)
_CONTRAST = re.compile(r",\s(?:and\s)?not\b[^.;]*|\brather than\b[^.;]*")
_NO = re.compile(r"\b(?:no|nope|nah|never)\b[\s,.!;:]*$", re.IGNORECASE)
_OVER = re.compile(r"\bno longer\b|\bany ?more\b|\bno more\b", re.IGNORECASE)
_NEAR, _ROOT = 4, 4
"""The words before one that a "not" may deny."""
_NEGATORS, _DENIALS = frozenset(LISTS["negators"].split()), frozenset(LISTS["denials"].split())
_ENDS = frozenset(LISTS["ends"].split())


def rate_denials(claim: Claim, source: Words, passage: Passage) -> float:
    """Return whether the sentence and its span agree on a "not"."""
    if passage.language == "chinese":
        return _rate_denials_chinese(claim.sentence, claim, source, passage)
    spoken = set(map(str.casefold, source.words))
    plain = _CONTRAST.sub(" ", claim.sentence)
    sentence = Words(plain)
    if _denies(plain):
        denials = _DENIALS | _ENDS if _OVER.search(plain) else _DENIALS
        keys = frozenset(matter_of(sentence, claim))
        is_told = (
            _agrees(source.text, sentence.keys, alone=True)
            or _agrees(passage.content, keys)
            or not denials.isdisjoint(spoken)
        )
        return 1.0 if is_told or _follows_no(source, passage) else DENIED
    if _OTHER.search(claim.sentence) or (claim.kind == "former" and "never" not in spoken):
        return 1.0
    if not _denies(source.text) or not _DENIALS.isdisjoint(map(str.casefold, sentence.words)):
        return 1.0
    return DENIED if _is_denied(_CONTRAST.sub(" ", source.text), sentence) else 1.0


def _follows_no(source: Words, passage: Passage) -> bool:
    """Return whether the span follows at once on a "no"."""
    before = passage.content[: max(passage.content.find(source.text), 0)][-_BEFORE:]
    return _NO.search(before) is not None


def _agrees(text: str, keys: frozenset[str], *, alone: bool = False) -> bool:
    """Return whether a "not" of *text* stands before, or right behind, a word with one of *keys*, or *alone*."""
    roots = {key[:_ROOT] for key in keys if len(key) >= _ROOT}
    for clause in _CLAUSE.split(text.replace("’", "'")):
        words = list(map(str.casefold, WORD.findall(clause or "")))
        for place, word in enumerate(words):
            if _is_negator(word):
                near = words[place + 1 : place + 2 + _NEAR] or words[max(place - _NEAR, 0) : place]
                told = [key for key in map(to_key, near) if terms(key)]
                if (alone and not told) or any(key in keys or key[:_ROOT] in roots for key in told):
                    return True
    return False


def _rate_denials_chinese(text: str, claim: Claim, source: Words, passage: Passage) -> float:
    denied, spoken = _denied_chinese(text), _denied_chinese(source.text)
    if denied and not spoken:
        chars = Words(text).han - LIGHT_CHINESE
        return 1.0 if _ENDS_CHINESE.search(source.text) or _denied_chinese(passage.content) & chars else DENIED
    if spoken and not denied and claim.kind != "former" and not _ENDS_CHINESE.search(text):
        sentence = Words(text)
        affirmed = {char for char in HAN.findall(_DENIES_CHINESE.sub("", source.text)) if source.text.count(char) > 1}
        return DENIED if any(sentence.has_character(char) for char in spoken - affirmed - LIGHT_CHINESE) else 1.0
    return 1.0


def _denied_chinese(text: str) -> set[str]:
    """Return the characters right behind a "not"."""
    plain = _NO_DENIAL_CHINESE.sub("", text)
    return set("".join(match[0] for match in _DENIES_CHINESE.finditer(plain)))


def _denies(text: str) -> bool:
    plain = _NOT_ONLY.sub(" ", text.replace("’", "'").casefold())
    return any(_is_negator(word) for word in WORD.findall(plain))


def _is_negator(word: str) -> bool:
    return word in _NEGATORS or word.endswith("n't")


def _is_denied(text: str, sentence: Words) -> bool:
    """Return whether a "not" of *text* stands shortly before a word that the sentence has, and none stands without."""
    denied, affirmed = set[str](), set[str]()
    for clause in _CLAUSE.split(_NOT_ONLY.sub(" ", text.replace("’", "'"))):
        last = -_NEAR - 1
        for place, word in enumerate(WORD.findall(clause or "")):
            key = to_key(word)
            if _is_negator(word.casefold()):
                last = place
            elif not word.istitle() and key not in LIGHT and terms(key) and sentence.has(key):
                (denied if place - last <= _NEAR else affirmed).add(key)
    return bool(denied - affirmed)
