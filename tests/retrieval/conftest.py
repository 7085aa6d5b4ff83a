"""A real FalkorDB, filled through the real ingestion graph by a model that knows its answers."""

import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from kg_memory.contrib import embedded
from kg_memory.contrib.embedded import binaries
from kg_memory.falkor.connect import Database
from kg_memory.ingestion.graph import build as build_ingestion
from kg_memory.llm.prompts import answers
from kg_memory.memory.open import open_driver
from kg_memory.retrieval.graph import build as build_retrieval
from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Ask
from kg_memory.settings import Settings
from kg_memory.text.tokenise import terms
from tests.retrieval.many import Many
from tests.scripted import At

DIMENSION = 512
NAMES = ("Ann", "Bob", "Will", "Mia", "Oslo", "Bergen", "Tromso", "Acme", "Milo", "北京")
# The words that state a fact: subject, object, sentence, valid_at, and the sentence that it rules out.
STATED: Mapping[str, tuple[str, str, str, str | None, str | None]] = {
    "I live in Bergen": ("Ann", "Bergen", "Ann lives in Bergen", "2022-01-01", None),
    "I moved to Oslo": ("Ann", "Oslo", "Ann lives in Oslo", "2023-05-01", "Ann lives in Bergen"),
    "my sister is Mia": ("Ann", "Mia", "Mia is Ann's sister", None, None),
    "Mia works at Acme": ("Mia", "Acme", "Mia works at Acme", "2021-03-01", None),
    "my cat is called Milo": ("Will", "Milo", "Will has a cat called Milo", None, None),
    "我搬到了北京": ("Bob", "北京", "Bob 搬到了北京", "2023-01-01", None),
}


class WordVectors(Embeddings):
    """Texts with words in common are near: each word adds one to its place."""

    name = "word-vectors"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.01] * DIMENSION
        for word in terms(text):
            vector[zlib.crc32(word.encode()) % DIMENSION] += 1.0
        length = math.sqrt(sum(each * each for each in vector))
        return [each / length for each in vector]


class Teller:
    """Answers what `NAMES` and `STATED` say of a text."""

    name = "teller"
    by_rules = False

    def answer(self, ask: Ask) -> BaseModel:
        kind = ask.prompt.answer
        if kind is answers.ExtractedEntities:
            return answers.ExtractedEntities(
                entities=[answers.ExtractedEntity(name=each, type="Entity") for each in _names(ask.fields)]
            )
        if kind is answers.ExtractedFacts:
            return answers.ExtractedFacts(facts=_facts(ask.fields))
        if kind is answers.FactVerdicts:
            return answers.FactVerdicts(verdicts=_verdicts(ask.fields["facts"]))
        if kind is answers.CanonicalPredicates:
            asked = [each["name"] for each in ask.fields["predicates"]]
            same = [answers.CanonicalPredicate(name=each, canonical=each, one_at_a_time=False) for each in asked]
            return answers.CanonicalPredicates(predicates=same)
        empty = {
            answers.Reflection: answers.Reflection(missed=[], unsupported=[]),
            answers.Resolutions: answers.Resolutions(resolutions=[]),
            answers.Summaries: answers.Summaries(summaries=[]),
        }
        return empty[kind]

    async def aanswer(self, ask: Ask) -> BaseModel:
        return self.answer(ask)


def _names(fields: Mapping[str, Any]) -> list[str]:
    episode = fields["episode"]
    ends = [end for words, (one, other, *_) in STATED.items() if words in episode["content"] for end in (one, other)]
    told = [name for name in NAMES if re.search(name, episode["content"])]
    return list(dict.fromkeys([*([episode["speaker"]] if episode.get("speaker") else []), *ends, *told]))


def _facts(fields: Mapping[str, Any]) -> list[answers.ExtractedFact]:
    ids = {each["name"]: each["id"] for each in fields["entities"]}
    return [
        answers.ExtractedFact(
            subject=ids[subject], predicate="RELATES_TO", objects=[ids[object_]], sentence=sentence, quote=words,
            valid_at=since, invalid_at=None, edge_type="semantic", confidence=0.9,
        )
        for words, (subject, object_, sentence, since, _) in STATED.items()
        if words in fields["episode"]["content"] and subject in ids and object_ in ids
    ]  # fmt: skip


def _verdicts(facts: list[dict[str, Any]]) -> list[answers.FactVerdict]:
    ruled_out = {sentence: other for _, _, sentence, _, other in STATED.values() if other}
    return [
        answers.FactVerdict(
            fact=fact["id"], known=known["id"], verdict="supersedes", confidence=1.0, holds="new", reason="told"
        )
        for fact in facts
        for known in fact["existing"]
        if known["sentence"] == ruled_out.get(fact["sentence"])
    ]


class Talk:
    """One namespace of a real database: tell it lines, ask it questions."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.namespace = f"test-{uuid4()}"
        self._ingestion = build_ingestion(driver, Settings(plan="thorough")).compile()
        self.retrieval = build_retrieval(driver, Settings()).compile()

    def tell(self, speaker: str | None, content: str, at: str = "2024-05-01T10:00:00Z", thread: str = "t") -> None:
        given = {"content": content, "speaker": speaker, "at": at, "thread": thread, "namespace": self.namespace}
        self._ingestion.invoke(given)

    def ask(self, question: str, **given: Any) -> dict[str, Any]:
        return self.retrieval.invoke({"question": question, "namespace": self.namespace, **given})  # type: ignore[no-any-return]


@pytest.fixture(scope="package")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("retrieval") / "db"
    server = embedded.join(folder, binaries.download_missing(), fsync="everysec", idle_seconds=0)
    database = Database(At(server))
    driver = open_driver(Teller(), WordVectors(), database)
    yield driver
    driver.close()
    database.close()
    server.close()


@pytest.fixture
def new_talk(driver: Driver) -> Callable[[], Talk]:
    return lambda: Talk(driver)


@pytest.fixture
def talk(driver: Driver) -> Talk:
    return Talk(driver)


@pytest.fixture
def many(driver: Driver) -> Iterator[Many]:
    made = Many(driver.store.database)  # type: ignore[arg-type]
    yield made
    made.driver.close()


@pytest.fixture(scope="module")
def story(driver: Driver) -> Talk:
    """A small story; read only."""
    talk = Talk(driver)
    talk.tell("Ann", "I live in Bergen, by the fjord.", "2022-02-01T10:00:00Z", "early")
    talk.tell("Ann", "Big news: I moved to Oslo!", "2023-05-02T10:00:00Z", "spring")
    talk.tell("Bob", "How is the weather there?", "2023-05-02T10:01:00Z", "spring")
    talk.tell("Ann", "Rainy, but I like it.", "2023-05-02T10:02:00Z", "spring")
    talk.tell("Ann", "By the way, my sister is Mia.", "2023-06-01T10:00:00Z", "summer")
    talk.tell("Bob", "Mia works at Acme, I hear.", "2023-06-01T10:01:00Z", "summer")
    talk.tell("Will", "Hello both, my cat is called Milo.", "2023-07-01T10:00:00Z", "late")
    talk.tell("Bob", "我搬到了北京。", "2023-08-01T10:00:00Z", "late")
    return talk
