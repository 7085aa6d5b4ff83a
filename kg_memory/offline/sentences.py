"""Cut a text into sentences, and tell which of them state something."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kg_memory.offline.lexicon import STARTERS

_END = re.compile(r"(?<![\s.])(?:[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？；]+[”’」』）]*|(?=\n))|\n")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|inc|ltd|no|approx|u\.s|u\.k)|\b[A-Z])\.$", re.IGNORECASE
)
# "I'm moving to Oslo, can you recommend a school?" tells something, and then asks.
_THEN_ASKS = re.compile(
    r"(?P<told>(?:\w+[,!] )?(?:I|I['’]\w+|We|We['’]\w+|My|Our)\b.{15,}?(?:[,;–—]| -| and| so) ?)"
    r"(?:can|could|would|will|do|does|did|is|are|should|what|how|which|any|where|when|who|why|have) (?=\w)",
    re.DOTALL,
)
# "I opened a shop - pretty cool, huh?" states that.
_TAG = re.compile(r"[,\s–—-](?:huh|right|eh|you know|isn't it|don't you think|ok|okay|haha)\?+$", re.IGNORECASE)
# Wishes, thanks, praise and advice: said to somebody, and stating nothing.
_ADDRESSED = re.compile(
    r"(?:\w+[,!] )?(?:(?:oh|well|and|so|but|aw+|hey \w+|yeah|yep|wow)[,!]? )*(?:let['’]s|let me know|keep|"
    r"don['’]t|hope you|good luck|best of luck|thank(?:s| you)|"
    r"sorry(?!, ?(?:I (?:live|lived|work|worked|moved|meant|use|used|was|am|joined)|not|it['’]s|that['’]s|"
    r"actually)\b)|congrat\w*|wish you|take care|"
    r"enjoy|talk to you|see you|catch you|(?:so |i['’]m |i am |really |super )*(?:glad|happy|proud|sorry|excited|"
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
_CHINESE_QUESTION = re.compile(r"[吗呢么][。！\s]*$|^(?:怎么|什么|为什么|哪|谁|几点|多少)")
_CHINESE_ADDRESSED = re.compile(
    r"(?:太好了|好的|嗯|哇)?[，,！!]?(?:谢谢|感谢|多谢|不客气|没关系|你好|您好|加油|祝你|祝您|恭喜|再见|晚安|早上好)"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*|[\u4e00-\u9fff]")
_LONGEST = 400
"""The most characters of a sentence; text without an end is cut at a space or comma."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The characters ``content[start:end]``, which are `text`."""

    start: int
    end: int
    text: str

    @property
    def asks(self) -> bool:
        """Return whether it is a question."""
        bare = self.text.rstrip("\"'”’)」』） \t")
        if bare.endswith(("?", "？")):
            return _TAG.search(bare) is None
        return _CHINESE_QUESTION.search(self.text) is not None

    @property
    def says_something(self) -> bool:
        """Return whether it is more than a greeting, a thank or an exclamation."""
        if _ADDRESSED.match(self.text) or _CHINESE_ADDRESSED.match(self.text):
            return False
        words = _WORD.findall(self.text)
        han = sum(1 for word in words if "\u4e00" <= word <= "\u9fff")
        latin = [word for word in words if word.casefold() not in STARTERS]
        return han >= 4 or (len(latin) - han >= 2 and len(words) - han >= 3)


def sentences(content: str) -> list[Sentence]:
    """Cut *content* into sentences, without the white space around them."""
    found: list[Sentence] = []
    start = 0
    for match in _END.finditer(content):
        if _ABBREVIATION.search(content[max(start, match.end() - 8) : match.end()]):
            continue
        _append(found, content, start, match.end())
        start = match.end()
    _append(found, content, start, len(content))
    return found


def _append(found: list[Sentence], content: str, start: int, end: int) -> None:
    while end - start > _LONGEST:
        cut = max(content.rfind(mark, start + _LONGEST // 2, start + _LONGEST) for mark in " ,，、;")
        cut = cut + 1 if cut > 0 else start + _LONGEST
        _trimmed(found, content, start, cut)
        start = cut
    _trimmed(found, content, start, end)


def _trimmed(found: list[Sentence], content: str, start: int, end: int) -> None:
    text = content[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    asks_after = _THEN_ASKS.match(text) if text.endswith("?") else None
    if asks_after:
        head = asks_after["told"].rstrip(" ,;-–—")
        found.append(Sentence(start, start + len(head), head))
        start, text = start + asks_after.end("told"), text[asks_after.end("told") :]
        start, text = start + len(text) - len(text.lstrip()), text.strip()
    if text:
        found.append(Sentence(start, start + len(text), text))
