"""Name bare common nouns by their owners, and speakers by the names that they give.

"My pendant" is "Ann's pendant" when Ann says it, and nobody else's. A "user" who says "I'm Ann" is Ann.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kg_memory.ingestion.records import Mention
from kg_memory.ingestion.state import Draft
from kg_memory.text.identity import canonical_name, display_name, is_pronoun
from kg_memory.text.predicates import predicate_name

SHARED_TYPES = frozenset({"topic"})
"""The types, case-folded, of things that nobody owns alone: "yoga" is one thing, whoever does it."""
LONGEST_NOUN = 3
"""The most words of a bare noun."""
SHORT, MOST_PASSAGES, AROUND = 2000, 20, 100
"""Longer contents are looked at around so many places of a name, and so many characters before and after each."""
_DETERMINER = re.compile(r"(?:my|our|his|her|their|your|its|the|a|an|this|that|these|those)\s+", re.IGNORECASE)
_OWNED = re.compile(r"(?P<owner>.+?)(?:['’]s|(?<=s)['’])\s+(?P<noun>\S.*)")
_CHINESE_OWNED = re.compile(r"(?P<owner>[^的]+)的(?P<noun>[^的]+)")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_HAS = re.compile(
    r"(?:HAS|OWNS|POSSESSES|WEARS|KEEPS|BOUGHT|BUYS|GOT|RECEIVED|ADOPTED|INHERITED|LOST|拥有|有|买)(?:_.*)?"
)
"""The predicates by which a subject owns an object."""
ROLES = frozenset("user human person customer client me 用户 客户".split())
"""The speakers, case-folded, who have no name of their own."""
_GIVES_NAME = re.compile(
    r"(?:\b(?i:my (?:full |real |first |own )?name(?:['’]s| is)|call me|I(?:['’]m| am) called|I go by)\s+"
    r"(?P<name>[^\W\d_][\w'-]*(?:\s[A-Z][\w'-]*){0,2}))|(?:我的?名字(?:叫|是)|我叫|叫我)(?P<chinese>[\u4e00-\u9fff]{2,4})"
)
_IS_NAMED = (
    r"(?:^|[.!?,:]\s*|\b(?i:hi|hello|hey)\b[,!. ]*)(?:I['’]m|I am|[Tt]his is)\s+{name}\b(?!['’])|我是{name}(?!的)"
)
_BETWEEN = r"(?:[\w'’-]+\s+){0,2}?"
"""Words between an owner and the noun: "my old silver pendant"."""


def split_owner(name: str) -> tuple[str, str] | None:
    """Return the canonical names of the owner and of the thing in "Ann's pendant"; ``None`` for all else."""
    match = _OWNED.fullmatch(name) or _CHINESE_OWNED.fullmatch(name)
    if match is None or not is_bare_noun(match["noun"]):
        return None
    return canonical_name(match["owner"]), canonical_name(match["noun"])


def is_bare_noun(name: str) -> bool:
    """Return whether *name* is a common noun such as "pendant" or "吊坠", with nothing that tells whose it is."""
    if _CHINESE.fullmatch(name):
        return "的" not in name
    words = name.split()
    return len(words) <= LONGEST_NOUN and name.islower() and all(word.replace("-", "").isalpha() for word in words)


def passages(name: str, content: str) -> str:
    """Return the text around the first places of *name* in *content*, so that patterns take no longer in a long one."""
    if len(content) <= SHORT:
        return content
    low, key, parts, start = content.lower(), name.lower(), list[str](), 0
    while len(parts) < MOST_PASSAGES:
        place = low.find(key, start)
        if place < 0 or not key:
            break
        parts.append(content[max(0, place - AROUND) : place + len(key) + AROUND])
        start = place + len(key)
    return "\n".join(parts)


def name_owners(mentions: Sequence[Mention], draft: Draft) -> tuple[Mention, ...]:
    """Return *mentions* with the owners of bare nouns in their names, where the episode says whose they are."""
    by_name = {canonical_name(mention.called): mention for mention in mentions}
    named: list[Mention] = []
    for mention in mentions:
        noun = _DETERMINER.sub("", mention.name, count=1)
        owner = None
        if not mention.words and mention.type.casefold() not in SHARED_TYPES and is_bare_noun(noun):
            owner = _find_owner(noun, mention, by_name, draft)
        if owner is None or owner is mention:
            named.append(mention)
        else:
            name = f"{owner.name}的{noun}" if _CHINESE.fullmatch(noun) else f"{owner.name}'s {noun}"
            named.append(replace(mention, name=name, words=mention.name, owner=canonical_name(owner.called)))
    return tuple(named)


def name_speaker(mentions: Sequence[Mention], draft: Draft) -> tuple[Mention, ...]:
    """Return *mentions* with a mark on the name by which the speaker introduces themselves, if they do."""
    speaker = next((mention for mention in mentions if _is_speaker(mention, draft)), None)
    if speaker is None:
        return tuple(mentions)
    name = _find_own_name(mentions, speaker, draft.episode.text[:SHORT])
    if name is None or canonical_name(name) == canonical_name(speaker.name):
        return tuple(mentions)
    key = canonical_name(name)
    own = [
        replace(mention, introduces=speaker.name) if canonical_name(mention.name) == key else mention
        for mention in mentions
    ]
    if not any(mention.introduces for mention in own):
        own.append(Mention(display_name(name), speaker.type, introduces=speaker.name))
    return tuple(own)


def _is_speaker(mention: Mention, draft: Draft) -> bool:
    return bool(draft.episode.speaker) and canonical_name(mention.name) == canonical_name(draft.episode.speaker or "")


def _find_own_name(mentions: Sequence[Mention], speaker: Mention, content: str) -> str | None:
    match = _GIVES_NAME.search(content)
    if match is not None:
        name = match["name"] or match["chinese"]
        # "My name is on the list": a name has a capital, or the reading has it as one.
        listed = canonical_name(name) in {canonical_name(mention.name) for mention in mentions}
        return name if listed or match["chinese"] or name[0].isupper() else None
    if canonical_name(speaker.name) not in ROLES:
        return None
    people = (mention.name for mention in mentions if mention.type == speaker.type and mention is not speaker)
    return next((name for name in people if re.search(_IS_NAMED.format(name=re.escape(name)), content)), None)


def _find_owner(noun: str, mention: Mention, by_name: Mapping[str, Mention], draft: Draft) -> Mention | None:
    """Return whom *noun* belongs to: by the words around it, else by a fact that somebody has it."""
    content, thing = passages(noun, draft.episode.text), re.escape(noun)
    speaker = by_name.get(canonical_name(draft.episode.speaker or ""))
    if speaker is not None and re.search(rf"\b(?:my|our)\s+{_BETWEEN}{thing}\b|我的?{thing}", content, re.IGNORECASE):
        return speaker
    owners = (
        match["owner"]
        for match in re.finditer(rf"(?<![\w.-])(?P<owner>[^\W_][\w.-]{{0,60}})['’]s?\s+{_BETWEEN}{thing}\b", content)
    )
    for owner in owners:
        person = _find_named(owner, by_name)
        if person is not None and f"{canonical_name(person.called)}'s {canonical_name(noun)}" not in by_name:
            return person
    for key, person in by_name.items():
        if _CHINESE.fullmatch(noun) and f"{person.called}的{noun}" in content and key != canonical_name(noun):
            return person
    return _find_subject(mention, thing, by_name, draft)


def _find_named(name: str, by_name: Mapping[str, Mention]) -> Mention | None:
    """Return the mention called *name*, or the only one of whose name it is a part."""
    key = canonical_name(name)
    if key in by_name:
        return by_name[key]
    partial = [mention for full, mention in by_name.items() if key in full.split()]
    return partial[0] if len(partial) == 1 else None


def _find_subject(mention: Mention, thing: str, by_name: Mapping[str, Mention], draft: Draft) -> Mention | None:
    """Return the one that the reading says has the *mention*, if that is one thing: "a pendant", not "coffee"."""
    one = rf"\b(?:a|an|this|that|these|those|the|his|her|their)\s+{_BETWEEN}{thing}\b"
    if not re.search(one, passages(mention.name, draft.episode.text), re.IGNORECASE):
        return None
    key = canonical_name(mention.name)
    for fact in draft.stated or ():
        if _HAS.fullmatch(predicate_name(fact.predicate)) and key in _keys(fact.objects):
            owner = by_name.get(canonical_name(fact.subject))
            if owner is not None and not is_pronoun(owner.name) and not is_bare_noun(owner.called):
                return owner
    return None


def _keys(names: Iterable[str]) -> set[str]:
    return set(map(canonical_name, names))
