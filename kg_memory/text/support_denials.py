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
_CLAUSE = re.compile(
    r"[.!?;:\n\u3002\uff01\uff1f\uff1b]|,|\uff0c|\s[-\u2013\u2014]+\s"
    r"|\b(?:but|so|because|and (?=(?:i|we|you|he|she|it|they|my|the|ha(?:ve|s|d|ving)|a?m|is|are|was|were)\b))",
    re.IGNORECASE,
)
_DENIES_CHINESE = re.compile("[不没未无别莫勿]([\u3400-\u9fff]{0,3})|取消")
_ENDS_CHINESE = re.compile("[戒退离停掉断缺少忘]|取消|以前|原来|曾|过")
_OVER_CHINESE = re.compile("不再|[不没].{0,8}了|已经?[不没]")
_NEVER_CHINESE = re.compile("[没未].{0,3}过")
_HEAD_CHINESE = re.compile("[不没]([\u3400-\u9fff])")
_NOT_CHINESE = frozenset("不没未无别莫勿有")
_NO_DENIAL_CHINESE = re.compile(
    "不错|不过|不但|不仅|不止|不光|不管|不然|差不多|不好意思|没问题|没错|特别|分别|别的|别人|要不|是不是|有没有|对不对|好不好|不久"
)
_NOT_ONLY = re.compile(
    r"\bnot (?:only|just|to mention|least|that|kidding|joking)\b|\bno (?:doubt|wonder|kidding|problem|worries)\b"
    r"|\bnothing but\b|\bwhy not\b|\bor not\b|\b(?:can't|cannot) (?:wait|believe|help)\b"
    r"|\bwon't believe\b|\b(?:don't|never|won't) forget\b",
    re.IGNORECASE,
)
_OTHER = re.compile(r"(?:an|the )?other\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|no|never|nobody|nothing|none|nowhere|cannot)\b|n't\b", re.IGNORECASE)
_CONTRAST = re.compile(r",\s(?:and\s)?not\b[^.;]*|\brather than\b[^.;]*")
_NO = re.compile(r"\b(?:no|nope|nah|never)\b[\s,.!;:]*$", re.IGNORECASE)
_OVER = re.compile(r"\bno longer\b|\bany ?more\b|\bno more\b", re.IGNORECASE)
_NEAR, _ROOT, _MOST_DENIED = 4, 4, 6
"""The words before one that a "not" may deny."""
_NEGATORS, _DENIALS = frozenset(LISTS["negators"].split()), frozenset(LISTS["denials"].split())
_WEAK = frozenset(LISTS["weak_denials"].split())
_HELPERS = frozenset(LISTS["helpers"].split())
_ENDS = frozenset(LISTS["ends"].split())


def rate_denials(claim: Claim, source: Words, passage: Passage) -> float:
    """Return whether the sentence and its span agree on a "not"."""
    if passage.language == "chinese":
        return _rate_denials_chinese(claim.sentence, claim, source, passage)
    spoken = set(map(str.casefold, source.words))
    plain = _CONTRAST.sub(" ", claim.sentence)
    if _denies(plain):
        return 1.0 if _is_denial_told(plain, claim, source, passage) else DENIED
    if _OTHER.match(claim.sentence) or (claim.kind == "former" and "never" not in spoken):
        return 1.0
    sentence = Words(plain)
    if not _denies(source.text) or not _DENIALS.isdisjoint(map(str.casefold, sentence.words)):
        return 1.0
    shared = [word for word in source.words if to_key(word) not in LIGHT and sentence.has(to_key(word)) and terms(word)]
    keys = frozenset(to_key(word) for word in shared if not word.istitle()) or frozenset(map(to_key, shared))
    denied, affirmed = _split_words(_CONTRAST.sub(" ", source.text), keys)
    is_denied = denied - affirmed if keys else _agrees(source.text, frozenset(), alone=True)
    return DENIED if is_denied else 1.0


def _is_denial_told(plain: str, claim: Claim, source: Words, passage: Passage) -> bool:
    """Return whether a "not" of the sentence is one of the span, or of the message, about the same words."""
    sentence = Words(plain)
    keys = _find_denied(plain)
    is_over = _OVER.search(plain) is not None
    proper = {to_key(word) for word in source.words if word.istitle()}
    first = next((key for key in keys if key in source.keys and key not in proper), "")
    if len(_NEGATED.findall(plain)) > max(len(_NEGATED.findall(source.text.replace("’", "'"))), 1):
        return False  # "nobody was not"
    if first and not is_over and (first == keys[0] or _DENIALS.isdisjoint(map(str.casefold, source.words))):
        denied, affirmed = _split_words(source.text, frozenset((first,)))
        if affirmed - denied:
            return False
    near = frozenset(keys)
    denials = _ENDS | _DENIALS if is_over else _DENIALS
    told_words = set(map(str.casefold, sentence.words))
    told = frozenset(word for word in denials if word not in told_words)
    return (
        _agrees(source.text, sentence.keys, alone=True)
        or _agrees(passage.content, near & frozenset(matter_of(sentence, claim)))
        or any(word in told for word in map(str.casefold, source.words) if word not in _WEAK)
        or _agrees(source.text, sentence.keys, denials=told)
        or _follows_no(source, passage)
    )


def _follows_no(source: Words, passage: Passage) -> bool:
    """Return whether the span follows at once on a "no"."""
    before = passage.content[: max(passage.content.find(source.text), 0)][-_BEFORE:]
    return _NO.search(before) is not None


def _find_denied(text: str) -> list[str]:
    """Return the keys of the words that a "not" of *text* stands close to, in order."""
    keys = dict[str, None]()
    for clause in _CLAUSE.split(text.replace("’", "'")):
        words = WORD.findall(clause or "")
        for place, word in enumerate(words):
            if _is_negator(word.casefold()):
                near = words[place + 1 : place + 4 * _MOST_DENIED] or words[max(place - _NEAR, 0) : place]
                told = [key for key in map(to_key, near) if terms(key)]
                keys.update(dict.fromkeys(told[:_MOST_DENIED]))
    return list(keys)


def _agrees(text: str, keys: frozenset[str], *, alone: bool = False, denials: frozenset[str] = frozenset()) -> bool:
    """Return whether a "not" of *text* stands before, or right behind, a word with one of *keys*, or *alone*."""
    roots = {key[:_ROOT] for key in keys if len(key) >= _ROOT}
    for clause in _CLAUSE.split(_NOT_ONLY.sub(" ", text.replace("’", "'"))):
        words = list(map(str.casefold, WORD.findall(clause or "")))
        for place, word in enumerate(words):
            if word in denials or (not denials and _is_negator(word)):
                near = words[place + 1 : place + 2 + _NEAR]
                near = near + words[max(place - _NEAR, 0) : place] if denials or not near else near
                told = [key for key in map(to_key, near) if terms(key)]
                if (alone and not told) or any(key in keys or key[:_ROOT] in roots for key in told):
                    return True
    return False


def _rate_denials_chinese(text: str, claim: Claim, source: Words, passage: Passage) -> float:
    denied, spoken = _denied_chinese(text), _denied_chinese(source.text)
    if denied and not spoken:
        heads = {match[1] for match in _HEAD_CHINESE.finditer(_NO_DENIAL_CHINESE.sub("", text))} - {"有"}
        if not heads.isdisjoint(source.han) and not _OVER_CHINESE.search(text):
            return DENIED
        is_over = _OVER_CHINESE.search(text) and _ENDS_CHINESE.search(source.text)
        chars = denied - LIGHT_CHINESE - _NOT_CHINESE
        return 1.0 if is_over or _denied_chinese(passage.content) & chars else DENIED
    is_former = claim.kind == "former" or (_ENDS_CHINESE.search(text) and not _NEVER_CHINESE.search(source.text))
    if spoken and not denied and not is_former:
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


def _split_words(text: str, keys: frozenset[str]) -> tuple[set[str], set[str]]:
    """Return which of *keys* stand shortly after a "not" of *text*, and which of them do elsewhere."""
    denied, affirmed = set[str](), set[str]()
    for clause in _CLAUSE.split(_NOT_ONLY.sub(" ", text.replace("’", "'"))):
        last, place = None, 0
        for word in WORD.findall(clause or ""):
            key = to_key(word)
            place += word.casefold() not in _HELPERS
            if _is_negator(word.casefold()):
                last = place
            elif key in keys and terms(key):
                (denied if last is not None and place - last <= _NEAR else affirmed).add(key)
    return denied, affirmed
