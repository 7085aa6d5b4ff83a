"""All prompts, by the folders in which their texts are."""

from __future__ import annotations

from itertools import chain
from typing import Any

from kg_memory.contrib.langmem import questions
from kg_memory.contrib.letta import sleep_time
from kg_memory.llm import prompts
from kg_memory.runtime.effects import Prompt

_MODULES = {
    "kg_memory/llm/prompts": prompts,
    "kg_memory/contrib/langmem": questions,
    "kg_memory/contrib/letta": sleep_time,
}
BY_FOLDER: dict[str, list[Prompt[Any]]] = {
    folder: [prompt for prompt in vars(module).values() if isinstance(prompt, Prompt)]
    for folder, module in _MODULES.items()
}
ALL = list(chain(*BY_FOLDER.values()))
