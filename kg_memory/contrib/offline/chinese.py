"""Extracts the mentions of entities, and the statements, from a Chinese text.

jieba, if installed, splits words and finds names. Otherwise only the patterns in this module do.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from types import ModuleType

from kg_memory.contrib.offline.clauses import NEVER, PASSING, is_denied_chinese, is_unreal_chinese, passes, with_clauses
from kg_memory.contrib.offline.statements import (
    CHINESE,
    DENIABLE,
    FUNCTIONAL,
    GENERAL,
    LISTS,
    MOST_OBJECTS,
    MOST_STATEMENTS,
    NOT,
    ORGANISATION,
    PERSON,
    PLACE,
    PRODUCT,
    TOPIC,
    WORDS,
    Change,
    Mention,
    Parse,
    Pattern,
    Scene,
    Span,
    TextStatement,
    choose_statements,
    drop_overlaps,
    group_by_sentence,
    says_something,
)
from kg_memory.text.sentences import Sentence, split_sentences

_KIN = LISTS["kin"]
_RELATIVE = re.compile(
    rf"(?:我们?(?:的|家的?)?|我[和跟](?=女朋友|男朋友|女友|男友|老公|老婆|丈夫|妻子|妈妈|爸爸|家人|父母))(?P<kin>{_KIN})(?:(?:叫|"
    rf"是)?(?P<name>小[\u4e00-\u9fff]|[A-Z][A-Za-z]+))?"
)
_SURNAMES = LISTS["surnames"]
_CALLED = re.compile(
    rf"(?:叫|名叫|我是|认识了?|和|跟|与|同事|朋友)(?P<name>[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}|小[\u4e00-\u9fff]|"
    rf"老[{_SURNAMES}])(?=[，。,.！!\s一在去的说也是]|$)"
)
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9+#.\-]*(?: [A-Z][A-Za-z0-9+#.\-]*)*(?<![.\-])")
_TITLE = re.compile(r"《([^》]{1,40})》")
_PLACES = LISTS["places"]
_PLACE = re.compile(_PLACES)
_GIVEN_UP = {"烟": "抽", "酒": "喝", "咖啡": "喝", "奶茶": "喝", "糖": "吃", "肉": "吃", "甜食": "吃"}
"""The verb for a thing that one gives up: 戒烟 ends 抽烟."""
_ME = re.compile(r"我|咱")
_NEGATED = re.compile(r"(?:没有?|不|别|未)(?:再|太)?$")
_NOT_NOW = re.compile(r"不(?!再)")
_NO_LONGER = re.compile(r"(?:已经|早就|早已|再也|再)$")
_PLANNED = re.compile(r"(?:打算|计划|准备|想要?|希望|要|会|将|考虑)[^，。]{0,6}$")
_NO_TOPIC = frozenset(LISTS["no_topic"].split())
_ORGANISATIONS = ("公司", "大学", "集团", "医院", "银行")
_COMMA = re.compile("[，,；;]")
_PARTS = re.compile(r"[^。！？!?\n]{1,300}[。！？!?\n]*|[。！？!?\n]+")
_MOST_UNKNOWN, _RARE = 1500, 5
"""The most characters outside known words for which jieba searches new words, which takes 100 times as long as for
others, and the factor for rare characters, which take 500 times as long."""
_STOP = re.compile("[，,；;。！!？?]")
_FLAGS = {"nr": PERSON, "nrt": PERSON, "nrfg": PERSON, "ns": PLACE, "nt": ORGANISATION, "nz": PRODUCT, "eng": PRODUCT}


@cache
def _jieba() -> ModuleType | None:
    try:
        import jieba  # noqa: PLC0415 - optional, and half a second to load
        import jieba.posseg  # noqa: PLC0415
    except ImportError:
        return None
    jieba.setLogLevel(logging.WARNING)
    tagger: ModuleType = jieba.posseg
    return tagger


def read_chinese(content: str, scene: Scene) -> Parse:
    """Extract the mentions and statements (stated facts) from *content*; *scene* has the speaker and known names."""
    mentions: list[Mention] = []
    statements: list[TextStatement] = []
    main: Mention | None = None
    for sentence, inside in group_by_sentence(_find_mentions(content, scene), split_sentences(content)):
        if len(statements) >= MOST_STATEMENTS:
            break
        named = [mention for mention in inside if mention.named]
        mentions += named
        main = main or (named[0] if named else None)
        if not sentence.asks and says_something(sentence.text):
            statements += _read_sentence(sentence, inside, scene, main)
    return Parse(tuple(mentions), tuple(statements))


# Mentions.


def _find_mentions(text: str, scene: Scene) -> list[Mention]:
    mentions = [Mention(m.start(1), m.end(1), m[1], PRODUCT, named=True) for m in _TITLE.finditer(text)]
    mentions += _find_relatives(text, scene)
    mentions += [Mention(m.start("name"), m.end("name"), m["name"], PERSON, named=True) for m in _CALLED.finditer(text)]
    for name in dict.fromkeys((scene.speaker, scene.listener, *scene.names)):
        if name and len(name) > 1:
            kind = PLACE if _PLACE.fullmatch(name) else PERSON
            places = re.finditer(re.escape(name), text)
            mentions += [Mention(m.start(), m.end(), name, kind, named=True) for m in places]
    mentions += _find_by_part_of_speech(text)
    mentions += [Mention(m.start(), m.end(), m[0], PLACE, named=True) for m in _PLACE.finditer(text)]
    mentions += [Mention(m.start(), m.end(), m[0], PRODUCT, named=True) for m in _LATIN.finditer(text) if len(m[0]) > 1]
    return _name_relatives(drop_overlaps(mentions))


def _name_relatives(mentions: list[Mention]) -> list[Mention]:
    """Merge a mention of a relative with the name right after it: 我姐姐 and 李娜 become 李娜, a sister."""
    kept: list[Mention] = []
    for mention in mentions:
        last = kept[-1] if kept else None
        beside = last is not None and last.kin and last.end == mention.start
        if beside and last is not None and mention.type == PERSON and mention.kin is None:
            kept[-1] = replace(mention, kin=last.kin)
        else:
            kept.append(mention)
    return kept


def _find_relatives(text: str, scene: Scene) -> Iterator[Mention]:
    """Yield a mention of each relative of the speaker: 李娜 in 我姐姐李娜 (my sister Li Na)."""
    for match in _RELATIVE.finditer(text):
        kin = match["kin"]
        if match["name"]:
            yield Mention(match.start("name"), match.end("name"), match["name"], PERSON, named=True, kin=kin)
        elif scene.speaker:
            kind = TOPIC if kin in ("家人", "父母", "朋友", "同事", "同学") else PERSON
            start = match.start("kin") if match[0][1] in "和跟" else match.start()
            yield Mention(start, match.end(), f"{scene.speaker}的{kin}", kind, named=True, kin=kin)


@lru_cache(maxsize=4)  # a message is read for its entities, and then for its facts
def _find_by_part_of_speech(text: str) -> tuple[Mention, ...]:
    """Return mentions of the names and nouns that jieba finds in *text* by their parts of speech.

    Without jieba, only names that end in a word for a city, company or the like are found.
    """
    tagger = _jieba()
    if tagger is None:
        return tuple(
            Mention(m.start(), m.end(), m["name"], PLACE if m["suffix"] in "市省县镇" else ORGANISATION, named=True)
            for m in WORDS["chinese_suffixed"].finditer(text)
        )
    mentions: list[Mention] = []
    position = 0
    for word, flag in _tag(tagger, text):
        start = text.find(word, position)
        if start < 0:
            continue
        position = start + len(word)
        kind = _FLAGS.get(flag)
        noun = flag in ("n", "vn", "nl", "l")
        if kind == PERSON and not (word[0] in _SURNAMES and 2 <= len(word) <= 4) and not word.startswith("小"):
            kind, noun = None, True  # jieba often mistakes such words for names: 过敏, 喝咖啡
        if kind and len(word) > 1:
            last = mentions[-1] if mentions else None
            if last is not None and last.end == start and (kind, last.type) == (PLACE, PLACE):
                mentions[-1] = replace(last, end=position, name=last.name + word)
            else:
                mentions.append(Mention(start, position, word, kind, named=True))
        elif noun and len(word) > 1 and word not in _NO_TOPIC:
            _append_noun(mentions, start, position, word)
    return tuple(replace(one, type=ORGANISATION) if one.name.endswith(_ORGANISATIONS) else one for one in mentions)


def _tag(tagger: ModuleType, text: str) -> Iterator[tuple[str, str]]:
    """Split *text* with jieba, and yield (word, part-of-speech tag) for each word."""
    budget = _MOST_UNKNOWN
    is_short = len(text) * _RARE <= budget or _cost(tagger, text) <= budget
    for part in [text] if is_short else _PARTS.findall(text):
        cost = 0 if is_short else _cost(tagger, part)
        yield from tagger.cut(part, HMM=cost <= budget)
        budget -= cost if cost <= budget else 0


def _cost(tagger: ModuleType, text: str) -> int:
    alone = (word for word, _ in tagger.cut(text, HMM=False) if len(word) == 1 and "\u4e00" <= word <= "\u9fd5")
    return sum(1 if word in tagger.char_state_tab_P else _RARE for word in alone)


def _append_noun(mentions: list[Mention], start: int, end: int, word: str) -> None:
    """Append the noun *word* to *mentions*, or merge it with the noun directly before it: 开源 + 项目 -> 开源项目.

    *start* and *end* are its position in the text.
    """
    last = mentions[-1] if mentions else None
    organisation = word in _ORGANISATIONS
    joins = last is not None and (organisation or not last.named)
    if last is not None and joins and last.end == start and last.type != PERSON and end - last.start <= 8:
        kind = ORGANISATION if organisation else TOPIC
        mentions[-1] = Mention(last.start, end, last.name + word, kind, named=organisation)
    else:
        mentions.append(Mention(start, end, word, TOPIC))


# Statements.


def _read_sentence(sentence: Sentence, found: list[Mention], scene: Scene, main: Mention | None) -> list[TextStatement]:
    """Return the facts that a Chinese sentence states: one for each known verb or, without any, at most one."""
    start, text = sentence.start, sentence.text
    speaker = Mention(start, start, scene.speaker, PERSON, named=True) if scene.speaker else None
    statements: list[TextStatement] = []
    spans: list[Span] = []
    names = [(mention.start - start, mention.end - start) for mention in found if mention.named]
    for pattern in CHINESE:
        for match in pattern.verb.finditer(text):
            if any(begin < match.end() <= end for begin, end in names):
                continue  # 学 in the name 上海交通大学 is not a verb
            if any(begin < match.end() and match.start() < end for begin, end in spans):
                continue
            statement = _read_match(pattern, match, sentence, found, speaker or main)
            if statement is not None:
                spans.append(match.span())
                statements.append(statement)
    if statements:
        return choose_statements(with_clauses(statements, sentence))
    return _link_mentions(sentence, found, speaker, main)


def _link_mentions(
    sentence: Sentence, mentions: list[Mention], speaker: Mention | None, main: Mention | None
) -> list[TextStatement]:
    """Return at most one general fact about the entities in a sentence without a known verb.

    ``[(Ann, SAYS_ABOUT, Oslo)]``: the subject is *speaker* or, if None, *main*.
    """
    subject = speaker or main
    if subject is None:
        return []
    objects = tuple(mention for mention in mentions if mention.name != subject.name)[:MOST_OBJECTS]
    about = not speaker or _ME.search(sentence.text) or any(mention.named for mention in objects)
    if not objects or not about:
        return []
    whole = (sentence.start, sentence.end)
    return [TextStatement(subject, GENERAL if speaker else "RELATES_TO", objects, *whole, "is", 0.4, verb=whole)]


def _read_match(
    pattern: Pattern, match: re.Match[str], sentence: Sentence, inside: list[Mention], speaker: Mention | None
) -> TextStatement | None:
    """Return the fact that a verb in a Chinese sentence states, such as (Ann, LIVES_IN, Oslo), or None."""
    text, offset = sentence.text, sentence.start
    subject = _find_subject(text[: match.start()], offset, inside, speaker)
    if subject is None:
        return None
    begin = offset + match.end()
    stop = next((at for at in range(match.end() + 1, len(text)) if text[at] in "，,；;"), len(text)) + offset
    objects = [mention for mention in inside if begin <= mention.start < stop and mention.name != subject.name]
    near = objects[0].start - begin if objects else 99
    if pattern.free:
        words = WORDS["chinese_free"].match(text, match.end())
        free = _object_from_words(words, offset, pattern.kind, objects) if words else None
        if free is not None and (near > 2 or pattern.kind != TOPIC or not objects[0].named):
            objects = [free, *(mention for mention in objects if mention.start >= free.end)]
        elif near > 2:
            objects = []
    if not objects:
        return None
    meaning = _interpret(pattern, text, match)
    if meaning is None or (meaning[1] == "passes" and not objects[0].named):
        return None
    predicate, change = meaning
    if predicate == "DOES" and match[0].startswith("戒"):
        objects[0] = replace(objects[0], name=_GIVEN_UP.get(objects[0].name, "") + objects[0].name)
    most = 1 if predicate in FUNCTIONAL or pattern.free else MOST_OBJECTS
    confidence, verb = 0.8 if pattern.free else 0.7, (offset + match.start(), begin)
    whole = (sentence.start, sentence.end)
    return TextStatement(subject, predicate, tuple(objects[:most]), *whole, change, confidence, verb=verb)


def _interpret(pattern: Pattern, text: str, match: re.Match[str]) -> tuple[str, Change] | None:
    """Return (predicate, change) of the verb *match* in *text*: ("LIVES_IN", "ends"); None if it states no fact."""
    change, predicate, before = pattern.change, pattern.predicate, text[: match.start()]
    lead = _COMMA.split(before)[-1]
    if is_unreal_chinese(text, match.span()):
        return None
    if is_denied_chinese(before):
        return (f"{NEVER}{predicate}", "never") if change in ("is", "happens") else None
    if change in ("is", "happens", "passes"):
        if _PLANNED.search(lead):
            return "PLANS", "plans"
        if _NEGATED.search(before):
            return None
    clause = _STOP.split(text[match.start() :])[0]
    if change in ("is", "passes") and predicate in PASSING and passes(lead + clause):
        return PASSING[predicate], "passes"
    return None if change == "passes" else _interpret_end(predicate, change, before, clause)


def _interpret_end(predicate: str, change: Change, before: str, clause: str) -> tuple[str, Change]:
    """Distinguish "not" from "no longer": 不住在 gives ("NOT_LIVES_IN", "is"), 不再住在 gives ("LIVES_IN", "ends")."""
    plain = change == "ends" and predicate in DENIABLE and _NOT_NOW.match(clause) and not clause.rstrip().endswith("了")
    return (NOT + predicate, "is") if plain and not _NO_LONGER.search(before) else (predicate, change)


def _find_subject(before: str, offset: int, mentions: list[Mention], speaker: Mention | None) -> Mention | None:
    """Return the subject of the verb that follows the text *before* in a Chinese sentence, or None."""
    clause = _COMMA.split(before)[-1]
    begin, end = offset + len(before) - len(clause), offset + len(before)
    names = [mention for mention in mentions if mention.end <= end and mention.named]
    me = _ME.search(clause)
    for name in names:
        if begin <= name.start and name.type in (PERSON, ORGANISATION) and (name.kin or not me):
            return name
    if not re.search("[她他]", clause):
        return speaker
    return next((name for name in reversed(names) if name.type == PERSON), None)


def _object_from_words(words: re.Match[str], offset: int, kind: str, objects: list[Mention]) -> Mention | None:
    """Return the matched *words* after a verb as its object, a mention of type *kind*, or None.

    For a place or person, a name in *objects* that begins at the same index is preferred.
    """
    name = words["words"].strip(" .-")
    start = offset + words.start("words") + (len(words["words"]) - len(words["words"].lstrip(" .-")))
    if not name or len(name) > 20 or name in _NO_TOPIC:
        return None
    for mention in objects:
        if mention.start == start and mention.named and mention.name != name and kind in (PLACE, PERSON):
            return replace(mention, type=kind)
    return Mention(start, start + len(name), name, kind, named=kind != TOPIC)
