"""Read what somebody used to do, or gave up: "I used to play chess", "I quit smoking", "I gave up meat"."""

from __future__ import annotations

import re
from dataclasses import replace

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import GIVEN_UP, TOPIC, Mention, Pattern, Span
from kg_memory.contrib.offline.wording import to_gerund

HABIT = "DOES"
"""The predicate of the patterns that this module reads."""
_HABIT = re.compile(
    r"\s(?P<verb>[A-Za-z]+)(?P<rest>(?:\s(?!(?:and|but|or|so|because|when|while|until|till|before|after|since|with|"
    r"every|all|any ?more|any longer|a lot|as|back|last|this|two|three|a few|yesterday|today|recently|for|during)\b|"
    r"in (?:19|20)\d\d|in [A-Z])[\w'’-]+){0,4})"
)
_LASTED = re.compile(r"(?:used to|no longer|n['’]t|not)$", re.IGNORECASE)
"""Verbs that a plain verb follows: "used to play"."""
_ELLIPSIS = re.compile(r"(?:,|\band|\bbut)\s+$", re.IGNORECASE)
"""Before a verb that may be left out: "I like salsa, no longer tango"."""
_THIRD = re.compile(r"(?:(?<=[sxzo])es|(?<=[sc]h)es|(?<![su'’])s)$", re.IGNORECASE)
"""The ending of "plays"; no verb has it after "used to"."""
_OWNED = re.compile(r"\s(?:my|our|the|his|her|their)\s", re.IGNORECASE)


def read_former_habit(
    pattern: Pattern, text: str, offset: int, verb: Span, objects: tuple[Mention, ...]
) -> tuple[Pattern, tuple[Mention, ...]]:
    """Return *pattern* with the predicate that its object gives it, and that object; without objects where none is."""
    activity = _HABIT.match(text, verb[1])
    lasted = _LASTED.search(text[slice(*verb)]) is not None
    if activity is not None and _ELLIPSIS.search(text[: verb[0]]):
        activity = activity if activity["verb"].casefold() in lexicon.VERB_FORMS else None
    if activity is not None and (lasted or activity["verb"].casefold().endswith("ing")):
        return pattern, (_name_activity(activity, offset, lasted=lasted),)
    if lasted:
        return pattern, ()
    thing = next(iter(objects), None)
    if thing is None or (thing.named and not text[slice(*verb)].casefold().endswith("up")):
        named = thing is not None and not thing.kin
        return replace(pattern, predicate="WORKS_AT"), objects if named else ()
    last = thing.name.casefold().split()[-1]
    if thing.named:
        predicate = "USES"
    elif last in GIVEN_UP:
        predicate = GIVEN_UP[last]
    else:
        owned = _OWNED.match(text, verb[1]) is not None
        predicate = "HAS" if owned else "DOES"
    return replace(pattern, predicate=predicate), objects[:1]


def _name_activity(match: re.Match[str], offset: int, *, lasted: bool) -> Mention:
    """Return the verb of *match*, with up to four words, as something that was done: "playing chess"."""
    rest = match["rest"].split()
    while rest and rest[-1].casefold() in lexicon.STOP:
        rest.pop()
    name = " ".join([to_gerund(_THIRD.sub("", match["verb"])) if lasted else match["verb"], *rest])
    stop = match.end("rest") if rest else match.end("verb")
    return Mention(offset + match.start("verb"), offset + stop, name, TOPIC)
