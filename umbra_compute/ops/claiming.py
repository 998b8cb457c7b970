"""Claiming: which jobs a node is given, decided and taken in one transaction (U1)."""

from collections.abc import Sequence
from typing import Any, Final

import attrs
import structlog

from umbra_compute.db import Conn, Pool, repeated
from umbra_compute.errors import NodeNotFound
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.leases import ClaimAsk, Claimed
from umbra_compute.model.nodes import NodeStatus
from umbra_compute.model.placement import Grant, NodeView
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.policy import eligibility, placement
from umbra_compute.policy.views import node_view
from umbra_compute.store import claiming

log = structlog.get_logger(__name__)

TRIES: Final = 3
"""Others may take what was seen waiting before it is locked. Then look again, not say "nothing"."""


@attrs.frozen(kw_only=True)
class Answer:
    """What a node is given, and the node as it was when that was decided."""

    claimed: tuple[Claimed, ...]
    node: NodeView

    @property
    def draining(self) -> bool:
        return self.node.status is NodeStatus.DRAINING


async def claim(
    pool: Pool, catalogue: Catalogue, caller: NodeIdentity, ask: ClaimAsk, *, stale_s: float
) -> Answer:
    """Give the node up to `ask.limit` jobs that it is eligible for now, best first.

    Not to be repeated blindly after a lost reply: the lease of what was claimed then expires.

    Raises NodeNotFound if the node is gone.
    """
    for _ in range(TRIES):
        answer, missed = await _claim_once(pool, catalogue, caller, ask, stale_s=stale_s)
        if answer.claimed or not missed:
            break
    return answer


@repeated
async def _claim_once(
    pool: Pool, catalogue: Catalogue, caller: NodeIdentity, ask: ClaimAsk, *, stale_s: float
) -> tuple[Answer, bool]:
    async with pool.acquire() as conn, conn.transaction():
        # 1. lock the node: its free places are nobody else's until the commit
        locked = await claiming.lock_node(conn, caller.node_id)
        row = None if locked is None else await claiming.snapshot(conn, caller.node_id, stale_s)
        if locked is None or row is None:
            raise NodeNotFound(caller.node_id)
        node = node_view(dict(row))
        # 2. decide on what waits, 3. take it
        grants = await _decide(conn, catalogue, node, ask, locked.registry_version)
        claimed = await _take(conn, node, ask, grants)
    _log(caller, claimed)
    return Answer(claimed=tuple(claimed), node=node), len(claimed) < len(grants)


def _log(caller: NodeIdentity, claimed: Sequence[Claimed]) -> None:
    if len(claimed) == 1:
        [one] = claimed
        log.info(
            "job.claimed",
            job_id=one.job.id,
            lease_id=one.lease_id,
            node_id=caller.node_id,
            attempt=one.job.attempt,
        )
    elif claimed:
        ids = [str(one.job.id) for one in claimed]
        log.info("jobs.claimed", jobs=len(ids), node_id=caller.node_id, job_ids=ids)


async def _decide(
    conn: Conn, catalogue: Catalogue, node: NodeView, ask: ClaimAsk, registry_version: int
) -> tuple[Grant, ...]:
    if eligibility.refuses_now(node) is not None or len(node.reservations) >= node.max_jobs:
        return ()
    kinds = _kinds(node, ask)
    heads = await claiming.waiting(conn, node.organization_id, kinds, ask.limit)
    if not heads:
        return ()
    needs = await catalogue.needs_of(conn, {h.class_id for h in heads}, registry_version)
    return placement.choose(node, needs, [h for h in heads if h.class_id in needs], ask.limit)


def _kinds(node: NodeView, ask: ClaimAsk) -> Sequence[str] | None:
    """Return the kinds to look for: what is asked for and what the node handles; None is any."""
    if ask.kinds is None:
        return None if node.kinds is None else sorted(node.kinds)
    return [kind for kind in ask.kinds if node.kinds is None or kind in node.kinds]


async def _take(
    conn: Conn, node: NodeView, ask: ClaimAsk, grants: Sequence[Grant]
) -> list[Claimed]:
    if not grants:
        return []
    placements = [_placement(node, grant) for grant in grants]
    return await claiming.take(conn, node.node_id, ask, grants, placements)


def _placement(node: NodeView, grant: Grant) -> dict[str, Any]:
    """What is stored with the job: where it runs and why there (SPEC §5)."""
    return {
        "node_id": str(node.node_id),
        "node_name": node.name,
        "device_label": grant.device.label,
        "device_kind": grant.device.kind,
        "reason": grant.reason,
        "score": grant.score.value,
        "score_parts": dict(grant.score.parts),
        "resident": grant.resident,
        "would_evict": [],  # nothing is evicted: only free memory was granted
        "reserved_vram_mb": grant.vram_mb,
        "reserved_ram_mb": grant.ram_mb,
        "estimated_seconds": None,  # not known
    }
