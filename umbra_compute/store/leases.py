"""The lease columns of jobs. Each write names the state and the lease that it expects."""

import json
from collections.abc import Sequence
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.leases import Completion, Fate, Held, LiveLease, Renewal

RENEW = """/* leases.renew */
UPDATE jobs j
   SET lease_seconds = coalesce(g.lease_seconds, j.lease_seconds),
       lease_expires_at = statement_timestamp()
           + make_interval(secs => coalesce(g.lease_seconds, j.lease_seconds)),
       progress = coalesce(g.progress, j.progress)
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::jsonb[])
       AS g (node_id, job_id, lease_id, lease_seconds, progress)
 WHERE j.id = g.job_id AND j.state = 'running'
   AND j.lease_owner = g.node_id AND j.lease_id = g.lease_id
   AND j.lease_expires_at > statement_timestamp()
RETURNING j.id, j.lease_id, j.lease_seconds,
          extract(epoch FROM j.lease_expires_at - statement_timestamp())::float8 AS expires_in_s,
          j.cancel_requested_at IS NOT NULL AS cancel_requested
"""

# A completion is accepted as long as its lease has not been ended, even past its expiry (SPEC §6).
COMPLETE = """/* leases.complete */
WITH up AS (
    UPDATE jobs j
       SET state = 'complete', result = g.result, finished_at = statement_timestamp(),
           error = NULL, lease_owner = NULL, lease_expires_at = NULL, lease_seconds = NULL,
           lease_device = NULL, reserved_vram_mb = NULL, reserved_ram_mb = NULL, run_until = NULL
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::jsonb[])
           AS g (node_id, job_id, lease_id, result)
     WHERE j.id = g.job_id AND j.state = 'running'
       AND j.lease_owner = g.node_id AND j.lease_id = g.lease_id
    RETURNING j.id, j.lease_id, j.attempt, g.node_id
), told AS (
    INSERT INTO job_events (job_id, event, node_id, attempt, lease_id)
    SELECT id, 'completed', node_id, attempt, lease_id FROM up
)
SELECT id, lease_id, attempt FROM up
"""

JOBS_THAT_EXIST = """/* leases.jobs_that_exist */
SELECT j.id
  FROM unnest($1::uuid[], $2::uuid[]) AS g (organization_id, job_id)
  JOIN jobs j ON j.id = g.job_id AND j.organization_id = g.organization_id
"""

LOCK_HELD = """/* leases.lock_held */
SELECT id AS job_id, class_id, lease_id, lease_owner AS node_id, attempt, max_attempts, releases,
       cancel_requested_at IS NOT NULL AS cancel_requested, max_runtime_s,
       extract(epoch FROM statement_timestamp() - lease_expires_at)::float8 AS overdue_s
  FROM jobs
 WHERE id = $1 AND state = 'running' AND lease_owner = $2 AND lease_id = $3
   FOR UPDATE
"""

LOCK_OF_NODE = """/* leases.lock_of_node */
SELECT id AS job_id, class_id, lease_id, lease_owner AS node_id, attempt, max_attempts, releases,
       cancel_requested_at IS NOT NULL AS cancel_requested, max_runtime_s,
       extract(epoch FROM statement_timestamp() - lease_expires_at)::float8 AS overdue_s
  FROM jobs
 WHERE lease_owner = $1
 ORDER BY id
   FOR UPDATE
"""

# SKIP LOCKED in the three sweeps: controllers sweep at once and each lease falls to one of them.
LOCK_EXPIRED = """/* leases.lock_expired */
SELECT id AS job_id, class_id, lease_id, lease_owner AS node_id, attempt, max_attempts, releases,
       cancel_requested_at IS NOT NULL AS cancel_requested, max_runtime_s,
       extract(epoch FROM statement_timestamp() - lease_expires_at)::float8 AS overdue_s
  FROM jobs
 WHERE lease_expires_at <= statement_timestamp()
 ORDER BY lease_expires_at, id
 LIMIT $1
   FOR UPDATE SKIP LOCKED
"""

LOCK_OVERRUN = """/* leases.lock_overrun */
SELECT id AS job_id, class_id, lease_id, lease_owner AS node_id, attempt, max_attempts, releases,
       cancel_requested_at IS NOT NULL AS cancel_requested, max_runtime_s,
       extract(epoch FROM statement_timestamp() - lease_expires_at)::float8 AS overdue_s
  FROM jobs
 WHERE run_until <= statement_timestamp()
 ORDER BY run_until, id
 LIMIT $1
   FOR UPDATE SKIP LOCKED
"""

LOCK_UNHEARD = """/* leases.lock_unheard */
SELECT id AS job_id, class_id, lease_id, lease_owner AS node_id, attempt, max_attempts, releases,
       cancel_requested_at IS NOT NULL AS cancel_requested, max_runtime_s,
       extract(epoch FROM statement_timestamp() - lease_expires_at)::float8 AS overdue_s
  FROM jobs
 WHERE cancel_requested_at <= statement_timestamp() - make_interval(secs => $2)
   AND finished_at IS NULL AND lease_owner IS NOT NULL
 ORDER BY cancel_requested_at, id
 LIMIT $1
   FOR UPDATE SKIP LOCKED
"""

END = """/* leases.end */
WITH fate AS (
    SELECT *
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::float8[], $5::text[], $6::text[],
                  $7::boolean[], $8::jsonb[])
           AS f (job_id, ended_lease, next_state, wait_s, told_error, event, given_back, detail)
), up AS (
    UPDATE jobs j
       SET state = f.next_state,
           error = coalesce(f.told_error, j.error),
           attempt = j.attempt - f.given_back::integer,
           releases = j.releases + (f.event = 'released')::integer,
           not_before = coalesce(statement_timestamp() + make_interval(secs => f.wait_s),
                                 j.not_before),
           finished_at = CASE WHEN f.next_state IN ('failed', 'cancelled')
                              THEN statement_timestamp() END,
           lease_owner = NULL, lease_expires_at = NULL, lease_seconds = NULL, lease_device = NULL,
           reserved_vram_mb = NULL, reserved_ram_mb = NULL, run_until = NULL
      FROM fate f
     WHERE j.id = f.job_id AND j.state = 'running' AND j.lease_id = f.ended_lease
    RETURNING j.id, j.lease_id, j.state, j.attempt, j.not_before, j.last_node_id, f.event,
              j.attempt + f.given_back::integer AS attempt_told,
              f.detail || jsonb_build_object('status', CASE j.state
                  WHEN 'ready' THEN 'queued' WHEN 'scheduled' THEN 'queued' ELSE j.state END,
                  'not_before', j.not_before) AS detail
), told AS (
    INSERT INTO job_events (job_id, event, node_id, attempt, lease_id, detail)
    SELECT id, event, last_node_id, attempt_told, lease_id, detail FROM up
)
SELECT id, lease_id, state, attempt, not_before FROM up
"""

LIVE_OF_NODE = """/* leases.live_of_node */
SELECT id, lease_id, cancel_requested_at IS NOT NULL AS cancel_requested
  FROM jobs
 WHERE lease_owner = $1
"""


async def renew(conn: Conn, renewals: Sequence[Renewal]) -> list[asyncpg.Record]:
    """Extend live leases; return (id, lease_id, lease_seconds, expires_in_s, cancel_requested)."""
    return await conn.fetch(
        RENEW,
        [r.held.node.node_id for r in renewals],
        [r.held.job_id for r in renewals],
        [r.held.lease_id for r in renewals],
        [r.lease_seconds for r in renewals],
        [r.progress for r in renewals],
    )


async def complete(conn: Conn, completions: Sequence[Completion]) -> list[asyncpg.Record]:
    """Store results under their live leases; return (id, lease_id, attempt) of those taken."""
    return await conn.fetch(
        COMPLETE,
        [c.held.node.node_id for c in completions],
        [c.held.job_id for c in completions],
        [c.held.lease_id for c in completions],
        [c.result for c in completions],
    )


async def jobs_that_exist(conn: Conn, jobs: Sequence[tuple[UUID, UUID]]) -> set[UUID]:
    """Return the ids of those (organization, job) pairs that exist."""
    organizations, ids = zip(*jobs, strict=True)
    return {row["id"] for row in await conn.fetch(JOBS_THAT_EXIST, organizations, ids)}


async def lock_held(conn: Conn, held: Held) -> LiveLease | None:
    """Lock the job if this lease of this node holds it, expired or not."""
    row = await conn.fetchrow(LOCK_HELD, held.job_id, held.node.node_id, held.lease_id)
    return None if row is None else LiveLease(**row)


async def lock_of_node(conn: Conn, node_id: UUID) -> list[LiveLease]:
    """Lock every job that the node holds, in the order of their ids."""
    return [LiveLease(**row) for row in await conn.fetch(LOCK_OF_NODE, node_id)]


async def lock_expired(conn: Conn, limit: int) -> list[LiveLease]:
    """Lock up to `limit` jobs whose lease ran out, longest overdue first."""
    return [LiveLease(**row) for row in await conn.fetch(LOCK_EXPIRED, limit)]


async def lock_overrun(conn: Conn, limit: int) -> list[LiveLease]:
    """Lock up to `limit` jobs that ran longer than they may."""
    return [LiveLease(**row) for row in await conn.fetch(LOCK_OVERRUN, limit)]


async def lock_unheard(conn: Conn, limit: int, grace_s: float) -> list[LiveLease]:
    """Lock up to `limit` running jobs that were asked to cancel more than `grace_s` ago."""
    return [LiveLease(**row) for row in await conn.fetch(LOCK_UNHEARD, limit, grace_s)]


async def end(conn: Conn, fates: Sequence[tuple[LiveLease, Fate]]) -> list[asyncpg.Record]:
    """Apply each fate and tell of it; return (id, lease_id, state, attempt, not_before)."""
    return await conn.fetch(
        END,
        [lease.job_id for lease, _ in fates],
        [lease.lease_id for lease, _ in fates],
        [fate.state for _, fate in fates],
        [fate.wait_s for _, fate in fates],
        [fate.error for _, fate in fates],
        [fate.event for _, fate in fates],
        [fate.attempt_given_back for _, fate in fates],
        [json.dumps(dict(fate.detail)) for _, fate in fates],
    )


async def live_of_node(conn: Conn, node_id: UUID) -> dict[UUID, bool]:
    """Return the node's live leases: lease id to whether it was asked to cancel."""
    rows = await conn.fetch(LIVE_OF_NODE, node_id)
    return {row["lease_id"]: row["cancel_requested"] for row in rows}
