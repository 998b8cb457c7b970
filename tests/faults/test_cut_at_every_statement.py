"""An operation that is cut anywhere has happened or has not, and can be called again."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import asyncpg
import attrs
import pytest

from tests.cut import Plan, cutting
from tests.world import STALE_S, World, no_open_transaction
from umbra_compute.db import Pool
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.jobs import Requires
from umbra_compute.model.leases import Completion, Held, Renewal
from umbra_compute.model.nodes import Device, DeviceKind, Model, Report
from umbra_compute.ops import heartbeats, jobs, leases, models, nodes, sweeping
from umbra_compute.store.nodes import Change


@attrs.frozen
class Scene:
    """What an operation acts on: a node, a waiting job, and one that the node holds."""

    world: World
    node: NodeIdentity
    waiting: UUID
    held: Held

    @classmethod
    async def set(cls, pool: Pool, *, expired: bool) -> "Scene":
        await pool.execute(
            """INSERT INTO sweep_rounds VALUES ('expire', statement_timestamp())
                   ON CONFLICT (name) DO UPDATE SET succeeded_at = excluded.succeeded_at"""
        )
        world = await World.make(pool)
        node = await world.node()
        held = await world.running(node)
        [waiting] = await world.submit(world.new(requires=Requires(ram_min_mb=100)))
        if expired:
            await pool.execute(
                "UPDATE jobs SET lease_expires_at = now() WHERE id = $1", held.job_id
            )
        return cls(world, node, waiting, held)

    async def observed(self) -> list[Any]:
        """The state without ids and times: the same in two runs that did the same."""
        rows = await self.world.pool.fetch(
            """SELECT state, attempt, releases, lease_owner IS NOT NULL AS held, result,
                      replace(error, last_node_id::text, 'NODE') AS error,
                      cancel_requested_at IS NOT NULL AS cancelling, reserved_ram_mb, max_attempts,
                      10 * ceil(extract(epoch FROM lease_expires_at - now()) / 10) AS left_s,
                      (SELECT array_agg(event ORDER BY id) FROM job_events e
                        WHERE e.job_id = j.id) AS events
                 FROM jobs j WHERE organization_id = $1 ORDER BY seq""",
            self.world.organization_id,
        )
        node = await self.world.pool.fetchrow(
            """SELECT status, agent_version, heartbeat_sequence, max_jobs,
                      (SELECT array_agg(label ORDER BY label) FROM compute_devices d
                        WHERE d.node_id = n.id) AS devices,
                      (SELECT array_agg(slug) FROM model_registry m
                        WHERE m.organization_id = n.organization_id) AS models,
                      (SELECT registry_version > 0 FROM organizations o
                        WHERE o.id = n.organization_id) AS registry_moved
                 FROM compute_nodes n WHERE id = $1""",
            self.node.node_id,
        )
        return [[tuple(row) for row in rows], tuple(node) if node is not None else None]


async def submit(scene: Scene) -> object:
    world = scene.world
    new = [world.new("other", idempotency_key="k"), world.new(max_attempts=7, idempotency_key="l")]
    return await jobs.submit_all(world.pool, world.catalogue, world.wake, new)


async def claim(scene: Scene) -> object:
    return await scene.world.claim(scene.node)


async def renew(scene: Scene) -> object:
    renewal = Renewal(held=scene.held, lease_seconds=600)
    return await leases.renew(scene.world.pool, [renewal])


async def complete(scene: Scene) -> object:
    done = [Completion(held=scene.held, result="1")]
    return await leases.complete(scene.world.pool, scene.world.wake, done)


async def fail(scene: Scene) -> object:
    return await leases.fail(
        scene.world.pool,
        scene.world.wake,
        scene.held,
        error="boom",
        retry=True,
        retry_after_s=None,
        jitter=0.0,
    )


async def release(scene: Scene) -> object:
    return await leases.release(scene.world.pool, scene.world.wake, scene.held, reason="drain")


async def cancel(scene: Scene) -> object:
    world = scene.world
    return await jobs.cancel(world.pool, world.wake, world.organization_id, scene.waiting)


async def expire(scene: Scene) -> object:
    world = scene.world
    return await sweeping.expire(world.pool, world.wake, limit=10, draw_jitter=lambda: 0.0)


async def beat(scene: Scene) -> object:
    report = Report(
        agent_version="2",
        agent_instance_id=UUID(int=9),
        sequence=1,
        devices=(Device(label="new", kind=DeviceKind.CPU),),
        max_jobs=7,
    )
    return await heartbeats.beat(
        scene.world.pool, scene.world.wake, scene.node, report, interval_s=15
    )


async def put_model(scene: Scene) -> object:
    return await models.put(scene.world.pool, scene.world.organization_id, Model(slug="m"))


async def drain(scene: Scene) -> object:
    return await nodes.change(
        scene.world.pool,
        scene.world.organization_id,
        scene.node.node_id,
        Change(status="draining"),
        stale_s=STALE_S,
    )


Operation = Callable[[Scene], Awaitable[object]]

# A claim whose reply is lost is not repeated: its lease expires. Everything else ends the same.
OPERATIONS: list[tuple[Operation, bool]] = [
    (submit, True),
    (claim, False),
    (renew, True),
    (complete, True),
    (fail, True),
    (release, True),
    (cancel, True),
    (expire, True),
    (beat, True),
    (put_model, True),
    (drain, True),
]


@pytest.mark.parametrize(
    ("operation", "repeats"), OPERATIONS, ids=lambda v: getattr(v, "__name__", "")
)
async def test_the_state_is_the_one_before_or_the_one_after(
    pool: Pool, operation: Operation, repeats: bool
) -> None:
    scene = await Scene.set(pool, expired=operation is expire)
    before = await scene.observed()
    with cutting(whole := Plan()):
        await operation(scene)
    after = await scene.observed()
    assert before != after

    reached = []
    for k in range(len(whole.seen)):
        scene = await Scene.set(pool, expired=operation is expire)
        lost = (OSError, asyncpg.InterfaceError)
        with cutting(plan := Plan(after=k)), suppress(*lost):
            await operation(scene)
        await no_open_transaction(pool)
        reached.append(await scene.observed())
        assert reached[-1] in (before, after), f"cut after {plan.seen[k]}"
        if repeats:
            await operation(scene)
            assert await scene.observed() == after, f"again, cut after {plan.seen[k]}"
    assert before in reached
    assert after in reached
