"""Renewing all leases in one call, and stopping work before a lease can have run out."""

import asyncio
import random
from typing import Any, Final

from umbra_agent import fence, log
from umbra_agent.agent import Agent
from umbra_agent.errors import Away, KeyRefused, Refused
from umbra_agent.held import Job
from umbra_agent.outcome import Stop

LOOK_S: Final = 0.25
"""Between looks at the boot clock. After a suspend the first look comes within this time."""


async def guard(agent: Agent) -> None:
    """Stop the work of every lease that may have run out. Asks nobody."""
    while True:
        fence_overdue(agent)
        await asyncio.sleep(LOOK_S)


def fence_overdue(agent: Agent) -> None:
    """Kill at once, before any request is sent: somebody else may have the job already."""
    now = agent.clock()
    for job in list(agent.held.values()):
        if now >= job.stop_at and not job.is_delivering and job.stop is not Stop.FENCED:
            log.warning("job.fenced", job_id=job.id, lease_id=job.lease_id)
            job.end(Stop.FENCED)
            if job.command is not None:
                job.command.kill()


async def renew(agent: Agent) -> None:
    """Renew what is held at a third of the shortest lease; hear what is lost and to cancel."""
    failures = 0
    while True:
        held = list(agent.held.values())
        if held:
            fence_overdue(agent)
            try:
                await _renew_all(agent, held)
                failures = 0
            except (Away, Refused, KeyRefused) as exc:
                failures += 1
                log.warning("renewal.failed", reason=str(exc), failures=failures)
        await asyncio.sleep(_wait_s(agent, failures))


def _wait_s(agent: Agent, failures: int) -> float:
    shortest = min((job.lease_seconds for job in agent.held.values()), default=None)
    every = fence.renew_every_s(agent.config.lease_seconds if shortest is None else shortest)
    if shortest is None:
        return min(1.0, every)
    if failures:
        return min(every, fence.backoff_s(failures, random.random()))  # noqa: S311
    return every


async def _renew_all(agent: Agent, held: list[Job]) -> None:
    asked_at = agent.clock()
    reply = await agent.controller.renew([_item(job) for job in held])
    by_lease = {job.lease_id: job for job in held}
    for lease_id in reply["renewed"]:
        job = by_lease[lease_id]
        job.stop_at = fence.stop_at(asked_at, job.lease_seconds, job.lease_seconds)
    for lease_id in reply["lost"]:
        if not by_lease[lease_id].is_delivering:  # a result may count past its lease's end
            by_lease[lease_id].end(Stop.LOST)
    for lease_id in reply["cancel"]:
        by_lease[lease_id].end(Stop.CANCEL)


def _item(job: Job) -> dict[str, Any]:
    item: dict[str, Any] = {"job_id": job.id, "lease_id": job.lease_id}
    progress = None if job.command is None else job.command.progress()
    return item if progress is None else {**item, "progress": progress}
