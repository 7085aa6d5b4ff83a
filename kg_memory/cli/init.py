"""``kg-memory init``: ask for the model, the database and the namespace, try them, and write ``.env``."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from dataclasses import asdict
from getpass import getpass
from pathlib import Path

import httpx

from kg_memory.cli import env_file
from kg_memory.cli.command import DONE, FAILED, INTERRUPTED
from kg_memory.cli.keyboard import Keyboard
from kg_memory.cli.output import Screen
from kg_memory.cli.setup import Check, attempt, checks, fetch_database, print_checks
from kg_memory.errors import InputError
from kg_memory.falkor import binaries
from kg_memory.settings import ENV_PREFIX, OFFLINE, Settings
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

EMBEDDED = "embedded"
OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4.1-mini"
LOCAL_URL = "http://localhost:11434/v1"
SECONDS = 10.0
"""The longest that a server of models is waited for."""
_MOST_NAMED = 8
_MODELS = """\
Which model reads messages?
  1  OpenAI: needs a key
  2  a server that speaks OpenAI's protocol: Ollama, vLLM, LM Studio, ...
  3  none: built-in rules for English and Chinese, no network
"""
_DATABASES = """\
Where is the memory kept?
  1  on this machine, in an embedded database
  2  in a FalkorDB server or cluster
"""
_REFUSED = (401, 403)


def init(arguments: Namespace, screen: Screen) -> int:
    """Write the settings file, and return 1 if what was answered does not work and nothing was written."""
    file, keyboard = env_file.path(), Keyboard()
    if arguments.yes and file.exists() and not arguments.force:
        raise InputError(f"{file} exists; add --force to change the settings in it, other lines stay")
    try:
        values = _from_options(arguments) if arguments.yes else _ask(arguments, keyboard, screen)
    except EOFError:
        screen.note("There are no more answers: kg-memory init --yes takes them as options.")
        return FAILED
    settings = Settings.from_env(_without_ours() | values)
    _get_binaries(settings, arguments, keyboard, screen)
    found = [*checks(settings, screen), attempt("model's server", lambda: _model_server(settings))]
    wrong = [check for check in found if check.state == "wrong"]
    if not screen.as_json:
        print_checks(found, screen)
    if wrong and not (arguments.force if arguments.yes else _confirm(keyboard, f"Write {file} all the same?")):
        if screen.as_json:
            screen.json({"file": None, "checks": [asdict(check) for check in found]})
        else:
            screen.note("Nothing was written.")
        return FAILED
    if not arguments.yes and file.exists():
        screen.line(f"{file} exists: its settings of kg-memory are replaced, other lines stay.")
        if not _confirm(keyboard, "Change it?"):
            screen.note("Nothing was written.")
            return INTERRUPTED
    env_file.write(file, values)
    _report(file, values, found, screen)
    return DONE


def _from_options(arguments: Namespace) -> dict[str, str]:
    """Return the variables that the options say."""
    model, database = getattr(arguments, "model", None), getattr(arguments, "url", None) or arguments.database
    base_url = arguments.base_url
    if base_url and not model:
        raise InputError("--base-url needs the name of a model: add --model NAME")
    return _values(
        model=model or (OPENAI_MODEL if os.environ.get(OPENAI_KEY) else OFFLINE),
        base_url=base_url,
        url=None if database == EMBEDDED else database,
        data_dir=getattr(arguments, "data_dir", None),
        namespace=getattr(arguments, "namespace", DEFAULT_NAMESPACE),
    )


def _ask(arguments: Namespace, keyboard: Keyboard, screen: Screen) -> dict[str, str]:
    """Return the variables that a person answers; what an option says is not asked."""
    if screen.as_json:
        raise InputError("--json needs --yes, as questions are no JSON")
    model, base_url, key = getattr(arguments, "model", None), arguments.base_url, None
    if not model and not base_url:
        has_key = bool(os.environ.get(OPENAI_KEY))
        screen.line(_MODELS.rstrip())
        choice = _choose(keyboard, "123", "1" if has_key else "3")
        if choice == "1":
            model = _line(keyboard, "Its name", OPENAI_MODEL)
            key = _secret(keyboard, "The key (Enter: that of OPENAI_API_KEY)" if has_key else "The key")
        elif choice == "2":
            base_url = _line(keyboard, "Its URL", LOCAL_URL)
            key = _secret(keyboard, "Its key (Enter: none)")
    if base_url and not model:
        names = _names_of_models(base_url, key)
        screen.line(f"It has: {', '.join(names[:_MOST_NAMED])}" if names else "It does not say which models it has.")
        model = _line(keyboard, "Which one", names[0] if names else "")
    database = getattr(arguments, "url", None) or arguments.database
    if database is None and not hasattr(arguments, "data_dir"):
        screen.line(_DATABASES.rstrip())
        if _choose(keyboard, "12", "1") == "2":
            database = _line(keyboard, "Its URL", "falkor://localhost:6379")
    namespace = getattr(arguments, "namespace", None) or _line(keyboard, "The namespace", DEFAULT_NAMESPACE)
    return _values(
        model=model or OFFLINE,
        base_url=base_url,
        key=key,
        url=None if database == EMBEDDED else database,
        data_dir=getattr(arguments, "data_dir", None),
        namespace=namespace,
    )


def _values(
    *,
    model: str,
    base_url: str | None,
    url: str | None,
    data_dir: Path | None,
    namespace: str,
    key: str | None = None,
) -> dict[str, str]:
    """Return the variables to write; without a value there is none."""
    ours = {
        "MODEL": model,
        "BASE_URL": base_url,
        "API_KEY": key if base_url else None,
        "URL": url,
        "DATA_DIR": data_dir and str(data_dir.absolute()),
        "NAMESPACE": None if namespace == DEFAULT_NAMESPACE else validate_namespace(namespace),
    }
    values = {ENV_PREFIX + name: value for name, value in ours.items() if value}
    return values | {OPENAI_KEY: key} if key and not base_url else values  # LangChain's models read it too


def _without_ours() -> dict[str, str]:
    """Return the environment without what the answers replace, so that they are what is tried."""
    named = {ENV_PREFIX + name for name in ("MODEL", "BASE_URL", "URL")}
    return {name: value for name, value in os.environ.items() if name not in named}


def _get_binaries(settings: Settings, arguments: Namespace, keyboard: Keyboard, screen: Screen) -> None:
    """Fetch FalkorDB if the embedded database needs it and it is not there."""
    home = binaries.data_home(settings.xdg_data_home)
    if settings.url is not None or settings.bin_dir is not None or binaries.is_there(home):
        return
    if arguments.yes or _confirm(keyboard, "FalkorDB is not there yet. Download it (46 MB)?", default=True):
        fetch_database(settings, screen)


def _model_server(settings: Settings) -> Check:
    """Ask the server of the model for its models, which costs nothing."""
    what = "model's server"
    if settings.model is None or settings.model == OFFLINE or (":" in settings.model and not settings.base_url):
        return Check(what, "ok", "not needed" if settings.model == OFFLINE else "not asked")
    base = settings.base_url or OPENAI_URL
    try:
        reply = _get_models(base, settings.api_key)
    except httpx.HTTPError as error:
        return Check(what, "wrong", f"{base}: {type(error).__name__}", f"{base} does not answer: is it running?")
    if reply.status_code in _REFUSED:
        return Check(what, "wrong", f"{base}: {reply.status_code}", "the key is refused: give another one")
    if not (names := _read_names(reply)):
        return Check(what, "note", f"{base}: {reply.status_code}", "it does not list its models, so nothing was tried")
    if settings.model.removeprefix("openai:") not in names:
        some = ", ".join(names[:_MOST_NAMED])
        return Check(what, "wrong", f"{base} has no {settings.model}", f"name a model that it has: {some}")
    return Check(what, "ok", f"{base} has {settings.model}")


def _names_of_models(base_url: str, key: str | None) -> list[str]:
    try:
        return _read_names(_get_models(base_url, key))
    except (httpx.HTTPError, httpx.InvalidURL):
        return []


def _get_models(base_url: str, key: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.get(f"{base_url.rstrip('/')}/models", headers=headers, timeout=SECONDS)


def _read_names(reply: httpx.Response) -> list[str]:
    """Return the names of the models in *reply*, none if it is no such list."""
    try:
        return [str(model["id"]) for model in reply.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []


def _report(file: Path, values: dict[str, str], found: list[Check], screen: Screen) -> None:
    if screen.as_json:
        shown = {name: value for name, value in values.items() if not name.endswith("_KEY")}
        screen.json({"file": str(file), "settings": shown, "checks": [asdict(check) for check in found]})
        return
    screen.line(f"Written: {file}, which only you can read. In this folder kg-memory uses it:", "green")
    screen.line("  kg-memory ingest chat.jsonl")
    screen.line('  kg-memory ask "Where does Ann live?"')
    screen.line("In Python, read it with dotenv.load_dotenv() before GraphMemory.open().")
    ignored = Path(".gitignore")
    if Path(".git").exists() and not (ignored.exists() and ".env" in ignored.read_text("utf-8", "replace")):
        screen.line(f"Add {file} to .gitignore: it may have a key.", "yellow")


def _line(keyboard: Keyboard, prompt: str, default: str) -> str:
    """Return the next line, or *default* if it is empty; asks again where there is none."""
    while True:
        answer = keyboard.line(f"{prompt} [{default}]: " if default else f"{prompt}: ")
        if answer is None:
            raise EOFError
        if answer or default:
            return answer or default


def _choose(keyboard: Keyboard, choices: str, default: str) -> str:
    while (answer := _line(keyboard, "Number", default)) not in tuple(choices):
        pass
    return answer


def _confirm(keyboard: Keyboard, question: str, *, default: bool = False) -> bool:
    answer = keyboard.line(f"{question} [{'Y/n' if default else 'y/N'}] ")
    return default if not answer else answer.lower().startswith("y")


def _secret(keyboard: Keyboard, prompt: str) -> str:
    """Return the next line, which a terminal does not show."""
    if sys.stdin.isatty():
        return getpass(f"{prompt}: ").strip()
    return keyboard.line(f"{prompt}: ") or ""
