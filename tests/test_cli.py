"""The command kg-memory, as somebody types it: a real database, real files, real signals."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from kg_memory import GraphMemory, Settings
from kg_memory.cli import demo, main, setup
from kg_memory.cli.output import printable
from kg_memory.falkor import binaries, embedded
from kg_memory.falkor.connect import graph_key
from tests.chat_server import chat_server
from tests.cli_home import COMMAND, Run, Terminal, home_of_the_module, lines, result, run_here  # noqa: F401 - fixtures
from tests.falkor.test_replica import running
from tests.openai_wire import BASE_URL, body, completion, openai_wire

CHAT = [
    {"content": "I live in Bergen.", "speaker": "Nora", "at": "2023-03-04T18:20:00Z", "thread": "t1", "source_id": "m1"},
    {"content": "I moved to Oslo last week.", "speaker": "Nora", "at": "2024-09-21T17:00:00Z", "thread": "t2",
     "source_id": "m2"},
    {"content": "I envy you both!", "speaker": "Tom", "at": "2024-09-21T17:01:00Z", "thread": "t2", "source_id": "m3"},
]  # fmt: skip

# --- help and usage ---


def test_the_help_names_every_command_and_imports_little(home: Path) -> None:
    shown = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    commands = (
        "init setup demo completion ingest ask facts around entities episodes stats reembed doctor history timeline changes evolution "
        "conflicts review predicates communities"
    )
    for name in commands.split():
        assert f"  {name} " in shown
    heavy = "import sys; import kg_memory.cli; print([m for m in ('langgraph', 'openai', 'rich') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", heavy], text=True).strip() == "[]"
    looks = """
import sys
from kg_memory import GraphMemory, Settings
from kg_memory.cli import main
settings = Settings(data_dir=sys.argv[1], idle_seconds=0, model="offline")
with GraphMemory.open(settings=settings, embeddings="offline") as memory:
    assert not memory.facts.list() and not memory.stats().messages
for command in ("stats", "facts", "entities", "episodes"):
    assert main([command]) == 0
import kg_memory.contrib.server.mcp.server
heavy = ("langgraph", "langsmith", "openai", "jieba", "numpy", "pandas", "rich", "fastapi", "kg_memory.maintenance.transfer")
print([m for m in heavy if m in sys.modules])
"""
    looked = subprocess.check_output([sys.executable, "-c", looks, str(home)], text=True)
    assert looked.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["ask"],
        ["ask", "x", "--limit", "0"],
        ["facts", "x", "--on", "2019", "--during", "2020"],
        ["review", "--accept", "a", "--reject", "b"],
        ["review", "--edit", "a", "--verdict", "duplicate"],
        ["predicates", "A", "--several", "--one-at-a-time"],
    ],
)
def test_a_wrong_use_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "usage: kg-memory" in capsys.readouterr().err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kg-memory ")


# --- in and out ---


def test_a_conversation_goes_in_and_comes_out_dated_and_sourced(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path, CHAT)
    space = ("--namespace", "ann@example.com")
    done = result(run, "ingest", path, *space)
    assert (done["episodes"], done["new"], done["known"], done["problems"]) == (3, 3, 0, [])

    found = result(run, "ask", "Where does Nora live?", *space)
    assert found["namespace"] == "ann@example.com"
    assert any("Oslo" in fact["sentence"] and fact["sources"] for fact in found["facts"])
    assert {"m1", "m2"} & {episode["source_id"] for episode in found["episodes"]}

    code, out, _ = run("ask", "Where does Nora live?", *space)
    assert code == 0
    assert "FACT" in out
    assert "2024-09-21 17:00" in out  # when the line was said

    facts = result(run, "facts", "Nora", *space)
    assert any("Bergen" in fact["sentence"] and fact["invalid_at"] for fact in facts)
    then = result(run, "facts", "Nora", "--on", "2023-12-24", *space)
    assert any("Bergen" in fact["sentence"] for fact in then)
    assert not any("Oslo" in fact["sentence"] for fact in then)

    assert "Nora" in {entity["name"] for entity in result(run, "entities", *space)}
    assert [episode["source_id"] for episode in result(run, "episodes", *space)] == ["m3", "m2", "m1"]
    assert result(run, "episodes", "--limit", 1, "--state", "done", *space)[0]["source_id"] == "m3"
    assert result(run, "stats", *space)["episodes"] == 3
    code, out, _ = run("stats", *space)
    assert "episodes" in out


def test_the_same_file_twice_is_stored_once(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path, [{"content": text, "speaker": "Ann"} for text in ("yes", "yes", "no")])
    assert result(run, "ingest", path, "-n", "twice")["new"] == 3
    again = result(run, "ingest", path, "-n", "twice")
    assert (again["new"], again["known"]) == (0, 3)
    assert result(run, "stats", "-n", "twice")["episodes"] == 3


def test_bad_lines_are_counted_and_shown_and_the_rest_goes_in(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path, CHAT[:1])
    with path.open("a") as file:
        file.write('{"content": \n')
    code, out, err = run("ingest", path, "-n", "bad")
    assert (code, "1 episode: 1 new" in out) == (0, True)
    assert "chat.jsonl:2: " in err


def test_strict_ingest_stores_nothing_of_a_bad_file(run: Run, tmp_path: Path) -> None:
    path = lines(tmp_path, CHAT[:1])
    with path.open("a") as file:
        file.write('{"content": \n')
    code, _, err = run("ingest", path, "-n", "strict", "--strict")
    assert code == 1
    assert "chat.jsonl:2: " in err
    assert result(run, "stats", "-n", "strict")["episodes"] == 0


def test_an_id_stored_with_another_content_is_refused_and_the_rest_goes_in(run: Run, tmp_path: Path) -> None:
    assert result(run, "ingest", lines(tmp_path, CHAT[:1]), "-n", "clash")["new"] == 1
    changed = [{**CHAT[0], "content": "I live in Rome."}, CHAT[1]]
    done = result(run, "ingest", lines(tmp_path, changed), "-n", "clash")
    assert done["new"] == 1
    assert "m1" in done["problems"][0]


def test_what_could_not_be_read_is_told_and_the_exit_code_says_so(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = lines(tmp_path, CHAT[:1]), lines(tmp_path, [*CHAT[1:], {**CHAT[0], "content": ""}], "bad.jsonl")
    assert result(run, "ingest", good, "-n", "unread")["unread"] == []
    with monkeypatch.context() as patch, openai_wire() as wire:
        patch.setenv("KG_MEMORY_MODEL", "test-model")
        patch.setenv("KG_MEMORY_BASE_URL", BASE_URL)
        wire.post("/chat/completions").return_value = completion("I had rather not.")
        code, out, err = run("ingest", good, bad, "-n", "unread")
        assert code == 1
        assert "3 episodes: 2 new, 1 there already, skipped" in out
        assert "2 episodes saved but not read: test-model gave no valid answer" in err
        code, out, err = run("ingest", good, bad, "-n", "unread", "--json")
        told = json.loads(out)
        assert (code, told["new"], told["known"], told["finished"], len(told["unread"])) == (1, 0, 1, 0, 2)
        assert len(told["problems"]) == 1
        code, _, err = run("ingest", good, "-n", "unread")
        assert (code, "2 episodes of earlier runs could not be read: kg-memory retry" in err) == (0, True)
    told = result(run, "ingest", good, bad, "-n", "unread")
    assert (told["finished"], told["known"], told["unread"]) == (0, 3, [])


def test_what_asking_a_model_took_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server() as url:
        monkeypatch.setenv("KG_MEMORY_BASE_URL", url)
        path, model = lines(tmp_path, CHAT), ("--model", "scripted")
        done = result(run, "ingest", path, "-n", "paid", *model)
        assert (done["calls"], done["input_tokens"], done["output_tokens"]) == (4, 4, 4)
        thorough = result(run, "ingest", path, "-n", "paid more", *model, "--plan", "thorough")
        assert thorough["calls"] == 10
        _, out, _ = run("ingest", path, "-n", "paid in words", *model)
        assert "4 calls of the model: 4 tokens in, 4 out" in out
        _, out, _ = run("ingest", path, "-n", "paid in words", *model)
        assert "of the model" not in out
    assert result(run, "ingest", path, "-n", "for nothing")["calls"] == 0


def test_facts_of_a_time_are_found_among_many_later_ones(run: Run, tmp_path: Path) -> None:
    talk = [
        {"content": f"I moved to {place}.", "speaker": "Nora", "at": f"{1900 + year}-01-01T00:00:00Z"}
        for year, place in enumerate(("Bergen", "Oslo") * 60)
    ]
    assert run("ingest", lines(tmp_path, talk), "-n", "then")[0] == 0
    then = result(run, "facts", "Nora", "--on", "1900-06-01", "-n", "then")
    assert [fact["objects"] for fact in then if fact["predicate"] == "LIVES_IN"] == [["Bergen"]]


def test_conversations_of_one_file_can_be_kept_apart(run: Run, tmp_path: Path) -> None:
    talks = [{**record, "thread": f"{name}/s1", "source_id": None} for name in ("a", "b") for record in CHAT[:1]]
    done = result(run, "ingest", lines(tmp_path, talks), "-n", "apart", "--namespace-per-conversation")
    assert done["new"] == 2
    others = result(run, "stats", "-n", "apart")["other_namespaces"]
    assert {"apart/a", "apart/b"} <= set(others)


def test_a_content_that_is_too_long_is_a_problem_not_an_end(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KG_MEMORY_MAX_CONTENT", "20")
    done = result(run, "ingest", lines(tmp_path, CHAT), "-n", "long")
    assert done["new"] == 2
    assert "split it" in done["problems"][0]


@pytest.mark.parametrize(
    "command",
    [
        ["ask", "Where is Ann?"],
        ["ask", "Where is Ann?", "--explain"],
        ["facts", "Ann"],
        ["around", "Ann"],
        ["entities"],
        ["episodes"],
        ["stats"],
        ["history", "Ann", "lives in"],
        ["timeline", "Ann"],
        ["changes"],
        ["conflicts"],
        ["review"],
        ["predicates"],
        ["predicates", "lives in"],
    ],
)
def test_an_empty_memory_answers_without_an_error(run: Run, command: list[str]) -> None:
    code, out, _ = run(*command, "-n", "nobody at all")
    assert code == 0
    assert out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ingest", "no-such-file.json"], "does not exist"),
        (["ask", " "], "empty"),
        (["facts", "x", "--on", "?"], "is not a time: give a date such as"),
        (["ask", "x", "--during", "2020..2019"], "during must end after it begins"),
        (["history", " "], "empty"),
        (["evolution", "nothing"], "namespace has no fact 'nothing'"),
        (["evolution", "nothing"], "`kg-memory facts --ids`"),
        (["consequences", "nothing", "-n", "Ann's"], 'Searched in the namespace "Ann\'s"'),
        (["forget", "--fact", "nothing", "--yes"], "`kg-memory facts --ids`"),
        (["around", "Ann", "--steps", "7"], "steps must be at most 6"),
        (["stats", "--namespace", ""], "namespace must be a non-empty string"),
        (["stats", "--url", "http://x"], "falkor://"),
        (["facts", "--on", "32 May 2024"], "kg-memory: --on must be a time, got '32 May 2024'"),
        (["evict", "--max-entities", "-1"], "kg-memory: --max-entities must be"),
        (["verdicts", "nothing"], "`kg-memory facts --ids` shows the ids"),
        (["forget", "--thread", "t", "--yes"], "`kg-memory episodes --ids` has each message with its thread"),
        (["stats", "--url", "falkor://127.0.0.1:1"], "cannot be reached"),
    ],
)
def test_an_error_is_one_message_without_a_traceback(run: Run, arguments: list[str], says: str) -> None:
    code, _, err = run(*arguments)
    assert code == 1
    assert says in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(run: Run) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        run("ingest", "no-such-file.json", "--debug")


# --- terminals and pipes ---


def test_control_characters_of_stored_text_never_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "Nora\x1b]0;owned\x07 \x9b31m moved\u202e to Oslo."
    path = lines(tmp_path, [{**CHAT[0], "content": evil, "speaker": "Ev\x1b[31mil"}])
    assert run("ingest", path, "-n", "evil")[0] == 0
    for command in (["episodes"], ["ask", "Oslo"], ["entities"], ["facts", "Nora"]):
        for flag in ([], ["--json"]):
            _, out, err = run(*command, *flag, "-n", "evil")
            assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert result(run, "episodes", "-n", "evil")[0]["content"] == evil


def test_what_steers_a_terminal_is_written_out() -> None:
    assert printable("a\x1b[2J\nb\ud800é中\U0001f600") == "a\\x1b[2J\nb\\ud800é中\U0001f600"


def on_terminal(*arguments: str, **environment: str) -> str:
    """Run the command on a terminal of its own and return all that appears there."""
    terminal = Terminal(*arguments, **environment)
    assert terminal.end() == 0
    return terminal.shown


def test_a_terminal_shows_a_bar_and_coloured_tables_and_no_colour_on_request(run: Run, tmp_path: Path) -> None:
    shown = on_terminal("ingest", str(lines(tmp_path, CHAT)), "-n", "tty")
    assert "3/3" in shown
    shown = on_terminal("episodes", "-n", "tty")
    assert "─" in shown
    assert "\x1b[" in shown
    shown = on_terminal("episodes", "-n", "tty", NO_COLOR="1")
    assert "\x1b[3" not in shown


def test_a_reader_that_leaves_early_is_no_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ingest", lines(tmp_path, CHAT), "-n", "pipe")[0] == 0
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        assert main(["episodes", "-n", "pipe"]) == 0
    assert "Error" not in capsys.readouterr().err


# --- Ctrl-C ---


def test_ctrl_c_in_the_middle_of_an_ingest_loses_nothing_and_the_next_run_goes_on(run: Run, tmp_path: Path) -> None:
    count = 60
    talk = [
        {"content": f"I visited friend number {index} in Oslo yesterday.", "speaker": "Nora", "source_id": f"c{index}",
         "at": f"2024-01-{1 + index // 24:02}T{index % 24:02}:00:00Z", "thread": "t"}
        for index in range(count)
    ]  # fmt: skip
    path = lines(tmp_path, talk)
    process = subprocess.Popen(
        [*COMMAND, "ingest", str(path), "-n", "ctrl-c"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while result(run, "stats", "-n", "ctrl-c")["episodes"] < 5:
        assert time.monotonic() < deadline
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "run the same command again" in err
    assert "Traceback" not in err
    before = result(run, "stats", "-n", "ctrl-c")["episodes"]
    assert 5 <= before < count
    told = re.search(r"(\d+) of 60 episodes saved, (\d+) of them read", err)
    assert told, err
    assert before - 1 <= int(told[1]) <= before
    assert int(told[2]) <= before - result(run, "stats", "-n", "ctrl-c")["waiting"]

    done = result(run, "ingest", path, "-n", "ctrl-c")
    assert done["new"] + done["known"] == count
    assert done["known"] == before
    stored = [episode["source_id"] for episode in result(run, "episodes", "-n", "ctrl-c", "--limit", 1000)]
    assert sorted(stored) == sorted(f"c{index}" for index in range(count))
    assert result(run, "stats", "-n", "ctrl-c")["waiting"] == 0


@pytest.mark.parametrize("vectors", ["without a key", "of another model"])
def test_what_asks_no_model_needs_none(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str) -> None:
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
    forgotten = result(run, "forget", "--speaker", "Tom", "--yes", *space)
    assert (forgotten["residue"], forgotten["searched"] > 0) == ([], True)
    assert result(run, "stats", *space)["episodes"] == 2
    assert result(run, "forget", "--everything", "--yes", *space)


# --- doctor ---


def test_the_doctor_finds_a_sound_set_up_well(run: Run) -> None:
    report = result(run, "doctor")
    assert report["well"]
    assert {check["what"] for check in report["checks"]} >= {"Python", "FalkorDB binaries", "data folder", "database"}
    code, out, _ = run("doctor")
    assert (code, "All is well." in out) == (0, True)


def test_the_data_home_of_the_platform_is_where_the_database_would_be(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("KG_MEMORY_DATA_DIR")
    _, out, _ = run("doctor", "--json")
    found = {check["what"]: check["found"] for check in json.loads(out)["checks"]}
    home = binaries.data_home(str(tmp_path))
    assert found["data folder"].startswith(str(home / "database"))
    assert demo._settings(Namespace())[1] == str(home / "demo")


def test_the_doctor_says_what_to_mend(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("KG_MEMORY_BIN_DIR", str(tmp_path))
    monkeypatch.setenv("KG_MEMORY_MODEL", "gpt-x")
    code, out, _ = run("doctor", "--data-dir", tmp_path / "file", "--json")
    wrong = {check["what"]: check["mend"] for check in json.loads(out)["checks"] if check["state"] == "wrong"}
    assert code == 1
    assert "name a folder" in wrong["data folder"]
    assert "OPENAI_API_KEY" in wrong["language model"]
    assert "docker run" in wrong["FalkorDB binaries"]
    assert wrong["database"]


def test_the_doctor_names_what_was_saved_by_a_clock_that_is_ahead(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(
        run, "ingest", lines(tmp_path, [{"content": "I live in Oslo.", "speaker": "Ann"}]), "--namespace", "00 early"
    )
    monkeypatch.setattr(setup, "_SKEW", -86_400_000_000)
    [database] = [check for check in result(run, "doctor")["checks"] if check["what"] == "database"]
    assert database["state"] == "note"
    assert re.match("messages in 00 early.* were saved by a clock", database["mend"])


def test_what_could_not_be_read_is_told_by_the_lists_and_the_doctor(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = lines(tmp_path, [{"content": "I live in Oslo.", "speaker": "Ann"}])
    result(run, "ingest", said, "--namespace", "00 early")
    with GraphMemory.open(settings=Settings.from_env()) as memory:
        key = graph_key("00 early")
        memory.driver.store.database.query(key, "MATCH (e:Episode) SET e.status = 'failed'", {}, write=True)
    assert "1 failed" in run("namespaces")[1]
    assert "kg-memory retry" in run("stats", "--namespace", "00 early")[2]
    [database] = [check for check in result(run, "doctor")["checks"] if check["what"] == "database"]
    assert (database["state"], "messages in 00 early could not be read" in database["mend"]) == ("note", True)
    result(run, "retry", "--namespace", "00 early")
    assert "failed" not in run("namespaces")[1]


def test_the_doctor_shows_no_password(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KG_MEMORY_MODEL", "scripted")
    monkeypatch.setenv("KG_MEMORY_BASE_URL", "http://ann:hidden@localhost:1/v1")
    _, out, _ = run("doctor")
    assert "http://***@localhost:1/v1" in out
    assert "hidden" not in out


def test_the_doctor_says_what_makes_a_server_of_ones_own_faster(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path / "server") as node:
        monkeypatch.setenv("KG_MEMORY_URL", node.url())
        code, out, _ = run("doctor", "--json")
        [database] = [check for check in json.loads(out)["checks"] if check["what"] == "database"]
    assert (code, database["state"]) == (0, "note")
    assert f"CACHE_SIZE {embedded.QUERY_PLANS}" in database["mend"]
    monkeypatch.delenv("KG_MEMORY_URL")
    own = {check["what"]: check["state"] for check in result(run, "doctor")["checks"]}
    assert own["database"] == "ok", "the embedded one keeps enough"


# --- with a model ---


def test_a_model_answers_in_a_sentence_and_its_failure_costs_only_the_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("ingest", lines(tmp_path, CHAT), "-n", "asked")[0] == 0
    monkeypatch.setenv("KG_MEMORY_MODEL", "test-model")
    monkeypatch.setenv("KG_MEMORY_BASE_URL", BASE_URL)
    with openai_wire() as wire:
        route = wire.post("/chat/completions")
        route.return_value = completion({"sentences": ["In Oslo, since September 2024."]})
        found = result(run, "ask", "Where does Nora live?", "-n", "asked")
        assert found["answer"].startswith("In Oslo")
        assert "I moved to Oslo last week." in body(route.calls.last)["messages"][0]["content"]

        _, out, _ = run("ask", "Where does Nora live?", "-n", "asked")
        assert out.startswith("In Oslo, since September 2024.\n")

        route.return_value = completion(refusal="I had rather not.")
        code, out, err = run("ask", "Where does Nora live?", "-n", "asked")
        assert (code, "SOURCE" in out, "declined" in err) == (0, True, True)
