"""Decide which texts the model does not read: injections, greetings, repeated contexts, messages with little news."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import hypot
from operator import mul
from typing import Literal, get_args

from kg_memory.falkor.queries.episodes import PREVIOUS_STATUSES
from kg_memory.ingestion.records import EpisodeRecord
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import Vector, embed, fetch
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.context_markers import SUPPLIED, ZEPH_HEAD, Marker
from kg_memory.text.small_talk import says_nothing
from kg_memory.text.tokenise import find_all, replace_matches

PHATIC = "a greeting, thanks or the like: there is nothing in it to remember"
SUSPECT = "it looks like a prompt injection ({}): if it is harmless, read it with `kg-memory retry --skipped ID`"
BLOCK = "a version of a block, which is not read"
ECHO = "it only repeats a context of this memory: there is nothing new in it"
UNSURPRISING = "it differs little from the messages before it: surprise {:.3f}, see surprise_threshold"

LONGEST_TURN = 160
"""Characters above which a message is always read, however similar to the messages before it: see `docs/plans.md`."""
_ZEPH = re.compile(
    rf"^{re.escape(ZEPH_HEAD)}(?:- [^\n]*\(confidence: \d\.\d\d"
    r"(?:, (?:not reviewed|disputed|not confirmed by its words))?\)(?:\n|$))+",
    re.MULTILINE,
)
"""A context (prompt text of a memory) in Zeph's layout."""


def why_skipped(draft: Draft, settings: Settings) -> Flow[str | None]:
    """Return why the model must not read the episode (stored message or text), or None if it must read it.

    Reasons: the episode is a block of an agent, only repeats a context (text that this memory put into a prompt), looks
    like a prompt injection, is a greeting, or differs little from earlier messages.
    """
    episode = draft.episode
    if episode.kind == "block":
        return BLOCK
    if not draft.pieces:
        return ECHO
    if is_suspect(episode, settings):
        return SUSPECT.format(", ".join(episode.flags))
    if settings.read_all or episode.kind != "message":
        return None
    people = {episode.speaker or "", *(message.speaker or "" for message in draft.previous)}
    words = " ".join("".join(piece.content for piece in draft.pieces).split())
    if says_nothing(words, people, _turns_before(draft)):
        return PHATIC
    return (yield from _lack_of_surprise(draft, settings))


def is_suspect(episode: EpisodeRecord, settings: Settings) -> bool:
    """Return whether the episode (stored message) looks like a prompt injection, so that the model must not read it.

    An episode with flags does, unless `settings.trusted_sources` has its source or "*", or `settings.read_all` is set.
    """
    is_trusted = not {"*", episode.source}.isdisjoint(settings.trusted_sources)
    return bool(episode.flags) and not settings.read_all and not is_trusted


def _lack_of_surprise(draft: Draft, settings: Settings) -> Flow[str | None]:
    """Return the reason to skip a message that means nearly the same as the messages before it, or None to read it.

    The result is also None after `settings.max_skip_turns` skipped messages in a row, or if
    `settings.surprise_threshold` is 0.
    """
    if settings.surprise_threshold == 0 or len(draft.episode.text) > LONGEST_TURN or not draft.previous:
        return None
    lines = [draft.episode.line, *(message.line for message in draft.previous)]
    own, *before = yield from embed(lines)  # `save` stores the first vector
    distance = surprise(own, before)
    if distance >= settings.surprise_threshold:
        return None
    episode = draft.episode
    latest = yield from fetch(
        PREVIOUS_STATUSES,
        id=episode.id,
        thread_key=episode.thread_key,
        at=episode.at,
        created_at=episode.created_at,
        limit=settings.max_skip_turns,
    )
    many = len(latest) == settings.max_skip_turns and all(row["status"] == "skipped" for row in latest)
    return None if many else UNSURPRISING.format(distance)


def surprise(own: Vector, before: Sequence[Vector]) -> float:
    """Return the difference in meaning between a message and earlier messages, from 0 (same) to 2 (opposite).

    *own*: the embedding of the message. *before*: the embeddings of the earlier messages. The result is the cosine
    distance of *own* from the average of *before*.
    """
    total = [sum(numbers) for numbers in zip(*before, strict=True)]
    lengths = hypot(*own) * hypot(*total)
    return 1 - sum(map(mul, own, total)) / lengths if lengths else 1.0


def _turns_before(draft: Draft) -> list[str]:
    """Return the texts of the messages since the speaker's previous message, latest first.

    Without a speaker name, return only the last message.
    """
    speaker = draft.episode.speaker_name
    if speaker is None:
        return [message.content for message in draft.previous[-1:]]
    turns = takewhile(lambda message: message.speaker != speaker, reversed(draft.previous))
    return [message.content for message in turns]


def without_contexts(content: str) -> str:
    """Return *content* with each context (text that this memory put into a prompt) replaced by spaces.

    The length stays the same. Contexts are found by their marks, or by the layout of the prompt template ``zeph``.
    """
    for mark in SUPPLIED:
        content = _without(content, mark)
    return _ZEPH.sub(lambda match: " " * len(match[0]), content)


def _without(content: str, mark: Marker) -> str:
    """Replace the sections of *content* that are enclosed in the marks of *mark* by as many spaces."""
    parts: list[str] = []
    offset = 0
    while (start := content.find(mark.begin, offset)) >= 0:
        end = content.find(mark.end, start + len(mark.begin))
        if end < 0:
            break
        end += len(mark.end)
        parts += [content[offset:start], " " * (end - start)]
        offset = end
    return "".join((*parts, content[offset:]))


# Known patterns of prompt injection: text that gives orders to the model that reads it
#
# The patterns catch common attacks only. The actual protection is that prompts fence all data and contexts escape it.
# They avoid false alarms: "remember that ..." is an ordinary message to a memory.

Flag = Literal[
    "override", "persona", "prompt_leak", "secrecy", "exfiltration", "forged_turn", "forged_fence", "hidden_text"
]
FLAGS: tuple[Flag, ...] = get_args(Flag)

# Characters between words: matches "ignore all", "**ignore** *all*" and "ignoreall".
_GAP = r"[\W_]{0,5}"


def _words(*words: str) -> str:
    return _GAP.join(words)


def _any(*patterns: str) -> re.Pattern[str]:
    """Return one compiled pattern that matches if any of *patterns* matches.

    Patterns with the same beginning, such as a word boundary, share it, which is faster.
    """
    groups: dict[str, list[str]] = {}
    for pattern in patterns:
        lead = next((lead for lead in (r"\b", r"^\W{0,6}", "^") if pattern.startswith(lead)), "")
        foreign = not lead and not pattern.removeprefix("(?:")[0].isascii()
        groups.setdefault(r"(?![\x00-\x7f])" if foreign else lead, []).append(pattern.removeprefix(lead))
    return re.compile("|".join(rf"{lead}(?:{'|'.join(group)})" for lead, group in groups.items()), re.MULTILINE)


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
    rf"{_DROP}{_GAP}(?:all{_GAP})?(?:of{_GAP})?the above (?:and|then) "
    r"(?:print|output|reveal|repeat) (?:your|the) (?:\w+ )?(?:prompt|instructions|rules)\b",
    rf"{_DROP}{_GAP}(?:all|everything|anything|whatever){_GAP}(?:that{_GAP})?"
    r"(?:above\b|you (?:were|have been|had been) (?:told|instructed|given))",
    r"\b(?:new|updated|real|actual) (?:system )?instructions? (?:supersedes?|overrides?|replaces?|follows?)\b",
    r"^\W{0,6}(?:new|updated|real) (?:system )?instructions?\W{0,3}: you (?:must|will|shall|are) (?:now )?"
    r"(?:reveal|ignore|obey|disregard|forget|pretend|an? )",
    rf"\bthe following {_ORDERS} (?:supersede|override|replace) (?:all |any |the |your ){{0,3}}{_EARLIER} {_ORDERS}\b",
    r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不用理会|不要遵守|不要遵循|抛弃|绕过|跳过|覆盖).{0,6}"
    r"(?:之前|以上|上面|前面|先前|上述|此前|以前|所有|一切|全部|你的|系统|系統|原有|既定).{0,8}"
    r"(?:指令|指示|命令|提示词|提示詞|提示语|规则|規則|设定|設定|限制|约束|約束)",
    r"\bignor\w+ (?:\w+ ){0,3}(?:instrucciones|instruções|instructions|istruzioni|anweisungen|instructies)"
    r" (?:anteriores|previas|précédentes|antérieures|precedenti|vorherigen|vorigen)\b",
    r"\bignorier\w* (?:\w+ ){0,2}(?:vorherigen|bisherigen|vorigen|obigen) (?:anweisungen|instruktionen|befehle|regeln)",
    r"^\W{0,6}(?:oubli|ignor)ez? (?:\w+ ){0,3}consignes (?:précédentes|antérieures)",
    r"\b(?:olvida|oublie[zs]?|dimentica\w*|esqueça|esquece|vergiss|vergesst|vergeet|glem|glöm) (?:\w+ ){0,3}"
    r"(?:instrucciones|instruções|instructions|istruzioni|anweisungen|instructies|instruksjone\w*|instruktione\w*)",
    r"\bvergiss (?:\w+ ){0,2}(?:vorherigen|bisherigen|vorigen|obigen) (?:anweisungen|instruktionen|befehle|regeln)",
    r"\bnegeer (?:\w+ ){0,3}(?:vorige|eerdere|voorgaande|bovenstaande) (?:instructies|opdrachten|regels|aanwijzingen)",
    r"\bignorer[a]? (?:\w+ ){0,3}(?:tidigare|tidligere|föregående|foregående) (?:instru\w+|regler|ordrer)",
    r"\b(?<!nie )(?:z?ignoruj\w*|zapomnij o) (?:\w+ ){0,3}(?:poprzedni|wcześniejsz|powyższ)\w* (?:\w+ )?"
    r"(?:instrukcj|polece|zasad|wytyczn)",
    r"^\W{0,6}(?:ignoruj|zapomeň)(?:te)? (?:\w+ ){0,3}(?:předchozí|dřívější)\w* (?:instrukc|pokyn|příkaz)",
    r"^\W{0,6}ignor(?:ați|aţi|ă) (?:\w+ ){0,2}(?:instruc|reguli)\w* (?:anterio|preceden)",
    r"^\W{0,6}(?:ohita|unohda) (?:\w+ ){0,3}(?:aiem|edelli)\w* (?:ohje|käsky|määräy)",
    r"^\W{0,6}(?:hagyd figyelmen kívül|felejtsd el) (?:\S+ ){0,3}(?:korábbi|előző|eddigi) (?:utasítás|szabály)",
    r"^\W{0,6}(?:αγν[όο]ησε|αγνοήστε|ξ[έε]χασε|ξεχάστε) (?:\w+ ){0,3}προηγούμεν\w* (?:οδηγ|εντολ|κανόν)",
    r"\b(?:игнорируй|забудь|ігноруй)\w* (?:[^\s]+ ){0,3}(?:инструкци|указани|команд|інструкці|вказівк)",
    r"(?:önceki|yukarıdaki|şimdiye kadarki) (?:tüm |bütün )?(?:talimat|komut|yönerge|kural)\S* (?:\S+ ){0,2}"
    r"(?:yok say|görmezden gel|dikkate alma|unut)",
    r"^\W{0,6}(?:انس|انسى) (?:كل )?ما قيل لك",
    r"(?:تجاهل|تجاهلي|انس|انسى|أهمل) (?:\S+ ){0,3}(?:ال)?(?:تعليمات|أوامر|قواعد|إرشادات|توجيهات)",
    r"(?:התעלם|התעלמי|שכח) (?:\S+ ){0,3}(?:ה)?(?:הוראות|הנחיות)",
    r"(?:پیشین|قبلی)\S* (?:\S+ ){0,2}نادیده|(?:دستورات|دستورالعمل‌?های?) (?:\S+ ){0,3}نادیده",
    r"(?:पिछले|पिछली|पूर्व|उपरोक्त) (?:\S+ ){0,2}(?:निर्देश|आदेश|नियम)\S* (?:\S+ ){0,3}(?:अनदेखा|नज़रअंदाज़|भूल)",
    r"\babaikan (?:\w+ ){0,3}(?:instruksi|perintah|arahan|aturan)",
    r"\bbỏ qua (?:\S+ ){0,4}(?:hướng dẫn|chỉ dẫn|chỉ thị|lệnh)",
    r"(?:以前|これまで|上記|前)の(?:すべての)?(?:指示|命令|プロンプト)を?(?:すべて)?無視",
    r"(?:이전|위)의? ?(?:모든 )?(?:지시|명령|프롬프트)\w{0,4} ?(?:모두 )?무시",
)
PERSONA = _any(
    r"\byou(?: are|'?re) (?:now|no longer) (?:\w+ ){0,3}(?:dan\b|jailbroken|unrestricted|unfiltered|uncensored|evil"
    r"|in (?:developer|debug|admin|god|jailbreak|maintenance) mode|bound by|restricted by|limited by)",
    r"\byou(?: are|'?re) no longer (?:an? |the )?(?:ai|assistant|chatbot|language model)\s?(?:[.,;:!]|$)",
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
    r"(?: override)?\s?[\]*#】>]{0,3}\s?[:：\]]",
    r"^\W{0,6}system\W{0,3}: (?:from now on|you (?:must|are|will|shall|should|have)|ignore|disregard|forget|override"
    r"|(?:always|never) (?:answer|reply|respond|say|tell|call|obey|trust|ask)|do not|don't|reply"
    r"|respond|answer|obey|reveal|the user (?:is|has) |new (?:rule|instruction|policy))\b",
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
    "(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0000-\U000e007f]{4,}"  # tag characters outside flag emojis
    "|[\u200b\u200c\u200d\u2060-\u2064\ufeff]{12,}"
    "|[\U000e0100-\U000e01ef]{4,}"
    "|[\u202d\u202e][^\\W\\d_\u0590-\u08ff]{2}"  # Latin letters in reversed order
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
_FOREIGN = "авекмнорстухіјѕһԁԛԝαβεηικνορτυχ"
_LOOKALIKE = re.compile(f"[{_FOREIGN}]")
_LOOKALIKES = str.maketrans(_FOREIGN, "abekmhopctyxijshdqwabeniknoptux")


def injection_flags(text: str) -> tuple[Flag, ...]:
    """Return the kinds of prompt injection found in *text*, in the order of `FLAGS`: ``("override",)``; empty for none.

    Spaced letters ("i g n o r e"), invisible characters and look-alike letters of other scripts are normalised first.
    """
    plain = _readable(text)
    texts = dict.fromkeys((plain, plain.translate(_LOOKALIKES) if _LOOKALIKE.search(plain) else plain))
    flags = {name for name, pattern in _PATTERNS.items() if any(any(find_all(pattern, each)) for each in texts)}
    if any(find_all(HIDDEN_TEXT, text)):
        flags.add("hidden_text")
    return tuple(flag for flag in FLAGS if flag in flags)


def _readable(text: str) -> str:
    """Return *text* normalised for pattern matching: NFKC, case-folded, no invisible characters, single spaces."""
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold().replace("’", "'")
    text = replace_matches(_SPACED, lambda match: _SEPARATORS.sub("", match[0]), text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
