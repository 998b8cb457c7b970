"""The operations without HTTP: submit, claim and complete on connections of this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench import rig
from bench.rig import Figure
from umbra_compute import db
from umbra_compute.coalesce import Coalescer
from umbra_compute.model.jobs import NewJob, Submitted
from umbra_compute.model.leases import ClaimAsk, Completion, Held
from umbra_compute.ops import claiming, jobs, leases
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.wake import Wake

SINGLES = 8000
BATCHED = 60_000
STALE_S = 3600.0


@asynccontextmanager
async def _world(server: str, name: str, size: int) -> AsyncIterator[tuple[db.Pool, Catalogue]]:
    dsn = await rig.database(server, name)
    async with rig.pool_of(dsn, size) as pool:
        yield pool, Catalogue()


async def measure(server: str, limits: dict[str, float]) -> list[Figure]:
    """Return the rates in jobs a second, each beside its raw limit."""
    figures = []
    async with _world(server, "submits", 16) as (pool, catalogue):
        organization = await rig.organization(pool)
        new = rig.new_job(organization)
        wake = Wake()
        submit: Coalescer[NewJob, Submitted] = Coalescer(
            lambda items: jobs.submit(pool, catalogue, wake, items)
        )

        async def one_by_one(_: int) -> None:
            for _ in range(SINGLES // 32):
                await submit(new)

        async def bulk(_: int) -> None:
            for _ in range(BATCHED // 4 // 1000):
                await jobs.submit_all(pool, catalogue, wake, [new] * 1000)

        took_s = await rig.seconds(lambda: rig.gather(32, one_by_one))
        figures.append(_figure("submit, single, 32 at once", SINGLES / took_s, limits, "insert 16"))
        took_s = await rig.seconds(lambda: rig.gather(4, bulk))
        figures.append(
            _figure("submit, 1,000 at a time, 4 at once", BATCHED / took_s, limits, "insert 16")
        )
    for limit, workers, total in ((1, 8, SINGLES), (100, 4, BATCHED)):
        rate = await _drain(server, limit, workers, total)
        what = f"claim + complete, {limit} at a time, {workers} connections"
        raw = "claim + complete 8" if limit == 1 else "claim + complete of 100, 4"
        figures.append(_figure(what, rate, limits, raw))
    return figures


async def _drain(server: str, limit: int, workers: int, total: int) -> float:
    async with _world(server, f"drain_{limit}", workers) as (pool, catalogue):
        organization = await rig.organization(pool)
        wake = Wake()
        new = [rig.new_job(organization)] * 1000
        for _ in range(total // 1000):
            await jobs.submit_all(pool, catalogue, wake, new)
        await pool.execute("VACUUM ANALYZE jobs")
        nodes = [await rig.node(pool, organization, f"n{n}") for n in range(workers)]
        ask = ClaimAsk(limit=limit)

        async def work(n: int) -> None:
            while True:
                answer = await claiming.claim(pool, catalogue, nodes[n], ask, stale_s=STALE_S)
                if not answer.claimed:
                    return
                done = [
                    Completion(
                        held=Held(node=nodes[n], job_id=one.job.id, lease_id=one.lease_id),
                        result='{"ok": 1}',
                    )
                    for one in answer.claimed
                ]
                await leases.complete(pool, wake, done)

        return total / await rig.seconds(lambda: rig.gather(workers, work))


def _figure(what: str, rate: float, limits: dict[str, float], raw: str) -> Figure:
    return Figure(f"in process: {what}", rate, "jobs/s", limits[raw], raw)
