"""One loop for all sweeps."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import structlog

from umbra_compute import db

log = structlog.get_logger(__name__)

BATCH: Final = 1000  # rows a round; a full one repeats at once
SPREAD: Final = 0.1  # of the interval: controllers do not sweep in step
MOST_WAIT_S: Final = 5.0  # after failing rounds: a database that is back is found in this time


@attrs.frozen
class Sweep:
    """A round returns how many rows it changed."""

    name: str
    round: Callable[[], Awaitable[int]]


async def forever(sweep: Sweep, *, interval_s: float, batch: int = BATCH) -> None:
    """Repeat the sweep's round until cancelled. A failing round is logged and tried again."""
    failed = 0
    while True:
        try:
            changed = await sweep.round()
        except Exception as exc:
            failed += 1
            if isinstance(exc, db.AWAY):
                log.warning("sweep.failed", sweep=sweep.name, error=type(exc).__name__)
            else:
                log.exception("sweep.failed", sweep=sweep.name)
            await asyncio.sleep(min(interval_s * 2.0 ** min(failed, 10), MOST_WAIT_S))
            continue
        if failed:
            log.info("sweep.recovered", sweep=sweep.name, failed_rounds=failed)
            failed = 0
        if changed < batch:
            wait_s = interval_s * random.uniform(1 - SPREAD, 1 + SPREAD)  # noqa: S311
            await asyncio.sleep(wait_s)
