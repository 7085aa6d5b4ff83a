"""Procedural memory: the rules that an agent follows, as facts, with when and from what each was learned."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kg_memory.adapters.namespace import NamespaceTemplate, place_here, validate_memory
from kg_memory.adapters.store.facts import graph_namespace
from kg_memory.contrib.langmem.items import Labels, Record
from kg_memory.contrib.langmem.place import Namespace
from kg_memory.errors import MemoryPaused
from kg_memory.llm.prompts.answers import Lesson
from kg_memory.memory.memory import GraphMemory
from kg_memory.models.graph import Fact
from kg_memory.models.operations import AddResult
from kg_memory.runtime.effects import both, call
from kg_memory.runtime.flow import Flow
from kg_memory.temporal.interval import instant, iso_or_text
from kg_memory.text.identity import LONGEST_NAME
from kg_memory.validation import DEFAULT_NAMESPACE

logger = logging.getLogger("kg_memory")

FOLLOWS = "FOLLOWS"
SOURCE = "optimizer"
MOST = 1000
LONGEST_RULE = 150
"""Characters of a rule that is cut, of up to three bytes each."""
_SAYS = " follows the rule: "
MAPPING = {
    "subject": "$.agent",
    "predicate": FOLLOWS,
    "object": "$.rule",
    "sentence": "$.sentence",
    "valid_at": "$.at",
}
"""The fact that the record of a trajectory states."""


class Rules:
    """The rules of agents in one namespace of a memory."""

    def __init__(self, memory: GraphMemory, namespace: Labels | str) -> None:
        self._memory = validate_memory(memory)
        self._namespace = NamespaceTemplate(namespace) if isinstance(namespace, str) else Namespace(namespace)

    @staticmethod
    def text_of(fact: Fact) -> str:
        """Return the rule that *fact* says an agent follows."""
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
        """Return the rules that hold for *agent*, those learned first first."""
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
        """State *lessons* as rules of *agent*: a record each, with the trajectory that taught it.

        Where a lesson replaces one of the rules *followed*, that one ends. Nothing happens in a paused namespace.
        """
        place = {"source": SOURCE, "namespace": self._where(config)}
        for lesson in lessons:
            text = json.dumps(self._write(agent, trajectories, lesson), ensure_ascii=False, default=str)
            try:
                added: AddResult = yield from call(self._memory, "add", text, kind="json", mapping=MAPPING, **place)
            except MemoryPaused:
                return
            if added.skipped:
                logger.warning("the rule learned from episode %s is not kept: %s", added.episode, added.skipped)
                continue
            former = dict(enumerate(followed, 1)).get(lesson.replaces or 0)
            if former is not None and self.text_of(former) != lesson.lesson:
                decision = {"by": SOURCE, "reason": lesson.reason, "namespace": place["namespace"]}
                yield from call(self._memory.facts, "replace", former.id, episode=added.episode, **decision)

    def _write(self, agent: str, trajectories: Sequence[Record], lesson: Lesson) -> Record:
        """Return the record of *lesson*; its rule names an entity, so a long one is cut there."""
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
    """Return the rules that *agent* follows, a line each, those learned first first; "" if there are none.

    *agent* is the name of a `Prompt`, or "agent". With *as_of* they are those that held then, with *believed_at* those
    believed then. Errors: `InputError`.
    """
    rules = yield from Rules(memory, namespace).current(agent, as_of=as_of, believed_at=believed_at)
    return "\n".join(f"- {Rules.text_of(rule)}" for rule in rules)


render_rules, arender_rules = both(_render_rules)
