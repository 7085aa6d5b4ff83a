"""Random calls by two keys with separate namespaces: none fails, and none returns texts of the other key.

``KG_MEMORY_TEST_CALLS=10000`` makes more calls than by default, ``KG_MEMORY_TEST_SEED`` others.
"""

import os
import random
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest

CALLS = int(os.environ.get("KG_MEMORY_TEST_CALLS", "1500"))
SEED = int(os.environ.get("KG_MEMORY_TEST_SEED", "7"))
SECRETS = {"red": ("Zanzibarrow", "Quillfeather"), "blue": ("Mbombelane", "Thistlewick")}
"""Words in the memories of each key; no call sends them."""
WORDS = (
    "Ann", "Where does Ann live?", "lives in", "2024-05", "last March", "..", "%", "", "\x00", "x" * 300, "住在", "0", "-1", "*",
)  # fmt: skip
PLACES = ("red/ann", "blue/ann", "red/../blue/ann", "blue%2Fann", "default", "*", "red/*", " ", "blue/ann\x00")


def fill(client: Any, namespace: str, words: tuple[str, str]) -> list[str]:
    """Add *words* to a namespace, and return the ids of all its items."""
    root = f"/v1/namespaces/{quote(namespace, safe='')}"
    for word in words:
        fact = {"subject": "Ann", "predicate": "LIVES_IN", "object": word, "source": word}
        stated = client.post(f"{root}/facts", json={**fact, "sentence": f"Ann lives in {word}"})
        assert stated.status_code == 201
    client.post(f"{root}/episodes", json={"content": f"I like {words[0]}.", "speaker": words[1], "thread": words[1]})
    lists = [client.get(f"{root}/{kind}").json()["items"] for kind in ("facts", "episodes", "entities", "verdicts")]
    return [item["id"] for items in lists for item in items]


class Calls:
    """Makes random calls from the description of the API."""

    def __init__(self, description: dict[str, Any], ids: list[str]) -> None:
        self._random = random.Random(SEED)
        self._schemas = description["components"]["schemas"]
        paths = description["paths"].items()
        self._operations = [(path, method, about) for path, methods in paths for method, about in methods.items()]
        self._operations = [one for one in self._operations if one[2]["operationId"] != "events"]
        self._values = (*WORDS, *ids)

    def draw(self) -> tuple[str, str, dict[str, Any]]:
        path, method, about = self._random.choice(self._operations)
        query: dict[str, Any] = {}
        for parameter in about.get("parameters", ()):
            name = parameter["name"]
            value = self._random.choice(PLACES) if name == "namespace" else self._value(parameter["schema"])
            if parameter["in"] == "path":
                path = path.replace(f"{{{name}}}", quote(str(value), safe="") or "x")
            elif parameter["in"] == "query" and self._random.random() < 0.4:
                query[name] = value
        options: dict[str, Any] = {"params": query}
        content = about.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            options["json"] = self._value(content["application/json"]["schema"])
        elif content:
            options["content"] = self._random.randbytes(50)
        return method, path, options

    def _value(self, schema: dict[str, Any]) -> Any:  # noqa: C901
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rpartition("/")[2]])
        if self._random.random() < 0.05:
            return self._random.choice((None, [], {}, self._random.choice(self._values)))
        if "anyOf" in schema:
            return self._value(self._random.choice(schema["anyOf"]))
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        match schema.get("type"):
            case "object" if "properties" in schema:
                needed = schema.get("required", ())
                names = [name for name in schema["properties"] if name in needed or self._random.random() < 0.3]
                return {name: self._value(schema["properties"][name]) for name in names}
            case "object":
                name = self._random.choice(("speaker", "name", "$or", "subject", "x"))
                return {name: self._random.choice(self._values)}
            case "array":
                return [self._value(schema.get("items", {})) for _ in range(self._random.randrange(3))]
            case "integer":
                return self._random.choice((0, 1, 2, 20, -1, 2**31, 2**63, 10**30))
            case "number":
                return self._random.choice((0, 0.5, 1, -1, 1e308))
            case "boolean":
                return self._random.random() < 0.5
        return self._random.choice(self._values)


@pytest.fixture
def keys(client):
    """A client for each key, with all scopes in its own namespaces, and the ids of the items of both."""
    made = {name: client("admin", namespaces=(f"{name}/*",)) for name in SECRETS}
    ids = [id_ for name, words in SECRETS.items() for id_ in fill(made[name], f"{name}/ann", words)]
    return made, ids


def test_random_calls_never_fail_or_return_texts_of_other_key(keys):
    made, ids = keys
    calls = Calls(made["red"].get("/openapi.json").json(), ids)
    counts: Counter[int] = Counter()
    for number in range(CALLS):
        name, other = ("red", "blue") if number % 2 else ("blue", "red")
        method, path, options = calls.draw()
        answer = made[name].request(method, path, **options)
        counts[answer.status_code] += 1
        assert answer.status_code < 500, (method, path, options, answer.text)
        text = answer.text.casefold() + str(answer.headers).casefold()
        assert not any(word.casefold() in text for word in SECRETS[other]), (method, path, options, answer.text)
    assert counts[200] > CALLS / 20, counts
    assert counts[403] > CALLS / 20, counts
