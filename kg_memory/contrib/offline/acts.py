"""Match what people, organisations and programs do, by which an unknown word before it is known as a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.contrib.offline.statements import Token

_ADVERB = r"(?:(?:now|still|also|just|really|currently|recently|finally|always) )?"
PERSON_ACTS = re.compile(
    rf"{_ADVERB}(?:(?:no longer )?(?:lives|resides) (?:in|at|with|near)"
    r"|(?P<past>lived (?:in|at|with)|worked (?:at|for|as)|grew up in|stopped \w+ing|retired"
    r"|got (?:married|engaged|divorced))"
    r"|(?:manages|leads|teaches|owns|coaches|studies)(?! (?:to|of|by|that)\b)"
    r"|(?:no longer )?works (?:at|as|for(?! (?:me|us|you|him|her|them|it)\b))|studies at"
    r"|used to (?:live|work|study)|(?:doesn't|does not) (?:live|work|like|enjoy)|is married to|was born in"
    r"|likes|loves|prefers|hates|dislikes|adores|enjoys)\b"
)
_PERSON_OR_GROUP_ACTS = re.compile(
    rf"{_ADVERB}(?:(?:no longer )?uses(?! (?:of|for)\b)|is (?:from|based in)"
    r"|is an? (?:[\w-]+ ){0,2}(?:agency|bank|charity|company|firm|foundation|nonprofit|start-?up|university)"
    r"|runs (?:on|in)|is (?:hosted|deployed|installed|written|built) (?:on|in|with|to)|depends on|supports"
    r"|(?P<past>(?:moved|relocated) (?:\w+ )?(?:to|from)|joined))\b"
)
_ACT_WORDS = 5
"""The most words of an act: "now no longer works for me", "is a small logistics company"."""


def match_act(words: Sequence[Token], at: int) -> re.Match[str] | None:
    """Match words from *at* on for what only people and organisations do ("lives in", "prefers")."""
    act = " ".join(word.low for word in words[at : at + _ACT_WORDS])
    return PERSON_ACTS.match(act) or _PERSON_OR_GROUP_ACTS.match(act)
