"""Names of every form in real conversations, as entities, types, predicates and questions."""

import pytest

from kg_memory.errors import InputError
from tests.scripted import Scripted, stated

NAMES = [
    '"Eternal Sunshine of the Spotless Mind"', "Nate. It's", "I. That", "'s INTENSE! There'", "Yeah.. Thanks", "Dairy-free", "–", "—", "’",
    " padded ", "Counter-Strike: Global Offensive", "Spider-Man's", '"Cyberpunk 2077"', "What?!", "50%", "#1", "@ann", "a|b", "(x", "x)",
    "[x]", "{x}", "x~", "*x*", "-x", "~", "\\", "\\'", "`n`", "MATCH (n) DETACH DELETE n", "$name", "'; DROP", "\n\n", "\t", "\u00a0", "\u200b",
    "x" * 4096, "x" * 5000, "é" * 3000, "🎉", "\ud800", "\x00", "null", "true", "0", "-1", "NaN", "klingon", "id", "Entity", "ann", "ANN", "Ann",
]  # fmt: skip


@pytest.mark.parametrize("plan", ["economy", "standard", "thorough"])
def test_any_name_is_stored_and_searched(opened, database, namespace, plan):
    def read(fields):
        entities = [{"name": name[:512], "type": name[:64]} for name in NAMES if name != "\ud800"]
        facts = [
            stated(one["name"], one["type"], [another["name"]], f"{one['name']} {another['name']}", "Names")
            for one, another in zip(entities, [*entities[1:], entities[0]], strict=True)
        ]
        return {"entities": entities, "facts": facts}

    started = database.query("names", "RETURN 1 AS one", {}, write=True)
    model = Scripted(read=read, extract_message=lambda fields: {"entities": read(fields)["entities"]})
    memory = opened(model, plan=plan)
    for number in (1, 2):  # new names, then existing ones
        [added] = memory.add_many([{"content": f"Names {number}.", "speaker": NAMES[number]}], namespace=namespace)
        assert added.status == "done"
    assert memory.stats(namespace=namespace).entities > len(NAMES) // 2
    for name in NAMES:
        try:
            memory.search(name, namespace=namespace, center=name)
        except InputError as error:  # a blank name may be refused; an emoji alone names no entity
            why = "must be the name of an entity" if name == "🎉" else "must be a non-empty string"
            assert why in str(error)  # noqa: PT017
    assert database.query("names", "RETURN 1 AS one", {}, write=False) == started
