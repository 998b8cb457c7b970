"""Claiming: only with a free place, only when the devices are known, one open claim at a time."""

import asyncio
import os
import random
from contextlib import suppress
from typing import Final

from umbra_agent import fence, jobs, log
from umbra_agent.agent import Agent
from umbra_agent.errors import Away, KeyRefused, LeaseLost, Refused
from umbra_agent.held import Job, of_claim

MOST: Final = 100  # jobs a claim: SPEC §6
POWER_CUT: Final = 137  # what a shell reports of a process killed by SIGKILL


async def claim_until_stopped(agent: Agent, work: asyncio.TaskGroup) -> None:
    """Claim and start jobs in `work` until the agent stops; an open claim is then hung up."""
    async with asyncio.TaskGroup() as group:
        claiming = group.create_task(_claim(agent, work))
        await agent.stopping.wait()
        claiming.cancel()


async def _claim(agent: Agent, work: asyncio.TaskGroup) -> None:
    failures = 0
    while True:
        agent.freed.clear()
        if not agent.has_devices or agent.free_slots <= 0 or not agent.config.kinds:
            await agent.freed.wait()
            continue
        if agent.is_draining:
            await asyncio.sleep(agent.heartbeat_s)
            continue
        ask = {
            "kinds": list(agent.config.kinds),
            "limit": min(MOST, agent.free_slots),
            "lease_seconds": agent.config.lease_seconds,
            "wait_s": agent.config.claim_wait_s,
        }
        asked_at = agent.clock()
        try:
            reply = await agent.controller.claim(ask)
        except (Away, Refused, KeyRefused, LeaseLost) as exc:
            failures += 1
            if failures == 1 or not isinstance(exc, Away):
                log.warning("claim.failed", reason=str(exc))
            retry_after_s = exc.retry_after_s if isinstance(exc, Away) else None
            await asyncio.sleep(fence.backoff_s(failures, random.random(), retry_after_s))  # noqa: S311
            continue
        failures = 0
        if reply["jobs"] and agent.power_cut_on_claim:
            os._exit(POWER_CUT)
        for claimed in reply["jobs"]:
            _start(agent, work, of_claim(claimed, _lease_begins(agent, asked_at, reply)))
        if not reply["jobs"]:
            agent.is_draining = reply.get("draining", False)
            if agent.config.claim_wait_s == 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await agent.freed.wait()


def _lease_begins(agent: Agent, asked_at: float, reply: dict[str, object]) -> float:
    """Return the latest moment that is surely not after the lease began.

    A long poll may have waited; the lease began when the job came, at most one answer's way ago.
    """
    longest_way_s = 1.0
    return max(asked_at, agent.clock() - longest_way_s)


def _start(agent: Agent, work: asyncio.TaskGroup, job: Job) -> None:
    agent.hold(job)
    log.info("job.claimed", job_id=job.id, lease_id=job.lease_id, kind=job.body["kind"])
    work.create_task(jobs.run(agent, job))
