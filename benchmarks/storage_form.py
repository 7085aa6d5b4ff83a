"""Compare facts as relationships and as nodes: the same data in three storage forms.

    python benchmarks/storage_form.py [--facts 50000] [--quick] [--out FILE.json]

R   (:Entity)-[:FACT]->(:Entity), one relationship per belief, evidence as a list, words in a full-text index
N1  (:Entity)-[:SUBJECT_OF]->(:Fact)-[:OBJECT_IS]->(:Entity), one node per belief, words as postings
N2  the same with one node per fact, and (:Fact)-[:HELD]->(:Belief) for each belief

Prints a table and writes flat figures such as ``N2_bm25_p50_ms``. Times are in milliseconds: median, 95th
percentile, and the server's mean processor time, which varies less on a busy machine. Runs on Linux only.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from storage_form_queries import DIMENSION, FORMS, Form

from kg_memory.contrib.embedded import binaries
from kg_memory.temporal.interval import OPEN_END

Row = dict[str, Any]
Vector = np.ndarray[Any, np.dtype[Any]]

START, NOW, DAY = 1_577_836_800_000_000, 1_767_225_600_000_000, 86_400_000_000  # 2020 to 2026, in microseconds
# A server that rebuilds its vector index accepts connections, but does not answer for seconds.
PATIENT: Row = {"socket_timeout": None, "retry": Retry(NoBackoff(), 0)}
WARM = 20


class Data:
    """Synthetic facts: Zipf in-degree, clustered vectors, Zipf words; a fifth of the facts have an earlier period."""

    def __init__(self, facts: int, seed: int = 7) -> None:
        self.random, rng = random.Random(seed), np.random.default_rng(seed)
        entities, episodes = max(facts // 5, 50), max(facts * 2 // 5, 50)
        self.entities = [{"id": f"e{i}", "name": f"entity {i}"} for i in range(entities)]
        self.episodes: list[Row] = [
            {"id": f"x{i}", "at": START + i * (NOW - START) // episodes, "content": f"turn {i} " + "word " * 20}
            for i in range(episodes)
        ]
        centres = rng.standard_normal((max(facts // 50, 1), DIMENSION))
        vectors = centres[rng.integers(len(centres), size=facts)] + 0.9 * rng.standard_normal((facts, DIMENSION))
        self.vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        objects = rng.choice(entities, facts, p=_zipf(entities, 0, 1.0))
        subjects = (objects + 1 + rng.choice(entities - 1, facts, p=_zipf(entities - 1, 0, 0.6))) % entities
        # Words without function words: the most common one occurs in 5% of the sentences.
        words = rng.choice(20_000, (facts, 14), p=_zipf(20_000, 30, 1.0))
        self.facts = [self._fact(i, subjects[i], objects[i], words[i]) for i in range(facts)]
        self.beliefs = [belief for fact in self.facts for belief in self._beliefs(fact)]

    def _fact(self, i: int, subject: int, object_: int, words: Vector) -> Row:
        terms = [f"w{word}" for word in dict.fromkeys(words.tolist())][: self.random.randint(7, 12)]
        evidence = self.random.sample(self.episodes, self.random.choice((1, 1, 1, 2, 3)))
        return {
            "fact": f"f{i}",
            "subject": f"e{subject}",
            "object": f"e{object_}",
            "predicate": f"P{i % 40}",
            "sentence": " ".join(terms),
            "terms": terms,
            "n": len(terms),
            "embedding": self.vectors[i],
            "episodes": [each["id"] for each in evidence],
            "at": min(each["at"] for each in evidence),
        }

    def _beliefs(self, fact: Row) -> Iterator[Row]:
        """Yield the beliefs of a fact: mostly one open period.

        A tenth of the facts have two periods, another tenth a closed belief and its end.
        """
        at, number = fact["at"], int(fact["fact"][1:])
        later = min(at + 200 * DAY, NOW - DAY)
        periods = [(at - DAY, OPEN_END, at, OPEN_END)]
        if number % 10 == 3:
            periods = [(at - DAY, (at + later) // 2, at, OPEN_END), (later, OPEN_END, later, OPEN_END)]
        elif number % 10 == 6:
            periods = [(at - DAY, OPEN_END, at, later), (at - DAY, later, later, OPEN_END)]
        for i, period in enumerate(periods):
            names = ("valid_at", "invalid_at", "created_at", "expired_at")
            yield fact | {"id": f"b{number}-{i}"} | dict(zip(names, period, strict=True))

    def rows(self, what: str, form: str) -> Iterable[Row]:
        """Return the rows that load *what* ("entities", "facts", "terms" ...) into the storage form called *form*."""
        whole: dict[str, list[Row]] = {"entities": self.entities, "episodes": self.episodes, "facts": self.facts}
        if what in whole:
            return whole[what]
        if what == "beliefs":
            keys = ("id", "fact", "valid_at", "invalid_at", "created_at", "expired_at")
            return self.beliefs if form != "N2" else [{key: row[key] for key in keys} for row in self.beliefs]
        nodes, key = (self.facts, "fact") if form == "N2" else (self.beliefs, "id")
        found: dict[str, list[str]] = defaultdict(list)
        for row in nodes:
            for name in row["episodes" if what == "evidence" else "terms"]:
                found[name].append(row[key])
        if what == "terms":
            return [{"s": name} for name in found]
        return [{"episode" if what == "evidence" else "s": name, "facts": ids} for name, ids in found.items()]

    def questions(self, runs: int) -> Iterator[dict[str, Row]]:
        """Yield the parameters of each read, equal for all forms; entities occur as often as facts name them."""
        pick = random.Random(11)
        common = {"at": NOW, "seen": NOW, "open": OPEN_END, "count": len(self.facts), "average": 9.5}
        for _ in range(runs):
            fact, *others = pick.sample(self.facts, 4)
            past = pick.randrange(START + 200 * DAY, NOW)
            noise = np.asarray([pick.gauss(0, 0.03) for _ in range(DIMENSION)], dtype=np.float32)
            words = common | {"terms": pick.sample(fact["terms"], 4) + [each["terms"][0] for each in others]}
            yield {
                "entity_now": common | {"entity": pick.choice((fact["subject"], fact["object"]))},
                "entity_then": common | {"entity": fact["object"], "at": past, "seen": past + 100 * DAY},
                "vector": common | {"vector": fact["embedding"] + noise},
                "bm25": words,
                "bm25_exact": words,
                "hops": common | {"entities": [each["subject"] for each in others]},
                "pair": common | {"subject": fact["subject"], "object": fact["object"]},
            }

    def messages(self, runs: int) -> Iterator[Row]:
        """Yield the parameters of each write: an episode, three new facts, and a belief to close."""
        pick, rng = random.Random(13), np.random.default_rng(13)
        open_ = [row for row in self.beliefs if row["id"].endswith("-0") and int(row["fact"][1:]) % 10 not in (3, 6)]
        for i, closed in enumerate(pick.sample(open_, runs)):
            at = NOW + i
            new = []
            for j, like in enumerate(pick.sample(self.beliefs, 3)):
                vector = like["embedding"] + rng.normal(0, 0.04, DIMENSION)
                period = {"valid_at": at, "invalid_at": OPEN_END, "created_at": at, "expired_at": OPEN_END}
                new.append(like | period | {"id": f"new{i}-{j}", "fact": f"g{i}-{j}", "embedding": vector})
            yield {
                "episode": f"y{i}",
                "content": "a new turn " * 8,
                "at": at,
                "open": OPEN_END,
                "facts": new,
                "closed": closed["id"],
                "belief": f"{closed['id']}-end",
            }


def _zipf(count: int, shift: int, power: float) -> Vector:
    weights: Vector = 1 / (np.arange(1, count + 1) + shift) ** power
    shares: Vector = weights / weights.sum()
    return shares


def literal(value: Any) -> str:
    """Return *value* as a Cypher literal; vectors have six digits, the precision of a float32."""
    if isinstance(value, np.ndarray):
        return "[" + ",".join([f"{number:.6g}" for number in value.tolist()]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([f"{key}:{literal(each)}" for key, each in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([literal(each) for each in value]) + "]"
    return json.dumps(value)


class Server:
    """A redis-server with FalkorDB in a folder of its own, on a Unix socket."""

    def __init__(self, redis_server: Path, module: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kg-form-"))
        self.socket = self.folder / "s"
        self.command = [
            str(redis_server),
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--dir",
            str(self.folder),
            "--save",
            "",
        ]
        self.command += ["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
        self.command += ["--logfile", str(self.folder / "log"), "--loadmodule", str(module)]
        self.start()

    def start(self) -> float:
        """Start the server; return the seconds until all indices work."""
        began = time.perf_counter()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        self.redis = redis.Redis(unix_socket_path=str(self.socket), decode_responses=True, **PATIENT)
        while not self._ready():
            if self.process.poll() is not None:
                raise SystemExit(f"redis-server stopped: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)
        return time.perf_counter() - began

    def _ready(self) -> bool:
        try:
            self.redis.ping()
            states = self.query("CALL db.indexes() YIELD status RETURN status", {}) if self.redis.exists("g") else []
        except (redis.ConnectionError, redis.ResponseError):  # BusyLoadingError is a ConnectionError
            return False
        return all(state == "OPERATIONAL" for (state,) in states)

    def query(self, text: str, params: Row, command: str = "GRAPH.RO_QUERY") -> list[Any]:
        head = "CYPHER " + " ".join(f"{key}={literal(value)}" for key, value in params.items()) + " " if params else ""
        answer: Any = self.redis.execute_command(command, "g", head + text)  # type: ignore[no-untyped-call]
        return answer[1] if len(answer) == 3 else []

    def write(self, text: str, params: Row) -> list[Any]:
        return self.query(text, params, "GRAPH.QUERY")

    def cpu_ms(self) -> float:
        """Return the processor time of all its threads since its start, in milliseconds."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def aof_mb(self) -> float:
        return sum(each.stat().st_size for each in (self.folder / "appendonlydir").iterdir()) / 2**20

    def rewrite(self) -> None:
        self.redis.bgrewriteaof()
        time.sleep(0.3)
        while self.redis.info("persistence")["aof_rewrite_in_progress"]:
            time.sleep(0.1)

    def stop(self) -> None:
        self.redis.close()
        self.process.terminate()
        self.process.wait()


@contextmanager
def _servers(count: int, redis_server: Path, module: Path) -> Iterator[list[Server]]:
    servers: list[Server] = []
    try:
        servers.extend(Server(redis_server, module) for _ in range(count))
        yield servers
    finally:
        for server in servers:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)


def load(server: Server, form: Form, data: Data) -> Row:
    """Fill the graph of *form* and restart its server; return times and sizes."""
    for index in form.indices:
        server.write(index, {})
    figures: Row = {"load_s": 0.0, "load_cpu_s": 0.0}
    for what, query in form.loads:
        began = time.perf_counter()
        rows = list(data.rows(what, form.name))
        for i in range(0, len(rows), 500):
            batch = [{key: value for key, value in row.items() if f"r.{key}" in query} for row in rows[i : i + 500]]
            server.write(query, {"rows": batch})
        figures[f"load_{what}_s"] = time.perf_counter() - began
        figures["load_s"] += figures[f"load_{what}_s"]
    figures |= {"load_cpu_s": server.cpu_ms() / 1000, "rss_mb": server.rss_mb(), "aof_mb": server.aof_mb()}
    server.rewrite()
    figures["rdb_mb"] = server.aof_mb()
    server.stop()
    figures["restart_s"] = server.start()
    return figures | {"restart_cpu_s": server.cpu_ms() / 1000, "rss_restarted_mb": server.rss_mb()}


@dataclass
class Trial:
    """A storage form on its own server, with the measurements so far."""

    form: Form
    server: Server
    figures: Row


def race(name: str, trials: list[Trial], texts: list[str], params: list[Row], command: str) -> list[list[set[str]]]:
    """Run the query *name* for each of *params* on all servers in turns, so that other load affects all alike.

    Returns the facts found by each form. The first `WARM` runs are not counted.
    """
    found: list[list[set[str]]] = [[] for _ in trials]
    times: list[list[float]] = [[] for _ in trials]
    used = [0.0 for _ in trials]
    for number, each in enumerate(params):
        if number == WARM:
            used = [trial.server.cpu_ms() for trial in trials]
        for i, (trial, text) in enumerate(zip(trials, texts, strict=True)):
            began = time.perf_counter()
            rows = trial.server.query(text, each, command)
            times[i].append((time.perf_counter() - began) * 1000)
            found[i].append({row[0] for row in rows})
    for i, trial in enumerate(trials):
        taken = times[i][WARM:]
        trial.figures[f"{name}_p50_ms"] = statistics.median(taken)
        trial.figures[f"{name}_p95_ms"] = statistics.quantiles(taken, n=20)[18]
        trial.figures[f"{name}_cpu_ms"] = (trial.server.cpu_ms() - used[i]) / len(taken)
        trial.figures[f"{name}_rows"] = statistics.mean(map(len, found[i][WARM:]))
        trial.figures[f"{name}_agrees"] = agreement(found[0], found[i])
    return found


def measure(trials: list[Trial], data: Data, runs: int) -> None:
    """Fill in the figures of all trials."""
    for trial in trials:
        trial.figures |= load(trial.server, trial.form, data)
        print(f"{trial.form.name} is loaded", flush=True)
    asked = list(data.questions(runs + WARM))
    for name in asked[0]:
        read = name.removesuffix("_now").removesuffix("_then")
        race(
            name, trials, [trial.form.reads[read] for trial in trials], [each[name] for each in asked], "GRAPH.RO_QUERY"
        )
    for trial in trials:
        trial.server.redis.config_set("appendfsync", "always")
    messages = list(data.messages(runs + WARM))
    race("write", trials, [trial.form.write for trial in trials], messages, "GRAPH.QUERY")
    episodes = [{"episode": each["id"]} for each in random.Random(17).sample(data.episodes, runs + WARM)]
    race("forget", trials, [trial.form.forget for trial in trials], episodes, "GRAPH.QUERY")
    for trial in trials:
        trial.figures["facts_left"], trial.figures["beliefs_left"] = trial.server.query(trial.form.count, {})[0]


def agreement(one: list[set[str]], other: list[set[str]]) -> float:
    """Return the mean overlap (0 to 1) of the facts that two forms found."""
    return statistics.mean(len(a & b) / len(a | b) if a | b else 1.0 for a, b in zip(one, other, strict=True))


def table(results: dict[str, Row]) -> str:
    """Return the figures as text: one line for each figure, one column for each form."""
    forms = list(results)
    lines = [f"{'':24}" + "".join(f"{form:>24}" for form in forms)]
    keys = dict.fromkeys(key for row in results.values() for key in row)
    for key in keys:
        if key.endswith(("_p95_ms", "_cpu_ms")):
            continue
        cells = [_cell(row, key) for row in results.values()]
        lines.append(f"{key:24}" + "".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)


def _cell(row: Row, key: str) -> str:
    if key not in row:
        return "-"
    if not key.endswith("_p50_ms"):
        return f"{row[key]:.2f}"
    return " / ".join(f"{row[key.replace('p50', part)]:.2f}" for part in ("p50", "p95", "cpu"))


def main() -> None:
    """Measure each form and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, default=50_000)
    parser.add_argument("--quick", action="store_true", help="2,000 facts and 30 runs")
    parser.add_argument("--forms", default="R,N1,N2")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--redis-server", type=Path)
    parser.add_argument("--module", type=Path)
    args = parser.parse_args()
    facts, runs = (2_000, 30) if args.quick else (args.facts, 200)
    found = binaries.find() if not (args.redis_server and args.module) else None
    paths = (found.redis_server, found.module) if found else (args.redis_server, args.module)
    forms = [form for form in FORMS if form.name in args.forms.split(",")]
    with _servers(len(forms), *paths) as servers:
        trials = [Trial(form, server, {}) for form, server in zip(forms, servers, strict=True)]
        measure(trials, Data(facts), runs)
    results = {trial.form.name: trial.figures for trial in trials}
    print(table(results))
    if args.out:
        flat = {"facts": facts, "runs": runs} | {
            f"{form}_{key}": value for form, row in results.items() for key, value in row.items()
        }
        args.out.write_text(json.dumps(flat, indent=2) + "\n")


if __name__ == "__main__":
    main()
