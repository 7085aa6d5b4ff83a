"""Part of step 4: tell entities of the same name apart, find owners of nouns, and names that speakers give themselves.

A stored entity of the same name is doubted if the text says so ("a different Anna"), introduces somebody ("Anna, a
surgeon"), or states facts that disagree with stored facts. Only then is the database read or the model asked. "My
pendant", said by Ann, is "Ann's pendant". A speaker "user" who says "I'm Ann" is Ann.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kg_memory.falkor.queries import identities as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.records import EntityMatch, EntityMention, NamedFact
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import fetch, read_if
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text.identity import alias_key, canonical_name, display_name, is_pronoun
from kg_memory.text.predicates import canonical_predicate, predicate_name
from kg_memory.text.tokenise import terms

Candidate = dict[str, Any]
"""The row of a stored entity that a mention may be, with its `score`; `apart` if it is certainly another, `doubted` if
it may be another, `speaks` if it has spoken under another name than the speaker of the episode, `owned` if its name has
the owner and the noun of the mention."""
PERSON = "person"
DISJOINT_TYPES = frozenset({"person", "place", "organization", "event"})
"""Entity types, case-folded, that exclude each other."""
SHARED_TYPES = frozenset({"topic"})
"""Entity types, case-folded, without an owner: "yoga" is the same entity whoever does it."""
ROLES = frozenset("user human person customer client me 用户 客户".split())
"""Speaker names, case-folded, that are roles and not names."""
MOST_KNOWN = 12
"""The most stored facts about an entity that are compared with the episode's facts."""
LONGEST_NOUN = 3
"""The most words of a bare noun."""
SHORT, MOST_PASSAGES, AROUND = 2000, 20, 100
"""Of a text over `SHORT` characters, `MOST_PASSAGES` places of a name are searched, with `AROUND` characters around."""
# The placeholder for a name in texts that are matched with the patterns below.
_NAME = "\ue000"
# A name that is not part of a longer word; Chinese has no spaces between words.
_EDGES = r"(?<![^\W\u4e00-\u9fff]){}(?![^\W\u4e00-\u9fff])"
_WORD = r"[\w'’-]+"
_HAN = r"[\u4e00-\u9fff]"
_CHANGE = re.compile(
    r"\b(?:now|mov(?:ed?|es|ing)|relocat\w*|no longer|anymore|used to|since|recently|just|new|chang\w+|switch\w+|"
    r"left|quit|join\w*|start\w*|beg[au]n|bec[ao]m\w*|got|divorc\w+|promot\w+|transferr\w+|retir\w+|"
    r"will|going to|plan\w*)\b|"
    r"现在|目前|搬|换|改|不再|刚|开始|已经|离开|加入|成为|变成|升",
    re.IGNORECASE,
)
"""Words for a change: earlier facts do not disagree with such a sentence."""
_APART = re.compile(
    rf"\b(?:different|another|other|second|separate)\s+(?:{_WORD}\s+){{0,2}}?{_NAME}|"
    rf"\bnot\s+(?:the|that|our|my|your|his|her)\s+(?:same\s+|usual\s+|other\s+)?(?:{_WORD}\s+)?{_NAME}|"
    rf"{_NAME}\s*[,(–—-]?\s*(?:who\s+is\s+)?not\s+(?:the|my|our|your)\s+(?:same|one|{_WORD}\s+(?:one|{_NAME}))|"
    rf"{_NAME}[^.!?\n]{{0,40}}\b(?:namesake|(?:the|by\s+the)\s+same\s+name|no\s+relation\s+to)\b|"
    rf"(?:另一个|另外一个|另一位|另外一位|别的|不同的|第二个|不是(?:那个|那位|同一个|我们的|我的|之前的)){_HAN}{{0,4}}?{_NAME}|"
    rf"{_NAME}[^。！？\n]{{0,10}}(?:同名|不是同一个人)",
    re.IGNORECASE,
)
_INTRODUCED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NAME}\s*[,(–—]\s*an?\s+(?P<who>[^,;.!?()\n–—]{{2,60}})",
        rf"\b(?:an?|some)\s+(?P<who>(?:{_WORD}\s+){{1,5}}?)(?:named|called|by\s+the\s+name\s+of)\s+{_NAME}",
        rf"\b(?:my|our|his|her|their)\s+new\s+(?P<who>(?:{_WORD}\s+){{0,2}}?{_WORD})\s*,?\s*{_NAME}",
        rf"(?:一个|一位|有个|有位|新来的)(?P<who>{_HAN}{{0,8}}?)(?:名叫|叫做|叫|名字是){_NAME}",
    )
)
_WHOSE = re.compile(
    rf"\b(?:my|our|his|her|their)\s+(?P<who>(?:[a-z'’-]+\s+){{0,2}}?[a-z'’-]+)\s*,?\s+{_NAME}", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？\n]")
_PREPOSITION = re.compile(r"\b(?:in|at|from|of|who|whom|that|with|for|on|to|by|near)\b|[,;:.!?()]", re.IGNORECASE)
_DETERMINER = re.compile(r"(?:my|our|his|her|their|your|its|the|a|an|this|that|these|those)\s+", re.IGNORECASE)
_OWNED = re.compile(r"(?P<owner>.+?)(?:['’]s|(?<=s)['’])\s+(?P<noun>\S.*)|(?P<chinese>[^的]+)的(?P<thing>[^的]+)")
_CHINESE = re.compile(rf"{_HAN}+")
# Up to two words between an owner and the noun: "my old silver pendant".
_BETWEEN = r"(?:[\w'’-]+\s+){0,2}?"
_MINE = re.compile(rf"\b(?:my|our)\s+{_BETWEEN}{_NAME}|我的?{_NAME}", re.IGNORECASE)
_HIS = re.compile(rf"(?<![\w.-])(?P<owner>[^\W_][\w.-]{{0,60}})['’]s?\s+{_BETWEEN}{_NAME}", re.IGNORECASE)
_ONE = re.compile(rf"\b(?:a|an|this|that|these|those|the|his|her|their)\s+{_BETWEEN}{_NAME}", re.IGNORECASE)
_HAS = re.compile(
    r"(?:HAS|OWNS|POSSESSES|WEARS|KEEPS|BOUGHT|BUYS|GOT|RECEIVED|ADOPTED|INHERITED|LOST|拥有|有|买)(?:_.*)?"
)
"""Predicates whose subject owns the object."""
_GIVES_NAME = re.compile(
    r"(?:\b(?i:my (?:full |real |first |own )?name(?:['’]s| is)|call me|I(?:['’]m| am) called|I go by)\s+"
    r"(?P<name>[^\W\d_][\w'-]*(?:\s[A-Z][\w'-]*){0,2}))|(?:我的?名字(?:叫|是)|我叫|叫我)(?P<chinese>[\u4e00-\u9fff]{2,4})"
)
_IS_NAMED = re.compile(
    rf"(?:^|[.!?,:]\s*|\b(?i:hi|hello|hey)\b[,!. ]*)(?:I['’]m|I am|[Tt]his is)\s+{_NAME}(?!['’])|我是{_NAME}(?!的)"
)


def _find_passages(name: str, content: str) -> str:
    if len(content) <= SHORT or not name:  # only long texts are slow to match
        return content
    low, key, parts, start = content.lower(), name.lower(), list[str](), 0
    while len(parts) < MOST_PASSAGES and (offset := low.find(key, start)) >= 0:
        parts.append(content[max(0, offset - AROUND) : offset + len(key) + AROUND])
        start = offset + len(key)
    return "\n".join(parts)


def _put_mark(name: str, content: str, *, exact: bool = False) -> str:
    return re.sub(_EDGES.format(re.escape(name)), _NAME, content, flags=re.NOFLAG if exact else re.IGNORECASE)


# Namesakes


@dataclass(frozen=True, slots=True)
class Evidence:
    """Signs in a text that a name means another person than the stored one; falsy without any sign.

    `apart`: the text says so ("another Anna"). `nouns`: words that introduce the name ("Anna, a surgeon").
    """

    apart: bool
    nouns: frozenset[str]
    facts: tuple[NamedFact, ...]

    def __bool__(self) -> bool:
        return bool(self.apart or self.nouns or self.facts)


def find_evidence(mention: EntityMention, same: Candidate, draft: Draft) -> Evidence:
    """Return evidence in the message of *draft* that *mention* is not *same*, the stored entity of that name."""
    name, key = mention.called, canonical_name(mention.called)
    is_nickname, passages = key != canonical_name(same["name"]), _find_passages(name, draft.episode.text)
    content = _put_mark(name, passages, exact=is_nickname)
    nouns = set[str]()
    for pattern in (*_INTRODUCED, _WHOSE) if is_nickname else _INTRODUCED:
        for match in pattern.finditer(content):
            nouns |= _nouns(_PREPOSITION.split(match["who"], maxsplit=1)[0])
    facts = [fact for fact in draft.stated or () if canonical_name(fact.subject) == key and _excludes(fact, passages)]
    return Evidence(_APART.search(content) is not None, frozenset(nouns - set(terms(name))), tuple(facts))


def doubt_namesakes(
    draft: Draft, candidates: Mapping[int, list[Candidate]], same: Mapping[int, Candidate], settings: Settings
) -> Flow[dict[int, list[Candidate]]]:
    """Return *candidates*, with marks on entities that have a mention's name but may be another entity."""
    marked = {index: list(own) for index, own in candidates.items()}
    homonyms = (PERSON, settings.entity_types[0].name.casefold())
    evidence: dict[int, Evidence] = {}
    for index, candidate in same.items():
        mention = draft.mentions[index]
        if candidate["type"].casefold() in homonyms and not speaks(mention, draft):
            evidence[index] = find_evidence(mention, candidate, draft)
    evidence = {index: each for index, each in evidence.items() if each}
    needed = sorted({same[index]["id"] for index, each in evidence.items() if not each.apart})
    rows = yield from read_if(needed, queries.KNOWN_FACTS, ids=needed, limit=MOST_KNOWN)
    for index, each in evidence.items():
        candidate = same[index]
        mark = _mark(each, candidate, [row for row in rows if row["id"] == candidate["id"]])
        marked[index] = [{**own, **mark} if own["id"] == candidate["id"] else own for own in marked[index]]
    return marked


def speaks(mention: EntityMention, draft: Draft) -> bool:
    """Return whether *mention* names the speaker of the episode."""
    speaker = draft.episode.speaker_name
    return speaker is not None and canonical_name(mention.called) == canonical_name(speaker)


def mark_other_speakers(name: str, candidates: Sequence[Candidate]) -> Flow[list[Candidate]]:
    """Return *candidates*, with the mark `apart` on those that spoke under another name than *name*."""
    ids = [candidate["id"] for candidate in candidates if alias_key(name) not in alias_keys(candidate)]
    spoken = {row["id"] for row in (yield from fetch(queries.SPEAKERS, ids=ids))} if ids else set()
    return [{**own, "apart": True, "speaks": True} if own["id"] in spoken else own for own in candidates]


def doubt_speaker(mention: EntityMention, candidates: Sequence[Candidate], settings: Settings) -> EntityMatch | None:
    """Return the stored speaker in *candidates* who may be *mention*, as "Ann" may be "Ann Lee", or None."""
    own = set(terms(mention.name))
    for candidate in candidates:
        names = (set(terms(name)) for name in (candidate["name"], *candidate["aliases"]))
        if candidate.get("speaks") and any(name and (name <= own or own <= name) for name in names):
            return EntityMatch(candidate["id"], "", settings.review_threshold)
    return None


def alias_keys(candidate: Candidate) -> set[str]:
    """Return the name and all aliases of *candidate*, normalised for comparison: ``{"ann", "ann lee"}``."""
    return {alias_key(name) for name in (candidate["name"], *candidate["aliases"])}


def may_be_of_type(mention: EntityMention, candidate: Candidate, settings: Settings) -> bool:
    """Return whether *mention* can be the stored entity *candidate* by their types: a person cannot be a place."""
    types = {mention.type.casefold(), candidate["type"].casefold()}
    if settings.entity_types[0].name.casefold() in types:
        return True
    return len(types & DISJOINT_TYPES) < 2 and types != {"person", "product"}


def _mark(evidence: Evidence, candidate: Candidate, stored: Sequence[Row]) -> Candidate:
    """Return the mark for the stored entity *candidate*: ``{"apart": True}``, ``{"doubted": True, ...}`` or ``{}``."""
    if evidence.apart:
        # Only for persons is "another" certain: "another Starbucks" may be the same company.
        return {"apart": True} if candidate["type"].casefold() == PERSON else {"doubted": True}
    sentences = " ".join(row["sentence"] for row in stored)
    disagrees = any(_disagrees(fact, stored) for fact in evidence.facts)
    words = set(terms(f"{candidate['name']} {candidate['summary']} {sentences}"))
    is_strange = bool(evidence.nouns) and bool(stored or candidate["summary"]) and evidence.nouns.isdisjoint(words)
    if not disagrees and not is_strange:
        return {}
    return {"doubted": True, "summary": candidate["summary"] or sentences}


def _excludes(fact: NamedFact, content: str) -> bool:
    """Return whether *fact* contradicts stored facts with other values, as LIVES_IN has one value at a time."""
    rule = canonical_predicate(predicate_name(fact.predicate))
    if not rule or not rule.single_valued or fact.invalid_at:
        return False
    words = [word for word in (fact.quote, *fact.objects) if word]
    sentences = [each for each in _SENTENCE.split(content) if any(word in each for word in words)]
    return not _CHANGE.search(" ".join((fact.predicate.replace("_", " "), fact.sentence, fact.quote, *sentences)))


def _disagrees(fact: NamedFact, stored: Iterable[Row]) -> bool:
    rule = canonical_predicate(predicate_name(fact.predicate))
    name = rule.name if rule else ""
    keys = set(map(alias_key, fact.objects))
    rivals = [row for row in stored if row["predicate"] == name]
    return bool(rivals) and all(keys.isdisjoint(map(alias_key, row["names"])) for row in rivals)


def _nouns(words: str) -> set[str]:
    """Return the stem of the last noun or other content word in *words*: ``"a young surgeon" -> {"surgeon"}``.

    For Chinese, return the stems of all words.
    """
    if not words.isascii():
        return set(terms(words))
    return set(next((stems for word in reversed(words.split()) if (stems := terms(word))), ()))


# Owners


def split_owner(name: str) -> tuple[str, str] | None:
    """Split *name* into canonical names of owner and thing: ``"Ann's pendant" -> ("ann", "pendant")``, or ``None``."""
    match = _OWNED.fullmatch(name)
    if match is None or not is_bare_noun(noun := match["noun"] or match["thing"]):
        return None
    return canonical_name(match["owner"] or match["chinese"]), canonical_name(noun)


def is_bare_noun(name: str) -> bool:
    """Return whether *name* is a common noun without an owner: "pendant" or "吊坠", but not "Ann's pendant"."""
    if _CHINESE.fullmatch(name):
        return "的" not in name
    words = name.split()
    return len(words) <= LONGEST_NOUN and name.islower() and all(word.replace("-", "").isalpha() for word in words)


def name_owners(mentions: Sequence[EntityMention], draft: Draft) -> tuple[EntityMention, ...]:
    """Return *mentions* with the owner added to common nouns if the text names the owner: "dog" -> "Ann's dog"."""
    by_name = {canonical_name(mention.called): mention for mention in mentions}
    named: list[EntityMention] = []
    for mention in mentions:
        noun = _DETERMINER.sub("", mention.name, count=1)
        owner = None
        if not mention.words and mention.type.casefold() not in SHARED_TYPES and is_bare_noun(noun):
            owner = _find_owner(noun, mention, by_name, draft)
        if owner is None or owner is mention:
            named.append(mention)
        else:
            name = f"{owner.name}的{noun}" if _CHINESE.fullmatch(noun) else f"{owner.name}'s {noun}"
            named.append(replace(mention, name=name, words=mention.name))
    return tuple(named)


def _find_owner(
    noun: str, mention: EntityMention, by_name: Mapping[str, EntityMention], draft: Draft
) -> EntityMention | None:
    """Return the person who owns *noun*, such as "dog", by "my dog", "Ann's dog" or Ann HAS dog; None if unknown."""
    content = _put_mark(noun, _find_passages(noun, draft.episode.text))
    speaker = by_name.get(canonical_name(draft.episode.speaker or ""))
    if speaker is not None and _MINE.search(content):
        return speaker
    for match in _HIS.finditer(content):
        person = _find_named(match["owner"], by_name)
        if person is not None and f"{canonical_name(person.called)}'s {canonical_name(noun)}" not in by_name:
            return person
    for key, person in by_name.items():
        if _CHINESE.fullmatch(noun) and f"{person.called}的{_NAME}" in content and key != canonical_name(noun):
            return person
    return _owner_in_facts(mention, by_name, draft) if _ONE.search(content) else None


def _find_named(name: str, by_name: Mapping[str, EntityMention]) -> EntityMention | None:
    key = canonical_name(name)
    if key in by_name:
        return by_name[key]
    # "Lee" finds "Ann Lee".
    partial = [mention for full, mention in by_name.items() if key in full.split()]
    return partial[0] if len(partial) == 1 else None


def _owner_in_facts(mention: EntityMention, by_name: Mapping[str, EntityMention], draft: Draft) -> EntityMention | None:
    key = canonical_name(mention.name)
    # "Ann HAS pendant" gives Ann.
    for fact in draft.stated or ():
        if _HAS.fullmatch(predicate_name(fact.predicate)) and key in map(canonical_name, fact.objects):
            owner = by_name.get(canonical_name(fact.subject))
            if owner is not None and not is_pronoun(owner.name) and not is_bare_noun(owner.called):
                return owner
    return None


# Names that speakers give


def name_speaker(mentions: Sequence[EntityMention], draft: Draft) -> tuple[EntityMention, ...]:
    """Return *mentions*, with a mark on the name by which the speaker introduces themselves ("I'm Ann").

    If that name is not in *mentions*, it is added.
    """
    key = canonical_name(draft.episode.speaker or "")
    speaker = next((mention for mention in mentions if key and canonical_name(mention.name) == key), None)
    name = _find_own_name(mentions, speaker, draft.episode.text[:SHORT]) if speaker else None
    if speaker is None or name is None or canonical_name(name) == key:
        return tuple(mentions)
    named = [
        replace(mention, introduces=speaker.name) if canonical_name(mention.name) == canonical_name(name) else mention
        for mention in mentions
    ]
    if not any(mention.introduces for mention in named):
        named.append(EntityMention(display_name(name), speaker.type, introduces=speaker.name))
    return tuple(named)


def _find_own_name(mentions: Sequence[EntityMention], speaker: EntityMention, content: str) -> str | None:
    """Return the name by which the *speaker* introduces themselves in *content* ("my name is Ann"), or None."""
    match = _GIVES_NAME.search(content)
    if match is not None:
        name = match["name"] or match["chinese"]
        # Not "My name is on the list": require a capital letter or a listed entity.
        listed = canonical_name(name) in {canonical_name(mention.name) for mention in mentions}
        return name if listed or match["chinese"] or name[0].isupper() else None
    if canonical_name(speaker.name) not in ROLES:
        return None
    people = (mention.name for mention in mentions if mention.type == speaker.type and mention is not speaker)
    return next((name for name in people if _IS_NAMED.search(_put_mark(name, content, exact=True))), None)
