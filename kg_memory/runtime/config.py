"""Settings of one run, given as LangGraph's runtime context.

A field is named like the setting that it changes. Studio shows each on its nodes.
"""

from __future__ import annotations

from reprlib import repr as short
from types import new_class
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_memory.errors import InputError
from kg_memory.settings import Settings

LONGEST_NAME = 100
"""Characters of an unknown name that an error shows."""


class ValidatedModel(BaseModel):
    """The context of a run; an invalid one raises an error of one sentence.

    Errors: `InputError`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InputError(_describe_error(type(self), error)) from None


class RunConfig(ValidatedModel):
    """Changes of the settings for one run; what is not given stays as the memory was opened."""

    @classmethod
    def of(cls, settings: Settings) -> type[Self]:
        """Return this schema as a form shows it: with what *settings* say as the defaults."""

        def fill(schema: dict[str, Any]) -> None:
            for name, shown in schema["properties"].items():
                if hasattr(settings, name):
                    shown["default"] = getattr(settings, name)

        config = ConfigDict(json_schema_extra=fill)
        body = {"__module__": cls.__module__, "__doc__": cls.__doc__, "model_config": config}
        return new_class(cls.__name__, (cls,), exec_body=lambda namespace: namespace.update(body))

    def settings(self, settings: Settings) -> Settings:
        """Return *settings* as this run changes them.

        Errors: `SettingsError` where they cannot work together.
        """
        changes = {name: getattr(self, name) for name in self.model_fields_set}
        return settings.with_(**changes) if changes else settings


def setting_field(name: str, description: str, *nodes: str, **limits: Any) -> Any:
    """Return the field that changes the setting *name*, shown on *nodes*."""
    default = getattr(_DEFAULTS, name)
    return Field(default, description=description, json_schema_extra={"langgraph_nodes": list(nodes)}, **limits)


_DEFAULTS = Settings()


def _describe_error(schema: type[BaseModel], error: ValidationError) -> str:
    """Return what is wrong with the context, in one sentence."""
    errors = error.errors()
    first = next((detail for detail in errors if detail["type"] == "extra_forbidden"), errors[0])
    name = ".".join(map(str, first["loc"]))[:LONGEST_NAME]
    if first["type"] == "extra_forbidden":
        return f"the context has the unknown key {name!r}: use {', '.join(schema.model_fields)}"
    if first["type"] == "missing":
        return f"the context has no {name!r}: give it when you invoke it"
    return f"{name} in the context is {short(first['input'])}: {first['msg'][0].lower()}{first['msg'][1:]}"


def describe_key(description: str, default: Any = ..., **more: Any) -> Any:
    """Return what describes a key of a state: in words, with its default, and *more* of JSON schema such as examples.

    The default is what the graph does without the key; it is shown, not filled in.
    """
    extra = more if default is ... else {"default": default, **more}
    return Field(description=description, json_schema_extra=extra)
