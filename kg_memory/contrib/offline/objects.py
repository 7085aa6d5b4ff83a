"""Finds the objects of a verb in an English sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import (
    BASED,
    FUNCTIONAL,
    MOST_OBJECTS,
    ORGANISATION,
    PERSON,
    PLACE,
    SINGLE,
    TOPIC,
    WORDS,
    Mention,
    Pattern,
    TextStatement,
)

_CLAUSE_END = re.compile(rf"{WORDS['clause_end'].pattern}|\s(?:{'|'.join(BASED)})\s", re.IGNORECASE | re.VERBOSE)
_LISTED = re.compile(r"\s?(?:,|,? (?:and|or|&)|/)\s?(?:the |my |our |an? )?", re.IGNORECASE)
_THIRD = re.compile(r"(?:(?<=[sxzo])es|(?<=[sc]h)es|(?<![su'’])s)$")
"""The ending of a verb in the third person: "plays"."""
_DOUBLING = frozenset(
    "begin blog chat drop get grab hug jog knit let nap plan put run shop sit skip stop swap swim trim win".split()
)
_YEAR = re.compile(r"\d{4}s?")
_VAGUE = lexicon.STOP | lexicon.VAGUE_NOUNS
_GROUPS = frozenset("club group team gym church class course choir band community league program".split())
JOINS_GROUP = re.compile(rf"(?:\s[\w'’-]+){{0,4}}?\s(?:{'|'.join(sorted(_GROUPS))})\b", re.IGNORECASE)
"""Words after "joined" that name a group and not an employer: "a new activist group"."""


def find_objects(
    pattern: Pattern, end: int, subject: Mention, text: str, offset: int, mentions: Sequence[Mention]
) -> tuple[Mention, ...]:
    """Return the objects of a verb in the sentence *text*: the mention of Oslo for "I live in Oslo"."""
    clause = _CLAUSE_END.search(text, end + 1)
    begin, stop = offset + end, offset + (clause.start() if clause else len(text))
    objects = [one for one in mentions if begin <= one.start < stop and one.name != subject.name]
    words = WORDS["free"].match(text, end) if pattern.free else None
    free = _object_from_words(words, offset, pattern.kind) if words else None
    if free is not None and (not objects or objects[0].start >= free.end or _is_fuller(free, objects[0])):
        objects = [free, *(mention for mention in objects if mention.start >= free.end)]
    if pattern.kind == PERSON:
        objects = [mention for mention in objects if mention.named]
    if pattern.free or pattern.kind == PERSON or pattern.predicate in FUNCTIONAL:
        return tuple(_with_type(one, pattern) if one.named or one is free else one for one in objects[:1])
    return tuple(objects[:MOST_OBJECTS])


def find_joined(first: Mention, text: str, offset: int, mentions: Sequence[Mention]) -> list[Mention]:
    """Return the mentions listed after *first* with commas and "and": Solid and Go in "React, Solid and Go"."""
    joined, last = [], first
    for mention in mentions:
        if mention.start < last.end:
            continue
        if not _LISTED.fullmatch(text, last.end - offset, mention.start - offset):
            break
        joined.append(mention)
        last = mention
    return joined


def widen(last: TextStatement, names: Sequence[Mention]) -> TextStatement:
    """Return the statement *last* with *names*, mentions in no statement yet, added to its objects.

    A statement whose predicate has only one object (`SINGLE`) is returned unchanged.
    """
    if last.predicate in SINGLE:
        return last
    extra = (mention for mention in names if mention.name != last.subject.name)
    return replace(last, objects=(*last.objects, *extra)[: MOST_OBJECTS + 1])


def _object_from_words(words: re.Match[str], offset: int, kind: str) -> Mention | None:
    """Return the matched *words* after a verb as its object, a mention of type *kind*, or None."""
    name = words["words"].rstrip(".,!?;:'’").removesuffix("'s").removesuffix("’s")
    lows = name.casefold().split()
    while lows and lows[-1] in lexicon.STOP:
        lows.pop()
    if not lows or _VAGUE.issuperset(lows) or lows[0] in lexicon.SUBJECTS:
        return None
    if kind == PLACE and _YEAR.fullmatch(lows[-1]):
        return None  # "born in May 1990"
    name = " ".join(name.split()[: len(lows)])
    start = words.start("words") + offset
    shown = name.title() if name in lexicon.PLACES else name
    return Mention(start, start + len(name), shown, kind, named=shown[0].isupper())


def _is_fuller(free: Mention, mention: Mention) -> bool:
    """Return whether *free* contains *mention*, which is not a name: "senior engineer" contains "engineer"."""
    return not mention.named and free.start <= mention.start and mention.end <= free.end


def _with_type(mention: Mention, pattern: Pattern) -> Mention:
    """Return *mention* with the type of objects of the verb *pattern*, such as "Place" for "lives in".

    People, relatives and places keep their type, and so do organisations, unless the verb takes a place.
    """
    if mention.type in (PERSON, PLACE) or mention.kin or (mention.type == ORGANISATION and pattern.kind != PLACE):
        return mention
    return Mention(mention.start, mention.end, mention.name, pattern.kind, mention.named)


def is_group(mention: Mention) -> bool:
    """Return whether *mention*, the object of "joined", is a group such as a club or a class, and no employer."""
    return not mention.named or mention.name.casefold().split()[-1] in _GROUPS


def fits(pattern: Pattern, verb: str, mention: Mention) -> bool:
    """Return whether *mention* can be the object of a verb, so that the sentence states a fact of *pattern*."""
    words = verb.casefold().split()
    if pattern.predicate == "LIVES_IN" and "back" in words[:3] and words[0] not in ("moved", "relocated"):
        return mention.named and words[-2:-1] == ["back"]
    if pattern.predicate != "STAYS_IN":
        return True
    return mention.named and (mention.type == PLACE or words[0] in ("staying", "crashing", "couchsurfing"))


def find_habit(end: int, text: str, offset: int) -> tuple[Mention, ...]:
    """Return the activity after "used to" or "stopped": "playing chess" for "used to play chess"."""
    match = WORDS["habit"].match(text, end)
    verb = match["verb"].casefold() if match else ""
    if match is None or not (verb.endswith("ing") or verb in lexicon.VERB_FORMS):
        return ()
    rest = match["rest"].split()
    while rest and rest[-1].casefold() in lexicon.STOP:
        rest.pop()
    name = " ".join([match["verb"] if verb.endswith("ing") else _to_gerund(verb), *rest])
    stop = match.end("rest") if rest else match.end("verb")
    return (Mention(offset + match.start("verb"), offset + stop, name, TOPIC),)


def _to_gerund(verb: str) -> str:
    base = _THIRD.sub("", verb)
    if base in _DOUBLING:
        return f"{base}{base[-1]}ing"
    if base.endswith("ie"):
        return f"{base[:-2]}ying"
    return f"{base[:-1]}ing" if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) else f"{base}ing"
