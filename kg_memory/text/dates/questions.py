"""Tell which part of a question may ask about a time of the world, and which questions never do."""

from __future__ import annotations

import re

_SPACES = str.maketrans({"’": "'", "\t": " ", "\u3000": " ", "\xa0": " ", "\r": "\n"})
_QUOTED = re.compile(
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』|《[^》\n]{1,200}》|"
    r"(?<!\w)'[^'\n]{2,100}'(?!\w)|`[^`\n]{1,200}`"
)
_SENTENCE_END = re.compile(r"[?!。！？\n]+|;|；|(?<=[a-z\d)]{3})\.(?=\s+[A-Z])")
_ABBREVIATED = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Sept|approx|Inc|Ltd|vs)$", re.IGNORECASE)
_POLITE = re.compile(
    r"\s*(?:(?:please|hey|hi|hello|ok|okay|so|and|but|also|now|well|then|,)[\s,]*){0,4}"
    r"(?:(?:can|could|would|will)\syou\s(?:please\s|kindly\s)?)?(?:(?:tell|remind|show)\s(?:me|us)|(?:may|can|could)\si\sask(?:\syou)?)\b|"
    r"(?:你|您)?(?:能不能|能否|能|可以|可否)?请?(?:你|您)?(?:再|帮我)?(?:告诉|提醒)(?:一下)?我们?(?:一下)?|\s*(?:now|so|and|but|well),",
    re.IGNORECASE,
)

_UNITS = r"(?:second|minute|hour|day|night|weekend|week|month|season|year|decade)s?\b"
_TIME_ASKED = re.compile(
    r"\bwhen(?:'s|'d|\sexactly)?\s(?:did|was|were|is|are|will|would|has|have|had|does|do|can|could|should|might)\b|"
    r"\b(?:know|remember|recall|sure|idea|find\sout|figure\sout|wonder|wondering|see|and|or|exactly|of|since|until|till|"
    r"by|from|between|tell\sme|tell\sus|remind\sme|remind\sus|show\sme)\s(?:exactly\s)?when\b|"
    r"\bhow\s(?:long|old|soon|recently|early|late|far\sback|much\s(?:more\s)?time)\b|"
    rf"\bhow\s(?:many|much)\s(?:\w+\s){{0,2}}{_UNITS}|"
    rf"\b(?:what|which)(?:'s|\sis|\sare|\swas|\swere)?(?:\sthe)?(?:\s(?:exact|first|last|latest|same))?\s(?:\w+\s)?"
    r"(?:date|day|year|month|time|week|season|decade|century|birthday|deadline|anniversary|age)s?\b|"
    r"\b(?:dates?|time|age)\s(?:of|when|at\swhich|between|elapsed|passed)\b|\b(?:elapsed|passed)\s(?:between|since)\b|"
    r"\bduration\b|\border\sin\swhich\b|\bin\s(?:what|which|chronological)\sorder\b|\bchronolog|\btimeline\b|"
    r"什么时候|什么时间|什么日期|什么日子|何时|几时|哪一?[年天月日周]|哪个(?:月|星期|季|周末)|几[号月点]|多久|多长|"
    r"多少(?:天|年|周|日|个月|个?小时|个?星期)|(?<![前这近好十上])几(?:天|年|周|个月|个?小时|个?星期)(?![前后以之来])|"
    r"生日|几岁|多大|年龄|顺序|先后|间隔|相隔",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\bhow\s(?:many|much)\b|多少|几[个次本]", re.IGNORECASE)
_RANGE = re.compile(r"\bbetween\b|\bfrom\b.{1,60}\b(?:to|until|till|through)\b|之间|到|至", re.IGNORECASE)
_WHEN_FIRST = re.compile(r"[\s,]*(?:and|so|but)?\s*when\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_THEN_ASKED = re.compile(
    r"\b(?:what|where|who|whom|whose|which|how|why)\b|,\s*(?:did|was|were|is|are|do|does|had|has|have|could|would)\b|"
    r",\s*(?:tell|list|name|show)\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\b(?:sa(?:y|ys|id|ying)|tell|tells|told|telling|mention\w*|ask|asks|asked|asking|talk|talks|talked|talking|discuss\w*|"
    r"chat|chats|chatted|chatting|speak|spoke|spoken|shar(?:e|es|ed|ing)|describ(?:e|es|ed|ing)|explain\w*|suggest\w*|"
    r"recommend\w*|advise[sd]?|remind|reminded|bring\sup|brought\sup|repl(?:y|ied)|answer|answered|respond\w*|reported|"
    r"confirm|confirmed|promised?|announce\w*|according\sto|conversations?|messages?|discussions?|(?:my|our|your)\ssessions?|"
    r"show|showed|shown|posted|claim|claimed|(?:did|had)\s(?:you|we|i)\s(?:know|believe|think|learn|remember))\b|"
    r"(?<![小传再])说(?!明|服)|告诉|提到|提过|提起|提醒|问(?:过|了|我|你|起|的)|[我你您]问|讲(?:过|了|到|的)|聊|谈(?:到|论|起|过)|讨论|分享|建议|推荐|"
    r"对话|记录",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"(?<!from\s)\b(?:now|currently|nowadays|presently)\b|\b(?:at\s(?:the\smoment|present)|these\sdays)\b|"
    r"现在|目前|当前|如今|眼下|此刻|这阵子",
    re.IGNORECASE,
)


def asked_part(question: str) -> tuple[int, str] | None:
    """Return the place and the text, quotes blanked out, of the sentence that asks, or ``None`` where it asks no time.

    A question for a time, about what was said, or about now, asks about no time of the world.
    """
    text = question.translate(_SPACES)
    text = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    span = _asking_sentence(text)
    if span is None:
        return None
    start, end = span
    polite = _POLITE.match(text, start, end)
    part = text[start:end]
    asks = " " * (polite.end() - start) + text[polite.end() : end] if polite else part
    return None if _never(part, asks) else (start, asks)


def _asking_sentence(text: str) -> tuple[int, int] | None:
    """Return the place of the only question in *text*, or of its only sentence."""
    sentences = []
    start = 0
    for match in [*_SENTENCE_END.finditer(text), None]:
        if match is not None and match[0] == "." and _ABBREVIATED.search(text, start, match.start()):
            continue
        end = len(text) if match is None else match.end()
        if re.search(r"\w", text[start:end]):
            sentences.append((start, end))
        start = end
    asking = [one for one in sentences if re.search(r"[?？]", text[slice(*one)])] or sentences
    return asking[0] if len(asking) == 1 else None


def _never(part: str, asks: str) -> bool:
    if _TIME_ASKED.search(part) or _SAID.search(asks) or _NOW.search(asks):
        return True
    if _COUNTED.search(asks) and _RANGE.search(asks):
        return True
    first = _WHEN_FIRST.fullmatch(asks)
    return first is not None and _THEN_ASKED.search(first["rest"]) is None
