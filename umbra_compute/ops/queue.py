"""The queue seen as a whole."""

from uuid import UUID

import asyncpg

from umbra_compute.db import Pool
from umbra_compute.store import queue


async def by_class(pool: Pool, organization_id: UUID) -> list[asyncpg.Record]:
    """Return each class of the organization that has unfinished jobs, longest waiting first."""
    async with pool.acquire() as conn:
        return await queue.by_class(conn, organization_id)
