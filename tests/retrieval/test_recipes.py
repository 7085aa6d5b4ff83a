"""Recipes as values, and every named one on a real memory."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kg_memory import GraphMemory
from kg_memory.contrib.variants.rerankers import ByUse
from kg_memory.contrib.variants.walks import Synapse
from kg_memory.contrib.variants.zep import ByCrossEncoder, ByDistance, ByDiversity, ByMentions
from kg_memory.errors import InputError
from kg_memory.models.graph import KINDS
from kg_memory.retrieval.ranking import RETRIEVERS, Hits
from kg_memory.retrieval.recipe import DEFAULT, FACTS, RECIPES, ByRecency, Recipe, Weights, find_recipe
from kg_memory.retrieval.traversal import BreadthFirst

WEIGHTS = st.builds(Weights, words=st.floats(0, 1000), meaning=st.floats(0, 1000), graph=st.floats(0, 1000))
RERANKERS = st.one_of(
    st.builds(ByMentions, weight=st.floats(0, 1)),
    st.builds(ByDistance, max_hops=st.integers(1, 5)),
    st.builds(ByRecency, rate=st.floats(0, 10)),
    st.builds(ByUse, decay_lambda=st.floats(0, 1, exclude_min=True)),
    st.builds(ByCrossEncoder, depth=st.integers(1, 1000)),
    st.builds(ByDiversity, balance=st.floats(0, 1)),
)
ALONG = st.one_of(
    st.builds(BreadthFirst, max_hops=st.integers(1, 5)), st.builds(Synapse, inhibition_threshold=st.floats(0.2, 1))
)
ANY = st.builds(
    Recipe,
    name=st.text(max_size=10),
    kinds=st.lists(st.sampled_from(KINDS), unique=True).map(tuple),
    facts=WEIGHTS,
    episodes=WEIGHTS,
    fusion=st.sampled_from(("scores", "rrf")),
    traversal=ALONG,
    rerankers=st.lists(RERANKERS, max_size=3).map(tuple),
)

# As values


def test_recipe_parts_are_immutable():
    parts = (DEFAULT, "fusion"), (DEFAULT.facts, "words"), (DEFAULT.traversal, "max_hops"), (ByUse(), "interval")
    for part, name in parts:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, name, getattr(part, name))
    with pytest.raises(TypeError):
        RECIPES["mine"] = DEFAULT  # type: ignore[index]


def test_with_returns_a_changed_copy_called_custom():
    made = DEFAULT.with_(rerankers=[{"by": "diversity", "balance": 0.7}], kinds=["facts"])
    assert (made.name, made.rerankers, made.kinds) == ("custom", (ByDiversity(balance=0.7),), ("facts",))
    assert (DEFAULT.name, DEFAULT.rerankers, DEFAULT.kinds) == ("default", (), ("facts", "entities", "episodes"))
    assert DEFAULT.with_(name="mine").name == "mine"
    assert DEFAULT.with_(name="default") == DEFAULT


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"speed": 1}, "unknown field 'speed'; use name, kinds"),
        ({"self": 1}, "unknown field 'self'"),
        ({"kinds": ["fact"]}, "kinds.0 in the recipe is 'fact'"),
        ({"fusion": "sum"}, "fusion in the recipe is 'sum'"),
        ({"facts": {"words": -1}}, "facts.words in the recipe is -1"),
        ({"facts": {"words": float("nan")}}, "facts.words in the recipe is nan"),
        ({"facts": {"sound": 1}}, "unknown field 'facts.sound'"),
        ({"facts": 1}, "facts in the recipe is 1"),
        ({"rank_constant": 0}, "rank_constant in the recipe is 0"),
        ({"rank_constant": float("inf")}, "rank_constant in the recipe is inf"),
        ({"traversal": {"method": "teleport"}}, "traversal in the recipe is"),
        ({"traversal": {"method": "bfs", "max_hops": 99}}, "traversal.bfs.max_hops in the recipe is 99"),
        ({"traversal": {"method": "synapse", "activation_threshold": 0.9}}, "must be below inhibition_threshold"),
        ({"rerankers": [{"by": "luck"}]}, "rerankers.0 in the recipe is"),
        ({"rerankers": [{"by": "distance", "max_hops": 0}]}, "rerankers.0.distance.max_hops in the recipe is 0"),
        ({"rerankers": 5}, "rerankers in the recipe is 5"),
        ({"name": None}, "name in the recipe is None"),
    ],
)
def test_recipe_raises_for_invalid_field(changes, told):
    for make in (lambda: DEFAULT.with_(**changes), lambda: find_recipe(changes)):
        with pytest.raises(InputError, match=told):
            make()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("best", "recipe must be one of default, words.*, got 'best'"), ("", "recipe must be one of .*, got ''"),
        (5, "got int"), (["facts"], "got list"), ({1: 2}, "unknown field '1'"), (Recipe, "got ModelMetaclass"),
    ],
)  # fmt: skip
def test_find_recipe_raises_for_invalid_recipe(given, told):
    with pytest.raises(InputError, match=told):
        find_recipe(given)


def test_find_recipe_accepts_value_name_changes_or_none():
    assert all(find_recipe(given) == DEFAULT for given in (None, "default", {"name": "default"}, DEFAULT))
    assert find_recipe({"fusion": "rrf"}) == DEFAULT.with_(fusion="rrf")
    assert all(find_recipe(name) is each and each.name == name for name, each in RECIPES.items())


@given(ANY)
def test_a_recipe_goes_through_json_unchanged(made):
    assert find_recipe(json.loads(json.dumps(made.model_dump(mode="json")))) == made


@given(ANY)
def test_kind_outside_recipe_has_no_weight(made):
    for kind in KINDS:
        weights = made.weights(kind)
        assert kind in made.kinds or not any(getattr(weights, way) for way in RETRIEVERS)
        assert kind not in made.kinds or weights == getattr(made, kind)


SCORED = st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 30), max_size=6).map(
    lambda found: sorted(found.items(), key=lambda one: -one[1])
)


@given(st.builds(Hits, SCORED, SCORED, SCORED), st.sampled_from(list(RECIPES.values())), st.sampled_from(KINDS))
def test_fusion_returns_all_hits_of_counting_retrievers_in_order(hits, recipe, kind):
    weights = recipe.weights(kind)
    found = recipe.fuse(kind, hits)
    assert {id_ for id_, _ in found} == {id_ for way in RETRIEVERS if getattr(weights, way) for id_, _ in hits.of(way)}
    assert len({id_ for id_, _ in found}) == len(found)
    assert all(0 <= score <= 1 for _, score in found)
    assert found == sorted(found, key=lambda one: (-one[1], one[0]))


# On a real memory


@pytest.fixture(scope="module")
def told(scripted: GraphMemory) -> GraphMemory:
    """A memory with a small story in the namespace "recipes"."""
    said = {"namespace": "recipes", "thread": "t"}
    scripted.add("I moved to Oslo with Bob", speaker="Ann", at="2024-01-01T10:00:00Z", **said)
    scripted.add("I live in Paris", speaker="Bob", at="2024-01-02T10:00:00Z", trust=0.4, **said)
    scripted.add("I know Dora, and the rain in Oslo", speaker="Carl", at="2024-01-03T10:00:00Z", **said)
    scripted.communities.refresh(namespace="recipes")
    return scripted


QUESTION = "Where does Ann live, in Oslo?"


@pytest.mark.parametrize("name", RECIPES)
def test_named_recipe_returns_only_its_kinds(told, name):
    found = told.search(QUESTION, namespace="recipes", recipe=name)
    chosen = RECIPES[name]
    for kind in KINDS:
        values = getattr(found, kind)
        assert kind in chosen.kinds or not values
        assert [each.score for each in values] == sorted((each.score for each in values), reverse=True)
        assert all(0 <= each.score <= 1 for each in values)
    said = "Ann lives in Oslo" in [fact.sentence for fact in found.facts]
    assert said is (name != "decay"), "what was said so long ago has faded"


@pytest.mark.parametrize("name", RECIPES)
def test_named_recipe_returns_same_results_with_asyncio(told, name):
    now = {"namespace": "recipes", "recipe": name, "as_of": "2024-06-01", "believed_at": "2200-01-01"}
    found = told.search(QUESTION, **now)
    again = asyncio.run(told.asearch(QUESTION, **now))
    # The recipe `use` stores when a fact was last used.
    unused = [tuple(fact.model_copy(update={"last_used": None}) for fact in each.facts) for each in (found, again)]
    assert again.model_copy(update={"facts": unused[1]}) == found.model_copy(update={"facts": unused[0]})
    assert str(asyncio.run(told.acontext(QUESTION, **now))) == told.context(QUESTION, **now)


def test_recipe_by_value_equals_recipe_by_name(told):
    by_name = told.search(QUESTION, namespace="recipes", recipe="facts")
    assert by_name.facts == told.search(QUESTION, namespace="recipes", recipe=FACTS).facts
    assert told.search(QUESTION, namespace="recipes", recipe=DEFAULT.with_(kinds=())).facts == ()
