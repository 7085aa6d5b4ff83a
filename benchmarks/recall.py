"""Recall of evidence: the share of a question's evidence turns among the first k turns found."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import mean, quantiles
from typing import Any

from conversations import Conversation, turn

from kg_memory import GraphMemory
from kg_memory.contrib.evaluation.report import recall_at

DEPTHS = (5, 10, 20)
Find = Callable[[Conversation, str], list[str]]
"""A function that returns the turns found for a question, best first, at least as many as the largest of `DEPTHS`."""


def searching(memory: GraphMemory, **how: Any) -> Find:
    """Return a function that searches episodes of *memory*; *how* are further arguments of `search`."""

    def find(conversation: Conversation, question: str) -> list[str]:
        found = memory.search(question, namespace=conversation.name, limit=max(DEPTHS), **how)
        return [turn(each.source_id) for each in found.episodes]

    return find


def measure(conversations: Iterable[Conversation], find: Find, step: int = 1) -> dict[str, Any]:
    """Ask every *step*-th question of each conversation; return recall, overall and by group, and latency."""
    recalls: defaultdict[str, list[float]] = defaultdict(list)
    seconds: list[float] = []
    for conversation in conversations:
        for question in conversation.questions[::step]:
            began = time.perf_counter()
            turns = find(conversation, question.text)
            seconds.append(time.perf_counter() - began)
            for depth in DEPTHS:
                for group in ("", f"_{question.category}", f"_{conversation.name}"):
                    recalls[f"recall_at_{depth}{group}"].append(recall_at(turns, question.evidence, depth))
    cuts = quantiles(seconds, n=20, method="inclusive")
    return {
        "questions": len(seconds),
        **{name: round(mean(values), 4) for name, values in sorted(recalls.items())},
        "search_p50_ms": round(cuts[9] * 1000, 1),
        "search_p95_ms": round(cuts[18] * 1000, 1),
    }
