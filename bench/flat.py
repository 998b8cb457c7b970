"""What a claim costs beside a backlog: `python -m bench flat`.

Two databases of one server, the same 4,000 waiting jobs in both, the backlog in one. Claims
alternate between them, so both halves of each ratio were measured at the same moments.
"""

import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import asyncpg
import attrs

from bench import rig
from bench.figures import Backlog
from umbra_compute import db
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.jobs import NewJob
from umbra_compute.model.leases import ClaimAsk, Completion, Ended, Held
from umbra_compute.ops import claiming, jobs, leases
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.wake import Wake

READY: Final = 4000
MILLION: Final = 1_000_000
STALE_S: Final = 3600.0
ROUNDS: Final = {1: 150, 100: 12}  # claims of each size; together fewer than READY


@attrs.frozen
class Kind:
    """Rows put beside the waiting jobs. `fits` False: no device has the memory."""

    what: str
    state: str
    rows: int
    priority: int = 100
    fits: bool = True


BACKLOGS: Final = (
    Kind("10,000 eligible", "ready", 10_000),
    Kind("1,000,000 eligible", "ready", MILLION),
    Kind("1,000,000 that fit nowhere, better priority", "ready", MILLION, priority=1, fits=False),
    Kind("1,000,000 for tomorrow, better priority", "scheduled", MILLION, priority=1),
    Kind("1,000,000 running elsewhere", "running", MILLION),
    Kind("1,000,000 complete", "complete", MILLION),
)

_FILL: Final = """
INSERT INTO jobs (id, organization_id, class_id, kind, state, priority, not_before, claimable_at,
                  finished_at, payload, lease_id, lease_owner, lease_expires_at, lease_seconds,
                  lease_device, reserved_vram_mb, reserved_ram_mb)
SELECT gen_random_uuid(), $1, $2, 'work', $3::text, $4,
       now() + CASE WHEN $3 = 'scheduled' THEN interval '1 day' ELSE interval '0' END, now(),
       CASE WHEN $3 = 'complete' THEN now() END, '{"n": 1}',
       gen_random_uuid(), CASE WHEN $3 = 'running' THEN gen_random_uuid() END,
       CASE WHEN $3 = 'running' THEN now() + interval '1 hour' END,
       CASE WHEN $3 = 'running' THEN 3600 END, CASE WHEN $3 = 'running' THEN 'cpu' END,
       CASE WHEN $3 = 'running' THEN 0 END, CASE WHEN $3 = 'running' THEN 0 END
  FROM generate_series(1, $5::integer)
"""


@attrs.frozen
class Side:
    """One of the two databases."""

    dsn: str
    pool: db.Pool
    organization_id: UUID
    node: NodeIdentity
    catalogue: Catalogue = attrs.Factory(Catalogue)
    wake: Wake = attrs.Factory(Wake)

    async def submit(self, new: NewJob, count: int) -> None:
        for _ in range(count // 1000):
            await jobs.submit_all(self.pool, self.catalogue, self.wake, [new] * 1000)

    async def fill(self, kind: Kind) -> None:
        """Put the backlog's rows there; fails if they are not there afterwards."""
        new = rig.new_job(self.organization_id, vram_min_mb=None if kind.fits else 10**6)
        conn = await asyncpg.connect(self.dsn)
        try:
            [class_id] = await self.catalogue.ids_of(conn, [new.class_key])
            await conn.execute(
                _FILL,
                *(self.organization_id, class_id, kind.state, kind.priority, kind.rows),
                timeout=300,
            )
        finally:
            await conn.close()

    async def settle(self) -> int:
        """Return how many rows the table has, after a vacuum and a checkpoint."""
        await rig.vacuum(self.dsn)
        conn = await asyncpg.connect(self.dsn)
        try:
            await conn.execute("CHECKPOINT", timeout=120)
            return int(await conn.fetchval("SELECT count(*) FROM jobs", timeout=120))
        finally:
            await conn.close()

    async def claim_ms(self, limit: int) -> float:
        """Return how long a claim took; the jobs are completed, so that reservations stay few."""
        began = time.perf_counter()
        answer = await claiming.claim(
            self.pool, self.catalogue, self.node, ClaimAsk(limit=limit), stale_s=STALE_S
        )
        took_s = time.perf_counter() - began
        assert len(answer.claimed) == limit
        held = [Held(node=self.node, job_id=c.job.id, lease_id=c.lease_id) for c in answer.claimed]
        done = [Completion(held=one, result=json.dumps({"ok": 1})) for one in held]
        verdicts = await leases.complete(self.pool, self.wake, done)
        assert all(isinstance(verdict, Ended) for verdict in verdicts)
        return took_s * 1000


@asynccontextmanager
async def _side(server: rig.Server, name: str) -> AsyncIterator[Side]:
    dsn = await server.database(name)
    try:
        async with rig.pool_of(dsn, 1) as pool:
            organization_id = await rig.organization(pool)
            node = await rig.node(pool, organization_id, "n")
            side = Side(dsn, pool, organization_id, node)
            await side.submit(rig.new_job(organization_id), READY)
            yield side
    finally:
        await server.drop(name)


async def measure(server: rig.Server) -> list[Backlog]:
    """Return each backlog's ratio."""
    return [await _backlog(server, kind) for kind in BACKLOGS]


async def _backlog(server: rig.Server, kind: Kind) -> Backlog:
    async with _side(server, "alone") as alone, _side(server, "beside") as beside:
        await beside.fill(kind)
        assert await alone.settle() == READY
        rows = await beside.settle()
        assert rows == READY + kind.rows
        one, hundred = [await _paired(alone, beside, limit) for limit in (1, 100)]
    return Backlog(kind.what, rows, *one, *hundred)


async def _paired(alone: Side, beside: Side, limit: int) -> tuple[float, float]:
    """Return the median ms of a claim alone, and beside the backlog as its multiple."""
    taken: dict[str, list[float]] = {alone.dsn: [], beside.dsn: []}
    for n in range(ROUNDS[limit]):
        for side in (alone, beside) if n % 2 else (beside, alone):
            taken[side.dsn].append(await side.claim_ms(limit))
    # The first tenth warms up: statements are prepared, pages read.
    warm = {dsn: statistics.median(ms[len(ms) // 10 :]) for dsn, ms in taken.items()}
    return warm[alone.dsn], warm[beside.dsn] / warm[alone.dsn]
