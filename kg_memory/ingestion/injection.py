"""Known patterns of prompt injection (C13): orders to whatever model reads a text.

Flags are a net with holes, not a wall. The wall is that prompts fence all data, and that contexts escape it. They are
made for few false alarms: to tell a memory "remember that ..." is no injection.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, get_args

Flag = Literal[
    "override", "persona", "prompt_leak", "secrecy", "exfiltration", "forged_turn", "forged_fence", "hidden_text"
]
FLAGS: tuple[Flag, ...] = get_args(Flag)

_GAP = r"[\W_]{0,5}"
"""Characters between two words: "ignore all", "**ignore** *all*", "ignoreall"."""


def _words(*words: str) -> str:
    return _GAP.join(words)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE)


_ORDERS = (
    r"(?:instructions?|prompts?|rules|guidelines|directives?|commands?|guardrails|restrictions|programming|orders)"
)
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|past|existing|initial|original|current|system"
    r"|developer(?:'?s)?|safety|openai(?:'?s)?)"
)
_DROP = (
    r"\b(?:ignore|disregard|forget|override|overrule|bypass|discard|abandon"
    r"|(?:do not|don'?t|stop|never) (?:follow|obey)(?:ing)?)"
)
_SOME = rf"(?:(?:all|any|each|every|the|of|my|your|his|her|their|these|those|about|other){_GAP})"

OVERRIDE = _any(
    rf"{_DROP}{_GAP}{_SOME}{{0,4}}{_EARLIER}{_GAP}(?:\w{{1,14}}{_GAP})?{_ORDERS}\b",
    rf"{_DROP}{_GAP}(?:all{_GAP})?(?:of{_GAP})?your{_GAP}(?:\w{{1,14}}{_GAP})?{_ORDERS}\b",
    rf"{_DROP}{_GAP}(?:all|everything|anything|whatever){_GAP}(?:that{_GAP})?"
    r"(?:above\b|you (?:were|have been|had been) (?:told|instructed|given))",
    r"\b(?:new|updated|real|actual) (?:system )?instructions? (?:supersedes?|overrides?|replaces?|follows?)\b",
    r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不用理会|不要遵守|不要遵循|抛弃|绕过|跳过|覆盖).{0,6}"
    r"(?:之前|以上|上面|前面|先前|上述|此前|以前|所有|一切|全部|你的|系统|系統|原有|既定).{0,8}"
    r"(?:指令|指示|命令|提示词|提示詞|提示语|规则|規則|设定|設定|限制|约束|約束)",
    r"\bignor\w+ (?:\w+ ){0,3}(?:instrucciones|instruções|instructions|istruzioni|anweisungen|instructies)"
    r" (?:anteriores|previas|précédentes|antérieures|precedenti|vorherigen|vorigen)\b",
    r"\bignorier\w* (?:\w+ ){0,2}(?:vorherigen|bisherigen|vorigen|obigen) (?:anweisungen|instruktionen|befehle|regeln)",
    r"\bигнорируй\w* (?:\w+ ){0,3}(?:инструкци|указани|команд)",
    r"(?:以前|これまで|上記|前)の(?:すべての)?(?:指示|命令|プロンプト)を?(?:すべて)?無視",
    r"(?:이전|위)의? ?(?:모든 )?(?:지시|명령|프롬프트)\w{0,4} ?(?:모두 )?무시",
)
PERSONA = _any(
    r"\byou(?: are|'?re) (?:now|no longer) (?:\w+ ){0,3}(?:dan\b|jailbroken|unrestricted|unfiltered|uncensored|evil"
    r"|in (?:developer|debug|admin|god|jailbreak|maintenance) mode|bound by|restricted by|limited by)",
    r"\bact as (?:\w+ ){0,3}(?:dan\b|(?:unrestricted|unfiltered|uncensored|jailbroken|evil)"
    r" (?:ai|assistant|model|bot|chatbot))",
    r"\bdo anything now\b",
    r"\b(?:developer|debug|jailbreak|dan|unrestricted) mode (?:is )?(?:now )?(?:enabled|activated|on|unlocked)\b",
    r"\b(?:enter|enable|activate|switch to) (?:developer|jailbreak|dan|unrestricted|god) mode\b",
    r"\bpretend (?:that )?you (?:have no|are not bound by|are free of|don'?t have any)"
    r" (?:\w+ ){0,2}(?:restrictions|rules|guidelines|limits|limitations|filters)",
    r"你(?:现在|現在|已经|已經)?(?:是|扮演|变成|成为|進入|进入).{0,12}(?:不受|没有|沒有|无视|无任何).{0,6}"
    r"(?:限制|约束|約束|规则|規則|审查|審查|道德)",
    r"(?:进入|開啟|开启|启用|激活|切换到|切換到).{0,4}(?:开发者|開發者|越狱|越獄|上帝|无限制|無限制|dan)\s?模式",
    r"从现在(?:起|开始).{0,4}你(?:不再(?:受|遵守|遵循)|不受)",
)
PROMPT_LEAK = _any(
    r"\b(?:reveal|print|show|repeat|output|display|disclose|leak|recite|dump|tell|give|return)"
    r"(?: me| us)?(?: back)?(?: verbatim| exactly)?(?: all)?(?: of)?(?: your (?:\w+ )?(?:initial|secret|original)"
    r"| (?:your|the) (?:\w+ )?(?:system|hidden|developer)) (?:prompt|instructions?|message)\b",
    r"\b(?:repeat|print|output|recite) (?:all|everything|the (?:words|text)|every word)(?: that is| written)? above\b",
    r"\bwhat (?:is|are|was|were) your (?:system|initial|hidden|secret|original) (?:prompt|instructions?)\b",
    r"(?:输出|輸出|显示|顯示|告诉我|告訴我|说出|泄露|洩露|透露|打印|重复|重複|公开|给我看|复述|展示).{0,6}"
    r"(?:你的|系统|系統|完整的?|初始|隐藏|隱藏|原始).{0,6}(?:提示词|提示詞|系统提示|系統提示|初始指令|系统指令|系統指令)",
)
SECRECY = _any(
    r"\b(?:do not|don'?t|never|must not) (?:ever )?(?:tell|inform|alert|warn|notify) (?:the |this )?(?:user|human)s?\b",
    r"\b(?:do not|don'?t|never|must not) (?:ever )?(?:mention|reveal|disclose|show) (?:this|it|that|these|any of this)"
    r"(?: \w+){0,2} to (?:the )?(?:user|human)s?\b",
    r"\b(?:do not|don'?t|never) let (?:the )?(?:user|human)s? know\b",
    r"\bwithout (?:telling|informing|alerting|asking) (?:the )?(?:user|human)\b",
    r"(?:不要|别|別|不得|切勿|不能|无需|不许)(?:告诉|告訴|告知|通知|提醒|让|讓)(?:该|這個|这个)?(?:用户|用戶|使用者)",
    r"(?:不要|别|別|不得|切勿)(?:向|对|對)(?:用户|用戶|使用者)(?:提及|透露|提起|披露|说明)",
)
EXFILTRATION = _any(
    r"!\[[^\]\n]{0,200}\]\(\s?https?://[^)\s]{1,300}(?:=|/)(?:\{|\[|<|%7b|\$\{|\+)",
    r"\b(?:send|forward|post|upload|exfiltrate|transmit|leak|e-?mail) (?:\S+ ){0,6}?"
    r"(?:conversations?|chat history|messages|chat logs?|memor(?:y|ies)"
    r"|api keys?|passwords?|credentials|tokens|secrets|system prompt|personal data)\b"
    r"(?: \S+){0,6}? to (?:\S+ ){0,3}?(?:https?://|[\w.+-]{1,60}@\w)",
    r"(?:把|将|將).{0,20}(?:对话|對話|聊天记录|聊天記錄|密码|密碼|密钥|密鑰|凭证|凭据|系统提示|记忆|隐私).{0,10}"
    r"(?:发送|發送|发|上传|上傳|转发|传|提交).{0,6}(?:到|给|給|至)\s?.{0,4}(?:https?://|[\w.+-]{1,60}@\w)",
)
FORGED_TURN = _any(
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|end_of_text|eot_id|start_header_id|end_header_id"
    r"|begin_of_text|channel|message|start|end)\|>",
    r"\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    r"</?(?:system|assistant|developer|system[_-]?(?:prompt|message|reminder|instructions?)|tool_calls?|tool_result"
    r"|function_calls?|function_results?)>",
    r"^\W{0,6}(?:begin |new |important )?(?:system|developer)[ _-]?(?:message|prompt|override|instructions?|notice)"
    r"\s?[\]*#】>]{0,3}\s?[:：\]]",
    r"^\W{0,6}(?:human|user): .{0,2000}\n\W{0,6}(?:assistant|ai): .{0,2000}\n\W{0,6}(?:human|user|system): ",
    r"^\W{0,6}(?:新的)?(?:系统指令|系統指令|系统提示词|系統提示詞|系统覆盖|开发者指令)\s?[】\]*#]{0,3}\s?[:：]",
)
FORGED_FENCE = _any(
    r"(?<!<)<<<\s?[\w.-]{1,40}\s{1,3}[0-9a-f]{8,64}\b",
    r"^\W{0,3}[0-9a-f]{8,64}\s?>>>(?!>)",
    r"</?(?:facts|entities|communities|episodes|memory|memories|memory_context|context|untrusted|data|document)>"
    r".{0,20}\n.{0,80}(?:instruct|assistant|system|you must|指令|系统)",
    r"</(?:facts|entities|communities|episodes)>",
    r"^\W{0,3}(?:end of|end) (?:untrusted |user )?(?:data|input|context|document|conversation|memory)\W{0,10}\n"
    r".{0,80}(?:instruct|assistant|system|you must)",
)
HIDDEN_TEXT = re.compile(
    "(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0000-\U000e007f]{4,}"  # tags that are no flag of a region
    "|[\u200b\u200c\u200d\u2060-\u2064\ufeff]{12,}"
    "|[\U000e0100-\U000e01ef]{4,}"
    "|[\u202d\u202e][^\\W\\d_\u0590-\u08ff]{2}"  # Latin letters turned round
)
_PATTERNS: Mapping[Flag, re.Pattern[str]] = {
    "override": OVERRIDE,
    "persona": PERSONA,
    "prompt_leak": PROMPT_LEAK,
    "secrecy": SECRECY,
    "exfiltration": EXFILTRATION,
    "forged_turn": FORGED_TURN,
    "forged_fence": FORGED_FENCE,
}

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_SPACED = re.compile(r"(?<!\w)(?:[^\W\d_][ \t.*_-]){2,}[^\W\d_](?!\w)")
_SEPARATORS = re.compile(r"[ \t.*_-]")
_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝαβεηικνορτυχ",
    "abekmhopctyxijshdqwabeniknoptux",
)


def injection_flags(text: str) -> tuple[Flag, ...]:
    """Return which patterns of prompt injection *text* has, in the order of `FLAGS`.

    Letters that are written apart, hidden between invisible marks or borrowed from look-alike scripts are seen through.
    """
    plain = _readable(text)
    texts = dict.fromkeys((plain, plain.translate(_LOOKALIKES)))
    flags = {name for name, pattern in _PATTERNS.items() if any(map(pattern.search, texts))}
    if HIDDEN_TEXT.search(text):
        flags.add("hidden_text")
    return tuple(flag for flag in FLAGS if flag in flags)


def _readable(text: str) -> str:
    """Return *text* as a model reads it: compatible forms and case folded, invisible marks gone, one space between."""
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold().replace("’", "'")
    text = _SPACED.sub(lambda match: _SEPARATORS.sub("", match[0]), text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
