"""Enrolling, changing, retiring."""

import asyncio
from datetime import datetime
from typing import Any
from uuid import uuid4

import attrs
import pytest

from tests.cut import Plan, cutting
from tests.world import STALE_S, World, an_organization
from umbra_compute.db import Pool
from umbra_compute.errors import (
    NodeHasLeases,
    NodeNameTaken,
    NodeNotFound,
    NodeRetired,
    OnlineIsEarned,
)
from umbra_compute.model.nodes import Node, NodeStatus
from umbra_compute.ops import nodes
from umbra_compute.store.nodes import PAGE, Change, NewNode

NEW = NewNode(
    name="desk",
    is_controller=False,
    trust_domain="local",
    locality=None,
    transport="https",
    max_jobs=1,
    kinds=None,
)


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


async def change(world: World, node: Node, **wanted: Any) -> Node:
    return await nodes.change(
        world.pool, world.organization_id, node.id, Change(**wanted), stale_s=STALE_S
    )


async def test_a_new_node_waits_for_its_first_word(world: World) -> None:
    node = await nodes.create(world.pool, world.organization_id, NEW, stale_s=STALE_S)
    assert (node.status, node.last_heartbeat_at) == (NodeStatus.PROVISIONING, None)
    assert node == await nodes.get(world.pool, world.organization_id, node.id, stale_s=STALE_S)


async def test_a_name_is_one_nodes_within_its_organization(world: World, pool: Pool) -> None:
    await nodes.create(pool, world.organization_id, NEW, stale_s=STALE_S)
    other = attrs.evolve(NEW, name="lap")
    second = await nodes.create(pool, world.organization_id, other, stale_s=STALE_S)
    with pytest.raises(NodeNameTaken):
        await nodes.create(pool, world.organization_id, NEW, stale_s=STALE_S)
    with pytest.raises(NodeNameTaken):
        await change(world, second, name="desk")
    await nodes.create(pool, await an_organization(pool), NEW, stale_s=STALE_S)


async def test_a_node_that_holds_leases_is_not_retired_q03(world: World) -> None:
    caller = await world.node()
    await world.running(caller)
    node = await nodes.get(world.pool, world.organization_id, caller.node_id, stale_s=STALE_S)
    with pytest.raises(NodeHasLeases, match="1 leases"):
        await change(world, node, status="retired")
    await world.pool.execute("DELETE FROM jobs")
    assert (await change(world, node, status="retired")).status is NodeStatus.RETIRED


async def test_retiring_is_final_and_may_be_repeated(world: World) -> None:
    node = await nodes.create(world.pool, world.organization_id, NEW, stale_s=STALE_S)
    for _ in range(2):
        await change(world, node, status="retired")
    for wanted in ({"status": "offline"}, {"trust_domain": "office"}):
        with pytest.raises(NodeRetired):
            await change(world, node, **wanted)


async def test_what_is_not_given_stays(world: World) -> None:
    new = attrs.evolve(NEW, locality="attic", kinds=["k"], max_jobs=0)
    node = await nodes.create(world.pool, world.organization_id, new, stale_s=STALE_S)
    node = await change(world, node, trust_domain="office")
    assert (node.locality, node.kinds, node.max_jobs) == ("attic", ("k",), 0)
    cleared = Change(locality_given=True, kinds_given=True)
    node = await nodes.change(world.pool, world.organization_id, node.id, cleared, stale_s=STALE_S)
    assert (node.locality, node.kinds, node.trust_domain) == (None, None, "office")


async def test_another_tenants_node_and_a_made_up_one_are_the_same_u6(
    world: World, pool: Pool
) -> None:
    node = await nodes.create(pool, world.organization_id, NEW, stale_s=STALE_S)
    other = await an_organization(pool)
    for asked in (node.id, uuid4()):
        with pytest.raises(NodeNotFound):
            await nodes.get(pool, other, asked, stale_s=STALE_S)
        with pytest.raises(NodeNotFound):
            await nodes.change(pool, other, asked, Change(status="offline"), stale_s=STALE_S)


async def test_nobody_sets_a_node_online_i24(world: World) -> None:
    node = await nodes.create(world.pool, world.organization_id, NEW, stale_s=STALE_S)
    with pytest.raises(OnlineIsEarned):
        await change(world, node, status="online")
    assert (await change(world, node)).status is NodeStatus.PROVISIONING


@pytest.mark.parametrize(
    ("wanted", "moves"),
    [
        ({"name": "lap"}, False),
        ({"status": "provisioning", "trust_domain": "local", "max_jobs": 1}, False),
        ({"kinds_given": True, "locality_given": True}, False),
        ({"status": "draining"}, True),
        ({"trust_domain": "office"}, True),
        ({"max_jobs": 0}, True),
        ({"locality_given": True, "locality": "attic"}, True),
        ({"kinds_given": True, "kinds": ()}, True),
    ],
)
async def test_only_what_placement_looks_at_moves_its_version(
    world: World, wanted: dict[str, Any], moves: bool
) -> None:
    node = await nodes.create(world.pool, world.organization_id, NEW, stale_s=STALE_S)
    await change(world, node, **wanted)
    version = await world.pool.fetchval("SELECT placement_version FROM compute_nodes")
    assert version == int(moves)


async def test_a_status_counts_from_when_it_became_what_it_is(world: World) -> None:
    node = await nodes.create(world.pool, world.organization_id, NEW, stale_s=STALE_S)

    async def since() -> datetime:
        moment = await world.pool.fetchval("SELECT status_since FROM compute_nodes")
        assert isinstance(moment, datetime)
        return moment

    await change(world, node, status="draining")
    drained = await since()
    await change(world, node, status="draining", trust_domain="office")
    assert await since() == drained
    await change(world, node, status="offline")
    assert await since() > drained


async def test_a_node_is_retired_or_given_work_never_both(world: World) -> None:
    for _ in range(10):
        await world.pool.execute("DELETE FROM jobs")
        caller = await world.node(str(uuid4()))
        await world.submit()
        node = await nodes.get(world.pool, world.organization_id, caller.node_id, stale_s=STALE_S)
        retired, claimed = await asyncio.gather(
            change(world, node, status="retired"), world.claim(caller), return_exceptions=True
        )
        assert isinstance(retired, NodeHasLeases) == bool(claimed)


async def test_a_page_costs_one_statement_however_many_nodes_it_shows(world: World) -> None:
    for n in range(5):
        await world.running(await world.node(f"n{n}"))
    with cutting(seen := Plan()):
        page = await nodes.page(
            world.pool, world.organization_id, status=None, stale_s=STALE_S, after=None, limit=10
        )
    assert [node.running_jobs for node in page] == [1] * 5
    assert [sql for sql in seen.seen if sql.startswith("/* ")] == [PAGE]
