"""Eviction changes no fact, and late messages have the same effect after it."""

import itertools
import os
from datetime import UTC, datetime
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.eviction import told

NAMES = ("Ann", "Bob", "Oslo", "Paris", "Rome")
NUMBERS = itertools.count()
EXAMPLES = int(os.environ.get("KG_MEMORY_HISTORIES", "4"))
FORMS = (
    "I moved to {place}", "I live in {place} undated", "I live in {place} since 2023-0{month}-05",
    "I lived in {place} until 2024-0{month}-20", "I met {other} in {place}", "fine, thanks",
)  # fmt: skip
MESSAGES = st.builds(
    lambda form, who, other, place, month: {
        "content": form.format(place=place, other=other, month=month), "speaker": who,
    },
    st.sampled_from(FORMS), st.sampled_from(NAMES[:2]), st.sampled_from(NAMES[:2]), st.sampled_from(NAMES[2:]),
    st.integers(1, 9),
)  # fmt: skip
EVICTIONS = st.sampled_from(
    ({"expired_days": 0}, {"orphans": True, "expired_days": 0}, {"max_entities": 2}, {"max_entities": 4})
)


@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_evict_changes_no_current_fact_in_any_history(scripted, data):
    """Eviction changes no current fact, whatever is added late, repeated or forgotten.

    Features: B10.
    """
    number = next(NUMBERS)
    lean, full = f"evicted {number}", f"whole {number}"
    said = data.draw(st.lists(MESSAGES, min_size=4, max_size=8))
    hours = data.draw(st.lists(st.integers(0, 9000), min_size=len(said), max_size=len(said), unique=True))
    messages: list[dict[str, Any]] = [
        {**each, "thread": "t", "at": datetime(2023 + hour // 6000, 1 + hour // 750 % 12, 1 + hour % 28, tzinfo=UTC)}
        for each, hour in zip(said, hours, strict=True)
    ]
    ids: list[str] = []
    again = [messages[place] for place in data.draw(st.lists(st.integers(0, len(said) - 1), max_size=2))]
    for each in (*messages, *again):
        asked = data.draw(EVICTIONS | st.none())
        if asked is not None:
            scripted.privacy.evict(**asked, namespace=lean)
        ids = [scripted.add(**each, namespace=name).episode for name in (full, lean)]
        if data.draw(st.integers(0, 5)) == 0:
            for name, id_ in zip((full, lean), ids, strict=True):
                scripted.privacy.forget(episode=id_, namespace=name)
        now, before = told(scripted, lean, NAMES), told(scripted, full, NAMES)
        assert now == before
    scripted.privacy.evict(expired_days=0, namespace=lean)
    now = told(scripted, lean, NAMES)
    assert now == before
    over = scripted.privacy.evict(expired_days=0, dry_run=True, namespace=lean)
    assert (over.beliefs, over.facts) == (0, ())
