"""A real FalkorDB, filled through the real ingestion graph by a model that knows its answers."""

import math
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest

from kg_memory.falkor.connect import Database
from kg_memory.ingestion.graph import build as build_ingestion
from kg_memory.memory.open import open_driver
from kg_memory.retrieval.graph import build as build_retrieval
from kg_memory.runtime.driver import Driver
from kg_memory.settings import Settings
from kg_memory.text.tokenise import terms
from tests.retrieval.many import Many
from tests.scripted import HashEmbeddings, Scripted, stated

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


class WordVectors(HashEmbeddings):
    """Texts with words in common are near: each word adds one to its place."""

    def _vector(self, text: str) -> list[float]:
        vector = [0.01] * DIMENSION
        for word in terms(text):
            vector[zlib.crc32(word.encode()) % DIMENSION] += 1.0
        length = math.hypot(*vector)
        return [each / length for each in vector]


def _entities(fields: Mapping[str, Any]) -> Any:
    """Return what `NAMES` and `STATED` say of a text."""
    content = fields["episode"]["content"]
    ends = [end for words, (one, other, *_) in STATED.items() if words in content for end in (one, other)]
    told = [name for name in NAMES if re.search(name, content)]
    return {"entities": [{"name": name, "type": "Entity"} for name in dict.fromkeys([*ends, *told])]}


def _facts(fields: Mapping[str, Any]) -> Any:
    ids = {each["name"]: each["id"] for each in fields["entities"]}
    facts = [
        stated(ids[subject], "RELATES_TO", [ids[object_]], sentence, words, valid_at=since, confidence=0.9)
        for words, (subject, object_, sentence, since, _) in STATED.items()
        if words in fields["episode"]["content"] and subject in ids and object_ in ids
    ]
    return {"facts": facts}


def _verdicts(fields: Mapping[str, Any]) -> Any:
    ruled_out = {sentence: other for _, _, sentence, _, other in STATED.values() if other}
    told = {"verdict": "supersedes", "confidence": 1.0, "holds": "new", "reason": "told"}
    verdicts = [
        {"fact": fact["id"], "known": known["id"], **told}
        for fact in fields["facts"]
        for known in fact["existing"]
        if known["sentence"] == ruled_out.get(fact["sentence"])
    ]
    return {"verdicts": verdicts}


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


@pytest.fixture(scope="session")
def driver(database: Database) -> Iterator[Driver]:
    """A driver with a model that reads what `STATED` says of a text."""
    model = Scripted(extract_message=_entities, facts=_facts, judge=_verdicts)
    opened = open_driver(model, WordVectors(DIMENSION), database)
    yield opened
    opened.close()


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
