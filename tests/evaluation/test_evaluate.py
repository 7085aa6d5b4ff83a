"""`kg-memory evaluate` from the command to the report, with a scripted model over HTTP."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kg_memory.cli import main
from tests.chat_server import Said, chat_server, fenced
from tests.evaluation import locomo

NAMES = ("--reader", "openai:scripted", "--judge", "openai:scripted")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KG_MEMORY_URL", "KG_MEMORY_BASE_URL", "KG_MEMORY_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[locomo.Model]:
    """A scripted model behind a server, which answers for `openai:` names."""
    model = locomo.Model()
    with chat_server(model) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        yield model


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command on a file with two conversations, into the folder ``out``."""
    data = locomo.write(tmp_path / "locomo.json", "c1", "c2")

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        given = ["evaluate", "--dataset", "locomo", "--data", data, "--out", tmp_path / "out", *arguments]
        code = main([str(argument) for argument in given])
        out, err = capsys.readouterr()
        return code, out, err

    return run


Command = Callable[..., tuple[int, str, str]]


def rows(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "results.jsonl").read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == kind]


def test_evaluate_runs_three_systems_from_cost_to_report(command, model, tmp_path):
    """One evaluation of three systems: cost estimate, run and report.

    Features: A56.
    """
    how = ("--system", "ours,bm25,full", *NAMES, "--limit", 8, "--price", "openai:scripted=1/2")
    code, _, err = command(*how, "--dry-run")
    assert code == 0
    assert "ours: ingest" in err
    assert "bm25: answer  openai:scripted  8 calls" in err
    assert "bm25: judge   openai:scripted  16 calls" in err
    assert "in money" in err
    assert not model.asked

    code, out, err = command(*how, "--yes")
    assert code == 0, err
    answers = rows(tmp_path / "out", "answer")
    assert len(answers) == 24
    assert {row["category"] for row in answers} == {"multi_hop", "temporal", "open_domain", "single_hop"}
    assert all(row["answer"] in row["expected"] for row in answers if row["system"] == "full")
    assert all(row["reader_calls"] == 1 and row["context_tokens"] > 0 for row in answers)
    verdicts = rows(tmp_path / "out", "verdict")
    assert len(verdicts) == 24
    assert all(row["judge_calls"] == 2 and set(row["verdict"]) == {"strict", "lenient"} for row in verdicts)
    assert sum(row["calls"] for row in rows(tmp_path / "out", "ingest") if row["system"] == "ours") >= 12
    assert model.asked["RIGHT?"] == 48
    assert "1.000 [1.000, 1.000]" in out
    report = (tmp_path / "out" / "report.md").read_text("utf-8")
    for part in ("| full | 8 of 8 | 1.000 [", "CC BY-NC", "ours - bm25", "recall@20", "Be generous", "openai:scripted"):
        assert part in report

    before = model.asked.copy()
    assert command(*how, "--yes")[0] == 0
    assert model.asked == before


@pytest.mark.system
def test_evaluate_resumes_a_killed_run_without_rereading(tmp_path):
    data, out = locomo.write(tmp_path / "locomo.json", "c1", "c2"), tmp_path / "out"
    model, reached = locomo.Model(), threading.Event()
    blocked = True

    def watch(name: str, body: dict[str, Any]) -> Any:
        if blocked and sum(model.asked.values()) >= 10:
            reached.set()
            threading.Event().wait(0.5)
            raise ConnectionError
        return model(name, body)

    arguments = ["evaluate", "--dataset", "locomo", "--data", str(data), "--system", "bm25,full", *NAMES]
    arguments += ["--out", str(out), "--yes", "--concurrency", "1"]
    with chat_server(watch) as url:
        environment = {**os.environ, "OPENAI_BASE_URL": url}
        run = [sys.executable, "-W", "ignore", "-m", "kg_memory", *arguments]
        process = subprocess.Popen(run, env=environment, stderr=subprocess.DEVNULL)
        assert reached.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = {(row["system"], row["question"]) for row in rows(out, "answer")}
        assert done
        with (out / "results.jsonl").open("ab") as file:
            file.write(b'{"kind": "answer", "system": "bm25", "ques')  # an unfinished line
        blocked = False
        asked_before = model.asked.copy()
        ended = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(rows(out, "answer")) == 24
    assert len({(row["system"], row["question"]) for row in rows(out, "answer")}) == 24
    new = sum((model.asked - asked_before).values())
    verdicts_done = 24 - sum(1 for _ in done)
    assert new <= verdicts_done + 2 * 24
    assert sum(count for kind, count in model.asked.items() if kind != "RIGHT?") == 24


def test_evaluate_stops_at_budget_and_resumes_with_more(command, model, tmp_path):
    how = ("--system", "bm25", *NAMES, "--yes")
    code, _, err = command(*how, "--budget", "calls=7")
    assert code == 1
    assert "the budget of 7 calls is spent" in err
    assert sum(model.asked.values()) == 7
    assert command(*how, "--budget", "calls=7")[0] == 1
    assert sum(model.asked.values()) == 7
    assert command(*how, "--budget", "calls=1000")[0] == 0
    assert len(rows(tmp_path / "out", "verdict")) == 12


def test_evaluate_retrieval_only_needs_no_model(command, tmp_path):
    code, out, err = command("--system", "ours,bm25,dense,hybrid", "--retrieval-only")
    assert code == 0, err
    assert "No model will be asked" in err
    assert "NDCG@10" in out
    found = rows(tmp_path / "out", "retrieval")
    assert len(found) == 4 * 12
    assert all(row["sources"] for row in found)


def test_evaluate_reports_a_failed_server_and_resumes_later(command, monkeypatch, tmp_path):
    how = ("--system", "bm25", *NAMES, "--yes")
    with chat_server(lambda *_: Said({"error": {"message": "no such model"}}, 404)) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        code, _, err = command(*how)
    assert code == 1
    assert "check the model's name" in err
    with chat_server(locomo.Model()) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        assert command(*how)[0] == 0
    assert len(rows(tmp_path / "out", "answer")) == 12


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--reader", "openai:x", "--judge", "rules"), "set OPENAI_API_KEY"),
        (("--reader", "groq:x", "--judge", "rules"), "set its API key"),
        (("--judge", "rules"), "--reader"),
        (("--system", "nothing", "--retrieval-only"), "unknown system 'nothing'"),
        (("--system", "ours:deep", "--retrieval-only"), "the plan of the system ours must be one"),
        (("--system", "ours:economy", "--retrieval-only"), "needs a model"),
        (("--categories", "sport", "--retrieval-only"), "unknown category 'sport'"),
        (("--conversations", "c9", "--retrieval-only"), "unknown conversation 'c9'"),
        ((*NAMES, "--budget", "money=5"), "needs prices"),
        (("--dataset", "nothing", "--retrieval-only"), "unknown data set 'nothing'"),
        (("--dataset", "niah", "--retrieval-only"), "leave out --data"),
        (("--data", "missing.json", "--retrieval-only"), "missing.json does not exist"),
        (("--data", __file__, "--retrieval-only"), "not valid JSON"),
    ],
)
def test_evaluate_refuses_wrong_arguments(command, arguments, told):
    code, _, err = command(*arguments)
    assert code == 1
    assert told in err
    assert "fault of kg-memory" not in err


def test_evaluate_refuses_to_mix_results_of_two_runs(command, model):
    assert command("--system", "bm25", *NAMES, "--yes")[0] == 0
    code, _, err = command("--system", "bm25", *NAMES, "--yes", "--max-tokens", "100")
    assert code == 1
    assert "use another --out" in err


def test_paid_evaluation_needs_yes(command, model, monkeypatch):
    with open(os.devnull) as nothing:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdin", nothing)
        code, _, err = command("--system", "bm25", *NAMES)
    assert (code, "add --yes" in err) == (1, True)
    assert not model.asked


def test_rubric_items_are_scored_singly_and_order_apart(tmp_path, monkeypatch, capsys):
    chat = tmp_path / "chats" / "1"
    (chat / "probing_questions").mkdir(parents=True)
    turns = [{"role": "user", "id": n, "content": text, "time_anchor": "March-15-2024"} for n, text in enumerate("xyz")]
    (chat / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": [turns]}]))
    asked = {"question": "In which order?", "answer": "x, y, z", "source_chat_ids": [0, 2], "rubric": ["x", "y", "z"]}
    probing = {"event_ordering": [asked], "abstention": [{"question": "Why?", "rubric": ["says it is not known"]}]}
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(probing))
    scores = iter(["1", "Score: 0.5", "unreadable", "0"])

    def answer(name: str, body: dict[str, Any]) -> str:
        text = body["messages"][0]["content"]
        if "Requirement: says" in text:
            return "1"
        if "Requirement:" in text:
            return next(scores)
        return "2, 1, 3" if "Events:" in text else "y, then x, then z"

    arguments = ["evaluate", "--dataset", "beam", "--data", str(tmp_path / "chats"), "--system", "full", "--yes"]
    with chat_server(answer) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        how = ["--out", str(tmp_path / "out"), "--concurrency", "1"]
        assert main([*arguments, *NAMES, *how]) == 0
        assert main([*arguments, "--reader", "openai:x", "--judge", "rules", "--out", str(tmp_path / "other")]) == 1
    assert "has rubrics" in capsys.readouterr().err
    verdicts = {row["question"]: row["verdict"] for row in rows(tmp_path / "out", "verdict")}
    assert verdicts["beam-1/event_ordering-1"] == pytest.approx({"strict": 1 / 3, "lenient": 0.5, "order": 2 / 3})
    assert verdicts["beam-1/abstention-1"] == {"strict": 1, "lenient": 1}


def test_evaluate_runs_a_user_system_and_reports_its_errors(command, model, tmp_path, monkeypatch):
    """`kg-memory evaluate` runs a user's own system, and reports its errors.

    Features: J5.
    """
    (tmp_path / "mine.py").write_text(
        "from kg_memory.contrib.evaluation.records import Retrieved\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    def ingest(self, conversation): pass\n"
        "    def context(self, question, conversation, max_tokens):\n"
        "        if 'fear' in question.text: raise RuntimeError('a fault of mine')\n"
        "        return Retrieved('Nora keeps two goats.', (), 6)\n"
        "    def close(self): pass\n"
        "def open_mine(tools): return Mine()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code, _, err = command("--system", "mine:open_mine", *NAMES, "--yes")
    assert code == 1
    assert "2 steps failed" in err
    assert "a fault of mine" in err
    assert "mine: ingest  openai:scripted  unknown" in err
    assert len(rows(tmp_path / "out", "answer")) == 10
    assert "mine: 2 of 12 questions are not answered" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_evaluate_runs_the_example_system_of_the_docs(command, model, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "latest_messages.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code, out, err = command("--system", "latest_messages:open_mine,bm25", *NAMES, "--model", "offline", "--yes")
    assert code == 0, err
    assert "latest  12 of 12  1.000 [1.000, 1.000]" in out


@pytest.mark.parametrize(("more", "code", "answers"), [(0, 1, 0), (20, 0, 6)])
def test_evaluate_tolerates_one_unread_message_among_many(command, monkeypatch, tmp_path, more, code, answers):
    data, model = locomo.write(tmp_path / "more.json", "c1", more=more), locomo.Model()
    declines = True

    def watch(name: str, body: dict[str, Any]) -> Any:
        asked = fenced(body["messages"][0]["content"]) if "response_format" in body else {}
        if declines and "spiders" in str(asked.get("episode")):
            return "I had rather not."
        return model(name, body)

    how = ("--data", data, "--system", "ours:thorough", *NAMES, "--yes", "--max-tokens", "400")
    with chat_server(watch) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        ended, _, err = command(*how)
        assert (ended, len(rows(tmp_path / "out", "answer"))) == (code, answers), err
        assert "of c1 are saved but could not be read: " in err
        declines = False
        assert command(*how)[0] == 0
    assert len(rows(tmp_path / "out", "answer")) == 6
