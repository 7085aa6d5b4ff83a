"""``kg-memory setup``, ``doctor`` and ``completion``: install FalkorDB, check the configuration, complete commands."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from kg_memory.cli import env_file
from kg_memory.cli.command import explain_no_namespace, namespace_of, open_to_look, open_without_models, settings_of
from kg_memory.cli.commands import make_parser
from kg_memory.cli.output import Screen
from kg_memory.contrib.sleeping import MOST_VECTORS, why_awake
from kg_memory.errors import KGMemoryError, MissingExtra
from kg_memory.falkor.connect import QUERY_PLANS, Database, graph_key
from kg_memory.falkor.queries.usage import SAVED_LATER
from kg_memory.llm.cross_encoders import ModelCrossEncoder
from kg_memory.llm.embeddings import vector_model_name
from kg_memory.memory import open as opening
from kg_memory.memory.open import local_host
from kg_memory.models.operations import Stats
from kg_memory.plugins import LocalHost
from kg_memory.settings import ENV_PREFIX, OFFLINE, Settings
from kg_memory.validation import hide_password

State = Literal["ok", "note", "wrong"]
_MOST_NAMED = 5
_SKEW = 60_000_000
"""The tolerated difference between clocks, in microseconds."""
_OPENMP = "libgomp.so.1"
_REPORT = (
    "whether it works or fails, report it at https://github.com/kg-memory/kg-memory/issues, with the output of "
    "`kg-memory setup` and `kg-memory doctor`; if the server does not start, with run/redis.log of the data folder"
)
_STYLES = {"ok": "green", "note": "yellow", "wrong": "red"}


@dataclass(frozen=True)
class Check:
    """The result of one check of ``kg-memory doctor``."""

    what: str
    state: State
    found: str
    mend: str = ""


def setup(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory setup``: download FalkorDB for the embedded database if it is not installed; return 0."""
    installed = local_host(settings_of(arguments), screen.note).fetch()
    if screen.as_json:
        screen.json(asdict(installed))
    else:
        screen.line(f"FalkorDB is ready, from {installed.origin}: {installed.module.parent}")
    return 0


def fetch_database(settings: Settings, screen: Screen) -> None:
    """Download FalkorDB if it is not installed, unless the settings name a server (`url`) or a folder (`bin_dir`)."""
    if settings.url is None and settings.bin_dir is None:
        local_host(settings, screen.note).fetch()


def completion(arguments: Namespace, _: Screen) -> int:
    """Run ``kg-memory completion``: print the shell script that completes commands; return 0.

    Errors: `MissingExtra` if shtab is not installed.
    """
    try:
        import shtab  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("completion needs shtab: pip install 'temporal-kg-memory[cli]'") from None
    script = shtab.complete(make_parser(commands_help="a command"), arguments.shell).rstrip()
    sys.stdout.write(f"{script}\n")
    return 0


def doctor(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory doctor``: check the settings, the database and the models, and print how to fix problems."""
    if arguments.server:
        from kg_memory.contrib.setup import probes  # noqa: PLC0415 - imports this module

        found = list(probes.check_server(arguments.server))
    else:
        if arguments.fix:
            _fix(settings_of(arguments), screen)
        found = [_check_settings_file(), *checks(settings_of(arguments), screen, ask=arguments.ask)]
    if not arguments.server and "namespace" in arguments and found[-1].state != "wrong":
        with open_to_look(arguments, screen) as memory:
            missing = explain_no_namespace(memory, arguments)
        found.append(Check("namespace", "note" if missing else "ok", namespace_of(arguments), missing))
    wrong = [check for check in found if check.state == "wrong"]
    if not screen.prints_json({"well": not wrong, "checks": [asdict(check) for check in found]}):
        print_checks(found, screen)
        screen.line("Some checks failed." if wrong else "All checks passed.", _STYLES["wrong" if wrong else "ok"])
    return bool(wrong)


def print_checks(found: Sequence[Check], screen: Screen) -> None:
    """Print the check results *found* as a table, followed by the remedies for all problems."""
    screen.values(found, {"check": "what", "state": "state", "found": "found"})
    for check in found:
        if check.mend:
            screen.line(f"{check.what}: {check.mend}", _STYLES[check.state])


def checks(settings: Settings, screen: Screen, *, ask: bool = False) -> Iterator[Check]:
    """Run all checks of *settings*, and yield their results: Python, database, data folder, and both models.

    *ask*: send one short question to each model.
    """
    yield Check("Python", "ok", f"{platform.python_version()} on {platform.platform()}")
    if sys.platform == "darwin":
        yield Check("macOS", "note", "kg-memory was never run here", _REPORT)
    if settings.url is None:
        host = local_host(settings, screen.note)
        yield attempt("FalkorDB binaries", lambda: _binaries(host))
        if sys.platform == "linux" and platform.machine() == "x86_64":
            yield _check_openmp()
        yield attempt("data folder", lambda: _check_folder(host.folder))
    yield attempt("language model", lambda: _check_model(settings, ask=ask))
    yield attempt("embedding model", lambda: _check_embeddings(settings, ask=ask))
    yield attempt("database", lambda: _check_database(settings, screen))


def _fix(settings: Settings, screen: Screen) -> None:
    file = env_file.path()
    if file.is_file() and not env_file.is_private(file):
        file.chmod(0o600)
        screen.note(f"Made {file} readable only for you.")
    if settings.url is not None:
        return
    folder = local_host(settings, screen.note).folder
    if folder.is_dir() and folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
        screen.note(f"Made {folder} accessible only for you.")
    fetch_database(settings, screen)


def _check_settings_file() -> Check:
    file = env_file.path()
    if not file.is_file():
        return Check("settings file", "ok", "none: settings come from the environment")
    if not env_file.is_private(file):
        mend = f"the file is ignored because others can read it: run chmod 600 {file}, if it is yours"
        return Check("settings file", "note", str(file.absolute()), mend)
    names = ", ".join(env_file.read_env_file(file)) or "sets nothing"
    return Check("settings file", "ok", f"{file.absolute()}: {names}")


def attempt(what: str, look: Callable[[], Check]) -> Check:
    """Run the check *look* and return its result; if it raises, return a failed check named *what*."""
    try:
        return look()
    except (KGMemoryError, ImportError, OSError) as error:
        first, _, rest = str(error).partition("\n")
        return Check(what, "wrong", type(error).__name__, f"{first}\n{rest}".strip())


def _binaries(host: LocalHost) -> Check:
    installed = host.find()
    return Check("FalkorDB binaries", "ok", f"{installed.module.parent} ({installed.origin})")


def _check_openmp() -> Check:
    try:  # FalkorDB needs it, and slim container images do not contain it
        ctypes.CDLL(_OPENMP)
    except OSError:
        mend = "install it: apt-get install libgomp1, or dnf install libgomp"
        return Check("OpenMP library", "wrong", f"no {_OPENMP}", mend)
    return Check("OpenMP library", "ok", _OPENMP)


def _check_folder(folder: Path) -> Check:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        return Check("data folder", "wrong", str(folder), f"{existing} is a file: set a folder with --data-dir")
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        mend = f"{existing} is not writable: change its permissions, or set another folder with --data-dir"
        return Check("data folder", "wrong", str(folder), mend)
    if existing == folder and folder.stat().st_mode & 0o077:
        return Check("data folder", "note", str(folder), f"other users can read it: run chmod 700 {folder}")
    return Check("data folder", "ok", str(folder) if existing == folder else f"{folder} (made at first use)")


def _check_model(settings: Settings, *, ask: bool) -> Check:
    """Check the language model: which one is used, whether it can be opened, and with *ask*, whether it answers."""
    from kg_memory.llm.chat import provider_of  # noqa: PLC0415 - slow to import

    model = opening.model(None, settings)
    if model.by_rules:
        better = "for more and better facts, set OPENAI_API_KEY, or KG_MEMORY_BASE_URL and KG_MEMORY_MODEL"
        if settings.api_key or settings.base_url:
            unused = "the API key" if settings.api_key else "KG_MEMORY_BASE_URL"
            better = f"{unused} is not used because of {_offline_from()}: change that, for example with kg-memory init"
        return Check("language model", "note", "offline: reads by rules", better)
    where = provider_of(model.name) if settings.base_url is None else hide_password(settings.base_url)
    began = time.monotonic()
    if ask:
        ModelCrossEncoder(model).scores("Where is Oslo?", ["Oslo is in Norway."])
    asked = f"answered after {time.monotonic() - began:.1f} s" if ask else "not asked: --ask does"
    return Check("language model", "ok", f"{model.name} at {where} ({asked})")


def _offline_from() -> str:
    name, file = f"{ENV_PREFIX}MODEL", env_file.path()
    if os.environ.get(name) == OFFLINE:
        return f"{name}={OFFLINE} in the environment"
    in_file = env_file.is_private(file) and env_file.read_env_file(file).get(name) == OFFLINE
    return f"{name}={OFFLINE} in {file.absolute()}" if in_file else f"--model {OFFLINE}"


def _check_embeddings(settings: Settings, *, ask: bool) -> Check:
    model = opening.embeddings(None, settings, opening.model(None, settings))
    dimensions = f" ({len(model.embed_query('Oslo'))} dimensions)" if ask else ""
    return Check("embedding model", "ok", f"{vector_model_name(model)}{dimensions}")


def _check_database(settings: Settings, screen: Screen) -> Check:
    began = time.monotonic()
    with open_without_models(settings, screen) as memory:
        counts = {name: memory.stats(namespace=name) for name in memory.data.namespaces("awake")}
        database = memory.driver.store.database
        summary = _describe_database(database, time.monotonic() - began, counts)
        state, mend = next(_find_problems(database, counts, settings), ("ok", ""))
    return Check("database", state, summary, mend)


def _describe_database(database: Database, seconds: float, counts: Mapping[str, Stats]) -> str:
    versions, wait, least = database.versions(), database.wait_replicas, database.min_replicas
    numbers = (f"{number // 10000}.{number // 100 % 100}.{number % 100}" for number in sorted(set(versions.values())))
    servers = f" on {len(versions)} servers" if len(versions) > 1 else ""
    asleep = f" and {len(names)} asleep" if (names := database.namespaces("asleep")) else ""
    summary = f"FalkorDB {', '.join(numbers)}{servers}, open after {seconds:.1f} s, {len(counts)} namespaces{asleep}"
    if paused := [name for name, size in counts.items() if size.paused]:
        summary += f", of which paused: {_list_first(paused)}"
    if wait:
        fewer = f", or {least} if it has no more" if least < wait else ""
        summary += f", each write waits for {wait} of its replicas{fewer}"
    return summary


def _find_problems(database: Database, counts: Mapping[str, Stats], settings: Settings) -> Iterator[tuple[State, str]]:
    """Yield (state, advice) for each problem of the database, the worst first."""
    replicas = database.replicas() if database.wait_replicas else {}
    if lacking := [address for address, number in replicas.items() if number < database.min_replicas]:
        yield "wrong", f"too few replicas to acknowledge a write: {', '.join(lacking)}"
    if lacking := [address for address, number in replicas.items() if number < database.wait_replicas]:
        servers = f"these servers fails, since they have too few replicas: {', '.join(lacking)}"
        yield "note", f"the latest writes are lost if one of {servers}"
    late = {"now": time.time_ns() // 1000 + _SKEW}
    if ahead := [n for n in counts if database.query(graph_key(n), SAVED_LATER, late, write=False)[0]["some"]]:
        clock = "were saved by a clock ahead of this one, and are not found until that time"
        yield "note", f"messages in {_list_first(ahead)} {clock}: synchronise the clocks of all machines"
    if failed := [name for name, size in counts.items() if size.failed]:
        why = "kg-memory episodes --state failed shows why, kg-memory retry reads them again"
        yield "note", f"messages in {_list_first(failed)} could not be read: {why}"
    if large := [name for name in counts if "vectors" in why_awake(database, name)]:
        yield "note", f"{_list_first(large)} cannot sleep: to wake over {MOST_VECTORS} vectors would block the server"
    plans = _query_plan_cache_size(database)
    if plans is not None and plans < QUERY_PLANS:
        more = "a new size applies once all programs that use the server have ended"
        if settings.url is not None:
            more = f"start it with CACHE_SIZE {QUERY_PLANS}, see docs/embedded.md"
        yield "note", f"it caches {plans} query plans per graph, which slows alternating writes and searches: {more}"


def _list_first(names: Sequence[str]) -> str:
    return f"{', '.join(names[:_MOST_NAMED])}{' ...' if len(names) > _MOST_NAMED else ''}"


def _query_plan_cache_size(database: Database) -> int | None:
    try:
        return int(database.command("GRAPH.CONFIG", "GET", "CACHE_SIZE")[1])
    except KGMemoryError:
        return None
