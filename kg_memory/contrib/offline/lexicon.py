"""English words by grammatical function, from ``lexicon.toml``, and functions that find the content words of a text."""

from __future__ import annotations

import re

from kg_memory.text import read_table

_TABLE: dict[str, str] = read_table(__package__, "lexicon.toml")
WORD_LISTS = {name: frozenset(words.split()) for name, words in _TABLE.items()}

PRONOUNS = WORD_LISTS["pronouns"]
SUBJECTS = WORD_LISTS["subjects"]
AUXILIARIES = WORD_LISTS["auxiliaries"]
BE = WORD_LISTS["be"]
MODALS = WORD_LISTS["modals"]
DETERMINERS = WORD_LISTS["determiners"]
FUNCTION = WORD_LISTS["function"]
VAGUE_NOUNS = WORD_LISTS["vague_nouns"]
IRREGULAR = WORD_LISTS["irregular"]
PASTIMES = WORD_LISTS["pastimes"]
KIN = WORD_LISTS["kin"]
STARTERS = WORD_LISTS["starters"]
ORGANISATION_WORDS = WORD_LISTS["organisation_words"]
PLACE_WORDS = WORD_LISTS["place_words"]
PLACES = WORD_LISTS["places"]
NATIONALITIES = WORD_LISTS["nationalities"]
PRODUCTS = WORD_LISTS["products"]
GIVEN_NAMES = WORD_LISTS["given_names"]
FIELDS = WORD_LISTS["fields"]


def _forms(verb: str) -> set[str]:
    consonant_y = verb.endswith("y") and verb[-2] not in "aeiou"
    stem, doubled = verb.removesuffix("e"), verb + verb[-1]
    past = verb[:-1] + "ied" if consonant_y else stem + "ed"
    third = verb[:-1] + "ies" if consonant_y else verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")
    return {verb, past, third, stem + "ing", verb + "ing", doubled + "ed", doubled + "ing"}


VERB_FORMS = frozenset(form for verb in WORD_LISTS["verbs"] for form in _forms(verb)) | IRREGULAR
STOP = PRONOUNS | AUXILIARIES | FUNCTION
_TERM = re.compile(r"[A-Za-z0-9À-ɏ]+|[\u4e00-\u9fff]")


def list_words(text: str) -> list[str]:
    """Return the words and numbers in *text*, and each Chinese character as a word of its own."""
    return _TERM.findall(text)


def singular(noun: str) -> str:
    """Return an English noun without its plural ending, by spelling alone: "parties" -> "party"."""
    if len(noun) <= 3 or not noun.endswith("s") or noun.endswith(("ss", "us", "is")):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-2] if noun.endswith(("sses", "shes", "ches", "xes")) else noun[:-1]


def content_words(text: str) -> frozenset[str]:
    """Return the words of *text* without function words, in lower case and the singular."""
    return frozenset(singular(word) for word in map(str.casefold, list_words(text)) if word not in STOP)


def words_without_speaker(sentence: str) -> frozenset[str]:
    """Return the `content_words` of *sentence* without a leading speaker name ("Ann: ...")."""
    return content_words(sentence.split(": ", 1)[-1])
