"""Which fields of an item are embedded, and how several vectors make one score."""

from __future__ import annotations

import pytest
from langgraph.store.base import PutOp

from kg_memory.testing.store_conformance.capability import Capability
from kg_memory.testing.store_conformance.embeddings import DIMS, WordCounts, cosine
from kg_memory.testing.store_conformance.sides import Namespace, Store
from kg_memory.testing.store_conformance.stories import Stories
from kg_memory.testing.store_conformance.vectors import PRECISION, ranked

HOME: Namespace = ("books",)
QUERY = "red apple"
VALUE = {
    "title": "garden",
    "meta": {"subject": "red apple"},
    "authors": [{"name": "ann"}, {"name": "bob"}],
    "chapters": [{"text": "blue sky"}, {"text": "apple cake"}, {"text": "green grass"}],
    "year": 1999,
}


async def _score(store: Store, query: str, key: str = "book") -> float | None:
    return ranked(await store.search(HOME, query=query)).get(key)


class WholeValues(Stories, capability=Capability.VECTOR_FIELDS, index={"dims": DIMS, "embed": WordCounts()}):
    """Without fields in the configuration, the whole value is embedded."""

    async def test_the_whole_value_is_embedded_unless_told_otherwise(self, store: Store) -> None:
        await store.batch(
            [PutOp(HOME, "a", {"title": "red", "more": {"x": ["apple"]}}), PutOp(HOME, "b", {"title": "sky"})]
        )
        assert await store.keys(HOME, query=QUERY) == ["a", "b"]

    async def test_a_put_chooses_its_own_fields(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=["title"])
        assert await _score(store, "garden") == pytest.approx(1.0, abs=PRECISION)
        assert await _score(store, QUERY) == pytest.approx(cosine(QUERY, "garden"), abs=PRECISION)


class ChosenFields(
    Stories, capability=Capability.VECTOR_FIELDS, index={"dims": DIMS, "embed": WordCounts(), "fields": ["title"]}
):
    """Paths, and one score of several vectors."""

    async def test_the_fields_of_the_configuration_are_embedded_alone(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE)
        assert await _score(store, "garden") == pytest.approx(1.0, abs=PRECISION)
        assert await _score(store, QUERY) == pytest.approx(cosine(QUERY, "garden"), abs=PRECISION)

    async def test_a_path_leads_to_a_field(self, store: Store) -> None:
        paths = {
            "meta.subject": QUERY,
            "authors[0].name": "ann",
            "authors[-1].name": "bob",
            "chapters[1].text": "apple cake",
            "year": "1999",
        }
        for path, text in paths.items():
            await store.put(HOME, "book", VALUE, index=[path])
            assert await _score(store, text) == pytest.approx(1.0, abs=PRECISION), path

    async def test_each_element_of_a_list_has_a_vector_of_its_own(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=["chapters[*].text"])
        for chapter in VALUE["chapters"]:  # type: ignore[attr-defined]
            assert await _score(store, chapter["text"]) == pytest.approx(1.0, abs=PRECISION)

    async def test_the_score_is_the_best_of_all_vectors(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=["title", "meta.subject", "chapters[*].text"])
        found = await store.search(HOME, query="apple")
        texts = ["garden", QUERY, "blue sky", "apple cake", "green grass"]
        best = max(cosine("apple", text) for text in texts)
        assert [each.key for each in found] == ["book"]
        assert ranked(found) == pytest.approx({"book": best}, abs=PRECISION)

    async def test_a_limit_counts_items_and_not_vectors(self, store: Store) -> None:
        many = {"chapters": [{"text": f"red apple {'tree ' * number}"} for number in range(30)]}
        others = {f"other {number}": {"title": "apple" + " pie" * number} for number in range(5)}
        await store.put(HOME, "many", many, index=["chapters[*].text"])
        await store.batch([PutOp(HOME, key, value) for key, value in others.items()])
        assert await store.keys(HOME, query=QUERY, limit=4) == ["many", "other 0", "other 1", "other 2"]
        assert await store.keys(HOME, query=QUERY, limit=4, offset=4) == ["other 3", "other 4"]

    async def test_a_path_that_leads_nowhere_embeds_nothing(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=["nothing", "meta.x.y", "authors[9].name", "title.x", "year[0]"])
        assert await _score(store, QUERY) is None
        assert await store.get(HOME, "book") is not None

    async def test_a_list_that_shrank_keeps_no_old_vectors(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=["chapters[*].text"])
        await store.put(HOME, "book", {"chapters": [{"text": "blue sky"}]}, index=["chapters[*].text"])
        assert await _score(store, "apple cake") == pytest.approx(cosine("apple cake", "blue sky"), abs=PRECISION)

    async def test_other_fields_replace_the_former_ones(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=["meta.subject", "chapters[*].text"])
        await store.put(HOME, "book", VALUE)
        assert await _score(store, QUERY) == pytest.approx(cosine(QUERY, "garden"), abs=PRECISION)

    async def test_an_item_without_fields_to_embed_is_not_ranked(self, store: Store) -> None:
        await store.put(HOME, "book", VALUE, index=[])
        assert await _score(store, "garden") is None
        assert await store.keys(HOME) == ["book"]
