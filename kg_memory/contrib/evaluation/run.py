"""Runs an evaluation: ingest, answer, judge. The result of each step is stored at once, so no step is repeated."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any, NamedTuple

from kg_memory.contrib.evaluation.judges import RULES, Judge, reader_prompt
from kg_memory.contrib.evaluation.models import Asker, Ledger, measure_usage, open_chat, open_embeddings
from kg_memory.contrib.evaluation.options import EvaluationOptions, Selection, find_dataset, find_system, select
from kg_memory.contrib.evaluation.records import Conversation, Dataset, Question, System, Tools
from kg_memory.contrib.evaluation.results import Results, cost_fields, cost_of, question_key
from kg_memory.errors import BudgetSpent, InputError, KGMemoryError, MissingExtra, ModelError, SettingsError
from kg_memory.models.operations import Usage
from kg_memory.settings import OFFLINE

FAILURES = 5
"""Consecutive failures after which the run stops."""
Say = Callable[[str], None]
_NOTED = ("dataset", "variant", "systems", "reader", "judge", "embedder", "max_tokens", "limit", "seed")


class Trial(NamedTuple):
    """A question that one system must answer. `key` identifies the question in the data set: ``"locomo-1/17"``."""

    system: System
    conversation: Conversation
    question: Question
    key: str


@dataclass
class Evaluation:
    """An evaluation: its data set, the compared systems, the models and the results. `open_evaluation` creates it.

    After `run`: the number of `failed` steps, the first `error`, and why the run `stopped` early, or "".
    """

    options: EvaluationOptions
    dataset: Dataset
    conversations: Selection
    results: Results
    ledger: Ledger
    systems: list[System]
    reader: Asker | None
    judge: Judge | None
    failed: int = 0
    error: str = ""
    stopped: str = ""
    _in_a_row: int = 0
    _lock: Lock = field(default_factory=Lock)

    def run(self, say: Say) -> None:
        """Ask all questions that have no result yet.

        *say* is called with lines about the progress. The run stops when the budget is spent or `FAILURES` steps fail
        in a row.
        """
        try:
            for system in self.systems:
                for conversation in self.conversations:
                    self._evaluate(system, conversation, say)
        except (BudgetSpent, SettingsError, MissingExtra) as error:
            self.stopped = str(error)

    def _evaluate(self, system: System, conversation: Conversation, say: Say) -> None:
        """Let *system* read *conversation* and answer its questions; skip questions with a result."""
        keys = {question_key(conversation, question): question for question in conversation.questions}
        left = [
            Trial(system, conversation, question, key) for key, question in keys.items() if self._is_left(system, key)
        ]
        if not left:
            return
        if any(trial.key not in self.results.latest("answer", system.name) for trial in left):
            say(f"{system.name}: reading {conversation.name}, {len(conversation.episodes)} messages")
            if not self._ingest(system, conversation):
                return
        pool = ThreadPoolExecutor(self.options.concurrency, thread_name_prefix="evaluate")
        try:
            futures = [pool.submit(self._run_trial, trial) for trial in left]
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                total = self.ledger.total
                tokens = total.input_tokens + total.output_tokens
                say(
                    f"{system.name}: {conversation.name}, {done} of {len(left)} questions; {total.calls:,} calls, "
                    f"{tokens:,} tokens so far"
                )
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _is_left(self, system: System, key: str) -> bool:
        if self.judge is None:
            return key not in self.results.latest("retrieval", system.name)
        return key not in self.results.latest("verdict", system.name, self.judge.name)

    def _ingest(self, system: System, conversation: Conversation) -> bool:
        """Let *system* ingest *conversation*, and store the cost; return False if that failed."""
        began = time.perf_counter()
        failure: KGMemoryError | None = None
        try:
            with measure_usage() as costs, _as_model_error(system.name):
                system.ingest(conversation)
        except KGMemoryError as error:
            failure = error
        cost = sum(costs, Usage())
        done = {row["conversation"] for row in self.results.of("ingest", system.name)}
        if cost.calls or conversation.name not in done:
            self.results.add(
                "ingest",
                system=system.name,
                conversation=conversation.name,
                episodes=len(conversation.episodes),
                seconds=round(time.perf_counter() - began, 3),
                **cost_fields(cost),
                model=self.options.model,
            )
        if failure is not None:
            self.ledger.check()
            self._count_failure(failure)
        return failure is None

    def _run_trial(self, trial: Trial) -> None:
        try:
            if self.reader is None or self.judge is None:
                self.results.add("retrieval", **self._retrieve(trial)[0])
            else:
                self._answer_and_judge(trial, self.reader, self.judge)
        except KGMemoryError as error:
            self._count_failure(error)
        else:
            self._in_a_row = 0

    def _retrieve(self, trial: Trial) -> tuple[dict[str, Any], str]:
        """Let the system search for the question of *trial*; return fields of a result row, and the context found."""
        system, conversation, question, key = trial
        began = time.perf_counter()
        with self._measure(self.options.model) as costs, _as_model_error(system.name):
            found = system.context(question, conversation, self.options.max_tokens)
        threads = {episode.source_id: episode.thread for episode in conversation.episodes}
        # The evidence can be names of threads instead of messages.
        by_thread = bool(question.evidence) and not question.evidence.intersection(threads)
        sources = [threads.get(source) or source if by_thread else source for source in found.sources]
        fields = {
            "system": system.name,
            "question": key,
            "category": question.category,
            "search_seconds": round(time.perf_counter() - began, 4),
            "context_tokens": found.tokens,
            "sources": list(dict.fromkeys(sources)),
            "evidence": sorted(question.evidence),
            **cost_fields(sum(costs, Usage()), "system_"),
        }
        return fields, found.text

    def _answer_and_judge(self, trial: Trial, reader: Asker, judge: Judge) -> None:
        """Let *reader* answer the question of *trial*, and let *judge* score the answer; store both as rows."""
        question, name = trial.question, trial.system.name
        row = self.results.latest("answer", name).get(trial.key)
        if row is None:
            fields, context = self._retrieve(trial)
            began = time.perf_counter()
            with self._measure(reader.name) as costs:
                answer = reader.ask(reader_prompt(question, context))
            seconds = round(time.perf_counter() - began, 4)
            asked = {"text": question.text, "expected": question.answer, "answer": answer}
            reading = cost_fields(sum(costs, Usage()), "reader_")
            self.results.add("answer", **fields, **asked, reader_seconds=seconds, **reading)
        else:
            answer = row["answer"]
        if trial.key not in self.results.latest("verdict", name, judge.name):
            with self._measure(judge.name) as costs:
                verdict = judge.judge(question, answer)
            about = {"system": name, "question": trial.key, "judge": judge.name, "verdict": verdict}
            self.results.add("verdict", **about, **cost_fields(sum(costs, Usage()), "judge_"))

    @contextmanager
    def _measure(self, model: str | None) -> Iterator[list[Usage]]:
        """Context manager: yield a list that gets the `Usage` of each model call in the body."""
        with measure_usage() as costs:
            try:
                yield costs
            except BaseException:
                if costs:
                    self.results.add("spent", model=model, **cost_fields(sum(costs, Usage())))
                raise

    def _count_failure(self, error: KGMemoryError) -> None:
        """Count a failed step, and raise an error if the whole run must stop."""
        if isinstance(error, BudgetSpent | SettingsError | MissingExtra):
            raise error
        with self._lock:
            self.failed += 1
            self.error = self.error or str(error)
            self._in_a_row += 1
            if self._in_a_row >= FAILURES:
                raise SettingsError(f"{FAILURES} steps in a row failed; fix the last, run again: {error}") from error


@contextmanager
def open_evaluation(options: EvaluationOptions) -> Iterator[Evaluation]:
    """Context manager: load the data set, open models and systems, and read the results of earlier runs.

    Errors: `InputError`, `SettingsError`, `MissingExtra`.
    """
    dataset = find_dataset(options.dataset)
    conversations = select(dataset, dataset.load(options.data, options.variant), options)
    openers = [(name, find_system(name)) for name in options.systems]
    with ExitStack() as opened:
        results = opened.enter_context(closing(Results(options.out)))
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
            reader = Asker(options.reader, ledger)
            judge = open_judge(dataset, options, ledger)
        embeddings = open_embeddings(options.embedder)
        systems: list[System] = []
        for name, opener in openers:
            folder = options.out / "systems" / name.replace(":", "-").replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            model = open_chat(options.model, ledger) if options.model else None
            with _as_model_error(name):
                systems.append(opened.enter_context(closing(opener(Tools(model, embeddings, folder)))))
        yield Evaluation(options, dataset, conversations, results, ledger, systems, reader, judge)


def open_judge(dataset: Dataset, options: EvaluationOptions, ledger: Ledger) -> Judge:
    """Return the judge that *options* name: a model or, by default if it can judge all of *dataset*, the rules.

    Raises `InputError` if the rules cannot judge the chosen categories.
    """
    name, asked = options.judge or RULES, options.categories or dataset.criteria.keys() - dataset.left_out
    if options.judge is None and any(criterion.by != "rules" for criterion in dataset.criteria.values()):
        raise InputError(
            f"{dataset.name} has free answers: name a model with --judge, or --judge rules to compare words"
        )
    if name != RULES:
        return Judge(dataset, Asker(name, ledger), options.modes)
    if any(dataset.criterion(category).by == "rubric" for category in asked):
        raise InputError(f"{dataset.name} has rubrics, which only a model can apply: name a model with --judge")
    return Judge(dataset, None, options.modes)


def _manifest(options: EvaluationOptions) -> dict[str, Any]:
    """Return *options* as the fields of a result row.

    The field "data" is a hash of the data file, to notice a change, or the path of the data folder.
    """
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
def _as_model_error(name: str) -> Iterator[None]:
    """Context manager: convert exceptions of the system *name* to `ModelError`, which fails one step.

    `KGMemoryError` and `AssertionError` are raised unchanged.
    """
    try:
        yield
    except (KGMemoryError, AssertionError):
        raise
    except Exception as error:
        raise ModelError(f"{name} failed ({type(error).__name__}: {error}); check its key, name and URL") from error
