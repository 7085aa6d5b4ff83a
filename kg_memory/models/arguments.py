"""Read JSON arguments from models and other programs leniently: ``"null"`` as left out, text as a number or a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator

LEFT_OUT = frozenset({"", "null", "none", "undefined", "n/a"})


def is_left_out(value: object) -> bool:
    """Return whether *value*, of an optional argument, means "not given": None, blank text, ``"null"`` or ``"none"``.

    ``"undefined"`` and ``"n/a"`` count too, in any case.
    """
    return value is None or (isinstance(value, str) and value.strip().casefold() in LEFT_OUT)


class Arguments(BaseModel):
    """Base class of the arguments of a tool and of request bodies, which accepts values of a slightly wrong JSON type.

    An optional argument that `is_left_out` has its default; required text is kept as it is. Where no text is expected,
    text may be a number, a list or an object in JSON, or the only item of a list: ``"Ann"`` for ``["Ann"]``.
    """

    model_config = ConfigDict(coerce_numbers_to_str=True)
    texts: ClassVar[frozenset[str]] = frozenset()
    """The optional arguments for which text such as ``"null"`` is a value."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        return dict(cls._read_each(given)) if isinstance(given, dict) else given

    @classmethod
    def _read_each(cls, given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the name and the converted value of each argument in *given* that is not left out."""
        for name, value in given.items():
            field = cls.model_fields.get(name)
            read = value if field is None else _read_value(field.annotation, value)
            if field is not None and not field.is_required() and not (value and name in cls.texts):
                read = [item for item in read if not is_left_out(item)] if isinstance(read, list) else read
                if is_left_out(read) or (value and read == []):
                    continue
            yield name, read


def _read_value(annotation: Any, value: Any) -> Any:
    """Return *value* as the type *annotation*: ``"[1]"`` becomes ``[1]`` for a list, and ``"a"`` becomes ``["a"]``."""
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
    """Yield the members of a union type, or the type itself, without `Annotated`."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for kind in get_args(annotation):
            yield from _alternatives(kind)
    else:
        yield get_args(annotation)[0] if origin is Annotated else annotation
