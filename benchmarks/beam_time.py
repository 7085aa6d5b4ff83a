"""Measure truth over time on BEAM chats (Tavakoli et al. 2025), offline: is the latest state in the context?

    python benchmarks/beam_time.py --data FOLDER --out figures.json [--quick] [--chats 1,2] [--folder FOLDER]

Is the outdated state absent, or marked? Each chat is read into its own namespace. Then questions of three kinds are
asked, and the text of ``memory.context`` is judged by rules, without a model: by the turns that its lines refer to, by
the numbers and dates in these lines, and by whether a line is marked as no longer true or contradicted.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from statistics import median
from typing import Any

from conversations import beam_chats, beam_namespace, beam_probing, turn
from opening import arguments, ingest, kept, opened, write

from kg_memory import GraphMemory
from kg_memory.contrib.chats import read
from kg_memory.text.tokenise import estimate_tokens

DEPTH = 20
"""The number of episodes of a search that are examined."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_NTH = r"(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b{_MONTH}[ -](\d{{1,2}}){_NTH}\b|\b(\d{{1,2}}){_NTH}(?: of)? {_MONTH}|\b\d{{4}}-(\d\d)-(\d\d)\b", re.IGNORECASE
)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|[a-z]+|%")
_UNIT_WORDS = 3
_FILLERS = frozenset("a an and at been by for from has have i in is it my of on or per so the to was with".split())
_FACT = re.compile(r"- (?P<text>.*) \((?P<held>[^()]*)\)(?: \[(?P<turns>[^\]]*)\])?")
_EPISODE = re.compile(r"- \[(?P<turns>[^\]]*)\] \((?P<at>[^()]*)\) (?P<text>.*)")
_MARKS = re.compile(r"(?: \((?:no longer so|contradicted)[^()]*\))+$")
_DENIAL = re.compile(r"(?:have|has|had|['’]ve) never\b", re.IGNORECASE)
_SEE = re.compile(r"see \[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a chat; `turns` are the ids of its evidence turns, in the groups of the data set."""

    text: str
    kind: str
    answer: str
    points: tuple[str, ...]
    turns: Mapping[str, frozenset[str]]
    said: Mapping[str, str]

    def group(self, name: str) -> str:
        """Return the text of the turns in one group, without code."""
        return " ".join(_CODE.sub(" ", self.said[turn]) for turn in sorted(self.turns[name]) if turn in self.said)


@dataclass(frozen=True, slots=True)
class Line:
    """A fact or episode in a context, with the turns it comes from, and whether it is marked as no longer true.

    `see` are the turns to which a mark points.
    """

    text: str
    held: str
    turns: frozenset[str]
    marked: bool
    see: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the lines of its context, and the turns that a search found for it, best first."""

    question: Question
    lines: tuple[Line, ...]
    found: tuple[str, ...]

    def of(self, group: str) -> list[Line]:
        """Return the context lines that come from evidence turns of *group*."""
        return [line for line in self.lines if line.turns & self.question.turns[group]]

    def rank(self, group: str) -> int:
        """Return the index of the first evidence turn of *group* among the turns found; `DEPTH` if there is none."""
        return next((place for place, turn in enumerate(self.found) if turn in self.question.turns[group]), DEPTH)


@dataclass(slots=True)
class Tally:
    """Counts of each observation, such as "latest", over the questions of one kind."""

    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    tokens: list[int] = field(default_factory=list)
    lines: int = 0
    marked: int = 0


def main() -> None:
    """Run the benchmark and write its figures."""
    options = _options()
    chats = beam_chats(options.data, options.chats)
    if not chats:
        sys.exit(f"{options.data} has no such BEAM chat: give the folder of folders with a chat.json each")
    chats = chats[:1] if options.quick else chats
    with kept(options.folder) as folder, opened(folder) as memory:
        figures = ingest(memory, ((beam_namespace(each), list(read(each / "chat.json"))) for each in chats), every=50)
        tallies = ask(memory, chats, options.tokens)
    for kind, tally in tallies.items():
        figures |= _show(kind, tally)
    write(figures, options.out)


def ask(memory: GraphMemory, chats: Iterable[Path], tokens: int) -> dict[str, Tally]:
    """Ask the questions about the chats; return a tally for each kind of question."""
    tallies = {kind: Tally() for kind in JUDGES}
    for chat in chats:
        for question in questions(chat):
            context = memory.context(question.text, namespace=beam_namespace(chat), max_tokens=tokens)
            found = memory.search(question.text, namespace=beam_namespace(chat), limit=DEPTH)
            turns = tuple(turn(each.source_id) for each in found.episodes)
            tally = tallies[question.kind]
            tally.tokens.append(estimate_tokens(context))
            shown = lines(context)
            tally.lines += len(shown)
            tally.marked += sum(line.marked for line in shown)
            for name, seen in JUDGES[question.kind](Asked(question, shown, turns)).items():
                tally.counts[name] += seen
    return tallies


def questions(chat: Path) -> Iterator[Question]:
    """Yield the questions of the three kinds about a chat."""
    said = {turn(each.source_id): each.content for each in read(chat / "chat.json")}
    probing = beam_probing(chat)
    for kind in JUDGES:
        for each in probing.get(kind, ()):
            turns = {name: frozenset(map(str, ids)) for name, ids in each["source_chat_ids"].items()}
            points = tuple(each.get("time_points", ()))
            yield Question(each["question"], kind, each.get("answer", ""), points, turns, said)


# Parsing a context


def lines(context: str) -> tuple[Line, ...]:
    """Return the facts and episodes in the text of a context."""
    found: list[Line] = []
    section = ""
    for each in context.splitlines():
        if each in ("<FACTS>", "<EPISODES>", "</FACTS>", "</EPISODES>"):
            section = each
        elif section == "<FACTS>" and (fact := _FACT.fullmatch(each)):
            found.append(
                Line(unescape(fact["text"]), fact["held"], _turns(fact["turns"]), is_marked(each, fact["held"]))
            )
        elif section == "<EPISODES>" and (episode := _EPISODE.fullmatch(_MARKS.sub("", each))):
            found.append(
                Line(unescape(episode["text"]), "", _turns(episode["turns"]), is_marked(each), pointed_at(each))
            )
    return tuple(found)


def is_marked(line: str, held: str = "") -> bool:
    """Return whether a context line is marked as no longer true: a fact before its dates, an episode after its text."""
    return bool(_MARKS.search(line)) or held.startswith("no longer so")


def pointed_at(line: str) -> frozenset[str]:
    """Return the turns to which the marks after an episode point."""
    marks = _MARKS.search(line)
    return frozenset(turn for see in _SEE.findall(marks[0]) for turn in _turns(see)) if marks else frozenset()


def _turns(references: str | None) -> frozenset[str]:
    return frozenset(each.rpartition("/")[2] for each in (references or "").split(", "))


def values(text: str) -> dict[str, set[str]]:
    """Return the numbers in *text*, each with the words that follow it, which may be its unit; "month" for a day."""
    words = _WORD.findall(text.lower())
    found: defaultdict[str, set[str]] = defaultdict(set)
    for place, word in enumerate(words):
        if not word[0].isdigit():
            continue
        units = found[word.replace(",", "").lstrip("0") or "0"]
        for unit in words[place + 1 : place + 1 + _UNIT_WORDS]:
            if unit[0].isdigit():
                break
            units.update({unit} - _FILLERS)
        if place and words[place - 1][:3] in _MONTHS:
            units.add("month")
    return found


def dates(text: str) -> set[tuple[int, int]]:
    """Return the days named in *text* as (month, day)."""
    found = set()
    for named, day, day_first, named_last, month, iso_day in _DATE.findall(text):
        name = (named or named_last).lower()
        found.add((_MONTHS.index(name) + 1 if name else int(month), int(day or day_first or iso_day)))
    return found


# The judges, one for each kind of question: they return which observations are true


def judge_update(asked: Asked) -> dict[str, bool]:
    """Judge whether the latest value is in the context, and the outdated one is absent or marked."""
    question = asked.question
    updated, original = values(question.group("updated_info")), values(question.group("original_info"))
    answer = {number: units for number, units in values(question.answer).items() if units and number in updated}
    new = {number for number, units in answer.items() if not units & original.get(number, set())}
    units = set().union(*(answer[number] for number in new))
    old = {number for number, behind in original.items() if number not in new and units & behind}
    shown = asked.of("updated_info")
    latest = _lines_with(shown, new) if new else shown
    outdated = [line for line in asked.of("original_info") if line not in latest and old & values(line.text).keys()]
    unmarked = any(not line.marked for line in outdated)
    elsewhere = [line for line in asked.lines if line not in latest and line not in outdated]
    there = new <= {number for line in latest for number in values(line.text)} and bool(latest)
    only_marked = there and all(line.marked for line in latest)
    return {
        "latest": there,
        "latest_elsewhere_too": any(_shows(line, new, units) for line in elsewhere),
        "latest_only_marked": only_marked,
        "no_outdated_state": not old,
        "outdated_absent": not outdated,
        "outdated_marked": bool(outdated) and not unmarked,
        "outdated_points_at_latest": any(line.see & question.turns["updated_info"] for line in outdated),
        "outdated_unmarked": unmarked,
        "outdated_elsewhere_unmarked": any(_shows(line, old, units) and not line.marked for line in elsewhere),
        "all_right": there and not only_marked and not unmarked,
        "latest_found": asked.rank("updated_info") < DEPTH,
        "latest_first": asked.rank("updated_info") < asked.rank("original_info"),
    }


def judge_contradiction(asked: Asked) -> dict[str, bool]:
    """Judge whether both contradictory statements are in the context, and are marked as contradictory."""
    first, second = asked.of("first_statement"), asked.of("second_statement")
    marked = any(line.marked for line in first + second)
    turns = asked.question.turns
    points = any(line.see & turns["second_statement"] for line in first)
    points = points or any(line.see & turns["first_statement"] for line in second)
    both = bool(first and second)
    return {
        "both": both,
        "one": bool(first) != bool(second),
        "denial_readable": any(_DENIAL.search(line.text) for line in first + second),
        "marked": marked,
        "points_at_the_other": points,
        "all_right": both and marked,
        "both_found": max(asked.rank("first_statement"), asked.rank("second_statement")) < DEPTH,
    }


def judge_times(asked: Asked) -> dict[str, bool]:
    """Judge whether all events are in the context, and their dates can be read or computed from it."""
    groups = list(asked.question.turns)
    shown = [line for group in groups for line in asked.of(group)]
    said = " ".join(map(asked.question.group, groups))
    days = set().union(*(dates(f"{line.text} {line.held}") for line in shown))
    numbers = set().union(*(values(line.text) for line in shown))
    wanted_days = set().union(*map(dates, asked.question.points))
    undated = [point for point in asked.question.points if not dates(point)]
    wanted_numbers = {number for point in undated for number in values(point) if number in values(said)}
    events, told = all(map(asked.of, groups)), wanted_days <= days and wanted_numbers <= numbers
    return {
        "all_events": events,
        "all_times": told,
        "all_right": events and told,
        "all_found": max(map(asked.rank, groups)) < DEPTH,
    }


def _shows(line: Line, numbers: set[str], units: set[str]) -> bool:
    return any(number in numbers and units & behind for number, behind in values(line.text).items())


def _lines_with(found: list[Line], numbers: set[str]) -> list[Line]:
    return [line for line in found if numbers & values(line.text).keys()]


JUDGES: Mapping[str, Callable[[Asked], dict[str, bool]]] = {
    "knowledge_update": judge_update,
    "contradiction_resolution": judge_contradiction,
    "temporal_reasoning": judge_times,
}


def _show(kind: str, tally: Tally) -> dict[str, Any]:
    """Print the table of one kind of question; return its figures."""
    if not tally.tokens:
        return {}
    asked, tokens = len(tally.tokens), median(tally.tokens)
    print(f"\n{kind}: {asked} questions, median context {tokens:.0f} tokens")
    for name, count in tally.counts.items():
        print(f"  {name:<28} {count:>4} {count / asked:>7.0%}")
    print(f"  {'of all lines, marked':<28} {tally.marked:>4} {tally.marked / max(tally.lines, 1):>7.0%}")
    return {
        f"{kind}_questions": asked,
        **{f"{kind}_{name}": count for name, count in tally.counts.items()},
        f"{kind}_lines": tally.lines,
        f"{kind}_lines_marked": tally.marked,
        f"{kind}_context_tokens_p50": tokens,
    }


def _options() -> argparse.Namespace:
    parser = arguments(
        "Truth over time on BEAM chats, offline.",
        data="a folder of BEAM chats, a folder with a chat.json each",
        quick="the first chat only",
    )
    parser.add_argument("--chats", help="the names of the chats to take, as in 1,2")
    parser.add_argument("--tokens", type=int, default=2000, help="the length of a context")
    return parser.parse_args()


if __name__ == "__main__":
    main()
