"""Tell who is meant by a name that is known: the known one, somebody else of that name, or nobody can tell.

A known name is doubted where the episode says so ("a different Anna"), introduces somebody ("Anna, a surgeon"), or
states what disagrees with what is known. Only then is anything read or asked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_memory.falkor.queries import identities as queries
from kg_memory.falkor.rows import Row
from kg_memory.ingestion.owners import passages
from kg_memory.ingestion.records import Identity, Mention, NamedFact
from kg_memory.ingestion.state import Draft
from kg_memory.runtime.effects import read
from kg_memory.runtime.flow import Flow
from kg_memory.settings import Settings
from kg_memory.text import tokenise
from kg_memory.text.identity import alias_key, canonical_name
from kg_memory.text.predicates import canonical_predicate, predicate_name
from kg_memory.text.sentences import content_words

Candidate = dict[str, Any]
"""The row of a known entity, with its `score`; `apart` where the mention is not it, `doubted` where it may not be.

One that `speaks` has spoken under another name than the speaker of the episode."""
PERSON = "person"
DISJOINT_TYPES = frozenset({"person", "place", "organization", "event"})
"""The types, case-folded, of which nothing has two."""
MOST_KNOWN = 12
"""The most facts about a known entity that are compared with what is stated."""
_WORD = r"[\w'’-]+"
_CHANGE = re.compile(
    r"\b(?:now|mov(?:ed?|es|ing)|relocat\w*|no longer|anymore|used to|since|recently|just|new|chang\w+|switch\w+|"
    r"left|quit|join\w*|start\w*|beg[au]n|bec[ao]m\w*|got|divorc\w+|promot\w+|transferr\w+|retir\w+|"
    r"will|going to|plan\w*)\b|"
    r"现在|目前|搬|换|改|不再|刚|开始|已经|离开|加入|成为|变成|升",
    re.IGNORECASE,
)
"""Words by which a sentence tells of a change: what was so before does not disagree with it."""
_APART = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:different|another|other|second|separate)\s",
        r"\bnot\s+(?:the|that|our|my|your|his|her)\s",
        r"not\s+(?:the|my|our|your)\s",
        r"namesake|same\s+name|no\s+relation",
        r"另|别的|不同的|第二个",
        r"不是",
        r"同名|不是同一个人",
    )
)
_INTRODUCED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"[,(–—]\s*an?\s",
        r"named|called|name\s+of",
        r"\s+new\s",
        r"叫|名字是",
        r"\b(?:my|our|his|her|their)\s",
    )
)
"""Signs without which the patterns at the same places cannot match: compiling one takes a millisecond."""
_SENTENCE = re.compile(r"(?<=[.!?])\s|[。！？\n]")
_PREPOSITION = re.compile(r"\b(?:in|at|from|of|who|whom|that|with|for|on|to|by|near)\b|[,;:.!?()]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs in an episode that a name may be somebody else's: it says so, or calls the named one by *nouns*.

    `facts` are those stated of the name that can be so of one thing at a time.
    """

    apart: bool = False
    nouns: frozenset[str] = frozenset()
    facts: tuple[NamedFact, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.apart or self.nouns or self.facts)


def find_signs(mention: Mention, same: Candidate, draft: Draft) -> Signs:
    """Return the signs in *draft* that *mention*, which has a name of *same*, is somebody else."""
    name = mention.called
    content = passages(name, draft.episode.text)
    is_nickname = canonical_name(name) != canonical_name(same["name"])
    facts = tuple(
        fact
        for fact in draft.stated or ()
        if canonical_name(fact.subject) == canonical_name(name) and _holds_one(fact, content)
    )
    return Signs(_says_apart(name, content), frozenset(_introduce(name, content, nickname=is_nickname)), facts)


def doubt_namesakes(
    draft: Draft, candidates: Mapping[int, list[Candidate]], same: Mapping[int, Candidate], settings: Settings
) -> Flow[dict[int, list[Candidate]]]:
    """Return *candidates* with marks on those that have the name of a mention, and are not or may not be it.

    *same* has the one that each mention would be without. Who speaks under a name is always the same one.
    """
    marked = {place: list(own) for place, own in candidates.items()}
    signs: dict[int, Signs] = {}
    speaker = canonical_name(draft.episode.speaker or "")
    for place, candidate in same.items():
        mention = draft.mentions[place]
        if canonical_name(mention.called) != speaker and _can_be_homonym(candidate, settings):
            sign = find_signs(mention, candidate, draft)
            if sign:
                signs[place] = sign
    if not signs:
        return marked
    needed = sorted({same[place]["id"] for place, sign in signs.items() if not sign.apart})
    rows: list[Row] = []
    if needed:
        rows += yield from read(queries.KNOWN_FACTS, ids=needed, limit=MOST_KNOWN)
    facts_of: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        facts_of[row["id"]].append(row)
    for place, sign in signs.items():
        candidate = same[place]
        mark = _mark(sign, candidate, facts_of[candidate["id"]])
        marked[place] = [{**own, **mark} if own["id"] == candidate["id"] else own for own in marked[place]]
    return marked


def speaks(mention: Mention, draft: Draft) -> bool:
    """Return whether *mention* is the speaker of the episode."""
    speaker = draft.episode.speaker_name
    return speaker is not None and canonical_name(mention.called) == canonical_name(speaker)


def mark_other_speakers(name: str, candidates: Sequence[Candidate]) -> Flow[list[Candidate]]:
    """Return the *candidates* of a speaker called *name*, with marks on those that speak under another name.

    Anybody can choose the name "Ann Mallory": that does not make them Ann. A person decides whether the two are one.
    """
    ids = [candidate["id"] for candidate in candidates if alias_key(name) not in alias_keys(candidate)]
    spoken = {row["id"] for row in (yield from read(queries.SPEAKERS, ids=ids))} if ids else set()
    return [{**own, "apart": True, "speaks": True} if own["id"] in spoken else own for own in candidates]


def doubt_speaker(mention: Mention, candidates: Sequence[Candidate], settings: Settings) -> Identity | None:
    """Return which other speaker a new one may be, by a name that has all words of the other."""
    own = set(tokenise.terms(mention.name))
    for candidate in candidates:
        names = (set(tokenise.terms(name)) for name in (candidate["name"], *candidate["aliases"]))
        if candidate.get("speaks") and any(name and (name <= own or own <= name) for name in names):
            return Identity(candidate["id"], "", settings.review_threshold)
    return None


def alias_keys(candidate: Candidate) -> set[str]:
    """Return the keys of all names of *candidate*."""
    return {alias_key(name) for name in (candidate["name"], *candidate["aliases"])}


def may_be_of_type(mention: Mention, candidate: Candidate, settings: Settings) -> bool:
    """Return whether the types of the two allow that they are one: no person is a place."""
    types = {mention.type.casefold(), candidate["type"].casefold()}
    if settings.entity_types[0].name.casefold() in types:
        return True
    return len(types & DISJOINT_TYPES) < 2 and types != {"person", "product"}


def _mark(sign: Signs, candidate: Candidate, stored: Sequence[Row]) -> Candidate:
    """Return the mark that *sign* makes on *candidate*, of which some facts are known."""
    if sign.apart:
        # A thing is called another one of its kind for less than a person is: "another Starbucks".
        return {"apart": True} if candidate["type"].casefold() == PERSON else {"doubted": True}
    sentences = " ".join(row["sentence"] for row in stored)
    disagrees = any(_disagrees(fact, stored) for fact in sign.facts)
    words = set(tokenise.terms(f"{candidate['name']} {candidate['summary']} {sentences}"))
    is_strange = bool(sign.nouns) and bool(stored or candidate["summary"]) and sign.nouns.isdisjoint(words)
    if not disagrees and not is_strange:
        return {}
    return {"doubted": True, "summary": candidate["summary"] or sentences}


def _can_be_homonym(candidate: Candidate, settings: Settings) -> bool:
    return candidate["type"].casefold() in (PERSON, settings.entity_types[0].name.casefold())


def _holds_one(fact: NamedFact, content: str) -> bool:
    """Return whether *fact* can be so of one thing at a time, and *content* tells of no change to it."""
    rule = canonical_predicate(predicate_name(fact.predicate))
    if not rule or not rule.single_valued or fact.invalid_at:
        return False
    marks = [words for words in (fact.quote, *fact.objects) if words]
    sentences = [sentence for sentence in _SENTENCE.split(content) if _has_any(sentence, marks)]
    return not _CHANGE.search(" ".join((fact.predicate.replace("_", " "), fact.sentence, fact.quote, *sentences)))


def _has_any(sentence: str, marks: Iterable[str]) -> bool:
    return any(mark in sentence for mark in marks)


def _disagrees(fact: NamedFact, stored: Iterable[Row]) -> bool:
    """Return whether something else than *fact* says is known, of what can be so of one thing at a time."""
    rule = canonical_predicate(predicate_name(fact.predicate))
    name = rule.name if rule else ""
    keys = set(map(alias_key, fact.objects))
    rivals = [row for row in stored if row["predicate"] == name]
    return bool(rivals) and all(keys.isdisjoint(map(alias_key, row["names"])) for row in rivals)


# What an episode says of a name


def _says_apart(name: str, content: str) -> bool:
    """Return whether *content* says that *name* is not the one who is known by it: "a different Anna"."""
    escaped = re.escape(name)
    patterns = (
        rf"\b(?:different|another|other|second|separate)\s+(?:{_WORD}\s+){{0,2}}?{escaped}\b",
        rf"\bnot\s+(?:the|that|our|my|your|his|her)\s+(?:same\s+|usual\s+|other\s+)?(?:{_WORD}\s+)?{escaped}\b",
        rf"\b{escaped}\b\s*[,(–—-]?\s*(?:who\s+is\s+)?not\s+(?:the|my|our|your)\s+(?:same|one|{_WORD}\s+(?:one|{escaped}))",
        rf"\b{escaped}\b[^.!?\n]{{0,40}}\b(?:namesake|(?:the|by\s+the)\s+same\s+name|no\s+relation\s+to)\b",
        rf"(?:另一个|另外一个|另一位|另外一位|别的|不同的|第二个){_CHINESE_GAP}{escaped}",
        rf"不是(?:那个|那位|同一个|我们的|我的|之前的){_CHINESE_GAP}{escaped}",
        rf"{escaped}[^。！？\n]{{0,10}}(?:同名|不是同一个人)",
    )
    possible = [pattern for sign, pattern in zip(_APART, patterns, strict=True) if sign.search(content)]
    return any(re.search(pattern, content, re.IGNORECASE) for pattern in possible)


_CHINESE_GAP = r"[\u4e00-\u9fff]{0,4}?"


def _introduce(name: str, content: str, *, nickname: bool) -> set[str]:
    """Return the nouns by which *content* introduces *name*: "surgeon" of "Anna, a surgeon in Oslo".

    A *nickname* is introduced by whose it is too: "my neighbour Bob".
    """
    escaped = re.escape(name)
    patterns = [
        rf"\b{escaped}\s*[,(–—]\s*(?:an?)\s+(?P<who>[^,;.!?()\n–—]{{2,60}})",
        rf"\b(?:an?|some)\s+(?P<who>(?:{_WORD}\s+){{1,5}}?)(?:named|called|by\s+the\s+name\s+of)\s+{escaped}\b",
        rf"\b(?:my|our|his|her|their)\s+new\s+(?P<who>(?:{_WORD}\s+){{0,2}}?{_WORD})\s*,?\s*{escaped}\b",
        rf"(?:一个|一位|有个|有位|新来的)(?P<who>[\u4e00-\u9fff]{{0,8}}?)(?:名叫|叫做|叫|名字是){escaped}",
    ]
    if nickname:
        patterns.append(
            rf"\b(?:my|our|his|her|their)\s+(?P<who>(?:[a-z'’-]+\s+){{0,2}}?[a-z'’-]+)\s*,?\s+(?-i:{escaped})\b"
        )
    nouns: set[str] = set()
    for sign, pattern in zip(_INTRODUCED, patterns, strict=False):
        for match in re.finditer(pattern, content, re.IGNORECASE) if sign.search(content) else ():
            head = _PREPOSITION.split(match["who"], maxsplit=1)[0]
            nouns |= _nouns(head) - set(tokenise.terms(name))
    return nouns


def _nouns(words: str) -> set[str]:
    """Return the last word of *words* with content, in English; in Chinese, all of them."""
    if not words.isascii():
        return set(tokenise.terms(words))
    content = [word for word in words.split() if content_words(word)]
    return set(tokenise.terms(content[-1])) if content else set()
