"""Nodes: enrolling, showing, what an administrator sets, and silence."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg
import structlog

from umbra_compute.db import Pool, repeated
from umbra_compute.errors import (
    NodeHasLeases,
    NodeNameTaken,
    NodeNotFound,
    NodeRetired,
    OnlineIsEarned,
)
from umbra_compute.ids import uuid7
from umbra_compute.model.nodes import Node, NodeStatus
from umbra_compute.policy.views import shown_node
from umbra_compute.store import credentials, nodes
from umbra_compute.store.nodes import Change, NewNode

log = structlog.get_logger(__name__)

STALE_BATCH: Final = 1000
"""Nodes set offline in one transaction. The sweeps' loop repeats a full round at once."""


@repeated
async def create(pool: Pool, organization_id: UUID, new: NewNode, *, stale_s: float) -> Node:
    """Enrol a node; it is `provisioning` until it speaks. Raises NodeNameTaken."""
    node_id = uuid7()
    async with pool.acquire() as conn, conn.transaction():
        if not await nodes.insert(conn, node_id, organization_id, new):
            raise NodeNameTaken(new.name)
        row = await nodes.show(conn, organization_id, node_id, stale_s)
    log.info("node.created", node_id=node_id, name=new.name)
    return _node(row, node_id)


async def get(pool: Pool, organization_id: UUID, node_id: UUID, *, stale_s: float) -> Node:
    """Return the node as it is now. Raises NodeNotFound."""
    async with pool.acquire() as conn:
        row = await nodes.show(conn, organization_id, node_id, stale_s)
    return _node(row, node_id)


async def page(
    pool: Pool,
    organization_id: UUID,
    *,
    status: NodeStatus | None,
    stale_s: float,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> Sequence[Node]:
    """Return up to `limit` nodes, oldest first, from behind the (created_at, id) `after`."""
    async with pool.acquire() as conn:
        rows = await nodes.page(conn, organization_id, status, stale_s, after=after, limit=limit)
    return [shown_node(dict(row)) for row in rows]


@repeated
async def change(
    pool: Pool, organization_id: UUID, node_id: UUID, wanted: Change, *, stale_s: float
) -> Node:
    """Set what is given. Setting a node retired again changes nothing; nothing else brings it back.

    Raises OnlineIsEarned (I24), NodeNotFound, NodeRetired, NodeNameTaken, or NodeHasLeases when
    retiring a busy node.
    """
    if wanted.status == NodeStatus.ONLINE:
        raise OnlineIsEarned
    retiring = wanted.status == NodeStatus.RETIRED
    async with pool.acquire() as conn, conn.transaction():
        locked = await nodes.lock(conn, organization_id, node_id)
        if locked is None:
            raise NodeNotFound(node_id)
        was_retired = locked["status"] == NodeStatus.RETIRED
        if was_retired and wanted != Change(status=NodeStatus.RETIRED):
            raise NodeRetired(locked["name"])
        if retiring and (live := await nodes.live_leases(conn, node_id)):
            raise NodeHasLeases(locked["name"], live)
        if not was_retired:
            try:
                await nodes.change(conn, node_id, wanted)
            except asyncpg.UniqueViolationError:
                raise NodeNameTaken(str(wanted.name)) from None
            if retiring:
                await credentials.bump_version(conn)  # last: its row is the busiest lock
        row = await nodes.show(conn, organization_id, node_id, stale_s)
    if not was_retired:
        log.info("node.changed", node_id=node_id, was=locked["status"], status=wanted.status)
    return _node(row, node_id)


@repeated
async def mark_stale(pool: Pool, *, stale_s: float, limit: int = STALE_BATCH) -> int:
    """Set up to `limit` nodes offline that were silent for too long; return how many."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await nodes.mark_stale(conn, stale_s, limit)
    for row in rows:
        log.warning("node.went_silent", node_id=row["id"], silent_s=row["silent_s"])
    return len(rows)


def _node(row: asyncpg.Record | None, node_id: UUID) -> Node:
    if row is None:
        raise NodeNotFound(node_id)
    return shown_node(dict(row))
