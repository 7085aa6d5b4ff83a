"""Which messages carry nothing to remember, purely: greetings, thanks and the like, in English and Chinese (C51)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kg_memory.identity import canonical_sentence

LONGEST = 120
"""Characters; what is longer is always read."""
# Words of assent and denial are not here: they may answer a question, and then state something.
_PHRASES = """
hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day|night)|morning
|welcome back|how are (?:you|things)(?: doing)?(?: today)?|how (?:is|s) it going|what s up|whats up|long time no see
|thanks|thank you|thx|ty|cheers|many thanks|much appreciated|(?:i )?(?:really )?appreciate it
|thanks a (?:lot|ton|million)
|you re (?:very |most )?welcome|you are (?:very |most )?welcome|(?:it s |it was )?my pleasure|no problem|no worries
|don t mention it|any ?time
|bye|goodbye|good bye|bye bye|see (?:you|ya)(?: later| soon| around)?|take care|stay safe|(?:talk|chat|catch you) soon
|have a (?:nice|good|great|lovely|wonderful) (?:day|evening|night|weekend|week|one|time)
|(?:a ?)?(?:ha ?){1,9}|(?:he){2,9}|lol|rofl|lmao
|你好|您好|大家好|嗨|哈喽|早|早安|早上好|上午好|中午好|下午好|晚上好|晚安|好久不见
|谢谢|谢谢[你您啦了]|多谢|感谢|十分感谢|非常感谢|辛苦了|不客气|不用谢|别客气|没关系|再见|拜拜|回头见|保重|哈{2,9}|呵{2,9}|嘻{2,9}
""".replace("\n", "")
_ADDED = "there|all|everyone|everybody|guys|team|folks|again|so much|very much|a lot|you too|and|so|oh|well|then|now"
_PHATIC = re.compile(rf"(?:(?:{_PHRASES}|{_ADDED})(?:\s+|$))+")
_ONLY_ADDED = re.compile(rf"(?:(?:{_ADDED})(?:\s+|$))*")
_ANSWERS = frozenset("👍👎👌🆗✅✔☑❌✖❎🙅🙆")
"""Pictures that say yes or no."""


def says_nothing(content: str, people: Iterable[str] = ()) -> bool:
    """Tell whether *content* is a greeting, thanks, a farewell, laughter or marks alone, perhaps to one of *people*."""
    if len(content) > LONGEST or not _ANSWERS.isdisjoint(content):
        return False
    text = canonical_sentence(content)
    if not text:
        return True
    names = {part for name in map(canonical_sentence, people) for part in (name, *name.split()[:1])}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    text = " ".join(text.split())
    return bool(_PHATIC.fullmatch(text)) and not _ONLY_ADDED.fullmatch(text)
