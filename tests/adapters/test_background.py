import asyncio
import logging
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial

import pytest

from kg_memory.adapters.background import BackgroundMemory
from kg_memory.errors import AnswerError, DatabaseUnavailable, InputError, KGMemoryError, ModelUnavailable
from kg_memory.llm.retry import RetryPolicy
from kg_memory.models.graph import EpisodeInput
from kg_memory.runtime import worker
from tests.children import ends_well_in_a_child
from tests.scripted import raising
from tests.waiting import until

QUICK = RetryPolicy(attempts=3, first=0.001, longest=0.01)


@pytest.fixture
def background(memory):
    with BackgroundMemory(memory, after_seconds=30, retry_policy=QUICK) as opened:
        yield opened


@pytest.fixture
def add(background, namespace):
    return partial(background.submit, namespace=namespace)


def facts_of_ann(memory, namespace):
    return {fact.sentence for fact in memory.facts.about("Ann", namespace=namespace)}


def said(content, thread="t", number=0):
    return EpisodeInput(content=content, speaker="Ann", thread=thread, source_id=f"{thread}{number}{content}")


unavailable = raising(ModelUnavailable("the model is down: try again later"))


def test_submit_saves_at_once_and_flush_reads(background, add, memory, model, namespace):
    """Submitted messages are saved at once, and read at the flush.

    Features: C10.
    """
    future = add([said("Ann lives in Oslo"), said("Ann knows Bob")])
    saved = memory.episodes.list(namespace=namespace, status="saved")
    assert [each.content for each in saved] == ["Ann knows Bob", "Ann lives in Oslo"]
    assert (background.pending, model.asked, future.done()) == (2, [], False)
    assert background.flush(60)
    assert [each.facts for each in future.result(0)] == [("Ann lives in Oslo",), ("Ann knows Bob",)]
    assert facts_of_ann(memory, namespace) == {"Ann lives in Oslo", "Ann knows Bob"}
    assert (background.pending, background.failures, memory.stats(namespace=namespace).waiting) == (0, (), 0)


def test_background_reads_when_after_tokens_are_queued(memory, namespace):
    """A conversation is read as soon as its queued messages reach `after_tokens`.

    Features: G3.
    """
    with BackgroundMemory(memory, after_seconds=3600, at_most_seconds=3600, after_tokens=25) as background:
        add = partial(background.submit, namespace=namespace)
        first = add([said("Ann lives in Oslo")])
        other = add([said("小明住在奥斯陆", "other")])
        assert background.pending == 2
        second = add([said("Ann knows Bob, whom she met by the harbour of Oslo in the spring of 2019")])
        assert first.result(60)[0].facts == ("Ann lives in Oslo",)
        assert second.result(60)[0].new is False
        until(lambda: background.pending == 1)
        assert not other.done(), "each conversation has its own count"
        assert background.flush(timeout=0) is False, "timeout=0 does not wait"
        assert other.result(60)
    for wrong in (0, -1, True, 1.5, "1024"):
        with pytest.raises(InputError, match="after_tokens"):
            BackgroundMemory(memory, after_tokens=wrong)


def test_submit_without_date_reads_the_saved_episode(add, background, memory, namespace):
    future = add(["Ann lives in Oslo", {"content": "Ann knows Bob"}], thread="t")
    assert background.flush(60)
    assert [each.new for each in future.result(0)] == [False, False]
    assert [each.thread for each in memory.episodes.list(namespace=namespace)] == ["t", "t"]


def test_background_message_postpones_only_its_own_thread(add):
    first = add([said("Ann lives in Oslo")], after_seconds=1.5)
    other = add([said("Bob lives in Rome", "other")], after_seconds=0.1)
    for number in range(5):
        time.sleep(0.4)
        assert not first.done(), "the conversation was still going on"
        last = add([said(f"Ann knows Friend{number}")], after_seconds=1.5)
    assert other.done()
    assert last.result(60)[0].facts == ("Ann knows Friend4",)
    assert first.done()


def test_background_reads_busy_thread_after_longest_wait(memory, namespace):
    with BackgroundMemory(memory, after_seconds=0.2, at_most_seconds=0.3) as background:
        first = background.submit([said("Ann lives in Oslo")], namespace=namespace)
        for number in range(20):
            time.sleep(0.05)
            if first.done():
                break
            background.submit([said(f"Ann knows Friend{number}")], namespace=namespace)
        assert first.done()


def test_background_reads_a_thread_in_order(add, background, model):
    for number in range(6):
        add([said(f"Ann knows Friend{number}", number=number)])
    assert background.flush(60)
    read = [each["episode"]["content"] for each in model.asks("extract_message")]
    assert read == [f"Ann knows Friend{number}" for number in range(6)]


def test_background_retries_during_model_outage(add, background, model):
    down = iter([True, True])
    model.rules["extract_message"] = lambda fields: (
        unavailable(fields) if next(down, False) else {"entities": [{"name": "Ann", "type": "Person"}]}
    )
    future = add([said("Ann sings")])
    assert background.flush(60)
    assert future.result(0)[0].entities == ("Ann",)
    assert background.failures == ()


def test_background_reports_outage_and_next_submit_reads_rest(memory, model, namespace, caplog):
    told, whole = [], dict(model.rules)
    background = BackgroundMemory(memory, after_seconds=0, retry_policy=QUICK, on_failure=told.append)
    model.rules["extract_message"] = unavailable
    future = background.submit([said("Ann lives in Oslo"), said("Ann knows Bob")], namespace=namespace)
    with pytest.raises(ModelUnavailable):
        future.result(60)
    until(lambda: len(told) == 2)
    assert tuple(told) == background.failures
    ids = {each.id for each in memory.episodes.list(namespace=namespace)}
    assert {each.episode for each in told} == ids
    assert [(each.namespace, each.attempts) for each in told] == [(namespace, 3), (namespace, 0)]
    assert "the model is down" in told[0].error
    assert "is saved but not read" in caplog.text

    model.rules |= whole
    background.submit([said("Ann knows Cid")], namespace=namespace)
    background.close(10)
    assert facts_of_ann(memory, namespace) == {"Ann lives in Oslo", "Ann knows Bob", "Ann knows Cid"}


def test_background_reports_unreadable_episode_and_reads_others(add, background, model):
    def some(fields):
        if "bad" in fields["episode"]["content"]:
            raise AnswerError("no usable answer: try another model")
        return {"entities": []}

    model.rules["extract_message"] = some
    future = add([said("a bad one"), said("a good one")])
    assert background.flush(60)
    bad, good = future.result(0)
    assert "no usable answer" in bad.error
    assert good.error is None
    [failure] = background.failures
    assert (failure.episode, failure.attempts) == (bad.episode, 1)


def test_background_logs_failing_callback_and_goes_on(memory, model, namespace, caplog):
    model.rules["extract_message"] = raising(AnswerError("bad: try another"))
    with BackgroundMemory(memory, after_seconds=0, on_failure=raising(ValueError("oops"))) as background:
        futures = [background.submit([said(f"Ann {n}", str(n))], namespace=namespace) for n in range(2)]
        assert all(each.result(60)[0].error for each in futures)
    assert "on_failure failed" in caplog.text


def test_submit_reads_episodes_left_by_earlier_process(memory, namespace, model):
    memory.episodes.save([said("Ann lives in Oslo"), said("Ann knows Bob")], namespace=namespace)
    with BackgroundMemory(memory, after_seconds=30, resume=False) as background:
        background.submit([said("Ann knows Cid")], namespace=namespace).cancel()
    assert model.asked == []
    with BackgroundMemory(memory, after_seconds=30) as background:
        later = background.submit([said("Ann knows Dan")], namespace=namespace)
        until(lambda: memory.stats(namespace=namespace).waiting == 1)
        assert not later.done(), "new submissions wait, episodes of an earlier process do not"
    assert later.result(0)[0].facts == ("Ann knows Dan",)
    assert len(facts_of_ann(memory, namespace)) == 4


def test_cancelled_submission_stays_saved_and_unread(add, background, memory, namespace):
    assert add([said("Ann lives in Oslo")]).cancel()
    assert background.flush(60)
    assert memory.stats(namespace=namespace).waiting == 1


def test_submit_refuses_bad_input(add, background, memory, namespace):
    with pytest.raises(InputError, match="episodes must be a list"):
        add("Ann lives in Oslo")
    with pytest.raises(InputError, match="after_seconds"):
        add([said("Ann")], after_seconds=float("nan"))
    with pytest.raises(InputError, match="after_seconds"):
        BackgroundMemory(memory, after_seconds=-1)
    with pytest.raises(InputError, match="namespace"):
        background.submit([said("Ann")], namespace="")
    assert memory.episodes.list(namespace=namespace) == []
    with pytest.raises(InputError, match="content is empty"):
        add(["Ann lives in Oslo", " "])
    assert add([], after_seconds=0).result(60) == []
    until(lambda: memory.stats(namespace=namespace).waiting == 0)
    assert memory.stats(namespace=namespace).episodes == 1


def test_flush_is_not_postponed_by_later_submissions(add, background, model):
    wait = threading.Event()
    model.rules["extract_message"] = lambda _: wait.wait(60) and {"entities": []}
    add([said("Ann sings", "busy")], after_seconds=0)
    until(lambda: model.asked)
    add([said("Ann sings")])
    with ThreadPoolExecutor(1) as pool:
        flushed = pool.submit(background.flush, 60)
        time.sleep(0.05)
        add([said("Ann dances")])
        wait.set()
        assert flushed.result(60)


def test_background_close_logs_unread_and_refuses_submissions(memory, model, namespace, caplog):
    model.rules["extract_message"] = unavailable
    background = BackgroundMemory(memory, retry_policy=RetryPolicy(attempts=9, first=60))
    one = background.submit([said("Ann lives in Oslo")], namespace=namespace)
    two = background.submit([said("Bob lives in Rome", "other")], namespace=namespace)
    with caplog.at_level(logging.WARNING):
        background.close(0.2)
    assert "2 episodes" in caplog.text
    with pytest.raises(DatabaseUnavailable, match="closed"):
        background.submit([said("Ann")], namespace=namespace)
    for reading in (one, two):
        with pytest.raises((ModelUnavailable, CancelledError)):
            reading.result(60)
    assert memory.stats(namespace=namespace).waiting == 2
    background.close(0)


def test_submit_raises_after_memory_is_closed(memory, namespace):
    background = BackgroundMemory(memory)
    memory.close()
    with pytest.raises(KGMemoryError, match="closed"):
        background.submit([said("Ann")], namespace=namespace)
    assert background.flush(60)
    background.close()


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_memory_close_reads_queued_episodes_first(memory, namespace, asynchronous):
    reading = BackgroundMemory(memory, after_seconds=60).submit([said("Ann lives in Oslo.")], namespace=namespace)
    await memory.aclose() if asynchronous else memory.close()
    assert [each.facts for each in reading.result(0)] == [("Ann lives in Oslo",)]


def test_background_runs_no_thread_while_idle(memory, namespace):
    def workers():
        return [each for each in threading.enumerate() if each.name == "kg-memory-background"]

    until(lambda: not workers())
    background = BackgroundMemory(memory, after_seconds=0)
    assert workers() == []
    background.submit([said("Ann lives in Oslo")], namespace=namespace)
    assert background.flush(60)
    until(lambda: not workers())
    background.submit([said("Ann knows Bob")], namespace=namespace)
    background.close(10)
    assert background.pending == 0


def test_parallel_backgrounds_store_each_episode_once(memory, namespace):
    both = [BackgroundMemory(memory, after_seconds=0.01) for _ in range(2)]

    def speak(number):
        episode = said(f"Ann knows Friend{number % 10}", f"t{number % 5}", number)
        return [each.submit([episode], namespace=namespace) for each in both]

    with ThreadPoolExecutor(8) as pool:
        futures = [future for pair in pool.map(speak, range(12)) for future in pair]
    for each in both:
        each.close(30)
    assert all(each.result(0)[0].error is None for each in futures)
    stats = memory.stats(namespace=namespace)
    assert (stats.episodes, stats.waiting, stats.facts) == (12, 0, 10)


def test_background_exit_timeout_is_shared_by_all_workers(memory, model, namespace, monkeypatch):
    go_on = threading.Event()
    model.rules["extract_message"] = lambda _: go_on.wait(60) and {"entities": []}
    many = [BackgroundMemory(memory, after_seconds=60, exit_seconds=2) for _ in range(6)]
    for number, each in enumerate(many):
        each.submit([said(f"Ann sings {number}")], namespace=namespace)
    monkeypatch.setattr(worker, "_workers", {each._worker for each in many})
    began = time.monotonic()
    worker._finish_all()
    assert time.monotonic() - began < 10
    go_on.set()
    for each in many:
        each.close(20)


async def test_asubmit_saves_and_reads_without_blocking_event_loop(memory, model, namespace):
    wait = threading.Event()
    model.rules["extract_message"] = lambda _: wait.wait(60) and {"entities": []}
    async with BackgroundMemory(memory, after_seconds=0) as background:
        future = await background.asubmit([said("Ann sings")], namespace=namespace)
        assert len(await memory.episodes.alist(namespace=namespace)) == 1
        for _ in range(10):
            await asyncio.sleep(0.002)
        assert not future.done()
        wait.set()
        assert await background.aflush(60)
        [added] = await asyncio.wrap_future(future)
        assert added.error is None
        with pytest.raises(InputError):
            await background.asubmit(["Ann lives in Oslo", ""], namespace=namespace)
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await background.asubmit([said("Ann")], namespace=namespace)


def test_background_in_forked_child_has_own_queue(add, background, memory, namespace):
    add([said("Ann lives in Oslo")])

    def work():
        child = background.pending == 0
        future = background.submit([said("Ann knows Bob")], namespace=namespace, after_seconds=0)
        return child and bool(future.result(60)) and background.flush(60)

    assert ends_well_in_a_child(work)
    assert background.pending == 1
    assert background.flush(60)
    assert facts_of_ann(memory, namespace) == {"Ann lives in Oslo", "Ann knows Bob"}
