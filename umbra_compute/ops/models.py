"""The registry of models of an organization."""

from uuid import UUID

import structlog

from umbra_compute.db import Pool, repeated
from umbra_compute.errors import ModelNotFound
from umbra_compute.model.nodes import Model
from umbra_compute.store import models

log = structlog.get_logger(__name__)


@repeated
async def put(pool: Pool, organization_id: UUID, model: Model) -> tuple[Model, bool]:
    """Register the model or replace it wholly; return it, and whether it is new."""
    async with pool.acquire() as conn, conn.transaction():
        stored, created = await models.put(conn, organization_id, model)
        await models.bump(conn, organization_id)
    log.info("model.registered", slug=model.slug, created=created)
    return stored, created


@repeated
async def delete(pool: Pool, organization_id: UUID, slug: str) -> None:
    """Forget the model; jobs that name it cannot be placed any more. Raises ModelNotFound."""
    async with pool.acquire() as conn, conn.transaction():
        if not await models.delete(conn, organization_id, slug):
            raise ModelNotFound(slug)
        await models.bump(conn, organization_id)
    log.info("model.deleted", slug=slug)


async def get(pool: Pool, organization_id: UUID, slug: str) -> Model:
    """Return the model. Raises ModelNotFound."""
    async with pool.acquire() as conn:
        model = await models.get(conn, organization_id, slug)
    if model is None:
        raise ModelNotFound(slug)
    return model


async def page(
    pool: Pool, organization_id: UUID, *, after: str | None, limit: int | None
) -> list[Model]:
    """Return up to `limit` models by slug (None: all), from behind `after`."""
    async with pool.acquire() as conn:
        return await models.page(conn, organization_id, after=after, limit=limit)
