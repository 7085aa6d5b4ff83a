"""Which namespaces are valid, what a prefix covers, and how namespaces are listed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

BAD_LABELS: tuple[Any, ...] = ("a.b", "", ".", 7, None)
PATTERNS = (
    "ab",
    "a_b",
    "a%b",
    "a*b",
    "a?b",
    "a+b",
    "a|b",
    "[ab]",
    "(ab)",
    "^a",
    "b$",
    "a\\b",
    "%",
    "_",
    "?",
    "*",
    "\\",
)
"""Labels that are patterns in some query language, and must match literally."""

TREE: tuple[Namespace, ...] = (
    ("docs", "a", "v1"),
    ("docs", "a", "v2"),
    ("docs", "a", "v2", "old"),
    ("docs", "b", "v1"),
    ("docs",),
    ("mail", "a", "v1"),
    ("mail", "x", "a", "v1"),
)


async def _fill(store: Store, namespaces: Iterable[Namespace]) -> None:
    await store.batch([PutOp(namespace, "key", {"label": namespace[-1]}) for namespace in namespaces])


class Names(Checks, capability=Capability.NAMESPACES):
    """Valid and invalid namespaces."""

    async def test_a_put_needs_a_good_namespace(self, store: Store) -> None:
        bad: list[Any] = [(), ("langgraph",), ("langgraph", "x"), *[("ok", label) for label in BAD_LABELS]]
        for namespace in bad:
            with pytest.raises(InvalidNamespaceError):
                await store.put(namespace, "key", {"n": 1})
        assert await store.search(()) == []

    async def test_every_verb_refuses_a_bad_label(self, store: Store) -> None:
        for label in BAD_LABELS:
            bad: Any = ("ok", label)
            with pytest.raises(InvalidNamespaceError):
                await store.get(bad, "key")
            with pytest.raises(InvalidNamespaceError):
                await store.delete(bad, "key")
            with pytest.raises(InvalidNamespaceError):
                await store.search(bad)
            with pytest.raises(InvalidNamespaceError):
                await store.list_namespaces(prefix=bad)
            with pytest.raises(InvalidNamespaceError):
                await store.list_namespaces(suffix=bad)

    async def test_an_invalid_namespace_is_a_value_error(self, store: Store) -> None:
        with pytest.raises(ValueError, match=r".+"):
            await store.put((), "key", {"n": 1})

    async def test_langgraph_is_reserved_only_as_the_first_label_of_a_put(self, store: Store) -> None:
        """Operations in a batch may use it, as LangGraph does for its own data."""
        await store.put(("x", "langgraph"), "key", {"n": 1})
        await store.batch([PutOp(("langgraph", "own"), "key", {"n": 2})])
        (item,) = await store.batch([GetOp(("langgraph", "own"), "key")])
        assert item.value == {"n": 2}

    async def test_a_label_with_a_dot_is_not_two_labels(self, store: Store) -> None:
        """No method validates the operations of a batch: the store must refuse the label or keep the two apart."""
        await store.put(("a", "b"), "key", {"n": 1})
        for op in (PutOp(("a.b",), "key", {"n": 2}), PutOp(("a.b",), "key", None), GetOp(("a.b",), "key")):
            try:
                results = await store.batch([op])
            except InvalidNamespaceError:
                continue
            assert isinstance(op, PutOp) or results == [None]
        item = await store.get(("a", "b"), "key")
        assert item is not None
        assert item.value == {"n": 1}


class Prefixes(Checks, capability=Capability.NAMESPACES):
    """A prefix consists of whole labels, matched literally."""

    async def test_a_search_finds_what_is_in_and_beneath_its_prefix(self, store: Store) -> None:
        await _fill(store, TREE)
        assert {item.namespace for item in await store.search(("docs", "a"))} == set(TREE[:3])
        assert {item.namespace for item in await store.search(("docs", "a", "v2"))} == set(TREE[1:3])
        assert await store.search(("a",)) == []

    async def test_the_empty_prefix_is_the_whole_store(self, store: Store) -> None:
        await _fill(store, TREE)
        assert {item.namespace for item in await store.search(())} == set(TREE)
        (hits,) = await store.batch([SearchOp(())])
        assert {hit.namespace for hit in hits} == set(TREE)

    async def test_a_prefix_ends_where_a_label_ends(self, store: Store) -> None:
        await _fill(store, [("foo",), ("foobar",), ("foo-bar",), ("foo", "bar"), ("fo",), ("foo ",), ("foo\n",)])
        assert {item.namespace for item in await store.search(("foo",))} == {("foo",), ("foo", "bar")}
        assert set(await store.list_namespaces(prefix=("foo",))) == {("foo",), ("foo", "bar")}
        assert set(await store.list_namespaces(suffix=("bar",))) == {("foo", "bar")}

    async def test_labels_differ_by_case(self, store: Store) -> None:
        await _fill(store, [("Foo",), ("foo",), ("FOO", "a")])
        assert [item.namespace for item in await store.search(("foo",))] == [("foo",)]
        assert await store.list_namespaces(prefix=("FOO",)) == [("FOO", "a")]
        assert await store.get(("fOO",), "key") is None

    async def test_labels_that_look_like_patterns_stand_for_themselves(self, store: Store) -> None:
        await _fill(store, [(label,) for label in PATTERNS])
        for label in PATTERNS:
            assert [item.namespace for item in await store.search((label,))] == [(label,)]
            if label != "*":
                assert await store.list_namespaces(prefix=(label,)) == [(label,)]
                assert await store.list_namespaces(suffix=(label,)) == [(label,)]

    async def test_a_star_in_the_prefix_of_a_search_is_a_label(self, store: Store) -> None:
        await _fill(store, [("a", "x"), ("*", "x")])
        assert [item.namespace for item in await store.search(("*",))] == [("*", "x")]

    async def test_a_label_may_have_lines(self, store: Store) -> None:
        namespaces: list[Namespace] = [("a",), ("a\nb",), ("b",), ("a\n",), ("\nb",), ("a\nb", "c"), ("x", "b\n")]
        await _fill(store, namespaces)
        assert set(await store.list_namespaces()) == set(namespaces)
        assert {item.namespace for item in await store.search(("a\nb",))} == {("a\nb",), ("a\nb", "c")}
        assert await store.list_namespaces(prefix=("a",)) == [("a",)]
        assert await store.list_namespaces(suffix=("b",)) == [("b",)]
        assert set(await store.list_namespaces(max_depth=1)) == {namespace[:1] for namespace in namespaces}


class Listing(Checks, capability=Capability.NAMESPACES):
    """List namespaces by prefix, suffix and depth; the contract promises no order."""

    async def test_each_namespace_with_an_item_is_listed_once(self, store: Store) -> None:
        assert await store.list_namespaces() == []
        await _fill(store, TREE)
        await store.put(TREE[0], "another", {"n": 1})
        namespaces = await store.list_namespaces()
        assert sorted(namespaces) == sorted(TREE)
        assert all(isinstance(namespace, tuple) for namespace in namespaces)

    async def test_a_namespace_goes_with_its_last_item(self, store: Store) -> None:
        await _fill(store, TREE)
        await store.delete(TREE[0], "key")
        assert sorted(await store.list_namespaces()) == sorted(TREE[1:])

    async def test_reading_makes_no_namespace(self, store: Store) -> None:
        await store.get(("nobody",), "key")
        await store.search(("nobody",))
        await store.delete(("nobody",), "key")
        assert await store.list_namespaces() == []

    async def test_by_prefix_and_suffix(self, store: Store) -> None:
        await _fill(store, TREE)
        assert sorted(await store.list_namespaces(prefix=("docs", "a"))) == sorted(TREE[:3])
        assert sorted(await store.list_namespaces(suffix=("v1",))) == sorted([TREE[0], TREE[3], TREE[5], TREE[6]])
        assert sorted(await store.list_namespaces(suffix=("a", "v1"))) == sorted([TREE[0], TREE[5], TREE[6]])
        assert sorted(await store.list_namespaces(prefix=("docs",), suffix=("v1",))) == sorted([TREE[0], TREE[3]])
        assert await store.list_namespaces(prefix=("nothing",)) == []

    async def test_a_star_stands_for_just_one_label(self, store: Store) -> None:
        await _fill(store, TREE)
        assert sorted(await store.list_namespaces(prefix=("*", "a"))) == sorted([*TREE[:3], TREE[5]])
        assert sorted(await store.list_namespaces(prefix=("docs", "*", "v1"))) == sorted([TREE[0], TREE[3]])
        assert sorted(await store.list_namespaces(suffix=("a", "*"))) == sorted([*TREE[:2], *TREE[5:]])
        assert sorted(await store.list_namespaces(suffix=("x", "*", "v1"))) == [TREE[6]]
        assert sorted(await store.list_namespaces(prefix=("*", "*", "*", "*"))) == sorted([TREE[2], TREE[6]])
        assert sorted(await store.list_namespaces(prefix=("*",))) == sorted(TREE)

    async def test_a_path_longer_than_a_namespace_does_not_match_it(self, store: Store) -> None:
        await _fill(store, [("a",), ("a", "b")])
        assert await store.list_namespaces(prefix=("a", "b", "c")) == []
        assert await store.list_namespaces(suffix=("a", "a", "b")) == []
        assert await store.list_namespaces(prefix=("a", "*")) == [("a", "b")]

    async def test_a_depth_cuts_namespaces_and_lists_each_once(self, store: Store) -> None:
        await _fill(store, TREE)
        assert sorted(await store.list_namespaces(max_depth=1)) == [("docs",), ("mail",)]
        depth_two = [("docs",), ("docs", "a"), ("docs", "b"), ("mail", "a"), ("mail", "x")]
        assert sorted(await store.list_namespaces(max_depth=2)) == depth_two
        assert sorted(await store.list_namespaces(max_depth=99)) == sorted(TREE)

    async def test_a_depth_cuts_what_a_path_has_matched(self, store: Store) -> None:
        await _fill(store, TREE)
        assert await store.list_namespaces(prefix=("docs", "a"), max_depth=2) == [("docs", "a")]
        assert sorted(await store.list_namespaces(suffix=("v1",), max_depth=1)) == [("docs",), ("mail",)]

    async def test_pages_have_each_namespace_once(self, store: Store) -> None:
        namespaces = [(f"n{number % 25}", str(number)) for number in range(110)]
        await _fill(store, namespaces)
        assert len(await store.list_namespaces()) == 100
        pages = [await store.list_namespaces(limit=40, offset=offset) for offset in (0, 40, 80, 120)]
        assert [len(page) for page in pages] == [40, 40, 30, 0]
        assert sorted(chain.from_iterable(pages)) == sorted(namespaces)
        pages = [await store.list_namespaces(max_depth=1, limit=10, offset=offset) for offset in (0, 10, 20)]
        assert [len(page) for page in pages] == [10, 10, 5]
        assert set(chain.from_iterable(pages)) == {namespace[:1] for namespace in namespaces}

    async def test_all_conditions_of_an_operation_must_match(self, store: Store) -> None:
        await _fill(store, TREE)
        conditions = (
            MatchCondition("prefix", ("docs",)),
            MatchCondition("prefix", ("*", "a")),
            MatchCondition("suffix", ("v2",)),
        )
        assert await store.batch([ListNamespacesOp(conditions)]) == [[("docs", "a", "v2")]]

    async def test_an_empty_path_matches_everything(self, store: Store) -> None:
        await _fill(store, TREE)
        for empty in (MatchCondition("prefix", ()), MatchCondition("suffix", ())):
            (namespaces,) = await store.batch([ListNamespacesOp((empty,))])
            assert sorted(namespaces) == sorted(TREE)
