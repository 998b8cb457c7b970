"""A node is given what it is eligible for at that moment, and nothing twice."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from tests.world import World, an_organization, held, pass_time
from umbra_compute import db
from umbra_compute.db import Pool
from umbra_compute.errors import NodeNotFound
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.jobs import JobStatus, Prefer, Requires
from umbra_compute.model.leases import Completion
from umbra_compute.ops import jobs, leases


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


async def test_a_claim_starts_an_attempt_under_a_lease(world: World) -> None:
    node = await world.node()
    [job_id] = await world.submit()
    [claimed] = await world.claim(node, lease_seconds=30)
    assert (claimed.job.id, claimed.job.attempt, claimed.lease_seconds) == (job_id, 1, 30)
    job = await jobs.get(world.pool, world.organization_id, job_id)
    assert (job.status, job.lease_owner) == (JobStatus.RUNNING, node.node_id)
    assert job.lease_id == claimed.lease_id
    assert job.started_at is not None
    assert await world.events(job_id) == ["queued", "claimed"]


async def test_what_a_claim_hands_over_is_what_the_api_shows(world: World) -> None:
    node = await world.node()
    await world.submit(world.new(requires=Requires(ram_min_mb=5), max_runtime_s=9, payload="[1]"))
    [claimed] = await world.claim(node)
    assert claimed.job == await jobs.get(world.pool, world.organization_id, claimed.job.id)


async def test_the_line_is_priority_then_time_then_arrival_over_all_classes(world: World) -> None:
    node = await world.node()
    ids = await world.submit(
        world.new(priority=5),
        world.new("b", priority=0),
        world.new(priority=5),
        world.new("c", priority=5),
    )
    claimed = await world.claim(node, limit=10)
    assert [one.job.id for one in claimed] == [ids[1], ids[0], ids[2], ids[3]]


REFUSED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"status": "draining"}, {}),
    ({"status": "offline"}, {}),
    ({"status": "provisioning"}, {}),
    ({"status": "retired"}, {}),
    ({"kinds": ["other"]}, {}),
    ({"max_jobs": 0}, {}),
    ({}, {"trust_domains": ("office",)}),
    ({}, {"accelerators": ("cuda",)}),
    ({}, {"ram_min_mb": 8001}),
    ({}, {"models": ("unregistered",)}),
]


@pytest.mark.parametrize(("columns", "asked"), REFUSED)
async def test_a_node_gets_nothing_that_it_is_not_eligible_for_s01(
    world: World, columns: dict[str, Any], asked: dict[str, Any]
) -> None:
    node = await world.node(**columns)
    [job_id] = await world.submit(world.new(requires=Requires(**asked)))
    assert await world.claim(node, limit=10) == []
    assert await world.status(job_id) == "queued"
    assert await world.events(job_id) == ["queued"]


async def test_a_silent_node_gets_nothing_swept_or_not_i24(world: World) -> None:
    node = await world.node()
    await world.submit()
    await pass_time(world.pool, 46)
    assert await world.claim(node) == []
    await world.pool.execute("UPDATE compute_nodes SET heartbeat_interval_s = 60")
    assert len(await world.claim(node)) == 1  # it was promised a longer interval


async def test_a_model_is_judged_by_the_registry_as_it_is_now(world: World) -> None:
    node = await world.node()
    await world.submit(world.new(requires=Requires(models=("llm",))))
    assert await world.claim(node) == []
    await world.pool.execute(
        """INSERT INTO model_registry (organization_id, slug, ram_min_mb)
           VALUES ($1, 'llm', 9000)""",
        world.organization_id,
    )
    await world.pool.execute("UPDATE organizations SET registry_version = registry_version + 1")
    assert await world.claim(node) == []
    await world.pool.execute("UPDATE model_registry SET ram_min_mb = 100")
    await world.pool.execute("UPDATE organizations SET registry_version = registry_version + 1")
    [claimed] = await world.claim(node)
    assert json.loads(claimed.placement)["reserved_ram_mb"] == 100


async def test_only_the_kinds_that_were_asked_for_are_given(world: World) -> None:
    node = await world.node(kinds=["a", "b"])
    await world.submit(world.new("a"), world.new("b"), world.new("c"))
    claimed = await world.claim(node, kinds=("b", "c"), limit=10)
    assert [one.job.kind for one in claimed] == ["b"]
    assert await world.claim(node, kinds=(), limit=10) == []


async def test_another_organizations_jobs_are_never_given_u6(world: World, pool: Pool) -> None:
    other = World(pool, await an_organization(pool))
    await other.submit()
    assert await world.claim(await world.node()) == []


async def test_the_stored_placement_is_what_the_claim_decided_on_s02(world: World) -> None:
    node = await world.node()
    await world.no_devices(node.node_id)
    await world.device(node.node_id, label="card", kind="gpu_discrete", vram_total_mb=9000,
                       vram_free_mb=9000)  # fmt: skip
    await world.submit(world.new(requires=Requires(vram_min_mb=4000), prefer=Prefer(node="n1")))
    [claimed] = await world.claim(node)
    job = await jobs.get(world.pool, world.organization_id, claimed.job.id)
    assert job.placement is not None
    told = json.loads(job.placement)
    assert told == json.loads(claimed.placement)
    assert (told["node_id"], told["device_label"]) == (str(node.node_id), "card")
    assert told["reason"] == "local_affinity:gpu_discrete"
    assert (told["reserved_vram_mb"], told["reserved_ram_mb"]) == (4000, 0)


async def test_memory_is_not_promised_twice_before_the_first_report_p02(world: World) -> None:
    node = await world.node()
    await world.no_devices(node.node_id)
    await world.device(node.node_id, label="card", kind="gpu_discrete", vram_total_mb=24000,
                       vram_free_mb=24000)  # fmt: skip
    await world.submit(
        *(world.new(requires=Requires(vram_min_mb=10000)) for _ in range(40)),
    )
    claims = await asyncio.gather(*(world.claim(node) for _ in range(16)))
    assert sum(len(claim) for claim in claims) == 2
    reserved = await world.pool.fetchval("SELECT sum(reserved_vram_mb) FROM jobs")
    assert reserved == 20000


async def test_a_limit_is_a_limit_for_claims_at_once_too_n02(world: World) -> None:
    node = await world.node(max_jobs=1)
    await world.submit(*(world.new() for _ in range(20)))
    for _ in range(10):
        claims = await asyncio.gather(*(world.claim(node, limit=3) for _ in range(20)))
        [taken] = [one for claim in claims for one in claim]
        done = Completion(held=held(node, taken), result="null")
        await leases.complete(world.pool, world.wake, [done])


async def test_sixteen_claimers_take_each_job_once_and_lose_none_i25(
    world: World, dsn: str
) -> None:
    nodes = [await world.node(f"n{n}", max_jobs=1000) for n in range(16)]
    ids = await world.submit(*(world.new("abc"[n % 3], priority=n % 2) for n in range(600)))
    barrier = asyncio.Barrier(16)

    async def drain(node: NodeIdentity, limit: int) -> list[UUID]:
        taken: list[UUID] = []
        async with await db.open_pool(dsn, size=1) as own:
            mine = World(own, world.organization_id)
            await barrier.wait()
            while claimed := await mine.claim(node, limit=limit):
                taken += [one.job.id for one in claimed]
        return taken

    lists = await asyncio.gather(*(drain(node, 1 + n % 7) for n, node in enumerate(nodes)))
    taken = [job_id for one in lists for job_id in one]
    assert len(taken) == len(set(taken))
    assert set(taken) == set(ids)
    assert (
        await world.pool.fetchval("SELECT count(*) FROM job_events WHERE event = 'claimed'") == 600
    )


async def test_a_node_that_is_gone_is_told_so(world: World) -> None:
    node = await world.node()
    await world.pool.execute("DELETE FROM compute_nodes")
    with pytest.raises(NodeNotFound):
        await world.claim(node)
