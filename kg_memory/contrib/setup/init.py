"""``kg-memory init``: ask for the model, the database and the namespace, test them, and write ``.env``."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from getpass import getpass
from pathlib import Path

import httpx

from kg_memory.cli import env_file
from kg_memory.cli.command import DONE, FAILED, INTERRUPTED
from kg_memory.cli.output import Screen, ask_line, confirm
from kg_memory.contrib.setup.doctor import Check, attempt, checks, fetch_database, print_checks
from kg_memory.errors import DatabaseMissing, InputError
from kg_memory.memory.open import local_host
from kg_memory.settings import ENV_PREFIX, OFFLINE, Settings
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

_OPENAI_KEY = "OPENAI_API_KEY"
_OPENAI_URL = "https://api.openai.com/v1"
_OPENAI_MODEL = "gpt-4.1-mini"
_LOCAL_URL = "http://localhost:11434/v1"
_SECONDS = 10.0
"""Timeout in seconds of requests to a model server."""
_MOST_NAMED = 8
_MODELS = """\
Which model reads messages?
  1  OpenAI: needs a key
  2  a server that speaks OpenAI's protocol: Ollama, vLLM, LM Studio, ...
  3  none: built-in rules for English and Chinese, no network"""
_DATABASES = """\
Where is the memory kept?
  1  on this machine, in an embedded database
  2  in a FalkorDB server or cluster"""
_REFUSED = (401, 403)


def init(arguments: Namespace, screen: Screen) -> int:
    """Run ``kg-memory init``: ask for settings, test them, and write them to the settings file ``.env``."""
    file = env_file.path()
    if arguments.yes and file.exists() and not arguments.force:
        raise InputError(f"{file} exists; add --force to replace the settings in it (other lines are kept)")
    try:
        values = _ask_for_variables(arguments, screen)
    except EOFError:
        screen.note("The input ended before all questions were answered: use options and --yes instead.")
        return FAILED
    named = {ENV_PREFIX + name for name in ("MODEL", "BASE_URL", "URL")}  # the answers replace these variables
    settings = Settings.from_env({name: value for name, value in os.environ.items() if name not in named} | values)
    _offer_download(settings, arguments, screen)
    found = [*checks(settings, screen), attempt("model's server", lambda: _check_model_server(settings))]
    if not screen.as_json:
        print_checks(found, screen)
    code = _may_write(file, found, arguments, screen)
    if code == DONE:
        _write_settings(file, values)
        _print_outcome(file, values, found, screen)
    return code


def _may_write(file: Path, found: Sequence[Check], arguments: Namespace, screen: Screen) -> int:
    """Return `DONE` if *file* may be written, else the exit code of the command."""
    code = DONE
    if any(check.state == "wrong" for check in found) and not (
        arguments.force if arguments.yes else confirm(f"Write {file} anyway?")
    ):
        code = FAILED
    elif not arguments.yes and file.exists():
        screen.line(f"{file} exists: its kg-memory settings will be replaced, other lines are kept.")
        code = DONE if confirm("Change it?") else INTERRUPTED
    if code != DONE and screen.as_json:
        screen.json({"file": None, "checks": [asdict(check) for check in found]})
    elif code != DONE:
        screen.note("Nothing was written.")
    return code


def _ask_for_variables(arguments: Namespace, screen: Screen) -> dict[str, str]:
    """Return the environment variables to write: from options and the user's answers or, with --yes, from defaults."""
    model, base_url, key = getattr(arguments, "model", None), arguments.base_url, None
    database, data_dir = getattr(arguments, "url", None) or arguments.database, getattr(arguments, "data_dir", None)
    namespace = getattr(arguments, "namespace", None)
    if arguments.yes and base_url and not model:
        raise InputError("--base-url needs a model: add --model NAME")
    if arguments.yes:
        model = model or (_OPENAI_MODEL if os.environ.get(_OPENAI_KEY) else OFFLINE)
    elif screen.as_json:
        raise InputError("--json needs --yes, because questions are not printed as JSON")
    else:
        model, base_url, key = _ask_for_model(model, base_url, screen)
        if database is None and data_dir is None:
            screen.line(_DATABASES)
            database = _ask_for_line("Its URL", "falkor://localhost:6379") if _choose("12", "1") == "2" else None
        namespace = namespace or _ask_for_line("The namespace", DEFAULT_NAMESPACE)
    ours = {
        "MODEL": model,
        "BASE_URL": base_url,
        "API_KEY": key if base_url else None,
        "URL": None if database == "embedded" else database,
        "DATA_DIR": data_dir and str(data_dir.absolute()),
        "NAMESPACE": None if namespace in (None, DEFAULT_NAMESPACE) else validate_namespace(namespace),
    }
    values = {ENV_PREFIX + name: value for name, value in ours.items() if value}
    return values | {_OPENAI_KEY: key} if key and not base_url else values  # LangChain's models read it too


def _ask_for_model(model: str | None, base_url: str | None, screen: Screen) -> tuple[str, str | None, str | None]:
    """Return (model, base URL of its server, API key), asking the user for each value that no option sets."""
    key = None
    if not model and not base_url:
        has_key = bool(os.environ.get(_OPENAI_KEY))
        screen.line(_MODELS)
        choice = _choose("123", "1" if has_key else "3")
        if choice == "1":
            model = _ask_for_line("Its name", _OPENAI_MODEL)
            key = _ask_for_secret("The key (Enter: that of OPENAI_API_KEY)" if has_key else "The key")
        elif choice == "2":
            base_url = _ask_for_line("Its URL", _LOCAL_URL)
            key = _ask_for_secret("Its key (Enter: none)")
    if base_url and not model:
        try:
            names = _model_names(_get_models(base_url, key))
        except (httpx.HTTPError, httpx.InvalidURL):
            names = []
        screen.line(f"Its models: {', '.join(names[:_MOST_NAMED])}" if names else "It does not list its models.")
        model = _ask_for_line("Which one", names[0] if names else "")
    return model or OFFLINE, base_url, key


def _offer_download(settings: Settings, arguments: Namespace, screen: Screen) -> None:
    if settings.url is not None or settings.bin_dir is not None:
        return
    try:
        local_host(settings, screen.note).find()
    except DatabaseMissing:
        if arguments.yes or confirm("FalkorDB is not installed. Download it (about 50 MB)?", default=True):
            fetch_database(settings, screen)


def _check_model_server(settings: Settings) -> Check:
    """Check that the model server lists the configured model, with a request that costs nothing."""
    what, model = "model's server", settings.model
    if model is None or model == OFFLINE or (":" in model and not settings.base_url):
        return Check(what, "ok", "not needed" if model == OFFLINE else "not asked")
    base = settings.base_url or _OPENAI_URL
    try:
        reply = _get_models(base, settings.api_key)
    except httpx.HTTPError as error:
        return Check(what, "wrong", f"{base}: {type(error).__name__}", f"{base} does not answer: is it running?")
    if reply.status_code in _REFUSED:
        return Check(what, "wrong", f"{base}: {reply.status_code}", "the key is refused: set another one")
    if not (names := _model_names(reply)):
        return Check(what, "note", f"{base}: {reply.status_code}", "it lists no models, so the name was not checked")
    if model.removeprefix("openai:") not in names:
        some = ", ".join(names[:_MOST_NAMED])
        return Check(what, "wrong", f"{base} has no {model}", f"choose one of its models: {some}")
    return Check(what, "ok", f"{base} has {model}")


def _get_models(base_url: str, key: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(f"{base_url.rstrip('/')}/models", headers=headers, timeout=_SECONDS)


def _model_names(reply: httpx.Response) -> list[str]:
    try:
        return [str(model["id"]) for model in reply.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []


def _write_settings(file: Path, values: dict[str, str]) -> None:
    """Write *values* as settings to *file*, and make it readable only for its owner.

    Errors: `OSError`.
    """
    before = file.read_text("utf-8-sig") if file.exists() else ""
    ours = {number for number, _, _ in env_file.assignments(before, file)}
    lines = [line for number, line in enumerate(before.splitlines()) if number not in ours]
    lines += [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    handle, made = tempfile.mkstemp(dir=file.parent, prefix=".env-")  # with mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        Path(made).replace(file)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def _print_outcome(file: Path, values: dict[str, str], found: Sequence[Check], screen: Screen) -> None:
    if screen.as_json:
        shown = {name: value for name, value in values.items() if not name.endswith("_KEY")}
        screen.json({"file": str(file), "settings": shown, "checks": [asdict(check) for check in found]})
        return
    screen.line(f"Wrote {file}, readable only for you. kg-memory uses it in this folder:", "green")
    screen.line('  kg-memory ingest chat.jsonl\n  kg-memory ask "Where does Ann live?"')
    screen.line("In Python, read it with dotenv.load_dotenv() before GraphMemory.open().")
    ignored = Path(".gitignore")
    if Path(".git").exists() and not (ignored.exists() and ".env" in ignored.read_text("utf-8", "replace")):
        screen.line(f"Add {file} to .gitignore: it may contain a key.", "yellow")


def _ask_for_line(prompt: str, default: str) -> str:
    """Ask the user for a line of text; if it is empty, return *default*, or ask again without one.

    Errors: `EOFError` at the end of the input.
    """
    while True:
        answer = ask_line(f"{prompt} [{default}]: " if default else f"{prompt}: ")
        if answer is None:
            raise EOFError
        if answer or default:
            return answer or default


def _choose(choices: str, default: str) -> str:
    while (answer := _ask_for_line("Number", default)) not in tuple(choices):
        pass
    return answer


def _ask_for_secret(prompt: str) -> str:
    return getpass(f"{prompt}: ").strip() if sys.stdin.isatty() else ask_line(f"{prompt}: ") or ""
