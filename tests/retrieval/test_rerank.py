"""The step `rerank`: fusion of hits and each reranker, with effects that the test answers."""

from typing import Any

import pytest

from kg_memory.contrib.variants.rerankers import ByConfidence, ByTrust, ByUse
from kg_memory.contrib.variants.zep import ByCrossEncoder, ByDistance, ByDiversity, ByMentions
from kg_memory.falkor.queries import features as cypher
from kg_memory.retrieval.ranking import LAST
from kg_memory.retrieval.recipe import DEFAULT, ByRecency, Weights, find_recipe
from kg_memory.retrieval.rerank import rerank
from kg_memory.runtime.effects import Query, Reads, Score
from kg_memory.settings import Settings
from kg_memory.temporal.interval import DAY
from tests.retrieval.findings import take

NOW = 1_700_000_000_000_000
TIME = {"believed_at": "2023-11-14T22:13:20Z", "reading": "what is true now"}
INSTANTS = {"since": NOW, "until": NOW + 1, "believed_at": NOW, "unreviewed": False}
KINDS = ("facts", "entities", "communities", "episodes")


def hits(words: list[Any] = (), meaning: list[Any] = (), graph: list[Any] = ()) -> dict[str, Any]:  # type: ignore[assignment]
    return {"words": list(words), "meaning": list(meaning), "graph": list(graph)}


AB = {kind: hits(words=[["a", 3.0], ["b", 2.9]]) for kind in KINDS}


class Told:
    """Answers queries with the given features of each id, and records the queries of each round trip."""

    def __init__(self, told: dict[str, dict[str, Any]], near: dict[str, str] | None = None) -> None:
        self.told = told
        self.near = near or {}
        self.trips: list[list[Query]] = []
        self.scored: list[Score] = []

    def __call__(self, effect: Any) -> Any:
        if isinstance(effect, Score):
            self.scored.append(effect)
            return [1 / len(text) for text in effect.texts]
        queries = effect.queries if isinstance(effect, Reads) else (effect,)
        assert not any(query.write for query in queries)
        self.trips.append(list(queries))
        rows = [self._rows(query) for query in queries]
        return rows if isinstance(effect, Reads) else rows[0]

    def _rows(self, query: Query) -> list[dict[str, Any]]:
        if query.cypher == cypher.NEXT_TO:
            return [{"entities": " ".join(self.near[each] for each in query.params["ids"] if each in self.near)}]
        if query.cypher in (cypher.MENTIONED, cypher.MENTIONED_IN):
            return [{"entities": "e1 e2", "mentions": "3 4"}]
        return [{"id": id_, **self.told[id_]} for id_ in query.params["ids"] if id_ in self.told]


def reranked(told: Told | None = None, settings: Settings | None = None, **state: Any) -> dict[str, Any]:
    """Run the step with fusion by ranks, which suits few hits; `as_it_is` leaves the fusion of the recipe."""
    if not state.pop("as_it_is", False):
        state["recipe"] = find_recipe(state.get("recipe")).with_(fusion="rrf")
    chosen = find_recipe(state.get("recipe"))
    state["recipe"] = chosen.with_(kinds=KINDS) if chosen.kinds == DEFAULT.kinds else chosen
    now = {"instants": INSTANTS, "time": TIME, "past": False, "named": [], "relevance": None, "question": "?"}
    return take(rerank, now | state, told or Told({}), settings)


def ranked(told: Told | None = None, **state: Any) -> dict[str, Any]:
    found: dict[str, Any] = reranked(told, **state)["ranked"]
    return found


def names(scored: list[Any]) -> list[str]:
    return [name for name, _ in scored]


def test_fusion_weighs_words_above_vectors_for_episodes():
    """For episodes, word search has more weight than vector search.

    Features: A48.
    """
    found = ranked(hits={"episodes": hits(words=[["a", 3.0]], meaning=[["b", 0.9]])})
    assert names(found["episodes"]) == ["a", "b"]


def test_fusion_ranks_named_entity_above_similar_name():
    found = ranked(hits={"entities": hits(words=[["b", 3.0], ["a", 1.0]], graph=[["a", 1.0], ["b", 0.2]])})
    assert found["entities"][0][0] == "a"


@pytest.mark.parametrize("name", ["default", "words", "meaning", "hybrid"])
def test_fusion_scores_1_for_item_first_in_all_searches(name):
    """An item that is first in all searches has the fused score 1.

    Features: A43.
    """
    arm = [["a", 1.0], ["b", 0.5]]
    assert ranked(hits={"facts": hits(arm, arm, arm)}, recipe=name, as_it_is=True)["facts"][0] == ["a", 1.0]


def test_rerank_applies_limit():
    arm = [[f"n{number:03}", -number] for number in range(100)]
    assert len(ranked(hits={"facts": hits(arm)})["facts"]) == 10
    assert names(ranked(hits={"facts": hits(arm)}, limit=3)["facts"]) == ["n000", "n001", "n002"]
    assert ranked(hits={"facts": hits(arm)}, limit=0)["facts"] == []


def test_rerank_without_hits_runs_no_query():
    told = Told({})
    every = DEFAULT.with_(rerankers=tuple(kind() for kind in (ByMentions, ByRecency, ByUse, ByDistance, ByDiversity)))
    assert ranked(told, hits={"facts": hits()}, recipe=every, center="Ann") == {"facts": []}
    assert ranked(told, hits={}, recipe=every) == {}
    assert told.trips == []


def test_fusion_by_scores_reflects_distances_of_scores():
    even = DEFAULT.with_(facts=Weights(words=1, meaning=1, graph=0))
    found = {"facts": hits(words=[["a", 9.0], ["b", 8.0], ["c", 1.0]], meaning=[["b", 0.9], ["a", 0.2], ["c", 0.1]])}
    assert names(ranked(hits=found, recipe=even)["facts"]) == ["a", "b", "c"]
    scores = ranked(hits=found, recipe=even.with_(fusion="scores"), as_it_is=True)["facts"]
    assert scores == [["b", 0.938125], ["a", 0.566875], ["c", LAST]]


def test_fusion_treats_rounding_differences_as_ties():
    three = DEFAULT.with_(facts=Weights(words=1, meaning=1, graph=1), rank_constant=1)
    arms = [[["b", 3], ["x", 2], ["a", 1]], [["x", 3], ["a", 2], ["b", 1]], [["a", 3], ["b", 2], ["x", 1]]]
    assert ranked(hits={"facts": hits(*arms)}, recipe=three)["facts"] == [[name, 0.722222] for name in "abx"]


def test_rerank_without_decay_runs_no_query():
    told = Told({})
    assert ranked(told, hits=AB, settings=Settings(temporal_decay_rate=0.0)) == ranked(hits=AB)
    assert told.trips == []


AGES = {"a": {"stated_at": NOW - 400 * DAY}, "b": {"stated_at": NOW}}


@pytest.mark.parametrize(
    "how",
    [{"settings": Settings(temporal_decay_rate=10.0)}, {"recipe": DEFAULT.with_(rerankers=(ByRecency(rate=10),))}],
)
def test_decay_ranks_newer_facts_and_episodes_first(how):
    """`temporal_decay_rate` ranks newer facts and episodes first; entities and communities are unaffected.

    Features: C33.
    """
    told = Told(AGES)
    found = ranked(told, hits=AB, **how)
    assert [[query.cypher for query in trip] for trip in told.trips] == [[cypher.FACTS_TOLD, cypher.EPISODES_TOLD]]
    for kind in ("facts", "episodes"):
        assert names(found[kind]) == ["b", "a"]
    for kind in ("entities", "communities"):
        assert found[kind] == ranked(hits=AB)[kind]


def test_recency_in_recipe_replaces_decay_setting():
    own = DEFAULT.with_(rerankers=(ByRecency(rate=0.0),))
    found = reranked(Told(AGES), Settings(temporal_decay_rate=10.0), hits=AB, recipe=own, explain=True)
    assert [step for step, _ in found["stages"]["facts"]["a"]] == ["fused", "recency"]
    assert names(found["ranked"]["facts"]) == ["a", "b"]


def test_rerankers_run_before_limit_and_drop_deleted_items():
    """Rerankers run before the limit is applied, and drop deleted items.

    Features: A35.
    """
    arm = [[f"n{number:02}", -float(number)] for number in range(30)]
    ages = {f"n{number:02}": {"stated_at": NOW - 1000 * DAY} for number in range(29)} | {"n29": {"stated_at": NOW}}
    decay = Settings(temporal_decay_rate=10.0)
    found = ranked(Told(ages), settings=decay, hits={"facts": hits(words=arm)}, limit=15)
    assert len(found["facts"]) == 15
    assert "n29" in names(found["facts"])
    assert "n29" not in names(ranked(hits={"facts": hits(words=arm)}, limit=15)["facts"])
    assert names(ranked(Told({"b": {"stated_at": NOW}}), settings=decay, hits=AB)["facts"]) == ["b"]


def test_rerank_drops_item_deleted_between_queries():
    class Deleted(Told):
        def _rows(self, query: Query) -> list[dict[str, Any]]:
            return [row for row in super()._rows(query) if query.cypher == cypher.FACTS_STATED or row["id"] != "a"]

    told = Deleted({each: {"confidence": 1.0, "trust": 1.0} for each in "ab"})
    both = DEFAULT.with_(rerankers=(ByTrust(), ByConfidence()))
    assert names(ranked(told, hits=AB, recipe=both)["facts"]) == ["b"]


def test_mentions_rank_items_by_count_within_thread():
    """`ByMentions` ranks by mentions in the thread, or in all threads if none is given.

    Features: A45.
    """
    told = Told({"a": {"mentions": 0, "entities": "e9"}, "b": {"mentions": 7, "entities": "e1 e2"}})
    found = ranked(told, hits=AB, recipe=DEFAULT.with_(rerankers=(ByMentions(weight=0.5),)), thread="t")
    assert [names(found[kind]) for kind in KINDS] == [["b", "a"]] * 4
    assert [[query.cypher for query in trip] for trip in told.trips] == [
        [cypher.FACTS_STATED, cypher.ENTITIES_JOIN, cypher.COMMUNITIES_JOIN, cypher.EPISODES_JOIN],
        [cypher.MENTIONED_IN],
    ]
    assert told.trips[0][0].params["thread_key"] == told.trips[1][0].params["thread_key"]
    ranked(told, hits=AB, recipe="mentions")
    assert told.trips[-2][0].params["thread_key"] is None
    assert [(query.cypher, query.params["ids"]) for query in told.trips[-1]] == [(cypher.MENTIONED, ["e1", "e2", "e9"])]


NEAR = Told(
    {"a": {"entities": "e3 e4"}, "b": {"entities": "e1"}, "c": {"entities": ""}}, {"e0": "e0 e1", "e1": "e2 e0"}
)
ABC = {kind: hits(words=[["c", 3.0], ["a", 3.0], ["b", 2.9]]) for kind in KINDS}


@pytest.mark.parametrize("start", [{"centers": ["e0"]}, {"named": ["e0"]}, {"centers": ["e0"], "named": ["e9"]}])
def test_distance_ranks_items_near_the_start_first(start):
    """`ByDistance` ranks items near the start of the search first.

    Features: A46.
    """
    told = Told(NEAR.told, NEAR.near)
    only = DEFAULT.with_(rerankers=(ByDistance(weight=1.0, max_hops=3),))
    found = ranked(told, hits=ABC, recipe=only, **start)
    assert [found[kind] for kind in KINDS] == [[["b", 0.5], ["a", 0.0], ["c", 0.0]]] * 4
    assert [len(trip) for trip in told.trips] == [4, 1, 1, 1]


def test_distance_without_start_runs_no_query():
    told = Told({})
    assert ranked(told, hits=AB, recipe="distance") == ranked(hits=AB)
    assert ranked(told, hits=AB, recipe="distance", named=[]) == ranked(hits=AB)
    assert told.trips == []


def test_use_ranks_often_and_recently_served_facts_first():
    """`ByUse` ranks facts of equal confidence by how often and how recently they were returned.

    Features: C18.
    """
    sure = {"confidence": 0.5, "used": 0.0, "used_at": 0}
    told = Told({"a": sure, "b": {**sure, "used": 10.0, "used_at": NOW}})
    assert names(ranked(told, hits=AB, recipe="use")["facts"]) == ["b", "a"]
    faded = Told({"a": sure, "b": {**sure, "used": 10.0, "used_at": NOW - 1000 * DAY}})
    assert names(ranked(faded, hits=AB, recipe="use")["facts"]) == ["a", "b"]
    never = Told({"a": sure, "b": {**sure, "used": 10.0, "used_at": NOW - 1000 * DAY}})
    assert names(ranked(never, hits=AB, recipe={"rerankers": [ByUse(decay_lambda=1)]})["facts"]) == ["b", "a"]


def test_confidence_and_trust_rank_higher_values_first():
    told = Told({"a": {"confidence": 0.5, "trust": 1.0}, "b": {"confidence": 1.0, "trust": 0.5}})
    sure = ranked(told, hits=AB, recipe={"rerankers": [ByConfidence()]})
    assert names(sure["facts"]) == ["b", "a"]
    assert sure["episodes"] == ranked(hits=AB)["episodes"]
    trusted = ranked(told, hits=AB, recipe={"rerankers": [ByTrust(weight=2)]})
    assert [names(trusted[kind]) for kind in ("facts", "episodes")] == [["a", "b"]] * 2
    assert trusted["facts"][1][1] == pytest.approx(ranked(hits=AB)["facts"][1][1] / 4, abs=1e-6)


def test_rerankers_read_all_features_in_one_round_trip():
    told = Told({each: {"mentions": 1, "entities": "e0", "trust": 1.0, "confidence": 1.0, "used": 0.0, "used_at": 0, "stated_at": 0} for each in "ab"})  # fmt: skip
    steps = (ByTrust(), ByMentions(), ByRecency(), ByUse(), ByConfidence())
    found = reranked(told, hits=AB, recipe=DEFAULT.with_(rerankers=steps), explain=True)
    trip, counts = told.trips
    assert len(counts) == 1
    assert len(trip) == len({query.cypher for query in trip}) == 6
    parts = found["stages"]
    assert [step for step, _ in parts["facts"]["b"]] == ["fused", "trust", "mentions", "recency", "use", "confidence"]
    assert [step for step, _ in parts["entities"]["b"]] == ["fused", "mentions"]
    assert parts["facts"]["b"][-1][1] == found["ranked"]["facts"][1][1]


def test_cross_encoder_rescores_only_the_best():
    """A cross-encoder scores the best `depth` items; the others rank below them.

    Features: A47.
    """
    told = Told({"a": {"name": "Ann", "text": "Ann likes tea"}, "b": {"name": None, "text": "Oslo"}, "c": {"name": "x" * 3000, "text": ""}})  # fmt: skip
    found = ranked(told, hits=ABC, recipe=DEFAULT.with_(rerankers=(ByCrossEncoder(depth=3),)), question="Who\ud800?")
    [scored] = told.scored
    assert scored.question == "Who\ufffd?"
    assert scored.texts == ("Ann: Ann likes tea", "x" * 2000, "Oslo")
    assert [names(found[kind]) for kind in KINDS] == [["b", "a", "c"]] * 4
    assert found["facts"][0] == ["b", 0.25]
    found = ranked(told, hits=ABC, recipe=DEFAULT.with_(rerankers=(ByCrossEncoder(depth=2),)))
    assert [names(found[kind]) for kind in KINDS] == [["a", "c", "b"]] * 4
    assert all(0.01 <= score < 1 for _, score in found["facts"][:2])
    assert found["facts"][2][1] < 0.01


def test_cross_encoder_ignores_summaries_for_the_past():
    told = Told({each: {"name": each * 3, "text": "of now"} for each in "ab"})
    found = {"episodes": hits(words=[["a", 1.0]]), "entities": hits(words=[["b", 1.0]])}
    ranked(told, hits=found, recipe="cross_encoder", past=True)
    ranked(told, hits=found, recipe="cross_encoder", past=False)
    assert [each.texts for each in told.scored] == [("aaa: of now", "bbb"), ("aaa: of now", "bbb: of now")]


def test_diversity_ranks_near_duplicates_last():
    """`ByDiversity` ranks near-duplicates after other items.

    Features: A44.
    """
    told = Told({"a": {"alike": "0.99 0.1"}, "b": {"alike": "0.1"}, "c": {"alike": ""}})
    found = {"facts": hits(words=[["a", 3.0], ["b", 2.0], ["c", 1.0]])}
    scored = ranked(told, hits=found, recipe="diversity")["facts"]
    assert names(scored) == ["a", "c", "b"]
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    assert names(ranked(told, hits=found, recipe={"rerankers": [ByDiversity(balance=1)]})["facts"]) == ["a", "b", "c"]
    told.told = {"a": {"alike": "0.99"}, "b": {"alike": ""}}
    scored = ranked(told, hits=found, recipe={"rerankers": [ByDiversity(balance=0, depth=2)]})["facts"]
    assert names(scored) == ["a", "b", "c"]
    assert scored[2][1] < 0.01


def test_rerank_with_explain_returns_all_items_and_stages():
    arm = [[f"n{number:02}", -float(number)] for number in range(30)]
    found = reranked(hits={"facts": hits(words=arm), "entities": hits()}, explain=True, limit=2)
    assert len(found["ranked"]["facts"]) == 30
    fused = {name: [["fused", score]] for name, score in found["ranked"]["facts"]}
    assert found["stages"] == {"facts": fused, "entities": {}}
    assert "stages" not in reranked(hits={"facts": hits(words=arm)})
