"""The queue seen as a whole."""

from uuid import UUID

import asyncpg

from umbra_compute.db import Conn

BY_CLASS = """/* queue.by_class */
SELECT c.id AS class_id, c.kind, c.requires, c.prefer, c.blocked_reason AS blocked,
       w.queued, w.scheduled, w.running,
       extract(epoch FROM statement_timestamp() - w.oldest)::float8 AS oldest_queued_s
  FROM requirement_classes c
  JOIN (SELECT class_id,
               count(*) FILTER (WHERE state = 'ready') AS queued,
               count(*) FILTER (WHERE state = 'scheduled') AS scheduled,
               count(*) FILTER (WHERE state = 'running') AS running,
               min(coalesce(claimable_at, created_at)) FILTER (WHERE state = 'ready') AS oldest
          FROM (SELECT class_id, state, claimable_at, created_at
                  FROM jobs WHERE state = 'ready' AND organization_id = $1
                 UNION ALL
                SELECT class_id, state, claimable_at, created_at
                  FROM jobs WHERE state = 'scheduled' AND organization_id = $1
                 UNION ALL
                SELECT class_id, state, claimable_at, created_at
                  FROM jobs WHERE lease_owner IS NOT NULL AND organization_id = $1) AS live
         GROUP BY class_id) AS w ON w.class_id = c.id
 WHERE c.organization_id = $1
 ORDER BY w.oldest NULLS LAST, c.id
"""


async def by_class(conn: Conn, organization_id: UUID) -> list[asyncpg.Record]:
    """Return each class with unfinished jobs: its needs, counts, and the oldest one's age in s."""
    return await conn.fetch(BY_CLASS, organization_id)
