"""What passes over rows that time has changed. Each is one transaction over a bounded batch.

Rows are locked with SKIP LOCKED: controllers sweep at once, and each row falls to one of them.
"""

from collections.abc import Callable
from typing import Final

import structlog

from umbra_compute.db import Pool, repeated
from umbra_compute.ops import ending
from umbra_compute.ops.leases import tell
from umbra_compute.policy import fate
from umbra_compute.store import leases, sweeps
from umbra_compute.wake import Wake

log = structlog.get_logger(__name__)

Jitter = Callable[[], float]

OUTAGE_S: Final = 5.0
"""A gap between rounds that says the database or every controller was away (SPEC §6)."""

HOLD_S: Final = 10.0
"""How long after such a gap leases are left alone: finished work is delivered first (SPEC §6)."""


@repeated
async def expire(pool: Pool, wake: Wake, *, limit: int, draw_jitter: Jitter) -> int:
    """End up to `limit` leases that ran out; return how many (fewer than `limit`: all).

    `draw_jitter` gives a number in [-1, 1] per job.
    """
    async with pool.acquire() as conn, conn.transaction():
        if await sweeps.begin_round(conn, "expire", outage_s=OUTAGE_S, hold_s=HOLD_S):
            return 0
        late = await leases.lock_expired(conn, limit)
        done = await ending.end(
            conn, [(lease, fate.after_expiry(lease, jitter=draw_jitter())) for lease in late]
        )
    tell(done, wake)
    return len(done)


@repeated
async def end_overrun(pool: Pool, wake: Wake, *, limit: int, draw_jitter: Jitter) -> int:
    """End up to `limit` attempts that ran longer than their job allows; return how many."""
    async with pool.acquire() as conn, conn.transaction():
        over = await leases.lock_overrun(conn, limit)
        done = await ending.end(
            conn, [(lease, fate.after_runtime(lease, jitter=draw_jitter())) for lease in over]
        )
    tell(done, wake)
    return len(done)


@repeated
async def end_unheard(pool: Pool, wake: Wake, *, limit: int, grace_s: float) -> int:
    """End up to `limit` jobs whose holder did not answer a cancel in `grace_s`; return how many."""
    async with pool.acquire() as conn, conn.transaction():
        unheard = await leases.lock_unheard(conn, limit, grace_s)
        done = await ending.end(
            conn, [(lease, fate.after_unheard_cancel(lease, grace_s=grace_s)) for lease in unheard]
        )
    tell(done, wake)
    return len(done)


@repeated
async def promote(pool: Pool, wake: Wake, *, limit: int) -> int:
    """Make up to `limit` jobs ready whose time has come; return how many."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await sweeps.promote(conn, limit)
    for row in rows:
        wake.ready(row["organization_id"], row["class_id"], row["jobs"])
    return sum(row["jobs"] for row in rows)


@repeated
async def end_unstarted(pool: Pool, wake: Wake, *, limit: int) -> int:
    """Fail up to `limit` jobs that did not start by their time; return how many."""
    async with pool.acquire() as conn, conn.transaction():
        ids = await sweeps.end_unstarted(conn, limit)
    for job_id in ids:
        log.info("job.not_started", job_id=job_id)
    wake.finished(ids)
    return len(ids)
