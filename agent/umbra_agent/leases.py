"""Renewing leases: one call for many, and what its answer means for each."""

from typing import Any

from umbra_agent import fence
from umbra_agent.agent import Agent
from umbra_agent.backoff import Backoff
from umbra_agent.errors import CallError, Refused
from umbra_agent.held import Job
from umbra_agent.outcome import Stop


async def renew(agent: Agent, jobs: list[Job]) -> None:
    """Renew the leases in one call; say which are lost and which to cancel.

    An answer that takes longer than the shortest lease is of no use and not waited for.
    Raises Away, KeyRefused, Refused.
    """
    asked_at = agent.clock()
    within_s = min(job.lease_seconds for job in jobs)
    items = [_item(job) for job in jobs]
    try:
        reply = await agent.controller.renew(items, within_s)
    except Refused:
        # What one program says of itself must not cost all jobs their leases.
        bare = [{"job_id": job.id, "lease_id": job.lease_id} for job in jobs]
        reply = await agent.controller.renew(bare, within_s)
    by_lease = {job.lease_id: job for job in jobs}
    for lease_id in by_lease.keys() & set(reply["renewed"]):
        job = by_lease[lease_id]
        job.renewed(fence.stop_at(asked_at, job.lease_seconds, job.lease_seconds))
    for lease_id in by_lease.keys() & set(reply["lost"]):
        by_lease[lease_id].lose()
    for lease_id in by_lease.keys() & set(reply["cancel"]):
        by_lease[lease_id].end(Stop.CANCEL)


async def confirm(agent: Agent, job: Job) -> None:
    """Renew a lease whose age nobody knows, until that succeeds or the job is told to stop."""
    backoff = Backoff()
    while job.stop is None and not job.is_confirmed:
        try:
            await renew(agent, [job])
        except CallError as exc:
            await backoff.pause(exc, unless=job.stopping)


def _item(job: Job) -> dict[str, Any]:
    item: dict[str, Any] = {"job_id": job.id, "lease_id": job.lease_id}
    progress = None if job.command is None else job.command.progress()
    return item if progress is None else {**item, "progress": progress}
