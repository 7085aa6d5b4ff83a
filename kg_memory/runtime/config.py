"""Settings of one run, passed as LangGraph's runtime context.

Each field has the name of the setting that it overrides. LangGraph Studio shows the fields on the nodes they affect.
"""

from __future__ import annotations

from types import new_class
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_memory.errors import InputError
from kg_memory.settings import Settings
from kg_memory.validation import describe_invalid


class ValidatedModel(BaseModel):
    """Base class for the settings of one run: a frozen pydantic model that raises `InputError` for invalid values.

    The message of the error is one sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InputError(describe_invalid(error, "the context", type(self).model_fields)) from None


class RunConfig(ValidatedModel):
    """Settings for a single run, which override those of the memory; fields that are left out override nothing."""

    @classmethod
    def of(cls, settings: Settings) -> type[Self]:
        """Return a subclass of this model whose JSON schema shows the values of *settings* as defaults."""

        def fill(schema: dict[str, Any]) -> None:
            for name, shown in schema["properties"].items():
                if hasattr(settings, name):
                    shown["default"] = getattr(settings, name)

        config = ConfigDict(json_schema_extra=fill)
        body = {"__module__": cls.__module__, "__doc__": cls.__doc__, "model_config": config}
        return new_class(cls.__name__, (cls,), exec_body=lambda namespace: namespace.update(body))

    def settings(self, settings: Settings) -> Settings:
        """Return a copy of *settings* in which the values set for this run replace the others.

        Errors: `SettingsError`.
        """
        changes = {name: getattr(self, name) for name in self.model_fields_set}
        return settings.with_(**changes) if changes else settings


def setting_field(name: str, description: str, *nodes: str, **limits: Any) -> Any:
    """Return a pydantic field that overrides the setting called *name* for one run."""
    default = getattr(_DEFAULTS, name)
    return Field(default, description=description, json_schema_extra={"langgraph_nodes": list(nodes)}, **limits)


_DEFAULTS = Settings()


def describe_key(description: str, default: Any = ..., **more: Any) -> Any:
    """Return a pydantic field that describes a key of a LangGraph graph's input or output in its JSON schema."""
    return Field(description=description, json_schema_extra=more if default is ... else {"default": default, **more})
