"""Settings and prompts of one run, given as LangGraph's runtime context.

A field is named like the setting that it changes, or ``<prompt>_prompt`` like the prompt whose text it is. Studio
shows each on its nodes, and lets the prompts be edited there.
"""

from __future__ import annotations

from reprlib import repr as short
from string import Template
from types import new_class
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from kg_memory.errors import InputError
from kg_memory.runtime.effects import Prompt
from kg_memory.settings import Settings

PROMPT = "_prompt"
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
    """Changes of the settings and the prompts for one run; what is not given stays as the memory was opened."""

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
        changes = {name: getattr(self, name) for name in self.model_fields_set if _is_setting(name)}
        return settings.with_(**changes) if changes else settings

    def prompts(self) -> dict[str, str]:
        """Return the texts of the prompts that were edited, by the names of the prompts."""
        edited = (name for name in self.model_fields_set if not _is_setting(name))
        return {name.removesuffix(PROMPT): getattr(self, name) for name in edited}

    @field_validator("*")
    @classmethod
    def _names_are_known(cls, value: Any, field: ValidationInfo) -> Any:
        name = field.field_name or ""
        if _is_setting(name):
            return value
        text, allowed = Template(value), Template(cls.model_fields[name].default).get_identifiers()
        names = ", ".join(f"${identifier}" for identifier in sorted(allowed))
        if not value.strip():
            raise ValueError("is empty: leave it out to ask as before")
        if not text.is_valid():
            raise ValueError(f"has a $ that begins no name: write $$ for a dollar sign, or one of {names}")
        if unknown := sorted(set(text.get_identifiers()) - set(allowed)):
            raise ValueError(
                f"has the unknown name ${unknown[0][:LONGEST_NAME]}: use {names}, and $$ for a dollar sign"
            )
        return value


def setting_field(name: str, description: str, *nodes: str, **limits: Any) -> Any:
    """Return the field that changes the setting *name*, shown on *nodes*."""
    default = getattr(_DEFAULTS, name)
    return Field(default, description=description, json_schema_extra={"langgraph_nodes": list(nodes)}, **limits)


def prompt_field(of: Prompt[Any], node: str, what: str) -> Any:
    """Return the field that holds the text of the prompt *of*, edited on *node*."""
    names = ", ".join(f"${name}" for name in sorted(of.fields))
    return Field(
        of.text,
        description=f"{what} Data goes where {names} stand.",
        json_schema_extra={"langgraph_nodes": [node], "langgraph_type": "prompt"},
    )


_DEFAULTS = Settings()


def _is_setting(name: str) -> bool:
    return not name.endswith(PROMPT)


def _describe_error(schema: type[BaseModel], error: ValidationError) -> str:
    """Return what is wrong with the context, in one sentence."""
    errors = error.errors()
    first = next((detail for detail in errors if detail["type"] == "extra_forbidden"), errors[0])
    name = ".".join(map(str, first["loc"]))[:LONGEST_NAME]
    if first["type"] == "extra_forbidden":
        return f"the context has the unknown key {name!r}: use {', '.join(schema.model_fields)}"
    if first["type"] == "missing":
        return f"the context has no {name!r}: give it when you invoke it"
    return f"{name} in the context {_reason(first)}"


def _reason(error: Any) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"is {short(error['input'])}: {error['msg'][0].lower()}{error['msg'][1:]}"


def describe_key(description: str, default: Any = ..., **more: Any) -> Any:
    """Return what describes a key of a state: in words, with its default, and *more* of JSON schema such as examples.

    The default is what the graph does without the key; it is shown, not filled in.
    """
    extra = more if default is ... else {"default": default, **more}
    return Field(description=description, json_schema_extra=extra)
