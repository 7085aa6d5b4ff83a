"""Read a correction that leaves out what it corrects: "Sorry, I meant Bergen, not Oslo", "Actually I moved in June"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kg_memory.offline.patterns import FUNCTIONAL
from kg_memory.offline.scene import LOOSE, Reading, Statement
from kg_memory.offline.sentences import Sentence, sentences
from kg_memory.offline.spans import PRODUCT, Mention

TAKES_BACK = re.compile(
    r"\b(?:actually|correction|sorry|oops|wait|my mistake|in fact|I (?:meant|misspoke|mistyped|was wrong|"
    r"was mistaken))\b|"
    r"\bnot\b[^.!?]{1,40}\bbut\b|其实|更正|纠正|说错了|搞错了|记错了|写错了|不是[^。！？]{1,20}(?:而?是)",
    re.IGNORECASE,
)
"""How one may take back what was said; read only where it answers to something that was."""
_VERB = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)? (?:actually |really |just |already )?(?P<verb>moved|relocated|joined|started|left|"
    r"quit|"
    r"met|visited|bought|married|graduated|got married)\b|(?P<chinese>搬|加入|入职|离开|离职|去|买|认识|毕业|结婚)",
    re.IGNORECASE,
)

_MEANT = re.compile(r"\bI (?:meant|misspoke|mistyped)\b|\bcorrection\b|说错了|写错了|更正", re.IGNORECASE)

_VAGUE = LOOSE | {"IS_A"}

Said = tuple[Statement, str]
"""A statement of an earlier message, and that message."""


def corrected(content: str, reading: Reading, before: Sequence[Said]) -> Reading:
    """Return *reading* with what its corrections say of the statements *before*, the last of which come last."""
    added: list[Statement] = []
    kept = list(reading.statements)
    for sentence in sentences(content):
        inside = [one for one in kept if sentence.start <= one.start < sentence.end]
        if TAKES_BACK.search(sentence.text) is None or any(one.predicate not in _VAGUE for one in inside):
            continue
        names = [one for one in reading.mentions if sentence.start <= one.start < sentence.end and one.named]
        found = _another(sentence, names, before) or _again(sentence, names, before)
        if found is not None:
            added.append(found)
            kept = [one for one in kept if one not in inside]
    statements = sorted((*kept, *added), key=lambda one: one.start)
    return replace(reading, statements=tuple(statements)) if added else reading


def _another(sentence: Sentence, names: Sequence[Mention], before: Sequence[Said]) -> Statement | None:
    """Return the statement that has another object now: "not Oslo but Bergen", "I meant Bergen"."""
    for one, _ in reversed(before):
        if len(one.objects) != 1 or one.predicate in LOOSE:
            continue
        old = one.objects[0]
        right = [
            each
            for each in names
            if each.name not in (old.name, one.subject.name) and each.type in (old.type, "Entity", PRODUCT)
        ]
        wrong = re.search(rf"(?:\bnot|不是)\s?(?:\w{{2,4}}\s)?{re.escape(old.name)}", sentence.text, re.IGNORECASE)
        meant = one.predicate in FUNCTIONAL and _MEANT.search(sentence.text)
        if right and (wrong or meant):
            new = replace(right[0], type=old.type)
            return replace(one, objects=(new,), start=sentence.start, end=sentence.end, verb=None, confidence=0.8)
    return None


def _again(sentence: Sentence, names: Sequence[Mention], before: Sequence[Said]) -> Statement | None:
    """Return the statement whose verb is told again, without its object: "I moved in June"."""
    verb = _VERB.search(sentence.text)
    if verb is None or names:
        return None
    word = (verb["verb"] or verb["chinese"]).casefold()
    start, end = (sentence.start + at for at in verb.span("verb" if verb["verb"] else "chinese"))
    for one, content in reversed(before):
        if one.verb is not None and one.predicate not in LOOSE and word in content[slice(*one.verb)].casefold():
            return replace(one, start=sentence.start, end=sentence.end, verb=(start, end), confidence=0.8)
    return None
