"""The claim: one node, what waits for it, and taking it."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg
import attrs

from umbra_compute.db import Conn
from umbra_compute.model.jobs import Job
from umbra_compute.model.leases import ClaimAsk, Claimed
from umbra_compute.model.placement import Grant, Head

# One claim per node at a time: the free places seen below cannot be given away twice (N02).
LOCK_NODE = """/* claiming.lock_node */
SELECT n.id, o.registry_version
  FROM compute_nodes n
  JOIN organizations o ON o.id = n.organization_id
 WHERE n.id = $1
   FOR NO KEY UPDATE OF n
"""

# Its own statement, after the one that locked: time and rows are as fresh as the lock.
SNAPSHOT = """/* claiming.snapshot */
SELECT n.id AS node_id, n.organization_id, n.name, n.status, n.trust_domain, n.locality, n.kinds,
       n.max_jobs, n.last_heartbeat_at AS silent_since,
       coalesce(n.last_heartbeat_at > statement_timestamp() - make_interval(
           secs => greatest($2, 3.5 * coalesce(n.heartbeat_interval_s, 0))), false) AS fresh,
       h.measurements, h.lease_use,
       (SELECT jsonb_agg(d ORDER BY d.position)
          FROM compute_devices d WHERE d.node_id = n.id) AS devices,
       (SELECT jsonb_agg(m) FROM node_models m WHERE m.node_id = n.id) AS residents,
       (SELECT jsonb_agg(jsonb_build_object(
                   'lease_id', j.lease_id, 'device_label', j.lease_device,
                   'vram_mb', j.reserved_vram_mb, 'ram_mb', j.reserved_ram_mb))
          FROM jobs j WHERE j.lease_owner = n.id) AS reservations
  FROM compute_nodes n
  LEFT JOIN node_heartbeats h ON h.node_id = n.id
 WHERE n.id = $1
"""

WAITING = """/* claiming.waiting */
SELECT h.class_id, h.priority, h.not_before, h.seq
  FROM requirement_classes c
 CROSS JOIN LATERAL (
       SELECT r.class_id, r.priority, r.not_before, r.seq
         FROM jobs r
        WHERE r.class_id = c.id AND r.state = 'ready'
        ORDER BY r.priority, r.not_before, r.seq
        LIMIT $3) h
 WHERE c.organization_id = $1 AND c.blocked_at IS NULL
   AND ($2::text[] IS NULL OR c.kind = ANY ($2))
 ORDER BY h.priority, h.not_before, h.seq
 LIMIT $4
"""

# The n-th job of a class gets the n-th grant of that class. Which jobs are locked is decided here
# and now; how many, and where they may run, was decided on the same snapshot.
TAKE = """/* claiming.take */
WITH granted AS MATERIALIZED (
    SELECT g.*, row_number() OVER (PARTITION BY g.class_id ORDER BY g.position) AS n
      FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::jsonb[])
           WITH ORDINALITY AS g (class_id, device, vram_mb, ram_mb, told_placement, position)
), wanted AS MATERIALIZED (
    SELECT class_id, count(*) AS jobs FROM granted GROUP BY class_id
), picked AS MATERIALIZED (
    SELECT l.*
      FROM wanted w
     CROSS JOIN LATERAL (
           SELECT r.id, r.class_id, r.priority, r.not_before, r.seq
             FROM jobs r
            WHERE r.class_id = w.class_id AND r.state = 'ready'
            ORDER BY r.priority, r.not_before, r.seq
            LIMIT w.jobs
              FOR UPDATE SKIP LOCKED) l
), numbered AS MATERIALIZED (
    SELECT id, class_id, row_number() OVER (
               PARTITION BY class_id ORDER BY priority, not_before, seq) AS n
      FROM picked
), matched AS MATERIALIZED (
    SELECT p.id, g.device, g.vram_mb, g.ram_mb, g.told_placement
      FROM numbered p
      JOIN granted g ON g.class_id = p.class_id AND g.n = p.n
), up AS (
    UPDATE jobs j
       SET state = 'running', attempt = j.attempt + 1, progress = NULL,
           started_at = coalesce(j.started_at, statement_timestamp()),
           lease_id = gen_random_uuid(), lease_owner = $6, last_node_id = $6,
           lease_seconds = $7::integer,
           lease_expires_at = statement_timestamp() + make_interval(secs => $7::integer),
           lease_device = m.device, reserved_vram_mb = m.vram_mb, reserved_ram_mb = m.ram_mb,
           placement = m.told_placement,
           run_until = statement_timestamp() + make_interval(secs => j.max_runtime_s + 10)
      FROM matched m
     WHERE j.id = m.id AND j.state = 'ready'
    RETURNING j.*
), told AS (
    INSERT INTO job_events (job_id, event, node_id, attempt, detail)
    SELECT id, 'claimed', $6, attempt,
           jsonb_build_object('device', lease_device, 'reason', placement -> 'reason')
      FROM up
)
SELECT j.id, j.organization_id, j.class_id, j.project_id, j.lang, j.kind, j.state AS status,
       j.requested_by, j.priority,
       CASE WHEN j.max_runtime_s IS NULL THEN c.requires
            ELSE c.requires || jsonb_build_object('max_runtime_s', j.max_runtime_s)
       END AS requires,
       c.prefer, j.payload, j.not_before, j.start_by, j.attempt, j.max_attempts,
       j.lease_id, j.lease_owner, j.lease_expires_at, false AS cancel_requested,
       NULL::text AS blocked, j.parent_job_id, j.idempotency_key, j.placement, j.progress,
       j.result, j.error, j.created_at, j.started_at, j.finished_at
  FROM up j
  JOIN requirement_classes c ON c.id = j.class_id
 ORDER BY j.priority, j.not_before, j.seq
"""


@attrs.frozen(kw_only=True)
class LockedNode:
    """A node that no other claim looks at until the transaction ends."""

    id: UUID
    registry_version: int


async def lock_node(conn: Conn, node_id: UUID) -> LockedNode | None:
    row = await conn.fetchrow(LOCK_NODE, node_id)
    return None if row is None else LockedNode(**row)


async def snapshot(conn: Conn, node_id: UUID, stale_s: float) -> asyncpg.Record | None:
    """Return the node with its devices, models and promised memory as JSON, as of now."""
    return await conn.fetchrow(SNAPSHOT, node_id, stale_s)


async def waiting(
    conn: Conn, organization_id: UUID, kinds: Sequence[str] | None, limit: int
) -> list[Head]:
    """Return the first `limit` waiting jobs of each unblocked class, in the order of the line.

    At most four times `limit` in all, and at least 400, so that small classes behind one that
    does not fit are seen too.
    """
    at_most = max(400, 4 * limit)
    rows = await conn.fetch(WAITING, organization_id, kinds, limit, at_most)
    return [Head(**row) for row in rows]


async def take(
    conn: Conn,
    node_id: UUID,
    ask: ClaimAsk,
    grants: Sequence[Grant],
    placements: Sequence[dict[str, Any]],
) -> list[Claimed]:
    """Lease as many jobs as were granted and still wait, best first."""
    rows = await conn.fetch(
        TAKE,
        [grant.class_id for grant in grants],
        [grant.device.label for grant in grants],
        [grant.vram_mb for grant in grants],
        [grant.ram_mb for grant in grants],
        [json.dumps(placement) for placement in placements],
        node_id,
        ask.lease_seconds,
    )
    return [
        Claimed(
            job=Job(**row),
            lease_id=row["lease_id"],
            lease_seconds=ask.lease_seconds,
            expires_in_s=float(ask.lease_seconds),
            placement=row["placement"],
        )
        for row in rows
    ]
