"""What a text mentions, in English: names, relatives, works and topics, each with its characters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from kg_memory.offline import lexicon

PERSON, ORGANISATION, PLACE, EVENT, PRODUCT, TOPIC = "Person", "Organization", "Place", "Event", "Product", "Topic"

_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ0-9+#-]*(?:['’](?!s\b)[A-Za-zÀ-ɏ]+)*|\d+|['’]s\b|\n|[^\sA-Za-z0-9À-ɏ]")
_TITLE = re.compile(r"[\"“]([A-Z][^\"“”\n]{1,60})[\"”]")
_SENTENCE_START = frozenset(".!?…\n:\"“”(") | {"-", "–", "—"}
_CONNECTORS = frozenset("of the de la di del van von da dos & and".split())
_EVENT_WORDS = frozenset(
    "party wedding conference parade festival concert race marathon meeting workshop retreat trip tournament competition "
    "exhibition exhibit convention birthday anniversary graduation gala fair interview show event hackathon".split()
)
_WITH_PERSON = frozenset("with and met called named meet asked told".split())


@dataclass(frozen=True, slots=True)
class Mention:
    """The characters ``content[start:end]`` name the entity `name`.

    `named` tells a name ("Oslo", "Ann's mother") from a word for a topic ("pottery class").
    """

    start: int
    end: int
    name: str
    type: str
    named: bool = False
    kin: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One word or mark of a text."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        """The word in lower case with a plain apostrophe."""
        return self.text.casefold().replace("’", "'")

    @property
    def capital(self) -> bool:
        """Tell whether it begins with a capital letter."""
        return self.text[0].isupper()

    @property
    def wordy(self) -> bool:
        """Tell whether it is a word."""
        return self.text[0].isalpha()


def tokens(text: str) -> list[Token]:
    """Return the words and marks of *text*."""
    return [Token(match[0], match.start(), match.end()) for match in _WORD.finditer(text)]


def mentions(text: str, speaker: str | None, known: Collection[str] = ()) -> list[Mention]:
    """Return what *text* mentions, in order and without overlaps; *known* are names met before."""
    words = tokens(text)
    found = list(_titles(text))
    found += _relatives(words, speaker)
    found += _names(words, known)
    found += _topics(words)
    return _in_full(without_overlaps(found))


def without_overlaps(found: Iterable[Mention]) -> list[Mention]:
    """Keep the earlier of mentions that overlap, and return them in the order of the text."""
    kept: list[Mention] = []
    for mention in found:
        if all(mention.end <= other.start or other.end <= mention.start for other in kept):
            kept.append(mention)
    return sorted(kept, key=lambda one: one.start)


def _in_full(found: list[Mention]) -> list[Mention]:
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


def _titles(text: str) -> Iterable[Mention]:
    for match in _TITLE.finditer(text):
        words = match[1].split()
        if len(words) <= 8 and sum(word[0].isupper() for word in words) * 2 >= len(words):
            yield Mention(match.start(1), match.end(1), match[1].rstrip(".,!?"), PRODUCT, named=True)


def _relatives(words: list[Token], speaker: str | None) -> Iterable[Mention]:
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
            yield Mention(named[0].start, named[-1].end, " ".join(one.text for one in named), PERSON, named=True, kin=noun.low)
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
    if position >= len(words) or not words[position].wordy or not words[position].capital or words[position].low in lexicon.STOP:
        return []
    name = [words[position]]
    following = words[position + 1] if position + 1 < len(words) else None
    if following is not None and following.wordy and following.capital and following.low not in lexicon.STOP:
        name.append(following)
    return name


def _names(words: list[Token], known: Collection[str]) -> Iterable[Mention]:
    """Find runs of capitalised words that are names."""
    familiar = {part.casefold() for name in known for part in name.split()}
    middles = {word.low for position, word in enumerate(words) if _capital_inside(words, position)}
    position = 0
    while position < len(words):
        word = words[position]
        if not _can_be_name(word) or (_opens(words, position) and not _sure(words, position, familiar | middles)):
            position += 1
            continue
        end = _name_end(words, position)
        run = words[position:end]
        yield Mention(run[0].start, run[-1].end, " ".join(one.text for one in run), kind_of(words, position, run), named=True)
        position = end


def _can_be_name(word: Token) -> bool:
    return (
        word.wordy
        and word.capital
        and len(word.text) > 1
        and word.low not in lexicon.STOP
        and word.low not in lexicon.STARTERS
        and "'" not in word.low[:-2]
    )


def _capital_inside(words: list[Token], position: int) -> bool:
    return words[position].capital and not _opens(words, position) and _can_be_name(words[position])


def _opens(words: list[Token], position: int) -> bool:
    """Tell whether the word stands where any word has a capital."""
    return position == 0 or words[position - 1].text in _SENTENCE_START or words[position - 1].text in "!?"


def _sure(words: list[Token], position: int, familiar: Collection[str]) -> bool:
    """Tell whether a word that opens a sentence is a name all the same."""
    word = words[position]
    if word.low in familiar or word.low in lexicon.PLACES:
        return True
    following = words[position + 1] if position + 1 < len(words) else None
    if word.low in lexicon.GIVEN_NAMES and word.low not in ("will", "mark", "grace", "hope", "may", "joy", "jack", "frank", "grant", "rose"):
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
        if word.wordy and word.capital and word.low not in lexicon.STARTERS and (word.low not in lexicon.PRONOUNS or word.text.isupper() and len(word.text) > 1):
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
    while end - 1 > position and words[end - 1].low in lexicon.STOP:
        end -= 1
    return end


def kind_of(words: list[Token], position: int, run: list[Token]) -> str:
    """Return the type of the name *run*, by its own words and the word before it."""
    lows = [word.low for word in run]
    before = words[position - 1].low if position else ""
    if lows[-1] in lexicon.ORGANISATION_WORDS or lows[0] in ("university", "bank", "museum"):
        return ORGANISATION
    if lows[0] in lexicon.PLACES or lows[-1] in lexicon.PLACES or "".join(lows[:2]) in ("newyork", "losangeles", "sanfrancisco"):
        return PLACE
    if lows[0] in lexicon.GIVEN_NAMES and len(run) <= 3:
        return PERSON
    if lows[-1] in lexicon.PLACE_WORDS:
        return PLACE
    if lows[-1] in _EVENT_WORDS or lows[-1].endswith(("fest", "con")):
        return EVENT
    if before in _WITH_PERSON and len(run) <= 2 and not run[0].text.isupper():
        return PERSON
    return PRODUCT if any(character.isdigit() for word in run for character in word.text) else TOPIC if run[0].text.isupper() else "Entity"


def _topics(words: list[Token]) -> Iterable[Mention]:
    """Find runs of content words that name a thing or a topic: "pottery class", "adoption agencies"."""
    position = 0
    while position < len(words):
        if not _content(words[position]):
            position += 1
            continue
        end = position
        while end < len(words) and _content(words[end]) and (end == position or words[end - 1].end + 1 == words[end].start):
            end += 1
        yield from _topic(words, position, end)
        position = max(end, position + 1)


def _content(word: Token) -> bool:
    return word.wordy and len(word.text) > 2 and word.low not in lexicon.STOP and "'" not in word.low


def _topic(words: list[Token], start: int, end: int) -> Iterable[Mention]:
    before = words[start - 1].low if start else ""
    if start and words[start - 1].text == "," and start > 1:
        before = ","
    start = _skip_verb(words, start, end, before)
    # A verb in the middle ends the phrase: "support group made".
    for at in range(start, end):
        if words[at].low in lexicon.VERB_FORMS and at > start and not _as_noun(words[at], words, at):
            yield from _phrase(words, start, at)
            yield from _topic(words, at, end) if at + 1 < end else ()
            return
    yield from _phrase(words, start, end)


def _skip_verb(words: list[Token], start: int, end: int, before: str) -> int:
    """Step over the verb, adverb or participle that opens the run."""
    determined = before in lexicon.DETERMINERS and before not in ("that", "this", "these", "those")
    while start < end:
        low = words[start].low
        verb_here = low in lexicon.VERB_FORMS and low not in lexicon.PASTIMES
        if low.endswith("ly") and len(low) > 4:
            start += 1
        elif not determined and (verb_here or (before in lexicon.SUBJECTS or before in lexicon.MODALS) and before != "to"):
            if low in lexicon.PASTIMES and before not in lexicon.MODALS:
                break
            start, before = start + 1, "verb"
        elif before in lexicon.BE and (low.endswith(("ed", "ing")) or end - start == 1) and low not in lexicon.PASTIMES:
            start, before = start + 1, "verb"
        elif determined and end - start > 1 and low.endswith(("ed", "ing")) and low not in lexicon.PASTIMES and low in lexicon.VERB_FORMS:
            start += 1
        else:
            break
    return start


def _as_noun(word: Token, words: list[Token], at: int) -> bool:
    """Tell whether a word that may be a verb stands as a noun: after a noun, before the phrase's end."""
    if word.low in lexicon.PASTIMES:
        return True
    if word.low.endswith(("ed", "ing")) or word.low in lexicon.IRREGULAR:
        return False
    following = words[at + 1] if at + 1 < len(words) else None
    # "dance studio", "a fun match." but not "friends support me"
    return following is None or not following.wordy or (following.low in lexicon.FUNCTION and following.low not in lexicon.DETERMINERS)


def _phrase(words: list[Token], start: int, end: int) -> Iterable[Mention]:
    while end > start and (words[end - 1].low.endswith("ly") or words[end - 1].low in lexicon.VAGUE_NOUNS):
        end -= 1
    while start < end - 1 and words[start].low in lexicon.VAGUE_NOUNS:
        start += 1
    start = max(start, end - 3)
    run = words[start:end]
    if not run:
        return
    low = run[-1].low
    if len(run) == 1 and not _worth(run[0], words[start - 1].low if start else ""):
        return
    if low.endswith("ed") and low in lexicon.VERB_FORMS:
        return
    name = " ".join(one.text if one.text.isupper() else one.low for one in run)
    kind = EVENT if low in _EVENT_WORDS else PLACE if low in lexicon.PLACE_WORDS else TOPIC
    yield Mention(run[0].start, run[-1].end, name, kind)


def _worth(word: Token, before: str) -> bool:
    low = word.low
    if low in lexicon.PASTIMES:
        return True
    if low.endswith(("ed", "ing", "ful", "ous", "ive", "able", "ible", "less", "ish")) or low in lexicon.STARTERS:
        return False
    return low not in lexicon.VERB_FORMS or (before in lexicon.DETERMINERS and before != "that" and not low.endswith("s"))
