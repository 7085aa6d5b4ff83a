"""The prompts of LangMem's managers and optimizers, and the typed answers that they must get."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from kg_memory.llm.prompts import load_prompt
from kg_memory.llm.prompts.answers import MOST
from kg_memory.llm.prompts.lenient import Id, to_list


class Records(BaseModel):
    """One record about a whole conversation; its kind is the caller's."""

    records: list[dict[str, Any]] = Field(max_length=1)


class Changes(BaseModel):
    """Which memories to add, change and remove; the lists of each kind are the caller's."""

    removed: list[int] = Field(max_length=MOST)


class Queries(BaseModel):
    """What to search a memory for."""

    queries: Annotated[list[str], BeforeValidator(to_list)] = Field(
        description="1 to 5 queries, the most useful first", max_length=5
    )


class Lesson(BaseModel):
    """A rule that an agent should follow, and why."""

    lesson: str = Field(description="the rule, as an order", max_length=400)
    reason: str = Field(description="what went wrong, in one short sentence", max_length=500)
    trajectory: Id = Field(description="the number of the trajectory that shows it")
    replaces: Id = Field(description="the id of the known rule whose place it takes, or null")


class Lessons(BaseModel):
    """What a prompt should teach its agent, the most important first."""

    lessons: list[Lesson] = Field(max_length=5)


class RewrittenPrompt(BaseModel):
    """A prompt that follows the lessons."""

    prompts: Annotated[list[str], BeforeValidator(to_list)] = Field(
        description="one text, the whole new prompt", max_length=1
    )


class ChosenPrompts(BaseModel):
    """Which of several prompts are to be improved."""

    names: Annotated[list[str], BeforeValidator(to_list)] = Field(description="names of prompts", max_length=MOST)


_load = partial(load_prompt, __package__)

MANAGE_MEMORIES = _load("manage_memories", Changes, "lists", "kinds", "existing", "messages", "instructions")
EXTRACT_THREAD = _load("extract_thread", Records, "kind", "messages", "instructions")
RECALL_QUERIES = _load("recall_queries", Queries, "messages", "instructions")
REVIEW = _load("review_trajectories", Lessons, "prompt", "known", "draft", "trajectories", "instructions")
REWRITE = _load("rewrite_prompt", RewrittenPrompt, "prompt", "lessons", "instructions")
CHOOSE_PROMPTS = _load("choose_prompts", ChosenPrompts, "prompts", "trajectories")
