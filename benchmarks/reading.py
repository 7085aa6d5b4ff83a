"""Measure the quality of reading: facts, dates, identities and losses, on annotated messages with recorded answers.

    python -m benchmarks.reading [--plans standard,offline] [--half open|closed|both] [--set DIR] [--recordings DIR]
        [--hand DIR] [--only NAME,...] [--unjudged FILE.jsonl] [-v] [--out FILE.json]

The set, `benchmarks/reading_data/set`, has one file for each conversation: messages, and the facts that an attentive
person would note. It was annotated and frozen before the prompts were written, without sight of them. The model's
answers were recorded without sight of the annotations. They are replayed over HTTP; a changed prompt ends the run.

A stated fact is *right* if it matches an annotated fact of its message: the same subject and object, by any of their
names, and words of the same meaning; each annotated fact matches once. Facts annotated as optional, or as stated
before, are right but not required. No annotation is complete: whether a message states another fact was judged
from the message alone, without sight of the annotation or of the reader (`judged.jsonl`); unjudged facts are wrong. No
list of words is complete either: the judge also said which stated facts are the same as an annotated fact with other
words. These count as right and recalled, and so do their dates and tense. For a start without annotation, the judge
said whether it follows from the message.

| column | what it is |
| --- | --- |
| annotated | share of stated facts that are annotated |
| precision, recall | of the facts that messages state; precision includes facts judged to be stated |
| date | share of right facts with an annotated start or end whose dates are within the annotated period |
| precision of dates | share of these with the same precision |
| tense | share of right facts with the annotated tense: past, present or planned |
| false starts | share of stated facts with a start without annotation, except the date of an event beside a state |
| false ends | share of the states that hold at the end by annotation, but that the graph ended or retracted |
| wrong merges | entities of the graph that merge two annotated entities of one type |
| split | annotated entities that are several entities in the graph |
| not linked | entities of required facts that the graph does not link to their message |
| silently lost | names given by the reader that are neither entities nor reported as dropped |
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.database import fresh_database
from benchmarks.exports import read_export
from benchmarks.recorded_model import Recordings, serve
from kg_memory import GraphMemory, Settings

DATA = Path(__file__).parent / "reading_data"
SLACK = {"about": 0.75, "by": 0.5, "after": 0.5}
"""How far outside the annotated period a vague date may be, as a part of its distance from the message."""
JSON = dict[str, Any]
Judged = Mapping[tuple[str, str], JSON]
"""Judgements by (message id, sentence) of stated facts that are not annotated.

They say whether the message has the sentence `stated`, the id of the annotated `fact` that it is (or null), and whether
a start without annotation `start_follows` from the message.
"""


@dataclass
class Conversation:
    """An annotated conversation: its entities by key, and its messages in order."""

    name: str
    kind: str
    entities: Mapping[str, JSON]
    messages: Sequence[JSON]

    @classmethod
    def load(cls, path: Path) -> Conversation:
        head, *messages = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return cls(head["conversation"], head["kind"], head["entities"], messages)

    def episodes(self) -> Iterator[JSON]:
        """Yield the messages as dicts for `add_many`."""
        for message in self.messages:
            record = message.get("record")
            yield {
                "content": message["text"] if record is None else json.dumps(record, ensure_ascii=False),
                "kind": {"chat": "message"}.get(self.kind, self.kind),
                "speaker": message["speaker"],
                "at": message["at"],
                "thread": self.name,
                "source": "set",
                "source_id": message["id"],
            }

    def final_states(self) -> set[str]:
        """Return the ids of the facts that hold after the last message."""
        facts = [fact for message in self.messages for fact in message["facts"]]
        over = {id_ for fact in facts for key in ("ends", "corrects") for id_ in fact.get(key, ())}
        over |= {fact["id"] for fact in facts if fact.get("repeats") in over}
        return {
            fact["id"]
            for fact in facts
            if fact["kind"] in ("state", "habit")
            and fact["tense"] == "present"
            and fact["end"] is None
            and fact["id"] not in over
        }


@dataclass
class Graph:
    """The content of a memory of one conversation, read from its export."""

    names: dict[str, set[str]] = field(default_factory=dict)
    mentions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    facts: dict[str, JSON] = field(default_factory=dict)
    statements: dict[str, list[JSON]] = field(default_factory=lambda: defaultdict(list))
    current: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    """The names of entities reported as dropped."""

    @classmethod
    def load(cls, path: Path, at: str) -> Graph:
        """Return the graph in the export *path*; `current` are the facts that hold at the time *at*."""
        graph, now = cls(), datetime.fromisoformat(at)
        source_ids: dict[str, str] = {}
        beliefs: dict[str, JSON] = {}
        for name, record in read_export(path):
            match name:
                case "Entity":
                    graph.names[record["id"]] = {plain(name) for name in (record["name"], *record["aliases"])}
                case "Episode":
                    source_ids[record["id"]] = record.get("source_id") or ""
                case "MENTIONS":
                    graph.mentions[source_ids[record["source"]]].add(record["target"])
                case "Fact":
                    graph.facts[record["id"]] = record
                case "STATES":
                    graph.statements[source_ids[record["source"]]].append({**record, "fact": record["target"]})
                case "Belief":
                    beliefs[record["id"]] = record
                case "HELD" | "PROPOSED":
                    belief = beliefs[record["target"]]
                    ended = belief["invalid_at"] is not None and datetime.fromisoformat(belief["invalid_at"]) <= now
                    if belief["expired_at"] is None and not ended:
                        graph.current.add(record["source"])
        return graph


def plain(name: str) -> str:
    """Return *name* without case, articles and accents."""
    text = unicodedata.normalize("NFKD", name.casefold().replace("’", "'"))
    text = "".join(char for char in text if not unicodedata.combining(char))
    return re.sub(r"^(?:the|a|an|his|her|my|their|our|your) ", "", " ".join(text.split()))


def may_be(graph_names: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether one of *graph_names* may mean the same entity as one of *names*."""
    wanted = [plain(name) for name in names]
    return any(ours == theirs or _within(ours, theirs) for ours in graph_names for theirs in wanted)


def _within(one: str, another: str) -> bool:
    """Return whether the words of one text (in Chinese, characters) are contained in the other."""
    if not one or not another:
        return False
    if not one.isascii() or not another.isascii():
        shorter, longer = sorted((one, another), key=len)
        return len(shorter) > 1 and shorter in longer
    ones, others = (set(re.findall(r"[\w']+", text)) for text in (one, another))
    return bool(ones and others) and (ones <= others or others <= ones)


# Matching stated facts with annotated ones


def match(
    conversation: Conversation, graph: Graph, message: JSON, judged: Judged
) -> tuple[list[tuple[JSON, JSON]], list[JSON]]:
    """Return the pairs (annotated fact, stated fact) of *message*, and the stated facts without a pair.

    *judged* pairs facts whose words differ.
    """
    stated = list(graph.statements[message["id"]])
    said_at = datetime.fromisoformat(message["at"])
    candidates = [
        (score + agreement(fact, statement, graph, said_at), -place, number)
        for place, fact in enumerate(message["facts"])
        for number, statement in enumerate(stated)
        if (score := likeness(conversation, graph, fact, statement))
    ]
    used_facts, used = set[int](), set[int]()
    pairs = []
    for _, place, number in sorted(candidates, reverse=True):
        if place not in used_facts and number not in used:
            used_facts.add(place)
            used.add(number)
            pairs.append((message["facts"][-place], stated[number]))
    for number, statement in enumerate(stated):
        fact = judged.get((message["id"], graph.facts[statement["fact"]]["sentence"]), {}).get("fact")
        place = next((place for place, each in enumerate(message["facts"]) if each["id"] == fact), None)
        if number not in used and place is not None and place not in used_facts:
            used_facts.add(place)
            used.add(number)
            pairs.append((message["facts"][place], statement))
    return pairs, [statement for number, statement in enumerate(stated) if number not in used]


def agreement(fact: JSON, statement: JSON, graph: Graph, said_at: datetime) -> float:
    """Return how well a stated fact agrees with an annotated one in tense, kind and dates, from 0 to 0.75."""
    told = [(fact["start"], statement["valid_at"]), (fact["end"], statement["invalid_at"])]
    dates = all(is_date_right(when, dated, said_at) for when, dated in told if when is not None)
    kind = graph.facts[statement["fact"]].get("kind") or "state"
    return is_tense_right(fact, statement, graph, said_at) / 2 + (dates + is_same_kind(fact, kind)) / 8


def begins_untold(fact: JSON, statement: JSON, kind: str | None) -> bool:
    """Return whether a stated fact has a start and the annotated one has none; events beside states may."""
    return statement["valid_at"] is not None and fact["start"] is None and (kind is None or is_same_kind(fact, kind))


def is_same_kind(fact: JSON, kind: str) -> bool:
    """Return whether the stated *kind* and the annotated fact are both states, or both not."""
    return (kind == "state") == (fact["kind"] in ("state", "habit"))


def likeness(conversation: Conversation, graph: Graph, fact: JSON, statement: JSON) -> float:
    """Return how well a stated fact matches an annotated one in words and entities; 0 for no match."""
    stored = graph.facts[statement["fact"]]
    text = f"{stored['sentence']} {stored['predicate'].replace('_', ' ')}".casefold()
    hits = [any(_has_stem(text, stem.casefold()) for stem in group) for group in fact["words"]]
    if not all(hits):
        return 0
    ends = [graph.names[stored["subject"]], *(graph.names[id_] for id_ in stored["objects"])]
    subject = conversation.entities[fact["subject"]]["names"]
    at = next((place for place, names in enumerate(ends) if may_be(names, subject)), None)
    if at is None:
        return 0
    own = (at == 0) + _bears(ends[at], subject) / 4
    if fact["object"] is None:
        return 1 + own
    names = conversation.entities[fact["object"]]["names"]
    if any(may_be(own, names) for place, own in enumerate(ends) if place != at):
        return 3 + own
    return 2 if any(plain(name) in plain(text) for name in names) else 0


def _is_of_somebody(own: str, noun: str) -> bool:
    """Return whether *own* is a name of *noun* by its owner: "Ann's radio" for "radio"."""
    return re.fullmatch(rf".+(?:['’]s?\s|的){re.escape(noun)}", own) is not None


def _bears(own: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether an entity with the names *own* has one of *names*."""
    return not {plain(name) for name in names}.isdisjoint(re.sub(r"\s*[(（].*$", "", name) for name in own)


def _is_of(own: Iterable[str], names: Iterable[str]) -> bool:
    """Return whether an entity of the graph is named by its owner, one of *names*: "Ann's sister", "安娜的妹妹"."""
    owners = re.compile("|".join(rf"\b{re.escape(plain(name))}(?:['’]s?\b|的)" for name in names))
    return any(owners.match(name) for name in own)


def _has_stem(text: str, stem: str) -> bool:
    return stem in text if not stem.isascii() else re.search(rf"\b{re.escape(stem)}", text) is not None


# Dates


def stretch(told: JSON, zone: Any) -> tuple[datetime, datetime]:
    """Return the first and last instant of an annotated time."""
    text, precision = told["at"], told["precision"]
    begin = datetime.fromisoformat({4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text))
    begin = begin if begin.tzinfo else begin.replace(tzinfo=zone)
    days = {"instant": 0, "day": 1, "week": 7, "month": 31, "season": 92, "year": 366}[precision]
    return begin, begin + timedelta(days=days)


def is_date_right(told: JSON, dated: str | None, said_at: datetime) -> bool:
    """Return whether *dated* is within the annotated period, with a tolerance of an hour, or more if it is vague."""
    if dated is None:
        return False
    begin, end = stretch(told, said_at.tzinfo)
    slack = timedelta(days=3 if told["precision"] == "week" else 0, hours=1)  # weeks begin on Sunday for some
    if told.get("vague"):
        slack = max(abs(said_at - begin) * SLACK[told["vague"]], timedelta(days=7))
    return begin - slack <= datetime.fromisoformat(dated) <= end + slack


def tense_of(statement: JSON, stored: JSON, said_at: datetime) -> str:
    """Return the tense of a stated fact in the graph: "past", "present" or "future"."""
    if stored.get("kind") in ("plan", "event"):
        return "future" if stored["kind"] == "plan" else "past"
    end, start = (statement[key] and datetime.fromisoformat(statement[key]) for key in ("invalid_at", "valid_at"))
    if end is not None and end <= said_at:
        return "past"
    return "future" if start is not None and start > said_at else "present"


def is_tense_right(fact: JSON, statement: JSON, graph: Graph, said_at: datetime) -> bool:
    """Return whether a stated fact has the annotated tense; for an event, the present is right too."""
    tense = tense_of(statement, graph.facts[statement["fact"]], said_at)
    return tense == fact["tense"] or (fact["kind"] == "event" and tense in ("past", "present"))


# Scores


class Score(Counter[str]):
    """Counts of right, wrong and missing facts in a run, from which ratios are computed."""

    def table_row(self) -> list[str]:
        """Return the cells of the table's row."""
        return [
            str(self["stated"]),
            ratio(self["right"], self["stated"]),
            ratio(self["right"] + self["judged_right"], self["stated"]),
            ratio(self["recalled"], self["asked"]),
            ratio(self["dates_right"], self["dates"]),
            ratio(self["precisions_right"], self["dates_right"]),
            ratio(self["tenses_right"], self["paired"]),
            f"{ratio(self['false_starts'], self['stated'])} ({self['false_starts']})",
            f"{ratio(self['false_ends'], self['lasting'])} ({self['false_ends']})",
            str(self["merged"]),
            str(self["split"]),
            str(self["not_linked"]),
            str(self["silently_lost"]),
        ]


COLUMNS = (
    "stated facts", "annotated", "precision", "recall", "date", "precision of dates", "tense", "false starts",
    "false ends", "wrong merges", "split", "not linked", "silently lost",
)  # fmt: skip


def ratio(part: int, whole: int) -> str:
    """Return *part* / *whole* with three digits, or "-" if *whole* is 0."""
    return f"{part / whole:.3f}" if whole else "-"


def score(conversation: Conversation, graph: Graph, judged: Judged, explain: list[str]) -> Score:
    """Return the counts for a conversation; a line for each error is appended to *explain*."""
    counts = Score()
    keys_of, ids_of = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    statement_of: dict[str, JSON] = {}
    for message in conversation.messages:
        pairs, extra = match(conversation, graph, message, judged)
        _count_facts(counts, message, pairs, extra, graph, judged, explain)
        for fact, statement in pairs:
            statement_of[fact["id"]] = statement
            _note_identities(conversation, graph, fact, statement, keys_of, ids_of)
        counts["not_linked"] += len(list(_not_linked(conversation, graph, message, explain)))
    for id_ in conversation.final_states() & statement_of.keys():
        counts["lasting"] += 1
        if statement_of[id_]["fact"] not in graph.current:
            counts["false_ends"] += 1
            explain.append(f"{id_} false end: {graph.facts[statement_of[id_]['fact']]['sentence']}")
    for entity, keys in keys_of.items():
        if len({conversation.entities[key]["type"] for key in keys}) < len(keys):
            counts["merged"] += 1
            explain.append(f"{conversation.name} merged: {sorted(graph.names[entity])} is {sorted(keys)}")
    for key, ids in ids_of.items():
        if len(ids) > 1:
            counts["split"] += 1
            explain.append(f"{conversation.name} split: {key} is {[sorted(graph.names[id_]) for id_ in ids]}")
    return counts


def _count_facts(
    counts: Score,
    message: JSON,
    pairs: Sequence[tuple[JSON, JSON]],
    extra: Sequence[JSON],
    graph: Graph,
    judged: Judged,
    explain: list[str],
) -> None:
    said_at = datetime.fromisoformat(message["at"])
    asked = {fact["id"] for fact in message["facts"] if not fact.get("optional") and not fact.get("repeats")}
    matched = {fact["id"] for fact, _ in pairs}
    counts["stated"] += len(pairs) + len(extra)
    counts["right"] += len(pairs)
    counts["asked"] += len(asked)
    counts["recalled"] += len(asked & matched)
    missed = (fact for fact in message["facts"] if fact["id"] in asked - matched)
    explain.extend(f"{fact['id']} missed: {fact['sentence']}" for fact in missed)
    for statement in extra:
        stored = graph.facts[statement["fact"]]
        verdict = judged.get((message["id"], stored["sentence"]), {}).get("stated")
        counts["judged_right"] += bool(verdict)
        counts["unjudged"] += verdict is None
        how = {True: "judged right", False: "judged wrong", None: "not judged"}[verdict]
        explain.append(f"{message['id']} extra, {how}: {stored['predicate']}: {stored['sentence']}")
    for fact, statement in pairs:
        sentence = graph.facts[statement["fact"]]["sentence"]
        counts["paired"] += 1
        right = is_tense_right(fact, statement, graph, said_at)
        counts["tenses_right"] += right
        if not right:
            tense = tense_of(statement, graph.facts[statement["fact"]], said_at)
            explain.append(f"{fact['id']} tense {tense}, not {fact['tense']}: {sentence}")
        stored_kind = graph.facts[statement["fact"]].get("kind")
        follows = judged.get((message["id"], sentence), {}).get("start_follows")
        if begins_untold(fact, statement, stored_kind) and not follows:
            counts["false_starts"] += 1
            explain.append(f"{fact['id']} false start {statement['valid_at']}: {sentence}")
        _count_dates(counts, fact, statement, graph.facts[statement["fact"]], said_at, explain)


def _count_dates(
    counts: Score, fact: JSON, statement: JSON, stored: JSON, said_at: datetime, explain: list[str]
) -> None:
    sentence = stored["sentence"]
    # An event has one date: "the lease ends on 1 May".
    happens = fact["start"] is None and stored.get("kind") in ("event", "plan")
    end = ("valid_at", "precision") if happens else ("invalid_at", "end_precision")
    for told, (dated, precision) in (("start", ("valid_at", "precision")), ("end", end)):
        if fact[told] is None:
            continue
        counts["dates"] += 1
        if is_date_right(fact[told], statement[dated], said_at):
            counts["dates_right"] += 1
            precise = (fact[told].get("vague") or fact[told]["precision"]) == statement[precision]
            counts["precisions_right"] += precise
            if not precise:
                explain.append(f"{fact['id']} precision {statement[precision]}, not {fact[told]}")
        else:
            explain.append(f"{fact['id']} {told} {statement[dated]}, not {fact[told]}: {sentence}")


def _note_identities(
    conversation: Conversation,
    graph: Graph,
    fact: JSON,
    statement: JSON,
    keys_of: Mapping[str, set[str]],
    ids_of: Mapping[str, set[str]],
) -> None:
    """Record in *keys_of* and *ids_of* which entities of the graph match subject and object of the annotated *fact*."""
    stored = graph.facts[statement["fact"]]
    ends = [stored["subject"], *stored["objects"]]
    for place, key in enumerate((fact["subject"], fact["object"])):
        if key is None:
            continue
        names = conversation.entities[key]["names"]
        likely = [id_ for id_ in ends if may_be(graph.names[id_], names) and not _is_of(graph.names[id_], names)]
        if sum(_bears(graph.names[id_], names) for id_ in likely) > 1:
            continue  # of two of that name the fact does not tell which it is
        likely.sort(key=lambda id_: ((id_ == stored["subject"]) != (place == 0), not _bears(graph.names[id_], names)))
        if likely:
            if _bears(graph.names[likely[0]], names):
                keys_of[likely[0]].add(key)
            ids_of[key].add(likely[0])
            ends.remove(likely[0])


def _not_linked(conversation: Conversation, graph: Graph, message: JSON, explain: list[str]) -> Iterator[str]:
    """Yield the entities of required facts that the graph does not link to their message."""
    mentioned = [graph.names[id_] for id_ in graph.mentions[message["id"]]]
    asked = [fact for fact in message["facts"] if not fact.get("optional") and not fact.get("repeats")]
    for key in sorted({key for fact in asked for key in (fact["subject"], fact["object"]) if key}):
        names = conversation.entities[key]["names"]
        if not any(may_be(own, names) for own in mentioned):
            explain.append(f"{message['id']} not linked: {key}")
            yield key


# Facts without annotation


def load_judged(path: Path) -> Judged:
    """Return the judgements of sentences without annotation."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {(row["message"], row["sentence"]): row for row in rows}


def list_unjudged(conversation: Conversation, graph: Graph, judged: Judged) -> Iterator[JSON]:
    """Yield the stated facts that match no annotated fact and have no judgement, with their message and context.

    `missed` are the annotated facts of the message without a pair.
    """
    texts = [f"{row['at']} {row['speaker'] or ''}: {row['content']}" for row in conversation.episodes()]
    for place, message in enumerate(conversation.messages):
        pairs, extra = match(conversation, graph, message, judged)
        found = {fact["id"] for fact, _ in pairs}
        missed = {fact["id"]: fact["sentence"] for fact in message["facts"] if fact["id"] not in found}
        before = texts[max(place - 5, 0) : place]
        for statement in extra:
            sentence = graph.facts[statement["fact"]]["sentence"]
            if (message["id"], sentence) not in judged:
                row = {"message": message["id"], "text": texts[place], "before": before, "sentence": sentence}
                yield {**row, "missed": missed}
        for fact, statement in pairs:
            stored = graph.facts[statement["fact"]]
            verdict = judged.get((message["id"], stored["sentence"]), {})
            if begins_untold(fact, statement, stored.get("kind")) and "start_follows" not in verdict:
                row = {"message": message["id"], "text": texts[place], "before": before, "sentence": stored["sentence"]}
                start = {name: statement[name] for name in ("valid_at", "precision")}
                yield {**row, "kind": stored.get("kind"), "start": start}


def _silently_lost(recordings: Recordings | None, graphs: Iterable[Graph], explain: list[str]) -> Iterator[str]:
    """Yield the names given by the reader that are not entities of the graphs and were not reported as dropped."""
    kept = {name for graph in graphs for names in (*graph.names.values(), graph.dropped) for name in names}
    for answer in recordings.used_answers() if recordings else ():
        names = (entity.get("name") for entity in answer.get("entities", ()) if isinstance(entity, dict))
        for name in filter(None, names):
            if not any(own == plain(name) or _is_of_somebody(own, plain(name)) for own in kept):
                explain.append(f"silently lost: {name}")
                yield name


# Running


def run(conversation: Conversation, plan: str, url: str, base_url: str | None, folder: Path) -> Graph:
    """Ingest *conversation* with the reading plan *plan* into a new namespace, and return the graph."""
    namespace = f"{conversation.name}-{plan}"
    how = {} if plan == "offline" else {"base_url": base_url, "api_key": "none", "plan": plan, "model_timeout": 3600.0}
    model = "offline" if plan == "offline" else "recorded"
    settings = Settings(url=url, **how)
    with GraphMemory.open(settings=settings, model=model, embeddings="offline") as memory:
        added = memory.add_many(conversation.episodes(), namespace=namespace)
        added += memory.episodes.resume(namespace=namespace)
        failed = [result.error for result in added if result.error]
        if failed:
            raise SystemExit(f"{conversation.name}: {len(failed)} messages could not be read: {failed[0]}")
        target = folder / f"{namespace}.jsonl"
        memory.data.export(target, namespace=namespace, embeddings=False)
    graph = Graph.load(target, conversation.messages[-1]["at"])
    graph.dropped = {plain(loss.text) for result in added for loss in result.dropped if loss.kind == "entity"}
    return graph


def main() -> None:
    """Run the benchmark and print the table, by plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", default="standard,offline")
    parser.add_argument("--half", default="open", choices=("open", "closed", "both"))
    parser.add_argument("--set", type=Path, default=DATA / "set")
    parser.add_argument("--recordings", type=Path, default=DATA / "recordings")
    parser.add_argument("--hand", type=Path, help="answer by hand what was not recorded, in this folder")
    parser.add_argument("--only", help="the names of conversations, separated by commas")
    parser.add_argument("--unjudged", type=Path, help="write what is still to be judged to this file")
    parser.add_argument("-v", "--verbose", action="store_true", help="list what is wrong")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    conversations = choose_conversations(chosen.set, chosen.half, chosen.only)
    judged, unjudged = load_judged(DATA / "judged.jsonl"), []
    totals: dict[str, Score] = {}
    print(f"| plan | messages | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 2)}")
    with tempfile.TemporaryDirectory(prefix="kg-reading-") as name, fresh_database() as url:
        for plan in chosen.plans.split(","):
            explain: list[str] = []
            total, by_name = Score(), {}
            with recorded_answers(plan, chosen.recordings, chosen.hand) as (base_url, recordings):
                read = partial(run, plan=plan, url=url, base_url=base_url, folder=Path(name))
                with ThreadPoolExecutor(len(conversations) if chosen.hand else 1) as pool:
                    graphs = list(pool.map(read, conversations))
                if recordings and recordings.missing:
                    raise SystemExit(f"{plan}: no recorded answer for {len(recordings.missing)} prompts, see above")
            for conversation, graph in zip(conversations, graphs, strict=True):
                by_name[conversation.name] = score(conversation, graph, judged, explain)
                unjudged += list_unjudged(conversation, graph, judged)
                total.update(by_name[conversation.name])
            total["silently_lost"] = len(list(_silently_lost(recordings, graphs, explain)))
            totals[plan] = total
            messages = sum(len(one.messages) for one in conversations)
            print(f"| {plan} | {messages} | {' | '.join(total.table_row())} |", flush=True)
            if chosen.verbose:
                print("\n".join(explain), file=sys.stderr)
    if chosen.unjudged:
        rows = {(row["message"], row["sentence"]): row for row in unjudged}
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())
        chosen.unjudged.write_text("".join(lines), encoding="utf-8")
    if chosen.out:
        chosen.out.write_text(json.dumps(totals, indent=1), encoding="utf-8")


def choose_conversations(folder: Path, half: str, only: str | None) -> list[Conversation]:
    """Return the annotated conversations of a *half* ("open", "closed" or "both"), or only those named in *only*."""
    halves = json.loads((folder / "halves.json").read_text(encoding="utf-8"))
    names = halves["open"] + halves["closed"] if half == "both" else halves[half]
    conversations = [Conversation.load(path) for path in sorted(folder.glob("*.jsonl"))]
    wanted = only.split(",") if only else names
    return [conversation for conversation in conversations if conversation.name in wanted]


@contextmanager
def recorded_answers(plan: str, folder: Path, hand: Path | None) -> Iterator[tuple[str | None, Recordings | None]]:
    """Serve the recorded answers for *plan* in the with block; yield the URL and the answers.

    For the plan "offline", yields (None, None).
    """
    if plan == "offline":
        yield None, None
        return
    recordings = Recordings(folder / f"{plan}.jsonl", hand)
    with serve(recordings) as base_url:
        yield base_url, recordings


if __name__ == "__main__":
    main()
