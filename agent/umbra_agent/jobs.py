"""One job from the claim to its end: one task each, which reports its own errors."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from umbra_agent import fence, log, outcome
from umbra_agent.agent import Agent
from umbra_agent.errors import Away, CallError, KeyRefused, LeaseLost, Refused
from umbra_agent.handlers.command import Command
from umbra_agent.held import Job
from umbra_agent.outcome import Complete, Fail, Nothing, Outcome, Release, Stop
from umbra_agent.runner.process import CannotStart


async def run(agent: Agent, job: Job) -> None:
    """Run the job and say what became of it. Never raises into the group that it runs in."""
    started = time.monotonic()
    try:
        result = await _worked(agent, job)
        job.is_delivering = True
        await _deliver(agent, job, result)
    except Exception as exc:
        # A bug of ours. The lease runs out and the job goes to another attempt.
        log.error("job.broken", job_id=job.id, lease_id=job.lease_id, error=repr(exc))
    finally:
        agent.forget(job)
        log.info("job.ended", job_id=job.id, seconds=round(time.monotonic() - started, 3))


async def _worked(agent: Agent, job: Job) -> Outcome:
    handler = agent.config.handler_of(job.body["kind"])
    if handler is None:
        return Release(f"no handler for kind {job.body['kind']}")
    if job.stop is not None:
        return Release("stopped before it started")
    try:
        command = await Command.start(
            handler, job.body, job.device, agent.environment, agent.work_dir
        )
    except CannotStart as exc:
        return Fail(str(exc), retry=True)
    except OSError as exc:
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
    # A lease that may have run out leaves no time for a grace.
    hurried = job.stop in (Stop.LOST, Stop.FENCED)
    await command.stop(0.0 if hurried else agent.config.kill_grace_s)


async def _deliver(agent: Agent, job: Job, result: Outcome) -> None:
    """Say what became of the job, until it is heard or of no use any more."""
    controller = agent.controller
    match result:
        case Nothing():
            log.warning("job.dropped", job_id=job.id, lease_id=job.lease_id, why=job.stop)
            return
        case Complete(value):
            await _until_heard(agent, job, lambda: controller.complete(job.id, job.lease_id, value))
        case Fail(error, retry):
            log.warning("job.failed", job_id=job.id, retry=retry)
            await _until_heard(
                agent, job, lambda: controller.fail(job.id, job.lease_id, error, retry=retry)
            )
        case Release(reason):
            await _until_heard(agent, job, lambda: controller.release(job.id, job.lease_id, reason))


async def _until_heard(agent: Agent, job: Job, call: Callable[[], Awaitable[object]]) -> None:
    failures = 0
    while job.stop is not Stop.LOST:
        try:
            await call()
        except Away as exc:
            failures += 1
            wait_s = fence.backoff_s(failures, random.random(), exc.retry_after_s)  # noqa: S311
            if agent.giving_up.is_set():
                log.warning("job.undelivered", job_id=job.id, reason=str(exc))
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await agent.giving_up.wait()
        except Refused as exc:
            # What cannot be stored will not be stored the next time either (Q12).
            log.warning("job.refused", job_id=job.id, code=exc.code, detail=str(exc))
            with suppress(CallError):
                error = f"The controller refused the result: {exc}"
                await agent.controller.fail(job.id, job.lease_id, error, retry=False)
            return
        except LeaseLost:
            log.warning("lease.lost", job_id=job.id, lease_id=job.lease_id)
            return
        except KeyRefused as exc:
            log.error("key.refused", detail=str(exc))
            return
        else:
            return
