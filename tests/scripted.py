"""A model and an embedding model that answer by rules: whole, deterministic, and without a network."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from kg_memory.contrib.embedded import Server
from kg_memory.runtime.effects import Ask

Fields = Mapping[str, Any]
Rule = Callable[[Fields], Any]

PLACES = frozenset({"Oslo", "Paris", "Rome", "Bergen", "Kyoto", "奥斯陆", "巴黎"})
_NAME = re.compile(r"\b[A-Z]\w+|奥斯陆|巴黎")
_SINCE = re.compile(r"since (\d{4}-\d\d-\d\d)")
_UNTIL = re.compile(r"until (\d{4}-\d\d-\d\d)")


class Scripted:
    """A model that reads capitalised words as entities, and joins them to the first by a fact each.

    A known place is lived in, whatever else is known to. ``undated``, ``since D`` and ``until D`` set the dates of a
    fact, which begins with its episode otherwise. Whoever lives in one place lives in no other. A rule given for a
    prompt's name takes the place of its own; what it raises, the model raises. It keeps what it was asked.
    """

    name = "scripted"
    by_rules = False

    def __init__(self, **rules: Rule) -> None:
        self.rules: dict[str, Rule] = {**_RULES, "read_window": self._read_window, **rules}
        self.asked: list[Ask] = []
        self._lock = Lock()

    def answer(self, ask: Ask) -> BaseModel:
        with self._lock:
            self.asked.append(ask)
        answer: BaseModel = ask.prompt.answer.model_validate(self.told(ask.prompt.name, ask.fields))
        return answer

    def told(self, prompt: str, fields: Fields) -> Any:
        """Return what is answered to a prompt; where it has no rule, it is `READ`."""
        return self.rules.get(prompt, self._read)(fields)

    def _read(self, fields: Fields) -> Any:
        """Read entities and facts together, by their own rules."""
        episode = fields["episode"]
        speaker = [{"name": episode["speaker"], "type": "Person"}] if episode["speaker"] else []
        listed = self.rules[f"extract_{episode['kind']}"](fields)["entities"]
        found = speaker + [each for each in listed if each["name"] != episode["speaker"]]
        given = [{"id": place, **each, "called": [each["name"]]} for place, each in enumerate(found)]
        facts = self.rules["facts"]({**fields, "entities": given})["facts"] if found else []
        told = [{name: _named(each[name], found) for name in ("subject", "objects")} for each in facts]
        return {"entities": found, "facts": [{**each, **names} for each, names in zip(facts, told, strict=True)]}

    def _read_window(self, fields: Fields) -> Any:
        """Read several messages, each as if it were asked about alone."""
        readings = [
            (each["message"], self.told("read", {**fields, "episode": {"kind": "message", **each}}))
            for each in fields["messages"]
        ]
        return {
            kind: [{"message": message, **each} for message, reading in readings for each in reading[kind]]
            for kind in ("entities", "facts")
        }

    async def aanswer(self, ask: Ask) -> BaseModel:
        return self.answer(ask)

    def asks(self, prompt: str) -> list[Fields]:
        """Return the fields of all that was asked with *prompt*."""
        return [each.fields for each in self.asked if each.prompt.name == prompt]


def stated(subject: Any, predicate: str, objects: list[Any], sentence: str, quote: str = "", **given: Any) -> Any:
    """Return a fact as a model states it: sure and undated, unless *given* says otherwise."""
    told = {"subject": subject, "predicate": predicate, "objects": objects, "sentence": sentence, "quote": quote}
    return {**told, "valid_at": None, "invalid_at": None, "edge_type": "semantic", "confidence": 1.0, **given}


def judging(kind: str, sure: float = 0.95, holds: str = "new", reason: str = "the test says so") -> Rule:
    """Return a rule that gives the same verdict on every pair of facts."""

    def rule(fields: Fields) -> Any:
        pairs = [(fact["id"], old["id"]) for fact in fields["facts"] for old in fact["existing"]]
        told = {"verdict": kind, "confidence": sure, "holds": holds, "reason": reason}
        return {"verdicts": [{"fact": new, "known": old, **told} for new, old in pairs]}

    return rule


def resolving(same_as: int | None = 0, name: str = "", confidence: float = 1.0) -> Rule:
    """Return a rule that resolves each entity to candidate *same_as*, with its own name unless *name* is given."""

    def rule(fields: Fields) -> Any:
        told = {"same_as": same_as, "confidence": confidence}
        entities = fields["entities"]
        return {"resolutions": [{"entity": each["id"], "name": name or each["name"], **told} for each in entities]}

    return rule


def raising(error: Exception) -> Rule:
    """Return the rule of a model that fails with *error*."""

    def answer(_: Fields) -> Any:
        raise error

    return answer


class HashEmbeddings(Embeddings):
    """Each word is a direction of its own, by its hash; texts without a word share one direction."""

    def __init__(self, dimensions: int = 64, name: str = "hash") -> None:
        self.name = name
        self.dimensions = dimensions
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for word in _words(text):
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimensions] += 1 if digest[4] % 2 else -1
        if not any(vector):
            vector[0] = 1.0
        length = math.hypot(*vector)
        return [number / length for number in vector]


class At:
    """The host of a server that somebody else started."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def url(self) -> str:
        return self._server.url

    def close(self) -> None:
        """The server goes on: others use it too."""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _named(ends: int | list[int], entities: list[Any]) -> Any:
    return entities[ends]["name"] if isinstance(ends, int) else [entities[end]["name"] for end in ends]


def names(content: str) -> list[str]:
    """Return the capitalised words of *content*, once each."""
    return [each for each in dict.fromkeys(_NAME.findall(content)) if each != "I"]


def _extract(fields: Fields) -> Any:
    found = names(fields["episode"]["content"])
    return {"entities": [{"name": each, "type": "Place" if each in PLACES else "Person"} for each in found]}


def _facts(fields: Fields) -> Any:
    content = fields["episode"]["content"]
    first, *others = fields["entities"]
    since, until = _SINCE.search(content), _UNTIL.search(content)
    begins = None if until or "undated" in content else fields["episode"]["at"]
    dates = {"valid_at": since[1] if since else begins, "invalid_at": until[1] if until else None}
    found = []
    for id_, name in ((each["id"], each["name"]) for each in others if each["name"] in content):
        verb = "lives in" if name in PLACES else "knows"
        found.append(stated(first["id"], verb, [id_], f"{first['name']} {verb} {name}", name, **dates))
    return {"facts": found}


def _judge(fields: Fields) -> Any:
    found = []
    for fact in fields["facts"]:
        for old in fact["existing"]:
            verdict = "duplicate" if _told(old) == _told(fact) else "unrelated"
            lives = old["predicate"] == fact["predicate"] == "LIVES_IN" and old["subject"] == fact["subject"]
            if lives and old["objects"] != fact["objects"]:
                verdict = "supersedes"
            sure = {"confidence": 1.0, "holds": "new", "reason": "by the script"}
            found.append({"fact": fact["id"], "known": old["id"], "verdict": verdict, **sure})
    return {"verdicts": found}


def _predicates(fields: Fields) -> Any:
    names = [each["name"] for each in fields["predicates"]]
    return {"predicates": [{"name": name, "canonical": name, "one_at_a_time": False} for name in names]}


def _summarise(fields: Fields) -> Any:
    told = [{"entity": each["id"], "summary": f"All about {each['name']}."} for each in fields["entities"]]
    return {"summaries": told}


def _community(fields: Fields) -> Any:
    told = []
    for each in fields["communities"]:
        found = [item.get("entity") or item.get("part") for item in each["items"] if "fact" not in item]
        summary = f"All about {', '.join(found)[:500]}."
        told.append({"community": each["community"], "name": " and ".join(found)[:100], "summary": summary})
    return {"communities": told}


def _score(fields: Fields) -> Any:
    asked = set(_words(fields["question"]))
    shared = [(each["id"], len(asked.intersection(_words(each["text"])))) for each in fields["texts"]]
    return {"scores": [{"text": id_, "relevance": 10 * count / 100} for id_, count in shared]}


def _told(fact: Fields) -> tuple[Any, ...]:
    return fact["subject"], fact["predicate"], fact["objects"]


_RULES: dict[str, Rule] = {
    "extract_message": _extract,
    "extract_text": _extract,
    "extract_json": _extract,
    "reflect": lambda _: {"missed": [], "unsupported": []},
    "resolve": lambda _: {"resolutions": []},
    "facts": _facts,
    "judge": _judge,
    "predicates": _predicates,
    "summarise": _summarise,
    "community": _community,
    "score": _score,
}
