"""The registry of models."""

import asyncio
from uuid import uuid4

import pytest

from tests.world import World, an_organization
from umbra_compute.db import Pool
from umbra_compute.errors import ModelNotFound
from umbra_compute.model.nodes import Model
from umbra_compute.ops import models


@pytest.fixture
async def world(pool: Pool) -> World:
    return await World.make(pool)


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


async def test_one_of_two_that_register_a_model_at_once_is_the_first(world: World) -> None:
    both = [Model(slug="m", ram_min_mb=1), Model(slug="m", ram_min_mb=2)]
    told = await asyncio.gather(
        *(models.put(world.pool, world.organization_id, model) for model in both)
    )
    assert sorted(created for _, created in told) == [False, True]
    [last] = [model for model, created in told if not created]
    assert await models.get(world.pool, world.organization_id, "m") == last


async def test_models_are_listed_by_slug_in_pages_or_all_at_once(world: World) -> None:
    slugs = sorted(str(uuid4()) for _ in range(5))
    for slug in reversed(slugs):
        await models.put(world.pool, world.organization_id, Model(slug=slug))

    async def page(after: str | None, limit: int | None) -> list[str]:
        found = await models.page(world.pool, world.organization_id, after=after, limit=limit)
        return [model.slug for model in found]

    assert await page(None, None) == slugs
    assert await page(None, 2) == slugs[:2]
    assert await page(slugs[1], 10) == slugs[2:]
