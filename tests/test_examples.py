"""Every example runs as a user runs it; the chat model that some ask knows only what the memory returns."""

import json
import multiprocessing
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from tests.waiting import until

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["kg_memory.memory.memory", "kg_memory.contrib.offline", "langchain.agents", "langchain_openai"]
)
"""Processes forked from one that has imported what examples import, which would take a second in each."""
ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
ASKING = [each for each in EXAMPLES if re.search("ChatOpenAI|init_chat_model", each.read_text(encoding="utf-8"))]
BERGEN, OSLO = "You told me: in Bergen.", "You told me: in Oslo."
SHOWN = {
    "01_remember_and_recall": [
        "in Oslo",
        "(since the week of 9 September 2024)",
        "Ann lives in Bergen",
        "said: 'I live in Bergen.'",
    ],
    "02_agent_middleware": ["Noted.", OSLO, "I do not know."],
    "03_nodes_in_a_graph": ["Noted.", OSLO],
    "04_store_in_a_graph": ["the item: {'content': 'Ann lives in Oslo.'}", "Ann lives in Oslo.  (1)", "(fact:"],
    "05_retriever_in_a_chain": [OSLO, BERGEN],
    "06_background_memory": ["to be read: 2", "already: I live in Oslo.", "to be read: 0, failed: 0", "Ann works at"],
    "07_several_users": ["for ann@example.com:", "in Oslo", "for bo.berg:", "in Bergen", "for 李雷:", "北京"],
    "08_any_openai_server": ["Lisa lives in Oslo"],
    "09_as_of_a_date": ["True in the summer of 2023\n    LIVES_IN Oslo: 2021"],
    "10_human_review": [
        "by Bo, 2024-03-02",
        "Decided: reject Ann lives in Oslo",
        "Believed:\n    Ann lives in Bergen",
        "memory.reviews.undo(",
    ],
    "11_many_messages": ["2 messages, 2 new", "(Place)", "Ann lives in Oslo\n"],
    "12_tools": ["calls remember({'content': 'I live in Oslo.'})", "calls search_memory(", OSLO],
    "13_recipes": [
        "By the recipe default (relevance ",
        "Ann: I play chess with Tom on Sundays.",
        "By the recipe words (",
        "By the recipe synapse (",
        "By the recipe new and diverse (",
        "Only what Tom said before 2024",
        "Tom: I live in Oslo and I work at Acme.",
        "[knowledge graph]\n- Ann: I play chess with Tom on Sundays.",
        "found by words ",
        "rank 1",
        "not among the first 2",
    ],
    "14_declared_facts": [
        "Ann Berg works at Acme",
        "left out: mapping 1: object $.jobs[1].at is missing",
        "Globex: 2023-05 to None",
        "Acme: 2020-01 to 2023-05",
        "Bo Lund lives in Oslo (since 2022)",
    ],
    "15_erase_a_person": [
        "{'speaker': 'Ann'} would take 1 message(s)",
        "{'entity': 'Ann Berg'} would take 1 message(s)",
        "traces left: [], files clean: True",
        "What is left:\n    I play chess on Sundays.\n",
        "The log is whole: True",
    ],
    "16_why_it_said_so": [
        "The agent was asked about 2024-04-20: Ann lives in Bergen",
        "It would answer now: Ann lives in Oslo",
        "It believed then: Ann lives in Bergen",
        "corrected: Ann lives in Oslo  [2024-04-01",
    ],
    "17_customer_history": [
        "Globex: 2024-03 to now, says Ann Berg",
        "Acme: 2020-05 to 2024-03, says the CRM",
        "At Acme in June 2024: Bo Lund\n",
        "I plan to visit Oslo in June.",
        "Ann Berg bought Basic",
    ],
    "18_coding_agent_mcp": ["Tools: recall remember", "Ann uses PostgreSQL 16"],
    "19_support_bot": ["Noted.", OSLO, "For the person who takes over:", "Bergen"],
    "20_service_for_tenants": [
        "acme%2Fann 200 I live in Oslo.",
        "globex%2Fann 403 this key does not allow 'read' in the namespace 'globex/ann'",
    ],
}
"""What each example prints, in this order."""
HIDDEN = {"07_several_users": ("for bo.berg:", "Oslo")}
"""A text that an example prints, and a text that it must not print after it."""
CHAT = "2024-01-10 09:30 Ann: I live in Bergen.\n2024-05-14 18:05 Ann: I moved to Oslo!\n"
NO_KEY = (
    "This example asks a chat model: set OPENAI_API_KEY (and OPENAI_BASE_URL, if it is not one of OpenAI's). "
    "Without a key, run 01 to 04 or any other without a dagger in examples/README.md.\n"
)
WITHOUT_KEY = {
    "02_agent_middleware": ["knows nothing of this", "The memory says: user lives in Oslo", "knows nothing of this"],
    "03_nodes_in_a_graph": ["knows nothing of this", "The memory says: Ann lives in Oslo"],
}
"""What the examples print that run without a key, in this order."""


@pytest.fixture
def run(tmp_path):
    """A way to run an example with a data folder of its own; it leaves no process behind."""
    if "KG_MEMORY_BIN_DIR" not in os.environ:
        binaries.download_missing()
    folder = tmp_path / "db"
    settings = {"KG_MEMORY_DATA_DIR": str(folder), "KG_MEMORY_IDLE_SECONDS": "0", "PYTHONPATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}

    def call(name, *arguments, **environment):
        command = [str(ROOT / "examples" / f"{name}.py"), *map(str, arguments)]
        shown = [tmp_path / "stdout", tmp_path / "stderr"]
        process = FORKS.Process(target=run_script, args=(command, {**kept, **settings, **environment}, shown))
        process.start()
        process.join(120)
        if process.is_alive():
            process.kill()
        return subprocess.CompletedProcess(command, process.exitcode, *(path.read_text("utf-8") for path in shown))

    yield call
    until(lambda: not embedded.is_running(folder))


def run_script(command, environment, shown):
    """Run the script of a command line as Python does."""
    for number, path in enumerate(shown, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[0] = command, str(Path(command[0]).parent)
    runpy.run_path(command[0], run_name="__main__")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_expected_output(example, run, chat_url, tmp_path):
    (tmp_path / "chat.txt").write_text(CHAT, encoding="utf-8")
    given = {"08_any_openai_server": [chat_url, "scripted", "hash"], "11_many_messages": [tmp_path / "chat.txt"]}
    access = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": chat_url} if example in ASKING else {}
    ran = run(example.stem, *given.get(example.stem, []), **access)
    assert ran.returncode == 0, ran.stderr
    place = 0
    for expected in SHOWN[example.stem]:
        place = ran.stdout.find(expected, place)
        assert place >= 0, f"{expected!r} is not where it should be in:\n{ran.stdout}\n{ran.stderr}"
    behind, text = HIDDEN.get(example.stem, (ran.stdout, "\0"))
    assert text not in ran.stdout.split(behind, 1)[1]


@pytest.mark.parametrize("example", ASKING, ids=lambda path: path.stem)
def test_example_without_a_key_prints_memory_or_a_hint(example, run):
    ran = run(example.stem)
    expected = WITHOUT_KEY.get(example.stem)
    if expected is None:
        assert (ran.returncode, ran.stderr) == (1, NO_KEY)
        return
    assert ran.returncode == 0, ran.stderr
    assert re.search(".*".join(map(re.escape, expected)), ran.stdout, re.DOTALL), ran.stdout


def test_examples_are_numbered_and_short():
    assert [int(each.stem[:2]) for each in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))
    for each in EXAMPLES:
        text = each.read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert f"python examples/{each.name}" in text
        assert len(text.splitlines()) <= 45


def test_a_copy_of_the_template_passes_its_own_tests(tmp_path):
    folder = tmp_path / "my-agent"
    shutil.copytree(ROOT / "examples" / "template", folder)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KG_MEMORY_", "OPENAI_"))}
    kept |= {"KG_MEMORY_DATA_DIR": str(tmp_path / "data"), "KG_MEMORY_IDLE_SECONDS": "0", "PYTHONPATH": str(ROOT)}
    named = json.loads((folder / "langgraph.json").read_text("utf-8"))["graphs"].values()
    assert [graph.partition(":")[2] for graph in named] == ["agent", "review"]
    script = """
import sys
sys.path.insert(0, ".")
import pytest, studio
studio.agent.compile(), studio.review.compile(), studio.memory.close()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider"]))
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
