"""Writes a statement as a sentence that is clear by itself, in the past tense if it has ended: "Tom smoked"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kg_memory.contrib.offline import lexicon
from kg_memory.contrib.offline.statements import BASED, FORMER, PERSON, STATES, Mention, Span, TextStatement
from kg_memory.text.identity import spoken_line

_CHINESE = re.compile("[\u3400-\u9fff]")
_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'-]*|\d[\w.,%-]*|[\u4e00-\u9fff]")
_ADDS_NOTHING = lexicon.WORD_LISTS["adds_nothing"]
"""Words that add no information to the predicate."""
_HOW = re.compile(r"\b(?:part|full)[- ]time|\bremotely|\balone|\bwith\b|\bnever\b", re.IGNORECASE)
"""Words in a verb phrase that add information to the predicate."""
WAS = re.compile(r"(?:used to|lived|worked|studied|was an?)\b|以前|之前|曾|原来|过去", re.IGNORECASE)
"""The start of a verb phrase about a past state, rather than about its end."""
_LISTED = re.compile(r"\s?(?:,|,? (?:and|or|&)|/|、|和|跟)\s?(?:the |my |our |an? )?", re.IGNORECASE)
_COUNTED = frozenset({"IS_A", "WORKS_AS", "TEMPORARILY_WORKS_AS", "HAS"})
"""Predicates whose object is a countable noun with an article."""


def write_sentence(
    statement: TextStatement, content: str, speaker: str | None, *, over: bool, dates: Sequence[Span] = ()
) -> str:
    """Return *statement* as a sentence that is clear by itself: "I moved to Oslo" -> "Ann lives in Oslo"."""
    clause = " ".join(content[slice(*statement.quote)].split())
    spoken = spoken_line(speaker, clause)
    kin = statement.predicate.removeprefix("HAS_").lower()
    if kin in lexicon.KIN:
        return f"{statement.objects[0].name} is {statement.subject.name}'s {kin}"
    state = _name_state(statement, content, chinese=_CHINESE.search(clause) is not None, over=over)
    if state is None:
        return spoken
    if over and not (statement.verb and WAS.match(content, *statement.verb)):
        return state  # a quote such as "I stopped smoking" would contradict "was smoking"
    if not _adds_to_state(statement, content, dates):
        return state
    named = clause.startswith(statement.subject.name)
    if named and clause.startswith(state):
        return clause.rstrip(".!")
    own = clause if named or statement.subject.name == speaker else spoken
    return f"{state}{'：' if _CHINESE.search(clause) else ': '}{own}"


def _name_state(statement: TextStatement, content: str, *, chinese: bool, over: bool) -> str | None:
    """Return the state that *statement* implies as a sentence, or None: "I moved to Oslo" -> "Ann lives in Oslo"."""
    subject, predicate = statement.subject.name, statement.predicate
    named = _list_named(statement.objects, content)
    verb = content[slice(*statement.verb)] if statement.verb else ""
    objects = [_with_article(one, content, predicate, verb) if not chinese else one.name for one in named]
    if predicate == "STAYS_IN" and statement.objects[0].type == PERSON:
        return None
    if chinese and predicate in STATES:
        return f"{subject}{'以前' if over else ''}{STATES[predicate][2]}{'、'.join(objects)}"
    if chinese and predicate == "DOES":
        return f"{subject}{'以前' if over else ''}{'、'.join(objects)}"
    if predicate == "DOES" and over:
        return f"{subject} was {objects[0]}"
    if over and predicate in FORMER:
        return f"{subject} {FORMER[predicate]} {' and '.join(objects)}"
    if predicate == "LIVES_IN" and statement.subject.type != PERSON and verb.casefold().startswith(BASED):
        return f"{subject} {'was' if over else 'is'} based in {' and '.join(objects)}"
    if predicate in STATES:
        return f"{subject} {STATES[predicate][1 if over else 0]} {' and '.join(objects)}"
    return None


def _list_named(objects: Sequence[Mention], content: str) -> list[Mention]:
    """Return the first of *objects*, and those listed directly after it in *content*, as in "tea and coffee"."""
    named = [objects[0]]
    for mention in objects[1:]:
        if not _LISTED.fullmatch(content, named[-1].end, max(mention.start, named[-1].end)):
            break
        named.append(mention)
    return named


def _with_article(mention: Mention, content: str, predicate: str, verb: str) -> str:
    """Return the name of *mention* with the article that it needs in a sentence: "the US", "a nurse"."""
    name, before = mention.name, content[max(0, mention.start - 4) : mention.start].casefold()
    if before.endswith(("the ", "the\n")) and not name.casefold().startswith("the "):
        return f"the {name}"
    counted = predicate in ("WORKS_AS", "TEMPORARILY_WORKS_AS", "HAS") or f"{verb} {before}".endswith((" a ", " an "))
    counted = counted or verb.endswith((" a", " an"))
    if not counted or predicate not in _COUNTED or mention.named or not name[:1].isascii():
        return name
    plural = name.endswith("s") and not name.endswith(("ss", "us"))
    return name if plural else f"{'an' if name[0].casefold() in 'aeiou' else 'a'} {name}"


def _adds_to_state(statement: TextStatement, content: str, dates: Sequence[Span]) -> bool:
    """Return whether the quote of *statement* in *content* says more than its sentence, such as how or why."""
    start, end = statement.quote
    kept = list(content[start:end].replace("\u2019", "'"))
    if statement.verb and _HOW.search(content, *statement.verb):
        return True
    named = (statement.subject, *_list_named(statement.objects, content))
    mentions = ((one.start, one.end) for one in named)
    verb = [statement.verb] if statement.verb else []
    for begin, stop in (*mentions, *verb, *dates):
        for place in range(max(begin, start), min(stop, end)):
            kept[place - start] = " "
    words = (word.strip("'-") for word in _WORD.findall("".join(kept).casefold()))
    kin = {"my", "our", statement.subject.kin} if statement.subject.kin else set()
    return any(word not in _ADDS_NOTHING and word not in kin for word in words)
