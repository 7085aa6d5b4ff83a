"""Finds the mentions in an English text: people, relatives, works, places, organisations and topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import (
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
from kg_memory.contrib.offline.topics import EVENT_WORDS, PERSON_ACTS, find_topics, match_act

_TITLE = re.compile(r"[\"“]([A-Z][^\"“”\n]{1,60})[\"”]")
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_SENTENCE_START = frozenset('.!?…\n:"“”(#*>|•') | {"-", "–", "—"}
_CONNECTORS = frozenset("of de la di del van von da dos &".split())
_TWO_WORD_PLACES = frozenset(
    {("new", "york"), ("los", "angeles"), ("san", "francisco"), ("new", "zealand"), ("hong", "kong"), ("san", "diego")}
)
_NAMING = (("is", "called"), ("is", "named"), ("was", "called"), ("'s", "name", "is"))
"""Words between a relative and the name: "my sister's name is Lily"."""
_OF_LANGUAGES = lexicon.WORD_LISTS["of_languages"]
_ADVERBS = lexicon.WORD_LISTS["adverbs"]
_NO_KIND = lexicon.STOP.union(lexicon.VAGUE_NOUNS, lexicon.VERB_FORMS, lexicon.KIN, lexicon.DETERMINERS, _ADVERBS)
_WITH_PERSON = frozenset("with and met called named meet asked told".split())
_NAMES_AND_WORDS = frozenset("will mark grace hope may joy jack frank grant rose april june august".split())

PEOPLE = frozenset("will may hope april june august".split())
"""Words that can also be a person's name when capitalised."""
_MONTHS = PEOPLE - {"will", "hope"}
_ACRONYMS = frozenset("us who it".split())
"""Pronouns that are names when written in capitals."""
_BEFORE_ACRONYM = frozenset("the in at for from to with of by our an joined left near".split())
_CALENDAR = lexicon.WORD_LISTS["calendar"]
_ABSTRACT = ("ing", "tion", "sion", "ness", "ment", "ity", "ism", "ship", "ware", "ology", "ly")
_ORDINARY = EVENT_WORDS.union(
    lexicon.WORD_LISTS["bare_nouns"],
    lexicon.VAGUE_NOUNS,
    lexicon.VERB_FORMS,
    lexicon.PASTIMES,
    lexicon.KIN,
    lexicon.ORGANISATION_WORDS,
    lexicon.PLACE_WORDS,
)


def find_mentions(text: str, speaker: str | None, names: Collection[str] = ()) -> list[Mention]:
    """Return the mentions of entities in an English text, in order and without overlaps."""
    words = split_words(text)
    people = [*_find_user(words, speaker), *_find_relatives(words, speaker)]
    return _complete_names(drop_overlaps([*_find_titles(text), *people, *_names(words, names), *find_topics(words)]))


def _complete_names(mentions: list[Mention]) -> list[Mention]:
    """Complete partial names of people in *mentions*: "Ann" after "Ann Lee" becomes "Ann Lee"."""
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


def _find_titles(text: str) -> Iterator[Mention]:
    yield from (Mention(found.start(), found.end(), found[0], TOPIC, named=True) for found in _ADDRESS.finditer(text))
    for match in _TITLE.finditer(text):
        words = match[1].split()
        if len(words) <= 8 and sum(word[0].isupper() for word in words) * 2 >= len(words):
            yield Mention(match.start(1), match.end(1), match[1].rstrip(".,!?"), PRODUCT, named=True)


def _mention(run: list[Token], kind: str, *, kin: str | None = None) -> Mention:
    return Mention(run[0].start, run[-1].end, " ".join(word.text for word in run), kind, named=True, kin=kin)


def _find_user(words: list[Token], speaker: str | None) -> Iterator[Mention]:
    """Yield *speaker* for each "User" that starts a sentence and is followed by a verb: "User prefers dark mode"."""
    for at, word in enumerate(words[:-1]):
        first = at - 1 if at and words[at - 1].low == "the" else at
        if word.low == "user" and _is_first(words, first) and _is_verb(words[at + 1]):
            yield Mention(words[first].start, word.end, speaker or "User", PERSON, named=True)


def _is_verb(word: Token) -> bool:
    is_form = word.low in lexicon.VERB_FORMS and word.low.endswith(("s", "ed"))
    return not word.capital and (is_form or word.low in lexicon.AUXILIARIES or word.low in ("no", "now", "also"))


# Relatives.


def _find_relatives(words: list[Token], speaker: str | None) -> Iterator[Mention]:
    """Yield a mention for each of the speaker's relatives in *words*, by name or else by relation."""
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
            kind = PERSON if noun.low in lexicon.WORD_LISTS["one_person"] else TOPIC
            yield Mention(word.start, noun.end, f"{speaker}'s {noun.low}", kind, named=True, kin=noun.low)


def _name_after(words: list[Token], at: int) -> list[Token]:
    """Return the words of the name that follows a relative: Lily in "sister Lily", Max in "dog is called Max"."""
    position = at + 1
    following = tuple(word.low for word in words[position : position + 3])
    naming = next((phrase for phrase in _NAMING if following[: len(phrase)] == phrase), ())
    position += len(naming)
    mark = words[position].low if position < len(words) and not naming else ""
    if mark in (",", "named", "called", "is"):
        position += 1
    # Names: "my dog, Max, ..." and "my boss is Karen". Not names: "Thanks to my mom, Paris was fun" and "my boss is
    # Norwegian".
    if mark in (",", "is") and (position >= len(words) or words[position].low not in lexicon.GIVEN_NAMES):
        return []
    name = []
    for word in words[position : position + 2]:
        if not (word.wordy and word.capital and word.low not in lexicon.STOP):
            break
        name.append(word)
    after = words[position + len(name)].low if position + len(name) < len(words) else ""
    is_title = bool(naming and name) and (after == "of" or name[0].text.isupper() or name[0].low in _CALENDAR)
    return [] if is_title else name  # "was called Director of Sales"


# Names.


def _names(words: list[Token], names: Collection[str]) -> Iterator[Mention]:
    """Yield mentions for sequences of capitalised words that are names.

    *names*: known names of entities.
    """
    familiar = {part.casefold() for name in names for part in name.split()}
    familiar |= {
        word.low for at, word in enumerate(words) if word.capital and not _is_first(words, at) and _may_name(words, at)
    }
    small = {word.text for word in words if word.wordy and not word.capital}
    position = 0
    while position < len(words):
        if not (words[position].capital and _may_name(words, position)):
            position += 1
            continue
        end = _name_end(words, position)
        if _is_surely_name(words, position, familiar) or _is_actor(words, position, end, small):
            run = words[position:end]
            yield _mention(run, _type_of(words, position, run))
            position = end
        else:
            position += 1


def _may_name(words: list[Token], at: int) -> bool:
    """Return whether the word at index *at* is capitalised and can be part of a name."""
    word = words[at]
    if not (word.wordy and word.capital) or len(word.text) < 2:
        return False
    opens = _is_first(words, at)
    if word.low in PEOPLE:
        return _names_person(words, at, opens=opens)
    if word.low in _ACRONYMS:
        # "in the US", "at WHO", unless the whole text is in capitals
        return word.text.isupper() and not opens and words[at - 1].text in _BEFORE_ACRONYM
    if word.low.split("'")[0] in lexicon.PRONOUNS or word.low in lexicon.AUXILIARIES or "'" in word.low[:-2]:
        return False
    if opens or word.text.isupper():
        return word.low not in lexicon.STOP and word.low not in lexicon.STARTERS
    # Within a sentence, a capital distinguishes "We use Solid" from "a solid plan".
    return word.low not in _CALENDAR and (word.low not in lexicon.STOP or _is_capitalised_as_name(words, at))


def _names_person(words: list[Token], at: int, *, opens: bool) -> bool:
    """Return whether a word such as "May" is a person's name: yes in "May likes tea", no in "in May"."""
    if not words[at].text.istitle():
        return False
    if opens:
        following = [word.low for word in words[at + 1 : at + 3]]
        is_subject = match_act(words, at + 1) is not None or following in (["is", "my"], ["is", "our"])
        return is_subject or (words[at].low == "will" and following[:1] in (["is"], ["and"], ["says"]))
    return words[at].low not in _MONTHS or words[at - 1].low in _WITH_PERSON - {"and", "called"}


def _is_capitalised_as_name(words: list[Token], at: int) -> bool:
    before, word = words[at - 1], words[at]
    return word.text.istitle() and before.wordy and not before.capital


def _is_first(words: list[Token], position: int) -> bool:
    return position == 0 or words[position - 1].text in _SENTENCE_START


def _is_surely_name(words: list[Token], position: int, familiar: Collection[str]) -> bool:
    """Return whether the capitalised word at index *position* is certainly a name.

    *familiar*: words of known names, and of names elsewhere in the text.
    """
    word = words[position]
    if word.low in familiar or word.low in lexicon.PLACES or word.low in PEOPLE or _is_spelled_as_name(word):
        return True
    following = words[position + 1] if position + 1 < len(words) else None
    if word.low in lexicon.GIVEN_NAMES and word.low not in _NAMES_AND_WORDS:
        return True
    if word.low in lexicon.VERB_FORMS or word.low in lexicon.VAGUE_NOUNS or word.low in lexicon.PASTIMES:
        return False
    if following is None or not following.wordy:
        return following is not None and following.low == "'s" and word.low not in lexicon.KIN
    return following.capital and _may_name(words, position + 1)


def _is_spelled_as_name(word: Token) -> bool:
    """Return whether *word* is spelled like a name, and not like a common word: "PostgreSQL", "GitHub", "Qdrant"."""
    inner = word.text[1:]
    mixed = not word.text.isupper() and any(letter.isupper() for letter in inner) and "-" not in inner
    return mixed or (word.low[0] == "q" and len(word.low) > 2 and word.low[1] != "u")


def _name_end(words: list[Token], position: int) -> int:
    """Return the index of the word after the name that starts at *position*; names may contain "of" and numbers."""
    end = position + 1
    while end < len(words) and end - position < 6:
        word = words[end]
        following = words[end + 1] if end + 1 < len(words) else None
        if _continues_name(word):
            end += 1
        elif word.low in _CONNECTORS and following is not None and following.wordy and following.capital:
            end += 2
        elif word.low == "of" and end + 2 < len(words) and words[end + 1].low == "the" and words[end + 2].capital:
            end += 3
        else:
            versioned = following is not None and following.text == "." and following.end == word.end + 1
            numbered = word.text.isdigit() and len(word.text) <= 2 and words[end - 1].end + 1 == word.start
            end += numbered and not (versioned and end + 2 < len(words) and words[end + 2].text.isdigit())
            break
    # In "Zed Young lives in Rome" the name extends up to the verb.
    while end - 1 > position and words[end - 1].low in lexicon.STOP and not match_act(words, end):
        end -= 1
    if end == position + 1 < len(words) and words[position].low in lexicon.NATIONALITIES and _is_noun(words[end]):
        end += words[position - 1].low not in _OF_LANGUAGES  # "I like Italian food" names no language
    return end


def _is_noun(word: Token) -> bool:
    """Return whether *word*, which follows a nationality, is probably a noun, like "food" in "Thai food"."""
    small = word.wordy and word.text.isalpha() and not word.capital and not word.low.endswith("ly")
    return small and word.low not in _NO_KIND


def _continues_name(word: Token) -> bool:
    if not (word.wordy and word.capital) or word.low in lexicon.STARTERS:
        return False
    return word.low not in lexicon.PRONOUNS or (word.text.isupper() and len(word.text) > 1)


def _type_of(words: list[Token], position: int, run: list[Token]) -> str:
    """Return the entity type of a name, such as "Person", to judge by its words and the words around it."""
    first, last = run[0].low, run[-1].low
    before = words[position - 1].low if position else ""
    acronym = run[0].text.isupper()
    with_person = before in _WITH_PERSON and len(run) <= 2 and not acronym
    act = match_act(words, position + len(run))
    rules = (
        (last in lexicon.ORGANISATION_WORDS or first in ("university", "bank", "museum"), ORGANISATION),
        (first in lexicon.PLACES or last in lexicon.PLACES or (first, last) in _TWO_WORD_PLACES, PLACE),
        (first in lexicon.GIVEN_NAMES and len(run) <= 3, PERSON),
        (last in lexicon.PLACE_WORDS, PLACE),
        (first in lexicon.PRODUCTS, PRODUCT),
        (last in EVENT_WORDS or last.endswith(("fest", "con")), EVENT),
        (with_person or (len(run) == 1 and first in PEOPLE), PERSON),
        (act is not None and act.re is PERSON_ACTS and len(run) <= 3 and not acronym, PERSON),
        (any(character.isdigit() for word in run for character in word.text), PRODUCT),
        (acronym, TOPIC),
    )
    return next((kind for holds, kind in rules if holds), "Entity")


def _is_actor(words: list[Token], start: int, end: int, small: Collection[str]) -> bool:
    """Return whether ``words[start:end]``, which begins a sentence, is a name and the subject of the next verb."""
    act, low = match_act(words, end), words[start].low
    if act is None or low in small:
        return False
    if low in lexicon.GIVEN_NAMES or low in _NAMES_AND_WORDS or end - start > 1:
        return True
    # A plural can precede a verb in the past ("Prices moved to"), but not one in "-s" ("Nils moves to").
    plural = act["past"] is not None and low.endswith("s")
    return not plural and not low.endswith(_ABSTRACT) and low not in _ORDINARY
