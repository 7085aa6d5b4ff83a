"""Many short episodes from several writers under random faults: python -m tests.faults.soak --episodes 10000 --seed 1.

Writers are killed, the server is killed, connections are cut at any command, models fail. In the end, waiting
episodes are resumed and failed ones retried; then every message and every entity must be stored once and whole.
"""

import argparse
import multiprocessing
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

from kg_memory import GraphMemory, Settings
from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.errors import AnswerError, DatabaseError, ModelError, ModelUnavailable
from kg_memory.falkor.connect import Database, graph_key
from tests.faults.proxy import How, Plan, Proxy
from tests.faults.whole import flaws
from tests.scripted import At, HashEmbeddings, Rule, Scripted

WRITERS = 3
TENANT = 50
"""Episodes a tenant."""
WRITER_DIES, SERVER_DIES, LOOKED = 25, 60, 50
"""After how many episodes, on average, a writer is killed, the server is killed, and a tenant is checked."""
CUT, MODEL_FAILS = 1 / 150, 1 / 50
"""The probability that a command is cut off, and that a model call fails."""
HOWS: tuple[How, ...] = ("unsent", "half sent", "unanswered", "half answered")
FIRST, LAST = ("Ann", "Bob", "Cid", "Dora", "Eve", "Finn"), ("Oslo", "Paris", "Rome", "Bergen", "Kyoto")


def message(number: int) -> dict[str, Any]:
    """Return message *number*: somebody lives somewhere, and knows somebody."""
    draw = Random(number)
    one, other = draw.sample(FIRST, 2)
    return {
        "content": f"{one} lives in {draw.choice(LAST)} and knows {other}, {number}.",
        "at": f"2001-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}",
        "source_id": f"m{number}",
        "thread": "t",
        "namespace": f"tenant {number // TENANT}",
    }


class CutNowAndThen(Plan):
    """Cuts commands off at random."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._draw = Random(seed)
        self.cuts = 0
        self.on = True

    def arrive(self, name: str) -> How | None:
        if not self.on or name == "HELLO" or self._draw.random() >= CUT:
            return None
        self.cuts += 1
        return self._draw.choice(HOWS)


class Moody(Scripted):
    """A model that is sometimes unavailable, and sometimes gives invalid answers."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._draw = Random(seed)

    def told(self, prompt: str, fields: Any) -> Any:
        drawn = self._draw.random()
        if drawn < MODEL_FAILS:
            raise ModelUnavailable("away") if drawn < MODEL_FAILS / 2 else AnswerError("nonsense")
        rule: Rule = super().told
        return rule(prompt, fields)


def opened(url: str, model: Scripted) -> GraphMemory:
    settings = Settings(url=url, merge_threshold=0.98, ask_threshold=0.6)
    return GraphMemory(settings, model=model, embeddings=HashEmbeddings())


def write(url: str, journal: Path, numbers: range, seed: int) -> None:
    """Add the messages of *numbers* that *journal* does not list, and list each as soon as it is accepted."""
    listed = set(journal.read_text().split()) if journal.exists() else set()
    with journal.open("ab", buffering=0) as told, opened(url, Moody(seed)) as memory:
        for number in numbers:
            if str(number) not in listed:
                while not accepted(memory, number):
                    time.sleep(0.01)
                told.write(f"{number}\n".encode())


def accepted(memory: GraphMemory, number: int) -> bool:
    """Return whether message *number* is stored: read, or waiting to be read."""
    try:
        memory.add(**message(number))
    except ModelError:
        return True
    except DatabaseError:
        return False
    return True


@dataclass
class Soak:
    """One run on the server of *folder*."""

    folder: Path
    episodes: int
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    """The number of events of each kind."""

    def run(self, say: Callable[[str], None] = lambda _: None) -> list[str]:
        """Return what is wrong in the end: an empty list if all is well."""
        began = time.monotonic()
        self._plan = CutNowAndThen(self.seed)
        self._draw = Random(self.seed)
        self._server = embedded.join(self.folder / "db", binaries.download_missing(), idle_seconds=0)
        with Proxy(self._plan, self._server.socket) as proxy:
            wrong = self._storm(proxy.url, say)
            self._plan.on = False
            self.done["seconds of faults"] = int(time.monotonic() - began)
            wrong += self._finish()
        self.done["cut connections"] = self._plan.cuts
        self.done["seconds in all"] = int(time.monotonic() - began)
        self._server.close()
        return wrong

    def _storm(self, url: str, say: Callable[[str], None]) -> list[str]:
        """Inject faults until all writers are done; return every half-written state that was seen."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["kg_memory.memory.memory", "kg_memory.ingestion.graph", "tests.scripted"])
        writers = [self._writer(context, url, place) for place in range(WRITERS)]
        due = {"killed writers": self._after(WRITER_DIES), "killed servers": self._after(SERVER_DIES), "looks": LOOKED}
        wrong: list[str] = []
        while any(writer.is_alive() for writer in writers):
            time.sleep(0.02)
            journals = [self._journal(place) for place in range(WRITERS) if self._journal(place).exists()]
            listed = sum(len(journal.read_bytes().split()) for journal in journals)
            if listed >= due["killed writers"]:
                place = self._draw.randrange(WRITERS)
                if writers[place].is_alive():
                    self._kill(writers[place])
                    writers[place] = self._writer(context, url, place)
                due["killed writers"] = listed + self._after(WRITER_DIES)
            if listed >= due["killed servers"]:
                self._kill_server()
                due["killed servers"] = listed + self._after(SERVER_DIES)
            if listed >= due["looks"]:
                with suppress(DatabaseError):
                    wrong += self._seen(self._draw.randrange(1 + listed // TENANT))
                due["looks"] = listed + LOOKED
                say(f"{listed} of {self.episodes}: {dict(self.done)}")
        return wrong + [
            f"writer {place} ended with {each.exitcode}" for place, each in enumerate(writers) if each.exitcode
        ]

    def _writer(self, context: ForkServerContext, url: str, place: int) -> BaseProcess:
        numbers = range(place, self.episodes, WRITERS)
        seed = self._draw.randrange(10**9)
        writer = context.Process(target=write, args=(url, self._journal(place), numbers, seed))
        writer.start()
        return writer

    def _kill(self, writer: BaseProcess) -> None:
        writer.kill()
        writer.join()
        self.done["killed writers"] += 1

    def _kill_server(self) -> None:
        os.kill(int((self.folder / "db" / "run" / "pid").read_text()), signal.SIGKILL)
        self._server.close()
        self._server = embedded.join(self.folder / "db", binaries.download_missing(), idle_seconds=0)
        self.done["killed servers"] += 1

    def _journal(self, place: int) -> Path:
        return self.folder / f"journal {place}"

    def _after(self, mean: float) -> float:
        return self._draw.expovariate(1 / mean)

    def _seen(self, tenant: int) -> list[str]:
        """Check the graph of a tenant while others write."""
        self.done["looks"] += 1
        database = Database(At(self._server))
        try:
            found = flaws(lambda cypher: database.query(graph_key(f"tenant {tenant}"), cypher, {}, write=False))
        finally:
            database.close()
        return [f"tenant {tenant} had {flaw}" for flaw in found]

    def _finish(self) -> list[str]:
        """Resume and retry until nothing waits; return the differences from the expected state."""
        wrong: list[str] = []
        with opened(self._server.url, Scripted()) as memory:
            for tenant in range(-(-self.episodes // TENANT)):
                name = f"tenant {tenant}"
                self.done["waited"] += len(memory.episodes.resume(namespace=name))
                self.done["failed"] += len(memory.episodes.retry(namespace=name))
                wrong += self._seen(tenant) + [f"{name}: {each}" for each in self._missed(memory, tenant)]
        return wrong

    def _missed(self, memory: GraphMemory, tenant: int) -> list[str]:
        """Return the missing and the surplus episodes, entities and facts of *tenant*."""
        numbers = range(tenant * TENANT, min(self.episodes, (tenant + 1) * TENANT))
        said = [message(number) for number in numbers]
        namespace = f"tenant {tenant}"
        episodes = memory.episodes.list(limit=10**6, namespace=namespace)
        stored = [(each.source_id, each.content, str(each.status)) for each in episodes]
        people = {word.strip(",") for each in said for word in each["content"].split() if word.strip(",").istitle()}
        told = {tuple(each["content"].split()[place].strip(",") for place in (0, 3)) for each in said}
        told |= {tuple(each["content"].split()[place].strip(",") for place in (0, 6)) for each in said}
        found = [each.name for each in memory.entities.list(limit=10**6, namespace=namespace)]
        checks = {
            "episodes": (sorted(stored), sorted((each["source_id"], each["content"], "done") for each in said)),
            "entities": (sorted(found), sorted(people)),
            "facts": (memory.stats(namespace=namespace).facts, len(told)),
        }
        return [f"{name} are {there}, not {due}" for name, (there, due) in checks.items() if there != due]


def main() -> int:
    """Run one soak and print what happened in it as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    say = partial(print, flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        soak = Soak(Path(folder), given.episodes, given.seed)
        wrong = soak.run(say)
    rows = {"episodes": given.episodes, "seed": given.seed, **soak.done, "wrong": len(wrong)}
    say("\n".join(f"| {name} | {count} |" for name, count in rows.items()), *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
