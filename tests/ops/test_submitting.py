"""Submitting, idempotency, reading, cancelling."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from tests.world import World, an_organization, pass_time
from umbra_compute.db import Pool
from umbra_compute.errors import IdempotencyMismatch, JobNotFound
from umbra_compute.model.jobs import JobStatus, NewJob, Requires, Submitted
from umbra_compute.ops import jobs, sweeping
from umbra_compute.store.jobs import Filter


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


async def test_zero_is_zero_and_absent_is_null(world: World) -> None:
    [job_id] = await world.submit(world.new(priority=0, payload="0", max_attempts=1))
    job = await jobs.get(world.pool, world.organization_id, job_id)
    assert (job.priority, job.payload, job.max_attempts) == (0, "0", 1)
    assert (job.project_id, job.result, job.error, job.started_at) == (None, None, None, None)
    assert job.status is JobStatus.QUEUED
    assert await world.events(job_id) == ["queued"]


async def test_the_same_key_and_body_is_the_same_job_and_another_body_is_refused(
    world: World,
) -> None:
    def asked(body: bytes) -> list[NewJob]:
        return [world.new(idempotency_key="k", idempotency_hash=body)]

    first, again = [
        (await jobs.submit(world.pool, world.catalogue, world.wake, asked(b"a")))[0]
        for _ in range(2)
    ]
    assert isinstance(first, Submitted)
    assert isinstance(again, Submitted)
    assert (first.created, again.created, again.job.id) == (True, False, first.job.id)
    [other] = await jobs.submit(world.pool, world.catalogue, world.wake, asked(b"b"))
    assert isinstance(other, IdempotencyMismatch)
    assert str(first.job.id) in str(other)


async def test_two_at_once_with_one_key_get_the_one_job_s18(world: World) -> None:
    async def one() -> UUID:
        [job_id] = await world.submit(world.new(idempotency_key="k"))
        return job_id

    ids = await asyncio.gather(*(one() for _ in range(16)))
    assert len(set(ids)) == 1
    assert await world.pool.fetchval("SELECT count(*) FROM jobs") == 1


async def test_keys_are_of_one_organization_s18(world: World, pool: Pool) -> None:
    other = World(pool, await an_organization(pool))
    [mine] = await world.submit(world.new(idempotency_key="k"))
    [theirs] = await other.submit(other.new(idempotency_key="k"))
    assert mine != theirs


async def test_a_batch_is_stored_whole_or_not_at_all(world: World) -> None:
    await world.submit(world.new(idempotency_key="k", idempotency_hash=b"a"))
    batch = [world.new(), world.new(idempotency_key="k", idempotency_hash=b"b")]
    with pytest.raises(IdempotencyMismatch):
        await jobs.submit_all(world.pool, world.catalogue, world.wake, batch)
    assert await world.pool.fetchval("SELECT count(*) FROM jobs") == 1


async def test_a_key_twice_in_a_batch_is_one_job(world: World) -> None:
    batch = [world.new(idempotency_key="k"), world.new(), world.new(idempotency_key="k")]
    first, plain, second = await jobs.submit_all(world.pool, world.catalogue, world.wake, batch)
    assert (first.job.id, first.created) == (second.job.id, True)
    assert (plain.created, second.created) == (True, False)


async def test_alike_jobs_share_a_class_and_others_do_not(world: World) -> None:
    await world.submit(
        world.new(requires=Requires(vram_min_mb=0)),
        world.new(requires=Requires(vram_min_mb=0), max_runtime_s=5),
        world.new(),
        world.new(kind="other"),
    )
    rows = await world.pool.fetch("SELECT class_id FROM jobs ORDER BY seq")
    first, alike, unlike, other = [row["class_id"] for row in rows]
    assert first == alike
    assert len({first, unlike, other}) == 3


async def test_max_runtime_is_shown_among_what_the_job_requires(world: World) -> None:
    [job_id] = await world.submit(
        world.new(requires=Requires(models=("b/x", "a:1")), max_runtime_s=5)
    )
    job = await jobs.get(world.pool, world.organization_id, job_id)
    assert job.requires == '{"models": ["a:1", "b/x"], "max_runtime_s": 5}'


async def test_a_later_job_waits_until_its_time(world: World) -> None:
    node = await world.node()
    [later] = await world.submit(world.new(delay_s=60.0))
    assert await world.claim(node) == []
    assert await sweeping.promote(world.pool, world.wake, limit=10) == 0
    await world.pool.execute("UPDATE jobs SET not_before = not_before - interval '61 s'")
    assert await sweeping.promote(world.pool, world.wake, limit=10) == 1
    [claimed] = await world.claim(node)
    assert claimed.job.id == later


async def test_a_start_in_the_past_does_not_jump_the_line(world: World) -> None:
    node = await world.node()
    [first] = await world.submit()
    await world.submit(world.new(not_before=datetime(2020, 1, 1, tzinfo=UTC)))
    [claimed] = await world.claim(node)
    assert claimed.job.id == first


async def test_a_job_that_does_not_start_in_time_fails_and_says_what_kept_it_q09(
    world: World,
) -> None:
    [job_id] = await world.submit(world.new(start_by_s=5.0))
    await world.pool.execute(
        "UPDATE requirement_classes SET blocked_at = now(), blocked_reason = 'no node has cuda'"
    )
    assert await sweeping.end_unstarted(world.pool, world.wake, limit=10) == 0
    await pass_time(world.pool, 6)
    assert await sweeping.end_unstarted(world.pool, world.wake, limit=10) == 1
    job = await jobs.get(world.pool, world.organization_id, job_id)
    assert job.status is JobStatus.FAILED
    assert job.error == "not started within 5 s: no node has cuda"


async def test_a_blocked_class_shows_on_its_jobs_and_is_never_claimed(world: World) -> None:
    node = await world.node()
    [job_id] = await world.submit()
    await world.pool.execute(
        "UPDATE requirement_classes SET blocked_at = now(), blocked_reason = 'no node has cuda'"
    )
    job = await jobs.get(world.pool, world.organization_id, job_id)
    assert (job.status, job.blocked) == (JobStatus.BLOCKED, "no node has cuda")
    assert await world.claim(node) == []


async def test_another_tenants_job_and_a_made_up_one_are_the_same_u6(
    world: World, pool: Pool
) -> None:
    other = await an_organization(pool)
    [job_id] = await world.submit()
    for asked in (job_id, uuid4()):
        with pytest.raises(JobNotFound):
            await jobs.get(pool, other, asked)
        with pytest.raises(JobNotFound):
            await jobs.cancel(pool, world.wake, other, asked)
    assert await world.status(job_id) == "queued"
    everything = Filter()
    assert await jobs.list_page(pool, other, everything, before=None, limit=10) == []


async def test_pages_hold_every_job_once_newest_first(world: World) -> None:
    ids = await world.submit(*(world.new() for _ in range(25)))
    seen: list[UUID] = []
    before = None
    while page := await jobs.list_page(
        world.pool, world.organization_id, Filter(), before=before, limit=7
    ):
        seen += [job.id for job in page]
        before = (page[-1].created_at, page[-1].id)
    assert sorted(seen) == sorted(ids)
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(status="queued"), 2),
        (Filter(status="running"), 1),
        (Filter(kind="other"), 1),
        (Filter(project_id="p"), 1),
        (Filter(parent_job_id=UUID(int=5)), 0),
        (Filter(node_id=UUID(int=5)), 0),
    ],
)
async def test_lists_are_filtered(world: World, wanted: Filter, expected: int) -> None:
    node = await world.node()
    await world.submit(world.new("other", priority=0), world.new(project_id="p"), world.new())
    await world.claim(node)
    page = await jobs.list_page(world.pool, world.organization_id, wanted, before=None, limit=10)
    assert len(page) == expected


async def test_a_waiting_job_is_cancelled_at_once_and_again_is_no_error(world: World) -> None:
    node = await world.node()
    [job_id] = await world.submit()
    for _ in range(2):
        job = await jobs.cancel(world.pool, world.wake, world.organization_id, job_id)
        assert job.status is JobStatus.CANCELLED
        assert job.finished_at is not None
    assert await world.events(job_id) == ["queued", "cancelled"]
    assert await world.claim(node) == []


async def test_a_finished_job_is_not_cancelled(world: World) -> None:
    node = await world.node()
    held = await world.running(node)
    await world.pool.execute(
        """UPDATE jobs SET state = 'failed', finished_at = now(), lease_owner = NULL,
                  lease_expires_at = NULL, lease_seconds = NULL, lease_device = NULL,
                  reserved_vram_mb = NULL, reserved_ram_mb = NULL"""
    )
    job = await jobs.cancel(world.pool, world.wake, world.organization_id, held.job_id)
    assert job.status is JobStatus.FAILED
