"""Periodic passes over rows. They start with the process, live as long, and survive a bad round."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from umbra_compute.db import Pool
from umbra_compute.ops import nodes, sweeping
from umbra_compute.sweeps.loop import BATCH, Sweep, forever
from umbra_compute.wake import Wake


@asynccontextmanager
async def running(
    pool: Pool, wake: Wake, *, interval_s: float, stale_s: float, cancel_grace_s: float
) -> AsyncIterator[None]:
    """Run every sweep while the block runs. One that ends by itself ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(forever(sweep, interval_s=interval_s))
            for sweep in sweeps(pool, wake, stale_s=stale_s, cancel_grace_s=cancel_grace_s)
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def sweeps(pool: Pool, wake: Wake, *, stale_s: float, cancel_grace_s: float) -> list[Sweep]:
    """Return each sweep: its name, and one round of it."""
    return [
        Sweep(
            "expire",
            lambda: sweeping.expire(pool, wake, limit=BATCH, draw_jitter=draw_jitter),
        ),
        Sweep("promote", lambda: sweeping.promote(pool, wake, limit=BATCH)),
        Sweep("start_by", lambda: sweeping.end_unstarted(pool, wake, limit=BATCH)),
        Sweep(
            "runtime",
            lambda: sweeping.end_overrun(pool, wake, limit=BATCH, draw_jitter=draw_jitter),
        ),
        Sweep(
            "cancel",
            lambda: sweeping.end_unheard(pool, wake, limit=BATCH, grace_s=cancel_grace_s),
        ),
        Sweep("stale", lambda: nodes.mark_stale(pool, stale_s=stale_s)),
    ]


def draw_jitter() -> float:
    """Return a number in [-1, 1] that spreads what died together."""
    return random.uniform(-1, 1)  # noqa: S311 - spreads load, guards nothing
