"""Times in chat files are parsed, or raise."""

from datetime import UTC, datetime

import pytest

from kg_memory.errors import InputError
from kg_memory.text.message_fields import parse_time

WRITTEN = [
    ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
    ("20240501", datetime(2024, 5, 1, tzinfo=UTC)),
    ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
    ("Wed, 01 May 2024 10:00:00 +0200", datetime(2024, 5, 1, 8, tzinfo=UTC)),
    (1714557600.5, datetime(2024, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC)),
    (1714557600000000, datetime(2024, 5, 1, 10, tzinfo=UTC)),
]


@pytest.mark.parametrize(("value", "expected"), WRITTEN)
def test_parse_time_accepts_many_formats(value, expected):
    assert parse_time(value) == expected


@pytest.mark.parametrize("value", ["", "soon", True, None, [], 10**30, "0001-01-01T00:00:00+23:00", float("nan")])
def test_parse_time_raises_for_invalid_value(value):
    with pytest.raises(InputError, match="2024-05-01T10:00:00"):
        parse_time(value)
