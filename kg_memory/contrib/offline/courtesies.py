"""Courtesies: greetings, thanks, wishes, praise and advice, which state nothing."""

from __future__ import annotations

import re

from kg_memory.contrib.offline.lexicon import STARTERS

_ADDRESSED = re.compile(
    r"(?:\w+[,!] )?(?:(?:oh|well|and|so|but|aw+|hey \w+|yeah|yep|wow)[,!]? )*(?:let['’]s|let me know|keep\b|"
    r"please\b|(?:can|could|would|will) you|if you|feel free|"
    r"don['’]t|hope you|good luck|best of luck|thank(?:s| you)|"
    r"sorry(?!, ?(?:I (?:live|lived|work|worked|moved|meant|use|used|was|am|joined)|not|it['’]s|that['’]s|"
    r"actually)\b)|congrat\w*|wish you|take care|"
    r"enjoy\b|talk to you|see you|catch you|(?:so |i['’]m |i am |really |super )*(?:glad|happy|proud|sorry|excited|"
    r"rooting|stoked|thrilled|pumped) (?:you|for you|of you|to hear|that you|to see)|can['’]t wait to (?:hear|"
    r"see)|"
    r"i(?:['’]m| am) (?:always )?here for you|(?:that|it)(?:['’]s| is| sounds| looks|['’]d be| must) (?:so |"
    r"really |such |very |be |have been )*(?:great|awesome|amazing|cool|nice|lovely|wonderful|"
    r"fantastic)\b[^.]{0,12}$|"
    r"(?:i )?appreciate (?:it|you|your|the)|you(?:['’]re|['’]ve| are| have| got)?\b|your\b|take a look|"
    r"check (?:it|this|out)|no (?:problem|worries|prob)|of course|way to go|look(?:s|ing) forward to (?:hearing|"
    r"seeing))",
    re.IGNORECASE,
)
# "I'm vegetarian.", "I am 34.", "Likes hiking"
_SHORT = re.compile(
    r"(?:I|he|she)(?:['’](?:m|s)| am| is) (?:[a-z]{5,}|\d{2,3})\b"
    r"|I turned \d{2,3}\b|(?:likes|loves|enjoys|dislikes|hates|prefers|plays|drinks|uses) \w{3,}",
    re.IGNORECASE,
)
_CHINESE_ADDRESSED = re.compile(
    r"(?:太好了|好的|嗯|哇)?[，,！!]?(?:谢谢|感谢|多谢|不客气|没关系|你好|您好|加油|祝你|祝您|恭喜|再见|晚安|早上好)"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*|[\u4e00-\u9fff]")


def says_something(text: str) -> bool:
    """Return whether a sentence is more than a greeting, thanks or an exclamation."""
    if _ADDRESSED.match(text) or _CHINESE_ADDRESSED.match(text) or text.endswith((":", "：")):
        return False
    words = _WORD.findall(text)
    han = sum(1 for word in words if "\u4e00" <= word <= "\u9fff")
    latin = [word for word in words if word.casefold() not in STARTERS]
    if han and len(words) > han:
        return han >= 2  # 我用React
    return han >= 4 or (len(latin) - han >= 2 and len(words) - han >= 3) or _SHORT.match(text) is not None
