"""Telling the other controllers, hearing them, and polling in case a word was lost."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from uuid import UUID, uuid4

import asyncpg
import structlog

from umbra_compute import db
from umbra_compute.db import Pool
from umbra_compute.store import jobs as store_jobs
from umbra_compute.store import wake as store
from umbra_compute.wake.waiting import Wake

log = structlog.get_logger(__name__)

CHANNEL: Final = "umbra_wake"
GATHER_S: Final = 0.005
"""At most one notification per class and so long. One in each transaction cost two thirds of the
insert rate, this costs nothing: docs/decisions/0003-claim-design.md."""

POLL_S: Final = 1.0
LISTEN_CHECK_S: Final = 5.0
"""Ask the listening connection so often whether it lives: a deaf one is found within 15 s (Q13)."""

RECONNECT_S: Final = 1.0
PER_MESSAGE: Final = 90  # items; a payload over 8,000 bytes is refused, and 90 take 7,000 at most


@asynccontextmanager
async def relaying(wake: Wake, pool: Pool, dsn: str) -> AsyncIterator[None]:
    """Keep this controller's waiters in touch with the others while the block runs."""
    me = uuid4().hex
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_tell(wake, pool, me)),
            group.create_task(_listen(wake, dsn, me)),
            group.create_task(_poll(wake, pool)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _tell(wake: Wake, pool: Pool, me: str) -> None:
    while True:
        await wake.something_to_tell()
        await asyncio.sleep(GATHER_S)
        ready, finished = wake.take_told()
        with suppress(*db.AWAY):  # a lost word costs the others one poll
            await store.tell(pool, CHANNEL, list(messages(me, ready, finished)))


async def _listen(wake: Wake, dsn: str, me: str) -> None:
    was_deaf = False
    while True:
        try:
            conn = await asyncpg.connect(dsn, timeout=db.CONNECT_TIMEOUT_S)
        except db.AWAY:
            await asyncio.sleep(RECONNECT_S)
            continue
        try:
            await conn.add_listener(CHANNEL, lambda *args: hear(wake, me, str(args[3])))
            if was_deaf:
                log.info("wake.listening")
            while True:
                await asyncio.sleep(LISTEN_CHECK_S)
                await conn.fetchval("SELECT 1", timeout=LISTEN_CHECK_S)
        except db.AWAY as exc:
            was_deaf = True
            log.warning("wake.deaf", error=type(exc).__name__)
        finally:
            conn.terminate()


async def _poll(wake: Wake, pool: Pool) -> None:
    while True:
        await asyncio.sleep(POLL_S)
        with suppress(*db.AWAY):
            if organizations := wake.waiting_organizations():
                for row in await store.ready(pool, organizations):
                    wake.heard_ready(row["organization_id"], row["class_id"], row["jobs"])
            if job_ids := wake.waited_for():
                async with pool.acquire() as conn:
                    wake.heard_finished(await store_jobs.finished(conn, job_ids))


def messages(me: str, ready: dict[tuple[UUID, int], int], finished: list[UUID]) -> Iterator[str]:
    """Yield what to tell, in pieces that a notification can hold."""
    classes = [[str(org), class_id, jobs] for (org, class_id), jobs in ready.items()]
    for start in range(0, len(classes), PER_MESSAGE):
        yield json.dumps({"from": me, "ready": classes[start : start + PER_MESSAGE]})
    ids = [str(job_id) for job_id in finished]
    for start in range(0, len(ids), PER_MESSAGE):
        yield json.dumps({"from": me, "finished": ids[start : start + PER_MESSAGE]})


def hear(wake: Wake, me: str, message: str) -> None:
    """Wake whom another controller's message concerns. Our own come back too: they are old."""
    told: dict[str, Any] = json.loads(message)
    if told["from"] == me:
        return
    if "ready" in told:
        for organization_id, class_id, jobs in told["ready"]:
            wake.heard_ready(UUID(organization_id), class_id, jobs)
    if "finished" in told:
        wake.heard_finished(UUID(job_id) for job_id in told["finished"])
