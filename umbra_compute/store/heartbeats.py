"""What nodes report of themselves: their agent, their capacity, their measurements."""

from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.nodes import Known, NodeStatus, Report

LOCK = """/* heartbeats.lock */
SELECT id, organization_id, status, agent_instance_id, heartbeat_sequence, max_jobs, kinds
  FROM compute_nodes
 WHERE id = $1
   FOR NO KEY UPDATE
"""

STORED = """/* heartbeats.stored */
SELECT (SELECT jsonb_agg(d ORDER BY d.position)
          FROM compute_devices d WHERE d.node_id = $1) AS devices,
       (SELECT jsonb_agg(to_jsonb(m) || jsonb_build_object(
                   'last_used_s', extract(epoch FROM statement_timestamp() - m.last_used_at)))
          FROM node_models m WHERE m.node_id = $1) AS residents
"""

# The one write of a report that brings nothing new. A heartbeat lifts provisioning and offline;
# an agent that is the same process keeps its start.
TOUCH = """/* heartbeats.touch */
WITH measured AS (
    INSERT INTO node_heartbeats (node_id, active_jobs, measurements, lease_use)
    VALUES ($1, $10, $11, $12)
        ON CONFLICT (node_id) DO UPDATE
       SET received_at = statement_timestamp(), active_jobs = excluded.active_jobs,
           measurements = excluded.measurements, lease_use = excluded.lease_use
)
UPDATE compute_nodes
   SET agent_version = $2,
       agent_started_at = CASE WHEN agent_instance_id = $3 THEN agent_started_at
                               ELSE statement_timestamp() END,
       agent_instance_id = $3,
       heartbeat_sequence = $4,
       heartbeat_interval_s = $5,
       last_heartbeat_at = statement_timestamp(),
       status = CASE WHEN status IN ('provisioning', 'offline') THEN 'online' ELSE status END,
       status_since = CASE WHEN status IN ('provisioning', 'offline') THEN statement_timestamp()
                           ELSE status_since END,
       max_jobs = coalesce($6, max_jobs),
       kinds = CASE WHEN $7::boolean THEN $8::text[] ELSE kinds END,
       placement_version = placement_version + $9::boolean::integer,
       updated_at = CASE WHEN $9 THEN statement_timestamp() ELSE updated_at END
 WHERE id = $1
RETURNING status
"""


async def lock(conn: Conn, node_id: UUID) -> Known | None:
    """Lock the node; return what is known of it."""
    row = await conn.fetchrow(LOCK, node_id)
    if row is None:
        return None
    told = dict(row)
    told["status"] = NodeStatus(told["status"])
    told["kinds"] = None if told["kinds"] is None else tuple(told["kinds"])
    return Known(**told)


async def stored(conn: Conn, node_id: UUID) -> asyncpg.Record:
    """Return the node's (devices, residents), each JSON or None."""
    row = await conn.fetchrow(STORED, node_id)
    if row is None:
        raise AssertionError("a SELECT without FROM returns a row")
    return row


async def touch(
    conn: Conn,
    report: Report,
    *,
    node_id: UUID,
    interval_s: float,
    changed: bool,
    measurements: str | None,
    use: str | None,
) -> NodeStatus:
    """Note that the node has spoken and what it measured; return its status after that.

    `changed` moves the version that placement's caches hang on; `measurements` and `use` are JSON.
    """
    return NodeStatus(
        await conn.fetchval(
            TOUCH,
            node_id,
            report.agent_version,
            report.agent_instance_id,
            report.sequence,
            interval_s,
            report.max_jobs,
            report.kinds_given,
            report.kinds,
            changed,
            report.active_jobs,
            measurements,
            use,
        )
    )
