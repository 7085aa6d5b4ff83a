"""Serve a GGUF model by OpenAI's protocol on 127.0.0.1, on one thread: ``serve_chat.py MODEL.gguf PORT``."""

import sys
import threading

import xllamacpp

CONTEXT = 4096


def main(path: str, port: str) -> None:
    arguments = xllamacpp.CommonParams()
    arguments.model.path = path
    arguments.n_ctx = CONTEXT
    arguments.n_parallel = 1
    arguments.warmup = False
    arguments.hostnames = ["127.0.0.1"]
    arguments.port = int(port)
    # Two threads on a busy machine wait for each other: fifty times slower.
    arguments.cpuparams.n_threads = arguments.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(arguments)
    threading.Event().wait()
    del server


if __name__ == "__main__":
    main(*sys.argv[1:])
