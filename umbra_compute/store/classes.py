"""Requirement classes: what jobs that are alike for placement need."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.jobs import ClassKey

ENSURE = """/* classes.ensure */
INSERT INTO requirement_classes (organization_id, kind, requires, prefer, hash)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::jsonb[], $4::jsonb[], $5::bytea[])
    ON CONFLICT (organization_id, hash) DO NOTHING
"""

IDS = """/* classes.ids */
SELECT c.organization_id, c.hash, c.id
  FROM unnest($1::uuid[], $2::bytea[]) AS k (organization_id, hash)
  JOIN requirement_classes c ON c.organization_id = k.organization_id AND c.hash = k.hash
"""

LOAD = """/* classes.load */
SELECT c.id, c.organization_id, c.kind, c.requires, c.prefer, o.registry_version,
       (SELECT jsonb_agg(jsonb_build_object(
                   'slug', m.slug, 'vram_min_mb', m.vram_min_mb, 'ram_min_mb', m.ram_min_mb,
                   'vram_preferred_mb', m.vram_preferred_mb,
                   'requires_accelerators', m.requires_accelerators))
          FROM model_registry m
         WHERE m.organization_id = c.organization_id AND c.requires -> 'models' ? m.slug) AS models
  FROM requirement_classes c
  JOIN organizations o ON o.id = c.organization_id
 WHERE c.id = ANY ($1::bigint[])
"""


async def ensure(conn: Conn, keys: Sequence[ClassKey]) -> None:
    """Make the classes that do not exist yet, in the order of their hash (lock order)."""
    rows = sorted(
        ((k.organization_id, k.kind, k.requires, k.prefer, k.hash) for k in keys),
        key=lambda row: (row[0], row[4]),
    )
    await conn.execute(ENSURE, *zip(*rows, strict=True))


async def ids(conn: Conn, keys: Sequence[ClassKey]) -> dict[tuple[UUID, bytes], int]:
    """Return the id of each class that exists, by organization and hash."""
    rows = await conn.fetch(IDS, [k.organization_id for k in keys], [k.hash for k in keys])
    return {(row["organization_id"], row["hash"]): row["id"] for row in rows}


async def load(conn: Conn, class_ids: Sequence[int]) -> list[asyncpg.Record]:
    """Return (id, organization_id, kind, requires, prefer, registry_version, models) of each."""
    return await conn.fetch(LOAD, class_ids)
