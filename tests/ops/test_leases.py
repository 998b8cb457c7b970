"""Holding a job: only the live lease writes, and a repeated call gets its answer again."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import attrs
import pytest

from tests.world import World, an_organization, held, pass_time
from umbra_compute.db import Pool
from umbra_compute.errors import JobNotFound, LeaseLost, UmbraError
from umbra_compute.model.jobs import JobStatus
from umbra_compute.model.leases import Completion, Ended, Held, Renewal, Renewed
from umbra_compute.ops import jobs, leases, sweeping


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


async def renew(world: World, holder: Held) -> Renewed:
    [verdict] = await leases.renew(world.pool, [Renewal(held=holder)])
    if isinstance(verdict, UmbraError):
        raise verdict
    return verdict


async def complete(world: World, holder: Held, result: str = '{"ok": 1}') -> Ended:
    [verdict] = await leases.complete(
        world.pool, world.wake, [Completion(held=holder, result=result)]
    )
    if isinstance(verdict, UmbraError):
        raise verdict
    return verdict


async def fail(world: World, holder: Held, *, retry: bool = True) -> Ended:
    return await leases.fail(
        world.pool, world.wake, holder, error="boom", retry=retry, retry_after_s=None, jitter=0.0
    )


async def release(world: World, holder: Held) -> Ended:
    return await leases.release(world.pool, world.wake, holder, reason="drain")


Call = Callable[[World, Held], Awaitable[object]]
CALLS: list[Call] = [renew, complete, fail, release]


async def everything(pool: Pool) -> list[object]:
    return [await pool.fetch("SELECT * FROM jobs"), await pool.fetch("SELECT * FROM job_events")]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrong", ["lease", "node", "tenant", "job"])
async def test_only_the_live_lease_of_the_calling_node_writes_u2(
    world: World, call: Call, wrong: str
) -> None:
    holder = await world.running(await world.node())
    stranger = attrs.evolve(holder.node, organization_id=await an_organization(world.pool))
    wrongly = {
        "lease": attrs.evolve(holder, lease_id=uuid4()),
        "node": attrs.evolve(holder, node=await world.node("n2")),
        "tenant": attrs.evolve(holder, node=attrs.evolve(stranger, node_id=uuid4())),
        "job": attrs.evolve(holder, job_id=uuid4()),
    }[wrong]
    before = await everything(world.pool)
    with pytest.raises(LeaseLost if wrong in ("lease", "node") else JobNotFound):
        await call(world, wrongly)
    assert await everything(world.pool) == before


@pytest.mark.parametrize("call", [renew, fail, release])
async def test_an_expired_lease_is_lost_even_if_nobody_took_the_job_p27(
    world: World, call: Call
) -> None:
    holder = await world.running(await world.node(), lease_seconds=30)
    await pass_time(world.pool, 31)
    before = await everything(world.pool)
    with pytest.raises(LeaseLost):
        await call(world, holder)
    assert await everything(world.pool) == before


async def test_a_result_is_accepted_as_long_as_its_lease_was_not_ended(world: World) -> None:
    holder = await world.running(await world.node(), lease_seconds=30)
    await pass_time(world.pool, 31)
    assert (await complete(world, holder)).status is JobStatus.COMPLETE


async def test_renewing_moves_the_expiry_and_keeps_what_the_work_says(world: World) -> None:
    holder = await world.running(await world.node(), lease_seconds=30)
    await pass_time(world.pool, 20)
    told = Renewal(held=holder, lease_seconds=None, progress='{"fraction": 0.0, "message": null}')
    [renewed] = await leases.renew(world.pool, [told])
    assert isinstance(renewed, Renewed)
    assert (renewed.expires_in_s, renewed.lease_seconds) == (30.0, 30)
    await renew(world, holder)  # says nothing of progress, and so changes nothing
    job = await jobs.get(world.pool, world.organization_id, holder.job_id)
    assert job.progress == '{"message": null, "fraction": 0.0}'


@pytest.mark.parametrize("call", [complete, fail, release])
async def test_the_same_call_again_gets_the_same_answer_and_changes_nothing(
    world: World, call: Call
) -> None:
    holder = await world.running(await world.node())
    answer = await call(world, holder)
    before = await everything(world.pool)
    assert await call(world, holder) == answer
    assert await everything(world.pool) == before


async def test_a_replay_is_answered_after_the_job_went_on_elsewhere(world: World) -> None:
    first, second = await world.node(), await world.node("n2")
    holder = await world.running(first)
    answer = await release(world, holder)
    await world.claim(second)
    assert await release(world, holder) == answer
    with pytest.raises(LeaseLost):
        await complete(world, holder)
    assert await world.status(holder.job_id) == "running"


@pytest.mark.parametrize("other", [fail, release])
async def test_an_accepted_result_is_never_changed_u3(world: World, other: Call) -> None:
    holder = await world.running(await world.node())
    await complete(world, holder, '{"first": 1}')
    await complete(world, holder, '{"second": 2}')
    with pytest.raises(LeaseLost):
        await other(world, holder)
    job = await jobs.get(world.pool, world.organization_id, holder.job_id)
    assert (job.status, job.result) == (JobStatus.COMPLETE, '{"first": 1}')
    assert await world.events(holder.job_id) == ["queued", "claimed", "completed"]


async def test_a_lost_item_does_not_fail_its_neighbours(world: World) -> None:
    node = await world.node()
    await world.submit(world.new(), world.new())
    good, bad = [held(node, one) for one in await world.claim(node, limit=2)]
    bad = attrs.evolve(bad, lease_id=uuid4())
    unknown = attrs.evolve(bad, job_id=uuid4())
    verdicts = await leases.complete(
        world.pool, world.wake, [Completion(held=h, result="null") for h in (bad, good, unknown)]
    )
    assert [getattr(v, "code", "complete") for v in verdicts] == [
        "lease_lost",
        "complete",
        "job_not_found",
    ]


async def test_a_failure_waits_its_backoff_and_then_runs_again(world: World) -> None:
    node = await world.node()
    holder = await world.running(node)
    ended = await fail(world, holder)
    assert (ended.status, ended.attempt) == (JobStatus.QUEUED, 1)
    assert await world.claim(node) == []
    await pass_time(world.pool, 4.5)
    assert await sweeping.promote(world.pool, world.wake, limit=10) == 0
    await pass_time(world.pool, 1)
    assert await sweeping.promote(world.pool, world.wake, limit=10) == 1
    [again] = await world.claim(node)
    assert (again.job.attempt, again.job.error) == (2, "boom")
    assert again.lease_id != holder.lease_id


async def test_a_release_burns_no_attempt_and_keeps_the_place(world: World) -> None:
    node = await world.node()
    holder = await world.running(node, world.new(max_attempts=1))
    await world.submit()
    for _ in range(3):
        await release(world, holder)
        [claimed] = await world.claim(node)
        assert (claimed.job.id, claimed.job.attempt) == (holder.job_id, 1)
        holder = held(node, claimed)


async def test_late_reports_of_an_earlier_attempt_change_nothing_n08(world: World) -> None:
    first, second = await world.node(), await world.node("n2")
    old = await world.running(first, world.new(max_attempts=2), lease_seconds=5)
    await pass_time(world.pool, 6)
    await sweeping.expire(world.pool, world.wake, limit=10, draw_jitter=lambda: 0.0)
    await pass_time(world.pool, 6)
    await sweeping.promote(world.pool, world.wake, limit=10)
    [claimed] = await world.claim(second)
    await fail(world, held(second, claimed))
    before = await everything(world.pool)
    for call in CALLS:
        with pytest.raises(LeaseLost):
            await call(world, old)
    assert await everything(world.pool) == before
    assert await world.status(old.job_id) == "failed"


async def test_a_running_job_is_asked_to_cancel_and_its_holders_word_ends_it(world: World) -> None:
    for confirm in (fail, release):
        holder = await world.running(await world.node(confirm.__name__))
        job = await jobs.cancel(world.pool, world.wake, world.organization_id, holder.job_id)
        assert (job.status, job.cancel_requested) == (JobStatus.RUNNING, True)
        assert (await renew(world, holder)).cancel_requested
        assert (await confirm(world, holder)).status is JobStatus.CANCELLED
        assert (await world.events(holder.job_id))[2:] == ["cancel_requested", "cancelled"]


async def test_a_completion_that_still_arrives_is_kept(world: World) -> None:
    holder = await world.running(await world.node())
    await jobs.cancel(world.pool, world.wake, world.organization_id, holder.job_id)
    assert (await complete(world, holder)).status is JobStatus.COMPLETE


async def test_a_completion_and_an_expiry_at_once_have_one_outcome_q18(world: World) -> None:
    node = await world.node()
    await world.pool.execute("INSERT INTO sweep_rounds VALUES ('expire', now())")
    await world.submit(*(world.new(max_attempts=1) for _ in range(50)))
    holders = [held(node, one) for one in await world.claim(node, limit=50)]
    await world.pool.execute("UPDATE jobs SET lease_expires_at = now() - interval '1 s'")

    async def sweep() -> None:
        while await sweeping.expire(world.pool, world.wake, limit=3, draw_jitter=lambda: 0.0):
            pass

    calls = [complete(world, holder) for holder in holders]
    await asyncio.gather(*calls, sweep(), sweep(), return_exceptions=True)
    for holder in holders:
        told = await world.events(holder.job_id)
        status = await world.status(holder.job_id)
        assert (status, told[2:]) in [("complete", ["completed"]), ("failed", ["lease_expired"])]
