"""Find what an English text mentions: people, relatives, works, places, organisations and topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from kg_memory.offline.statements import (
    EVENT,
    ORGANISATION,
    PERSON,
    PLACE,
    PRODUCT,
    TOPIC,
    Mention,
    Token,
    drop_overlaps,
    split_words,
)
from kg_memory.text import lexicon

EVENT_WORDS = frozenset(
    "party wedding conference parade festival concert race marathon meeting workshop retreat trip tournament "
    "competition exhibition exhibit convention birthday anniversary graduation gala fair interview show event "
    "hackathon".split()
)
_TITLE = re.compile(r"[\"“]([A-Z][^\"“”\n]{1,60})[\"”]")
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_SENTENCE_START = frozenset('.!?…\n:"“”(') | {"-", "–", "—"}
_CONNECTORS = frozenset("of de la di del van von da dos &".split())
_TWO_WORD_PLACES = frozenset(
    {("new", "york"), ("los", "angeles"), ("san", "francisco"), ("new", "zealand"), ("hong", "kong"), ("san", "diego")}
)
_WITH_PERSON = frozenset("with and met called named meet asked told".split())
_ACRONYMS = frozenset({"us", "who", "it"})
_BEFORE_ACRONYM = frozenset("the in at for with by from of to our a an joined left and".split())
_BEFORE_MONTH = frozenset("in of since until till by last next this early late from to through during mid on".split())
_NAMES_AND_WORDS = frozenset("will mark grace hope may joy jack frank grant rose".split())

_ADVERB = r"(?:(?:now|still|also|just|really|currently|recently|finally|always) )?"
_PERSON_ACTS = re.compile(
    rf"{_ADVERB}(?:(?:no longer )?(?:lives|resides) (?:in|at|with|near)"
    r"|(?P<past>lived (?:in|at|with)|worked (?:at|for|as)|grew up in)"
    r"|(?:no longer )?works (?:at|as|for(?! (?:me|us|you|him|her|them|it)\b))|studies at"
    r"|used to (?:live|work|study)|(?:doesn't|does not) (?:live|work|like|enjoy)|is married to|was born in"
    r"|likes|loves|prefers|hates|dislikes|adores|enjoys)\b"
)
_PERSON_OR_GROUP_ACTS = re.compile(
    rf"{_ADVERB}(?:(?:no longer )?uses(?! (?:of|for)\b)|is (?:from|based in)"
    r"|(?P<past>(?:moved|relocated) (?:\w+ )?(?:to|from)|joined))\b"
)
_ACT_WORDS = 5
"""The most words of an act: "now no longer works for me"."""
_ABSTRACT = ("ing", "tion", "sion", "ness", "ment", "ity", "ism", "ship", "ware", "ology", "ly")
_ORDINARY = EVENT_WORDS.union(
    lexicon.BARE_NOUNS,
    lexicon.VAGUE_NOUNS,
    lexicon.VERB_FORMS,
    lexicon.PASTIMES,
    lexicon.KIN,
    lexicon.ORGANISATION_WORDS,
    lexicon.PLACE_WORDS,
)
_LEADS_TO_PASTIME = frozenset(
    "went go going goes gone love loves enjoy enjoys like tried try started into quit".split()
)
_AMOUNTS = frozenset(
    "lot lots ton tons bunch bit couple kind kinds sort part parts time times way ways day days".split()
)
_NEVER_NOUNS = frozenset(
    "get make go give have come take keep feel know want need say see think find become seem let put bring tell "
    "ask buy do".split()
)


def find_mentions(text: str, speaker: str | None, names: Collection[str] = ()) -> list[Mention]:
    """Return the mentions in *text*, in order and without overlaps; *names* were met before."""
    words = split_words(text)
    mentions = [*_titles(text), *_relatives(words, speaker), *_names(words, names), *_topics(words)]
    return _complete_names(drop_overlaps(mentions))


def _complete_names(mentions: list[Mention]) -> list[Mention]:
    """Give a person whose full name comes first that name wherever one part of it follows."""
    full: dict[str, str] = {}
    completed = []
    for mention in mentions:
        parts = mention.name.split()
        if mention.named and mention.type == PERSON and len(parts) > 1 and "'" not in mention.name:
            full.setdefault(parts[-1], mention.name)
            full.setdefault(parts[0], mention.name)
        known_in_full = mention.named and mention.name in full
        completed.append(replace(mention, name=full[mention.name], type=PERSON) if known_in_full else mention)
    return completed


def _titles(text: str) -> Iterator[Mention]:
    """Find e-mail addresses, and capitalised words in quotation marks: books, songs, films."""
    for match in _ADDRESS.finditer(text):
        yield Mention(match.start(), match.end(), match[0], TOPIC, named=True)
    for match in _TITLE.finditer(text):
        words = match[1].split()
        if len(words) <= 8 and sum(word[0].isupper() for word in words) * 2 >= len(words):
            yield Mention(match.start(1), match.end(1), match[1].rstrip(".,!?"), PRODUCT, named=True)


def _mention(run: list[Token], kind: str, *, kin: str | None = None) -> Mention:
    return Mention(run[0].start, run[-1].end, " ".join(word.text for word in run), kind, named=True, kin=kin)


# Relatives.


def _relatives(words: list[Token], speaker: str | None) -> Iterator[Mention]:
    """Find "my sister", which is "Ann's sister" when Ann says it, and "my sister Lily", which is Lily."""
    for position, word in enumerate(words):
        if word.low not in ("my", "our"):
            continue
        at = position + 1
        while at < len(words) and at <= position + 2 and words[at].wordy and words[at].low not in lexicon.KIN:
            at += 1
        if at >= len(words) or words[at].low not in lexicon.KIN:
            continue
        noun = words[at]
        name = _name_after(words, at)
        if name:
            yield _mention(name, PERSON, kin=noun.low)
        elif speaker:
            kind = PERSON if noun.low in lexicon.ONE_PERSON else TOPIC
            yield Mention(word.start, noun.end, f"{speaker}'s {noun.low}", kind, named=True, kin=noun.low)


def _name_after(words: list[Token], at: int) -> list[Token]:
    """Return the name that follows the relative at *at*: "sister Lily", "dog, Max", "brother called Tom"."""
    position = at + 1
    mark = words[position].low if position < len(words) else ""
    if mark in (",", "named", "called", "is"):
        position += 1
    # "my dog, Max, ..." and "my boss is Karen" name them; "Thanks to my mom, Paris was fun" and "my boss is Norwegian"
    # do not.
    if mark in (",", "is") and (position >= len(words) or words[position].low not in lexicon.GIVEN_NAMES):
        return []
    name = []
    for word in words[position : position + 2]:
        if not (word.wordy and word.capital and word.low not in lexicon.STOP):
            break
        name.append(word)
    return name


# Names.


def _names(words: list[Token], names: Collection[str]) -> Iterator[Mention]:
    """Find runs of capitalised words that are names."""
    familiar = {part.casefold() for name in names for part in name.split()}
    inside = (at for at, word in enumerate(words) if word.capital and not _opens(words, at))
    familiar |= {words[at].low for at in inside if _may_name(words, at)}
    small = {word.text for word in words if word.wordy and not word.capital}
    position = 0
    while position < len(words):
        end = _name_end(words, position)
        if _may_name(words, position) and (
            not _opens(words, position)
            or _is_surely_name(words, position, familiar)
            or _is_actor(words, position, end, small)
        ):
            run = words[position:end]
            yield _mention(run, _kind(words, position, run))
            position = end
        else:
            position += 1


def _may_name(words: list[Token], position: int) -> bool:
    word = words[position]
    if not (word.wordy and word.capital and len(word.text) > 1 and "'" not in word.low[:-2]):
        return False
    is_word = word.low in lexicon.STOP | lexicon.STARTERS or word.low.split("'")[0] in lexicon.PRONOUNS
    return not is_word or _is_acronym(words, position) or _is_named_word(words, position)


def _is_acronym(words: list[Token], position: int) -> bool:
    """Return whether the word is the US, the WHO or IT, and no pronoun that is stressed or shouted."""
    word = words[position]
    if word.low not in _ACRONYMS or not word.text.isupper() or all(one.text.isupper() for one in words if one.wordy):
        return False
    opens = _opens(words, position) and _match_act(words, position + 1) is not None
    return opens or (position > 0 and words[position - 1].low in _BEFORE_ACRONYM)


def _is_named_word(words: list[Token], position: int) -> bool:
    """Return whether the word is Will, May or Hope, and no verb or month."""
    word = words[position]
    if word.low not in lexicon.STOP | lexicon.STARTERS or word.low not in _NAMES_AND_WORDS or word.text.isupper():
        return False
    before, after = words[position - 1].low if position else "", words[position + 1 : position + 2]
    is_month = word.low == "may" and (before in _BEFORE_MONTH or any(one.text[0].isdigit() for one in after))
    return not is_month and (not _opens(words, position) or _match_act(words, position + 1) is not None)


def _opens(words: list[Token], position: int) -> bool:
    """Return whether the word stands where any word has a capital."""
    return position == 0 or words[position - 1].text in _SENTENCE_START


def _is_surely_name(words: list[Token], position: int, familiar: Collection[str]) -> bool:
    """Return whether a word that opens a sentence is a name all the same."""
    word = words[position]
    if word.low in familiar or word.low in lexicon.PLACES:
        return True
    following = words[position + 1] if position + 1 < len(words) else None
    if word.low in lexicon.GIVEN_NAMES and word.low not in _NAMES_AND_WORDS:
        return True
    if word.low in lexicon.VERB_FORMS or word.low in lexicon.VAGUE_NOUNS or word.low in lexicon.PASTIMES:
        return False
    if following is None or not following.wordy:
        return following is not None and following.low == "'s" and word.low not in lexicon.KIN
    return following.capital and _may_name(words, position + 1)


def _name_end(words: list[Token], position: int) -> int:
    end = position + 1
    while end < len(words) and end - position < 6:
        word = words[end]
        following = words[end + 1] if end + 1 < len(words) else None
        if _goes_on(word):
            end += 1
        elif word.low in _CONNECTORS and following is not None and following.wordy and following.capital:
            end += 2
        elif word.low == "of" and end + 2 < len(words) and words[end + 1].low == "the" and words[end + 2].capital:
            end += 3
        else:
            end += word.text.isdigit() and len(word.text) <= 2 and words[end - 1].end + 1 == word.start
            break
    # "Zed Young lives in Rome": before what somebody does, all of it is the name.
    while end - 1 > position and words[end - 1].low in lexicon.STOP and not _match_act(words, end):
        end -= 1
    return end


def _goes_on(word: Token) -> bool:
    """Return whether a capitalised word may belong to the name before it."""
    if not (word.wordy and word.capital) or word.low in lexicon.STARTERS:
        return False
    return word.low not in lexicon.PRONOUNS or (word.text.isupper() and len(word.text) > 1)


def _kind(words: list[Token], position: int, run: list[Token]) -> str:
    """Return the type of the name *run*, by its own words and the words around it."""
    first, last = run[0].low, run[-1].low
    before = words[position - 1].low if position else ""
    acronym = run[0].text.isupper()
    with_person = before in _WITH_PERSON and len(run) <= 2 and not acronym
    act = _match_act(words, position + len(run))
    rules = (
        (last in lexicon.ORGANISATION_WORDS or first in ("university", "bank", "museum"), ORGANISATION),
        (
            run[0].text == "US"
            or first in lexicon.PLACES
            or last in lexicon.PLACES
            or (first, last) in _TWO_WORD_PLACES,
            PLACE,
        ),
        (first in lexicon.GIVEN_NAMES and len(run) <= 3, PERSON),
        (last in lexicon.PLACE_WORDS, PLACE),
        (last in EVENT_WORDS or last.endswith(("fest", "con")), EVENT),
        (with_person, PERSON),
        (act is not None and act.re is _PERSON_ACTS and len(run) <= 3 and not acronym, PERSON),
        (any(character.isdigit() for word in run for character in word.text), PRODUCT),
        (acronym, TOPIC),
    )
    return next((kind for holds, kind in rules if holds), "Entity")


def _match_act(words: list[Token], at: int) -> re.Match[str] | None:
    """Match words from *at* on for what only people and organisations do ("lives in", "prefers")."""
    act = " ".join(word.low for word in words[at : at + _ACT_WORDS])
    return _PERSON_ACTS.match(act) or _PERSON_OR_GROUP_ACTS.match(act)


def _is_actor(words: list[Token], start: int, end: int, small: Collection[str]) -> bool:
    """Return whether ``words[start:end]``, which opens a sentence, names who does what follows it.

    *small* are the words that the text also writes without a capital: they are not names.
    """
    act, low = _match_act(words, end), words[start].low
    if act is None or low in small:
        return False
    if low in lexicon.GIVEN_NAMES or low in _NAMES_AND_WORDS or end - start > 1:
        return True
    # Plurals agree with the past of any verb, and with none in "-s": "Prices moved to", "Nils moves to".
    plural = act["past"] is not None and low.endswith("s")
    return not plural and not low.endswith(_ABSTRACT) and low not in _ORDINARY


# Topics.


def _topics(words: list[Token]) -> Iterator[Mention]:
    """Find runs of content words that name a thing or a topic: "sailing course", "harbour lights"."""
    position = 0
    while position < len(words):
        end = position
        while (
            end < len(words)
            and _has_content(words[end])
            and (end == position or words[end - 1].end + 1 == words[end].start)
        ):
            end += 1
        if end > position:
            yield from _split_run(words, position, end)
        position = max(end, position + 1)


def _has_content(word: Token) -> bool:
    return word.wordy and len(word.text) > 2 and word.low not in lexicon.STOP and "'" not in word.low


def _split_run(words: list[Token], start: int, end: int) -> Iterator[Mention]:
    before = words[start - 1].low if start else ""
    start = _skip_verb(words, start, end, before)
    # A verb in the middle ends the phrase: "sailing club met".
    for at in range(start + 1, end):
        if words[at].low in lexicon.VERB_FORMS and not _is_noun(words, at):
            yield from _phrase(words, start, at)
            if at + 1 < end:
                yield from _split_run(words, at, end)
            return
    yield from _phrase(words, start, end)


def _skip_verb(words: list[Token], start: int, end: int, before: str) -> int:
    """Skip the verb, adverb or participle that opens the run."""
    determined = before in lexicon.DETERMINERS and before not in ("that", "this", "these", "those")
    while start < end:
        low = words[start].low
        pastime, verb = low in lexicon.PASTIMES, low in lexicon.VERB_FORMS
        if before in _LEADS_TO_PASTIME and low.endswith("ing") and len(low) > 5:
            break  # "went skiing"
        if low.endswith("ly") and len(low) > 4:
            start += 1
        elif not determined and (
            (verb and not pastime) or (before != "to" and before in lexicon.SUBJECTS | lexicon.MODALS)
        ):
            if pastime and before not in lexicon.MODALS:
                break
            start, before = start + 1, "verb"
        elif before in lexicon.BE and (low.endswith(("ed", "ing")) or end - start == 1) and not pastime:
            start, before = start + 1, "verb"
        elif determined and end - start > 1 and low.endswith(("ed", "ing")) and verb and not pastime:
            start += 1
        else:
            break
    return start


def _is_noun(words: list[Token], at: int) -> bool:
    """Return whether a word that may be a verb is a noun: after a noun, before the end of the phrase."""
    low = words[at].low
    if low in lexicon.PASTIMES:
        return True
    if low.endswith(("ed", "ing")) or low in lexicon.IRREGULAR or low in _NEVER_NOUNS or _match_act(words, at):
        return False
    # "dance studio", "a fun match." but not "friends support me"
    following = words[at + 1] if at + 1 < len(words) else None
    if following is None or not following.wordy:
        return True
    return following.low in lexicon.FUNCTION and following.low not in lexicon.DETERMINERS


def _phrase(words: list[Token], start: int, end: int) -> Iterator[Mention]:
    while end > start and (words[end - 1].low.endswith("ly") or words[end - 1].low in lexicon.VAGUE_NOUNS):
        end -= 1
    while start < end - 1 and words[start].low in _AMOUNTS:
        start += 1
    start = max(start, end - 3)
    run = words[start:end]
    if not run or (len(run) == 1 and not _is_topic(run[0], words[start - 1].low if start else "")):
        return
    low = run[-1].low
    if low.endswith("ed") and low in lexicon.VERB_FORMS:
        return
    name = " ".join(word.low if word.text.istitle() else word.text for word in run)
    kind = EVENT if low in EVENT_WORDS else PLACE if low in lexicon.PLACE_WORDS else TOPIC
    yield Mention(run[0].start, run[-1].end, name, kind)


def _is_topic(word: Token, before: str) -> bool:
    """Return whether one word alone is worth an entity."""
    low = word.low
    if low in lexicon.PASTIMES or (before in _LEADS_TO_PASTIME and low.endswith("ing") and len(low) > 5):
        return True
    if low in lexicon.KIN and before in ("my", "our"):
        return False
    if low.endswith(("ed", "ing", "ful", "ous", "ive", "able", "ible", "less", "ish")) or low in lexicon.STARTERS:
        return False
    after_determiner = before in lexicon.DETERMINERS and before != "that" and not low.endswith("s")
    return low not in lexicon.VERB_FORMS or after_determiner
