"""What nodes report: their agent, devices, models and measurements."""

import json
from collections.abc import Sequence
from uuid import UUID

import asyncpg
import attrs

from umbra_compute.db import Conn
from umbra_compute.model.nodes import Device, Report, Resident

LOCK = """/* heartbeats.lock */
SELECT id, organization_id, status, agent_instance_id, heartbeat_sequence, max_jobs, kinds
  FROM compute_nodes
 WHERE id = $1
   FOR NO KEY UPDATE
"""

# An agent that is the same process keeps its start; a heartbeat lifts provisioning and offline.
TOUCH = """/* heartbeats.touch */
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

DEVICES_OF = """/* heartbeats.devices_of */
SELECT label, kind, vram_total_mb, vram_free_mb, ram_total_mb, ram_free_mb, compute_units,
       throughput_factor, supports_accelerators, healthy, health_reason
  FROM compute_devices
 WHERE node_id = $1
 ORDER BY position
"""

# One statement replaces the set: what is not in the report is gone with it.
PUT_DEVICES = """/* heartbeats.put_devices */
WITH given AS (
    SELECT *
      FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                  $8::float8[], $9::float8[], $10::text[], $11::boolean[], $12::text[])
           WITH ORDINALITY
           AS g (label, kind, vram_total_mb, vram_free_mb, ram_total_mb, ram_free_mb,
                 compute_units, throughput_factor, accelerators, healthy, health_reason, position)
), gone AS (
    DELETE FROM compute_devices
     WHERE node_id = $1 AND label <> ALL ($2::text[])
)
INSERT INTO compute_devices AS d (node_id, label, position, kind, vram_total_mb, vram_free_mb,
                                  ram_total_mb, ram_free_mb, compute_units, throughput_factor,
                                  supports_accelerators, healthy, health_reason)
SELECT $1, label, position, kind, vram_total_mb, vram_free_mb, ram_total_mb, ram_free_mb,
       compute_units, throughput_factor,
       ARRAY(SELECT jsonb_array_elements_text(accelerators::jsonb)), healthy, health_reason
  FROM given
    ON CONFLICT (node_id, label) DO UPDATE
   SET position = excluded.position, kind = excluded.kind,
       vram_total_mb = excluded.vram_total_mb, vram_free_mb = excluded.vram_free_mb,
       ram_total_mb = excluded.ram_total_mb, ram_free_mb = excluded.ram_free_mb,
       compute_units = excluded.compute_units, throughput_factor = excluded.throughput_factor,
       supports_accelerators = excluded.supports_accelerators, healthy = excluded.healthy,
       health_reason = excluded.health_reason
"""

RESIDENTS_OF = """/* heartbeats.residents_of */
SELECT slug, device, state, vram_held_mb, ram_held_mb, busy
  FROM node_models
 WHERE node_id = $1
 ORDER BY slug, device
"""

PUT_RESIDENTS = """/* heartbeats.put_residents */
WITH given AS (
    SELECT *
      FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[],
                  $8::float8[])
           AS g (slug, device, state, vram_held_mb, ram_held_mb, busy, last_used_s)
), gone AS (
    DELETE FROM node_models m
     WHERE node_id = $1
       AND NOT EXISTS (SELECT FROM given g WHERE g.slug = m.slug AND g.device = m.device)
)
INSERT INTO node_models AS m (node_id, slug, device, state, vram_held_mb, ram_held_mb, busy,
                              last_used_at)
SELECT $1, slug, device, state, vram_held_mb, ram_held_mb, busy,
       statement_timestamp() - make_interval(secs => last_used_s)
  FROM given
    ON CONFLICT (node_id, slug, device) DO UPDATE
   SET state = excluded.state, vram_held_mb = excluded.vram_held_mb,
       ram_held_mb = excluded.ram_held_mb, busy = excluded.busy,
       last_used_at = excluded.last_used_at
"""

PUT_MEASUREMENTS = """/* heartbeats.put_measurements */
INSERT INTO node_heartbeats AS h (node_id, active_jobs, measurements, lease_use)
VALUES ($1, $2, $3, $4)
    ON CONFLICT (node_id) DO UPDATE
   SET received_at = statement_timestamp(), active_jobs = excluded.active_jobs,
       measurements = excluded.measurements, lease_use = excluded.lease_use
"""


@attrs.frozen(kw_only=True)
class LockedNode:
    """The node of a report, as it was before."""

    id: UUID
    organization_id: UUID
    status: str
    agent_instance_id: UUID | None
    heartbeat_sequence: int | None
    max_jobs: int
    kinds: list[str] | None


async def lock(conn: Conn, node_id: UUID) -> LockedNode | None:
    row = await conn.fetchrow(LOCK, node_id)
    return None if row is None else LockedNode(**row)


async def touch(
    conn: Conn, node_id: UUID, report: Report, *, interval_s: float, changed: bool
) -> str:
    """Note that the node has spoken; return its status after that."""
    return str(
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
        )
    )


async def devices_of(conn: Conn, node_id: UUID) -> list[asyncpg.Record]:
    return await conn.fetch(DEVICES_OF, node_id)


async def put_devices(conn: Conn, node_id: UUID, devices: Sequence[Device]) -> None:
    """Make these the node's devices, and no others."""
    await conn.execute(
        PUT_DEVICES,
        node_id,
        [d.label for d in devices],
        [d.kind for d in devices],
        [d.vram_total_mb for d in devices],
        [d.vram_free_mb for d in devices],
        [d.ram_total_mb for d in devices],
        [d.ram_free_mb for d in devices],
        [d.compute_units for d in devices],
        [d.throughput_factor for d in devices],
        [json.dumps(d.supports_accelerators) for d in devices],
        [d.healthy for d in devices],
        [d.health_reason for d in devices],
    )


async def residents_of(conn: Conn, node_id: UUID) -> list[asyncpg.Record]:
    return await conn.fetch(RESIDENTS_OF, node_id)


async def put_residents(conn: Conn, node_id: UUID, residents: Sequence[Resident]) -> None:
    """Make these the models that the node holds, and no others."""
    await conn.execute(
        PUT_RESIDENTS,
        node_id,
        [r.slug for r in residents],
        ["" if r.device is None else r.device for r in residents],
        [r.state for r in residents],
        [r.vram_held_mb for r in residents],
        [r.ram_held_mb for r in residents],
        [r.busy for r in residents],
        [r.last_used_s for r in residents],
    )


async def put_measurements(
    conn: Conn, node_id: UUID, active_jobs: int | None, measurements: str | None, use: str | None
) -> None:
    """Keep what the node measured; the last two are JSON."""
    await conn.execute(PUT_MEASUREMENTS, node_id, active_jobs, measurements, use)
