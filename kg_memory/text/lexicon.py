"""English words by what they do in a sentence, from ``lexicon.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files

_TABLE: dict[str, str] = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8"))
_WORDS = {name: frozenset(words.split()) for name, words in _TABLE.items()}

PRONOUNS = _WORDS["pronouns"]
SUBJECTS = _WORDS["subjects"]
AUXILIARIES = _WORDS["auxiliaries"]
BE = _WORDS["be"]
MODALS = _WORDS["modals"]
DETERMINERS = _WORDS["determiners"]
FUNCTION = _WORDS["function"]
VAGUE_NOUNS = _WORDS["vague_nouns"]
VERBS = _WORDS["verbs"]
IRREGULAR = _WORDS["irregular"]
PASTIMES = _WORDS["pastimes"]
KIN = _WORDS["kin"]
ONE_PERSON = _WORDS["one_person"]
STARTERS = _WORDS["starters"]
BARE_NOUNS = _WORDS["bare_nouns"]
ORGANISATION_WORDS = _WORDS["organisation_words"]
PLACE_WORDS = _WORDS["place_words"]
PLACES = _WORDS["places"]
NATIONALITIES = _WORDS["nationalities"]
PRODUCTS = _WORDS["products"]
GIVEN_NAMES = _WORDS["given_names"]


def _forms(verb: str) -> set[str]:
    consonant_y = verb.endswith("y") and verb[-2] not in "aeiou"
    stem, doubled = verb.removesuffix("e"), verb + verb[-1]
    past = verb[:-1] + "ied" if consonant_y else stem + "ed"
    third = verb[:-1] + "ies" if consonant_y else verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")
    return {verb, past, third, stem + "ing", verb + "ing", doubled + "ed", doubled + "ing"}


VERB_FORMS = frozenset(form for verb in VERBS for form in _forms(verb)) | IRREGULAR
STOP = PRONOUNS | AUXILIARIES | FUNCTION
