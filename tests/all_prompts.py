"""All prompts, by the folders in which their texts are."""

from itertools import chain
from typing import Any

from kg_memory.contrib import sessions
from kg_memory.contrib.langmem import asking
from kg_memory.contrib.letta import sleep_time
from kg_memory.contrib.variants import economy
from kg_memory.llm import prompts
from kg_memory.runtime.effects import PromptTemplate

_MODULES = {
    "kg_memory/llm/prompts": [prompts],
    "kg_memory/contrib": [sessions],
    "kg_memory/contrib/langmem": [asking],
    "kg_memory/contrib/letta": [sleep_time],
    "kg_memory/contrib/variants": [economy],
}
BY_FOLDER: dict[str, list[PromptTemplate[Any]]] = {
    folder: [prompt for module in modules for prompt in vars(module).values() if isinstance(prompt, PromptTemplate)]
    for folder, modules in _MODULES.items()
}
ALL = list(chain(*BY_FOLDER.values()))
