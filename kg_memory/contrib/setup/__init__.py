"""The commands ``init``, ``setup``, ``doctor`` and ``completion``, which configure and check kg-memory."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

INIT_EPILOG = """\
All commands read .env in the current folder, or the file in KG_MEMORY_ENV_FILE, if only you can read it. Environment
variables and options override it. Your key is not shown as you type; with --yes it is read from the environment.
  kg-memory init --yes --base-url http://localhost:11434/v1 --model qwen3 --database falkor://db:6379
"""
COMPLETION_EPILOG = """\
examples:
  source <(kg-memory completion bash)               in ~/.bashrc
  kg-memory completion zsh > ~/.zfunc/_kg-memory    with fpath+=~/.zfunc in ~/.zshrc
"""
_INIT, _DOCTOR = "kg_memory.contrib.setup.init", "kg_memory.contrib.setup.doctor"


def add_commands(command: Callable[..., ArgumentParser]) -> None:
    """Add the commands ``init``, ``setup``, ``doctor`` and ``completion`` to the command line.

    *command* is the function that adds one command and returns its argument parser.
    """
    about = "ask for model, database and namespace, test them, and write .env"
    init = command("init", f"{_INIT}:init", about, INIT_EPILOG, group="set up")
    init.add_argument("--yes", action="store_true", help="do not ask")
    init.add_argument("--database", metavar="URL", help="embedded (default), or falkor://[user:password@]host:port")
    about = "a server with OpenAI's API, such as http://localhost:11434/v1"
    init.add_argument("--base-url", metavar="URL", help=about)
    init.add_argument("--force", action="store_true", help="with --yes: write even if .env exists or a check fails")
    about = "download FalkorDB for the embedded database (once, about 50 MB)"
    command("setup", f"{_DOCTOR}:setup", about, group="set up")
    doctor = command("doctor", f"{_DOCTOR}:doctor", "check the installation, and say how to fix it", group="set up")
    about = "before the checks, download FalkorDB if it is missing, and make files private"
    doctor.add_argument("--fix", action="store_true", help=about)
    doctor.add_argument("--ask", action="store_true", help="ask the models too, one short question each")
    about = "instead: try on this FalkorDB, in a scratch graph, all that kg-memory depends on"
    doctor.add_argument("--server", metavar="URL", help=about)
    about = "print the completion script of a shell"
    completion = command("completion", f"{_DOCTOR}:completion", about, COMPLETION_EPILOG, group="set up")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
