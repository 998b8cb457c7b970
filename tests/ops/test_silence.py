"""Nodes that stop speaking: what reads show, what the sweep does, what claims get (I24)."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from tests.world import STALE_S, World, pass_time
from umbra_compute.db import Pool
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.nodes import HeartbeatReply, Node, NodeStatus, Report
from umbra_compute.ops import heartbeats, nodes


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


async def beat(world: World, node: NodeIdentity, sequence: int = 1, **told: Any) -> HeartbeatReply:
    report = Report(agent_version="1", agent_instance_id=node.node_id, sequence=sequence, **told)
    return await heartbeats.beat(world.pool, world.wake, node, report, interval_s=15)


async def shown(world: World, node: NodeIdentity) -> Node:
    return await nodes.get(world.pool, world.organization_id, node.node_id, stale_s=STALE_S)


async def test_the_rhythm_is_the_controllers_or_a_slower_one_of_the_node(world: World) -> None:
    node = await world.node()
    assert (await beat(world, node, 1)).heartbeat_interval_s == 15
    assert (await beat(world, node, 2, heartbeat_interval_s=1.0)).heartbeat_interval_s == 15
    assert (await beat(world, node, 3, heartbeat_interval_s=60.0)).heartbeat_interval_s == 60
    await pass_time(world.pool, 209)  # less than 3.5 intervals
    assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == 0
    await pass_time(world.pool, 2)
    assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == 1


async def test_a_silent_node_is_offline_before_the_sweep_and_after_it_i24(world: World) -> None:
    node, draining = await world.node(), await world.node("n2", status="draining")
    await pass_time(world.pool, 46)
    assert (await shown(world, node)).status is NodeStatus.OFFLINE
    page = await nodes.page(
        world.pool, world.organization_id, status=NodeStatus.OFFLINE, stale_s=STALE_S, after=None,
        limit=10,
    )  # fmt: skip
    assert [one.id for one in page] == [node.node_id]
    assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == 1
    assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == 0
    assert (await shown(world, draining)).status is NodeStatus.DRAINING


@pytest.mark.parametrize(
    ("promised_s", "silent_s", "silent"),
    [
        (10.0, 44.0, False),  # 3.5 of its intervals are less than 45
        (10.0, 46.0, True),
        (60.0, 209.0, False),
        (60.0, 211.0, True),
    ],
)
async def test_reads_sweep_and_claims_agree_on_who_is_silent_i24(
    world: World, promised_s: float, silent_s: float, silent: bool
) -> None:
    node = await world.node(heartbeat_interval_s=promised_s)
    await world.submit()
    await pass_time(world.pool, silent_s)
    status = NodeStatus.OFFLINE if silent else NodeStatus.ONLINE
    assert (await shown(world, node)).status is status
    [listed] = await nodes.page(
        world.pool, world.organization_id, status=None, stale_s=STALE_S, after=None, limit=10
    )
    assert listed.status is status
    assert (await world.claim(node) == []) is silent
    assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == int(silent)
    assert await world.pool.fetchval("SELECT status FROM compute_nodes") == status


async def test_a_node_said_to_be_online_that_never_spoke_is_offline(world: World) -> None:
    node = await world.node(last_heartbeat_at=None)
    assert (await shown(world, node)).status is NodeStatus.OFFLINE
    assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == 1


async def test_offline_counts_from_the_sweep_and_ends_with_a_word(world: World) -> None:
    node = await world.node()

    async def since() -> datetime:
        moment = await world.pool.fetchval("SELECT status_since FROM compute_nodes")
        assert isinstance(moment, datetime)
        return moment

    await pass_time(world.pool, 46)
    online = await since()
    await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10)
    offline = await since()
    assert offline > online
    assert (await beat(world, node)).status is NodeStatus.ONLINE
    assert await since() > offline
    assert (await shown(world, node)).status is NodeStatus.ONLINE


async def test_the_sweep_passes_a_node_that_is_just_speaking(world: World) -> None:
    speaking, silent = await world.node(), await world.node("n2")
    await pass_time(world.pool, 46)
    async with world.pool.acquire() as conn, conn.transaction():
        await conn.execute(
            "SELECT FROM compute_nodes WHERE id = $1 FOR NO KEY UPDATE", speaking.node_id
        )
        async with asyncio.timeout(5):  # it does not wait for the lock
            assert await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=10) == 1
    left = await world.pool.fetchval("SELECT id FROM compute_nodes WHERE status = 'offline'")
    assert left == silent.node_id


async def test_two_sweeps_at_once_share_the_silent_nodes(world: World) -> None:
    for n in range(20):
        await world.node(f"n{n}")
    await pass_time(world.pool, 46)
    swept = await asyncio.gather(
        *(nodes.mark_stale(world.pool, stale_s=STALE_S, limit=15) for _ in range(2))
    )
    swept.append(await nodes.mark_stale(world.pool, stale_s=STALE_S, limit=15))
    assert sum(swept) == 20
    versions = await world.pool.fetch("SELECT placement_version FROM compute_nodes")
    assert [row[0] for row in versions] == [1] * 20
