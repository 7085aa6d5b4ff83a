"""Decide by rules whether two entities or two facts are the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from kg_memory.offline.lexicon import STOP
from kg_memory.offline.spans import PERSON

_WORD = re.compile(r"[A-Za-z0-9À-ɏ]+|[\u4e00-\u9fff]")
# Fields of a record that hold one value at a time.
_FIELD = re.compile(
    r"(?:^|_)(?:STATUS|STATE|STAGE|PLAN|TIER|OWNER|ASSIGNEE|MANAGER|PRIORITY|EMAIL|PHONE|ADDRESS|CITY|COUNTRY|"
    r"COMPANY|EMPLOYER|TITLE|ROLE|PRICE|AMOUNT|"
    r"BALANCE|QUANTITY|QTY|SEATS|TOTAL|LIMIT|SALARY|OWNED_BY|ASSIGNED_TO|CURRENCY|LANGUAGE|状态|负责人|套餐|城市|地址)$"
)
_GENERIC = frozenset(
    {
        "SAYS_ABOUT",
        "RELATES_TO",
        "MENTIONS",
        "THINKS",
        "PLANS",
        "HAS",
        "HELPS",
        "MADE",
        "WORKS_ON",
        "RECEIVED",
        "NEVER_DID",
    }
)
_EVENTS = frozenset({"VISITED", "ATTENDED", "MET", "BOUGHT", "READ", "WATCHED", "LOST", "SOLD"})
_SAME_WORDS = 0.75
"""How much of their words two sentences must share to say the same."""
_ROLES = frozenset({*"user human assistant ai bot system agent customer client speaker".split(), "用 户", "助 手"})
_NOT = re.compile(r"\b(?:not|never|no longer|without|cannot|nobody|nothing)\b|n['’]t\b|[不没未]", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d+(?:[.,:/]\d+)*|\b(?:jan|febr|septem|octo|novem|decem)\w{2,5}\b|\b(?:march|april|june|july|august)\b|(?-i:\bMay\b)|"
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[,;.!?()–—](?=\s|$)|\s(?:and|but|so|because|while|although)\s(?=(?:I|we|he|she|they|it|now|my|our|then)\b)|[，；。！？\n]",
    re.IGNORECASE,
)


def one_at_a_time(predicate: str) -> bool:
    """Return whether a record's field of that name holds one value at a time."""
    return _FIELD.search(predicate) is not None


def key(name: str) -> str:
    """Return *name* without case, punctuation and article, and a common noun without its plural."""
    written = _WORD.findall(unicodedata.normalize("NFKC", name))
    words = [word.casefold() for word in written]
    if len(words) > 1 and words[0] in ("the", "a", "an"):
        words = words[1:]
    if words and written[-1].islower() and written[-1].isascii():
        words[-1] = _singular(words[-1])
    return " ".join(words)


def _singular(noun: str) -> str:
    if len(noun) <= 3 or not noun.endswith("s") or noun.endswith(("ss", "us", "is")):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-2] if noun.endswith(("sses", "shes", "ches", "xes")) else noun[:-1]


def same_name(one: str, other: str, type_: str = "") -> bool:
    """Return whether two names are sure to be of one thing."""
    if not key(one):
        return False
    if key(one) == key(other):
        return True
    if not _ROLES.isdisjoint((key(one), key(other))):
        return False  # "user" is whoever speaks, not the "User Authentication" that is spoken of
    if "'s " in one or "'s " in other or "的" in one or "的" in other:
        return False  # "Ann" is not "Ann's sister"
    if type_ == PERSON:
        short, long = sorted((key(one).split(), key(other).split()), key=len)
        return bool(short) and len(short) < len(long) and (long[: len(short)] == short)
    return _acronym(one, other) or _acronym(other, one)


def _acronym(short: str, long: str) -> bool:
    words = [
        word for word in re.findall(r"[A-Za-zÀ-ɏ]+", long) if word.casefold() not in ("of", "the", "and", "for", "de")
    ]
    letters = "".join(character for character in short if character.isalpha())
    return (
        2 <= len(letters) <= 8
        and letters.isupper()
        and len(words) == len(letters)
        and "".join(word[0] for word in words).upper() == letters
    )


def fullest(one: str, other: str) -> str:
    """Return the more complete of two names."""
    return one if len(key(one)) > len(key(other)) else other


def match(entity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the one candidate that *entity* is, or ``None``; two that fit are none."""
    fitting = [
        candidate
        for candidate in entity["candidates"]
        if any(
            same_name(entity["name"], name, _type(entity, candidate))
            for name in (candidate["name"], *candidate.get("aliases", ()))
        )
    ]
    exact = [candidate for candidate in fitting if key(candidate["name"]) == key(entity["name"])]
    chosen = exact or fitting
    return chosen[0] if len(chosen) == 1 or exact else None


def _type(entity: Mapping[str, Any], candidate: Mapping[str, Any]) -> str:
    types = {str(entity.get("type", "")), str(candidate.get("type", ""))}
    return PERSON if PERSON in types and types <= {PERSON, "Entity"} else ""


def said(fact: Mapping[str, Any]) -> str:
    """Return the words of *fact* without who said them, or the state that they come to."""
    sentence = str(fact["sentence"])
    return re.split(": |：", sentence, maxsplit=1)[-1]


def clause_of(fact: Mapping[str, Any]) -> str:
    """Return the clause of *fact* that tells of its first object, without the names of its objects."""
    words = said(fact)
    places = [(words.casefold().find(name.casefold()), name) for name in fact["objects"]]
    at = min((place for place, _ in places if place >= 0), default=None)
    if at is not None:
        cuts = [0, *(cut.end() for cut in _CLAUSE_END.finditer(words)), len(words)]
        start = max(cut for cut in cuts if cut <= at)
        words = words[start : min((cut for cut in cuts if cut > at), default=len(words))]
    for _, name in places:
        words = re.sub(re.escape(name), " ", words, flags=re.IGNORECASE)
    return words


def content_words(sentence: str) -> frozenset[str]:
    """Return the words of *sentence* that carry its meaning."""
    return words_of(sentence.split(": ", 1)[-1])


def words_of(text: str) -> frozenset[str]:
    """Return the words of *text* that carry its meaning, without their plural."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_singular(word) for word in words if word not in STOP)


def says_the_same(new: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Return whether two facts of the same subject and objects say the same."""
    if new["subject"] != known["subject"] or set(new["objects"]) != set(known["objects"]):
        return False
    alike = bool(new["predicate"] == known["predicate"])
    if bool(new.get("invalid_at")) != bool(known.get("invalid_at")) and not alike:
        return False
    if alike and new["predicate"] not in _GENERIC and new["predicate"] not in _EVENTS:
        return True
    two_events = alike and new["predicate"] in _EVENTS and _apart(new, known)
    if two_events or _differs(said(new), said(known)):
        return False
    ours, theirs = content_words(new["sentence"]), content_words(known["sentence"])
    if not ours or not theirs:
        return alike
    return len(ours & theirs) / len(ours | theirs) >= _SAME_WORDS


def _differs(ours: str, theirs: str) -> bool:
    """Return whether one is denied and the other not, or each tells a number of its own."""
    if bool(_NOT.search(ours)) != bool(_NOT.search(theirs)):
        return True
    return sorted(_NUMBER.findall(ours)) != sorted(_NUMBER.findall(theirs))


def _apart(new: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return bool(
        new.get("valid_at") and known.get("valid_at") and str(new["valid_at"])[:10] != str(known["valid_at"])[:10]
    )
