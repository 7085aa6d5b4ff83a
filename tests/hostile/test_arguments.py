"""Every method accepts a wrong argument, or raises an error of the package that says what is expected."""

import inspect
from collections.abc import Iterator
from typing import Any

from kg_memory.errors import KGMemoryError
from kg_memory.memory._verb import Group

WRONG = (None, -1, 1.5, "x", "", {}, [], object())
UNTRIED = {"progress", "checkpointer", "target"}


def methods(memory: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield (name, method, its parameters) for each synchronous method of *memory* and of its groups."""
    groups = {name: each for name, each in vars(memory).items() if isinstance(each, Group)}
    for prefix, group in {"memory": memory, **groups}.items():
        for name in dir(group):
            if not name.startswith("_") and hasattr(group, f"a{name}") and not name.startswith("open"):
                method = getattr(group, name)
                parameters = inspect.signature(method).parameters.values()
                yield (
                    f"{prefix}.{name}",
                    method,
                    {one.name: one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)},
                )


def test_wrong_arguments_raise_errors_of_the_package(memory, namespace, tmp_path):
    added = memory.add("I know Bob.", speaker="Ann", at="2024-01-01", namespace=namespace)
    needed = dict.fromkeys(("query", "question", "text", "name", "entity", "into", "subject", "thread"), "Ann")
    needed |= {"fact": memory.facts.list(namespace=namespace)[0].id, "episode": added.episode, "episodes": ["Hi"]}
    needed |= {"predicate": "LIKES", "content": "Hi", "review": "x", "decision": "x", "since": "2020"}
    needed["source"] = tmp_path / "missing"
    tried, unexpected = 0, []
    for label, method, parameters in methods(memory):
        required = [name for name, each in parameters.items() if each.default is each.empty]
        for name in parameters.keys() - UNTRIED:
            if any(other not in needed for other in required if other != name):
                continue
            for wrong in WRONG:
                arguments = {other: needed[other] for other in required if other != name} | {name: wrong}
                tried += 1
                try:
                    method(**arguments)
                except KGMemoryError:
                    continue
                except Exception as error:  # noqa: BLE001 - all others are findings
                    unexpected.append(f"{label}({name}={wrong!r:.20}): {type(error).__name__}: {error}")
    assert unexpected == []
    assert tried > 500
