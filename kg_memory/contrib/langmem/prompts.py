"""Improves an agent's prompts by lessons from its runs, and stores the lessons as facts: an agent FOLLOWS a rule."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Required, cast, get_args

from langchain_core.language_models import BaseChatModel
from typing_extensions import TypedDict

from kg_memory.adapters.namespace import NamespaceTemplate, place_here, validate_memory
from kg_memory.contrib.langmem.asking import (
    CHOOSE_PROMPTS,
    REVIEW,
    REWRITE,
    Config,
    FlowRunnable,
    Lesson,
    ask_chat,
    open_model,
    write_trajectories,
)
from kg_memory.contrib.langmem.place import Namespace
from kg_memory.contrib.langmem.store import Labels, Record, graph_namespace
from kg_memory.errors import InputError, MemoryPaused, SettingsError
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.models.operations import AddResult
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import instant, iso_or_text
from kg_memory.text.identity import LONGEST_NAME
from kg_memory.validation import DEFAULT_NAMESPACE, validate_choice, validate_count

logger = logging.getLogger("kg_memory")

FOLLOWS = "FOLLOWS"
SOURCE = "optimizer"
MOST = 1000
LONGEST_RULE = 150
"""The most characters of a shortened rule, of up to three bytes each."""
_SAYS = " follows the rule: "
MAPPING = {"subject": "$.agent", "predicate": FOLLOWS, "object": "$.rule", "sentence": "$.sentence", "valid_at": "$.at"}
"""The mapping from the record of a trajectory to the fact that it states."""
Kind = Literal["gradient", "metaprompt", "prompt_memory"]
KINDS: tuple[Kind, ...] = get_args(Kind)
STEPS = {"min_reflection_steps": 1, "max_reflection_steps": 3}
AGENT = "agent"
"""The name of an unnamed prompt's agent."""
_VARIABLE = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_BRACE = re.compile(r"\{\{|\}\}|\{[A-Za-z_]\w*\}|[{}]")


class Prompt(TypedDict, total=False):
    """A prompt with its name and, optionally, instructions that say how and when to update it."""

    name: Required[str]
    prompt: Required[str]
    update_instructions: str | None
    when_to_update: str | None


class PromptOptimizer(FlowRunnable[str]):
    """A runnable that improves the prompt of an agent: *model* reviews past runs of the agent and rewrites the prompt.

    The input is ``{"trajectories": [...], "prompt": ...}``; a trajectory is the messages of a run, with feedback.

    - *kind*: "gradient" reviews until the lessons are stable, then rewrites the prompt; "metaprompt" rewrites after
      each review; "prompt_memory" reviews and rewrites once.
    - *config*: the number of reviews, ``min_reflection_steps`` (default 1) and ``max_reflection_steps`` (3).
    - *memory*: stores the lessons, see `render_rules`.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        /,
        *,
        kind: Kind = "gradient",
        config: Mapping[str, Any] | None = None,
        memory: GraphMemory | None = None,
        namespace: Labels | str = DEFAULT_NAMESPACE,
    ) -> None:
        """Open the model. Errors: `SettingsError` for an unknown *kind* or an unknown key in *config*."""
        validate_choice("kind", kind, KINDS, error=SettingsError)
        if unknown := set(config or {}) - set(STEPS):
            raise SettingsError(
                f"config may have {' and '.join(STEPS)}, got {min(unknown)!r}: remove it; instructions belong in the "
                "prompt's update_instructions"
            )
        steps = {**STEPS, **(config or {})}
        self._least = validate_count("min_reflection_steps", steps["min_reflection_steps"], 0)
        self._most = validate_count("max_reflection_steps", steps["max_reflection_steps"])
        self._rules = None if memory is None else Rules(memory, namespace)
        self._model, self._kind = open_model(model), kind

    def _run(self, input_: Mapping[str, Any], config: Config) -> Flow[str]:
        runs, prompt = write_trajectories(_field(input_, "trajectories")), _read_prompt(_field(input_, "prompt"))
        if not runs:
            return prompt["prompt"]
        followed = [] if self._rules is None else (yield from self._rules.current(prompt["name"], config))
        known = [{"id": number, "rule": Rules.text_of(fact)} for number, fact in enumerate(followed, 1)]
        lessons, text = yield from self._learn(prompt, {"trajectories": runs, "known": known})
        if lessons and self._rules is not None:
            yield from self._rules.learn(prompt["name"], runs, lessons, followed, config)
        return text

    async def __call__(self, trajectories: Any, prompt: str | Prompt) -> str:
        """Return the improved text of *prompt*: calls `ainvoke` with *trajectories* and *prompt*."""
        return await self.ainvoke({"trajectories": trajectories, "prompt": prompt})

    def _learn(self, prompt: Prompt, review: Record) -> Flow[tuple[list[Lesson], str]]:
        """Let the model learn lessons from past runs; return the lessons, and *prompt* rewritten with them.

        *review*: the runs of the agent ("trajectories"), and the rules that it already follows ("known").
        """
        wishes = prompt.get("update_instructions") or ""
        text, learned = prompt["prompt"], list[Lesson]()
        draft: list[Lesson] = []
        for step in range(1, 1 + (1 if self._kind == "prompt_memory" else self._most)):
            shown = [lesson.model_dump() for lesson in draft]
            lessons = (
                yield from ask_chat(self._model, REVIEW, prompt=text, draft=shown, instructions=wishes, **review)
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
        """Let the model rewrite the prompt *text* to include *lessons*; return the new text, with the same {variables}.

        If the model drops a variable, the lessons are appended to *text* instead. *wishes*: the user's instructions.
        """
        if not lessons:
            return text
        orders = [lesson.lesson for lesson in lessons]
        answer = yield from ask_chat(self._model, REWRITE, prompt=text, lessons=orders, instructions=wishes)
        variables = set(_VARIABLE.findall(text))
        written = next(iter(answer.prompts), "")
        new = _escape_braces(written, variables) if variables else written
        if new.strip() and variables <= set(_VARIABLE.findall(new)):
            return new
        listed = "\n".join(f"- {_escape_braces(order, variables) if variables else order}" for order in orders)
        return f"{text}\n\n{listed}"  # the rewritten text lost a variable, or is empty


create_prompt_optimizer = PromptOptimizer


class MultiPromptOptimizer(FlowRunnable[list[Prompt]]):
    """A runnable that rewrites the prompts that caused an agent's mistakes, and returns all prompts of the agent.

    The input is ``{"trajectories": [...], "prompts": [...]}``. For *options*, see `PromptOptimizer`.
    """

    def __init__(self, model: BaseChatModel | str, /, **options: Any) -> None:
        self._optimizer = PromptOptimizer(model, **options)
        self._model = open_model(model)

    def _run(self, input_: Mapping[str, Any], config: Config) -> Flow[list[Prompt]]:
        trajectories = _field(input_, "trajectories")
        prompts = [_read_prompt(prompt) for prompt in _field(input_, "prompts")]
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

    async def __call__(self, trajectories: Any, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Return all *prompts*, improved where needed: calls `ainvoke` with *trajectories* and *prompts*."""
        return await self.ainvoke({"trajectories": trajectories, "prompts": prompts})

    def _choose(self, prompts: Sequence[Prompt], trajectories: Sequence[Record]) -> Flow[set[str]]:
        if not trajectories or not prompts:
            return set()
        if len(prompts) == 1 and not prompts[0].get("when_to_update"):
            return {prompts[0]["name"]}
        shown = [
            {"name": prompt["name"], "prompt": prompt["prompt"], "when": prompt.get("when_to_update")}
            for prompt in prompts
        ]
        answer = yield from ask_chat(self._model, CHOOSE_PROMPTS, prompts=shown, trajectories=list(trajectories))
        return set(answer.names)


create_multi_prompt_optimizer = MultiPromptOptimizer


def _field(input_: Any, name: str) -> Any:
    if not isinstance(input_, Mapping) or name not in input_:
        raise InputError(f"the input must be a dict with {name!r}, got {input_!r:.80}")
    return input_[name]


def _read_prompt(prompt: Any) -> Prompt:
    if isinstance(prompt, str):
        return Prompt(name=AGENT, prompt=prompt)
    if isinstance(prompt, Mapping) and all(isinstance(prompt.get(name), str) for name in ("name", "prompt")):
        return cast("Prompt", dict(prompt))
    raise InputError(f"a prompt must be a text or a dict with a name and a prompt, got {prompt!r:.80}")


def _escape_braces(text: str, variables: set[str]) -> str:
    """Double all braces in *text* except those around *variables*: with {"a"}, "{a} {b}" -> "{a} {{b}}"."""

    def double(match: re.Match[str]) -> str:
        piece = match[0]
        if piece in ("{{", "}}") or piece[1:-1] in variables:
            return piece
        return piece.replace("{", "{{").replace("}", "}}")

    return _BRACE.sub(double, text)


# Procedural memory: the rules of an agent as facts, whose sources are the reviewed trajectories


class Rules:
    """Stores and reads an agent's rules: instructions learned from past runs, such as "Answer briefly".

    Each rule is stored in *memory* as the fact "agent FOLLOWS rule".
    """

    def __init__(self, memory: GraphMemory, namespace: Labels | str) -> None:
        self._memory = validate_memory(memory)
        self._namespace = NamespaceTemplate(namespace) if isinstance(namespace, str) else Namespace(namespace)

    @staticmethod
    def text_of(fact: Fact) -> str:
        """Return the text of a rule (learned instruction), such as "Answer briefly.", from the fact that stores it."""
        _, separator, rule = fact.sentence.partition(_SAYS)
        return rule if separator else fact.objects[0]

    def current(
        self,
        agent: str,
        config: Mapping[str, Any] | None = None,
        *,
        as_of: datetime | str | None = None,
        believed_at: datetime | str | None = None,
    ) -> Flow[list[Fact]]:
        """Return the rules (learned instructions, stored as facts) of *agent*, oldest first; see `text_of`.

        *as_of*: rules valid at that time. *believed_at*: rules as the memory knew them at that time. None: now.
        """
        where = {"predicate": FOLLOWS, "name": agent}
        times = {"as_of": "now" if as_of is None else as_of, "believed_at": believed_at}
        place = {"namespace": self._where(config), "limit": MOST}
        rules: list[Fact] = yield from call(self._memory.facts, "list", where=where, **times, **place)
        return list(reversed([rule for rule in rules if rule.reviewed]))

    def learn(
        self,
        agent: str,
        trajectories: Sequence[Record],
        lessons: Sequence[Lesson],
        followed: Sequence[Fact],
        config: Mapping[str, Any] | None,
    ) -> Flow[None]:
        """Store each of *lessons* as a rule (instruction) of *agent*, with the run that it is from as its source.

        *followed*: the agent's existing rules; a rule that a lesson replaces is ended.
        """
        place = {"source": SOURCE, "namespace": self._where(config)}
        for lesson in lessons:
            text = json.dumps(self._to_record(agent, trajectories, lesson), ensure_ascii=False, default=str)
            try:
                added: AddResult = yield from call(self._memory, "add", text, kind="json", mapping=MAPPING, **place)
            except MemoryPaused:
                return
            if added.skipped:
                logger.warning("the rule learned from episode %s is not stored: %s", added.episode, added.skipped)
                continue
            former = dict(enumerate(followed, 1)).get(lesson.replaces or 0)
            if former is not None and self.text_of(former) != lesson.lesson:
                decision = {"by": SOURCE, "reason": lesson.reason, "namespace": place["namespace"]}
                yield from call(self._memory.facts, "replace", former.id, episode=added.episode, **decision)

    def _to_record(self, agent: str, trajectories: Sequence[Record], lesson: Lesson) -> Record:
        text = lesson.lesson
        shown = [record for record in trajectories if record["trajectory"] == lesson.trajectory]
        return {
            "agent": agent,
            "rule": text if len(text.encode()) <= LONGEST_NAME else f"{text[:LONGEST_RULE]}...",
            "sentence": f"{agent}{_SAYS}{text}",
            "reason": lesson.reason,
            "at": iso_or_text(instant(self._memory.driver.today())),
            "trajectories": shown or list(trajectories),
        }

    def _where(self, config: Mapping[str, Any] | None) -> str:
        if isinstance(self._namespace, Namespace):
            return graph_namespace(self._namespace(config))
        return place_here(self._namespace, config or None).namespace


def _render_rules(
    memory: GraphMemory,
    agent: str = "agent",
    *,
    namespace: Labels | str = DEFAULT_NAMESPACE,
    as_of: datetime | str | None = None,
    believed_at: datetime | str | None = None,
) -> Flow[str]:
    """Return the rules (learned instructions) of *agent* as a list for a prompt: "- Answer briefly."; "" if none.

    *agent*: the name of a `Prompt`. *as_of*: rules valid at that time. *believed_at*: rules as the memory knew them at
    that time. None: now.
    """
    rules = yield from Rules(memory, namespace).current(agent, as_of=as_of, believed_at=believed_at)
    return "\n".join(f"- {Rules.text_of(rule)}" for rule in rules)


render_rules, arender_rules = both(_render_rules)
