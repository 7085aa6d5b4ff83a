"""Run an evaluation: ingest, ask, judge; each step is written down when it is done, and never done twice."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from kg_memory.contrib.evaluation import judges, prompts
from kg_memory.contrib.evaluation.judges import Judge
from kg_memory.contrib.evaluation.models import Asker, open_chat, open_embeddings
from kg_memory.contrib.evaluation.options import Options, Selection, select
from kg_memory.contrib.evaluation.records import Conversation, Cost, Dataset, Question, System, Tools
from kg_memory.contrib.evaluation.registry import find_dataset, find_system
from kg_memory.contrib.evaluation.results import Results, cost_fields, cost_of, question_key
from kg_memory.contrib.evaluation.spending import Ledger, Meter
from kg_memory.errors import BudgetSpent, InputError, KGMemoryError, MissingExtra, ModelError, SettingsError
from kg_memory.settings import OFFLINE

FAILURES = 5
"""Questions that may fail one after another before the run stops."""
Say = Callable[[str], None]
_NOTED = ("dataset", "variant", "systems", "reader", "judge", "embedder", "max_tokens", "limit", "seed")


@dataclass
class Contender:
    """A system, and the meter of the model that it reads with."""

    system: System
    meter: Meter | None

    @property
    def name(self) -> str:
        """The system's name."""
        return self.system.name


@dataclass(frozen=True, slots=True)
class Step:
    """A question of a conversation, to be answered by a system."""

    contender: Contender
    conversation: Conversation
    question: Question

    @property
    def system(self) -> str:
        """The system's name."""
        return self.contender.name

    @property
    def key(self) -> str:
        """The name of the question in its data set."""
        return question_key(self.conversation, self.question)


@dataclass
class Outcome:
    """The number of steps that failed, with the first reason, and why the run stopped early, if it did."""

    failed: int = 0
    reason: str = ""
    stopped: str = ""


@dataclass
class Evaluation:
    """All that a run needs, opened by `open_evaluation`."""

    options: Options
    dataset: Dataset
    conversations: Selection
    results: Results
    ledger: Ledger
    contenders: list[Contender]
    reader: Asker | None
    judge: Judge | None
    outcome: Outcome = field(default_factory=Outcome)
    _in_a_row: int = 0
    _lock: Lock = field(default_factory=Lock)

    def run(self, say: Say) -> Outcome:
        """Do what is left to do; *say* is told of the progress.

        A step that fails is left for the next run. The run stops if the budget is spent, a setting is wrong, or
        several steps fail one after another. Errors of this program are raised.
        """
        try:
            for contender in self.contenders:
                for conversation in self.conversations:
                    self._evaluate(contender, conversation, say)
        except (BudgetSpent, SettingsError, MissingExtra) as error:
            self.outcome.stopped = str(error)
        return self.outcome

    def _evaluate(self, contender: Contender, conversation: Conversation, say: Say) -> None:
        steps = [Step(contender, conversation, question) for question in conversation.questions]
        left = [step for step in steps if self._is_left(step)]
        if not left:
            return
        if any(step.key not in self.results.answers(contender.name) for step in left):
            say(f"{contender.name}: reading {conversation.name}, {len(conversation.episodes)} messages")
            if not self._ingest(contender, conversation):
                return
        pool = ThreadPoolExecutor(self.options.concurrency, thread_name_prefix="evaluate")
        try:
            futures = [pool.submit(self._run_step, step) for step in left]
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                total = self.ledger.total
                tokens = total.input_tokens + total.output_tokens
                say(
                    f"{contender.name}: {conversation.name}, {done} of {len(left)} questions; {total.calls:,} calls, "
                    f"{tokens:,} tokens so far"
                )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _is_left(self, step: Step) -> bool:
        if self.options.retrieval_only or self.judge is None:
            return step.key not in self.results.retrievals(step.system)
        return step.key not in self.results.verdicts(step.system, self.judge.name)

    def _ingest(self, contender: Contender, conversation: Conversation) -> bool:
        """Ingest the conversation; return whether its questions can be asked."""
        began = time.perf_counter()
        failure: KGMemoryError | None = None
        try:
            with _measure(contender.meter) as costs, _as_model_error(contender.name):
                contender.system.ingest(conversation)
        except KGMemoryError as error:
            failure = error
        cost = sum(costs, Cost())
        done = {row["conversation"] for row in self.results.of("ingest", contender.name)}
        if cost.calls or conversation.name not in done:
            self.results.add(
                "ingest",
                system=contender.name,
                conversation=conversation.name,
                episodes=len(conversation.episodes),
                seconds=round(time.perf_counter() - began, 3),
                **cost_fields(cost),
                model=contender.meter.name if contender.meter else None,
            )
        if failure is not None:
            self.ledger.check()
            self._fail(failure)
        return failure is None

    def _run_step(self, step: Step) -> None:
        """Answer and judge a question, as far as it is not done."""
        try:
            if self.options.retrieval_only:
                self.results.add("retrieval", **self._retrieve(step)[0])
            else:
                self._answer_and_judge(step)
        except KGMemoryError as error:
            self._fail(error)
        else:
            self._in_a_row = 0

    def _retrieve(self, step: Step) -> tuple[dict[str, Any], str]:
        """Return the fields about the retrieval, and the context."""
        question, conversation, contender = step.question, step.conversation, step.contender
        began = time.perf_counter()
        with self._measure(contender.meter) as costs, _as_model_error(step.system):
            found = contender.system.context(question, conversation, self.options.max_tokens)
        threads = {episode.source_id: episode.thread for episode in conversation.episodes}
        by_thread = bool(question.evidence) and not question.evidence.intersection(threads)
        sources = [threads.get(source) or source if by_thread else source for source in found.sources]
        fields = {
            "system": step.system,
            "question": step.key,
            "category": question.category,
            "search_seconds": round(time.perf_counter() - began, 4),
            "context_tokens": found.tokens,
            "sources": list(dict.fromkeys(sources)),
            "evidence": sorted(question.evidence),
            **cost_fields(sum(costs, Cost()), "system_"),
        }
        return fields, found.text

    def _answer_and_judge(self, step: Step) -> None:
        if self.reader is None or self.judge is None:
            raise InputError("answers need a reader and a judge: name both, or ask for retrieval only")
        question, key = step.question, step.key
        row = self.results.answers(step.system).get(key)
        if row is None:
            fields, context = self._retrieve(step)
            began = time.perf_counter()
            with self._measure(self.reader.meter) as costs:
                answer = self.reader.ask(prompts.reader(question, context))
            seconds = round(time.perf_counter() - began, 4)
            asked = {"text": question.text, "expected": question.answer, "answer": answer}
            reading = cost_fields(sum(costs, Cost()), "reader_")
            self.results.add("answer", **fields, **asked, reader_seconds=seconds, **reading)
        else:
            answer = row["answer"]
        if key not in self.results.verdicts(step.system, self.judge.name):
            with self._measure(self.judge.meter) as costs:
                verdict = self.judge.judge(question, answer)
            about = {"system": step.system, "question": key, "judge": self.judge.name, "verdict": verdict}
            self.results.add("verdict", **about, **cost_fields(sum(costs, Cost()), "judge_"))

    @contextmanager
    def _measure(self, meter: Meter | None) -> Iterator[list[Cost]]:
        """Collect the costs of a step; those of a step that fails are noted, as they are spent."""
        with _measure(meter) as costs:
            try:
                yield costs
            except BaseException:
                if meter and costs:
                    self.results.add("spent", model=meter.name, **cost_fields(sum(costs, Cost())))
                raise

    def _fail(self, error: KGMemoryError) -> None:
        """Count a failure. Raises: *error* if it is no use to go on."""
        if isinstance(error, BudgetSpent | SettingsError | MissingExtra):
            raise error
        with self._lock:
            self.outcome.failed += 1
            self.outcome.reason = self.outcome.reason or str(error)
            self._in_a_row += 1
            if self._in_a_row >= FAILURES:
                raise SettingsError(
                    f"stopped after {FAILURES} failures one after another, the last: {error}"
                ) from error

    def close(self) -> None:
        """Close the systems and the results."""
        for contender in self.contenders:
            contender.system.close()
        self.results.close()


@contextmanager
def open_evaluation(options: Options) -> Iterator[Evaluation]:
    """Load the data, open the models and the systems, and read the results of earlier runs in the folder.

    Raises: `InputError`, `SettingsError`, `MissingExtra`, each with what to do.
    """
    dataset = find_dataset(options.dataset)
    conversations = select(dataset, dataset.load(options.data, options.variant), options)
    openers = [(name, find_system(name)) for name in options.systems]
    results = Results(options.out)
    evaluation: Evaluation | None = None
    try:
        results.start(_manifest(options))
        ledger = Ledger(options.budget, options.prices)
        for row in results.rows:
            for prefix, model in (("", row.get("model")), ("system_", options.model), ("reader_", options.reader)):
                ledger.add(model or "", cost_of(row, prefix))
            ledger.add(row.get("judge") or "", cost_of(row, "judge_"))
        reader = judge = None
        if not options.retrieval_only:
            if options.reader is None:
                raise InputError("answers need a reader: name a model with --reader, or use --retrieval-only")
            reader = Asker(options.reader, Meter(options.reader, ledger))
            judge = _open_judge(dataset, options, ledger)
        embeddings = open_embeddings(options.embedder)
        evaluation = Evaluation(options, dataset, conversations, results, ledger, [], reader, judge)
        for name, opener in openers:
            meter = Meter(options.model, ledger) if options.model else None
            folder = options.out / "systems" / name.replace(":", "-").replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            model = open_chat(options.model, meter) if options.model and meter else None
            with _as_model_error(name):
                evaluation.contenders.append(Contender(opener(Tools(model, embeddings, folder)), meter))
        yield evaluation
    finally:
        if evaluation is None:
            results.close()
        else:
            evaluation.close()


def _open_judge(dataset: Dataset, options: Options, ledger: Ledger) -> Judge:
    name = options.judge
    if name is None:
        if judges.needs_model(dataset):
            raise InputError(
                f"the answers of {dataset.name} are not exact: name a model with --judge, or rules to compare words"
            )
        name = judges.RULES
    judges.check(dataset, name, options.categories)
    asker = None if name == judges.RULES else Asker(name, Meter(name, ledger))
    return Judge(dataset, asker, options.modes)


def _manifest(options: Options) -> dict[str, Any]:
    data = options.data
    digest = None
    if data is not None and data.is_file():
        with data.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    noted = {name: getattr(options, name) for name in _NOTED}
    if options.retrieval_only:
        noted |= {"reader": None, "judge": None}
    return {
        **noted,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": digest or (str(data.resolve()) if data else None),
        "model": options.model or OFFLINE,
    }


@contextmanager
def _measure(meter: Meter | None) -> Iterator[list[Cost]]:
    if meter is None:
        yield []
        return
    with meter.measure() as costs:
        yield costs


@contextmanager
def _as_model_error(name: str) -> Iterator[None]:
    """Turn the errors of other libraries into ours, so that one question that fails does not end the run."""
    try:
        yield
    except (KGMemoryError, AssertionError):
        raise
    except Exception as error:
        raise ModelError(f"{name} failed ({type(error).__name__}: {error}): see its documentation") from error
