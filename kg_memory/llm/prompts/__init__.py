"""The prompts: text in ``.md`` files with ``$name`` placeholders, each with the type of its answer.

The import fails if a file's placeholders differ from the declared fields. `render_prompt` fills in the data, fenced so
that data cannot pass for instructions; `strict_schema` returns the JSON schema of an answer.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from string import Template
from typing import Any, TypeVar

from pydantic import BaseModel

from kg_memory.llm.prompts import answers
from kg_memory.runtime.effects import Ask, PromptTemplate

Answer = TypeVar("Answer", bound=BaseModel)

OPTIONAL = frozenset({"previous", "fact_types", "instructions"})
"""The fields that may be empty; paragraphs that contain only empty fields are left out of the prompt."""
CONSTANT = frozenset({"entity_types", "fact_types"})
"""The types, which come first, fenced with a code that is random for each process, not each request: so all requests of
a process begin with the same rules and types, which providers cache. `instructions`, which a model follows, are not
among them: their code must be new in each request."""
SIZE_LIMITS = ("maxLength", "maxItems")
# Control characters except tab and line ends, and lone surrogates, which are not valid UTF-8.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Without spaces after "," and ":", which would be a sixth of a prompt's tokens.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _random_code() -> str:
    # Hard to guess, in half the tokens of 16 hexadecimal digits.
    return f"{secrets.randbelow(10**15):015}"


_CODE = _random_code()


def load_prompt(package: str, name: str, answer: type[Answer], *fields: str) -> PromptTemplate[Answer]:
    """Load the prompt in the file ``<name>.md`` of the Python *package*; *fields* are its placeholders."""
    text = files(package).joinpath(f"{name}.md").read_text(encoding="utf-8")
    used = set(Template(text).get_identifiers())
    if used != set(fields):
        raise ValueError(f"prompts/{name}.md uses {sorted(used)} but declares {sorted(fields)}")
    return PromptTemplate(name, text, frozenset(fields), answer)


_load = partial(load_prompt, __package__)
PREAMBLE = files(__package__).joinpath("preamble.md").read_text(encoding="utf-8")
"""The text before every prompt: it tells the model not to follow instructions in the fenced data."""

EXTRACT_MESSAGE = _load(
    "extract_message", answers.ExtractedEntities, "episode", "previous", "entity_types", "instructions"
)
EXTRACT_TEXT = _load("extract_text", answers.ExtractedEntities, "episode", "previous", "entity_types", "instructions")
EXTRACT_JSON = _load("extract_json", answers.ExtractedEntities, "episode", "entity_types", "instructions")
READ = _load("read", answers.EpisodeReading, "episode", "previous", "entity_types", "fact_types", "instructions")
REFLECT = _load("reflect", answers.Reflection, "episode", "previous", "entity_types", "entities")
RESOLVE = _load("resolve", answers.Resolutions, "episode", "previous", "entities")
FACTS = _load("facts", answers.ExtractedFacts, "episode", "previous", "entities", "fact_types", "instructions")
PREDICATES = _load("predicates", answers.CanonicalPredicates, "predicates", "known")
JUDGE = _load("judge", answers.FactVerdicts, "facts")
ADMIT = _load("admit", answers.FactWorths, "facts")
SUMMARISE = _load("summarise", answers.Summaries, "entities")
SCORE = _load("score", answers.Scores, "question", "texts")
COMMUNITY = _load("community", answers.Descriptions, "communities")


def render_prompt(ask: Ask) -> str:
    """Return the full text to send to the model for *ask*: general instructions, then the prompt with its data."""
    if set(ask.fields) != ask.prompt.fields:
        raise ValueError(
            f"the prompt {ask.prompt.name} must get the fields {sorted(ask.prompt.fields)}, got {sorted(ask.fields)};"
            " pass exactly these fields"
        )
    code = dict.fromkeys(ask.fields, _random_code()) | dict.fromkeys(CONSTANT, _CODE)
    fenced = {name: f"<<<{name} {code[name]}\n{_to_text(data)}\n{code[name]}>>>" for name, data in ask.fields.items()}
    empty = frozenset(name for name in OPTIONAL & ask.fields.keys() if not ask.fields[name])
    return f"{PREAMBLE}\n{_without(ask.prompt.text, empty).substitute(fenced)}"


@lru_cache(maxsize=256)
def _without(text: str, empty: frozenset[str]) -> Template:
    """Return *text* as a template, without paragraphs whose placeholders are all in *empty* (fields without data)."""

    def applies(paragraph: str) -> bool:
        names = set(Template(paragraph).get_identifiers())
        return not names or bool(names - empty)

    return Template("\n\n".join(filter(applies, text.split("\n\n"))))


def replace_controls(text: str) -> str:
    """Return *text* with each control character and lone surrogate replaced by U+FFFD; its length stays the same."""
    return _CONTROLS.sub("�", text)


def replace_all_controls(value: Any) -> Any:
    """Return the JSON *value* with control characters in all its strings and keys replaced by U+FFFD."""
    match value:
        case str():
            return replace_controls(value)
        case dict():
            return {replace_controls(str(key)): replace_all_controls(item) for key, item in value.items()}
        case list() | tuple():
            return [replace_all_controls(item) for item in value]
    return value


def _to_text(value: Any) -> str:
    value = replace_all_controls(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(_to_json, value)) + "\n]"
    return _to_json(value)


def strict_schema(kind: type[BaseModel], *, limits: bool = True) -> Mapping[str, object]:
    """Return the JSON schema of *kind* in the strict form that servers require; do not modify the result."""
    return _schema(kind, limits)[0]


def schema_text(kind: type[BaseModel]) -> str:
    """Return the JSON schema of the pydantic class *kind* (see `strict_schema`) as text for a prompt."""
    return _schema(kind, True)[1]


@lru_cache(maxsize=256)
def _schema(kind: type[BaseModel], limits: bool) -> tuple[Mapping[str, object], str]:  # noqa: FBT001 - part of the key
    full = kind.model_json_schema()
    schema: Mapping[str, object] = _to_strict(full, () if limits else SIZE_LIMITS, full.pop("$defs", {}))
    return schema, _to_json(schema)


def _to_strict(node: Any, unsupported: Sequence[str], definitions: Mapping[str, object]) -> Any:
    """Return *node*, part of a JSON schema, in the strict form: all fields required, no others allowed."""
    if isinstance(node, list):
        return [_to_strict(item, unsupported, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:  # inline the definitions, none of which is recursive
        return _to_strict(definitions[node["$ref"].removeprefix("#/$defs/")], unsupported, definitions)
    strict = {
        key: _to_strict(item, unsupported, definitions)
        for key, item in node.items()
        if key not in unsupported and not _is_optional(key, item)
    }
    if isinstance(node.get("properties"), dict):
        strict["additionalProperties"] = False
        strict["required"] = list(node["properties"])
    return strict


def _is_optional(key: str, item: Any) -> bool:
    # A string or list is pydantic's keyword; a dict is the schema of a field called "title" and so on.
    return key in ("title", "description", "default") and not isinstance(item, dict)
