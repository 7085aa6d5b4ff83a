"""The vocabulary of predicates: one canonical name for all synonyms, and whether a predicate is single-valued.

Rules handle tenses, negations and so on. Unknown names are left to the model: a wrong match ends a fact that holds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import takewhile
from typing import Any

from kg_memory.models.ontology import FactType
from kg_memory.text import read_table
from kg_memory.text.identity import replace_unstorable

DEFAULT_PREDICATE = "RELATES_TO"
MAX_LENGTH = 64
"""The most characters of a predicate's name; longer names are cut."""

_FLAGS = {"one": True, "fields": True, "many": False, "unsure": None}
_BE = frozenset("IS AM ARE WAS WERE BE BEEN BEING GOT GETS".split())
_AUXILIARIES = _BE | frozenset("HAS HAVE HAD HAVING DO DOES DID".split())
_ADVERBS = re.compile(
    r"(?<!_NOT)_(?:CURRENTLY|NOW|PRESENTLY|STILL|RECENTLY|JUST|ALREADY|ACTUALLY|USUALLY|OFTEN|ALWAYS|MAINLY|MOSTLY|PRIMARILY|"
    r"REGULARLY|GENERALLY|TYPICALLY|FREQUENTLY|REALLY|PERMANENTLY|OFFICIALLY|FINALLY|FULL_?TIME)(?=_)"
)
_NEGATIONS = (
    ("NO_LONGER", re.compile(r"_NO_LONGER(?=_)|_NOT(?=_.*_ANY_?(?:MORE|LONGER)_)|_NO_MORE(?=_)")),
    ("NEVER", re.compile(r"_NEVER(?:_EVER)?(?=_)")),
    ("NOT", re.compile(r"_NOT(?=_)(?!_(?:ONLY|JUST|ALWAYS|OFTEN|USUALLY|MAINLY|MOSTLY|PRIMARILY)_)")),
)
_DENIALS = tuple(mark for mark, _ in _NEGATIONS)
_ANYMORE = re.compile(r"_ANY_?(?:MORE|LONGER)(?=_)")
_CONTRACTION = re.compile(r"(?<=_)(?:(DOES|DO|DID|IS|ARE|WAS|WERE|HAS|HAVE|HAD)N_?T|CAN_?T)(?=_)")
_FORMER = re.compile(
    r"^_((?:IS_|WAS_|HAS_|HAD_|HAS_BEEN_)?)(?:FORMERLY|FORMER|PREVIOUSLY|PREVIOUS|PAST|ONCE|EX)(?=_)"
    r"|^_USED_TO(?=_)"
    r"|^_(?:(?:HAS|HAD)_)?(?:STOPPED|CEASED|QUIT|GAVE_UP|DISCONTINUED)(?=_[A-Z]+ING_)"
)
_BEGUN = re.compile(r"^_(?:(?:HAS|IS)_)?(?:STARTED|BEGAN|BEGUN|CONTINUES|KEEPS|KEPT)(?=_[A-Z]+ING_)")
_MARKS = (
    ("ALSO", re.compile(r"_(?:ALSO|TOO|ADDITIONALLY|CONCURRENTLY|SIMULTANEOUSLY|AS_WELL)(?=_)")),
    ("PART_TIME", re.compile(r"_(?:PART_?TIME)(?=_)")),
    ("TEMPORARILY", re.compile(r"_(?:TEMPORARILY|BRIEFLY|PROVISIONALLY)(?=_)")),
)
_PLANS_TO = re.compile(
    r"^_(?:(?:IS|WAS|HAS|ARE)_)?(?:(?:PLANS|PLAN|PLANNED|PLANNING|INTENDS|INTEND|INTENDED|INTENDING|AIMS|GOING|"
    r"EXPECTS|DECIDED|HAS_PLANS)_TO|WILL)(?=_)"
)
_WANTS_TO = re.compile(
    r"^_(?:(?:IS|WAS|HAS|ARE)_)?(?:(?:WANTS|WANT|WANTED|WANTING|HOPES|HOPE|HOPED|HOPING|WISHES|WISHED|DESIRES|"
    r"WOULD_LIKE|WOULD_LOVE|DREAMS|LOOKING)_TO|(?:DREAMS|DREAMT|DREAMED|DREAMING)_(?:OF|ABOUT)(?=_[A-Z]+ING_))(?=_)"
)
_PLANS = (("PLANS_TO", _PLANS_TO), ("WANTS_TO", _WANTS_TO))
_PLAN_FAMILY = "plan"
_LIFELONG = frozenset({"birth", "death"})
_ACTIVITIES = frozenset({"work", "skill"})
# Read at import: reading a file later would block an event loop.
_TOML: dict[str, dict[str, Any]] = read_table(__package__, "predicates.toml")
_WORDS = {name: frozenset(words.split()) for name, words in _TOML.pop("words").items()}
_HALF_LIFE = {name: float(days) for days, names in _TOML.pop("half_life").items() for name in names.split()}
_IRREGULAR = dict(pair.split(":") for pair in _WORDS["irregular"])
_VERBS, _NOUNS, _FIELD_ADJECTIVES = _WORDS["verbs"], _WORDS["nouns"], _WORDS["field_adjectives"]
_FIELD = re.compile(
    r"_(?:STATUS|STATE|STAGE|PLAN|TIER|OWNER|ASSIGNEE|MANAGER|PRIORITY|EMAIL|PHONE|ADDRESS|CITY|COUNTRY|COMPANY|"
    r"EMPLOYER|TITLE|ROLE|PRICE|AMOUNT|BALANCE|QUANTITY|QTY|SEATS|TOTAL|LIMIT|SALARY|OWNED_BY|ASSIGNED_TO|CURRENCY|"
    r"LANGUAGE|状态|负责人|套餐|城市|地址)$"
)
_VERB_LIKE = re.compile(r"(?:[^S]S|ED|ING)$")
_FAVORITE = re.compile(r"^(?:HAS_|HAS_A_)?FAVOU?RITE_([A-Z_]+?)(?:_(?:IS|ARE))?$")
_OVER = re.compile(r"(?:LIVED|RESIDED|DWELT|WORKED|STUDIED|WAS_(?:EMPLOYED|BASED|MARRIED|DATING|LIVING|WORKING))_")
_CJK = re.compile(r"[\u3400-\u9fff]")
_CHINESE_ADVERB = re.compile(r"^(?:现在|現在|目前|如今|正在|一直|已经|已經|仍然?|依然|刚刚?|最近|主要|经常|常常|都)")
_CHINESE_RULES = (
    ("NO_LONGER", re.compile(r"^(?:不再|没再|已经不|已不|早已不|曾经|曾|以前|之前|原来|过去|原先)(?:在)?")),
    ("NEVER", re.compile(r"^(?:从未|从没有?|从来没有?|从来不|从不|未曾)")),
    ("NOT", re.compile(r"^(?:没有|并不|并未|没|不|未)")),
    ("ALSO", re.compile(r"^(?:还|也|同时|另外)")),
    ("TEMPORARILY", re.compile(r"^(?:暂时|临时|短期)")),
    ("PLANS_TO", re.compile(r"^(?:打算|计划|准备|将要|将会|将)")),
    ("WANTS_TO", re.compile(r"^(?:想要?|希望|渴望)")),
)
_CHINESE_END = re.compile(r"[了着]$")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A canonical predicate (kind of relation in a fact), such as ``LIVES_IN``.

    `single_valued`: one object at a time (None: unknown). Only facts of the same `family` can contradict each other.
    """

    name: str
    single_valued: bool | None
    family: str | None


@dataclass(frozen=True, slots=True)
class _Table:
    """The known predicates by name: as written, with the verb's stem (None if ambiguous), without underscores."""

    exact: dict[str, Predicate]
    stems: dict[str, Predicate | None]
    joined: dict[str, Predicate]


def predicate_name(text: str) -> str:
    """Convert *text* to a predicate name: "lives in" -> "LIVES_IN"; `DEFAULT_PREDICATE` if it has no word."""
    upper = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", replace_unstorable(text)).upper())
    words = ("".join(char if char.isalnum() or _is_combining_mark(char) else " " for char in upper)).split()
    return "_".join(word for word in words if word[0].isalnum())[:MAX_LENGTH].rstrip("_") or DEFAULT_PREDICATE


def _is_combining_mark(char: str) -> bool:
    # The range is that of variation selectors, which are no part of a letter.
    return not char.isascii() and unicodedata.category(char) in ("Mn", "Mc") and not 0xFE00 <= ord(char) <= 0xFE0F


@lru_cache(maxsize=4096)
def canonical_predicate(name: str) -> Predicate | None:
    """Return the known predicate that *name* means: "resided in" -> ``LIVES_IN``; None if it is unknown."""
    predicate = _look_up(predicate_name(name))
    # Nested rules ("打算不再") are ambiguous: the result is valid only if it is looked up as itself.
    return predicate if predicate is None or _look_up(predicate.name) == predicate else None


@lru_cache(maxsize=1024)
def declared_predicate(name: str, fact_types: tuple[FactType, ...]) -> Predicate | None:
    """Return the predicate in *fact_types*, declared by the user, that has *name* as its name or synonym, or None."""
    plain, canonical = predicate_name(name).replace("_", ""), canonical_predicate(name)
    declared = [(fact_type, predicate_name(fact_type.name)) for fact_type in fact_types]
    same = [pair for pair in declared if pair[1].replace("_", "") == plain]
    if not same and canonical is not None:
        same = [pair for pair in declared if canonical_predicate(pair[1]) == canonical]
    for fact_type, written in same:
        base = canonical_predicate(written) or Predicate(written, None, None)
        single = base.single_valued if fact_type.single_valued is None else fact_type.single_valued
        return Predicate(written, single, base.family)
    return None


def is_past_state(name: str) -> bool:
    """Return whether the predicate *name* means a state in the past, such as "lived in"."""
    return _OVER.match(predicate_name(name)) is not None


def is_single_valued_state(name: str) -> bool:
    """Return whether *name* means a state with one value at a time that can change: "lives in", but not "born in"."""
    predicate = canonical_predicate(name)
    if predicate is None or predicate.family in _LIFELONG:
        return False
    return predicate.single_valued is True and is_present(predicate.name)


def half_life(name: str, unknown: float = _HALF_LIFE["other"]) -> float:
    """Return an estimate of the days in which half of the states with the predicate *name* change; may be infinite."""
    predicate = canonical_predicate(name)
    keys = (predicate.name, predicate.family or "") if predicate else ()
    return next((_HALF_LIFE[key] for key in keys if key in _HALF_LIFE), unknown)


@cache
def canonical_predicates() -> tuple[str, ...]:
    """Return the canonical names of all known predicates, such as "LIVES_IN", each once."""
    return tuple(dict.fromkeys(predicate.name for predicate in _TABLE.exact.values()))


def _look_up(name: str) -> Predicate | None:
    """Return the predicate that *name* means, or None."""
    if exact := _TABLE.exact.get(name):
        return exact
    padded = f"_{name}_"
    rules = (_expand_contraction, _read_negation, _strip_adverbs, _read_former, _read_plan, _read_start, _read_mark)
    for rule in rules:
        applies, predicate = rule(padded)
        if applies:
            return predicate
    joined = _read_inflection(name) or _TABLE.joined.get(name.replace("_", ""))
    return joined or _read_favorite(name) or _read_chinese(name) or _read_field(name)


def _read_rest(padded: str) -> Predicate | None:
    name = padded.strip("_")
    return _look_up(name) if name else None


def _compose(mark: str, base: Predicate | None) -> Predicate | None:
    """Return *base* with the prefix *mark*: NOT_LIVES_IN; None without *base*, or if negated twice or too long."""
    if base is None or len(mark) + 1 + len(base.name) > MAX_LENGTH:
        return None
    if mark in _DENIALS and base.name.startswith(tuple(f"{denial}_" for denial in _DENIALS)):
        return None
    name = f"{mark}_{base.name}"
    return _TABLE.exact.get(name) or Predicate(name, single_valued=False, family=base.family)


def _predicate_of_tense(name: str, base: Predicate) -> Predicate:
    return base if base.single_valued else Predicate(name, single_valued=False, family=base.family)


def _is_lasting_state(base: Predicate | None) -> bool:
    return base is not None and base.family not in _LIFELONG and (base.single_valued is True or is_present(base.name))


def _expand_contraction(padded: str) -> tuple[bool, Predicate | None]:
    rest = _CONTRACTION.sub(lambda match: f"{match[1]}_NOT" if match[1] else "CANNOT", padded)
    return (True, _read_rest(rest)) if rest != padded else (False, None)


def _read_negation(padded: str) -> tuple[bool, Predicate | None]:
    for mark, pattern in _NEGATIONS:
        match = pattern.search(padded)
        if match is not None:
            rest = _ANYMORE.sub("", padded[: match.start()] + padded[match.end() :])
            base = _read_rest(rest)
            if base and base.family in _ACTIVITIES and base.name == rest.strip("_") and rest.startswith("_HAS_"):
                return True, _predicate_of_tense(padded.strip("_"), base)
            return True, _compose(mark, base)
    return False, None


def _strip_adverbs(padded: str) -> tuple[bool, Predicate | None]:
    rest = _ADVERBS.sub("", padded)
    return (True, _read_rest(rest)) if rest != padded else (False, None)


def _read_former(padded: str) -> tuple[bool, Predicate | None]:
    match = _FORMER.search(padded)
    if match is None:
        return False, None
    base = _read_rest((match[1] or "") + padded[match.end() :].lstrip("_"))
    return True, _compose("NO_LONGER", base) if _is_lasting_state(base) else None


def _read_start(padded: str) -> tuple[bool, Predicate | None]:
    match = _BEGUN.search(padded)
    base = _read_rest(padded[match.end() :]) if match else None
    return match is not None, base if _is_lasting_state(base) else None


def _read_plan(padded: str) -> tuple[bool, Predicate | None]:
    for mark, pattern in _PLANS:
        match = pattern.search(padded)
        if match is not None and len(padded) > match.end() + 1:
            return True, _compose(mark, Predicate(padded[match.end() :].strip("_"), None, _PLAN_FAMILY))
    return False, None


def _read_mark(padded: str) -> tuple[bool, Predicate | None]:
    """Read a word such as "also": "_ALSO_LIVES_IN_" -> ``(True, ALSO_LIVES_IN)``."""
    for mark, pattern in _MARKS:
        match = pattern.search(padded)
        if match is not None:
            base = _read_rest(padded[: match.start()] + padded[match.end() :])
            return True, _compose(mark, base) if _is_altered(mark, base) else base
    return False, None


def _is_altered(mark: str, base: Predicate | None) -> bool:
    return base is not None and (_is_lasting_state(base) if mark == "TEMPORARILY" else base.single_valued is True)


def _read_inflection(name: str) -> Predicate | None:
    """Return the predicate of *name* in another tense or number: "WAS_LIVING_IN" -> ``LIVES_IN``; None if unknown."""
    words = name.split("_")
    helpers = list(takewhile(_AUXILIARIES.__contains__, words))
    rest = words[len(helpers) :]
    if not helpers:
        noun = len(words) == 1 and not {name, name.removesuffix("S")}.isdisjoint(_NOUNS)
        base = None if noun else _TABLE.stems.get(_stem_first(words))
        return _predicate_of_tense(name, base) if base and is_present(name) and not is_present(base.name) else base
    if not rest:
        return None
    exact, after = _TABLE.exact, "_".join(rest)
    if not _BE.isdisjoint(helpers):
        progressive = exact.get(after) or _TABLE.stems.get(_stem_first(rest))
        return exact.get(f"IS_{after}") or (progressive if rest[0].endswith("ING") else None)
    if helpers[-1] in ("DO", "DOES", "DID"):
        return exact.get(after) or _TABLE.stems.get(_stem_first(rest))
    had = _TABLE.stems.get(_stem_first(rest)) if rest[0].endswith("ED") or rest[0] in _IRREGULAR else None
    if had and had.family in _ACTIVITIES and is_present(had.name):
        had = _predicate_of_tense(name, had)
    return exact.get(f"HAS_{after}") or exact.get(after) or had


def _stem_first(words: list[str]) -> str:
    return "_".join((_stem(words[0]), *words[1:]))


def _stem(verb: str) -> str:
    """Return the part that all tenses of an English *verb* share: "LIVED", "LIVES" and "LIVING" -> "LIV"."""
    verb = _IRREGULAR.get(verb, verb)
    for ending, instead in (("IES", "Y"), ("IED", "Y"), ("ING", ""), ("ED", ""), ("SSES", "SS"), ("S", "")):
        if verb.endswith(ending) and len(verb) - len(ending) >= 2 and not verb.endswith("SS"):
            verb = verb[: -len(ending)] + instead
            break
    doubled = len(verb) > 3 and verb[-1] == verb[-2] and verb[-1] not in "SL"
    return verb[:-1] if doubled else verb.removesuffix("E")


def _read_favorite(name: str) -> Predicate | None:
    """Return the predicate of a *name* such as "FAVORITE_COLOR" (one value) or "FAVORITE_BOOKS" (several), or None."""
    match = _FAVORITE.match(name)
    if match is None:
        return None
    several = match[1].endswith("S") and not match[1].endswith("SS")
    return Predicate(f"FAVORITE_{match[1]}", not several, "taste")


def _read_field(name: str) -> Predicate | None:
    """Return a single-valued predicate for a *name* like "ORDER_STATUS" (a field of a business record), else None."""
    match = _FIELD.search(name)
    if match is None or match.start() == 0:
        return None
    before = name[: match.start()].split("_")
    plain = not any(word in _VERBS or (_VERB_LIKE.search(word) and word not in _FIELD_ADJECTIVES) for word in before)
    return Predicate(name, single_valued=True, family=None) if plain else None


def _read_chinese(name: str) -> Predicate | None:
    """Return the predicate that a Chinese *name* means, read without its particles and adverbs; None if unknown."""
    written = name.replace("_", "")
    if not _CJK.match(written):
        return None
    plain = _CHINESE_END.sub("", _CHINESE_ADVERB.sub("", written))
    if plain != written:
        return _look_up(plain) if plain else None
    for mark, pattern in _CHINESE_RULES:
        match = pattern.match(written)
        base = _look_up(written[match.end() :]) if match and match.end() < len(written) else None
        if base is None:
            continue
        if mark.endswith("_TO"):
            return _compose(mark, Predicate(base.name, None, _PLAN_FAMILY))
        if mark in ("ALSO", "TEMPORARILY") and not _is_altered(mark, base):
            return base
        return _compose(mark, base)
    return None


def _read_table() -> _Table:
    exact: dict[str, Predicate] = {}
    stems: dict[str, Predicate | None] = {}
    for written, predicate, inflects in _read_entries(_TOML):
        exact[written] = predicate
        if inflects:
            _add_stem(stems, written, predicate)
    for written, predicate in list(exact.items()):
        if written.startswith("IS_") and written.count("_") > 1:
            exact.setdefault(written.removeprefix("IS_"), predicate)
    return _Table(exact, stems, {written.replace("_", ""): predicate for written, predicate in exact.items()})


def _read_entries(families: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Predicate, bool]]:
    for family, groups in families.items():
        for group, predicates in groups.items():
            for name, synonyms in predicates.items():
                predicate = Predicate(name, _FLAGS[group], None if family == "alone" else family)
                for written in (name, *synonyms.split()):
                    yield written, predicate, group != "fields" and written.partition("_")[0] not in _AUXILIARIES


def _add_stem(stems: dict[str, Predicate | None], written: str, predicate: Predicate) -> None:
    """Add *predicate* by the stem of its name *written*, "LIVED_IN" -> "LIV_IN"."""
    stem = _stem_first(written.split("_"))
    current = stems.setdefault(stem, predicate)
    if current is None or current.name == predicate.name:
        return
    is_now = is_present(written)
    if is_now == is_present(current.name):
        stems[stem] = None
    elif is_now:
        stems[stem] = predicate


def is_present(name: str) -> bool:
    """Return whether the predicate *name* is in the present tense, such as LIVES_IN."""
    return name.partition("_")[0].endswith("S")


_TABLE = _read_table()
