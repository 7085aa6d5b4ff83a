"""The vocabulary of predicates: one canonical form for what says the same, and what it means over time.

Known names stand in ``vocabulary.toml``; rules add tense, number, auxiliaries, adverbs, negations and plans. What is
not known is left to be asked: a miss costs a question, a wrong answer ends a fact that still holds.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import takewhile

from kg_memory.settings import FactType
from kg_memory.text.identity import replace_unstorable

DEFAULT_PREDICATE = "RELATES_TO"
LONGEST = 64
"""Characters of a predicate's name; what is longer is cut."""

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
_PLANS = (
    ("PLANS_TO", re.compile(
        r"^_(?:(?:IS|WAS|HAS|ARE)_)?(?:(?:PLANS|PLAN|PLANNED|PLANNING|INTENDS|INTEND|INTENDED|INTENDING|AIMS|GOING|"
        r"EXPECTS|DECIDED|HAS_PLANS)_TO|WILL)(?=_)")),
    ("WANTS_TO", re.compile(
        r"^_(?:(?:IS|WAS|HAS|ARE)_)?(?:(?:WANTS|WANT|WANTED|WANTING|HOPES|HOPE|HOPED|HOPING|WISHES|WISHED|DESIRES|"
        r"WOULD_LIKE|WOULD_LOVE|DREAMS|LOOKING)_TO|(?:DREAMS|DREAMT|DREAMED|DREAMING)_(?:OF|ABOUT)(?=_[A-Z]+ING_))(?=_)")),
)  # fmt: skip
_PLAN_FAMILY = "plan"
_LIFELONG = frozenset({"birth", "death"})
_IRREGULAR = dict(
    pair.split(":")
    for pair in (
        "LEFT:LEAVE MET:MEET BOUGHT:BUY SOLD:SELL WROTE:WRITE WRITTEN:WRITE MADE:MAKE BUILT:BUILD LED:LEAD KNEW:KNOW "
        "KNOWN:KNOW TAUGHT:TEACH LOST:LOSE FOUND:FIND THOUGHT:THINK TOOK:TAKE TAKEN:TAKE "
        "GOT:GET BEGAN:BEGIN BEGUN:BEGIN DROVE:DRIVE FLEW:FLY SPOKE:SPEAK SPOKEN:SPEAK SAID:SAY TOLD:TELL SAW:SEE "
        "SEEN:SEE CAME:COME HELD:HOLD KEPT:KEEP GAVE:GIVE GIVEN:GIVE WON:WIN BROKE:BREAK BROKEN:BREAK GREW:GROW "
        "LEARNT:LEARN DOES:DO DID:DO DONE:DO CAUGHT:CATCH WITHDREW:WITHDRAW BROUGHT:BRING BORN:BEAR HURT:HURT "
        "DYING:DIE DIED:DIE DIES:DIE LYING:LIE"
    ).split()
)
# Nouns as much as verbs: alone, "order" and "orders" may be fields of a record.
_NOUNS = frozenset(
    "DATE ORDER PURCHASE LEASE NEED REPORT SUPPORT VIEW DESIGN NOTICE TOUR START END CAUSE FANCY RENT DIVORCE WIN "
    "MENTION RECRUIT LAUNCH PRODUCE STUDY WORK RUN LEAD FIND ENCOUNTER RESEARCH AUTHOR RESULT LIMIT COST VALUE".split()
)

_FIELD = re.compile(
    r"_(?:STATUS|STATE|STAGE|PLAN|TIER|OWNER|ASSIGNEE|MANAGER|PRIORITY|EMAIL|PHONE|ADDRESS|CITY|COUNTRY|COMPANY|"
    r"EMPLOYER|TITLE|ROLE|PRICE|AMOUNT|BALANCE|QUANTITY|QTY|SEATS|TOTAL|LIMIT|SALARY|OWNED_BY|ASSIGNED_TO|CURRENCY|"
    r"LANGUAGE|状态|负责人|套餐|城市|地址)$"
)
# What tells "order status", a field, from "changed status", a verb and its object.
_FIELD_ADJECTIVES = frozenset(
    "SHIPPING BILLING MAILING BUSINESS ACCESS ADDRESS PROCESS CLASS PREFERRED SALES LISTING BUILDING BOOKING PRICING "
    "TRACKING PARKING MEETING HOUSING TRAINING MARKETING SPENDING OPENING ENDING RATING ASSIGNED REQUESTED ESTIMATED "
    "EXPECTED LOGISTICS OPERATIONS NEWS CAMPUS VIRUS BUS GAS ANALYSIS".split()
)
_VERB_LIKE = re.compile(r"(?:[^S]S|ED|ING)$")
_VERBS = frozenset(
    """SPEAK LEARN VISIT TRAVEL MAKE CHANGE SEND SENT SET GET RAISE CUT PAY PAID OWE WRITE READ FOUND FIND BUILT BUILD
    LEAVE LEFT MEET MET BUY BOUGHT SELL SOLD PLAY TAKE TOOK GIVE GAVE KNOW KNEW LOVE LIKE HATE PREFER USE LIVE WORK RUN
    RAN START JOIN QUIT LEAD LED MANAGE MOVE MOVED_TO IN AT TO OF FROM WITH FOR BY ON AS AND OR NOT NO HAS HAVE HAD IS
    ARE WAS WERE BE BEEN WILL WOULD CAN COULD MAY MIGHT WENT SAW SPOKE WROTE LOST WON MADE HOLD HELD KEEP KEPT SHARE
    SIGN REACH EXCEED LOWER UPDATE REPLACE SWITCH ASSIGN REQUEST ASK TELL TOLD SAY SAID DO DID DOES GREW FLEW DROVE
    FORMER PREVIOUS PAST OLD INITIAL ORIGINAL EX FAVORITE FAVOURITE NEXT FUTURE""".split()
)
_FAVORITE = re.compile(r"^(?:HAS_|HAS_A_)?FAVOU?RITE_([A-Z_]+?)(?:_(?:IS|ARE))?$")

_OVER = re.compile(r"(?:LIVED|RESIDED|DWELT|WORKED|STUDIED|WAS_(?:EMPLOYED|BASED|MARRIED|DATING|LIVING|WORKING))_")
_CJK = re.compile(r"[\u3400-\u9fff]")
_CHINESE_ADVERB = re.compile(
    r"^(?:现在|現在|目前|如今|正在|一直|已经|已經|仍然|依然|仍|刚刚|刚|最近|主要|经常|常常|都)"
)
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
    """A canonical predicate; ``None`` for what is not known, and no family where nothing contradicts it."""

    name: str
    one_at_a_time: bool | None
    family: str | None


@dataclass(frozen=True, slots=True)
class _Table:
    """The known predicates: by name or synonym, by the same with its verb's stem, and by the same run together."""

    exact: dict[str, Predicate]
    stems: dict[str, Predicate | None]
    joined: dict[str, Predicate]


def predicate_name(text: str) -> str:
    """Return *text* in SCREAMING_SNAKE_CASE, whatever its script; `DEFAULT_PREDICATE` where it holds no word."""
    upper = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", replace_unstorable(text)).upper())
    words = ("".join(char if char.isalnum() or _is_mark(char) else " " for char in upper)).split()
    kept = [word for word in words if word[0].isalnum()]
    return "_".join(kept)[:LONGEST].rstrip("_") or DEFAULT_PREDICATE


def _is_mark(char: str) -> bool:
    """Tell whether *char* belongs to the letter before it, such as a vowel sign; those that choose a glyph do not."""
    return not char.isascii() and unicodedata.category(char) in ("Mn", "Mc") and not 0xFE00 <= ord(char) <= 0xFE0F


@lru_cache(maxsize=4096)
def canonical_predicate(name: str) -> Predicate | None:
    """Return what *name* stands for, by the table and by rules; ``None`` where neither knows it."""
    found = _meaning(predicate_name(name))
    # Where two rules wrap each other ("打算不再"), what comes out may stand for another thing: not sure.
    return found if found is None or _meaning(found.name) == found else None


@lru_cache(maxsize=1024)
def declared_predicate(name: str, fact_types: tuple[FactType, ...]) -> Predicate | None:
    """Return the user's own fact type that *name* or a synonym of it is, or ``None``; it wins over the table.

    What the fact type does not say of itself, the table does.
    """
    plain, known = _joined(predicate_name(name)), canonical_predicate(name)
    own = [(each, predicate_name(each.name)) for each in fact_types]
    same = [(each, called) for each, called in own if _joined(called) == plain]
    alike = [(each, called) for each, called in own if known is not None and canonical_predicate(called) == known]
    for each, called in same or alike:
        meant = canonical_predicate(called) or Predicate(called, None, None)
        one = meant.one_at_a_time if each.one_at_a_time is None else each.one_at_a_time
        return Predicate(called, one, meant.family)
    return None


def is_past_state(name: str) -> bool:
    """Tell whether *name* tells of a state of the past ("lived in"), under the name of the present one or not."""
    return _OVER.match(predicate_name(name)) is not None


@cache
def canonical_predicates() -> tuple[str, ...]:
    """Return the canonical names of the table, each once."""
    return tuple(dict.fromkeys(each.name for each in _table().exact.values()))


def _meaning(name: str) -> Predicate | None:
    """Return what *name* stands for; each rule takes a word away and asks for the rest, so this ends."""
    known = _table().exact.get(name)
    if known is not None:
        return known
    framed = f"_{name}_"
    for rule in (_spelled, _negated, _bare, _former, _planned, _begun, _marked):
        ruled, found = rule(framed)
        if ruled:
            return found
    return _inflected(name) or _table().joined.get(_joined(name)) or _favorite(name) or _chinese(name) or _field(name)


def _rest(framed: str) -> Predicate | None:
    """Return what the rest of a framed name means; nothing left means nothing."""
    name = framed.strip("_")
    return _meaning(name) if name else None


def _composed(mark: str, base: Predicate | None) -> Predicate | None:
    """Return *base* under a mark that changes its meaning: another predicate of the same family.

    What is denied twice is not known.
    """
    if base is None or len(mark) + 1 + len(base.name) > LONGEST:
        return None
    if mark in _DENIALS and base.name.startswith(tuple(f"{each}_" for each in _DENIALS)):
        return None
    name = f"{mark}_{base.name}"
    return _table().exact.get(name) or Predicate(name, one_at_a_time=False, family=base.family)


def _lasts(base: Predicate | None) -> bool:
    """Tell whether *base* is a state ("lives in") and no event ("visited")."""
    if base is None or base.family in _LIFELONG:
        return False
    return base.one_at_a_time is True or _is_present(base.name)


def _spelled(framed: str) -> tuple[bool, Predicate | None]:
    """Write "doesn't" as "does not"."""
    rest = _CONTRACTION.sub(lambda found: f"{found[1]}_NOT" if found[1] else "CANNOT", framed)
    return (True, _rest(rest)) if rest != framed else (False, None)


def _negated(framed: str) -> tuple[bool, Predicate | None]:
    for mark, pattern in _NEGATIONS:
        found = pattern.search(framed)
        if found is not None:
            rest = _ANYMORE.sub("", framed[: found.start()] + framed[found.end() :])
            return True, _composed(mark, _rest(rest))
    return False, None


def _bare(framed: str) -> tuple[bool, Predicate | None]:
    """Leave out adverbs that change nothing."""
    rest = _ADVERBS.sub("", framed)
    return (True, _rest(rest)) if rest != framed else (False, None)


def _former(framed: str) -> tuple[bool, Predicate | None]:
    found = _FORMER.search(framed)
    if found is None:
        return False, None
    base = _rest((found[1] or "") + framed[found.end() :].lstrip("_"))
    return True, _composed("NO_LONGER", base) if _lasts(base) else None


def _begun(framed: str) -> tuple[bool, Predicate | None]:
    found = _BEGUN.search(framed)
    base = _rest(framed[found.end() :]) if found else None
    return found is not None, base if _lasts(base) else None


def _planned(framed: str) -> tuple[bool, Predicate | None]:
    """Keep what is only planned apart from what is so, whether or not it is known."""
    for mark, pattern in _PLANS:
        found = pattern.search(framed)
        if found is not None and len(framed) > found.end() + 1:
            return True, _composed(mark, Predicate(framed[found.end() :].strip("_"), None, _PLAN_FAMILY))
    return False, None


def _marked(framed: str) -> tuple[bool, Predicate | None]:
    """Keep "also works at" and "temporarily lives in" apart from what holds for one object at a time."""
    for mark, pattern in _MARKS:
        found = pattern.search(framed)
        if found is not None:
            base = _rest(framed[: found.start()] + framed[found.end() :])
            return True, _composed(mark, base) if _is_changed(mark, base) else base
    return False, None


def _is_changed(mark: str, base: Predicate | None) -> bool:
    return base is not None and (_lasts(base) if mark == "TEMPORARILY" else base.one_at_a_time is True)


def _inflected(name: str) -> Predicate | None:
    """Look *name* up in another tense or number, and without its auxiliaries."""
    words = name.split("_")
    helpers = list(takewhile(_AUXILIARIES.__contains__, words))
    rest = words[len(helpers) :]
    if not helpers:
        noun = len(words) == 1 and not {name, name.removesuffix("S")}.isdisjoint(_NOUNS)
        return None if noun else _table().stems.get(_stemmed(words))
    if not rest:
        return None
    exact, after = _table().exact, "_".join(rest)
    if not _BE.isdisjoint(helpers):
        progressive = exact.get(after) or _table().stems.get(_stemmed(rest))
        return exact.get(f"IS_{after}") or (progressive if rest[0].endswith("ING") else None)
    if helpers[-1] in ("DO", "DOES", "DID"):
        return exact.get(after) or _table().stems.get(_stemmed(rest))
    had = _table().stems.get(_stemmed(rest)) if rest[0].endswith("ED") or rest[0] in _IRREGULAR else None
    return exact.get(f"HAS_{after}") or exact.get(after) or had


def _stemmed(words: list[str]) -> str:
    return "_".join((_stem(words[0]), *words[1:]))


def _stem(verb: str) -> str:
    """Return the part of an English verb that its tenses share."""
    verb = _IRREGULAR.get(verb, verb)
    for ending, instead in (("IES", "Y"), ("IED", "Y"), ("ING", ""), ("ED", ""), ("SSES", "SS"), ("S", "")):
        if verb.endswith(ending) and len(verb) - len(ending) >= 2 and not verb.endswith("SS"):
            verb = verb[: -len(ending)] + instead
            break
    doubled = len(verb) > 3 and verb[-1] == verb[-2] and verb[-1] not in "SL"
    return verb[:-1] if doubled else verb.removesuffix("E")


def _favorite(name: str) -> Predicate | None:
    """Keep each kind of favourite apart: one colour, one food, several books."""
    found = _FAVORITE.match(name)
    if found is None:
        return None
    several = found[1].endswith("S") and not found[1].endswith("SS")
    return Predicate(f"FAVORITE_{found[1]}", not several, "taste")


def _field(name: str) -> Predicate | None:
    """Take "order status" for a field of a record, which has one value at a time."""
    found = _FIELD.search(name)
    if found is None or found.start() == 0:
        return None
    before = name[: found.start()].split("_")
    plain = not any(word in _VERBS or (_VERB_LIKE.search(word) and word not in _FIELD_ADJECTIVES) for word in before)
    return Predicate(name, one_at_a_time=True, family=None) if plain else None


def _chinese(name: str) -> Predicate | None:
    """Take the particles from a Chinese verb as the other rules take English words."""
    written = _joined(name)
    if not _CJK.match(written):
        return None
    plain = _CHINESE_END.sub("", _CHINESE_ADVERB.sub("", written))
    if plain != written:
        return _meaning(plain) if plain else None
    for mark, pattern in _CHINESE_RULES:
        found = pattern.match(written)
        base = _meaning(written[found.end() :]) if found and found.end() < len(written) else None
        if base is None:
            continue
        if mark.endswith("_TO"):
            return _composed(mark, Predicate(base.name, None, _PLAN_FAMILY))
        if mark in ("ALSO", "TEMPORARILY") and not _is_changed(mark, base):
            return base
        return _composed(mark, base)
    return None


def _joined(name: str) -> str:
    return name.replace("_", "")


@cache
def _table() -> _Table:
    """Return the table, read once."""
    read = tomllib.loads(files("kg_memory").joinpath("vocabulary.toml").read_text(encoding="utf-8"))
    exact: dict[str, Predicate] = {}
    stems: dict[str, Predicate | None] = {}
    for written, predicate, inflects in _entries(read):
        exact[written] = predicate
        if inflects:
            _add_stem(stems, written, predicate)
    for written, predicate in list(exact.items()):
        if written.startswith("IS_") and written.count("_") > 1:
            exact.setdefault(written.removeprefix("IS_"), predicate)
    return _Table(exact, stems, {_joined(written): predicate for written, predicate in exact.items()})


def _entries(read: dict[str, dict[str, dict[str, str]]]) -> Iterator[tuple[str, Predicate, bool]]:
    """Yield each name and synonym, what it stands for, and whether it begins with a verb that has tenses."""
    for family, groups in read.items():
        for group, predicates in groups.items():
            for name, synonyms in predicates.items():
                predicate = Predicate(name, _FLAGS[group], None if family == "alone" else family)
                for written in (name, *synonyms.split()):
                    yield written, predicate, group != "fields" and written.partition("_")[0] not in _AUXILIARIES


def _add_stem(stems: dict[str, Predicate | None], written: str, predicate: Predicate) -> None:
    """Note the stem of *written*; one in the present tense comes first, else two that share it make it unknown."""
    stem = _stemmed(written.split("_"))
    known = stems.setdefault(stem, predicate)
    if known is None or known.name == predicate.name:
        return
    present, other = _is_present(written), _is_present(known.name)
    if present == other:
        stems[stem] = None
    elif present:
        stems[stem] = predicate


def _is_present(name: str) -> bool:
    return name.partition("_")[0].endswith("S")
