from typing import Any

import pytest

from kg_memory.errors import DatabaseUnavailable
from kg_memory.falkor.queries import episodes, ingestion
from kg_memory.ingestion.save import MOST_CONFLICTS
from kg_memory.runtime.effects import Embed, Now, Query
from kg_memory.settings import Settings
from kg_memory.temporal.interval import OPEN_START, WIDTH
from tests.ingestion.stepping import NOW, answered, entity, fact, save, state

NEW = {**entity("Bob"), "aliases": []}
KNOWN = {**entity("Ann", known=True), "aliases": ["Annie"]}


def stated(id_: str, same_as: str | None = None, **given: Any) -> dict[str, Any]:
    times = {"valid_at": 1, "precision": "day", "stated_at": 1}
    words = {"sentence": f"Ann knows {id_}.", "predicate": "KNOWS", "wording": "IS_ACQUAINTED_WITH"}
    return fact(id_, same_as=same_as, family="acquaintance", **times, **words, **given)


def saved(**given: Any) -> tuple[Embed, Query]:
    """Return the embedding effect and the write query."""
    revision = {"touched": ["one"], "closed": ["b"]}
    flow = save(state("I know Bob.", revision=revision, **given), Settings())
    embeds = next(flow)
    assert isinstance(flow.send([[float(place)] for place, _ in enumerate(embeds.texts)]), Now)
    return embeds, flow.send(7)


def test_save_writes_everything_in_one_query():
    embeds, written = saved(entities=[KNOWN, NEW], facts=[stated("one"), stated("two", same_as="old")])
    assert (written.cypher, written.write) == (ingestion.SAVE, True)
    assert embeds.texts == ("Ann: I know Bob.", "Bob", "Ann knows one.")


def test_statement_has_the_latest_possible_start():
    facts = [stated("one"), {**stated("two"), "precision": "instant"}, {**stated("three"), "valid_at": OPEN_START}]
    _, written = saved(entities=[KNOWN, NEW], facts=facts)
    assert [each["latest"] for each in written.params["statements"]] == [WIDTH["day"], 1, OPEN_START]


def saving(*answers: object, conflicts: int = 0) -> tuple[dict[str, Any], list[Any]]:
    given = state("I know Bob.", revision={}, entities=[KNOWN, NEW], facts=[], conflicts=conflicts)
    return answered(save(given, Settings()), *answers)


VECTORS = [[0.0], [1.0]]
DONE = {"retry_from": None, "done": True, "status": "done", "saved_at": NOW, "stale": [], "earlier": []}


def test_save_retries_from_dedupe_after_a_concurrent_write():
    result, effects = saving(VECTORS, [], [{"status": "saved", "forgotten": 0}], conflicts=3)
    assert [effect.cypher for effect in effects if isinstance(effect, Query)] == [ingestion.SAVE, episodes.STATUS]
    assert result == {"retry_from": "dedupe", "conflicts": 4}


def test_save_retries_from_receive_after_a_deletion():
    result, _ = saving(VECTORS, [], [{"status": "saved", "forgotten": 1}])
    assert result == {"retry_from": "receive"}


def test_save_raises_after_too_many_conflicts():
    with pytest.raises(DatabaseUnavailable, match=r"200 times .* try again later"):
        saving(VECTORS, [], [{"status": "saved", "forgotten": 0}], conflicts=MOST_CONFLICTS - 1)


def test_save_passes_the_revisions_that_it_is_based_on():
    _, written = saved(entities=[KNOWN, NEW], facts=[], grounds={"revisions": {"b": 2, "a": 1}})
    assert written.params["based_on"] == [{"id": "a", "revision": 1}, {"id": "b", "revision": 2}]
