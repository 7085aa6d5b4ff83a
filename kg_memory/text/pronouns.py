"""Tell pronouns from names that are spelt like them: "us" and the US, "who" and the WHO, "it" and IT."""

from __future__ import annotations

import re

from kg_memory.text.identity import canonical_name

PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours "
    "they them their theirs this that these those who someone somebody everyone everybody anyone nobody "
    "我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 自己 大家 这 那 这个 那个 这些 那些 谁 有人".split()
)
FIRST_PERSON = re.compile(
    r"(?<![\w.])(?:I|me|my|mine|myself|the\suser(?!\s(?:accounts?|base|data|experience|feedback|flows?|groups?|guides?|ids?|"
    r"input|interfaces?|journeys?|manuals?|names?|research|stor(?:y|ies)|tables?|tests?|testing)\b))(?![\w.]*\w)|"
    r"我(?!们)|咱(?!们)|(?:这个|该)?用户(?![体信协反名图手故数权标测界登研终组群行调])",
    re.IGNORECASE,
)
"""Words by which who asks means themselves, or an application means them."""
_OWNER = re.compile(r"(?:my|mine)$", re.IGNORECASE)
_POSSESSIVE = ("'s", "’s", "的")
_HAS_LETTER = re.compile(r"\w")
_LOWER = re.compile(r"[^\W\d_]")


def is_pronoun(name: str, context: str = "") -> bool:
    """Return whether *name* is a pronoun, and no name in capitals: "US" and "WHO" are names.

    It must stand so in the *context*, which is not all in capitals: there nothing tells them apart.
    """
    if canonical_name(name) not in PRONOUNS:
        return False
    is_acronym = len(name) > 1 and name.isascii() and name.isupper()
    if not is_acronym:
        return True
    written = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", context.replace(".", ""))
    return written is None or _is_shouted(context, name)


def why_no_name(name: str, context: str = "") -> str | None:
    """Return why *name* cannot be the name of an entity, if it cannot."""
    if not canonical_name(name):
        return "it has no name"
    if not _HAS_LETTER.search(name):
        return "its name has no letter and no digit"
    return "its name is a pronoun" if is_pronoun(name, context) else None


def is_first_person(question: str) -> bool:
    """Return whether who asks *question* asks about themselves."""
    return FIRST_PERSON.search(question) is not None


def is_subject(question: str) -> bool:
    """Return whether *question* is about who asks, and not about what is theirs: "I", not "my sister"."""
    matches = FIRST_PERSON.finditer(question)
    return any(not _OWNER.match(word[0]) and not question.startswith(_POSSESSIVE, word.end()) for word in matches)


def name_asker(question: str, asker: str) -> str:
    """Return *question* with the name of who asks instead of the words that mean them."""
    return FIRST_PERSON.sub(lambda word: f"{asker}'s" if _OWNER.match(word[0]) else asker, question)


def _is_shouted(context: str, name: str) -> bool:
    """Return whether *context* has letters beside *name*, and all of them are capitals."""
    letters = "".join(_LOWER.findall(context.replace(name, "")))
    return letters.isascii() and letters.isupper()
