"""One job from the claim to its end: one task each, which reports its own errors."""

import asyncio
import time
import traceback

from umbra_agent import delivery, leases, log, outcome
from umbra_agent.agent import Agent
from umbra_agent.handlers.command import Command
from umbra_agent.held import Job
from umbra_agent.outcome import Fail, Nothing, Outcome, Release, Stop
from umbra_agent.runner.process import CannotStart


async def run(agent: Agent, job: Job) -> None:
    """Run the job and say what became of it. Never raises into the group that it runs in."""
    started = time.monotonic()
    try:
        result = await _worked(agent, job)
        await delivery.deliver(agent, job, result)
    except asyncio.CancelledError:  # a sign of life broke, and everything with it
        await delivery.give_back_soon(agent, job)
        raise
    except Exception:
        # A bug of ours. The lease runs out and the job goes to another attempt.
        agent.undelivered.append(job.id)
        log.error("job.broken", job_id=job.id, lease_id=job.lease_id, error=traceback.format_exc())
    finally:
        agent.forget(job)
        log.info("job.ended", job_id=job.id, duration_s=round(time.monotonic() - started, 3))


async def _worked(agent: Agent, job: Job) -> Outcome:
    handler = agent.config.handler_of(job.body["kind"])
    if handler is None:
        return Release(f"no handler for kind {job.body['kind']}")
    await leases.confirm(agent, job)
    if job.stop is not None:
        return Nothing() if job.stop is Stop.LOST else Release(f"not started: {job.stop}")
    try:
        command = await Command.start(
            handler, job.body, job.device, agent.environment, agent.work_dir
        )
    except CannotStart as exc:
        # The fault is this machine's as a rule: another one may have the program.
        return Fail(str(exc), retry=True)
    except OSError as exc:
        agent.doubt(f"work_dir cannot be used: {exc.strerror}")
        return Release(f"the agent's work_dir cannot be used: {exc.strerror}")
    job.command = command
    log.info("job.started", job_id=job.id, lease_id=job.lease_id, attempt=job.body["attempt"])
    limit_s = job.body["requires"].get("max_runtime_s")
    try:
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(_end_when_asked(agent, job, command, limit_s))
            ended = await command.ended()
            stop = job.stop
            ending.cancel()
        return outcome.of(ended, stop, handler.permanent_exit_codes, limit_s)
    finally:
        command.kill()
        command.clean()


async def _end_when_asked(agent: Agent, job: Job, command: Command, limit_s: float | None) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await job.stopping.wait()
    except TimeoutError:
        job.end(Stop.RUNTIME)
    log.info("job.stopping", job_id=job.id, why=job.stop)
    # A lease that may have run out leaves no time for a grace, and neither does a second signal.
    hurried = job.stop in (Stop.LOST, Stop.FENCED) or agent.hurrying.is_set()
    await command.stop(0.0 if hurried else agent.config.kill_grace_s)
