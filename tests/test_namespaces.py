"""A namespace that is missing, blank or an unfilled template is an error everywhere, and writes nothing."""

import inspect
from operator import attrgetter

import pytest

from kg_memory.adapters.background import BackgroundMemory
from kg_memory.adapters.store.store import KGStore
from kg_memory.errors import InputError
from kg_memory.memory._verb import Group
from kg_memory.validation import DEFAULT_NAMESPACE, validate_namespace

WRONG = [None, "", " \n\t", "\u200b", "{user_id}", "users/{ user_id }", "{}", "${user.id}", "{{user_id}}", 7, b"ann"]
GOOD = ["ann", "安", "🎉", "a b", "None", "{", "}", "{1, 2}", '{"user": "ann"}', "\x00", "a\u200bb", "é" * 5000]


def verb_names(memory):
    """Return the paths of all verbs that work on a namespace."""
    groups = {"": memory} | {name: part for name, part in vars(memory).items() if isinstance(part, Group)}
    for name, group in groups.items():
        for verb in dir(type(group)):
            value = getattr(group, verb) if not verb.startswith("_") else None
            if inspect.ismethod(value) and "namespace" in inspect.signature(value).parameters:
                yield f"{name}.{verb}".lstrip(".")


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
async def test_every_verb_refuses_an_invalid_namespace(memory, wrong):
    before, verbs = memory.data.namespaces(), list(verb_names(memory))
    assert {"add", "asearch", "facts.about", "data.import_", "privacy.aaudit", "privacy.forget"} <= set(verbs)
    for path in verbs:
        verb = attrgetter(path)(memory)
        with pytest.raises(InputError, match="namespace must"):
            await verb(namespace=wrong) if inspect.iscoroutinefunction(verb) else verb(namespace=wrong)
    assert memory.data.namespaces() == before


@pytest.mark.parametrize("wrong", WRONG[:5], ids=repr)
def test_graphs_store_and_queue_refuse_an_invalid_namespace(memory, wrong):
    states = {"ingestion": {"content": "Hello."}, "retrieval": {"question": "Who?"}, "communities": {}}
    for name, state in states.items():
        with pytest.raises(InputError, match="namespace must"):
            getattr(memory.graphs, name).invoke({**state, "namespace": wrong})
    with pytest.raises(InputError, match="namespace must"):
        memory.graphs.review.compile().invoke({"namespace": wrong})
    with pytest.raises(InputError, match="namespace must"):
        KGStore(memory, name=wrong)
    with pytest.raises(InputError, match="namespace must"):
        BackgroundMemory(memory).submit(["Hello."], namespace=wrong)


@pytest.mark.parametrize("name", GOOD, ids=ascii)
def test_validate_namespace_accepts_any_other_text(name):
    assert validate_namespace(name) == name


def test_omitted_namespace_is_the_default_one(memory, namespace):
    name = f"only {namespace}"
    memory.add("Ann knows Bob.", source=name)

    assert name in {episode.source for episode in memory.episodes.list(namespace=DEFAULT_NAMESPACE)}
    memory.privacy.forget(source=name, by="test")
