"""Recognise messages without content: greetings, thanks, praise, and acknowledgements such as "Noted."."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kg_memory.text.identity import canonical_sentence

LONGEST = 120
"""The most characters of a greeting."""
# Without words of assent and denial, which state something: "yes", "sure", "same here", "sounds like a plan".
_PHRASES = """
hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day|night)
|welcome back|how are (?:you|things)(?: doing)?(?: today)?|how (?:is|s) it going|what s up|whats up|long time no see
|thanks|thank you|thx|ty|cheers|many thanks|much appreciated|(?:i )?(?:really )?appreciate it
|thanks a (?:lot|ton|million)
|you re (?:very |most )?welcome|you are (?:very |most )?welcome|don t mention it
|bye|goodbye|good bye|bye bye|bye for now|see (?:you|ya)(?: later| soon| around)?|cya|take care|stay safe
|ttyl|(?:talk|chat|speak|catch)(?: (?:to|with))?(?: (?:you|ya))? (?:soon|later)|until next time
|have a (?:nice|good|great|lovely|wonderful) (?:day|evening|night|weekend|week|one|time)
|(?:a ?)?(?:ha ?){1,9}|(?:he){2,9}|lol|rofl|lmao
|你好|您好|大家好|嗨|哈喽|早|早安|早上好|上午好|中午好|下午好|晚上好|晚安|好久不见
|谢谢|谢谢[你您啦了]|多谢|感谢|十分感谢|非常感谢|辛苦了|不客气|不用谢|别客气|再见|拜拜|回头见|保重|哈{2,9}|呵{2,9}|嘻{2,9}
""".replace("\n", "")
_GOOD = """
(?:great|good|awesome|amazing|cool|nice|lovely|wonderful|fun|perfect|fantastic|exciting|incredible|brilliant|beautiful
|sweet|neat|excellent|impressive)
""".replace("\n", "")
_VERY = "(?:(?:very|really|pretty|super|how) )?"
_REACTIONS = f"""
morning|(?:it s |it was )?my pleasure|no problem(?: at all)?|no worries|any ?time|later|没关系|太好了|真棒|真好|恭喜
|(?:(?:sorry )?i (?:ve )?)?(?:gotta|got to|have to|must) (?:run|go|dash|head out|get going)
|(?:(?:that|this|it) )?(?:sounds|looks) (?:so |like )?{_VERY}{_GOOD}|(?:that|this)(?: is| s) (?:so )?{_VERY}{_GOOD}
|{_VERY}{_GOOD}(?: (?:job|work|one|stuff|news))?|wow|whoa|aw+|yay|ooh|omg|phew
|(?:(?:i m|i am) )?{_VERY}(?:glad|happy|good|great|nice|lovely) to (?:hear|see)(?: (?:that|it|this|from you))?
|(?:(?:i m|i am) )?(?:glad (?:i could|to)|happy to) help|(?:i m |i am )?(?:always )?here for you
|(?:thanks|thank you) (?:so much )?for (?:the|your|all the|all your) (?:support|help|advice|encouragement|kind words)
|congrats|congratulations|well done|way to go|good for you|good luck|best of luck|you rock|you(?: ve)? got this
|keep it up|have fun|enjoy(?: it| yourself)?
|(?:it was |it s been )?{_GOOD} (?:chatting|talking|catching up)(?: (?:with|to) you)?
""".replace("\n", "")
"""Praise and the like, which states something only as an answer to a question or a proposal."""
_ADDED = "there|all|everyone|everybody|guys|team|folks|again|so much|very much|a lot|you too|and|so|oh|well|then|now"
_COURTESY = re.compile(rf"(?:(?:{_PHRASES}|{_ADDED})(?:\s+|$))+")
_COURTESY_OR_REACTION = re.compile(rf"(?:(?:{_PHRASES}|{_REACTIONS}|{_ADDED})(?:\s+|$))+")
_PROPOSES = re.compile(
    r"[?？]|\d|\b(?:let['’]?s|shall|should|could|would|will|can|may|might|must|wanna|gonna|want|going to|about|if|or|"
    r"join|come|meet|invit\w+|plan\w*|suggest\w*|propos\w*|offer\w*|recommend\w*|book\w*|try|when|today|tonight|tomorrow|"
    r"weekend|next|what|which|who|where|why|how|tell|choose|pick|rate|do you|"
    r"are you|(?:mon|tues|wednes|thurs|fri|satur|sun)day\w*)\b|['’]ll\b|"
    r"吗|呢|吧|要不|如果|可以|能|一起|想|会|打算|计划|建议|推荐|明天|今天|今晚|周|星期|下",
    re.IGNORECASE,
)
"""Signs of a question or a proposal, to which a reaction may agree; deliberately too many rather than too few."""
_ONLY_ADDED = re.compile(rf"(?:(?:{_ADDED})(?:\s+|$))*")
# Emoji that mean yes or no.
_ANSWERS = frozenset("👍👎👌🆗✅✔☑❌✖❎🙅🙆")
_RECEIPTS = """
(?:duly )?noted|got it|gotcha|understood|i see|i understand|good to know|roger(?: that)?|consider it done
|(?:i ll|i will) (?:(?:be sure|make sure|try) to )?(?:remember(?: (?:that|it|this))?|keep (?:that|it|this) in mind)
|(?:i ll|i will) (?:make a note of|note) (?:that|it|this)(?: down)?
|(?:i ve|i have) (?:noted|made a note of|remembered) (?:that|it|this)(?: down)?
|(?:i ll|i will|i ve|i have) saved? (?:that|it|this) (?:to|in) (?:my )?memory
|(?:thanks|thank you)(?: so much)? for (?:letting me know|telling me|sharing(?: (?:that|this|it))?|the update|the info)
|我?(?:已经)?(?:记住|记下|知道|明白|懂)了|我会记住的?|收到|明白|了解
""".replace("\n", "")
_ASSENTS = """
sure(?: thing)?|ok|okay|k|kk|alright|all right|right|of course|certainly|absolutely|definitely|will do
|好|好的|好吧|行|没问题
""".replace("\n", "")
_ANY = re.compile(rf"(?:(?:{_PHRASES}|{_REACTIONS}|{_RECEIPTS}|{_ASSENTS}|{_ADDED})(?:\s+|$))+")
_RECEIPT = re.compile(rf"(?:^|\s)(?:{_RECEIPTS})(?:\s|$)")


def says_nothing(content: str, people: Iterable[str] = (), before: Iterable[str] = ()) -> bool:
    """Return whether the message *content* is only a greeting, thanks, a farewell or laughter, such as "Hello Ann!".

    *people* are names that may be part of a greeting. Praise such as "Sounds great!" counts as well, unless one of the
    earlier messages *before* seems to ask or propose something, because it is then an answer.
    """
    if len(content) > LONGEST or not _ANSWERS.isdisjoint(content):
        return False
    text = canonical_sentence(content)
    if not text:
        return True
    names = {part for name in map(canonical_sentence, people) for part in (name, *name.split()[:1])}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    text = " ".join(text.split())
    phrases = _COURTESY if any(map(_PROPOSES.search, before)) else _COURTESY_OR_REACTION
    return bool(phrases.fullmatch(text)) and not _ONLY_ADDED.fullmatch(text)


def is_filler(content: str, before: str | None) -> bool:
    """Return whether the message *content* has nothing worth finding: "Noted.", "Got it, thanks!", "Sure!".

    *before* is the previous message, by another speaker. If it asks or proposes something, or is None (unknown),
    "Sure!" counts as an answer, and the result is False.
    """
    if says_nothing(content):
        proposes = before is None or _PROPOSES.search(before) is not None
        return not proposes or says_nothing(content, before=["?"])
    text = " ".join(canonical_sentence(content).split()) if len(content) <= LONGEST else ""
    if not _ANSWERS.isdisjoint(content) or not _ANY.fullmatch(text) or _ONLY_ADDED.fullmatch(text):
        return False
    return _RECEIPT.search(text) is not None or (before is not None and not _PROPOSES.search(before))
