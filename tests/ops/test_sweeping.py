"""What time changes: expiry, runtime, unheard cancels; and the loop that repeats it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.world import World, pass_time, until
from umbra_compute import db
from umbra_compute.db import Pool
from umbra_compute.model.jobs import JobStatus
from umbra_compute.ops import jobs, sweeping
from umbra_compute.sweeps import running
from umbra_compute.sweeps.loop import Sweep, forever


@pytest.fixture
async def world(pool: Pool) -> World:
    await pool.execute("INSERT INTO sweep_rounds VALUES ('expire', statement_timestamp())")
    return await World.make(pool)


async def expire(world: World, limit: int = 10) -> int:
    return await sweeping.expire(world.pool, world.wake, limit=limit, draw_jitter=lambda: 0.0)


async def test_an_expired_lease_returns_the_job_with_the_backoff_of_its_attempt_s24(
    world: World,
) -> None:
    node = await world.node()
    holder = await world.running(node, world.new(max_attempts=3), lease_seconds=5)
    for wait_s in (5, 10):
        assert await expire(world) == 0
        await pass_time(world.pool, 6)
        assert await expire(world) == 1
        assert await world.status(holder.job_id) == "queued"
        await pass_time(world.pool, wait_s - 0.5)
        assert await sweeping.promote(world.pool, world.wake, limit=10) == 0
        await pass_time(world.pool, 1)
        assert await sweeping.promote(world.pool, world.wake, limit=10) == 1
        await world.pool.execute("UPDATE compute_nodes SET last_heartbeat_at = now()")
        assert len(await world.claim(node, lease_seconds=5)) == 1
    await pass_time(world.pool, 6)
    assert await expire(world) == 1
    job = await jobs.get(world.pool, world.organization_id, holder.job_id)
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert "expired" in job.error
    assert str(node.node_id) in job.error
    assert (await world.events(holder.job_id)).count("lease_expired") == 3


async def test_a_lease_that_is_renewed_is_never_touched_q02(world: World) -> None:
    node = await world.node()
    await world.running(node, lease_seconds=60)
    await pass_time(world.pool, 59)
    assert await expire(world) == 0


async def test_sweeps_at_once_end_each_lease_once(world: World) -> None:
    node = await world.node()
    ids = await world.submit(*(world.new() for _ in range(20)))
    await world.claim(node, limit=20)
    await world.pool.execute("UPDATE jobs SET lease_expires_at = now() - interval '1 s'")
    assert sum(await asyncio.gather(*(expire(world, 7) for _ in range(8)))) == 20
    for job_id in ids:
        assert (await world.events(job_id)).count("lease_expired") == 1


async def test_after_an_outage_leases_are_left_alone_until_results_could_be_delivered(
    world: World,
) -> None:
    await world.running(await world.node(), lease_seconds=5)
    await pass_time(world.pool, 6)
    await world.pool.execute("UPDATE sweep_rounds SET succeeded_at = now() - interval '6 s'")
    assert await expire(world) == 0
    await world.pool.execute("UPDATE sweep_rounds SET hold_until = hold_until - interval '9 s'")
    assert await expire(world) == 0
    await world.pool.execute("UPDATE sweep_rounds SET hold_until = hold_until - interval '2 s'")
    assert await expire(world) == 1


async def test_work_that_runs_longer_than_it_may_is_ended(world: World) -> None:
    node = await world.node()
    holder = await world.running(node, world.new(max_runtime_s=60), lease_seconds=3600)

    async def sweep() -> int:
        return await sweeping.end_overrun(world.pool, world.wake, limit=10, draw_jitter=lambda: 0.0)

    await pass_time(world.pool, 69)  # ten seconds more than allowed: the agent is first
    assert await sweep() == 0
    await pass_time(world.pool, 2)
    assert await sweep() == 1
    job = await jobs.get(world.pool, world.organization_id, holder.job_id)
    assert job.status is JobStatus.QUEUED
    assert job.error is not None
    assert "max_runtime_s = 60" in job.error


async def test_a_cancel_that_nobody_confirms_ends_the_lease(world: World) -> None:
    holder = await world.running(await world.node(), lease_seconds=3600)
    await jobs.cancel(world.pool, world.wake, world.organization_id, holder.job_id)
    await pass_time(world.pool, 29)
    assert await sweeping.end_unheard(world.pool, world.wake, limit=10, grace_s=30) == 0
    await pass_time(world.pool, 2)
    assert await sweeping.end_unheard(world.pool, world.wake, limit=10, grace_s=30) == 1
    assert await world.status(holder.job_id) == "cancelled"


async def test_a_lease_that_expires_while_it_is_to_cancel_is_cancelled_n17(world: World) -> None:
    node = await world.node()
    holder = await world.running(node, lease_seconds=5)
    await jobs.cancel(world.pool, world.wake, world.organization_id, holder.job_id)
    await pass_time(world.pool, 6)
    assert await expire(world) == 1
    assert await world.status(holder.job_id) == "cancelled"
    assert await world.claim(node) == []


async def test_every_ending_frees_what_was_reserved_p03(world: World) -> None:
    node = await world.node()
    holder = await world.running(node, lease_seconds=5)
    await pass_time(world.pool, 6)
    await expire(world)
    row = await world.pool.fetchrow("SELECT * FROM jobs WHERE id = $1", holder.job_id)
    assert row is not None
    assert (row["lease_owner"], row["reserved_ram_mb"], row["lease_id"]) == (
        None,
        None,
        holder.lease_id,  # stays, to answer what is repeated
    )


async def test_the_sweeper_returns_an_expired_lease(world: World) -> None:
    holder = await world.running(await world.node(), lease_seconds=5)
    await world.pool.execute("UPDATE jobs SET lease_expires_at = now() - interval '1 s'")
    async with running(world.pool, world.wake, interval_s=0.01, stale_s=45, cancel_grace_s=30):

        async def returned() -> bool:
            return await world.status(holder.job_id) == "queued"

        await until(returned)


async def test_the_sweeper_survives_a_failing_round(world: World) -> None:
    holder = await world.running(await world.node(), lease_seconds=5)
    await world.pool.execute("UPDATE jobs SET lease_expires_at = now() - interval '1 s'")
    await world.pool.execute("ALTER TABLE job_events ADD CONSTRAINT closed CHECK (false) NOT VALID")
    with capture_logs() as logged:
        async with running(world.pool, world.wake, interval_s=0.01, stale_s=45, cancel_grace_s=30):

            async def failed() -> bool:
                return any(line["event"] == "sweep.failed" for line in logged)

            await until(failed)
            assert await world.status(holder.job_id) == "running"
            await world.pool.execute("ALTER TABLE job_events DROP CONSTRAINT closed")

            async def returned() -> bool:
                return await world.status(holder.job_id) == "queued"

            await until(returned)


async def test_a_full_round_repeats_at_once_and_the_database_away_is_survived() -> None:
    rounds: list[Any] = [2, ConnectionResetError(), 2, 0]
    done = asyncio.Event()

    async def one() -> int:
        if not rounds:
            done.set()
            return 0
        answer = rounds.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(forever(Sweep("s", one), interval_s=0.001, batch=2))
        async with asyncio.timeout(10):
            await done.wait()
        task.cancel()


async def test_a_sweep_that_ends_leaves_no_transaction_open(world: World, dsn: str) -> None:
    async with await db.open_pool(dsn, size=1) as one:
        async with running(one, world.wake, interval_s=0.01, stale_s=45, cancel_grace_s=30):
            await world.submit()
        assert await one.fetchval("SELECT 1") == 1
