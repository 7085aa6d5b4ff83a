"""Read who is whose relative, and who is together with whom: "my sister Lily", "Tom and I broke up"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.clauses import interpret_verb
from kg_memory.contrib.offline.statements import PERSON, TOPIC, Change, Mention, Span, Statement
from kg_memory.text.sentences import Sentence

_COUPLE = re.compile(
    r"\b(?P<who>and I|we|I)(?:['’]ve)? (?:just |recently |finally )?(?P<how>broke up|split up|separated|got divorced|"
    r"divorced|got engaged|got married|got back together)\b(?! to\b)",
    re.IGNORECASE,
)
_STATUS = {"got married": "married", "got engaged": "engaged", "got divorced": "not married"}
_IS_MINE = re.compile(r"\s(?:is|was)\s(?:my|our)\s(?P<kin>[\w-]+)", re.IGNORECASE)
_OWNER = re.compile(r"\b(?:my|our)\b[^,.;!?]{0,30}$", re.IGNORECASE)


def read_couple(
    sentence: Sentence, speaker: Mention, mentions: Sequence[Mention], person: Mention | None
) -> list[Statement]:
    """Read "Tom and I broke up" and, of the *person* named last, "we broke up"; of nobody else, "we got married"."""
    match = _COUPLE.search(sentence.text)
    if match is None:
        return []
    end = sentence.start + match.start()
    people = [one for one in mentions if one.type == PERSON and one.end <= end + 1 and one.name != speaker.name]
    partner = None if match["who"] == "I" else people[-1] if people else person
    how = match["how"].casefold()
    start, stop = (sentence.start + at for at in match.span("how"))
    if partner is None and how in _STATUS:
        return _read_status(sentence, speaker, _STATUS[how], (start, stop))
    if partner is None:
        return []
    married = how in ("divorced", "got divorced", "got married")
    predicate = "IS_MARRIED_TO" if married else "IS_IN_RELATIONSHIP_WITH"
    change: Change = "is" if how in ("got married", "got engaged", "got back together") else "ends"
    return [Statement(speaker, predicate, (partner,), sentence.start, sentence.end, change, 0.8, verb=(start, stop))]


def _read_status(sentence: Sentence, speaker: Mention, status: str, how: Span) -> list[Statement]:
    """Return that *speaker* is of *status* since the verb *how*, or is married no more."""
    verb = (how[0] - sentence.start, how[1] - sentence.start)
    meaning = interpret_verb("IS_A", "is", sentence.text, verb)
    if meaning != ("IS_A", "is"):
        return []
    thing = Mention(*how, status.removeprefix("not "), TOPIC)
    change: Change = "ends" if status.startswith("not ") else "is"
    return [Statement(speaker, "IS_A", (thing,), sentence.start, sentence.end, change, 0.8, verb=how)]


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
