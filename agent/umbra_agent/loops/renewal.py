"""Renewing all leases in one call, and stopping work before a lease can have run out."""

import asyncio
import random
from typing import Final

import attrs

from umbra_agent import fence, leases, log
from umbra_agent.agent import Agent
from umbra_agent.backoff import Backoff
from umbra_agent.errors import Away, KeyRefused, Refused
from umbra_agent.held import Job
from umbra_agent.outcome import Stop

LOOK_S: Final = 0.25
"""Between looks at the boot clock. After a suspend the first look comes within this time."""

IDLE_S: Final = 1.0  # between looks for a first job; its lease has at least 5
MOST_OPEN: Final = 6  # calls in flight: as many as fit into one lease


@attrs.define
class Pace:
    """How renewals go: calls in flight, and whether the last answer was slow or none."""

    open: int = 0
    was_slow: bool = False
    backoff: Backoff = attrs.Factory(Backoff)

    def is_hurried(self, held: list[Job]) -> bool:
        doubtful = self.open > 0 or self.was_slow or self.backoff.failures > 0
        return doubtful or not all(job.is_renewed for job in held)


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
    """Renew what is held; hear what is lost and what to cancel.

    At a third of the shortest lease, and twice as often while answers are slow or missing. The
    next call does not wait for the last one's answer: what is late may come too late (Q07).
    """
    pace, ticks = Pace(), 0
    async with asyncio.TaskGroup() as calls:
        while True:
            held, ticks = list(agent.held.values()), ticks + 1
            due = ticks >= fence.CALM_TICKS or pace.is_hurried(held)
            if held and due and pace.open < MOST_OPEN:
                ticks = 0
                fence_overdue(agent)
                calls.create_task(_renew_once(agent, held, pace))
            await asyncio.sleep(_tick_s(held, pace))


def _tick_s(held: list[Job], pace: Pace) -> float:
    if not held:
        return IDLE_S
    every_s = fence.tick_s(min(job.lease_seconds for job in held))
    failures = pace.backoff.failures
    if failures == 0:
        return every_s
    return min(every_s, fence.backoff_s(failures, random.random()))  # noqa: S311


async def _renew_once(agent: Agent, held: list[Job], pace: Pace) -> None:
    asked_at = agent.clock()
    pace.open += 1
    try:
        await leases.renew(agent, held)
    except (Away, KeyRefused, Refused) as exc:
        if pace.backoff.is_news(exc):
            log.warning("renewal.failed", reason=str(exc))
        pace.backoff.failures += 1
    else:
        if failures := pace.backoff.over():
            agent.hear()
            log.info("renewal.recovered", failures=failures)
        shortest_s = min(job.lease_seconds for job in held)
        pace.was_slow = fence.is_slow(agent.clock() - asked_at, shortest_s)
    finally:
        pace.open -= 1
