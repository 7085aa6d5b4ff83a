"""Read the mentions and statements of a Chinese text.

Words and names come from jieba where it is installed; without it, from the patterns alone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from types import ModuleType

from kg_memory.offline.moods import NEVER, PASSING, denied, is_denied_chinese, is_unreal_chinese
from kg_memory.offline.passing import passes
from kg_memory.offline.patterns import CHINESE, DENIABLE, FUNCTIONAL, NOT, Change, Pattern
from kg_memory.offline.scene import GENERAL, MOST_OBJECTS, MOST_STATEMENTS, Reading, Scene, Statement
from kg_memory.offline.sentences import Sentence, sentences
from kg_memory.offline.spans import (
    ORGANISATION,
    PERSON,
    PLACE,
    PRODUCT,
    TOPIC,
    Mention,
    by_sentence,
    without_overlaps,
)

_KIN = (
    "妈妈|母亲|爸爸|父亲|姐姐|妹妹|哥哥|弟弟|丈夫|老公|妻子|老婆|太太|先生|"
    "女朋友|男朋友|女友|男友|未婚妻|未婚夫|儿子|女儿|孩子|奶奶|爷爷|"
    "外婆|外公|姥姥|姥爷|叔叔|阿姨|舅舅|姑姑|表哥|表姐|表弟|表妹|堂哥|堂姐|室友|"
    "同事|老板|领导|导师|老师|朋友|同学|邻居|医生|猫|狗|小猫|小狗|家人|父母"
)
_RELATIVE = re.compile(
    rf"(?:我们?(?:的|家的?)?|我[和跟](?=女朋友|男朋友|女友|男友|老公|老婆|丈夫|妻子|妈妈|爸爸|家人|父母))(?P<kin>{_KIN})(?:(?:叫|"
    rf"是)?(?P<name>小[\u4e00-\u9fff]|[A-Z][A-Za-z]+))?"
)
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎"
    "余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_CALLED = re.compile(
    rf"(?:叫|名叫|我是|认识了?|和|跟|与|同事|朋友)(?P<name>[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}|小[\u4e00-\u9fff]|"
    rf"老[{_SURNAMES}])(?=[，。,.！!\s一在去的说也是]|$)"
)
_SUFFIXED = re.compile(
    r"(?P<name>[\u4e00-\u9fff]{2,6}?(?P<suffix>大学|公司|集团|"
    r"医院|银行|学院|研究所|研究院|出版社|俱乐部|中学|小学|餐厅|博物馆|市|省|县|"
    r"镇))(?![\u4e00-\u9fff]*场)"
)
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9+#.\-]*(?: [A-Z][A-Za-z0-9+#.\-]*)*(?<![.\-])")
_TITLE = re.compile(r"《([^》]{1,40})》")
_PLACES = (
    "北京|上海|广州|深圳|杭州|南京|苏州|成都|重庆|武汉|西安|天津|长沙|青岛|大连|"
    "厦门|昆明|郑州|济南|合肥|福州|宁波|无锡|沈阳|哈尔滨|长春|南昌|贵阳|南宁|"
    "海口|三亚|拉萨|兰州|香港|澳门|台北|台湾|东京|大阪|京都|首尔|新加坡|曼谷|伦敦|"
    "巴黎|纽约|旧金山|洛杉矶|西雅图|波士顿|温哥华|多伦多|悉尼|墨尔本|柏林|奥斯陆|"
    "罗马|莫斯科|中国|美国|日本|韩国|英国|法国|德国|加拿大|澳大利亚|意大利|西班牙|泰国|"
    "越南|印度|俄罗斯|云南|四川|广东|浙江|江苏|山东|河南|河北|湖南|湖北|福建|"
    "海南|西藏|新疆|内蒙古"
)
_PLACE = re.compile(_PLACES)
_FREE = re.compile(
    r"(?:了|的)?(?:[一两三四五几]?[家个只条款本台辆套位名份间部])?(?P<words>[A-Za-z0-9\u4e00-\u9fff+#.\- "
    r"]+?)(?=了|换|改|搬|切换|迁移|转到|离职|辞职|"
    r"跳槽|兼职|工作|上班|任职|实习|毕业|读书|上学|留学|读研|读博|结婚|离婚|分手|"
    r"在一起|恋爱|订婚|交往|感兴趣|有兴趣|过敏|已经|因为|但|而|和|跟|，|,|。|；|;|"
    r"！|!|？|、|$|去年|今年|上个?月|上周|昨天|以后|之后|以来|做|当|来|去)"
)
_ME = re.compile(r"我|咱")
_NEGATED = re.compile(r"(?:没有?|不|别|未)(?:再|太)?$")
_NOT_NOW = re.compile(r"不(?!再)")
_NO_LONGER = re.compile(r"(?:已经|早就|早已|再也|再)$")
_PLANNED = re.compile(r"(?:打算|计划|准备|想要?|希望|要|会|将|考虑)[^，。]{0,6}$")
_NO_TOPIC = frozenset(
    "时候 时间 东西 事情 问题 感觉 方面 样子 地方 情况 原因 结果 办法 意思 机会 "
    "部分 人 事 话 大家 自己 天气 今天 明天 昨天 现在 以前 以后 最近 "
    "有点 一下 一点 一直 已经 真的 非常 比较 觉得 认为 知道 希望 开始 生活 工作 学习 "
    "时 家 年 月 日 周 星期 小时 分钟 朋友 心情 消息 计划 打算 公司".split()
)
_FLAGS = {"nr": PERSON, "nrt": PERSON, "nrfg": PERSON, "ns": PLACE, "nt": ORGANISATION, "nz": PRODUCT, "eng": PRODUCT}


@cache
def _jieba() -> ModuleType | None:
    """Return jieba's tagger, or ``None`` where it is not installed."""
    try:
        import jieba  # noqa: PLC0415 - optional, and half a second to load
        import jieba.posseg  # noqa: PLC0415
    except ImportError:
        return None
    jieba.setLogLevel(logging.WARNING)
    tagger: ModuleType = jieba.posseg
    return tagger


def read_chinese(content: str, scene: Scene) -> Reading:
    """Return what *content* mentions and states, in the order of the text."""
    mentioned: list[Mention] = []
    stated: list[Statement] = []
    main: Mention | None = None
    everything = chinese_mentions(content, scene)
    for sentence, inside in by_sentence(everything, sentences(content)):
        if len(stated) >= MOST_STATEMENTS:
            break
        named = [one for one in inside if one.named]
        mentioned += named
        main = main or (named[0] if named else None)
        if not sentence.asks and sentence.says_something:
            stated += _read(sentence, inside, scene, main)
    return Reading(tuple(mentioned), tuple(stated))


def chinese_mentions(text: str, scene: Scene) -> list[Mention]:
    """Return what *text* mentions: titles, relatives, names, then words for topics."""
    found = [Mention(m.start(1), m.end(1), m[1], PRODUCT, named=True) for m in _TITLE.finditer(text)]
    found += _relatives(text, scene)
    found += [Mention(m.start("name"), m.end("name"), m["name"], PERSON, named=True) for m in _CALLED.finditer(text)]
    found += [
        Mention(at.start(), at.end(), name, PLACE if _PLACE.fullmatch(name) else PERSON, named=True)
        for name in dict.fromkeys((scene.speaker, scene.listener, *scene.known))
        if name and len(name) > 1
        for at in re.finditer(re.escape(name), text)
    ]
    found += _tagged(text)
    found += [Mention(m.start(), m.end(), m[0], PLACE, named=True) for m in _PLACE.finditer(text)]
    found += [Mention(m.start(), m.end(), m[0], PRODUCT, named=True) for m in _LATIN.finditer(text) if len(m[0]) > 1]
    return _named_relatives(without_overlaps(found))


def _named_relatives(found: list[Mention]) -> list[Mention]:
    """Give a relative whose name comes right after that name: 我姐姐李娜 is 李娜."""
    kept: list[Mention] = []
    for one in found:
        last = kept[-1] if kept else None
        if last is not None and last.kin and last.end == one.start and one.type == PERSON and one.kin is None:
            kept[-1] = replace(one, kin=last.kin)
        else:
            kept.append(one)
    return kept


def _relatives(text: str, scene: Scene) -> Iterable[Mention]:
    for match in _RELATIVE.finditer(text):
        if match["name"]:
            yield Mention(match.start("name"), match.end("name"), match["name"], PERSON, named=True, kin=match["kin"])
        elif scene.speaker:
            kind = TOPIC if match["kin"] in ("家人", "父母", "朋友", "同事", "同学") else PERSON
            start = match.start("kin") if match[0][1] in "和跟" else match.start()
            yield Mention(start, match.end(), f"{scene.speaker}的{match['kin']}", kind, named=True, kin=match["kin"])


def _tagged(text: str) -> list[Mention]:
    """Return names and nouns by jieba's tags, or names by their last characters without it."""
    tagger = _jieba()
    if tagger is None:
        return [
            Mention(m.start(), m.end(), m["name"], PLACE if m["suffix"] in "市省县镇" else ORGANISATION, named=True)
            for m in _SUFFIXED.finditer(text)
        ]
    found: list[Mention] = []
    position = 0
    for word, flag in tagger.cut(text):
        start = text.find(word, position)
        if start < 0:
            continue
        position = start + len(word)
        kind = _FLAGS.get(flag)
        noun = flag in ("n", "vn", "nl", "l")
        if kind == PERSON and not (word[0] in _SURNAMES and 2 <= len(word) <= 4) and not word.startswith("小"):
            kind, noun = None, True  # a common false alarm: 过敏, 喝咖啡
        if kind and len(word) > 1:
            last = found[-1] if found else None
            if last is not None and last.end == start and (kind, last.type) == (PLACE, PLACE):
                found[-1] = replace(last, end=position, name=last.name + word)
            else:
                found.append(Mention(start, position, word, kind, named=True))
        elif noun and len(word) > 1 and word not in _NO_TOPIC:
            found.append(_joined(found, start, position, word))
    return [
        replace(one, type=ORGANISATION) if one.name.endswith(("公司", "大学", "集团", "医院", "银行")) else one
        for one in found
    ]


def _joined(found: list[Mention], start: int, end: int, word: str) -> Mention:
    """Join a noun to the noun or name right before it: 开源项目, 阿里巴巴公司."""
    last = found[-1] if found else None
    organisation = word in ("公司", "集团", "大学", "医院", "银行")
    joins = organisation or (last is not None and not last.named)
    if last is not None and joins and last.end == start and last.type != PERSON and end - last.start <= 8:
        found.pop()
        kind = ORGANISATION if organisation else TOPIC
        return Mention(last.start, end, last.name + word, kind, named=kind == ORGANISATION)
    return Mention(start, end, word, TOPIC)


def _read(sentence: Sentence, inside: list[Mention], scene: Scene, main: Mention | None) -> list[Statement]:
    speaker = Mention(sentence.start, sentence.start, scene.speaker, PERSON, named=True) if scene.speaker else None
    found: list[Statement] = []
    spans: list[tuple[int, int]] = []
    held = [(one.start - sentence.start, one.end - sentence.start) for one in inside if one.named]
    for pattern in CHINESE:
        for match in pattern.verb.finditer(sentence.text):
            if any(start < match.end() <= end for start, end in held):
                continue  # 上海交通大学 is a name, and 学 in it no verb
            if any(start < match.end() and match.start() < end for start, end in spans):
                continue
            statement = _matched(pattern, match, sentence, inside, speaker or main)
            if statement is not None:
                spans.append(match.span())
                found.append(statement)
    known = {each.name for one in found if one.predicate.startswith(NEVER) for each in one.objects}
    found += [one for one in _denied(sentence, inside, speaker) if known.isdisjoint(each.name for each in one.objects)]
    if found:
        return sorted(_distinct(found), key=lambda one: one.objects[0].start)
    subject = speaker or main
    objects = tuple(one for one in inside if subject is not None and one.name != subject.name)[:MOST_OBJECTS]
    if (
        subject is None
        or not objects
        or (speaker and not _ME.search(sentence.text) and not any(one.named for one in objects))
    ):
        return []
    predicate = GENERAL if speaker else "RELATES_TO"
    whole = (sentence.start, sentence.end)
    return [Statement(subject, predicate, objects, *whole, "is", 0.4, verb=whole)]


def _matched(
    pattern: Pattern, match: re.Match[str], sentence: Sentence, inside: list[Mention], speaker: Mention | None
) -> Statement | None:
    text, offset = sentence.text, sentence.start
    before = text[: match.start()]
    subject = _subject(before, offset, inside, speaker)
    stop = next((at for at in range(match.end() + 1, len(text)) if text[at] in "，,；;"), len(text))
    after = [one for one in inside if match.end() <= one.start - offset < stop and subject and one.name != subject.name]
    near = after[0].start - offset - match.end() if after else 99
    if pattern.free:
        words = _FREE.match(text, match.end())
        free = _free(words, offset, pattern.kind, after) if words else None
        if free is not None and (near > 2 or pattern.kind != TOPIC or not after[0].named):
            after = [free, *(one for one in after if one.start >= free.end)]
        elif near > 2:
            after = []
    if subject is None or not after:
        return None
    read = _meant(pattern, text, match)
    if read is None or (read[1] == "passes" and not after[0].named):
        return None
    predicate, change = read
    objects = after[:1] if predicate in FUNCTIONAL or pattern.free else after[:MOST_OBJECTS]
    sure, verb = 0.8 if pattern.free else 0.7, (offset + match.start(), offset + match.end())
    return Statement(subject, predicate, tuple(objects), sentence.start, sentence.end, change, sure, verb=verb)


def _meant(pattern: Pattern, text: str, match: re.Match[str]) -> tuple[str, Change] | None:
    """Return the predicate and the change that *match* tells, or ``None`` where it tells nothing that is so."""
    change, predicate, before = pattern.change, pattern.predicate, text[: match.start()]
    clause = re.split("[，,；;]", before)[-1]
    if is_unreal_chinese(before, text[match.end() :]):
        return None
    if is_denied_chinese(before):
        return (f"{NEVER}{predicate}", "never") if change in ("is", "happens") else None
    if change in ("is", "happens", "passes") and _PLANNED.search(clause):
        return "PLANS", "plans"
    if change in ("is", "happens", "passes") and _NEGATED.search(before):
        return None
    told = re.split("[，,；;。！!？?]", text[match.start() :])[0]
    whole = clause + told
    if change in ("is", "passes") and predicate in PASSING and passes(whole):
        return PASSING[predicate], "passes"
    return None if change == "passes" else _ended(predicate, change, before, told)


def _ended(predicate: str, change: Change, before: str, told: str) -> tuple[str, Change]:
    """Return what *predicate* tells; a plain 不 without 了 or 已经 tells no end, but that it is not so now."""
    plain = change == "ends" and predicate in DENIABLE and _NOT_NOW.match(told) and not told.rstrip().endswith("了")
    return (NOT + predicate, "is") if plain and not _NO_LONGER.search(before) else (predicate, change)


def _denied(sentence: Sentence, inside: list[Mention], speaker: Mention | None) -> list[Statement]:
    """Read 我从来没有部署过它, where no pattern knows the verb."""
    stated, whole = [], (sentence.start, sentence.end)
    for predicate, (start, end) in denied(sentence.text):
        objects = tuple(one for one in inside if start <= one.start - sentence.start < end)[:MOST_OBJECTS]
        if speaker and objects:
            verb = (sentence.start + start, sentence.start + end)
            stated.append(Statement(speaker, predicate, objects, *whole, "never", 0.75, verb=verb))
    return stated


def _subject(before: str, offset: int, inside: list[Mention], speaker: Mention | None) -> Mention | None:
    clause = re.split("[，,；;]", before)[-1]
    at = offset + len(before) - len(clause)
    named = [
        one
        for one in inside
        if at <= one.start and one.end - offset <= len(before) and one.named and one.type in (PERSON, ORGANISATION)
    ]
    named = [one for one in named if one.kin or not _ME.search(clause)]
    if named or not re.search("[她他]", clause):
        return named[0] if named else speaker
    people = [one for one in inside if one.end - offset <= len(before) and one.named and one.type == PERSON]
    return people[-1] if people else None


def _free(words: re.Match[str], offset: int, kind: str, after: list[Mention]) -> Mention | None:
    name = words["words"].strip(" .-")
    start = offset + words.start("words") + (len(words["words"]) - len(words["words"].lstrip(" .-")))
    if not name or len(name) > 20 or name in _NO_TOPIC:
        return None
    same = next(
        (one for one in after if one.start == start and one.named and one.name != name and kind in (PLACE, PERSON)),
        None,
    )
    if same is not None:
        return replace(same, type=kind)
    return Mention(start, start + len(name), name, kind, named=kind != TOPIC)


def _distinct(found: list[Statement]) -> list[Statement]:
    kept: list[Statement] = []
    for one in sorted(found, key=lambda each: -each.confidence):
        names = {each.name for each in one.objects}
        if not any(
            other.subject.name == one.subject.name and names & {each.name for each in other.objects} for other in kept
        ):
            kept.append(one)
    return kept
