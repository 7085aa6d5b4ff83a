"""Queries of the lease by which one process at a time maintains a namespace; times are in microseconds."""

from __future__ import annotations

_FREE = "(m.lease IS NULL OR m.lease = $holder OR m.lease_until <= $now)"

DUE = f"""
MATCH (m:Meta {{id: 'schema'}})
WHERE coalesce(m.maintained_at, 0) + $every <= $now AND {_FREE}
RETURN m.id AS id
"""
"""A row if maintenance is due and nobody is at it."""

CLAIM = f"""
MATCH (m:Meta {{id: 'schema'}})
WHERE coalesce(m.maintained_at, 0) + $every <= $now AND {_FREE}
SET m.lease = $holder, m.lease_until = $now + $seconds, m.maintained_at = $now
RETURN m.id AS id
"""
"""Take the lease: of several processes one gets a row."""

HELD = """
MATCH (m:Meta {id: 'schema'})
WHERE m.lease = $holder
RETURN m.id AS id
"""
"""A row if this process has the lease."""

RENEW = """
MATCH (m:Meta {id: 'schema'})
WHERE m.lease = $holder
SET m.lease_until = $now + $seconds
RETURN m.id AS id
"""
"""Keep the lease for longer; no row where another process has it by now."""

RELEASE = """
MATCH (m:Meta {id: 'schema'})
WHERE m.lease = $holder
SET m.lease = NULL, m.lease_until = NULL, m.maintained_at = CASE WHEN $done THEN m.maintained_at ELSE 0 END
RETURN m.id AS id
"""
"""Give the lease back; what was not done is due at once."""
