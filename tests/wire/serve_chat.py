"""Serve a GGUF model by OpenAI's protocol on 127.0.0.1, on one thread: ``serve_chat.py MODEL.gguf PORT``."""

import sys
import threading

import xllamacpp

CONTEXT = 4096


def main(path: str, port: str) -> None:
    given = xllamacpp.CommonParams()
    given.model.path = path
    given.n_ctx = CONTEXT
    given.n_parallel = 1
    given.warmup = False
    given.hostnames = ["127.0.0.1"]
    given.port = int(port)
    # Two threads on a busy machine wait for each other: fifty times slower.
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(given)
    threading.Event().wait()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
