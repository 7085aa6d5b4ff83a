"""Split a text into sentences, find the words that carry its meaning, and summarise it by its best sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kg_memory.text.dated import without_dates
from kg_memory.text.lexicon import STARTERS, STOP

_END = re.compile(r"(?<![\s.])(?:[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？；]+[”’」』）]*|(?=\n))|\n")
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|inc|ltd|no|approx|u\.s|u\.k)|\b[A-Z])\.$", re.IGNORECASE
)
# "I'm moving to Oslo, can you recommend a school?" states something, and then asks.
_THEN_ASKS = re.compile(
    r"(?P<stated>(?:\w+[,!] )?(?:I|I['’]\w+|We|We['’]\w+|My|Our)\b.{15,}?(?:[,;–—]| -| and| so) ?)"
    r"(?:can|could|would|will|do|does|did|is|are|should|what|how|which|any|where|when|who|why|have) (?=\w)",
    re.DOTALL,
)
# "I opened a shop - pretty cool, huh?" states that.
_TAG = re.compile(r"[,\s–—-](?:huh|right|eh|you know|isn't it|don't you think|ok|okay|haha)\?+$", re.IGNORECASE)
# Wishes, thanks, praise and advice state nothing.
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
_CHINESE_QUESTION = re.compile(r"[吗呢么][。！\s]*$|^(?:怎么|什么|为什么|哪|谁|几点|多少)")
_CHINESE_ADDRESSED = re.compile(
    r"(?:太好了|好的|嗯|哇)?[，,！!]?(?:谢谢|感谢|多谢|不客气|没关系|你好|您好|加油|祝你|祝您|恭喜|再见|晚安|早上好)"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*|[\u4e00-\u9fff]")
_TERM = re.compile(r"[A-Za-z0-9À-ɏ]+|[\u4e00-\u9fff]")
_CHINESE = re.compile("[\u3400-\u9fff]")
_HAS_END = re.compile(r"[.!?…。！？；:：]['\"”’)\]」』）]*$")
_LONGEST = 400
"""The most characters of a sentence; text without an end is cut at a space or comma."""
LONGEST_SUMMARY = 300
MOST_SENTENCES = 3
LONGEST_NAME = 200
NAMED = 4
"""Members that give a community its name."""
_SAME = 0.6
"""The share of its words that makes a sentence a repetition."""


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
        """Return whether it is more than a greeting, thanks or an exclamation."""
        if _ADDRESSED.match(self.text) or _CHINESE_ADDRESSED.match(self.text) or self.text.endswith((":", "：")):
            return False
        words = _WORD.findall(self.text)
        han = sum(1 for word in words if "\u4e00" <= word <= "\u9fff")
        latin = [word for word in words if word.casefold() not in STARTERS]
        if han and len(words) > han:
            return han >= 2  # 我用React
        return han >= 4 or (len(latin) - han >= 2 and len(words) - han >= 3) or _SHORT.match(self.text) is not None


def split_sentences(content: str) -> list[Sentence]:
    """Split *content* into sentences, without the white space around them."""
    sentences: list[Sentence] = []
    start = 0
    for match in _END.finditer(content):
        if _ABBREVIATION.search(content[max(start, match.end() - 8) : match.end()]):
            continue
        sentences += _cut(content, start, match.end())
        start = match.end()
    return [*sentences, *_cut(content, start, len(content))]


def _cut(content: str, start: int, end: int) -> Iterator[Sentence]:
    """Yield the sentence between *start* and *end*, in pieces where it is long."""
    while end - start > _LONGEST:
        within = start + _LONGEST // 2, start + _LONGEST
        cut = max(content.rfind(mark, *within) for mark in (", ", "，", "; ", "；"))
        cut = cut if cut > 0 else max(content.rfind(mark, *within) for mark in " ,、;")
        cut = cut + 1 if cut > 0 else start + _LONGEST
        yield from _strip(content, start, cut)
        start = cut
    yield from _strip(content, start, end)


def _strip(content: str, start: int, end: int) -> Iterator[Sentence]:
    """Yield the sentence between *start* and *end* without white space; its question, if any, apart."""
    text = content[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    asks_after = _THEN_ASKS.match(text) if text.endswith("?") else None
    if asks_after:
        head = asks_after["stated"].rstrip(" ,;-–—")
        yield Sentence(start, start + len(head), head)
        start, text = start + asks_after.end("stated"), text[asks_after.end("stated") :]
        start, text = start + len(text) - len(text.lstrip()), text.strip()
    if text:
        yield Sentence(start, start + len(text), text)


def list_words(text: str) -> list[str]:
    """Return the words and numbers of *text*, and its Chinese characters."""
    return _TERM.findall(text)


def singular(noun: str) -> str:
    """Return *noun* without its plural ending, by the spelling alone."""
    if len(noun) <= 3 or not noun.endswith("s") or noun.endswith(("ss", "us", "is")):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-2] if noun.endswith(("sses", "shes", "ches", "xes")) else noun[:-1]


def content_words(text: str) -> frozenset[str]:
    """Return the words of *text* that carry its meaning, in the singular."""
    words = map(str.casefold, list_words(text))
    return frozenset(singular(word) for word in words if word not in STOP)


def words_without_speaker(sentence: str) -> frozenset[str]:
    """Return the `content_words` of *sentence* without the name of its speaker ("Ann: ...")."""
    return content_words(sentence.split(": ", 1)[-1])


def summarise(name: str, facts: Sequence[str]) -> str:
    """Return the sentences of *facts* (newest first) that say most about *name*, without repetition, oldest first."""
    ranked = sorted(enumerate(facts), key=lambda fact: (-_weight(name, fact[1], fact[0], len(facts)), fact[0]))
    chosen: list[tuple[int, str]] = []
    seen: set[str] = set()
    length = 0
    for age, sentence in ranked:
        words = words_without_speaker(without_dates(sentence))
        fits = length + len(sentence) + 1 <= LONGEST_SUMMARY
        if not fits or (words and len(words & seen) / len(words) > _SAME):
            continue
        chosen.append((age, sentence.strip()))
        seen |= words
        length += len(sentence) + 1
        if len(chosen) == MOST_SENTENCES:
            break
    if not chosen and facts:
        return facts[0][:LONGEST_SUMMARY]
    return " ".join(_with_end(sentence) for _, sentence in sorted(chosen, reverse=True))


def _with_end(sentence: str) -> str:
    """Return *sentence* with a full stop, unless it has an end."""
    if _HAS_END.search(sentence):
        return sentence
    return f"{sentence}{'。' if _CHINESE.search(sentence[-1:]) else '.'}"


def _weight(name: str, sentence: str, age: int, count: int) -> float:
    """Weigh a sentence by its content, by whether it names the entity, and by its age."""
    words = words_without_speaker(without_dates(sentence))
    named = name.casefold() in sentence.casefold()
    return min(len(words), 12) / 12 + 0.3 * named + 0.6 * (1 - age / max(count, 1))


def describe(items: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return a name and a summary of a community: its first members, and the best sentences of its facts or parts."""
    names = [item["entity"] for item in items if "entity" in item]
    facts = [item["fact"] for item in items if "fact" in item]
    parts: list[str] = []
    for item in items:
        if "part" in item:
            parts += filter(None, re.split(", |、", item["part"]))
            facts += [sentence.text for sentence in split_sentences(item["summary"])]
    names = list(dict.fromkeys(names or parts))
    comma = "、" if _CHINESE.search("".join(names[:NAMED])) else ", "
    return comma.join(names[:NAMED])[:LONGEST_NAME], summarise(names[0] if names else "", facts)
