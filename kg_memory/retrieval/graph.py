"""The retrieval graph: a question passes search, rerank and construct, and ends as a context.

The steps hand over the values of `question`. Only LangGraph sees them as JSON: `state` encodes and decodes them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from langgraph.graph import END, START, StateGraph

from kg_memory.models.results import Context
from kg_memory.retrieval.construct import write
from kg_memory.retrieval.question import Found, Question, Ranked
from kg_memory.retrieval.rerank import rank
from kg_memory.retrieval.search import find
from kg_memory.retrieval.state import RetrievalContext, RetrievalInput, RetrievalState, decode, encode
from kg_memory.runtime.flow import Driver, Flow
from kg_memory.runtime.graph import Pipeline, make_node
from kg_memory.settings import Settings

Values = dict[str, Any]
"""The question and the results of the steps so far, by the names that the steps give them."""


def search(values: Values, settings: Settings) -> Flow[dict[str, Found]]:  # noqa: ARG001 - steps have one shape
    """Find the time that the question is about, and candidates of each kind."""
    return {"found": (yield from find(values["question"]))}


def rerank(values: Values, settings: Settings) -> Flow[dict[str, Ranked]]:
    """Bring the candidates of each kind into one order, and cut it at the limit."""
    return {"ranked": (yield from rank(values["question"], values["found"], settings))}


def construct(values: Values, settings: Settings) -> Flow[dict[str, Context]]:
    """Read the best candidates, and write them down for a prompt."""
    question: Question = values["question"]
    return {"context": (yield from write(question, values["found"], values["ranked"], settings))}


STEPS = (search, rerank, construct)


def build(
    driver: Driver, settings: Settings
) -> StateGraph[RetrievalState, RetrievalContext, RetrievalInput, RetrievalState]:
    """Return the graph, to be compiled; its nodes run sync and async."""
    return make_pipeline(driver, settings).graph


def make_pipeline(driver: Driver, settings: Settings) -> Pipeline:
    """Return the steps in their order."""
    graph = StateGraph(RetrievalState, RetrievalContext.of(settings), input_schema=RetrievalInput)
    for step in STEPS:
        graph.add_node(step.__name__, make_node(step, driver, settings, decode=decode, encode=encode))
    names = (START, *(step.__name__ for step in STEPS), END)
    for name, following in pairwise(names):
        graph.add_edge(name, following)
    return Pipeline("retrieval", graph, decode, encode)
