"""Whether a Chinese clause is about the subject of a claim that is read from it, and tells it as so. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.text.passage import LIGHT_CHINESE, Claim, Passage
from kg_memory.text.word_match import HAN

_REACH = 60
_CLAUSE = re.compile("[^,，。.！!？?；;\n]+[？?]?")
_KIN = (
    "(?:妹妹|弟弟|哥哥|姐姐|妹|弟|哥|姐|爸爸|妈妈|爸|妈|父亲|母亲|爷爷|奶奶|外公|外婆|姥姥|姥爷|老公|老婆|丈夫|妻子|儿子|女儿|孩子|男朋友|女朋友|朋友"
    "|同事|老板|领导|同学|室友|邻居|表[哥弟姐妹]|堂[哥弟姐妹]|叔叔|阿姨|舅舅|姑姑|侄子|外甥)"
)
_LEAD = "(?:但是|但|可是|可|不过|后来|现在|今天|昨天|明天|上个?月|下个?月|去年|今年|最近|还有|因为|所以|就|听说|而且)?"
_OTHER = re.compile(f"{_LEAD}(?:我|我的|我们|咱)?({_KIN})(?!说|和我|跟我|与我|也?都?觉得)")
_FIRST = re.compile(f"{_LEAD}(?:我|俺)(?!们|的|家|{_KIN}|和|跟|与)")
_NICKNAME = re.compile(
    f"{_LEAD}([小老阿][王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾韦夏付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严])"
)
_REFERS = re.compile("[他她你您咱]|我们")
_OPEN = re.compile(
    "要是|如果|假如|万一|的话|可能|也许|说不定|差点|想|打算|希望|准备|考虑|本来|原本|快要|应该|将|会|要|愿|听说|据说|计划|说|吗|请"
)
_MARKED = re.compile(
    "要是|如果|假如|万一|的话|也许|说不定|差点|本来想|打算|希望|想(?!起|到|念)|要(?!求|紧|不是).{1,8}了?$|真的假的|是不是|吗[？?]?$|[？?]$"
)
_DONE = re.compile("[了过]")


def find_clause(claim: Claim, span: tuple[int, int], content: str) -> str:
    """Return the clause of the span that has most characters of the claim."""
    first = max(span[0] - _REACH, 0)
    wanted = {char for char in claim.sentence if HAN.match(char)} - LIGHT_CHINESE
    clauses = [
        match[0].strip()
        for match in _CLAUSE.finditer(content, first, min(span[1] + 1, len(content)))
        if match.end() > span[0]
    ]
    return max(clauses, key=lambda clause: len(wanted.intersection(clause)), default="")


def is_about_other(claim: Claim, clause: str, passage: Passage) -> bool:
    """Return whether a clause begins with somebody who is not the subject of the claim."""
    names = claim.names[0] if claim.names else ()
    kind = next(iter(claim.types), "").casefold()
    is_speaker = passage.speaker in names or any(name and name in passage.speaker for name in names)
    if not passage.speaker or not (is_speaker or kind == "person") or _has_any(clause, names):
        return False
    relative, nickname = _OTHER.match(clause), _NICKNAME.match(clause)
    if is_speaker:
        persons = [
            name
            for each, type_ in zip(claim.names[1:], claim.types[1:], strict=False)
            if type_.casefold() == "person"
            for name in each
        ]
        named = next((name for name in persons if clause.startswith(name)), "")
        other = relative[1] if relative else nickname[1] if nickname else ""
        return (bool(other) and other[-1] not in claim.sentence) or bool(
            named and not relative and not _REFERS_SELF.search(clause)
        )
    return _FIRST.match(clause) is not None and not _REFERS.search(clause)


def is_open(claim: Claim, clause: str) -> bool:
    """Return whether a clause asks, supposes or plans what the claim tells as done."""
    is_done = claim.kind == "event" or (claim.kind != "plan" and _DONE.search(claim.sentence))
    return bool(is_done) and not _OPEN.search(claim.sentence) and _MARKED.search(clause) is not None


def _has_any(text: str, names: Sequence[str]) -> bool:
    return any(name and name in text for name in names)


_REFERS_SELF = re.compile("我|咱")
