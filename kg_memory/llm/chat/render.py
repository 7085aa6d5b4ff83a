"""Render an `Ask` as text: the prompt, with its data in fences that no data can close."""

from __future__ import annotations

import json
import re
import secrets
from functools import lru_cache
from string import Template
from typing import Any

from kg_memory.llm.prompts import PREAMBLE
from kg_memory.runtime.effects import Ask

# Controls other than tab and line ends, and halves of surrogate pairs, which are no valid UTF-8.
_HARMFUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Writes JSON as prompts have it: spaces between the parts of a record would be a sixth of its tokens."""
_DIGITS = 15
"""How long the code of a fence is: too long to be guessed, and half as many tokens as 16 hexadecimal ones."""
OPTIONAL = frozenset({"previous", "fact_types", "instructions"})
"""The fields that may be empty: the paragraph that tells of an empty one is left out."""


def rendered(ask: Ask, code: str | None = None) -> str:
    """Return the text of *ask*; *code* closes its fences and is random when not given.

    Errors: `ValueError` when the fields are not those that the prompt declares.
    """
    if set(ask.fields) != ask.prompt.fields:
        raise ValueError(
            f"the prompt {ask.prompt.name} wants {sorted(ask.prompt.fields)} but was given {sorted(ask.fields)}:"
            " pass just those"
        )
    code = code or f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    fenced = {name: f"<<<{name} {code}\n{_plain(value)}\n{code}>>>" for name, value in ask.fields.items()}
    empty = frozenset(name for name in OPTIONAL & ask.fields.keys() if not ask.fields[name])
    return f"{PREAMBLE}\n{_without(ask.prompt.text, empty).substitute(fenced)}"


@lru_cache(maxsize=256)
def _without(text: str, empty: frozenset[str]) -> Template:
    """Return the prose of a prompt without the paragraphs that tell of *empty* fields alone."""

    def is_told(paragraph: str) -> bool:
        names = set(Template(paragraph).get_identifiers())
        return not names or bool(names - empty)

    return Template("\n\n".join(filter(is_told, text.split("\n\n"))))


def harmless(text: str) -> str:
    """Return *text* with each control character and lone surrogate replaced by U+FFFD, one for one."""
    return _HARMFUL.sub("�", text)


def harmless_all(value: Any) -> Any:
    """Return the JSON-plain *value* with all its texts made harmless."""
    match value:
        case str():
            return harmless(value)
        case dict():
            return {harmless(str(key)): harmless_all(item) for key, item in value.items()}
        case list() | tuple():
            return [harmless_all(item) for item in value]
    return value


def _plain(value: Any) -> str:
    """Return a text as it is and anything else as JSON, a list with one item a line."""
    value = harmless_all(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(compact, value)) + "\n]"
    return compact(value)
