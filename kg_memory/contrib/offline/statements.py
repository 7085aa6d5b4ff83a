"""Data types and verb patterns of the offline reader, and the choice between the statements of a sentence."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kg_memory.contrib.offline.lexicon import STARTERS
from kg_memory.text import read_table
from kg_memory.text.sentences import Sentence

Change = Literal["is", "ends", "plans", "happens", "passes", "never"]
Kind = Literal["state", "event", "plan"]
Span = tuple[int, int]

PERSON, ORGANISATION, PLACE, EVENT, PRODUCT, TOPIC = "Person", "Organization", "Place", "Event", "Product", "Topic"

BASED = ("based", "located", "headquartered")
"""The first words of verbs that say where a company or a person is located."""
MOST_OBJECTS = 3
MOST_OF_SENTENCE = 4
MOST_STATEMENTS = 50

GENERAL = "SAYS_ABOUT"
"""The predicate of a statement without a known verb, which only links the mentioned entities."""
LOOSE = frozenset({GENERAL, "RELATES_TO"})
"""Predicates of statements without a known verb."""
FUNCTIONAL = frozenset(
    "LIVES_IN WORKS_AT WORKS_AS STUDIES_AT IS_MARRIED_TO IS_IN_RELATIONSHIP_WITH BORN_ON HAS_AGE".split()
)
"""Predicates that hold for one object at a time."""
NOT = "NOT_"
"""The prefix of a predicate that is not true now, such as NOT_USES."""
DENIABLE = frozenset({"LIVES_IN", "WORKS_AT", "USES", "IS_ALLERGIC_TO", "EATS", "DRINKS", "SPEAKS"})
"""Predicates whose plain negation ("I don't use Flask") is a fact of its own."""
SINGLE = (
    FUNCTIONAL
    | {"LIKES", "DISLIKES", "IS_ALLERGIC_TO", "PREFERS", "USES"}
    | {NOT + predicate for predicate in DENIABLE}
)
"""Predicates whose statements get no further objects from their sentence."""

_KINDS: dict[Change, Kind] = {
    "is": "state",
    "passes": "state",
    "never": "state",
    "ends": "state",
    "happens": "event",
    "plans": "plan",
}
_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ0-9+#-]*(?:['’](?!s\b)[A-Za-zÀ-ɏ]+)*|\d+|['’]s\b|\n|[^\sA-Za-z0-9À-ɏ]")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]{2,}")


def is_chinese(text: str) -> bool:
    """Return whether *text* has more Chinese characters than Latin words."""
    return len(_HAN.findall(text)) > len(_LATIN.findall(text))


@dataclass(frozen=True, slots=True)
class Token:
    """A word or punctuation mark at ``text[start:end]``; `low` is its text in lower case."""

    text: str
    start: int
    end: int
    low: str
    capital: bool
    wordy: bool


def split_words(text: str) -> list[Token]:
    """Return the words and punctuation marks of *text*, in order."""
    return [_token(match) for match in _WORD.finditer(text)]


def _token(match: re.Match[str]) -> Token:
    word = match[0]
    return Token(
        word, match.start(), match.end(), word.casefold().replace("\u2019", "'"), word[0].isupper(), word[0].isalpha()
    )


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of an entity in a text: ``content[start:end]`` refers to the entity `name`."""

    start: int
    end: int
    name: str
    type: str
    named: bool = False
    kin: str | None = None


@dataclass(frozen=True, slots=True)
class TextStatement:
    """A fact stated by one sentence of a message, found by rules: (Ann, LIVES_IN, Oslo) for "I moved to Oslo"."""

    subject: Mention
    predicate: str
    objects: tuple[Mention, ...]
    start: int
    end: int
    change: Change
    confidence: float
    causal: bool = False
    verb: Span | None = None
    """The span of the verb, whose clause has the date; None if dates do not apply."""
    clause: Span | None = None
    """The span of the clause that states only this; None if that is all of the statement's text."""
    said_by: str | None = None
    """The speaker of the transcript turn; None for the speaker of the message."""

    @property
    def quote(self) -> Span:
        """The position in the content of the words to quote: the clause of the statement, or else its sentence."""
        return self.clause or (self.start, self.end)

    @property
    def kind(self) -> Kind:
        """The kind of the statement: "state" (present or past), "event" or "plan"."""
        return _KINDS[self.change]


@dataclass(frozen=True, slots=True)
class Parse:
    """The result of parsing a text: the mentions of entities, and the statements (facts that the text states)."""

    mentions: tuple[Mention, ...]
    statements: tuple[TextStatement, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """The context in which a message is read: speaker, listener, known names, and the person meant by "he" or "she"."""

    speaker: str | None = None
    listener: str | None = None
    names: tuple[str, ...] = ()
    he_or_she: Mention | None = None


def drop_overlaps(mentions: Iterable[Mention]) -> list[Mention]:
    """Return *mentions* sorted by position in the text; of two that overlap, the earlier one in the list stays."""
    kept: list[Mention] = []
    starts: list[int] = []
    for mention in mentions:
        place = bisect_right(starts, mention.start)
        after_last = place == 0 or kept[place - 1].end <= mention.start
        if after_last and (place == len(kept) or mention.end <= kept[place].start):
            kept.insert(place, mention)
            starts.insert(place, mention.start)
    return kept


def group_by_sentence(
    mentions: Sequence[Mention], sentences: Iterable[Sentence]
) -> Iterator[tuple[Sentence, list[Mention]]]:
    """Yield each sentence with the mentions that start in it; both inputs must be in text order."""
    at = 0
    for sentence in sentences:
        begin = at
        while at < len(mentions) and mentions[at].start < sentence.end:
            at += 1
        yield sentence, list(mentions[begin:at])


# Patterns.


@dataclass(frozen=True, slots=True)
class Pattern:
    """A verb phrase, as a regular expression, and its predicate: "lives in" states ``LIVES_IN``.

    `change`: "is" (true now), "passes" (temporary), "ends" (over), "never", "happens" (event) or "plans".
    """

    predicate: str
    verb: re.Pattern[str]
    change: Change
    kind: str = TOPIC
    free: bool = False


def _read_patterns(rows: Iterable[Mapping[str, Any]], wrap: str, flags: re.RegexFlag) -> tuple[Pattern, ...]:
    patterns = []
    for row in rows:
        verb = row["verb"].replace("\n", "")
        for slot, words in _TABLE["slots"].items():
            verb = verb.replace(slot, words)
        patterns.append(Pattern(**{**row, "verb": re.compile(wrap.format(verb), flags)}))
    return tuple(patterns)


_TABLE = read_table(__package__, "patterns.toml")
LISTS: dict[str, str] = _TABLE["lists"]
STATES: dict[str, tuple[str, str, str]] = {name: tuple(words) for name, words in _TABLE["states"].items()}
"""Predicates of lasting states, with the words for present, past and Chinese."""
FORMER: dict[str, str] = _TABLE["former"]
"""Further predicates that can be in the past, with the words for it."""
WORDS = {name: re.compile(words, re.IGNORECASE | re.VERBOSE) for name, words in _TABLE["words"].items()}
"""Patterns by which `clauses` recognises how a statement is meant."""
ENGLISH = _read_patterns(_TABLE["english"], r"\b(?:{})(?=\s)", re.IGNORECASE)
CHINESE = _read_patterns(_TABLE["chinese"], "{}", re.NOFLAG)


# Sentences without statements: greetings, thanks, wishes, praise and advice.

_LETTERS = re.compile(r"[A-Za-z][A-Za-z'’-]*|[\u4e00-\u9fff]")


def says_something(text: str) -> bool:
    """Return whether the sentence *text* may state a fact: False for a greeting, thanks or an exclamation."""
    if WORDS["addressed"].match(text) or WORDS["chinese_addressed"].match(text) or text.endswith((":", "：")):
        return False
    words = _LETTERS.findall(text)
    han = sum(1 for word in words if "\u4e00" <= word <= "\u9fff")
    latin = [word for word in words if word.casefold() not in STARTERS]
    if han and len(words) > han:
        return han >= 2  # 我用React
    return han >= 4 or (len(latin) - han >= 2 and len(words) - han >= 3) or WORDS["short"].match(text) is not None


# Choosing among the statements of one sentence.


def choose_statements(statements: Sequence[TextStatement]) -> list[TextStatement]:
    """Return at most four statements of a sentence, the most confident, in text order.

    A statement is left out if a more confident one about its subject has the same objects.
    """
    chosen: list[TextStatement] = []
    for statement in sorted(statements, key=lambda statement: -statement.confidence):
        same_subject = (earlier for earlier in chosen if earlier.subject.name == statement.subject.name)
        if not any(_object_names(statement) <= _object_names(earlier) for earlier in same_subject):
            chosen.append(statement)
    return sorted(chosen[:MOST_OF_SENTENCE], key=lambda statement: statement.objects[0].start)


def _object_names(statement: TextStatement) -> set[str]:
    return {mention.name for mention in statement.objects}
