"""The log has a line for each episode and each failure, and no text of a message."""

import ast
import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import kg_memory
from kg_memory import errors
from kg_memory.runtime.telemetry import mask
from tests.openai_wire import completion, failure, openai_wire
from tests.scripted import HashEmbeddings, raising
from tests.telemetry.conftest import wired_model

MARK = "Xanadu"
TEXTS = {"error", "raised", "problem", "content", "text", "sentence", "summary", "answer", "question"}
"""Names that no argument of a log call may have."""
SAID = {"speaker": "Ann", "at": "2024-05-01T10:00:00Z"}
FIELDS = {"namespace", "episode", "status", "seconds", "calls", "input_tokens", "output_tokens", "cached_tokens"}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


@pytest.fixture
def lines(log: pytest.LogCaptureFixture) -> Callable[[], list[Any]]:
    """Return a function that lists the log records of episodes."""
    return lambda: [item for item in log.records if item.name == "kg_memory.episodes"]


def everything(log: pytest.LogCaptureFixture) -> str:
    """Return everything that a formatter could print of the log records."""
    formatter = logging.Formatter()
    return "\n".join(f"{formatter.format(item)} {vars(item)}" for item in log.records)


def test_log_has_one_line_per_read_episode(verbs, namespace, lines):
    added = verbs.add("I live in Oslo.", **SAID)
    [line] = lines()
    assert line.levelno == logging.INFO
    assert vars(line).keys() >= FIELDS
    assert (line.namespace, line.episode, line.status) == (mask(namespace), added.episode, "done")
    assert line.seconds > 0
    assert f"episode={added.episode} status=done seconds=" in line.getMessage()


def test_log_skips_repeated_episodes_and_gives_reason_of_skipped(memory, namespace, lines):
    for _ in range(2):
        memory.add("Thanks!", namespace=namespace, **SAID)
    [line] = lines()
    assert line.status == "skipped"
    assert line.reason


def test_log_line_counts_calls_and_tokens(opened, namespace, lines):
    with openai_wire() as wire:
        wire.post("/chat/completions").mock(return_value=completion({"entities": [], "facts": []}))
        opened(wired_model(), reflections=0).add("I live in Oslo.", namespace=namespace, **SAID)
    [line] = lines()
    assert line.calls >= 1
    assert (line.input_tokens, line.output_tokens) == (100 * line.calls, 10 * line.calls)


def test_log_line_of_failure_has_step_and_kind(memory, model, namespace, lines):
    def refuse(_: Any) -> Any:
        raise errors.ModelRefusal(f"it does not like {MARK}") from ValueError(MARK)

    model.rules["facts"] = refuse
    with pytest.raises(errors.ModelRefusal):
        memory.add("I live in Oslo.", namespace=namespace, **SAID)
    [line] = lines()
    assert line.levelno == logging.WARNING
    assert (line.step, line.status, line.reason) == ("facts", "failed", "ModelRefusal (ValueError)")
    assert 'reason="ModelRefusal (ValueError)"' in line.getMessage()


def test_log_has_line_for_episode_refused_at_receive(memory, namespace, lines):
    with pytest.raises(errors.InputError):
        memory.add("  ", namespace=namespace, **SAID)
    [line] = lines()
    assert (line.step, line.levelno) == ("receive", logging.INFO), "its caller gets the error"
    assert not hasattr(line, "episode")
    assert "the content is empty" in line.reason


def test_log_has_own_line_for_each_of_many_episodes(memory, model, namespace, lines):
    rule = model.rules["extract_message"]

    def some(fields: Any) -> Any:
        if "Bob" in fields["episode"]["content"]:
            raise errors.AnswerError(f"the answer was {MARK}")
        return rule(fields)

    model.rules["extract_message"] = some
    messages = [{"content": content, **SAID} for content in ("I live in Oslo.", "I know Bob.", "Thanks!")]
    added = memory.add_many(messages, namespace=namespace)
    assert [(item.episode, item.status) for item in lines()] == [
        (added[0].episode, "done"), (added[1].episode, "failed"), (added[2].episode, "skipped"),
    ]  # fmt: skip


def test_log_line_cannot_be_forged_by_namespace(memory, log, lines):
    memory.add("I live in Oslo.", namespace='a\nepisode read status=done "x"', **SAID)
    [line] = lines()
    assert "\n" not in line.getMessage()
    assert line.getMessage().count(" status=") == 1, "the namespace is masked"


class Quoting(HashEmbeddings):
    """Fails by an error that quotes the text."""

    def _vector(self, text: str) -> list[float]:
        if MARK in text:
            raise ValueError(f"cannot embed {text}")
        return super()._vector(text)


@pytest.mark.parametrize(
    "error",
    [
        errors.AnswerError(f"the answer was {MARK}"),
        errors.ModelRefusal(f"no {MARK}"),
        errors.ModelUnavailable(f"503: {MARK}"),
        errors.EmbeddingError(f"cannot embed {MARK}"),
        errors.QueryError(f"FalkorDB refused a query: errCtx: content='I live in {MARK}'"),
        errors.DatabaseUnavailable("FalkorDB cannot be reached: try again"),
        errors.InputError("the episode was forgotten"),
        KeyError(MARK),
        ValueError(MARK),
    ],
    ids=lambda each: type(each).__name__,
)
def test_log_of_step_failure_holds_no_message_text(memory, model, namespace, log, lines, error):
    model.rules["facts"] = raising(error)
    with pytest.raises(type(error)):
        memory.add(f"I live in {MARK}.", namespace=namespace, **SAID)
    assert len(lines()) == 1
    assert MARK not in everything(log)


@pytest.mark.parametrize(
    ("reply", "is_error"),
    [
        (failure(400, f"I will not read {MARK}"), True),
        (failure(401, f"bad key {MARK}"), True),
        (failure(404, f"no model {MARK}"), True),
        (failure(500, f"crashed at {MARK}"), True),
        (completion(f"{MARK} is no JSON"), True),
        (completion(""), True),
        (completion({"entities": [{"name": MARK, "type": 7}, {"nom": MARK}], "facts": MARK}), True),
        (completion(f'{{"entities": [{{"name": "{MARK}', finish_reason="length"), True),
        (completion(MARK, finish_reason="stop", refusal=f"{MARK} is not for me"), False),
        (completion(MARK, finish_reason="content_filter", refusal=f"{MARK} is not for me"), False),
    ],
    ids=["400", "401", "404", "500", "no JSON", "empty", "wrong", "cut off", "declined", "filtered"],
)
def test_log_of_bad_answer_holds_no_message_text(opened, namespace, log, lines, reply, is_error):
    memory = opened(wired_model(), reflections=0)
    with openai_wire() as wire:
        wire.post("/chat/completions").mock(side_effect=lambda _: reply)
        with pytest.raises(errors.KGMemoryError) if is_error else nullcontext():
            assert memory.add(f"I live in {MARK}.", namespace=namespace, **SAID).status == "skipped"
    assert len(lines()) == 1
    assert MARK not in everything(log)


def test_log_of_other_failures_holds_no_message_text(opened, model, namespace, log):
    """Embeddings, summaries, communities and callbacks that fail quote no text of a message."""
    from kg_memory.adapters.background import BackgroundMemory  # noqa: PLC0415 - what most tests do without

    def on_failure(failed: Any) -> None:
        raise ValueError(failed.reason if hasattr(failed, "reason") else str(failed))

    memory = opened(embeddings=Quoting())
    with pytest.raises(errors.EmbeddingError):
        memory.add(f"I live in {MARK}.", namespace=f"{namespace} 1", **SAID)
    for name in ("Bob", "Cid", "Dora"):
        memory.add(f"I know {name}.", namespace=namespace, **SAID)
    failing = raising(errors.AnswerError(f"the answer was {MARK}"))
    model.rules |= dict.fromkeys(("community", "summarise", "extract_message"), failing)
    memory.communities.refresh(namespace=namespace)
    with BackgroundMemory(memory, on_failure=on_failure) as background:
        background.submit([f"Ann is in {MARK}"], namespace=f"{namespace} 2").result(60)
    assert "no summary of a community" in log.text
    assert "on_failure failed" in log.text
    assert MARK not in everything(log)


def test_log_calls_pass_no_error_or_text():
    """New log calls pass errors through `kg_memory.runtime.telemetry.describe_error`."""
    results = []
    for path in Path(kg_memory.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        for call in ast.walk(ast.parse(text)) if "getLogger" in text else ():
            match call:
                case ast.Call(ast.Attribute(ast.Name("log" | "logger"), level), args, keywords) if level != "debug":
                    texts = {ast.unparse(item).rpartition(".")[2] for item in args}
                    if level == "exception" or texts & TEXTS or any(item.arg == "exc_info" for item in keywords):
                        results.append(f"{path.name}:{call.lineno}: {ast.unparse(call)}")
    assert results == []


def test_debug_log_contains_error_text(memory, model, namespace, caplog):
    model.rules["facts"] = raising(errors.AnswerError(f"the answer was {MARK}"))
    caplog.set_level(logging.DEBUG, "kg_memory.episodes")
    with pytest.raises(errors.AnswerError):
        memory.add("I live in Oslo.", namespace=namespace, **SAID)
    assert f"the answer was {MARK}" in caplog.text
