"""Nodes: enrolling, showing, what an administrator sets, and silence."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import attrs

from umbra_compute.db import Conn

INSERT = """/* nodes.insert */
INSERT INTO compute_nodes (id, organization_id, name, is_controller, trust_domain, locality,
                           transport, max_jobs, kinds)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (organization_id, name) DO NOTHING
RETURNING id
"""

# A node that is silent for too long is shown as what the sweep will make of it (I24).
SHOW = """/* nodes.show */
SELECT n.id, n.organization_id, n.name, n.is_controller, n.trust_domain, n.locality, n.transport,
       CASE WHEN n.status = 'online' AND NOT coalesce(
                n.last_heartbeat_at > statement_timestamp() - make_interval(
                    secs => greatest($3, 3.5 * coalesce(n.heartbeat_interval_s, 0))), false)
            THEN 'offline' ELSE n.status END AS status,
       n.agent_version, n.agent_instance_id, n.agent_started_at, n.last_heartbeat_at, n.max_jobs,
       n.kinds, n.created_at, n.updated_at, h.measurements,
       (SELECT count(*) FROM jobs j WHERE j.lease_owner = n.id) AS running_jobs,
       (SELECT jsonb_agg(d ORDER BY d.position)
          FROM compute_devices d WHERE d.node_id = n.id) AS devices,
       (SELECT jsonb_agg(to_jsonb(m) || jsonb_build_object(
                   'last_used_s', extract(epoch FROM statement_timestamp() - m.last_used_at))
                   ORDER BY m.slug, m.device)
          FROM node_models m WHERE m.node_id = n.id) AS residents
  FROM compute_nodes n
  LEFT JOIN node_heartbeats h ON h.node_id = n.id
 WHERE n.organization_id = $1 AND n.id = $2
"""

PAGE = """/* nodes.page */
SELECT n.id, n.organization_id, n.name, n.is_controller, n.trust_domain, n.locality, n.transport,
       n.shown_status AS status,
       n.agent_version, n.agent_instance_id, n.agent_started_at, n.last_heartbeat_at, n.max_jobs,
       n.kinds, n.created_at, n.updated_at, h.measurements,
       (SELECT count(*) FROM jobs j WHERE j.lease_owner = n.id) AS running_jobs,
       (SELECT jsonb_agg(d ORDER BY d.position)
          FROM compute_devices d WHERE d.node_id = n.id) AS devices,
       (SELECT jsonb_agg(to_jsonb(m) || jsonb_build_object(
                   'last_used_s', extract(epoch FROM statement_timestamp() - m.last_used_at))
                   ORDER BY m.slug, m.device)
          FROM node_models m WHERE m.node_id = n.id) AS residents
  FROM (SELECT *,
               CASE WHEN status = 'online' AND NOT coalesce(
                        last_heartbeat_at > statement_timestamp() - make_interval(
                            secs => greatest($3, 3.5 * coalesce(heartbeat_interval_s, 0))), false)
                    THEN 'offline' ELSE status END AS shown_status
          FROM compute_nodes
         WHERE organization_id = $1) AS n
  LEFT JOIN node_heartbeats h ON h.node_id = n.id
 WHERE ($2::text IS NULL OR n.shown_status = $2)
   AND ($4::timestamptz IS NULL OR (n.created_at, n.id) > ($4, $5::uuid))
 ORDER BY n.created_at, n.id
 LIMIT $6
"""

LOCK = """/* nodes.lock */
SELECT id, name, status FROM compute_nodes WHERE organization_id = $1 AND id = $2
   FOR NO KEY UPDATE
"""

LIVE_LEASES = """/* nodes.live_leases */
SELECT count(*) FROM jobs WHERE lease_owner = $1
"""

# What is not given keeps its value; whether it was given is told beside it. Placement does not
# look at names, so a new name leaves its version alone.
CHANGE = """/* nodes.change */
UPDATE compute_nodes
   SET name = coalesce($2, name),
       status = coalesce($3, status),
       status_since = CASE WHEN coalesce($3, status) = status THEN status_since
                           ELSE statement_timestamp() END,
       trust_domain = coalesce($4, trust_domain),
       locality = CASE WHEN $5::boolean THEN $6 ELSE locality END,
       max_jobs = coalesce($7, max_jobs),
       kinds = CASE WHEN $8::boolean THEN $9::text[] ELSE kinds END,
       placement_version = placement_version + (
           coalesce($3, status) <> status OR coalesce($4, trust_domain) <> trust_domain
           OR $5 AND $6 IS DISTINCT FROM locality OR coalesce($7, max_jobs) <> max_jobs
           OR $8 AND $9::text[] IS DISTINCT FROM kinds)::integer,
       updated_at = statement_timestamp()
 WHERE id = $1 AND status <> 'retired'
RETURNING id
"""

# A node that is locked is just speaking, or another controller sweeps it.
MARK_STALE = """/* nodes.mark_stale */
WITH silent AS MATERIALIZED (
    SELECT id
      FROM compute_nodes
     WHERE status = 'online'
       AND NOT coalesce(last_heartbeat_at > statement_timestamp() - make_interval(
               secs => greatest($1, 3.5 * coalesce(heartbeat_interval_s, 0))), false)
     LIMIT $2
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE compute_nodes
   SET status = 'offline', status_since = statement_timestamp(),
       placement_version = placement_version + 1, updated_at = statement_timestamp()
 WHERE id = ANY (ARRAY(SELECT id FROM silent)) AND status = 'online'
RETURNING id, extract(epoch FROM statement_timestamp() - last_heartbeat_at)::float8 AS silent_s
"""


@attrs.frozen(kw_only=True)
class NewNode:
    """What an enrolment says of a node."""

    name: str
    is_controller: bool
    trust_domain: str
    locality: str | None
    transport: str
    max_jobs: int
    kinds: Sequence[str] | None


@attrs.frozen(kw_only=True)
class Change:
    """What an administrator sets. None: not given; where None is a value, `_given` tells."""

    name: str | None = None
    status: str | None = None
    trust_domain: str | None = None
    locality: str | None = None
    locality_given: bool = False
    max_jobs: int | None = None
    kinds: Sequence[str] | None = None
    kinds_given: bool = False


async def insert(conn: Conn, node_id: UUID, organization_id: UUID, new: NewNode) -> bool:
    """Enrol a node; False if its name is taken."""
    made = await conn.fetchval(
        INSERT,
        node_id,
        organization_id,
        new.name,
        new.is_controller,
        new.trust_domain,
        new.locality,
        new.transport,
        new.max_jobs,
        new.kinds,
    )
    return made is not None


async def show(
    conn: Conn, organization_id: UUID, node_id: UUID, stale_s: float
) -> asyncpg.Record | None:
    """Return the node with its devices and models as JSON."""
    return await conn.fetchrow(SHOW, organization_id, node_id, stale_s)


async def page(
    conn: Conn,
    organization_id: UUID,
    status: str | None,
    stale_s: float,
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[asyncpg.Record]:
    """Return up to `limit` nodes, oldest first, from behind the (created_at, id) `after`."""
    created_at, node_id = (None, None) if after is None else after
    return await conn.fetch(PAGE, organization_id, status, stale_s, created_at, node_id, limit)


async def lock(conn: Conn, organization_id: UUID, node_id: UUID) -> asyncpg.Record | None:
    """Lock the node; return (id, name, status)."""
    return await conn.fetchrow(LOCK, organization_id, node_id)


async def live_leases(conn: Conn, node_id: UUID) -> int:
    """Return how many jobs the node holds."""
    count: Any = await conn.fetchval(LIVE_LEASES, node_id)
    return int(count)


async def change(conn: Conn, node_id: UUID, wanted: Change) -> bool:
    """Set what is given; False if the node is retired."""
    changed = await conn.fetchval(
        CHANGE,
        node_id,
        wanted.name,
        wanted.status,
        wanted.trust_domain,
        wanted.locality_given,
        wanted.locality,
        wanted.max_jobs,
        wanted.kinds_given,
        wanted.kinds,
    )
    return changed is not None


async def mark_stale(conn: Conn, stale_s: float, limit: int) -> list[asyncpg.Record]:
    """Set up to `limit` silent nodes offline; return (id, silent_s) of each."""
    return await conn.fetch(MARK_STALE, stale_s, limit)
