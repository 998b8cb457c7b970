"""A node speaks: what is stored, what it hears, and what makes it online."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import attrs
import pytest

from tests.cut import Plan, cutting
from tests.world import STALE_S, World, pass_time
from umbra_compute import db
from umbra_compute.db import Pool
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.leases import Renewal
from umbra_compute.model.nodes import (
    Device,
    DeviceKind,
    HeartbeatReply,
    LeaseUse,
    Node,
    NodeStatus,
    Report,
    Resident,
)
from umbra_compute.ops import heartbeats, jobs, leases, nodes, sweeping
from umbra_compute.store.nodes import Change

AGENT = UUID(int=77)
CARD = Device(label="card", kind=DeviceKind.GPU_DISCRETE, vram_total_mb=12000, vram_free_mb=0)
CPU = Device(label="cpu", kind=DeviceKind.CPU, ram_total_mb=8000, ram_free_mb=8000)


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


async def beat(
    world: World, node: NodeIdentity, sequence: int = 1, *, pool: Pool | None = None, **told: Any
) -> HeartbeatReply:
    fields = {"agent_version": "1", "agent_instance_id": AGENT, "sequence": sequence, **told}
    return await heartbeats.beat(
        world.pool if pool is None else pool, world.wake, node, Report(**fields), interval_s=15
    )


async def shown(world: World, node: NodeIdentity) -> Node:
    return await nodes.get(world.pool, world.organization_id, node.node_id, stale_s=STALE_S)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("provisioning", "online"),
        ("offline", "online"),
        ("online", "online"),
        ("draining", "draining"),
        ("retired", "retired"),
    ],
)
async def test_a_heartbeat_lifts_what_waits_for_it_and_nothing_else_i24(
    world: World, before: str, after: str
) -> None:
    node = await world.node(status=before)
    reply = await beat(world, node)
    assert (reply.status, reply.draining) == (after, after == "draining")
    assert (await shown(world, node)).status == after


async def test_a_report_replaces_the_whole_set_of_devices_s09(world: World) -> None:
    node = await world.node()
    await beat(world, node, 1, devices=(CPU, CARD))
    assert (await shown(world, node)).devices == (CPU, CARD)
    await beat(world, node, 2, devices=(CARD,))
    assert (await shown(world, node)).devices == (CARD,)
    await beat(world, node, 3)  # not spoken of: unchanged
    assert (await shown(world, node)).devices == (CARD,)
    await beat(world, node, 4, devices=())
    assert (await shown(world, node)).devices == ()
    await world.submit()
    assert await world.claim(node) == []


async def test_unknown_and_zero_stay_what_they_are_u10(world: World) -> None:
    node = await world.node()
    await beat(world, node, 1, devices=(CARD,), measurements={"ram_free_mb": 0}, max_jobs=0)
    [device] = (await shown(world, node)).devices
    assert (device.vram_free_mb, device.ram_total_mb) == (0, None)
    assert (await shown(world, node)).measurements == {"ram_free_mb": 0}
    assert (await shown(world, node)).max_jobs == 0


async def test_models_and_kinds_are_replaced_and_any_kind_is_a_value(world: World) -> None:
    node = await world.node()
    warm = (Resident(slug="b/x", device="card", vram_held_mb=5), Resident(slug="a:1"))
    await beat(world, node, 1, residents=warm, kinds=("k",), kinds_given=True)
    after = await shown(world, node)
    assert {r.slug for r in after.residents} == {"a:1", "b/x"}
    assert after.kinds == ("k",)
    await beat(world, node, 2)
    assert (await shown(world, node)).kinds == ("k",)
    await beat(world, node, 3, residents=(), kinds=None, kinds_given=True)
    after = await shown(world, node)
    assert (after.residents, after.kinds) == ((), None)


async def test_an_older_report_of_the_same_process_changes_nothing(world: World) -> None:
    node = await world.node()
    await beat(world, node, 5, devices=(CPU,))
    before = await shown(world, node)
    for sequence in (5, 4):
        reply = await beat(world, node, sequence, devices=(CARD,))
        assert reply.status is NodeStatus.ONLINE
    assert await shown(world, node) == before


async def test_the_start_of_an_agent_moves_only_with_another_process_s07(world: World) -> None:
    node = await world.node()
    await beat(world, node, 1)
    first = (await shown(world, node)).agent_started_at
    await beat(world, node, 2)
    assert (await shown(world, node)).agent_started_at == first
    await beat(world, node, 1, agent_instance_id=uuid4())
    second = (await shown(world, node)).agent_started_at
    assert first is not None
    assert second is not None
    assert second > first


async def test_another_process_gives_the_old_leases_back_at_once_p40(world: World) -> None:
    node = await world.node()
    await beat(world, node, 1)
    holders = [await world.running(node) for _ in range(2)]
    reply = await beat(world, node, 1, agent_instance_id=uuid4())
    assert reply.lost_leases == ()
    for holder in holders:
        assert await world.status(holder.job_id) == "queued"
        assert (await world.events(holder.job_id))[-1] == "requeued"
    assert len(await world.claim(node, limit=5)) == 2  # no backoff: nothing was wrong with them


async def test_a_node_hears_which_leases_are_lost_and_which_to_cancel_n05(world: World) -> None:
    node = await world.node()
    live, to_cancel = await world.running(node), await world.running(node)
    await jobs.cancel(world.pool, world.wake, world.organization_id, to_cancel.job_id)
    lost = uuid4()
    uses = tuple(LeaseUse(lease_id=one) for one in (live.lease_id, lost))
    reply = await beat(world, node, 1, leases=uses)
    assert reply.lost_leases == (lost,)
    assert reply.cancel == (to_cancel.lease_id,)


async def test_a_drain_outlives_the_agent_and_ends_with_the_next_heartbeat_p14(
    world: World,
) -> None:
    node = await world.node()
    await world.submit()
    for status, after in (("draining", "draining"), ("offline", "online")):
        wanted = Change(status=status)
        changed = await nodes.change(
            world.pool, world.organization_id, node.node_id, wanted, stale_s=STALE_S
        )
        assert changed.status == status
        assert await world.claim(node) == []
        assert (await beat(world, node, 1, agent_instance_id=uuid4())).status == after
    assert len(await world.claim(node)) == 1


async def test_only_what_placement_looks_at_moves_its_version(world: World) -> None:
    node = await world.node()

    async def version() -> int:
        return int(await world.pool.fetchval("SELECT placement_version FROM compute_nodes"))

    await beat(world, node, 1, devices=(CPU,), max_jobs=2)
    first = await version()
    await beat(world, node, 2, devices=(CPU,), max_jobs=2, measurements={"load_avg_1m": 9.0})
    assert await version() == first
    await beat(world, node, 3, devices=(CARD,))
    assert await version() == first + 1


async def test_one_connection_is_enough_s08(world: World, dsn: str) -> None:
    node = await world.node()
    async with await db.open_pool(dsn, size=1) as one:
        reply = await beat(
            world, node, 1, pool=one, devices=(CPU,), residents=(Resident(slug="m"),)
        )
    assert reply.status is NodeStatus.ONLINE


async def test_reports_at_once_leave_the_newest(world: World) -> None:
    node = await world.node()
    devices = [Device(label=f"d{n}", kind=DeviceKind.CPU) for n in range(20)]
    await asyncio.gather(*(beat(world, node, n, devices=(devices[n],)) for n in range(20)))
    [left] = (await shown(world, node)).devices
    assert left.label == "d19"


async def test_reports_and_claims_at_once_all_go_through(world: World) -> None:
    node = await world.node()
    await world.submit(*(world.new() for _ in range(20)))
    beats = [beat(world, node, n, devices=(CPU,), max_jobs=50) for n in range(1, 21)]
    claims = [world.claim(node) for _ in range(20)]
    told = await asyncio.gather(*beats, *claims)
    assert [len(one) for one in told[20:] if isinstance(one, list)] == [1] * 20


async def test_a_repeated_first_report_gives_back_once(world: World) -> None:
    node = await world.node()
    await beat(world, node, 9)
    holder = await world.running(node)
    other = uuid4()
    await beat(world, node, 1, agent_instance_id=other)
    [again] = await world.claim(node)
    reply = await beat(
        world, node, 1, agent_instance_id=other, leases=(LeaseUse(lease_id=again.lease_id),)
    )
    assert reply.lost_leases == ()
    assert (await world.events(holder.job_id)).count("requeued") == 1


async def test_a_node_that_is_well_hears_of_the_one_lease_it_forgot_n05(world: World) -> None:
    node = await world.node()
    held = [await world.running(node, lease_seconds=5) for _ in range(3)]
    for _ in range(2):
        await pass_time(world.pool, 4)
        await leases.renew(world.pool, [Renewal(held=h, lease_seconds=5) for h in held[:2]])
    await sweeping.expire(world.pool, world.wake, limit=10, draw_jitter=lambda: 0.0)
    reply = await beat(world, node, 1, leases=tuple(LeaseUse(lease_id=h.lease_id) for h in held))
    assert (reply.status, reply.lost_leases) == (NodeStatus.ONLINE, (held[2].lease_id,))
    assert [await world.status(h.job_id) for h in held] == ["running", "running", "queued"]


def statements(plan: Plan) -> list[str]:
    named = [sql for sql in plan.seen if sql.startswith("/* ")]
    return [sql.removeprefix("/* ").split(" */")[0] for sql in named]


async def test_a_report_that_brings_nothing_new_is_one_write(world: World) -> None:
    node = await world.node()
    told: dict[str, Any] = {
        "devices": (CARD, CPU),
        "residents": (Resident(slug="b", last_used_s=5.0), Resident(slug="a", device="card")),
        "kinds": ("k",),
        "kinds_given": True,
        "max_jobs": 2,
    }
    await beat(world, node, 1, **told)
    with cutting(plan := Plan()):
        await beat(world, node, 2, measurements={"load_avg_1m": 1.0}, leases=(), **told)
    read_only = {"heartbeats.lock", "heartbeats.stored", "leases.live_of_node"}
    assert [name for name in statements(plan) if name not in read_only] == ["heartbeats.touch"]
    assert (await shown(world, node)).measurements == {"load_avg_1m": 1.0}


async def test_a_report_costs_as_much_for_many_devices_as_for_one(world: World) -> None:
    node = await world.node()
    counts = []
    for sequence, size in enumerate((1, 50)):
        devices = tuple(attrs.evolve(CPU, label=f"d{sequence}-{n}") for n in range(size))
        residents = tuple(Resident(slug=f"m{sequence}-{n}") for n in range(size))
        with cutting(plan := Plan()):
            await beat(world, node, sequence, devices=devices, residents=residents)
        counts.append(len(plan.seen))
    assert counts[0] == counts[1]


async def test_the_last_use_of_a_model_is_told_as_an_age_and_moves_no_version(
    world: World,
) -> None:
    node = await world.node()

    async def report(sequence: int, used_s: float | None) -> tuple[float | None, int]:
        residents = (Resident(slug="m", last_used_s=used_s),)
        await beat(world, node, sequence, residents=residents)
        [resident] = (await shown(world, node)).residents
        version = await world.pool.fetchval("SELECT placement_version FROM compute_nodes")
        return resident.last_used_s, version

    assert (await report(1, None))[0] is None
    _, version = await report(2, 100.0)
    await pass_time(world.pool, 20)
    [resident] = (await shown(world, node)).residents
    assert resident.last_used_s == pytest.approx(120, abs=5)
    used_s, later = await report(3, 0.0)
    assert used_s == pytest.approx(0, abs=5)
    assert later == version
    assert (await report(4, None))[0] is None
