"""The command `kg-memory`, with a real database, real files and real signals."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.cli import main
from kg_memory.cli.output import printable
from kg_memory.falkor.connect import graph_key
from tests.chat_server import chat_server
from tests.cli_home import COMMAND, Run, Terminal, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures
from tests.openai_wire import BASE_URL, body, completion, openai_wire
from tests.scripted import Scripted
from tests.waiting import until

CHAT = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "thread": "t1", "source_id": "m1"},
    {"content": "I moved to Oslo last week.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "thread": "t2",
     "source_id": "m2"},
    {"content": "I envy you both!", "speaker": "Tom", "at": "2024-09-21T17:01:00Z", "thread": "t2", "source_id": "m3"},
]  # fmt: skip
THANKS = {"content": "Thanks!", "speaker": "Nora", "at": "2023-03-04T18:21:00Z", "source_id": "m4"}


@pytest.fixture
def space(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The option that names a namespace of the test."""
    return "-n", str(request.node.name)


@pytest.fixture
def moved(run: Run, tmp_path: Path, space: tuple[str, str]) -> tuple[str, str]:
    """`space`, in which Nora moved from Bergen to Oslo."""
    assert run("ingest", lines(tmp_path, CHAT[:2]), *space)[0] == 0
    return space


@pytest.fixture
def model(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """A model behind a server; it reads by the rules of `tests.scripted`."""
    scripted = Scripted()
    with chat_server(model=scripted) as url:
        for name, value in {"BASE_URL": url, "MODEL": "scripted", "EMBEDDING_MODEL": "offline"}.items():
            monkeypatch.setenv(f"KG_MEMORY_{name}", value)
        yield scripted


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose server cannot be reached."""
    for name, value in {"MODEL": "gpt-none", "BASE_URL": "http://127.0.0.1:1/v1", "EMBEDDING_MODEL": "offline"}.items():
        monkeypatch.setenv(f"KG_MEMORY_{name}", value)


# --- help, wrong use and errors ---


def test_help_names_every_command_and_imports_few_modules(home):
    shown = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    commands = (
        "init setup demo completion ingest ask facts around entities episodes stats reembed doctor history timeline changes evolution "
        "conflicts review predicates communities"
    )
    for name in commands.split():
        assert f"  {name} " in shown
    looks = """
import sys
import kg_memory.cli
print([m for m in ("langgraph", "openai", "redis") if m in sys.modules])
from kg_memory import GraphMemory, Settings
from kg_memory.cli import main
settings = Settings(data_dir=sys.argv[1], idle_seconds=0, model="offline")
with GraphMemory.open(settings=settings, embeddings="offline") as memory:
    assert not memory.facts.list() and not memory.stats().messages
for command in ("stats", "facts", "entities", "episodes"):
    assert main([command]) == 0
import kg_memory.contrib.server.mcp.server
heavy = ("langgraph", "langsmith", "openai", "jieba", "numpy", "pandas", "fastapi", "kg_memory.maintenance.transfer")
print([m for m in heavy if m in sys.modules])
"""
    looked = subprocess.check_output([sys.executable, "-c", looks, str(home)], text=True)
    assert (looked.splitlines()[0], looked.splitlines()[-1]) == ("[]", "[]")


@pytest.mark.parametrize(("arguments", "begins"), [(["--version"], "kg-memory "), ([], "usage: kg-memory COMMAND")])
def test_version_and_help_are_printed(arguments, begins, capsys):
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(begins)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fly", "invalid choice: 'fly'"),
        ("ask", "the following arguments are required"),
        ("ask x --limit 0", "is not a number from 1"),
        ("ask x --where '{speaker: Nora}'", "is not JSON"),
        (f"ask x --where {'[' * 100_000}", "is not JSON"),
        ("ask x --where '[]'", "must be a dict"),
        ('ask x --where \'{"speeker": "Nora"}\'', "did you mean speaker?"),
        ('ask x --where \'{"trust": {"$gte": "high"}}\'', "must be a number"),
        ("ask x --recipe none", "invalid choice: 'none'"),
        ("ask x --template none", "invalid choice: 'none'"),
        ("ask x --template zep --context", "not allowed with"),
        ("facts x --on 2019 --during 2020", "not allowed with"),
        ("review --accept a --reject b", "not allowed with"),
        ("review --edit a --verdict duplicate", "invalid choice: 'duplicate'"),
        ("predicates A --several --one-at-a-time", "not allowed with"),
        ("deepen --to offline", "invalid choice: 'offline'"),
        ("deepen --limit 0", "is not a number from 1"),
        ("deepen m1", "unrecognized arguments: m1"),
        ("evict --max-entities many", "invalid int value: 'many'"),
        ("forget", "one of the arguments --episode"),
        ("forget --episode e --span a:4 --yes", "is not a span"),
        ("retract", "the following arguments are required"),
        ("replace x", "the following arguments are required"),
        ("declare A b --confidence sure", "invalid float value"),
    ],
)
def test_wrong_usage_exits_with_2_before_opening_the_database(line, says, capsys, monkeypatch):
    monkeypatch.setenv("KG_MEMORY_URL", "falkor://127.0.0.1:1")
    assert main(shlex.split(line)) == 2
    err = capsys.readouterr().err
    assert "usage: kg-memory" in err
    assert says in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ingest no-such-file.json", "does not exist"),
        ("ask ' '", "empty"),
        ("facts x --on ?", "is not a time: give a date such as"),
        ("facts --on '32 May 2024'", "kg-memory: --on must be a time, got '32 May 2024'"),
        ("ask x --during 2020..2019", "during must end after it begins"),
        ("history ' '", "empty"),
        ("evolution nothing", "fact 'nothing' not found here"),
        ("evolution nothing", "`kg-memory facts --ids`"),
        ('consequences nothing -n "Ann\'s"', 'Searched in the namespace "Ann\'s"'),
        ("verdicts nothing", "`kg-memory facts --ids` shows the ids"),
        ("retry nothing-of-that-id", "no episode 'nothing-of-that-id' is failed"),
        ("forget --fact nothing --yes", "`kg-memory facts --ids`"),
        ("forget --thread t --yes", "`kg-memory episodes --ids` shows the thread of each episode"),
        ("forget --episode e", "without a terminal: preview with --dry-run, forget with --yes"),
        ("forget --episode e --json", "--yes"),
        ("around Ann --steps 7", "steps must be at most 6"),
        ("evict --max-entities -1", "kg-memory: --max-entities must be"),
        ("audit --head x", "--head needs the action verify"),
        ("saved source", "needs the id of a memory"),
        ("saved delete", "needs the id of a memory"),
        ("saved off x", "takes no id"),
        ("declare Ann", "no fact given"),
        ("deepen", "name a model"),
        ("stats --namespace ''", "namespace must be a non-empty string"),
        ("stats --url http://x", "falkor://"),
        ("stats --url falkor://127.0.0.1:1", "cannot be reached"),
        ("changes --since 'no time at all'", "--since must be a time"),
    ],
)
def test_error_is_one_message_without_a_traceback(run, line, says):
    code, out, err = run(*shlex.split(line))
    assert (code, out) == (1, "")
    assert says in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(run):
    with pytest.raises(ValueError, match="does not exist"):
        run("ingest", "no-such-file.json", "--debug")


# --- ingest ---


def test_ingest_skips_known_lines_and_splits_by_conversation(run, tmp_path, space):
    path = lines(tmp_path, [{"content": text, "speaker": "Ann"} for text in ("yes", "yes", "no")])
    done = result(run, "ingest", path, *space)
    assert (done["episodes"], done["new"], done["known"], done["problems"]) == (3, 3, 0, [])
    again = result(run, "ingest", path, *space)
    assert (again["new"], again["known"]) == (0, 3)
    assert result(run, "stats", *space)["episodes"] == 3
    talks = [{**CHAT[0], "thread": f"{name}/s1", "source_id": None} for name in ("a", "b")]
    assert result(run, "ingest", lines(tmp_path, talks), *space, "--namespace-per-conversation")["new"] == 2
    assert {f"{space[1]}/a", f"{space[1]}/b"} <= set(result(run, "stats", *space)["other_namespaces"])


@pytest.mark.parametrize(
    ("records", "tail", "options", "expected"),
    [
        (CHAT[:1], '{"content": \n', [], (0, "1 episode: 1 new", "chat.jsonl:2: ", 1)),
        (CHAT[:1], '{"content": \n', ["--strict"], (1, "", "chat.jsonl:2: ", 0)),
        (CHAT, "", [], (0, "2 new", "split it", 2)),
        ([CHAT[0], {**CHAT[0], "content": "In Rome."}, THANKS], "", [], (0, "2 new", "'m1'", 2)),
    ],
    ids=["bad line", "strict", "too long", "id in use"],
)
def test_ingest_skips_lines_that_cannot_be_stored(run, tmp_path, space, monkeypatch, records, tail, options, expected):
    monkeypatch.setenv("KG_MEMORY_MAX_CONTENT", "20")
    path = lines(tmp_path, records)
    path.write_text(path.read_text("utf-8") + tail, "utf-8")
    code, out, err = run("ingest", path, *options, *space)
    assert (code, expected[1] in out, expected[2] in err) == (expected[0], True, True), err
    assert result(run, "stats", *space)["episodes"] == expected[3]


def test_ingest_reports_unread_episodes_and_exits_with_1(run, tmp_path, monkeypatch, space):
    good, bad = lines(tmp_path, CHAT[:1]), lines(tmp_path, [*CHAT[1:], {**CHAT[0], "content": ""}], "bad.jsonl")
    assert result(run, "ingest", good, *space)["unread"] == []
    with monkeypatch.context() as patch, openai_wire() as wire:
        patch.setenv("KG_MEMORY_MODEL", "test-model")
        patch.setenv("KG_MEMORY_BASE_URL", BASE_URL)
        wire.post("/chat/completions").return_value = completion("I had rather not.")
        code, out, err = run("ingest", good, bad, *space)
        assert (code, "3 episodes: 2 new, 1 there already, skipped" in out) == (1, True)
        assert "2 episodes saved but not read: test-model gave no valid answer" in err
        code, out, err = run("ingest", good, bad, *space, "--json")
        told = json.loads(out)
        assert (code, told["new"], told["known"], told["finished"], len(told["unread"])) == (1, 0, 1, 0, 2)
        assert len(told["problems"]) == 1
        code, _, err = run("ingest", good, *space)
        assert (code, "2 episodes of earlier runs could not be read: run kg-memory retry" in err) == (0, True)
    told = result(run, "ingest", good, bad, *space)
    assert (told["finished"], told["known"], told["unread"]) == (0, 3, [])


@pytest.mark.usefixtures("model")
def test_ingest_reports_model_calls_and_tokens(run, tmp_path, space):
    path = lines(tmp_path, CHAT)
    done = result(run, "ingest", path, *space)
    assert (done["calls"], done["input_tokens"], done["output_tokens"]) == (4, 4, 4)
    assert result(run, "ingest", path, "-n", "paid more", "--plan", "thorough")["calls"] == 10
    assert "4 calls of the model: 4 tokens in, 4 out" in run("ingest", path, "-n", "paid in words")[1]
    assert "of the model" not in run("ingest", path, "-n", "paid in words")[1]
    assert result(run, "ingest", path, "-n", "for nothing", "--model", "offline")["calls"] == 0


@pytest.mark.usefixtures("absent")
def test_ingest_dry_run_estimates_cost_and_stores_nothing(run, tmp_path, monkeypatch, space):
    file = lines(tmp_path, [CHAT[0], CHAT[1], THANKS])
    code, out, err = run("ingest", file, "--dry-run", *space)
    assert (code, "3 episodes: 2 to read, 1 with nothing in them to read" in out) == (0, True)
    assert "gpt-none will be asked by the plan standard" in out
    assert "tokens in" in out
    assert "KG_MEMORY_BUDGET_INPUT_PRICE" in err
    assert result(run, "stats", *space)["episodes"] == 0
    monkeypatch.setenv("KG_MEMORY_BUDGET_INPUT_PRICE", "0.4")
    monkeypatch.setenv("KG_MEMORY_BUDGET_OUTPUT_PRICE", "1.6")
    assert "money" in run("ingest", file, "--dry-run", *space)[1]
    told = {plan: result(run, "ingest", file, "--dry-run", "--plan", plan) for plan in ("standard", "thorough")}
    assert (told["standard"]["calls"]["low"], told["thorough"]["calls"]["low"]) == (2, 6)
    assert 0 < told["standard"]["money"]["likely"] < told["thorough"]["money"]["likely"]
    apart = result(run, "ingest", file, "--dry-run", "--namespace-per-conversation")
    assert (apart["episodes"], apart["to_read"]) == (3, 2)
    monkeypatch.setenv("KG_MEMORY_MODEL", "offline")
    assert "rules, which costs nothing" in run("ingest", file, "--dry-run", *space)[1]
    assert run("ingest", file, *space)[0] == 0
    assert "3 episodes: 0 to read, 3 there already" in run("ingest", file, "--dry-run", *space)[1]


def test_ingest_resumes_without_loss_after_ctrl_c(run, tmp_path):
    count, place = 60, ("-n", "ctrl-c")
    talk = [
        {"content": f"I visited friend number {index} in Oslo yesterday.", "speaker": "Nora", "at": "2024-01-01",
         "source_id": f"c{index}"}
        for index in range(count)
    ]  # fmt: skip
    path = lines(tmp_path, talk)
    command = [*COMMAND, "ingest", str(path), *place]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: result(run, "stats", *place)["episodes"] >= 5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, "Traceback" in err) == (130, False), err
    stats = result(run, "stats", *place)
    before = stats["episodes"]
    assert 5 <= before < count
    told = re.search(r"(\d+) of 60 episodes saved, (\d+) of them read(.|\n)*run the same command again", err)
    assert told, err
    assert before - 1 <= int(told[1]) <= before
    assert int(told[2]) <= before - stats["waiting"]
    done = result(run, "ingest", path, *place)
    assert (done["new"] + done["known"], done["known"]) == (count, before)
    stored = [episode["source_id"] for episode in result(run, "episodes", *place, "--limit", 1000)]
    assert sorted(stored) == sorted(f"c{index}" for index in range(count))
    assert result(run, "stats", *place)["waiting"] == 0


# --- read again ---


def test_retry_reads_failed_and_skipped_episodes(run, model, tmp_path, space):
    model.rules["read"] = lambda _: {"facts": "none"}
    assert run("ingest", lines(tmp_path, [CHAT[0], THANKS]), *space)[0] == 1
    [failed] = result(run, "episodes", "--state", "failed", *space)
    assert (failed["source_id"], failed["step"], failed["attempts"]) == ("m1", "extract", 1)
    assert "failed at extract" in " ".join(run("episodes", "--state", "failed", *space)[1].split())
    code, out, err = run("retry", *space)
    assert (code, out, failed["id"] in err) == (1, "0 episodes read, 1 failed; 0 facts more than before\n", True)
    del model.rules["read"]
    code, out, _ = run("retry", failed["id"][:8], *space)
    assert (code, out) == (0, "1 episode read, 0 failed; 1 fact more than before\n")
    assert (result(run, "stats", *space)["failed"], len(result(run, "facts", "Nora", *space))) == (0, 1)
    [skipped] = result(run, "episodes", "--state", "skipped", *space)
    assert (skipped["source_id"], "greeting" in skipped["reason"]) == ("m4", True)
    assert result(run, "retry", *space) == []
    assert [each["status"] for each in result(run, "retry", "--skipped", *space)] == ["done"]


def test_deepen_reads_episodes_again_with_a_model(run, tmp_path, monkeypatch, space, request):
    talk = [CHAT[0], {**CHAT[1], "content": "Nobody but Cid and Dan were there."}]
    result(run, "ingest", lines(tmp_path, talk), *space)
    assert run("deepen", "--dry-run", *space)[:2] == (0, "2 episodes would be read again\n")
    request.getfixturevalue("model")
    assert run("deepen", "--limit", "1", *space)[:2] == (0, "1 episode read, 0 failed; 0 facts more than before\n")
    assert run("deepen", *space)[:2] == (0, "1 episode read, 0 failed; 2 facts more than before\n")
    assert result(run, "deepen", "--dry-run", *space) == {"episodes": 0}
    assert [each["status"] for each in result(run, "deepen", "--to", "thorough", *space)] == ["done", "done"]


def test_resume_reads_saved_episodes_as_stats_suggests(run, tmp_path, space):
    about = {"user_id": "nora", "created_at": "2024-01-01T00:00:00Z"}
    memories = [{"id": city, "memory": f"Nora lives in {city}.", **about} for city in ("Rome", "Oslo")]
    (tmp_path / "mem0.json").write_text(json.dumps(memories), "utf-8")
    assert run("import", tmp_path / "mem0.json", "--from", "mem0", "--no-read", *space)[0] == 0
    assert "2 episodes not read yet: kg-memory resume reads them" in run("stats", *space)[2]
    for limit in (("--limit", 1), ()):
        assert run("resume", *limit, *space)[:2] == (0, "1 episode read, 0 failed; 1 fact more than before\n")
    counts = result(run, "stats", *space)
    assert (counts["waiting"], counts["facts"]) == (0, 2)
    assert result(run, "resume", *space) == []


# --- forget, evict, pause ---


def test_forget_dry_run_changes_nothing(run, moved):
    [oslo] = result(run, "saved", "--about", "Nora", *moved)
    [message, _] = result(run, "episodes", *moved)
    for command in (f"forget --episode {message['id']} --dry-run", f"saved delete {oslo['id'][:8]} --dry-run"):
        code, out, _ = run(*command.split(), *moved)
        assert (code, "I moved to Oslo last week." in out, "holds again" in out) == (0, True, True)
        assert "To be deleted: 1 message, 1 fact, 1 entity." in out
    assert message["id"] in run("episodes", "--ids", *moved)[1]
    code, _, err = run("saved", "delete", oslo["id"], *moved)
    assert (code, "--yes" in err) == (1, True)


@pytest.mark.parametrize("command", ["forget --episode", "saved delete"])
def test_forget_on_a_terminal_deletes_only_after_yes(run, moved, command):
    id_ = result(run, "episodes" if "forget" in command else "saved", *moved)[0]["id"]
    for answer, code, episodes in (("n\n", 1, 2), ("\x04", 1, 2), ("y\n", 0, 1)):
        terminal = Terminal(*command.split(), id_, *moved, COLUMNS="100")
        shown = terminal.until("[y/N] ")
        assert "I moved to Oslo last week." in shown
        assert id_ in shown  # whole, to be copied
        terminal.press(answer)
        assert terminal.end() == code
        assert len(result(run, "episodes", *moved)) == episodes


def test_forget_deletes_a_fact_or_a_span_of_an_episode(run, moved):
    [oslo] = [each for each in result(run, "facts", "Nora", *moved) if each["objects"] == ["Oslo"]]
    who = ("--by", "Nora", "--reason", "asked for")
    done = result(run, "forget", "--fact", oslo["id"][:8], "--yes", *who, *moved)
    assert (done["facts"], done["by"], done["reason"], done["texts"]) == ([oslo["id"]], "Nora", "asked for", {})
    [id_] = [each["id"] for each in result(run, "episodes", *moved)]
    code, _, err = run("forget", "--episode", id_[:7], "--dry-run", *moved)
    assert (code, "not found in this namespace" in err) == (1, True)
    assert result(run, "forget", "--episode", id_[:8], "--span", "10:16", "--yes", *moved)["kind"] == "span"
    [message] = result(run, "episodes", *moved)
    assert message["content"] == "I live in [forgotten]."


def test_forget_entity_leaves_no_name_in_the_audit_log(run, moved):
    code, out, _ = run("forget", "--entity", "Oslo", "--yes", "--search", "--reason", "asked for", *moved)
    assert (code, "found no trace" in out, "database files no longer contain it" in out) == (0, True, True)
    head = out.split("Audit log entry: ")[1].strip()
    [entry] = result(run, "audit", *moved)
    assert (entry["kind"], entry["episodes"], entry["residue"], entry["hash"]) == ("entity", 1, 0, head)
    assert "Oslo" not in str(entry)
    assert result(run, "audit", "-n", "nobody") == []
    assert run("audit", "verify", "--head", head)[0] == 0
    code, out, _ = run("audit", "verify", "--head", "f" * 64)
    assert (code, "entries were removed" in out) == (1, True)


def test_evict_reports_deletions_with_and_without_dry_run(run, moved):
    asked = ("evict", "--expired-days", 0, "--orphans", *moved)
    gone = "0 messages, 1 fact, 1 entity and 1 belief of the past."
    nothing = "Evicted: 0 messages, 0 facts, 0 entities and 0 beliefs of the past."
    for command, text in ((("evict", *moved), nothing), ((*asked, "--dry-run"), f"Would be evicted: {gone}")):
        code, out, _ = run(*command)
        assert (code, text in out) == (0, True)
        assert [each["name"] for each in result(run, "entities", *moved)] == ["Nora", "Oslo", "Bergen"]
    code, out, _ = run(*asked)
    assert (code, f"Evicted: {gone}" in out, "Bergen" in out) == (0, True, True)
    assert [each["name"] for each in result(run, "entities", *moved)] == ["Nora", "Oslo"]


@pytest.mark.parametrize(("off", "on"), [("pause", "unpause"), ("saved off", "saved on")])
def test_pause_command_refuses_ingest_until_unpause(run, moved, tmp_path, off, on):
    """Features: I1."""
    more = lines(tmp_path, [{"content": "I like tea.", "speaker": "Nora"}], "more.jsonl")
    assert run(*off.split(), *moved)[0] == 0
    assert "Saving is off" in run("saved", *moved)[2]
    assert f"{moved[1]} is paused: nothing new is remembered until kg-memory unpause" in run("usage", *moved)[2]
    assert f"of which paused: {moved[1]}" in run("doctor")[1]
    listed = {row["namespace"]: row["paused"] for row in result(run, "namespaces")}
    assert [name for name, paused in listed.items() if paused] == [moved[1]]
    assert run("ingest", more, *moved)[0] == 1
    assert run(*on.split(), *moved)[0] == 0
    assert "paused" not in run("doctor")[1] + run("usage", *moved)[2]
    assert run("ingest", more, *moved)[0] == 0
    assert "The namespace was not paused." in run("unpause", *moved)[1]


def test_sleep_command_lasts_until_the_next_use(run, moved):
    sleeper = {"namespace": moved[1], "asleep": True}
    for wake in (("wake",), ("entities",)):
        assert run("sleep", *moved)[1] == "Asleep until its next use.\n"
        assert sleeper in result(run, "namespaces")
        assert "asleep, not counted: " in run("namespaces")[2]
        assert " asleep" in run("doctor")[1]
        assert run(*wake, *moved)[0] == 0
        assert sleeper not in result(run, "namespaces")


# --- models, terminals and pipes ---


@pytest.mark.parametrize("vectors", ["without a key", "of another model"])
def test_commands_without_model_calls_need_no_model(run, tmp_path, monkeypatch, vectors):
    space = ("-n", f"no key/{vectors}")
    result(run, "ingest", lines(tmp_path, CHAT), *space)
    query = "MATCH (m:Meta) SET m.model = 'text-embedding-3-small', m.dimension = 1536"
    with GraphMemory.open(settings=Settings.from_env()) as memory:
        if vectors == "of another model":
            memory.driver.store.database.query(graph_key(space[1]), query, {}, write=True)
    if vectors == "without a key":
        monkeypatch.setenv("KG_MEMORY_MODEL", "gpt-4.1-mini")
        checks = {check["what"]: check for check in json.loads(run("doctor", "--json")[1])["checks"]}
        assert (checks["language model"]["state"], checks["database"]["found"][:8]) == ("wrong", "FalkorDB")
        code, _, err = run("ask", "Where does Nora live?", *space)
        assert (code, "no API key" in err) == (1, True)
    assert result(run, "facts", "Nora", *space)
    assert result(run, "stats", *space)["episodes"] == 3
    assert result(run, "export", tmp_path / "out.jsonl", *space)["records"]["episode"] == 3
    for command in ("episodes", "entities", "namespaces", "review", "usage", "audit", "digest", "saved", "communities"):
        assert run(command, *space)[0] == 0, command
    assert run("changes", "--since", "2020", *space)[0] == 0
    assert result(run, "forget", "--speaker", "Tom", "--dry-run", *space)["episodes"]
    if vectors == "of another model":
        code, _, err = run("forget", "--speaker", "Tom", "--yes", *space)
        assert (code, "the graph holds vectors of 'text-embedding-3-small'" in err) == (1, True)
        assert result(run, "stats", *space)["episodes"] == 3, "something was forgotten"
        return
    forgotten = result(run, "forget", "--speaker", "Tom", "--search", "--yes", *space)
    assert (forgotten["residue"], forgotten["searched"] > 0) == ([], True)
    assert result(run, "stats", *space)["episodes"] == 2
    assert result(run, "forget", "--everything", "--yes", *space)


def test_ask_prints_model_answer_or_sources_when_declined(run, moved, monkeypatch):
    monkeypatch.setenv("KG_MEMORY_MODEL", "test-model")
    monkeypatch.setenv("KG_MEMORY_BASE_URL", BASE_URL)
    with openai_wire() as wire:
        route = wire.post("/chat/completions")
        route.return_value = completion({"sentences": ["In Oslo, since September 2024."]})
        assert result(run, "ask", "Where does Nora live?", *moved)["answer"].startswith("In Oslo")
        assert "I moved to Oslo last week." in body(route.calls.last)["messages"][0]["content"]
        assert run("ask", "Where does Nora live?", *moved)[1].startswith("In Oslo, since September 2024.\n")
        route.return_value = completion(refusal="I had rather not.")
        code, out, err = run("ask", "Where does Nora live?", *moved)
        assert (code, "SOURCE" in out, "declined" in err) == (0, True, True)


def test_output_escapes_control_characters_of_stored_text(run, tmp_path, space):
    evil = "Nora\x1b]0;owned\x07 \x9b31m moved\u202e to Oslo."
    assert run("ingest", lines(tmp_path, [{**CHAT[0], "content": evil, "speaker": "Ev\x1b[31mil"}]), *space)[0] == 0
    for command in (["episodes"], ["ask", "Oslo"], ["entities"], ["facts", "Nora"]):
        for flag in ([], ["--json"]):
            _, out, err = run(*command, *flag, *space)
            assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert result(run, "episodes", *space)[0]["content"] == evil
    assert printable("a\x1b[2J\nb\ud800é中\U0001f600") == "a\\x1b[2J\nb\\ud800é中\U0001f600"


def test_output_is_styled_on_a_terminal_unless_no_color(run, tmp_path, space):
    path = str(lines(tmp_path, CHAT))
    for environment, styled in (({}, True), ({"NO_COLOR": "1"}, False)):
        terminal = Terminal("ingest", path, *space, **environment)
        assert terminal.end() == 0
        assert "3 episodes: " in terminal.shown
        assert ("\x1b[1m3 episodes: " in terminal.shown) is styled
    assert "\x1b[" not in run("ingest", path, *space)[1]


def test_closed_output_pipe_is_no_error(moved, monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        assert main(["episodes", *moved]) == 0
    assert "Error" not in capsys.readouterr().err
