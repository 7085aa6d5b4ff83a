"""The processes of a deployment on this machine: a scripted model, workers, and the HTTP server."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from kg_memory import Settings
from tests.chat_server import chat_server

MODELS = {"api_key": "k", "model": "scripted", "embedding_model": "hash", "merge_threshold": 0.98, "ask_threshold": 0.6}


@contextmanager
def scripted_model(latency: float) -> Iterator[str]:
    """Serve a model with *latency* seconds for each answer in a separate process, and yield its base URL."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve_model, args=(theirs, latency), daemon=True)
    process.start()
    theirs.close()  # so that recv raises if the process ends before it serves
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve_model(told: Connection, latency: float) -> None:
    with chat_server(lambda name, _: None if name == "embeddings" else time.sleep(latency)) as url:
        told.send(url)
        while True:
            time.sleep(3600)


class Deployment:
    """Processes on the database at *url* with the model at the URL *model*; *folder* has their logs."""

    def __init__(self, url: str, model: str, folder: Path, **settings: Any) -> None:
        self.settings = Settings(url=url, base_url=model, **{**MODELS, **settings})
        named: Mapping[str, Any] = {"url": url, "base_url": model, **MODELS, **settings}
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KG_MEMORY_")},
            **{f"KG_MEMORY_{name.upper()}": str(value) for name, value in named.items()},
        }
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def worker(self, at_once: int = 4) -> subprocess.Popen[bytes]:
        return self._start("worker", "--at-once", str(at_once))

    def server(self, port: int) -> subprocess.Popen[bytes]:
        """Start an HTTP server that only saves."""
        return self._start("serve", "--no-read", "--port", str(port), "--rate", "100000")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{words[0]} {len(self._started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "kg_memory", *words], env=self._environment, stdout=log, stderr=log
            )
        self._started.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.kill()
            process.wait()
