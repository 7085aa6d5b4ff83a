"""Failures of a language model over HTTP: the error of the caller, and the stored state.

The episode is stored in every case, and is finished when the model works again.
"""

import asyncio
import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from kg_memory import GraphMemory, Settings, errors
from kg_memory.contrib.embedded import Server
from kg_memory.contrib.scorers import RerankServer
from kg_memory.contrib.sessions import choose_new
from kg_memory.llm.chat import PROBE, ChatModel, open_chat_model
from kg_memory.llm.embeddings import make_reliable, open_embedding_model
from kg_memory.llm.retry import RateLimiter, RetryPolicy
from kg_memory.models.graph import EpisodeStatus
from kg_memory.models.operations import AddResult
from tests.chat_server import Said, chat_server, completion
from tests.faults.failing import AT, FACT, FAILED, PATIENT, SAID, TIMEOUT, WAITING, Model, Outcome, gone, refusing, slow
from tests.llm.samples import ASK
from tests.scripted import HashEmbeddings, stated

SOON, PATIENCE = 0.3, 60.0
"""Timeouts in seconds: one that is reached, and one that is not on a busy machine."""
KEY = "hunter2-of-ann"
ONCE = RetryPolicy(attempts=1, timeouts=1)
READING = {"standard": "EpisodeReading", "thorough": "ExtractedEntities"}
"""The first question of each plan."""
ECHO = {"type": "object", "properties": {"entities": {"type": "array"}, "facts": {"type": "array"}}}
ANN, OSLO = {"name": "Ann", "type": "Person"}, {"name": "Oslo", "type": "Place"}
LIVES = stated("Ann", "lives in", ["Oslo"], FACT, "Oslo", valid_at=AT)


def read(*entities: Any, facts: Any = (LIVES,)) -> str:
    """Return the answer for the message, as text."""
    return json.dumps({"entities": list(entities), "facts": list(facts)}, ensure_ascii=False)


both_plans = pytest.mark.parametrize("memory", ["standard", "thorough"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def memory(request: pytest.FixtureRequest, server: Server, serving: Model) -> Iterator[GraphMemory]:
    plan = getattr(request, "param", "standard")
    settings = Settings(url=server.url, merge_threshold=0.98, ask_threshold=0.6, plan=plan)
    model = ChatModel(open_chat_model("scripted", serving.url, timeout=TIMEOUT), retry_policy=PATIENT)
    with GraphMemory(settings, model=model, embeddings=HashEmbeddings()) as opened:
        yield opened


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a server be probed more than once a minute, as if a minute passed between two tests."""
    monkeypatch.setattr(RateLimiter, "has_probed", False)


Add = Callable[..., AddResult]


@pytest.fixture
def add(memory: GraphMemory, namespace: str) -> Add:
    minutes = count()

    def call(content: str = SAID) -> AddResult:
        at = f"2024-05-01T10:{next(minutes):02}:00Z"
        return memory.add(content, speaker="Ann", at=at, namespace=namespace)

    return call


LASTING: dict[str, tuple[Any, Outcome]] = {
    "429": (refusing(429, "slow down"), Outcome(errors.ModelUnavailable, WAITING, "slow down")),
    "429 with a time": (refusing(429, "slow down", {"Retry-After": "0.01"}), Outcome(errors.ModelUnavailable, WAITING, "try again later")),
    "429 for an hour": (refusing(429, headers={"Retry-After": "3600"}), Outcome(errors.ModelUnavailable, WAITING, "later")),
    "a spent quota": (refusing(429, "You exceeded your quota", code="insufficient_quota"), Outcome(errors.ModelUnavailable, WAITING, "billing")),
    "500": (refusing(500, "oops"), Outcome(errors.ModelUnavailable, WAITING, "scripted failed")),
    "503": (refusing(503, headers={"Retry-After": "0.01"}), Outcome(errors.ModelUnavailable, WAITING, "try again later")),
    "a timeout": (slow, Outcome(errors.ModelUnavailable, WAITING, "model_timeout")),
    "a broken connection": (gone, Outcome(errors.ModelUnavailable, WAITING, "base_url")),
    "a wrong key": (refusing(401, "bad key"), Outcome(errors.SettingsError, WAITING, "api_key")),
    "a key without rights": (refusing(403, "not yours"), Outcome(errors.SettingsError, WAITING, "api_key")),
    "no credit": (refusing(402, "pay first"), Outcome(errors.SettingsError, WAITING, "add credit")),
    "no such model": (refusing(404, "no such model"), Outcome(errors.SettingsError, WAITING, "name and base_url")),
    "too long an answer": (refusing(400, "maximum context length exceeded"), Outcome(errors.SettingsError, WAITING, "max_answer_tokens")),
    "an unknown option": (refusing(400, "top_k?"), Outcome(errors.SettingsError, WAITING, "refuses every request")),
    "an option out of bounds": (refusing(422), Outcome(errors.SettingsError, WAITING, "refuses every request")),
    "a flagged account": (refusing(403, "flagged"), Outcome(errors.SettingsError, WAITING, "api_key")),
    "an invalid key": (refusing(400, "API key not valid"), Outcome(errors.SettingsError, WAITING, "key not valid")),
    "cut off": (Said(completion('{"entities": [{"na', "length")), Outcome(errors.AnswerError, FAILED, "max_tokens")),
    "facts cut off": (Said(completion(read(ANN)[:-30], "length")), Outcome(errors.AnswerError, FAILED, "max_tokens")),
    "no facts": (Said(completion(read(ANN).partition("facts")[0], "length")), Outcome(errors.AnswerError, FAILED, "max_tokens")),
    "cut off in thoughts": (Said(completion(f"<think>{read(ANN, OSLO)} or", "length")), Outcome(errors.AnswerError, FAILED, "max_tokens")),
    "cut off in reasoning": (Said(completion(None, "length", reasoning=read(ANN))), Outcome(errors.AnswerError, FAILED, "max_tokens")),
    "a draft in thoughts": (f"<think>{read(ANN)}</think>{read(OSLO)[:-30]}", Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "no list of facts": (json.dumps({"entities": [ANN, OSLO]}), Outcome(errors.AnswerError, FAILED, "facts is missing")),
    "no JSON": ("Ann and Oslo, I think", Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "broken JSON": ('{"entities": [{"name": "Ann", ', Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "another schema": (json.dumps({"persons": ["Ann"]}), Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "no valid item": (read({"age": "Ann"}, facts=[{"x": 1}]), Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "nothing": ("", Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "only thoughts": ("<think>Who is Ann?</think>", Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "an echo of the schema": (json.dumps(ECHO), Outcome(errors.AnswerError, FAILED, "better at JSON")),
    "no completion at all": (Said({"hello": "world"}), Outcome(errors.ModelUnavailable, WAITING, "no choices")),
    "no choices": (Said({**completion(""), "choices": []}), Outcome(errors.ModelUnavailable, WAITING, "no choices")),
    "null choices": (Said({**completion(""), "choices": None}), Outcome(errors.ModelUnavailable, WAITING, "no choices")),
    "a cut body": (Said(b'{"choices": [{"mes'), Outcome(errors.ModelUnavailable, WAITING, "try again later")),
    "a page": (Said("<html>Bad gateway</html>"), Outcome(errors.ModelUnavailable, WAITING, "not JSON")),
    "502 in a body": (Said({"error": {"message": "upstream", "code": 502}}), Outcome(errors.ModelUnavailable, WAITING, "upstream")),
    "502 in a choice": (Said({"choices": [{"error": {"message": "upstream", "code": 502}}]}), Outcome(errors.ModelUnavailable, WAITING, "upstream")),
    "429 in a body": (Said({"error": {"message": "busy", "code": "429"}}), Outcome(errors.ModelUnavailable, WAITING, "busy")),
    "an error as text in a body": (Said({"error": "overloaded"}), Outcome(errors.ModelUnavailable, WAITING, "overloaded")),
}  # fmt: skip
PASSING = sorted(LASTING.keys() - {"429 for an hour", "a spent quota", "a wrong key", "a key without rights", "no credit", "no such model",
    "too long an answer", "an unknown option", "an option out of bounds", "a flagged account", "an invalid key"})  # fmt: skip


@pytest.mark.parametrize("name", PASSING)
def test_transient_model_failure_is_retried(memory, remote, add, name):
    remote.spoil(READING[memory.settings.plan], LASTING[name][0], times=1)
    added = add()
    assert (added.status, added.error, added.facts) == (EpisodeStatus.DONE, None, (FACT,))
    assert remote.asked.count(READING[memory.settings.plan]) == 2


@pytest.mark.parametrize("name", LASTING)
def test_lasting_model_failure_leaves_episode_to_finish(memory, remote, add, namespace, name):
    fault, outcome = LASTING[name]
    remote.spoil(READING[memory.settings.plan], fault)
    with pytest.raises(outcome.error, match=outcome.reason):
        add()
    [episode] = memory.episodes.list(namespace=namespace)
    assert (episode.content, episode.status, episode.step, episode.attempts) == (SAID, outcome.status, "extract", 1)
    assert outcome.reason in (episode.reason or "")
    stats = memory.stats(namespace=namespace)
    assert (stats.entities, stats.facts) == (0, 0)
    assert memory.search("Oslo", namespace=namespace).episodes[0].id == episode.id
    remote.mend()
    again = memory.episodes.resume if outcome.status is WAITING else memory.episodes.retry
    [added] = again(namespace=namespace)
    assert (added.episode, added.status, added.facts) == (episode.id, EpisodeStatus.DONE, (FACT,))
    assert again(namespace=namespace) == []


SHORT = "answers a short text"
ALONE = {"cut off": "max_tokens", "no JSON": "better at JSON", "500": SHORT, "a timeout": SHORT, "a broken connection": SHORT,
    "a wrong key": SHORT, "too long an answer": "lower chunk_size", "an unknown option": "server's log"}  # fmt: skip
"""The reasons of failures that concern one message only."""


@pytest.mark.parametrize("name", ALONE)
def test_failed_reading_does_not_stop_others(memory, remote, namespace, name):
    remote.spoil(READING[memory.settings.plan], LASTING[name][0], about=SAID)
    given = [{"content": content, "speaker": "Ann", "at": AT, "thread": content} for content in (SAID, "I know Bob.")]
    failed, done = memory.add_many(given, namespace=namespace)
    assert failed.status is FAILED
    assert ALONE[name] in (failed.error or "")
    assert failed.usage.calls == remote.probes + (remote.failed if name in ("cut off", "no JSON") else 0)
    assert (done.status, done.facts) == (EpisodeStatus.DONE, ("Ann knows Bob",))


@pytest.mark.parametrize("name", ["500", "429 for an hour", "a wrong key", "an unknown option"])
def test_outage_stops_add_many_and_all_episodes_wait(memory, remote, namespace, name):
    fault, outcome = LASTING[name]
    given = [{"content": f"I know {who}.", "speaker": "Ann", "at": AT} for who in ("Bob", "Cy", "Dan")]
    memory.episodes.save(given, namespace=namespace)
    remote.spoil(READING[memory.settings.plan], fault)
    with pytest.raises(outcome.error):
        memory.add_many(given, namespace=namespace)
    statuses = [episode.status for episode in memory.episodes.list(namespace=namespace)]
    assert statuses == [WAITING] * 3, "none counts as being read, which after a few processes would fail it"
    remote.mend()
    assert [each.status for each in memory.episodes.resume(namespace=namespace)] == [EpisodeStatus.DONE] * 3


# --- messages that the model declines

BLOCKED = "I know the attacker."
REFUSALS: dict[str, Any] = {
    "a filtered prompt": refusing(400, "policy", code="content_filter"),
    "a prompt filtered in other words": refusing(400, "Your request was flagged by our safety system"),
    "a prompt filtered in a body": Said({"error": {"message": "blocked", "code": "content_filter"}}),
    "a refusal": Said(completion("", refusal="I cannot.")),
    "a filtered answer": Said(completion("", "content_filter")),
    "a refusal in words": Said(completion("I’m sorry, but I can’t help with that.")),
    "a refusal in words, Chinese": Said(completion("抱歉，我无法回答这个问题。")),
    "a refusal in words after thoughts": Said(completion("<think>{} is all?</think>I am unable to process this request.")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "name"), [*(("standard", name) for name in REFUSALS), ("thorough", "a refusal")],
    indirect=["memory"], scope="module",
)  # fmt: skip
def test_refused_message_is_skipped_and_others_are_read(memory, remote, add, namespace, name):
    sent: list[bool] = []

    def decline(body: Any) -> Any:
        if PROBE.text in str(body):
            return None
        sent.append("attacker" in json.dumps(body))
        return REFUSALS[name] if sent[-1] else None

    remote.spoil(READING[memory.settings.plan], decline)
    people = ("Bob", "Cy", "Dan", "Eve", "Flo")  # one more than the messages of the context
    before, blocked, *after = [add(said) for said in ("I know Ike.", BLOCKED, *(f"I know {who}." for who in people))]
    assert blocked.status is EpisodeStatus.SKIPPED
    assert [each.facts for each in (before, *after)] == [(f"Ann knows {who}",) for who in ("Ike", *people)]
    # Once more without the messages before, and never again; words without JSON are asked again for JSON.
    assert sent == [False, *[True] * (4 if "in words" in name else 2), *[False] * len(people)]
    [skipped] = memory.episodes.list(namespace=namespace, status="skipped")
    assert (skipped.content, (skipped.reason or "")[:20]) == (BLOCKED, "refused by the model")
    assert memory.episodes.retry(namespace=namespace) == []


@both_plans
def test_refused_part_of_long_message_is_dropped(memory, remote, add, namespace):
    remote.spoil(READING[memory.settings.plan], REFUSALS["a refusal"], about="attacker")
    filler = " It rains here and there." * (memory.settings.chunk_size // 20)
    added = add(f"I know Ike.{filler} {BLOCKED}{filler} I know Bob.")
    assert (added.status, set(added.facts)) == (EpisodeStatus.DONE, {"Ann knows Ike", "Ann knows Bob"})
    [part] = [each for each in added.dropped if each.kind == "part"]
    assert part.reason == "refused by the model"


def test_messages_after_refused_one_are_read_together(memory, remote, namespace):
    remote.spoil("EpisodeReading", REFUSALS["a filtered prompt"], about="attacker")
    texts = ("I know Ike.", BLOCKED, "I know Bob.", "I know Cy.")
    added = memory.add_many([{"content": text, "speaker": "Ann", "at": AT} for text in texts], namespace=namespace)
    assert [each.status.value for each in added] == ["done", "skipped", "done", "done"]
    read = choose_new(memory.episodes.list(namespace=namespace), None)
    assert [each.content for each in read] == ["I know Ike.", "I know Bob.", "I know Cy."]


# --- answers that are odd but of use


def thinking(field: str) -> Said:
    """Return a completion without content, whose answer is in the field of the reasoning."""
    return Said(completion(None, **{field: read(ANN, OSLO)}))


def calling(arguments: str) -> Said:
    """Return a completion without content, whose answer is the arguments of a tool call."""
    call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": arguments}}
    return Said(completion(None, tool_calls=[call]))


FORMS: dict[str, Any] = {
    "reasoning_content": thinking("reasoning_content"),
    "reasoning": thinking("reasoning"),
    "the arguments of a tool": calling(read(ANN, OSLO)),
}


@pytest.mark.parametrize("name", FORMS)
def test_answer_in_unusual_field_keeps_all_facts(memory, remote, add, name):
    remote.spoil("EpisodeReading", FORMS[name])
    added = add()
    assert (added.status, added.facts, added.dropped) == (EpisodeStatus.DONE, (FACT,), ())
    assert remote.asked.count("EpisodeReading") == 1


def test_invalid_fact_is_reported_as_dropped(memory, remote, add):
    remote.spoil("EpisodeReading", read(ANN, OSLO, facts=[LIVES, {"subject": "Ann", "sentence": "Ann is happy"}]))
    added = add()
    assert [(each.kind, each.text) for each in added.dropped] == [("fact", "Ann is happy")]
    assert (added.facts, added.usage.dropped) == ((FACT,), 1)


def test_empty_reply_is_asked_for_in_the_next_format(memory, remote, add):
    remote.spoil("EpisodeReading", lambda body: "" if "response_format" in body else None)
    added = add()
    assert (added.status, added.facts) == (EpisodeStatus.DONE, (FACT,))


USEFUL: dict[str, tuple[Any, set[str]]] = {
    "thoughts before": (f"<think>{read(OSLO)} or not?</think>{read(ANN, OSLO)}", {"Ann", "Oslo"}),
    "words and fences around": (f"Sure!\n```json\n{read(ANN, OSLO)}\n```\nAnything else?", {"Ann", "Oslo"}),
    "a name of 100 kB": (read(ANN, OSLO, {"name": "X" * 100_000, "type": "Person"}), {"Ann", "Oslo"}),
    "a type of 100 kB": (read(ANN, OSLO, {"name": "Bob", "type": "X" * 100_000}), {"Ann", "Oslo"}),
    "some invalid items": (read(ANN, OSLO, None, [], {"type": "Place"}), {"Ann", "Oslo"}),
    "cut off after whole items": (Said(completion(read(ANN, OSLO)[:-2] + ', {"sub', "length")), {"Ann", "Oslo"}),
    "another language": (read(ANN, {"name": "奥斯陆", "type": "地点"}, facts=()), {"Ann", "奥斯陆"}),
    "control characters": (read(ANN, {"name": "Os\x00lo\ud800", "type": "Place"}, facts=()), {"Ann", "Os\ufffdlo\ufffd"}),
    "entities twice": (read(ANN, OSLO, OSLO, {"name": "OSLO", "type": "Place"}), {"Ann", "Oslo"}),
    "the speaker left out": (read(OSLO), {"Ann", "Oslo"}),
    "pronouns and blanks": (read(ANN, OSLO, {"name": "I", "type": "Person"}, {"name": " ", "type": ""}), {"Ann", "Oslo"}),
}  # fmt: skip


@both_plans
@pytest.mark.parametrize("name", USEFUL)
def test_odd_answer_keeps_valid_entities(memory, remote, add, namespace, name):
    said, names = USEFUL[name]
    remote.spoil(READING[memory.settings.plan], said)
    added = add()
    assert (added.status, added.error) == (EpisodeStatus.DONE, None)
    assert set(added.entities) == names
    assert {each.name for each in memory.entities.list(namespace=namespace)} == names
    if name in ("a name of 100 kB", "a type of 100 kB", "some invalid items", "cut off after whole items"):
        assert added.usage.dropped


@both_plans
def test_facts_about_unknown_entities_are_dropped(memory, remote, add, namespace):
    if memory.settings.plan == "standard":  # facts refer by name: an unlisted subject or object becomes an entity
        wrong = [{**LIVES, "objects": ["it"]}, {**LIVES, "subject": "I"}]
        remote.spoil("EpisodeReading", read(ANN, facts=[LIVES, *wrong]))
    else:
        ids = {"subject": 0, "objects": [1]}
        wrong = [{"subject": 99, "objects": [1]}, {"subject": 0, "objects": [-7]}, {"subject": 0, "objects": [10**30]}]
        remote.spoil("ExtractedFacts", json.dumps({"facts": [{**LIVES, **each} for each in (ids, *wrong)]}))
    added = add()
    assert (added.status, added.facts) == (EpisodeStatus.DONE, (FACT,))
    assert set(added.entities) == {"Ann", "Oslo"}
    assert memory.stats(namespace=namespace).facts == 1


LATER = {
    "verdicts": ("FactVerdicts", {"verdicts": [
        {"fact": 99, "known": 77, "verdict": "supersedes", "confidence": 1, "holds": "new", "reason": "x"},
        {"fact": 0, "known": -1, "verdict": "conflicts", "confidence": 1, "holds": "known", "reason": "x"},
    ]}),
    "resolutions": ("Resolutions", {"resolutions": [{"entity": 99, "same_as": 98, "name": "X"}, {"entity": 0, "same_as": 10**9, "name": "Y"}]}),
    "predicates": ("CanonicalPredicates", {"predicates": [{"name": "NEVER_ASKED", "canonical": "NOR_THIS", "one_at_a_time": True}]}),
    "summaries": ("Summaries", {"summaries": [{"entity": 99, "summary": "nobody"}]}),
}  # fmt: skip


@both_plans
@pytest.mark.parametrize("name", LATER)
def test_answers_about_unknown_ids_change_nothing(memory, remote, add, namespace, name):
    kind, said = LATER[name]
    remote.spoil(kind, json.dumps(said))
    assert add("I live in Paris.").status is EpisodeStatus.DONE
    added = add("I moved to Oslo with Annabel.")
    assert added.status is EpisodeStatus.DONE
    assert added.ended == (() if name == "verdicts" else ("Ann lives in Paris",))
    stats = memory.stats(namespace=namespace)
    assert (stats.waiting, stats.failed, stats.reviews) == (0, 0, 0)
    assert {each.name for each in memory.entities.list(namespace=namespace)} >= {"Ann", "Paris", "Oslo"}


@both_plans
@pytest.mark.parametrize("kind", ["FactVerdicts", "Resolutions", "CanonicalPredicates"])
@pytest.mark.parametrize("name", ["500", "a refusal", "no JSON"])
def test_failure_of_later_question_leaves_nothing_half_written(memory, remote, add, namespace, kind, name):
    fault, outcome = {**LASTING, "a refusal": (REFUSALS["a refusal"], Outcome(errors.ModelRefusal, FAILED, ""))}[name]
    add("I live in Paris.")
    before = memory.stats(namespace=namespace)
    remote.spoil(kind, fault)
    remote.asked.clear()
    try:
        added = add("I moved to Oslo with Annabel.")
    except outcome.error:
        after = memory.stats(namespace=namespace)
        assert (after.entities, after.facts) == (before.entities, before.facts)
        paid = remote.asked.count(READING[memory.settings.plan])
        remote.mend()
        [added] = (memory.episodes.resume if outcome.status is WAITING else memory.episodes.retry)(namespace=namespace)
        assert paid == 1
        assert READING[memory.settings.plan] not in remote.asked  # no answered question is paid twice
    else:
        assert kind not in remote.asked  # nothing was to be asked
    assert added.status is EpisodeStatus.DONE
    assert "Ann lives in Oslo" in added.facts


def test_error_with_api_key_is_stored_raised_and_logged_without(server, namespace, tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "kg_memory")
    with chat_server(lambda *_: refusing(400, f"Incorrect API key provided: {KEY}.")) as url:
        settings = Settings(url=server.url, base_url=url, api_key=KEY, model="scripted", embedding_model="offline")
        vectors = open_embedding_model("scripted", url, KEY)
        reranker = RerankServer(f"{url}/rerank", api_key=KEY)
        headers = {"X-Auth-Token": f"Bearer {KEY}", "X-Auth-Provider": "Incorrect"}
        own = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("none"), default_headers=headers, max_retries=0)
        with GraphMemory(settings) as memory, GraphMemory(settings, model=own) as theirs:
            for call in (
                lambda: memory.add(SAID, speaker="Ann", namespace=namespace),
                lambda: theirs.add(SAID, speaker="Bob", namespace=namespace),
                lambda: vectors.embed_query(SAID),
                lambda: reranker.scores(SAID, [SAID]),
            ):
                with pytest.raises(errors.KGMemoryError, match=r"provided: \[secret\]") as raised:
                    call()
                assert KEY not in "".join(traceback.format_exception(raised.value))
            episodes = memory.episodes.list(namespace=namespace)
            memory.data.export(tmp_path / "all.jsonl", namespace=namespace)
    assert ["provided: [secret]" in (episode.reason or "") for episode in episodes] == [True, True]
    assert KEY not in (tmp_path / "all.jsonl").read_text() + caplog.text


REMOTE: dict[str, tuple[Callable[[str], Any], str, tuple[Any, ...]]] = {
    "chat": (lambda url, seconds: ChatModel(open_chat_model("m", url, KEY, seconds), retry_policy=ONCE), "answer", (ASK,)),
    "embeddings": (
        lambda url, seconds: make_reliable(open_embedding_model("m", url, KEY, timeout=seconds).model, ONCE), "embed_query", (SAID,)
    ),
    "rerank": (lambda url, seconds: RerankServer(f"{url}/rerank", timeout=seconds, retry_policy=ONCE), "scores", (SAID, [SAID])),
}  # fmt: skip
"""How models are opened at a URL with a timeout, and what they are asked."""


@pytest.fixture(params=["sync", "asyncio"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=REMOTE)
def ask(request: pytest.FixtureRequest, way: str) -> Callable[[str], Any]:
    """Return a function that asks the model of one kind at a URL."""

    opened, name, given = REMOTE[request.param]

    def call(url: str, seconds: float = PATIENCE) -> Any:
        model = opened(url, seconds)
        return getattr(model, name)(*given) if way == "sync" else asyncio.run(getattr(model, f"a{name}")(*given))

    return call


@contextmanager
def answering(response: Iterable[bytes]) -> Iterator[str]:
    """Send the parts of *response* to each request, with a pause after each, for as long as the client listens."""

    def send(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            for part in response:
                connection.sendall(part)
                time.sleep(SOON / 2)

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=send, args=listening.accept()[:1], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


@pytest.mark.parametrize("headers", [b"", b"Content-Length: 99\r\n\r\n"])
def test_slow_byte_stream_raises_timeout(ask, headers):
    began = time.monotonic()
    with (
        answering((b"HTTP/1.1 200 OK\r\n" + headers, *(b"X: y\r\n",) * 30)) as url,
        pytest.raises((errors.ModelUnavailable, errors.EmbeddingUnavailable), match=rf"no answer within {SOON} s"),
    ):
        ask(url, SOON)
    assert time.monotonic() - began < 30 * SOON / 2  # the answer would take longer


def test_model_clients_do_not_follow_redirects(ask):
    asked: list[str] = []
    with (
        chat_server(lambda name, _: asked.append(name)) as other,
        answering([f"HTTP/1.1 307 No\r\nLocation: {other}/embeddings\r\nContent-Length: 0\r\n\r\n".encode()]) as url,
        pytest.raises(errors.SettingsError, match="redirects"),
    ):
        ask(url)
    assert not asked


def test_model_clients_have_connections_per_event_loop():
    asked: list[str] = []
    with chat_server(lambda name, _: asked.append(name)) as url:
        for name in ("embeddings", "chat"):
            model = REMOTE[name][0](url, PATIENCE)  # opening asks once
            for _ in range(3):
                asyncio.run(model.aembed_query(SAID) if name == "embeddings" else model.aanswer(ASK))
    assert len(asked) == 6
