"""Enrolling, retiring; and the registry of models."""

from typing import Any
from uuid import uuid4

import attrs
import pytest

from tests.world import STALE_S, World, an_organization
from umbra_compute.db import Pool
from umbra_compute.errors import (
    ModelNotFound,
    NodeHasLeases,
    NodeNameTaken,
    NodeNotFound,
    NodeRetired,
)
from umbra_compute.model.nodes import Model, Node, NodeStatus
from umbra_compute.ops import models, nodes
from umbra_compute.store.nodes import Change, NewNode

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


async def test_registering_a_model_again_replaces_it_wholly(world: World) -> None:
    whole = Model(slug="org/llm:7b", vram_min_mb=0, requires_accelerators=("cuda",))
    stored, created = await models.put(world.pool, world.organization_id, whole)
    assert (stored.vram_min_mb, stored.ram_min_mb, created) == (0, None, True)
    stored, created = await models.put(world.pool, world.organization_id, Model(slug="org/llm:7b"))
    assert (stored.vram_min_mb, stored.requires_accelerators, created) == (None, (), False)


async def test_every_change_of_the_registry_moves_its_version(world: World) -> None:
    async def version() -> int:
        return int(await world.pool.fetchval("SELECT registry_version FROM organizations"))

    assert await version() == 0
    await models.put(world.pool, world.organization_id, Model(slug="m"))
    await models.put(world.pool, world.organization_id, Model(slug="m", ram_min_mb=1))
    assert await version() == 2
    await models.delete(world.pool, world.organization_id, "m")
    assert await version() == 3
    with pytest.raises(ModelNotFound):
        await models.delete(world.pool, world.organization_id, "m")
    assert await version() == 3


async def test_registries_are_of_one_organization_u6(world: World, pool: Pool) -> None:
    await models.put(pool, world.organization_id, Model(slug="m"))
    other = await an_organization(pool)
    with pytest.raises(ModelNotFound):
        await models.get(pool, other, "m")
    assert await models.page(pool, other, after=None, limit=10) == []
