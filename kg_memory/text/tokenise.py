"""Split a text into the terms of the word index: one tokenizer for documents and questions.

Words of any script are folded (NFKC, case, accents) and split at punctuation, underscores and camelCase. Latin words
are stemmed as English. Scripts without spaces between words are cut into pairs of characters: Chinese (split at its
function words first), Thai, Lao, Khmer and Burmese; Japanese, where Han, hiragana and katakana are separate runs; and
Korean, whose words have endings. A run of one character is a word itself (a lone hiragana is a particle and dropped);
so is an emoji, in any skin tone, and a flag. Simplified and traditional Chinese are not folded together.

This module also recognises messages without words worth indexing, such as greetings (`says_nothing`, `is_filler`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, groupby, pairwise
from math import ceil
from threading import Lock

from snowballstemmer.english_stemmer import EnglishStemmer

from kg_memory.text import read_table
from kg_memory.text.identity import canonical_sentence

# Stored in each graph as the version of its word index; a graph with a newer one is refused.
VERSION = 1
MAX_LENGTH = 64
PART = 20_000
WINDOW, LONGEST_MATCH = 20_000, 13_000
"""The characters of a text that are searched in one call, and the most characters of a match."""

# Marks that people leave out when they type: Latin, Greek and Cyrillic accents, Hebrew and Arabic
# vowel points, the Arabic tatweel, keycaps and variation selectors. Indic and Thai vowels are kept as letters.
_OPTIONAL_MARKS = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_FOLDS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
    | {"’": "'", "ʼ": "'", "\u200b": " "}
    | dict.fromkeys("\u00ad\u200c\u200d\u2060\ufeff")
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_ENGLISH_STOP = frozenset(
    """
    a about after again all also am an and any are as at be because been before being both but by could did do does
    doing down each few for from further had has have having he her here hers herself him himself his how i if in into
    is it its itself just let me more most my myself no nor not of off on once only or other our ours ourselves out
    over same she should so some such than that the their theirs them themselves then there these they this those
    through to too under until up very was we were what when where which while who whom whose why with would you your
    yours yourself yourselves d ll m re s t ve
    """.split()
)
# Contractions are removed whole; otherwise "don't" would leave the term "don".
_CONTRACTION = re.compile(
    r"(?<!\w)(?:(?:ai|are|ca|could|did|do|does|had|has|have|is|must|need|should|was|were|wo|would)n't"
    r"|can't|i'm|let's|(?:he|it|she|that|there|what|when|where|who|why|how)'(?:s|d|ll)"
    r"|(?:i|they|we|you)'(?:d|ll|re|ve))(?!\w)",
    re.IGNORECASE,
)
_CHINESE_STOP = re.compile(
    "为什么|什么时候|怎么样|什么|怎么|怎样|哪里|哪儿|哪个|哪些|多少|我们|你们|他们|她们|它们|咱们|自己|这个|那个|这些|那些|这里|那里|这样|那样"
    "|因为|所以|但是|可是|不过|如果|虽然|然后|而且|或者|以及|还是|已经|正在|没有|一个|一些|一下"
    "|[的了吗呢吧啊呀嘛哦嗯么着我你您他她它们谁这那哪是在也都就还又很把被]"
)

_WORD, _HAN, _HIRAGANA, _PAIRED, _EMOJI = "word", "han", "hiragana", "paired", "emoji"
_RANGES = (
    (0x0E00, 0x0EFF, _PAIRED),  # Thai, Lao
    (0x1000, 0x109F, _PAIRED),  # Burmese
    (0x1100, 0x11FF, "hangul"),
    (0x1780, 0x17FF, _PAIRED),  # Khmer
    (0x3005, 0x3007, _HAN),
    (0x3041, 0x309F, _HIRAGANA),
    (0x30A0, 0x30FF, "katakana"),
    (0x31F0, 0x31FF, "katakana"),
    (0x3400, 0x9FFF, _HAN),
    (0xAC00, 0xD7FF, "hangul"),
    (0xF900, 0xFAFF, _HAN),
    (0x20000, 0x3FFFF, _HAN),
)
# A flag, which consists of two letters, or another emoji.
_PICTURE = re.compile("[\U0001f1e6-\U0001f1ff]{2}|.")
_stemmer = EnglishStemmer()
_stemming = Lock()  # the stemmer is not thread-safe: it stores the current word


def has_words(text: str) -> bool:
    """Return whether *text* has a letter or a digit."""
    return any(map(str.isalnum, text))


def terms(text: str) -> list[str]:
    """Return the search terms of *text* in order, without stop words: "Ann's two dogs" -> ["ann", "two", "dog"].

    No term is empty. It never raises.
    """
    return list(iterate_terms(text))


def iterate_terms(text: str) -> Iterator[str]:
    """Yield the search terms of *text* in order: "Ann's two dogs" -> "ann", "two", "dog"."""
    return _iterate_terms(text) if len(text) <= PART else chain.from_iterable(map(_iterate_terms, _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """Yield *text* in parts of up to `PART` characters, cut between words; a part without spaces takes all the rest."""
    start = 0
    while len(text) - start > PART:
        end = max(text.rfind(mark, start, start + PART) for mark in " \n。") + 1
        if not end:
            break
        yield text[start:end]
        start = end
    yield text[start:]


def _iterate_terms(text: str) -> Iterator[str]:
    """Yield the search terms of *text* in order, without stop words: "Ann's two dogs" -> "ann", "two", "dog"."""
    is_ascii = text.isascii()  # needs no folding, and has one script only
    if not is_ascii:
        text = unicodedata.normalize("NFKD", text.translate(_FOLDS))
        text = unicodedata.normalize("NFKC", _OPTIONAL_MARKS.sub("", text).translate(_FOLDS))
    if "'" in text:
        text = _CONTRACTION.sub(" ", text)
    text = _THOUSANDS.sub("", text)
    if is_ascii:
        for match in _PLAIN.finditer(text):
            yield from _words(match[0][:MAX_LENGTH])
        return
    for kind, run in groupby(text, _script):
        if kind:
            yield from _split_run("".join(run), kind)


def _split_run(run: str, kind: str) -> Iterable[str]:
    if kind == _WORD:
        return _words(run[:MAX_LENGTH])
    if kind == _HAN:
        return chain.from_iterable(map(_pairs, _CHINESE_STOP.split(run)))
    if kind == _EMOJI:
        return _PICTURE.findall(run)
    pairs = list(_pairs(run))
    return pairs if kind != _HIRAGANA or len(pairs[0]) > 1 else ()


def count_terms(text: str, weight: int = 1) -> Counter[str]:
    """Return ``{term: count * weight}`` for the search terms of *text*: "two dogs" -> {"two": 1, "dog": 1}."""
    return Counter({word: times * weight for word, times in Counter(terms(text)).items()})


def count_fact_terms(sentence: str, predicate: str) -> Counter[str]:
    """Return ``{term: 1}`` for each search term of a fact: those of its *sentence*, then of its *predicate*."""
    # Counted once: "Ann lost Ann's hat" is no more about Ann than "Ann lost her hat".
    return Counter(dict.fromkeys((*terms(sentence), *terms(predicate.replace("_", " "))), 1))


@lru_cache(maxsize=65_536)
def _words(run: str) -> tuple[str, ...]:
    """Return the search terms of a word and of its camelCase parts: for "userNames" those of "user" and "Names" too."""
    parts = _PARTS.findall(run) if run.isascii() else []
    several = [part for part in parts if len(part) > 1] if len(parts) > 1 else []
    return tuple(chain(*map(_to_terms, (run, *several))))


def _to_terms(word: str) -> Iterator[str]:
    if word.isdecimal():
        yield str(int(word))
        return
    word = word.casefold()[:MAX_LENGTH]
    if word not in _ENGLISH_STOP:
        yield _stem(word) if word.isascii() and word.isalpha() else word


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        yield first + second


def _stem(word: str) -> str:
    with _stemming:
        return _stemmer.stemWord(word) or word


@lru_cache(maxsize=65_536)
def _script(character: str) -> str:
    """Return the script of *character*, such as "han" for Chinese, "word" for Latin; "" for spaces and punctuation."""
    category, point = unicodedata.category(character), ord(character)
    if category == "So" and (point >= 0x1F000 or 0x2300 <= point <= 0x2BFF):
        return _EMOJI
    if category[0] not in "LMN":
        return ""
    return next((kind for first, last, kind in _RANGES if first <= point <= last), _WORD)


_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uac00-\ud7a3\uf900-\uffef\U00010000-\U0010ffff]"
)
_WIDE = re.compile("[^\x00-\x7f]")


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens *text* has for a language model; the estimate is rather too high than too low."""
    if not text:
        return 0
    if text.isascii():
        return ceil(len(text) / 3.5) + 1
    dense = len(_DENSE.findall(text))
    wide = len(_WIDE.findall(text)) - dense
    return ceil((len(text) - dense - wide) / 3.5 + wide / 2 + dense * 1.2) + 1


def replace_matches(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str) -> str:
    """Return ``pattern.sub(replace, text)``, but let other threads run while a long text is searched.

    Matches are limited as in `find_all`, and *replace* is a function.
    """
    if len(text) <= WINDOW:
        return pattern.sub(replace, text)
    parts: list[str] = []
    offset = 0
    for match in find_all(pattern, text):
        parts += text[offset : match.start()], replace(match)
        offset = match.end()
    return "".join((*parts, text[offset:])) if parts else text


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of *pattern* in *text*, but let other threads run while a long text is searched.

    Only if all matches have 1 to `LONGEST_MATCH` characters, they are those of ``pattern.finditer(text)``.
    """
    offset = 0
    for start in range(0, len(text), WINDOW):
        end = start + WINDOW
        for match in pattern.finditer(text, max(start, offset), end + LONGEST_MATCH):
            if match.start() >= end:  # left to the next window, as its end may be cut off here
                break
            yield match
            offset = match.end()


# Messages without content: greetings, thanks, praise, and acknowledgements such as "Noted."

LONGEST_GREETING = 120
"""The most characters of a message that may have no content."""
_PHRASES = {name: words.replace("\n", "") for name, words in read_table(__package__, "small_talk.toml").items()}
_PRAISE = _PHRASES["reaction"].replace("<very>", "(?:(?:very|really|pretty|super|how) )?")
_PHRASES["reaction"] = _PRAISE.replace("<good>", f"(?:{_PHRASES['good']})")
_PROPOSES = re.compile(_PHRASES["proposal"], re.IGNORECASE)
# Emoji that mean yes or no.
_ANSWERS = frozenset("👍👎👌🆗✅✔☑❌✖❎🙅🙆")


def _repeated_phrases(*kinds: str) -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{'|'.join(_PHRASES[kind] for kind in kinds)})(?:\s+|$))+")


_COURTESY = _repeated_phrases("courtesy", "added")
_COURTESY_OR_REACTION = _repeated_phrases("courtesy", "reaction", "added")
_ONLY_ADDED = _repeated_phrases("added")
_ANY = _repeated_phrases("courtesy", "reaction", "receipt", "assent", "added")
_RECEIPT = re.compile(rf"(?:^|\s)(?:{_PHRASES['receipt']})(?:\s|$)")


def says_nothing(content: str, people: Iterable[str] = (), before: Iterable[str] = ()) -> bool:
    """Return whether *content* is only a greeting, thanks, a farewell, laughter or praise ("Great!").

    Praise does not count if one of the earlier messages *before* asks or proposes something.
    """
    if len(content) > LONGEST_GREETING or not _ANSWERS.isdisjoint(content):
        return False
    text = canonical_sentence(content)
    if not text:
        return True
    names = {part for name in map(canonical_sentence, people) for part in (name, *name.split()[:1])}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    text = " ".join(text.split())
    phrases = _COURTESY if any(map(_PROPOSES.search, before)) else _COURTESY_OR_REACTION
    return bool(phrases.fullmatch(text)) and not _ONLY_ADDED.fullmatch(text)


def is_filler(content: str, before: str | None) -> bool:
    """Return whether the message *content* has nothing worth finding: "Noted.", "Thanks!", "Sure!".

    "Sure!" is no filler if *before*, the previous message, asks or proposes something or is None (unknown).
    """
    if len(content) > LONGEST_GREETING or not _ANSWERS.isdisjoint(content):
        return False
    nothing, text = says_nothing(content), " ".join(canonical_sentence(content).split())
    if not nothing and (not _ANY.fullmatch(text) or _ONLY_ADDED.fullmatch(text)):
        return False
    if before is not None and not _PROPOSES.search(before):
        return True
    return says_nothing(content, before=["?"]) if nothing else _RECEIPT.search(text) is not None
