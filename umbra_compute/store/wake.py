"""The words between controllers, and what a poll finds if one was lost."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn, Pool

TELL = """/* wake.tell */
SELECT pg_notify($1, message) FROM unnest($2::text[]) AS m (message)
"""

# Up to 32 a class: a poll stands in for a lost word, and the next one comes in a second.
READY = """/* wake.ready */
SELECT c.organization_id, c.id AS class_id, r.jobs
  FROM requirement_classes c
 CROSS JOIN LATERAL (
       SELECT count(*) AS jobs
         FROM (SELECT FROM jobs j WHERE j.class_id = c.id AND j.state = 'ready' LIMIT 32) AS few
      ) AS r
 WHERE c.organization_id = ANY ($1::uuid[]) AND c.blocked_at IS NULL AND r.jobs > 0
"""


async def tell(conn: Conn | Pool, channel: str, messages: Sequence[str]) -> None:
    """Notify the channel of each message."""
    await conn.execute(TELL, channel, messages)


async def ready(conn: Conn | Pool, organizations: Sequence[UUID]) -> list[asyncpg.Record]:
    """Return (organization_id, class_id, jobs) of each class with waiting jobs."""
    return await conn.fetch(READY, organizations)
