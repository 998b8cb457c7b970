"""What happened to jobs: append-only."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.jobs import JobEvent

PAGE = """/* events.page */
SELECT id, event, at, node_id, attempt, detail
  FROM job_events
 WHERE job_id = $1 AND id > $2
 ORDER BY id
 LIMIT $3
"""

ENDED_BY = """/* events.ended_by */
SELECT DISTINCT ON (e.job_id, e.lease_id) e.job_id, e.lease_id, e.event, e.attempt, e.detail
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS g (job_id, lease_id, node_id)
  JOIN job_events e ON e.job_id = g.job_id
                   AND e.lease_id = g.lease_id AND e.node_id = g.node_id
 ORDER BY e.job_id, e.lease_id, e.id DESC
"""


async def page(conn: Conn, job_id: UUID, *, after: int, limit: int) -> list[JobEvent]:
    """Return up to `limit` events of a job, oldest first, with ids greater than `after`."""
    return [JobEvent(**row) for row in await conn.fetch(PAGE, job_id, after, limit)]


async def ended_by(
    conn: Conn, leases: Sequence[tuple[UUID, UUID, UUID]]
) -> dict[tuple[UUID, UUID], asyncpg.Record]:
    """Return the event with which each (job, lease, node) ended, by (job, lease).

    Only events that end a lease carry its id.
    """
    jobs, ids, nodes = zip(*leases, strict=True)
    rows = await conn.fetch(ENDED_BY, jobs, ids, nodes)
    return {(row["job_id"], row["lease_id"]): row for row in rows}
