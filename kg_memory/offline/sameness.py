"""Decide by rules whether two entities or two facts are the same, and which facts cannot both hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from kg_memory.offline.lexicon import STOP
from kg_memory.offline.patterns import FUNCTIONAL
from kg_memory.offline.spans import PERSON

_WORD = re.compile(r"[A-Za-z0-9À-ɏ]+|[\u4e00-\u9fff]")
# Fields of a record that hold one value at a time.
_FIELD = re.compile(
    r"(?:^|_)(?:STATUS|STATE|STAGE|PLAN|TIER|OWNER|ASSIGNEE|MANAGER|PRIORITY|EMAIL|PHONE|ADDRESS|CITY|COUNTRY|"
    r"COMPANY|EMPLOYER|TITLE|ROLE|PRICE|AMOUNT|"
    r"BALANCE|QUANTITY|QTY|SEATS|TOTAL|LIMIT|SALARY|OWNED_BY|ASSIGNED_TO|CURRENCY|LANGUAGE|状态|负责人|套餐|城市|地址)$"
)
_GENERIC = frozenset(
    {"SAYS_ABOUT", "RELATES_TO", "MENTIONS", "THINKS", "PLANS", "HAS", "HELPS", "MADE", "WORKS_ON", "RECEIVED"}
)
_EVENTS = frozenset({"VISITED", "ATTENDED", "MET", "BOUGHT", "READ", "WATCHED", "LOST", "SOLD"})
_SAME_WORDS = 0.75
"""How much of their words two sentences must share to say the same."""
_ROLES = frozenset({*"user human assistant ai bot system agent customer client speaker".split(), "用 户", "助 手"})
_INSTEAD = re.compile(
    r"\b(?:instead|switched|switch|moved|changed|replaced|now|no longer|anymore|rather than)\b|改|换|不再|现在",
    re.IGNORECASE,
)
_TOO = re.compile(
    r"\b(?:also|too|as well|both|another|besides|in addition|part-time|second)\b|也|还|另外|同时", re.IGNORECASE
)


def one_at_a_time(predicate: str) -> bool:
    """Tell whether a record's field of that name holds one value at a time."""
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
    """Tell whether two names are sure to be of one thing."""
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


def content_words(sentence: str) -> frozenset[str]:
    """Return the words of *sentence* that carry its meaning."""
    said = sentence.split(": ", 1)[-1]
    words = (word.casefold() for word in _WORD.findall(said))
    return frozenset(_singular(word) for word in words if word not in STOP)


def says_the_same(new: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Tell whether two facts of the same subject and objects say the same."""
    if new["subject"] != known["subject"] or set(new["objects"]) != set(known["objects"]):
        return False
    alike = bool(new["predicate"] == known["predicate"])
    if bool(new.get("invalid_at")) != bool(known.get("invalid_at")) and not alike:
        return False
    if alike and new["predicate"] in _EVENTS and _apart(new, known):
        return False  # two visits are two events
    if alike and new["predicate"] not in _GENERIC and new["predicate"] not in _EVENTS:
        return True
    ours, theirs = content_words(new["sentence"]), content_words(known["sentence"])
    if not ours or not theirs:
        return alike
    return len(ours & theirs) / len(ours | theirs) >= _SAME_WORDS


def _apart(new: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return bool(
        new.get("valid_at") and known.get("valid_at") and str(new["valid_at"])[:10] != str(known["valid_at"])[:10]
    )


def _is_field(fact: Mapping[str, Any]) -> bool:
    """Tell whether a fact comes from a field with one value of a record."""
    return str(fact["sentence"]).startswith(f"{fact['subject']}: ") and " is " in fact["sentence"]


def contradicts(new: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Tell whether *known* can no longer be so when *new* is."""
    if new["subject"] != known["subject"] or new.get("invalid_at") or _TOO.search(new["sentence"]):
        return False
    ours, theirs = {key(each) for each in new["objects"]}, {key(each) for each in known["objects"]}
    if new["predicate"] == known["predicate"]:
        single = one_at_a_time(new["predicate"]) and _is_field(new) and _is_field(known)
        if single or new["predicate"] in FUNCTIONAL:
            return not ours & theirs
        return new["predicate"] == "PREFERS" and not ours & theirs and _INSTEAD.search(new["sentence"]) is not None
    opposite = {"LIKES": ("DISLIKES",), "PREFERS": ("DISLIKES",), "DISLIKES": ("LIKES", "PREFERS")}.get(
        new["predicate"], ()
    )
    return known["predicate"] in opposite and bool(ours & theirs)
