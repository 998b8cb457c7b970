"""Telling the controller what became of a job, until it is heard or of no use any more."""

import asyncio
from typing import Final

from umbra_agent import log
from umbra_agent.agent import Agent
from umbra_agent.backoff import Backoff
from umbra_agent.controller import Controller
from umbra_agent.errors import Away, CallError, KeyRefused, LeaseLost, Refused
from umbra_agent.held import Job
from umbra_agent.outcome import Complete, Fail, Nothing, Outcome, Release, Stop

LAST_WORD_S: Final = 2.0
"""For one call, when the agent has no time left. The lease's end does the rest."""


async def deliver(agent: Agent, job: Job, result: Outcome) -> None:
    """Say it, again and again while the controller is away, until the agent must give up."""
    if isinstance(result, Nothing):
        log.warning("job.dropped", job_id=job.id, lease_id=job.lease_id, why=job.stop)
        return
    job.is_delivering = True
    try:
        async with asyncio.timeout(LAST_WORD_S if agent.gives_up else None) as job.patience:
            await _until_heard(agent, job, result)
    except TimeoutError:
        _undelivered(agent, job, "the agent's time is up")
    except KeyRefused as exc:
        _undelivered(agent, job, str(exc))


async def give_back_soon(agent: Agent, job: Job) -> None:
    """Give back the job of an agent that breaks down: killed first, then one call, or none."""
    try:
        async with asyncio.timeout(LAST_WORD_S):
            if job.command is not None:
                await job.command.stop(0.0)
            if job.stop not in (Stop.LOST, Stop.FENCED):
                await agent.controller.release(job.id, job.lease_id, "the agent broke down")
    except (CallError, TimeoutError) as exc:
        _undelivered(agent, job, str(exc))


async def _until_heard(agent: Agent, job: Job, result: Outcome) -> None:
    backoff = Backoff()
    while True:
        try:
            await _say(agent.controller, job, result)
        except Away as exc:
            if backoff.is_news(exc):
                log.warning("delivery.waiting", job_id=job.id, reason=str(exc))
            await backoff.pause(exc, unless=agent.heard)
        except LeaseLost as exc:
            log.warning("lease.lost", job_id=job.id, lease_id=job.lease_id, detail=str(exc))
            return
        except Refused as exc:
            # What cannot be stored will not be stored the next time either (Q12).
            log.warning("job.refused", job_id=job.id, code=exc.code, detail=str(exc))
            if not isinstance(result, Complete):
                return
            result = Fail(f"The controller refused the result: {exc}", retry=False)
        else:
            return


async def _say(controller: Controller, job: Job, result: Outcome) -> None:
    match result:
        case Complete(value):
            await controller.complete(job.id, job.lease_id, value)
        case Fail(error, retry):
            log.warning("job.failed", job_id=job.id, retry=retry)
            await controller.fail(job.id, job.lease_id, error, retry=retry)
        case Release(reason):
            await controller.release(job.id, job.lease_id, reason)
        case Nothing():
            raise AssertionError("there is something to say")


def _undelivered(agent: Agent, job: Job, reason: str) -> None:
    agent.undelivered.append(job.id)
    log.warning("job.undelivered", job_id=job.id, lease_id=job.lease_id, reason=reason)
