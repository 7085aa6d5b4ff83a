"""Tell a passing state ("I'm in Paris this week") from one that lasts ("I live in Oslo")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kg_memory.offline.sameness import clause_of

_SPAN = (
    r"(?:days?|nights?|weeks?|weekends?|months?|fortnight|spring|summer|fall|autumn|winter|semester|term|holidays?|"
    r"season)"
)
_FOR = (
    rf"\bfor (?:the|a|this|a few|a couple of|several|some|one|two|three|four|five|six|\d{{1,2}}) (?:next |coming |"
    rf"whole |rest of the )?{_SPAN}\b"
)
_ALWAYS = re.compile(
    r"\b(?:temporar(?:y|ily)|for now|for the time being|for a while|briefly|on (?:a )?(?:business|work) trip|"
    r"on (?:vacation|holiday|secondment|leave)|(?:staying|crashing|couch[- ]?surfing) (?:with|at|in)|house[- ]?sitting|"
    r"visiting|filling in|covering for|on loan|interim)\b|暂时|临时|短期|出差|借住|借调|度假|旅游|探亲|暂住|代班|"
    r"住(?:几|两|三|一)(?:天|周|个月|晚)|待(?:几|两|三|一)(?:天|周|个月|晚)",
    re.IGNORECASE,
)
_IF_NOTHING_BEGINS = re.compile(
    rf"{_FOR}|\b(?:(?<!from )(?<!since )(?<!starting )(?:this|next)|over the|during the) {_SPAN}\b|\b(?:until|till|"
    rf"through) (?:next |the end|mon|tues|wednes|thurs|fri|"
    rf"satur|sun|tomorrow)|\b(?:today|tonight|right now)\b|这(?:一?周|个?星期|个?礼拜|几天|个?周末|个月|两天)|本周|"
    rf"今天|"
    rf"今晚|这个?(?:夏天|暑假|寒假|冬天)",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\b(?:moved|relocated|emigrated|settled|joined|join|start(?:s|ed|ing)?|began|hired|promoted|switched|became|"
    r"got|landed|accepted|"
    r"quit|left|married|engaged)\b|\b(?:have|has|'ve)\s(?:\w+\s){0,2}(?:been|lived|worked|studied)\b|"
    r"搬|加入|入职|换|改|开始|跳槽|升|毕业",
    re.IGNORECASE,
)


def passes(words: str) -> bool:
    """Return whether a state that *words* tell will soon be over by itself."""
    plain = words.replace("’", "'")
    if _ALWAYS.search(plain):
        return True
    return _IF_NOTHING_BEGINS.search(plain) is not None and _BEGINS.search(plain) is None


def is_passing(fact: Mapping[str, Any]) -> bool:
    """Return whether *fact* is a passing state, by its predicate or the clause that tells of its object."""
    return str(fact["predicate"]).startswith(("STAYS_IN", "TEMPORARILY_")) or passes(clause_of(fact))
