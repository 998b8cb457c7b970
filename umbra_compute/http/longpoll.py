"""Answers that wait for something to happen: each turn is one whole operation."""

import asyncio
from typing import Final
from uuid import UUID

from aiohttp import web

from umbra_compute.http.context import CATALOGUE, HEARTBEAT_STALE_S, POOL, WAKE
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.jobs import Job
from umbra_compute.model.leases import ClaimAsk, Claimed, Held
from umbra_compute.ops import claiming, jobs, leases

_GONE: Final = "the caller went away before the reply"


async def claim(
    request: web.Request, node: NodeIdentity, ask: ClaimAsk, wait_s: float
) -> claiming.Answer:
    """Return what the node is given now, or as soon as something comes within `wait_s`."""
    app, loop = request.app, asyncio.get_running_loop()
    wake, ends_at = app[WAKE], loop.time() + wait_s
    answer: claiming.Answer | None = None

    def accepts(class_id: int) -> bool:
        return answer is None or app[CATALOGUE].might_run(answer.node, class_id)

    # Registered before the first look, so that no word falls between a look and the wait.
    with wake.claim(node.organization_id, node.node_id, accepts) as waiter:
        while True:
            signal = waiter.take_signal()
            answer = await claiming.claim(
                app[POOL], app[CATALOGUE], node, ask, stale_s=app[HEARTBEAT_STALE_S]
            )
            if answer.claimed:
                return answer
            wake.pass_on(signal, node.node_id)
            left_s = ends_at - loop.time()
            if answer.draining or wake.stopping or left_s <= 0:
                return answer
            if not await waiter.wait(left_s) or is_gone(request):
                return answer


async def give_back_undelivered(
    request: web.Request, node: NodeIdentity, claimed: tuple[Claimed, ...]
) -> None:
    """Release what was claimed for a caller that has gone, so that nobody waits for its expiry."""
    for one in claimed:
        held = Held(node=node, job_id=one.job.id, lease_id=one.lease_id)
        await leases.release(request.app[POOL], request.app[WAKE], held, reason=_GONE)


async def job(request: web.Request, organization_id: UUID, job_id: UUID, wait_s: float) -> Job:
    """Return the job when it has ended, or as it is after `wait_s`. Raises JobNotFound."""
    app, loop = request.app, asyncio.get_running_loop()
    ends_at = loop.time() + wait_s
    found = await jobs.get(app[POOL], organization_id, job_id)
    with app[WAKE].job(job_id) as may_have_ended:
        while not found.status.terminal and not app[WAKE].stopping:
            left_s = ends_at - loop.time()
            if left_s <= 0:
                break
            try:
                async with asyncio.timeout(left_s):
                    await may_have_ended.wait()
            except TimeoutError:
                pass
            may_have_ended.clear()
            found = await jobs.get(app[POOL], organization_id, job_id)
    return found


def is_gone(request: web.Request) -> bool:
    """Tell whether the caller has closed its connection."""
    return request.transport is None or request.transport.is_closing()
