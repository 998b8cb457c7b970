"""Claiming: only with a free place, only when the devices are known, one open claim at a time."""

import asyncio
import os
from typing import Any, Final

from umbra_agent import backoff, jobs, log
from umbra_agent.agent import Agent
from umbra_agent.backoff import Backoff
from umbra_agent.errors import Away, KeyRefused, Refused
from umbra_agent.held import Job, of_claim

MOST: Final = 100  # jobs a claim: SPEC §6
POLL_S: Final = 1.0  # between claims that do not wait (claim_wait_s = 0)
POWER_CUT: Final = 137  # what a shell reports of a process killed by SIGKILL


async def claim_until_stopped(agent: Agent, work: asyncio.TaskGroup) -> None:
    """Claim and start jobs in `work` until the agent stops; an open claim is then hung up."""
    async with asyncio.TaskGroup() as group:
        claiming = group.create_task(_claim(agent, work))
        await agent.stopping.wait()
        claiming.cancel()


async def _claim(agent: Agent, work: asyncio.TaskGroup) -> None:
    pauses = Backoff()
    while True:
        agent.freed.clear()
        if not agent.may_claim:
            await agent.freed.wait()
            continue
        asked_at = agent.clock()
        try:
            reply = await agent.controller.claim(_ask(agent))
        except (Away, Refused, KeyRefused) as exc:
            if pauses.is_news(exc):
                log.warning("claim.failed", reason=str(exc))
            await pauses.pause(exc, unless=agent.heard)
            continue
        pauses.over()
        if reply["jobs"] and agent.power_cut_on_claim:
            os._exit(POWER_CUT)
        answered_at = agent.clock()
        for claimed in reply["jobs"]:
            _start(agent, work, of_claim(claimed, asked_at, answered_at))
        if not reply["jobs"]:
            agent.is_draining = reply.get("draining", False) is True
            if agent.config.claim_wait_s < POLL_S:
                await backoff.until(agent.freed, POLL_S)


def _ask(agent: Agent) -> dict[str, Any]:
    return {
        "kinds": list(agent.config.kinds),
        "limit": min(MOST, agent.free_slots),
        "lease_seconds": agent.config.lease_seconds,
        "wait_s": agent.config.claim_wait_s,
    }


def _start(agent: Agent, work: asyncio.TaskGroup, job: Job) -> None:
    agent.hold(job)
    log.info("job.claimed", job_id=job.id, lease_id=job.lease_id, kind=job.body["kind"])
    work.create_task(jobs.run(agent, job))
