"""What the sweeps read and write besides leases."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn

# A gap of more than $2 seconds between rounds, whoever ran them, is an outage of the service.
BEGIN_ROUND = """/* sweeps.begin_round */
INSERT INTO sweep_rounds AS s (name, succeeded_at)
VALUES ($1, statement_timestamp())
    ON CONFLICT (name) DO UPDATE
   SET hold_until = CASE
           WHEN s.succeeded_at < statement_timestamp() - make_interval(secs => $2)
           THEN statement_timestamp() + make_interval(secs => $3)
           ELSE s.hold_until END,
       succeeded_at = statement_timestamp()
RETURNING coalesce(hold_until > statement_timestamp(), false) AS holds
"""

PROMOTE = """/* sweeps.promote */
WITH due AS MATERIALIZED (
    SELECT id
      FROM jobs
     WHERE state = 'scheduled' AND not_before <= statement_timestamp()
     ORDER BY not_before, id
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), up AS (
    UPDATE jobs
       SET state = 'ready', claimable_at = coalesce(claimable_at, statement_timestamp())
     WHERE id = ANY (ARRAY(SELECT id FROM due)) AND state = 'scheduled'
    RETURNING organization_id, class_id
)
SELECT organization_id, class_id, count(*) AS jobs FROM up GROUP BY 1, 2
"""

# Why it did not start: its class's blocking reason, if it is blocked.
END_UNSTARTED = """/* sweeps.end_unstarted */
WITH late AS MATERIALIZED (
    SELECT id
      FROM jobs
     WHERE start_by <= statement_timestamp() AND start_by IS NOT NULL
       AND state IN ('ready', 'scheduled') AND started_at IS NULL
     ORDER BY start_by, id
     LIMIT $1
       FOR UPDATE SKIP LOCKED
), up AS (
    UPDATE jobs j
       SET state = 'failed', finished_at = statement_timestamp(),
           error = 'not started within '
               || round(extract(epoch FROM j.start_by - j.created_at)) || ' s'
               || coalesce(': ' || c.blocked_reason, '')
      FROM requirement_classes c
     WHERE j.id = ANY (ARRAY(SELECT id FROM late)) AND c.id = j.class_id
       AND j.state IN ('ready', 'scheduled')
    RETURNING j.id, j.attempt, j.error
), told AS (
    INSERT INTO job_events (job_id, event, attempt, detail)
    SELECT id, 'failed', attempt, jsonb_build_object('error', error, 'status', 'failed') FROM up
)
SELECT id FROM up
"""

SUCCEEDED = """/* sweeps.succeeded */
SELECT name, extract(epoch FROM statement_timestamp() - succeeded_at)::float8 AS age_s
  FROM sweep_rounds
 ORDER BY name
"""


async def begin_round(conn: Conn, name: str, *, outage_s: float, hold_s: float) -> bool:
    """Note a round of the sweep; True while it must end nothing because of an outage.

    After a gap of more than `outage_s` between rounds it holds for `hold_s`.
    """
    return bool(await conn.fetchval(BEGIN_ROUND, name, outage_s, hold_s))


async def promote(conn: Conn, limit: int) -> list[asyncpg.Record]:
    """Make up to `limit` due jobs ready; return (organization_id, class_id, jobs)."""
    return await conn.fetch(PROMOTE, limit)


async def end_unstarted(conn: Conn, limit: int) -> list[UUID]:
    """Fail up to `limit` jobs that did not start in time; return their ids."""
    return [row["id"] for row in await conn.fetch(END_UNSTARTED, limit)]


async def succeeded(conn: Conn) -> Sequence[asyncpg.Record]:
    """Return (name, age_s) of the last round of each sweep."""
    return await conn.fetch(SUCCEEDED)
