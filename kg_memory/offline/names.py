"""Find the names of a text, in English: people, relatives, works, places, organisations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from kg_memory.offline import lexicon
from kg_memory.offline.acting import does, is_actor, is_person
from kg_memory.offline.spans import EVENT, EVENT_WORDS, ORGANISATION, PERSON, PLACE, PRODUCT, TOPIC, Mention, Token

_TITLE = re.compile(r"[\"“]([A-Z][^\"“”\n]{1,60})[\"”]")
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_SENTENCE_START = frozenset('.!?…\n:"“”(') | {"-", "–", "—"}
_CONNECTORS = frozenset("of the de la di del van von da dos & and".split())
_TWO_WORD_PLACES = frozenset(
    {("new", "york"), ("los", "angeles"), ("san", "francisco"), ("new", "zealand"), ("hong", "kong"), ("san", "diego")}
)
_WITH_PERSON = frozenset("with and met called named meet asked told".split())


def in_full(found: list[Mention]) -> list[Mention]:
    """Give a person who is named in full first, and by one name later, the full name throughout."""
    full: dict[str, str] = {}
    told = []
    for one in found:
        parts = one.name.split()
        if one.named and one.type == PERSON and len(parts) > 1 and "'" not in one.name:
            full.setdefault(parts[-1], one.name)
            full.setdefault(parts[0], one.name)
        told.append(replace(one, name=full[one.name], type=PERSON) if one.named and one.name in full else one)
    return told


def titles(text: str) -> Iterable[Mention]:
    """Find what stands in quotation marks with capitals (books, songs, films), and e-mail addresses."""
    for match in _ADDRESS.finditer(text):
        yield Mention(match.start(), match.end(), match[0], TOPIC, named=True)
    for match in _TITLE.finditer(text):
        words = match[1].split()
        if len(words) <= 8 and sum(word[0].isupper() for word in words) * 2 >= len(words):
            yield Mention(match.start(1), match.end(1), match[1].rstrip(".,!?"), PRODUCT, named=True)


def relatives(words: list[Token], speaker: str | None) -> Iterable[Mention]:
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
        named = _name_after(words, at)
        if named:
            yield Mention(
                named[0].start, named[-1].end, " ".join(one.text for one in named), PERSON, named=True, kin=noun.low
            )
        elif speaker:
            kind = PERSON if noun.low in lexicon.ONE_PERSON else TOPIC
            yield Mention(word.start, noun.end, f"{speaker}'s {noun.low}", kind, named=True, kin=noun.low)


def _name_after(words: list[Token], at: int) -> list[Token]:
    """Return the name that follows the relative at *at*: "sister Lily", "dog, Max", "brother called Tom"."""
    position = at + 1
    if position < len(words) and words[position].text == ",":
        position += 1
        # "my dog, Max, ..." names it; "Thanks to my mom, Paris was fun" does not.
        if position >= len(words) or words[position].low not in lexicon.GIVEN_NAMES:
            return []
    elif position < len(words) and words[position].low in ("named", "called"):
        position += 1
    elif position < len(words) and words[position].low == "is":
        # "my boss is Karen" names her; "my boss is Norwegian" does not.
        position += 1
        if position >= len(words) or words[position].low not in lexicon.GIVEN_NAMES:
            return []
    if (
        position >= len(words)
        or not words[position].wordy
        or not words[position].capital
        or words[position].low in lexicon.STOP
    ):
        return []
    name = [words[position]]
    following = words[position + 1] if position + 1 < len(words) else None
    if following is not None and following.wordy and following.capital and following.low not in lexicon.STOP:
        name.append(following)
    return name


def names(words: list[Token], known: Collection[str]) -> Iterable[Mention]:
    """Find runs of capitalised words that are names."""
    familiar = {part.casefold() for name in known for part in name.split()}
    middles = {word.low for position, word in enumerate(words) if _capital_inside(words, position)}
    small = {word.text for word in words if word.wordy and not word.capital}
    position = 0
    while position < len(words):
        end = _name_end(words, position)
        if not _can_be_name(words[position]) or not (
            not _opens(words, position)
            or _sure(words, position, familiar | middles)
            or is_actor(words, position, end, small)
        ):
            position += 1
            continue
        run = words[position:end]
        yield Mention(
            run[0].start, run[-1].end, " ".join(one.text for one in run), _kind(words, position, run), named=True
        )
        position = end


def _can_be_name(word: Token) -> bool:
    return (
        word.wordy
        and word.capital
        and len(word.text) > 1
        and word.low not in lexicon.STOP
        and word.low not in lexicon.STARTERS
        and word.low.split("'")[0] not in lexicon.PRONOUNS
        and "'" not in word.low[:-2]
    )


def _capital_inside(words: list[Token], position: int) -> bool:
    return words[position].capital and not _opens(words, position) and _can_be_name(words[position])


def _opens(words: list[Token], position: int) -> bool:
    """Return whether the word stands where any word has a capital."""
    return position == 0 or words[position - 1].text in _SENTENCE_START or words[position - 1].text in "!?"


def _sure(words: list[Token], position: int, familiar: Collection[str]) -> bool:
    """Return whether a word that opens a sentence is a name all the same."""
    word = words[position]
    if word.low in familiar or word.low in lexicon.PLACES:
        return True
    following = words[position + 1] if position + 1 < len(words) else None
    if word.low in lexicon.GIVEN_NAMES and word.low not in (
        "will",
        "mark",
        "grace",
        "hope",
        "may",
        "joy",
        "jack",
        "frank",
        "grant",
        "rose",
    ):
        return True
    if word.low in lexicon.VERB_FORMS or word.low in lexicon.VAGUE_NOUNS or word.low in lexicon.PASTIMES:
        return False
    if following is None or not following.wordy:
        return following is not None and following.low == "'s" and word.low not in lexicon.KIN
    return following.capital and _can_be_name(following)


def _name_end(words: list[Token], position: int) -> int:
    end = position + 1
    while end < len(words):
        word = words[end]
        if (
            word.wordy
            and word.capital
            and word.low not in lexicon.STARTERS
            and (word.low not in lexicon.PRONOUNS or (word.text.isupper() and len(word.text) > 1))
        ):
            end += 1
        elif (
            word.low in _CONNECTORS
            and word.low not in ("and", "the")
            and end + 1 < len(words)
            and words[end + 1].wordy
            and words[end + 1].capital
        ):
            end += 2
        elif word.low == "of" and end + 2 < len(words) and words[end + 1].low == "the" and words[end + 2].capital:
            end += 3
        elif word.text.isdigit() and len(word.text) <= 2 and words[end - 1].end + 1 == word.start:
            end += 1
            break
        else:
            break
        if end - position >= 6:
            break
    # "Zed Young lives in Rome": before what somebody does, all of it is the name.
    while end - 1 > position and words[end - 1].low in lexicon.STOP and not does(words, end):
        end -= 1
    return end


def _kind(words: list[Token], position: int, run: list[Token]) -> str:
    """Return the type of the name *run*, by its own words and the word before it."""
    first, last = run[0].low, run[-1].low
    before = words[position - 1].low if position else ""
    with_person = before in _WITH_PERSON and len(run) <= 2 and not run[0].text.isupper()
    rules = (
        (last in lexicon.ORGANISATION_WORDS or first in ("university", "bank", "museum"), ORGANISATION),
        (first in lexicon.PLACES or last in lexicon.PLACES or (first, last) in _TWO_WORD_PLACES, PLACE),
        (first in lexicon.GIVEN_NAMES and len(run) <= 3, PERSON),
        (last in lexicon.PLACE_WORDS, PLACE),
        (last in EVENT_WORDS or last.endswith(("fest", "con")), EVENT),
        (with_person, PERSON),
        (is_person(words, position + len(run)) and len(run) <= 3 and not run[0].text.isupper(), PERSON),
        (any(character.isdigit() for word in run for character in word.text), PRODUCT),
        (run[0].text.isupper(), TOPIC),
    )
    return next((kind for holds, kind in rules if holds), "Entity")
