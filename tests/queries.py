"""What a flow asks of the database, on the way to its end."""

from collections.abc import Iterator
from typing import Any

from kg_memory.runtime.driver import Driver
from kg_memory.runtime.effects import Query
from kg_memory.runtime.flow import Flow


def queries(flow: Flow[Any], driver: Driver, key: str) -> Iterator[Query]:
    """Drive *flow* on the graph *key*, and yield each query before it is done."""
    answer = None
    try:
        while True:
            effect = flow.send(answer)
            if isinstance(effect, Query):
                yield effect
            answer = driver._perform(key, effect)
    except StopIteration:
        pass
