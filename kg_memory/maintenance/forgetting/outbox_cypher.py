"""The queries about notes of what is removed and not yet logged."""

from __future__ import annotations

NOTES = """
MATCH (m:Meta {id: 'schema'})
UNWIND coalesce(m.outbox, []) AS note
RETURN note
"""

NOTE = """
MATCH (m:Meta {id: 'schema'})
SET m.outbox = coalesce(m.outbox, []) + [$note]
"""

SETTLE = """
MATCH (m:Meta {id: 'schema'})
WITH m, [each IN coalesce(m.outbox, []) WHERE NOT each CONTAINS $receipt] AS left
SET m.outbox = CASE WHEN size(left) = 0 THEN NULL ELSE left END
"""
