"""Canonical names, keys and ids of episodes, entities and facts; names of speakers, and pronouns.

Ids are uuid5 of the namespace and of what identifies the object in it, so the same input always gives the same id. Keys
are hashes of fixed length, so that an index can hold them however long the text is.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from uuid import NAMESPACE_URL, UUID, uuid5

LONGEST_NAME = 512
"""The most bytes of a name; longer names are cut."""
MAX_CACHED_NAME = 100
"""The most characters of a name whose key is cached."""
LONGEST_SPEAKER = 100
"""The most characters of a speaker that counts as a name."""
_NO_NAME = re.compile(
    r"^\s*[-–—−*+•·‣◦▪∙>#|]+\s"  # an item of a list, a quotation, a heading
    r"|^\s*(?:FACTS|ENTITIES|COMMUNITIES|EPISODES):?\s*$"
    r"|</?[A-Za-z][^>]*>|[{}\n]"  # markup
    r"|\[[^\]]*\d[^\]]*\]\s*$|^\s*\[(?:[a-z]\d+|[0-9a-f]{8})\]\s"  # a citation, as contexts write it: [m1]
    r"|\((?:since|until|from|no longer|ended|on|in|by|about|said|as of|doubtful)\s[^)]*\)"  # and a time
    r"|\(\d{4}[\d-]*\sto\s[^)]*\)"
)
_NAMES_SOMETHING = re.compile("[^\\W_]|[\u2600-\u27bf\U0001f000-\U0001faff]")
"""A letter, a digit or an emoji."""
_ASSISTANTS = frozenset(
    ("assistant", "ai", "ai assistant", "bot", "chatbot", "model", "aimessage", "system", "tool", "助手", "机器人")
)
_ASSISTANT_MARK = "(assistant)"
_POSSESSIVE = re.compile(r"['’]s?$")
_INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufe0f\ufeff]")
_TURKISH_I = re.compile("[iı]\u0307*")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ROOT = uuid5(NAMESPACE_URL, "https://github.com/kg-memory")


def replace_unstorable(text: str) -> str:
    """Return *text* with U+FFFD in place of characters that the database cannot store: NUL and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def display_name(name: str) -> str:
    """Return *name* as it is shown: on one line, without control characters, cut to `LONGEST_NAME` bytes."""
    visible = "".join(
        " " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in replace_unstorable(name)
    )
    return " ".join(visible.split()).encode()[:LONGEST_NAME].decode("utf-8", "ignore").strip()


def name_of_speaker(speaker: str | None) -> str:
    """Return the name of *speaker* as it is shown; "" if it cannot be a name, such as markup or a list item."""
    name = display_name(speaker or "")
    is_name = len(name) <= LONGEST_SPEAKER and _NAMES_SOMETHING.search(name) and not _NO_NAME.search(speaker or "")
    return name if is_name else ""


def canonical_name(name: str) -> str:
    """Return *name* in the form in which names are compared: "Ann  Lee" -> "ann lee".

    The form is NFKC, case-folded, on one line, without invisible marks of direction and width, with i for the dotted
    and the dotless i of Turkish, and cut to `LONGEST_NAME` bytes.
    """
    if name.isascii() and name.isprintable():  # a shortcut with the same result
        return " ".join(name.casefold().split())[:LONGEST_NAME].strip()
    visible = _INVISIBLE.sub("", display_name(name))
    return display_name(_TURKISH_I.sub("i", unicodedata.normalize("NFKC", visible).casefold()))


def alias_key(name: str) -> str:
    """Return the alias key of *name*: a hash for finding entities by name; equal for "Ann Lee" and "ann  lee"."""
    return _cached_alias_key(name) if len(name) <= MAX_CACHED_NAME else _uncached_alias_key(name)


def _uncached_alias_key(name: str) -> str:
    return _hash(canonical_name(name))


_cached_alias_key = lru_cache(maxsize=65_536)(_uncached_alias_key)


def entity_key(name: str, type_: str, apart: str | None = None) -> str:
    """Return the key of an entity: a hash of its *name* and its type.

    *apart*: for a second entity of this name and type, the id of the message or decision that separated them.
    """
    parts = (canonical_name(type_), canonical_name(name))
    return _hash(*parts) if apart is None else _hash(*parts, "apart", apart)


def thread_key(thread: str | None) -> str:
    """Return the key of a conversation, a hash of its name *thread*; all messages with None share one key."""
    return _hash("thread", thread or "")


def episode_id(namespace: str, parts: Iterable[str | None]) -> str:
    """Return the id of an episode in *namespace*, a UUID; equal *parts* give equal ids."""
    return _uuid(namespace, "episode", *(part or "" for part in parts))


def entity_id(namespace: str, key: str) -> str:
    """Return the id, a UUID, of the entity with the entity key *key* (see `entity_key`) in *namespace*."""
    return _uuid(namespace, "entity", key)


def fact_id(namespace: str, subject: str, predicate: str, objects: Iterable[str], sentence: str) -> str:
    """Return the id of a fact in *namespace*, a UUID; case, punctuation and the order of *objects* do not matter."""
    return _uuid(namespace, "fact", subject, predicate, *sorted(objects), canonical_sentence(sentence))


def canonical_sentence(sentence: str) -> str:
    """Return *sentence* in the form in which sentences are compared: "Ann's here!" -> "ann s here"."""
    folded = unicodedata.normalize("NFKC", replace_unstorable(sentence)).casefold()
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def belief_id(namespace: str, fact: str, cause: str, *times: int) -> str:
    """Return the id of a belief: a record of one period in which the memory considers *fact* true.

    *times*: the period in microseconds, then 1 if it waits for review, else 0.
    """
    return _uuid(namespace, "belief", fact, cause, *map(str, times))


def verdict_id(namespace: str, fact: str, opponent: str) -> str:
    """Return the id of the verdict on how two facts relate, such as "duplicate".

    *fact* and *opponent* are the ids of the two facts, in any order.
    """
    return _uuid(namespace, "verdict", *sorted((fact, opponent)))


def community_id(namespace: str, oldest: str, level: int = 0) -> str:
    """Return the id of a community (a group of entities); *oldest* is the id of its oldest entity."""
    return _uuid(namespace, "community", oldest, *([str(level)] if level else []))


def decision_id(namespace: str, verdict: str, at: int) -> str:
    """Return the id of the decision made at *at* (microseconds) about a verdict (how two facts relate)."""
    return _uuid(namespace, "decision", verdict, str(at))


def identity_id(namespace: str, *parts: object) -> str:
    """Return the id of a decision on whether two entities are the same: a merge, a split or an open question."""
    return _uuid(namespace, "identity", *map(str, parts))


def _uuid(namespace: str, *parts: str) -> str:
    return str(uuid5(_namespace_id(namespace), _hash(*parts)))


@lru_cache(maxsize=1024)
def _namespace_id(namespace: str) -> UUID:
    return uuid5(_ROOT, _hash(namespace))


def _hash(*parts: str) -> str:
    joined = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def without_possessive(name: str) -> str:
    """Return *name* without "'s" or "'" at its end: "Ann's" -> "Ann"."""
    return _POSSESSIVE.sub("", name)


def spoken_line(speaker: str | None, content: str) -> str:
    """Return *content* with its speaker in front: "Ann: I moved."; without a speaker, *content* alone."""
    return f"{speaker}: {content}" if speaker else content


def is_assistant(speaker: str | None) -> bool:
    """Return whether *speaker* is an assistant or a tool by its name: "assistant", "bot", "Max (assistant)"."""
    name = (speaker or "").casefold()
    return name in _ASSISTANTS or name.endswith(_ASSISTANT_MARK)


def name_assistant(speaker: str) -> str:
    """Return *speaker*, the name of an assistant, in a form that tells it from a person: "Max (assistant)"."""
    return speaker if is_assistant(speaker) else f"{speaker} {_ASSISTANT_MARK}"


def block_thread(label: str) -> str:
    """Return the thread in which the memory block *label* is stored: "persona" -> "block/persona"."""
    return f"block/{label}"


# Pronouns, as opposed to names with the same letters: "us" and the US, "who" and the WHO, "it" and IT.

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
"""Words by which users refer to themselves, or an application refers to them: "I", "my", "the user"."""
_OWNER = re.compile(r"(?:my|mine)$", re.IGNORECASE)
_OWNED_BY = ("'s", "’s", "的")
HAS_LETTER = re.compile(r"\w")
"""A letter, a digit or "_"."""
_LOWER = re.compile(r"[^\W\d_]")


def is_pronoun(name: str, context: str = "") -> bool:
    """Return whether *name* is a pronoun such as "she", and not an acronym such as "US" or "WHO"."""
    if canonical_name(name) not in PRONOUNS:
        return False
    if len(name) == 1 or not (name.isascii() and name.isupper()):
        return True
    written = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", context.replace(".", ""))
    other_letters = "".join(_LOWER.findall(context.replace(name, "")))
    return written is None or (other_letters.isascii() and other_letters.isupper())


def why_no_name(name: str, context: str = "") -> str | None:
    """Return the reason why *name* cannot name an entity, such as "its name is a pronoun"; None if it can."""
    if not canonical_name(name):
        return "it has no name"
    if not HAS_LETTER.search(name):
        return "its name has no letter and no digit"
    return "its name is a pronoun" if is_pronoun(name, context) else None


def is_first_person(question: str) -> bool:
    """Return whether *question* contains a word such as "I", "my" or "the user": "Where do I live?"."""
    return FIRST_PERSON.search(question) is not None


def is_subject(question: str) -> bool:
    """Return whether *question* is about the person who asks: true for "Where do I live?"."""
    matches = FIRST_PERSON.finditer(question)
    return any(not _OWNER.match(word[0]) and not question.startswith(_OWNED_BY, word.end()) for word in matches)


def name_asker(question: str, asker: str) -> str:
    """Return *question* with the name *asker* in place of "I" and "my": "Where is my dog?" -> "Where is Ann's dog?"."""
    asker = display_name(asker)
    return FIRST_PERSON.sub(lambda word: f"{asker}'s" if _OWNER.match(word[0]) else asker, question)
