"""Parse JSON arguments from models and other programs leniently: ``"null"`` as missing, ``"a"`` as ``["a"]``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator

LEFT_OUT = frozenset({"", "null", "none", "undefined", "n/a"})


def is_left_out(value: object) -> bool:
    """Return whether *value* stands for a missing argument, such as None, blank text or ``"null"``."""
    return value is None or (isinstance(value, str) and value.strip().casefold() in LEFT_OUT)


class Arguments(BaseModel):
    """Base class for the arguments of a tool or request, which converts values of a wrong JSON type.

    For example, ``"[1, 2]"`` becomes ``[1, 2]``, and ``"Ann"`` becomes ``["Ann"]`` for a list. An optional argument
    that is None, ``"null"`` or the like gets its default.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)
    texts: ClassVar[frozenset[str]] = frozenset()
    """The optional arguments for which text such as ``"null"`` is a value."""

    @model_validator(mode="before")
    @classmethod
    def _correct(cls, arguments: Any) -> Any:
        return dict(cls._correct_each(arguments)) if isinstance(arguments, dict) else arguments

    @classmethod
    def _correct_each(cls, arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield ``(name, value)`` of *arguments*, with values of the right JSON type, except left-out optional ones."""
        for name, value in arguments.items():
            field = cls.model_fields.get(name)
            read = value if field is None else _correct_value(field.annotation, value)
            if field is not None and not field.is_required() and not (value and name in cls.texts):
                read = [item for item in read if not is_left_out(item)] if isinstance(read, list) else read
                if is_left_out(read) or (value and read == []):
                    continue
            yield name, read


def _correct_value(annotation: Any, value: Any) -> Any:
    """Convert the text *value* if the type *annotation* is a list or an object: ``"[1]" -> [1]``, ``"a" -> ["a"]``."""
    if not isinstance(value, str):
        return value
    kinds = {get_origin(kind) or kind for kind in _alternatives(annotation)}
    if str in kinds or Any in kinds:
        return value
    if value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return [value] if list in kinds and not is_left_out(value) else value


def _alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the types in the union *annotation*: ``int | None`` gives ``int`` and ``NoneType``."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for kind in get_args(annotation):
            yield from _alternatives(kind)
    else:
        yield get_args(annotation)[0] if origin is Annotated else annotation
