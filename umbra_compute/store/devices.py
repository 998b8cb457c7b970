"""What nodes compute with, and the models resident there. A report replaces a whole set."""

import json
from collections.abc import Sequence
from uuid import UUID

from umbra_compute.db import Conn
from umbra_compute.model.nodes import Device, Resident

# One statement replaces the set: what is not in the report is gone with it.
PUT = """/* devices.put */
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

PUT_RESIDENTS = """/* devices.put_residents */
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


async def put(conn: Conn, node_id: UUID, devices: Sequence[Device]) -> None:
    """Make these the node's devices, and no others."""
    await conn.execute(
        PUT,
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
