"""Odd and hostile names and values: stored unchanged or refused, and harmless to other items."""

from __future__ import annotations

import math
import random
from collections.abc import Coroutine
from typing import Any

from langgraph.store.base import PutOp

from langgraph_store_conformance.harness import Capability, Checks, Namespace, Store

HOME: Namespace = ("odd",)
LONG = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=1000))  # noqa: S311 - not a secret
ODD = (
    " ",
    "  ",
    "a b",
    "a/b",
    "a:b",
    "a,b",
    "a|b",
    "a\x1fb",
    "\t",
    "a\r\nb",
    "'",
    '"',
    "`",
    "a\\",
    "\\x27",
    "$key",
    "{key}",
    "%s",
    "%(key)s",
    "?",
    "*",
    "null",
    "None",
    "0",
    "' OR '1'='1",
    "'; DROP TABLE store; --",
    "x'}) DETACH DELETE n //",
    "\u200b",
    "\ufeffa",
    "é",
    "e\u0301",
    "日本語",
    "नमस्ते",
    "🧑‍🚀",
    "\U0010ffff",
    "\u202eabc",
    "\x01",
    "\x7f",
    LONG,
)
"""Odd but valid names."""
UNSTORABLE = ("a\x00b", "\x00", "\ud800", "a\udfffb")
"""Texts that many databases cannot store: the byte 0 and lone surrogates."""


async def _raises(call: Coroutine[Any, Any, Any]) -> bool:
    """Return whether *call* raises; a store may raise any error."""
    try:
        await call
    except Exception:  # noqa: BLE001 - see the docstring
        return True
    return False


class HostileNames(Checks, capability=Capability.HOSTILE):
    """Odd keys and labels."""

    async def test_odd_keys_are_kept_apart(self, store: Store) -> None:
        keys = ["", "a.b", "..", *ODD]
        await store.batch([PutOp(HOME, key, {"number": number}) for number, key in enumerate(keys)])
        for number, key in enumerate(keys):
            item = await store.get(HOME, key)
            assert item is not None, key
            assert (item.key, item.value) == (key, {"number": number})
        assert sorted(await store.search_keys(HOME, limit=100)) == sorted(keys)

    async def test_odd_keys_are_deleted_alone(self, store: Store) -> None:
        await store.batch([PutOp(HOME, key, {"key": key}) for key in ODD])
        for key in ODD[::2]:
            await store.delete(HOME, key)
        assert sorted(await store.search_keys(HOME, limit=100)) == sorted(ODD[1::2])

    async def test_odd_labels_are_kept_apart(self, store: Store) -> None:
        await store.batch([PutOp((label, "in"), "key", {"label": label}) for label in ODD])
        for label in ODD:
            (item,) = await store.search((label,))
            assert (item.namespace, item.value["label"]) == ((label, "in"), label)
            if label != "*":
                assert await store.list_namespaces(prefix=(label,)) == [(label, "in")]
        assert set(await store.list_namespaces(max_depth=1)) == {(label,) for label in ODD}

    async def test_no_separator_joins_labels_and_key(self, store: Store) -> None:
        """Two names stay apart whatever separator the store joins their parts with."""
        names: list[tuple[Namespace, str]] = [(("a", "b", "c"), "d"), (("a", "b"), "c"), (("a",), "b")]
        for separator in ("/", ":", ",", "|", "\x1f", "\x1e", "\t", "\n", '","', "%2F", "\\", "-", "_", "::", "->"):
            names += [
                (("a", f"b{separator}c"), "d"),
                ((f"a{separator}b", "c"), "d"),
                ((f"a{separator}b{separator}c",), "d"),
            ]
            names += [(("a",), f"b{separator}c"), ((f"a{separator}b",), "c")]
        names = list(dict.fromkeys(names))
        await store.batch([PutOp(*name, {"number": number}) for number, name in enumerate(names)])
        for number, (namespace, key) in enumerate(names):
            item = await store.get(namespace, key)
            assert item is not None, (namespace, key)
            assert item.value == {"number": number}
        assert len(await store.search((), limit=1000)) == len(names)

    async def test_a_namespace_may_be_deep(self, store: Store) -> None:
        deep = tuple(f"level {number}" for number in range(50))
        await store.put(deep, "key", {"n": 1})
        assert await store.get(deep, "key") is not None
        assert await store.search_keys(deep[:49]) == ["key"]
        assert await store.list_namespaces(prefix=deep[:30], suffix=deep[40:], max_depth=31) == [deep[:31]]

    async def test_names_that_cannot_be_stored_are_refused(self, store: Store) -> None:
        """A store may also keep them unchanged, but never cut or replace them."""
        await store.put(HOME, "a", {"n": 0})
        for text in UNSTORABLE:
            if not await _raises(store.put(HOME, text, {"n": 1})):
                item = await store.get(HOME, text)
                assert item is not None
                assert (item.key, item.value) == (text, {"n": 1})
                await store.delete(HOME, text)
            if not await _raises(store.put((text,), "key", {"n": 1})):
                assert [item.namespace for item in await store.search((text,))] == [(text,)]
                await store.delete((text,), "key")
        assert [(item.namespace, item.key) for item in await store.search(())] == [(HOME, "a")]


class HostileValues(Checks, capability=Capability.HOSTILE):
    """Odd texts and objects in values."""

    async def test_odd_texts_come_back(self, store: Store) -> None:
        value = {"texts": list(ODD), **{key: key for key in ODD}}
        await store.put(HOME, "key", value)
        item = await store.get(HOME, "key")
        assert item is not None
        assert item.value == value

    async def test_a_value_that_cannot_be_stored_is_refused_and_the_old_one_stays(self, store: Store) -> None:
        """A store may also return it unchanged."""
        bad: list[Any] = [*UNSTORABLE, math.inf, math.nan, object(), {1, 2}, b"bytes", {"deep": object()}]
        for value in bad:
            await store.put(HOME, "key", {"n": 1})
            refused = await _raises(store.put(HOME, "key", {"x": value}))
            item = await store.get(HOME, "key")
            assert item is not None
            if refused:
                assert item.value == {"n": 1}
            else:
                assert repr(item.value["x"]) == repr(value)

    async def test_one_value_that_cannot_be_stored_does_not_harm_the_next_put(self, store: Store) -> None:
        for text in UNSTORABLE:
            await _raises(store.batch([PutOp(HOME, "a", {"n": 1}), PutOp(HOME, "b", {"x": text})]))
        await store.put(HOME, "a", {"n": 2})
        item = await store.get(HOME, "a")
        assert item is not None
        assert item.value == {"n": 2}


class HostileFilters(Checks, capability=Capability.HOSTILE):
    """Odd and malicious filters."""

    async def test_odd_texts_are_found_by_equality(self, store: Store) -> None:
        await store.batch([PutOp(HOME, str(number), {"x": text}) for number, text in enumerate(ODD)])
        for number, text in enumerate(ODD):
            assert await store.search_keys(HOME, filter={"x": text}) == [str(number)], text

    async def test_any_field_can_be_filtered(self, store: Store) -> None:
        """No name has a dot, since a store may read it as a path."""
        fields = ["first name", "naïve", "日本", "x-y", "x_y", "it's", 'say "hi"', "x:y", "`x`", "%"]
        await store.batch([PutOp(HOME, str(number), {field: 1}) for number, field in enumerate(fields)])
        for number, field in enumerate(fields):
            assert await store.search_keys(HOME, filter={field: 1}) == [str(number)], field

    async def test_a_byte_0_in_a_filter_finds_nothing(self, store: Store) -> None:
        await store.put(HOME, "key", {"x": "public"})
        for text in ("public\x00", "public\x00'", "\x00", "\x00public"):
            assert await store.search_keys(HOME, filter={"x": text}) == []
        assert await store.search_keys(HOME, filter={"x": "public"}) == ["key"]

    async def test_filters_cannot_reach_beyond_their_prefix(self, store: Store) -> None:
        """A store may refuse the name of a field, but must not execute it."""
        await store.put(HOME, "mine", {"x": 1})
        await store.put(("others",), "theirs", {"x": 1})
        for attack in ("x') OR 1=1 --", "x' OR '1'='1", "x OR true", "x}) RETURN n //", "x` OR 1=1 OR `", "x'='x"):
            for condition in ({attack: 1}, {"x": attack}, {"x": {"$eq": attack}}, {attack: {"$ne": 0}}):
                try:
                    keys = await store.search_keys(HOME, filter=condition)
                except ValueError:
                    continue
                assert set(keys) <= {"mine"}
        assert sorted(await store.search_keys(())) == ["mine", "theirs"]
