"""Prove that the package still does what it did: digests of graphs, prompts and answers, recorded and compared.

    python -m tools.golden record FILE [--full DIR] [--data ../shared/data]
    python -m tools.golden compare FILE [--full DIR] [--against DIR] [--data ../shared/data] [--quick]

Run it in the root of a checkout. `compare` tells what differs from FILE, and ends with 1 if anything but the public API
does. `--quick` reads a short story alone (under a minute), `--only scripted|offline` a part of the rest. `--full`
writes all that is digested to a folder; `--against` names that folder of the old code, and shows the lines that differ.

What is not the same in two runs is made so: the clock stands still within a message (times of recording become ``@n``,
n the message), vectors and scores are rounded, durations are left out, and of reasons in prose and of errors only that
they are there. The known facts that a prompt tells beside a new one are sorted, as a hash table in the database orders
them, and tokens are counted by the data alone. After a change that was meant, `record` anew, or leave it out by
`--ignore`.
"""
# mypy: ignore-errors
# ruff: noqa: C901, E501

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import redis

from tools.golden_api import Api, Plain, snapshot
from tools.golden_digest import Record, World, attempt, dumped, line
from tools.golden_story import (
    NAMES,
    OFFLINE_NAMES,
    OFFLINE_QUESTIONS,
    HashEmbeddings,
    ScriptedChat,
    offline_story,
    questions,
    story,
)  # fmt: skip

MANY = 40
"""So many messages are added at once, and have the same time of recording."""
STRATEGY = {"economy": "recency", "standard": "model", "thorough": "trust"}
DRIVES = ("DRIVES", "a person drives a thing", (("Person", "Topic"),), True)
SCRIPTED = {
    "merge_threshold": 0.97, "ask_threshold": 0.4, "note_link_threshold": 0.4, "note_link_seconds": 60.0,
    "chunk_size": 600, "redact": "secrets", "trusted_sources": ("trusted",), "fact_types": (DRIVES, ("KNOWS", "two people know each other")),
}  # fmt: skip
RECIPES: dict[str, Plain | str] = {
    **{name: name for name in ("words", "meaning", "hybrid", "facts", "overview", "pagerank", "trusted")},
    "synapse": {"along": {"method": "synapse", "timeout_ms": 60_000}},
    "bfs": {"along": {"method": "bfs", "max_hops": 1, "facts_a_hop": 5}},
    **{by: {"rerank": [{"by": by}]} for by in ("mentions", "distance", "recency", "confidence", "trust", "diversity")},
    "cross_encoder": {"rerank": [{"by": "cross_encoder"}]},
    "several": {"fusion": "rrf", "rerank": [{"by": "recency", "rate": 1}, {"by": "diversity", "balance": 0.7}]},
    "use": {"rerank": [{"by": "use"}]},  # the last, as it writes
}
THEN = {"as_of": "2023-02-15"}
BELIEVED = {"believed_at": "2026-03-14T09:10:00+00:00"}
DURING = {"during": ("2022-06", "2023-02-01")}


def ingest(
    api: Api, world: World, messages: list[Plain], record: Record, *, many: bool, twins: bool, **there: str
) -> None:
    """Add *messages* one by one or many at once, then what waits, and communities; record what became of each."""
    do, added, sent = (api.twin if twins else api), [], []
    with world.counted(sent):
        for place in range(0, len(messages), MANY if many else 1):
            world.tick += 1
            if many:
                added += do("add_many", messages[place : place + MANY], **there)
            else:
                added.append(attempt(functools.partial(do, "add", **messages[place], **there)))
        world.tick += 50
        added += do("resume", **there)
    world.tick += 1
    with world.counted(sent):
        added.append(do("refresh_communities", **there))
    record.put("added", map(line, added))
    record.digests["commands (reads, writes)"] = dict(zip(("ingest", "communities"), sent, strict=True))


def put_prompts(model: ScriptedChat, record: Record) -> None:
    """Record what the model was asked: how often, with which data, in which prose."""
    record.digests["model calls"] = dict(sorted(model.calls.items()))
    for kind, texts in (("data", model.data), ("prose", model.prose)):
        for name in sorted(texts):
            record.put(f"prompts/{name} {kind}", sorted(texts[name]))


def ask(
    api: Api, world: World, texts: list[str], names: list[str], record: Record, *, full: bool, **there: str
) -> None:
    """Record what is found for *texts* and about *names*."""
    found: Plain = {}
    sent: list[list[int]] = []
    for place, text in enumerate(texts):
        with world.counted(sent):
            found[f"{place} search"] = api("search", text, **there)
        for tokens in (150, 700, 2000) if full else (700,):
            found[f"{place} context {tokens}"] = api("context", text, max_tokens=tokens, **there)
    some = texts[:: max(1, len(texts) // 5)][: 5 if full else 2]
    near = {"center": names[0], "recipe": {"rerank": [{"by": "distance"}]}}
    hows: dict[str, Plain] = {
        "as_of": THEN, "believed_at": BELIEVED, "during": DURING, "both": {**THEN, **BELIEVED}, "center": near,
        "unreviewed": {"unreviewed": True}, "thread": {"thread": "t1"}, "limit": {"limit": 3}, "explain": {"explain": True},
        "speaker": {"where": {"speaker": names[0]}}, "or": {"where": {"$or": [{"type": "Place"}, {"trust": {"$lt": 0.5}}]}},
        "not": {"where": {"$not": {"thread": "t1"}, "kind": "message"}},
        **{f"recipe {name}": {"recipe": recipe} for name, recipe in RECIPES.items()},
    }  # fmt: skip
    for place, text in enumerate(some):
        one = [api("search", text, **there), api("context", text, max_tokens=700, **there)]
        twin = [api.twin("search", text, **there), api.twin("context", text, max_tokens=700, **there)]
        found[f"{place} twin is the same"] = list(map(line, twin)) == list(map(line, one))
        found[f"{place} context then"] = api("context", text, max_tokens=700, **THEN, **there)
        for template in ("zep", "xml", "json", "zeph"):
            found[f"{place} template {template}"] = api("context", text, template=template, max_tokens=700, **there)
    for place, name in enumerate(names if full else names[:2]):
        for verb in ("facts_about", "history", "timeline", "around", "card", "similar"):
            found[f"{place} {verb}"] = api(verb, name, **there)
        for how, given in {"as_of": THEN, "during": DURING, "believed_at": BELIEVED}.items():
            found[f"{place} facts_about {how}"] = api("facts_about", name, **given, **there)
        found[f"{place} history lives in"] = api("history", name, "lives in", **BELIEVED, **there)
        found[f"{place} around then"] = api("around", name, 1, limit=20, **THEN, **there)
        found[f"{place} evolution"] = [
            api("evolution", each.id, **there) for each in api("history", name, limit=2, **there)
        ]
    found["changes"] = api("changes", "2026-03-14T09:00:00+00:00", **there)
    found["changes-for-a-while"] = api("changes", "2026-03-14T09:05:00+00:00", "2026-03-14T09:08:00+00:00", **there)
    for verb in ("conflicts", "reviews", "predicates", "entities", "episodes", "stats", "communities", "spent"):
        found[verb] = api(verb, **there)
    found["like"], found["failures"] = api("entities", like="ber", **there), api("episodes", status="failed", **there)
    found["community"] = [api("community", each.name, **there) for each in api("communities", limit=2, **there)]
    for how, given in hows.items():
        for place, text in enumerate(some):
            found[f"{place} search {how}"] = api("search", text, **given, **there)
    record.put_each("reads", found)
    record.digests["commands of searches"] = " ".join(f"{reads}+{writes}" for reads, writes in sent)


def keep_up(api: Api, world: World, record: Record, namespace: str) -> None:
    """Record what deciding, reading again, evicting, forgetting and carrying to another namespace do."""
    there, found = {"namespace": namespace}, dict[str, Any]()

    def do(name: str, verb: str, *given: Any, **named: Any) -> Any:
        world.tick += 1
        found[name] = attempt(functools.partial(api, verb, *given, **named, **there))
        return found[name]

    for choice, review in zip(("accept", "reject", "edit"), api("reviews", limit=3, **there), strict=False):
        do(choice, "decide", review.id, choice, by="Eve", **({"valid_at": "2022-12"} if choice == "edit" else {}))
    for review in do("decided", "reviews", decided=True)[:1]:
        do("undo", "undo", review.id, by="Eve", reason="by the script")
    do("correct", "correct_predicate", "LIKES", canonical="ENJOYS")
    later = [{**each, "at": each["at"] + timedelta(days=300), "source_id": None} for each in story(20)[4:16]]
    do("estimate", "estimate", later)
    do("save", "save", later[:6])
    do("resume", "resume")
    do("retry", "retry")
    do("deepen", "deepen", "thorough", limit=4)
    do("evict", "evict", expired_days=0.01, orphans=True, expired_episodes=True)
    do("evict-some", "evict", max_entities=20)
    do("forget-dry", "forget", entity="Ann", dry_run=True)
    do("forget-thread", "forget", thread="t3")
    do("forget-speaker", "forget", speaker="Dora")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.jsonl"
        api("export", path, **there)
        record.put("export", sorted(line(json.loads(each)) for each in path.read_text("utf-8").splitlines()[1:]))
        found["import"] = api("import_", path, namespace=f"{namespace}-2")
    record.put_each("upkeep", found)
    for name in (namespace, f"{namespace}-2"):
        for section, lines in dumped(world.path, name).items():
            record.put(f"{'graph after upkeep' if name == namespace else 'graph of import'}/{section}", lines)


class Run:
    """One run: a server of its own, and what is found there."""

    def __init__(self, folder: Path, home: Path, runner: asyncio.Runner) -> None:
        self.world, self._folder, self._runner = World(), folder, runner
        self.at = {"data_dir": home, "fsync": "everysec", "idle_seconds": 5.0}

    def graph(
        self, name: str, settings: Plain, messages: list[Plain], texts: list[str], names: list[str] | None = None, *,
        many: bool, full: bool, model: Any = "offline", embeddings: Any = "offline", twins: bool = False, upkeep: bool = False,
    ) -> Plain:  # fmt: skip
        """Read *messages* and ask *texts*; without *names*, about the entities that were seen last."""
        record, self.world.tick = Record(self._folder, name), 0
        api = Api(self._runner, {**self.at, **settings}, model=model, embeddings=embeddings)
        try:
            ingest(api, self.world, messages, record, many=many, twins=twins, namespace=name)
            if isinstance(model, ScriptedChat):
                put_prompts(model, record)
            for section, lines in dumped(self.world.path, name).items():
                record.put(f"graph/{section}", lines)
            names = names or [each.name for each in api("entities", limit=6, namespace=name)]
            ask(api, self.world, texts, names, record, full=full, namespace=name)
            if upkeep:
                keep_up(api, self.world, record, name)
        finally:
            api.close()
        print(f"{name}: {time.perf_counter() - BEGAN:.0f} s", file=sys.stderr, flush=True)
        return record.digests

    def scripted(self, prefix: str, count: int, *, quick: bool) -> Plain:
        """Read the story by each plan, one by one and many at once, by both forms of each verb."""
        result: Plain = {}
        for number, (plan, many) in enumerate((plan, many) for plan in STRATEGY for many in (False, True)):
            settings = {
                **SCRIPTED, "plan": plan, "conflict_strategy": STRATEGY[plan], "note_linking": plan == "thorough",
                "community_refresh_interval": 50 if plan == "standard" else 0,
                "surprise_threshold": 0.4 if plan == "economy" else 0.0,
            }  # fmt: skip
            full = number in (2, 5)
            name = f"{prefix}-{plan}-{'many' if many else 'add'}"
            texts = questions()[:: 1 if full and not quick else 6]
            how = {"many": many, "full": full and not quick, "upkeep": full, "twins": (plan == "standard") != many}
            read = {"model": ScriptedChat(), "embeddings": HashEmbeddings()}
            result[name] = self.graph(name, settings, story(count), texts, NAMES, **how, **read)
        return result

    def offline(self, data: Path) -> Plain:
        """Read by rules: a story with changes and corrections, turns of LoCoMo, and turns of BEAM."""
        beam = data / "beam-dev" / "1"
        probing = json.loads((beam / "probing_questions" / "probing_questions.json").read_text("utf-8"))
        asked = [each["question"] for several in probing.values() for each in several]
        result = {
            "offline-story": self.graph(
                "offline-story", {}, offline_story(), OFFLINE_QUESTIONS, OFFLINE_NAMES, many=False, full=True
            ),
            "beam-1": self.graph("beam-1", {}, _turns(beam / "chat.json", 40), asked, many=True, full=True),
        }
        for name, many in (("locomo-dev", False), ("locomo-more", True)):
            path = data / name / f"{name}.json"
            asked = [each["question"] for each in json.loads(path.read_text("utf-8"))[0]["qa"]][:160:4]
            result[name] = self.graph(name, {}, _turns(path, 250), asked, many=many, full=True)
        return result


def _turns(path: Path, count: int) -> list[Plain]:
    return [dict(each) for each in list(Api.read(path))[:count]]


def run(data: Path, folder: Path, modes: list[str]) -> Plain:
    """Return all that is to be compared, of a server of its own, which is gone in the end."""
    with tempfile.TemporaryDirectory(prefix="golden-", ignore_cleanup_errors=True) as home, asyncio.Runner() as runner:
        one = Run(folder, Path(home), runner)
        result: Plain = {"api": snapshot(Api(runner, one.at, model="offline", embeddings=HashEmbeddings()))}
        if "quick" in modes:
            result["quick"] = one.scripted("quick", 50, quick=True)
        if "scripted" in modes:
            result["scripted"] = one.scripted("scripted", 230, quick=False)
        if "offline" in modes:
            result["offline"] = one.offline(data)
        with suppress(redis.ConnectionError, FileNotFoundError):
            redis.Redis(unix_socket_path=one.world.path).shutdown(nosave=True)
    return result


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where *new* differs from *old*."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from differences(old.get(key), new.get(key), f"{path} > {key}" if path else key)
    elif old != new:
        yield path, old, new


def shown(path: str, old: Path, new: Path) -> Iterator[str]:
    """Yield some pieces that only one side has, of the lines that *path* has the digest of."""
    _, name, section, *what = path.split(" > ")
    sides: list[list[str]] = []
    for folder in (old, new):
        if not (folder / name / f"{section}.txt").exists():
            return
        lines = (folder / name / f"{section}.txt").read_text("utf-8", "surrogatepass").splitlines()
        if what:
            lines = [each for each in lines if re.match(rf"(\d+ )?{re.escape(what[0])}\t", each)]
        heads = [each.split("\t")[0] if what else "" if "prompts/" in section else _head(each) for each in lines]
        pieces = [re.split(r"(?<=[,}\]\t]) |\\n", each) for each in lines]
        sides.append(
            [f"{head} ... {piece}".rstrip(",]}") for head, own in zip(heads, pieces, strict=True) for piece in own]
        )
    if set(sides[0]) == set(sides[1]):
        yield "      the same pieces in another order, or not as often"
    for mark, own, others in (("-", sides[0], set(sides[1])), ("+", sides[1], set(sides[0]))):
        yield from [f"      {mark} {each[:300]}" for each in own if each not in others][:6]


def _head(text: str) -> str:
    """Return by what a line is known: the id in it, or how it begins."""
    found = re.search(r'"(?:id|episode)": "([\w-]+)"', text)
    return f"{text.partition(' ')[0][:12]} {found[1][:8]}" if found else text[:60]


def main() -> None:
    """Record, or compare and tell what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--full", type=Path, help="write all that is digested to this folder")
    parser.add_argument("--against", type=Path, help="the --full folder of the old code: show the lines that differ")
    parser.add_argument("--ignore", default="^$", help="a pattern of paths that may differ, such as 'verdicts data'")
    parser.add_argument("--api", action="store_true", help="list what differs of the public API")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("scripted", "offline"))
    given = parser.parse_args()
    modes = ["quick"] if given.quick else [given.only] if given.only else ["quick", "scripted", "offline"]
    if "offline" in modes and not given.data.is_dir():
        parser.error(f"{given.data} is no folder: name that of the evaluation data by --data")
    with tempfile.TemporaryDirectory() as spare:
        folder = given.full or Path(spare)
        result = json.loads(json.dumps(run(given.data, folder, modes)))
        if given.what == "record":
            given.file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            return
        old = json.loads(given.file.read_text("utf-8"))
        api = list(differences(old["api"], result["api"], "api"))
        for path, before, after in api if given.api else ():
            print(f"{path}: {before} -> {after}")
        sides = [{mode: each[mode] for mode in modes} for each in (old, result)]
        found = [each for each in differences(*sides) if not re.search(given.ignore, each[0])]
        for path, before, after in found:
            print(f"DIFFERS {path}: {before} -> {after}"[:400])
            if given.against:
                print(*shown(path, given.against, folder), sep="\n")
    print(f"{len(api)} differences of the API, {len(found)} of behaviour")
    sys.exit(bool(found))


BEGAN = time.perf_counter()
if __name__ == "__main__":
    logging.disable(logging.ERROR)
    for variable in [
        each for each in os.environ if each.startswith(("KG_MEMORY_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_"))
    ]:
        del os.environ[variable]
    main()
