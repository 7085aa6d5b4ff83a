"""Improve prompts by what went wrong in conversations, and keep what was learned as facts: an agent FOLLOWS a rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, cast, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from typing_extensions import TypedDict

from kg_memory.contrib.langmem.asking import ask, open_model, write_trajectories
from kg_memory.contrib.langmem.extraction import Config
from kg_memory.contrib.langmem.items import Labels, Record
from kg_memory.contrib.langmem.rules import Rules
from kg_memory.errors import InputError, SettingsError
from kg_memory.llm.chat import ChatModel
from kg_memory.llm.prompts import CHOOSE_PROMPTS, REVIEW, REWRITE
from kg_memory.llm.prompts.answers import Lesson
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.validation import DEFAULT_NAMESPACE, validate_count

Kind = Literal["gradient", "metaprompt", "prompt_memory"]
KINDS: tuple[Kind, ...] = get_args(Kind)
STEPS = {"min_reflection_steps": 1, "max_reflection_steps": 3}
AGENT = "agent"
"""The name of an agent whose prompt has none."""
_VARIABLE = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_BRACE = re.compile(r"\{\{|\}\}|\{[A-Za-z_]\w*\}|[{}]")


class Prompt(TypedDict, total=False):
    """A prompt with its name, how the developer wants it to be updated, and when."""

    name: Required[str]
    prompt: Required[str]
    update_instructions: str | None
    when_to_update: str | None


class PromptOptimizer(Runnable[Any, str]):
    """Takes ``{"trajectories": [...], "prompt": ...}`` and returns the improved prompt."""

    def __init__(self, model: ChatModel, kind: Kind, config: Mapping[str, Any] | None, rules: Rules | None) -> None:
        if kind not in KINDS:
            raise SettingsError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        if unknown := set(config or {}) - set(STEPS):
            raise SettingsError(
                f"config may have {' and '.join(STEPS)}, got {min(unknown)!r}; say how to update a prompt in its "
                "update_instructions"
            )
        steps = {**STEPS, **(config or {})}
        self._least = validate_count("min_reflection_steps", steps["min_reflection_steps"], 0)
        self._most = validate_count("max_reflection_steps", steps["max_reflection_steps"])
        self._model, self._kind, self._rules = model, kind, rules

    def _invoke(
        self,
        input: Mapping[str, Any],  # noqa: A002 - as LangChain calls it
        config: Config = None,
        **kwargs: Any,
    ) -> Flow[str]:
        del kwargs
        trajectories, prompt = write_trajectories(_field(input, "trajectories")), _read_prompt(_field(input, "prompt"))
        if not trajectories:
            return prompt["prompt"]
        followed = [] if self._rules is None else (yield from self._rules.current(prompt["name"], config))
        review = {"trajectories": trajectories, "known": _number(followed)}
        lessons, text = yield from self._learn(prompt, review)
        if lessons and self._rules is not None:
            yield from self._rules.learn(prompt["name"], trajectories, lessons, followed, config)
        return text

    invoke, ainvoke = both(_invoke)

    async def __call__(self, trajectories: Any, prompt: str | Prompt) -> str:
        """`ainvoke` of *trajectories* and *prompt*."""
        return await self.ainvoke({"trajectories": trajectories, "prompt": prompt})

    def _learn(self, prompt: Prompt, review: Record) -> Flow[tuple[list[Lesson], str]]:
        """Return the lessons, and the prompt that follows them."""
        wishes = prompt.get("update_instructions") or ""
        text, learned = prompt["prompt"], list[Lesson]()
        draft: list[Lesson] = []
        for step in range(1, 1 + (1 if self._kind == "prompt_memory" else self._most)):
            shown = [lesson.model_dump() for lesson in draft]
            lessons = (
                yield from ask(self._model, REVIEW, prompt=text, draft=shown, instructions=wishes, **review)
            ).lessons
            settled = step >= self._least and lessons == draft
            draft = lessons
            if self._kind != "gradient":
                learned, draft = learned + lessons, []
                text = yield from self._rewrite(text, lessons, wishes)
            if settled:
                break
        if self._kind == "gradient":
            learned = draft
            text = yield from self._rewrite(text, learned, wishes)
        return learned, text

    def _rewrite(self, text: str, lessons: Sequence[Lesson], wishes: str) -> Flow[str]:
        """Return *text* with *lessons* in it, and all its variables."""
        if not lessons:
            return text
        orders = [lesson.lesson for lesson in lessons]
        answer = yield from ask(self._model, REWRITE, prompt=text, lessons=orders, instructions=wishes)
        variables = set(_VARIABLE.findall(text))
        written = next(iter(answer.prompts), "")
        new = _escape(written, variables) if variables else written
        if new.strip() and variables <= set(_VARIABLE.findall(new)):
            return new
        listed = "\n".join(f"- {_escape(order, variables) if variables else order}" for order in orders)
        return f"{text}\n\n{listed}"  # rather than lose a variable, or the prompt


def create_prompt_optimizer(
    model: BaseChatModel | str,
    /,
    *,
    kind: Kind = "gradient",
    config: Mapping[str, Any] | None = None,
    memory: GraphMemory | None = None,
    namespace: Labels | str = DEFAULT_NAMESPACE,
) -> PromptOptimizer:
    """Return a runnable that improves a prompt by *model*'s review of how it did.

    ``gradient`` reviews until the lessons are settled, then rewrites the prompt; ``metaprompt`` reviews and rewrites by
    turns; ``prompt_memory`` does each once. *config* limits how often: ``min_reflection_steps`` (1) and
    ``max_reflection_steps`` (3). With a *memory*, the lessons are kept there: see `render_rules`.
    Errors: `SettingsError`.
    """
    rules = None if memory is None else Rules(memory, namespace)
    return PromptOptimizer(open_model(model), kind, config, rules)


class MultiPromptOptimizer(Runnable[Any, list[Prompt]]):
    """Takes ``{"trajectories": [...], "prompts": [...]}``; returns all prompts, those improved that caused problems."""

    def __init__(self, model: ChatModel, optimizer: PromptOptimizer) -> None:
        self._model, self._optimizer = model, optimizer

    def _invoke(
        self,
        input: Mapping[str, Any],  # noqa: A002 - as LangChain calls it
        config: Config = None,
        **kwargs: Any,
    ) -> Flow[list[Prompt]]:
        del kwargs
        trajectories = _field(input, "trajectories")
        prompts = [_read_prompt(prompt) for prompt in _field(input, "prompts")]
        if len({prompt["name"] for prompt in prompts}) < len(prompts):
            raise InputError("prompts must have different names")
        chosen = yield from self._choose(prompts, write_trajectories(trajectories))
        improved: list[Prompt] = []
        for prompt in prompts:
            if prompt["name"] in chosen:
                state = {"trajectories": trajectories, "prompt": prompt}
                text: str = yield from call(self._optimizer, "invoke", state, config)
                improved.append(cast("Prompt", {**prompt, "prompt": text}))
            else:
                improved.append(prompt)
        return improved

    invoke, ainvoke = both(_invoke)

    async def __call__(self, trajectories: Any, prompts: Sequence[Prompt]) -> list[Prompt]:
        """`ainvoke` of *trajectories* and *prompts*."""
        return await self.ainvoke({"trajectories": trajectories, "prompts": prompts})

    def _choose(self, prompts: Sequence[Prompt], trajectories: Sequence[Record]) -> Flow[set[str]]:
        """Return the names of the prompts to improve; a single one needs no choice, unless it says when."""
        if not trajectories or not prompts:
            return set()
        if len(prompts) == 1 and not prompts[0].get("when_to_update"):
            return {prompts[0]["name"]}
        shown = [
            {"name": prompt["name"], "prompt": prompt["prompt"], "when": prompt.get("when_to_update")}
            for prompt in prompts
        ]
        answer = yield from ask(self._model, CHOOSE_PROMPTS, prompts=shown, trajectories=list(trajectories))
        return set(answer.names)


def create_multi_prompt_optimizer(
    model: BaseChatModel | str,
    /,
    *,
    kind: Kind = "gradient",
    config: Mapping[str, Any] | None = None,
    memory: GraphMemory | None = None,
    namespace: Labels | str = DEFAULT_NAMESPACE,
) -> MultiPromptOptimizer:
    """Return a runnable that improves those of several prompts that caused problems; see `create_prompt_optimizer`."""
    optimizer = create_prompt_optimizer(model, kind=kind, config=config, memory=memory, namespace=namespace)
    return MultiPromptOptimizer(open_model(model), optimizer)


def _field(input_: Any, name: str) -> Any:
    if not isinstance(input_, Mapping) or name not in input_:
        raise InputError(f"the input must be a dict with {name!r}, got {input_!r:.80}")
    return input_[name]


def _read_prompt(prompt: Any) -> Prompt:
    """Return *prompt*, a text or a `Prompt`. Errors: `InputError`."""
    if isinstance(prompt, str):
        return Prompt(name=AGENT, prompt=prompt)
    if isinstance(prompt, Mapping) and all(isinstance(prompt.get(name), str) for name in ("name", "prompt")):
        return cast("Prompt", dict(prompt))
    raise InputError(f"a prompt must be a text or a dict with a name and a prompt, got {prompt!r:.80}")


def _number(rules: Sequence[Fact]) -> list[Record]:
    return [{"id": number, "rule": Rules.text_of(fact)} for number, fact in enumerate(rules, 1)]


def _escape(text: str, variables: set[str]) -> str:
    """Double the braces of *text* that are around none of *variables*, as templates ask for it."""

    def double(match: re.Match[str]) -> str:
        piece = match[0]
        if piece in ("{{", "}}") or piece[1:-1] in variables:
            return piece
        return piece.replace("{", "{{").replace("}", "}}")

    return _BRACE.sub(double, text)
