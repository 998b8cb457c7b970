"""The registry of models of an organization."""

from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.nodes import Model

PUT = """/* models.put */
INSERT INTO model_registry AS m (organization_id, slug, kind, vram_min_mb, vram_preferred_mb,
                                 ram_min_mb, requires_accelerators, reference_throughput,
                                 load_seconds)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (organization_id, slug) DO UPDATE
   SET kind = excluded.kind, vram_min_mb = excluded.vram_min_mb,
       vram_preferred_mb = excluded.vram_preferred_mb, ram_min_mb = excluded.ram_min_mb,
       requires_accelerators = excluded.requires_accelerators,
       reference_throughput = excluded.reference_throughput,
       load_seconds = excluded.load_seconds, updated_at = statement_timestamp()
RETURNING slug, kind, vram_min_mb, vram_preferred_mb, ram_min_mb, requires_accelerators,
          reference_throughput, load_seconds, created_at, updated_at, xmax = 0 AS created
"""

DELETE = """/* models.delete */
DELETE FROM model_registry WHERE organization_id = $1 AND slug = $2 RETURNING slug
"""

BUMP = """/* models.bump */
UPDATE organizations SET registry_version = registry_version + 1 WHERE id = $1
"""

GET = """/* models.get */
SELECT slug, kind, vram_min_mb, vram_preferred_mb, ram_min_mb, requires_accelerators,
       reference_throughput, load_seconds, created_at, updated_at
  FROM model_registry
 WHERE organization_id = $1 AND slug = $2
"""

PAGE = """/* models.page */
SELECT slug, kind, vram_min_mb, vram_preferred_mb, ram_min_mb, requires_accelerators,
       reference_throughput, load_seconds, created_at, updated_at
  FROM model_registry
 WHERE organization_id = $1 AND ($2::text IS NULL OR slug > $2)
 ORDER BY slug
 LIMIT $3
"""


async def put(conn: Conn, organization_id: UUID, model: Model) -> tuple[Model, bool]:
    """Register the model or replace it wholly; return it, and whether it is new."""
    row = await conn.fetchrow(
        PUT,
        organization_id,
        model.slug,
        model.kind,
        model.vram_min_mb,
        model.vram_preferred_mb,
        model.ram_min_mb,
        model.requires_accelerators,
        model.reference_throughput,
        model.load_seconds,
    )
    if row is None:
        raise AssertionError("an upsert returns its row")
    told = dict(row)
    created = bool(told.pop("created"))
    return _model(told), created


async def delete(conn: Conn, organization_id: UUID, slug: str) -> bool:
    """Forget the model; False if there is none."""
    return await conn.fetchval(DELETE, organization_id, slug) is not None


async def bump(conn: Conn, organization_id: UUID) -> None:
    """Let every claim know that what models need has changed."""
    await conn.execute(BUMP, organization_id)


async def get(conn: Conn, organization_id: UUID, slug: str) -> Model | None:
    """Return the model; None if there is none."""
    row = await conn.fetchrow(GET, organization_id, slug)
    return None if row is None else _model(row)


async def page(
    conn: Conn, organization_id: UUID, *, after: str | None, limit: int | None
) -> list[Model]:
    """Return up to `limit` models by slug (None: all), from behind `after`."""
    return [_model(row) for row in await conn.fetch(PAGE, organization_id, after, limit)]


def _model(row: asyncpg.Record | dict[str, object]) -> Model:
    told = dict(row)
    told["requires_accelerators"] = tuple(told["requires_accelerators"])
    return Model(**told)
