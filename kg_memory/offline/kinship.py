"""Read who is whose relative, and who is together with whom: "my sister Lily", "Tom and I broke up"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.offline.statements import PERSON, Change, Mention, Statement
from kg_memory.text import lexicon
from kg_memory.text.sentences import Sentence

_COUPLE = re.compile(
    r"(?:\band I|\bwe)(?:['’]ve)? (?:just |recently |finally )?(?P<how>broke up|split up|separated|got divorced|"
    r"divorced|got engaged|got married|got back together)\b",
    re.IGNORECASE,
)
_IS_MINE = re.compile(r"\s(?:is|was)\s(?:my|our)\s(?P<kin>[\w-]+)", re.IGNORECASE)
_OWNER = re.compile(r"\b(?:my|our)\b[^,.;!?]{0,30}$", re.IGNORECASE)


def read_couple(
    sentence: Sentence, speaker: Mention, mentions: Sequence[Mention], person: Mention | None
) -> list[Statement]:
    """Read "Tom and I broke up" and, of the *person* named last, "we broke up"."""
    match = _COUPLE.search(sentence.text)
    if match is None:
        return []
    end = sentence.start + match.start()
    people = [one for one in mentions if one.type == PERSON and one.end <= end + 1 and one.name != speaker.name]
    partner = people[-1] if people else person
    if partner is None:
        return []
    how = match["how"].casefold()
    married = how in ("divorced", "got divorced", "got married")
    predicate = "IS_MARRIED_TO" if married else "IS_IN_RELATIONSHIP_WITH"
    change: Change = "is" if how in ("got married", "got engaged", "got back together") else "ends"
    start, stop = match.span("how")
    verb = (sentence.start + start, sentence.start + stop)
    return [Statement(speaker, predicate, (partner,), sentence.start, sentence.end, change, 0.8, verb=verb)]


def read_kinship(sentence: Sentence, speaker: Mention, mentions: Sequence[Mention]) -> list[Statement]:
    """Read "my sister Lily" and "Lily is my sister" as that Lily is the sister of *speaker*."""
    statements = []
    for mention in mentions:
        place = mention.start - sentence.start, mention.end - sentence.start
        match = _IS_MINE.match(sentence.text, place[1]) if mention.type == PERSON and not mention.kin else None
        if match is not None and match["kin"].casefold() in lexicon.KIN:
            kin, clause = match["kin"], (mention.start, sentence.start + match.end())
        elif mention.kin in lexicon.KIN and "'" not in mention.name:
            owner = _OWNER.search(sentence.text, 0, place[0])
            kin, clause = str(mention.kin), (sentence.start + (owner.start() if owner else place[0]), mention.end)
        else:
            continue
        predicate, span = f"HAS_{kin.upper()}", (sentence.start, sentence.end)
        statements.append(Statement(speaker, predicate, (mention,), *span, "is", 0.8, clause=clause))
    return statements
