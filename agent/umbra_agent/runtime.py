"""The two task groups, and the order of stopping.

Outside are the signs of life, inside is the work: if claiming breaks, jobs are released while the
heart still beats; if a sign of life breaks, jobs are ended at once.
"""

import asyncio
import os
import signal
import tempfile
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path

from umbra_agent import log, notify
from umbra_agent.agent import Agent
from umbra_agent.config import Config
from umbra_agent.controller import Controller
from umbra_agent.devices import detection
from umbra_agent.devices.detection import Detector
from umbra_agent.errors import CREDENTIALS, FAILED, ConfigurationError, KeyRefused
from umbra_agent.key import environment_of_jobs
from umbra_agent.loops import detecting, heartbeat, renewal
from umbra_agent.loops.claiming import claim_until_stopped
from umbra_agent.outcome import Stop
from umbra_agent.runner import guardian, tree

STOP_FILE_S = 0.5  # between looks for the stop file
DELIVER_S = 3.0  # a stopping agent tries so long to say what became of its jobs


def run(
    config: Config,
    key: str,
    *,
    power_cut_on_claim: bool,
    detector_argv: tuple[str, ...] = detection.ARGV,
) -> int:
    """Work until told to stop; return the exit status.

    Raises ConfigurationError if the work folder cannot be used.
    """
    work_dir = _work_dir(config)
    name, value = tree.AGENT_MARK, uuid.uuid4().hex
    environment = {**environment_of_jobs(), name: value}
    guard = guardian.start(f"{name}={value}", work_dir, environment_of_jobs())
    detector = Detector(config.detect_limit_s, work_dir, environment, detector_argv)
    try:
        return asyncio.run(
            _run(
                config,
                key,
                detector=detector,
                environment=environment,
                work_dir=work_dir,
                power_cut_on_claim=power_cut_on_claim,
            )
        )
    finally:
        if guard.stdin is not None:
            guard.stdin.close()
        guard.wait()  # it removes the work folder as well


async def _run(
    config: Config,
    key: str,
    *,
    detector: Detector,
    environment: dict[str, str],
    work_dir: Path,
    power_cut_on_claim: bool,
) -> int:
    async with Controller(config.url, key) as controller:
        agent = Agent(
            config=config,
            controller=controller,
            detector=detector,
            environment=environment,
            work_dir=work_dir,
            power_cut_on_claim=power_cut_on_claim,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, agent.stop)
        log.info("agent.started", instance_id=agent.instance_id, url=config.url, pid=os.getpid())
        if not config.kinds:
            log.warning("handlers.missing", consequence="this agent claims nothing")
        status = 0
        try:
            await _live(agent)
        except ExceptionGroup as broken:  # a loop ended: so does the process, and says why
            status = _told(broken)
        log.info("agent.stopped", exit_status=status, undelivered=agent.undelivered)
        return status


def _told(broken: ExceptionGroup[Exception]) -> int:
    """Log what broke; return the exit status."""
    refused, others = broken.split(KeyRefused)
    if others is not None:
        log.error("agent.broken", error="".join(traceback.format_exception(others)))
        return FAILED
    if refused is None:
        raise AssertionError("a group holds an exception")
    log.error("key.refused", detail=str(next(_leaves(refused))))
    return CREDENTIALS


def _leaves(group: ExceptionGroup[KeyRefused]) -> Iterator[KeyRefused]:
    for one in group.exceptions:
        yield from _leaves(one) if isinstance(one, ExceptionGroup) else (one,)


async def _live(agent: Agent) -> None:
    async with asyncio.TaskGroup() as life:
        signs = [
            life.create_task(heartbeat.beat(agent)),
            life.create_task(renewal.renew(agent)),
            life.create_task(renewal.guard(agent)),
            life.create_task(detecting.detect(agent)),
            life.create_task(_watch_stop_file(agent)),
            life.create_task(_watchdog()),
        ]
        notify.tell("READY=1")
        try:
            await _work(agent)
        finally:
            for job in agent.held.values():  # a sign of life broke: nothing may outlive it
                if job.command is not None:
                    job.command.kill()
            for task in signs:
                task.cancel()


async def _work(agent: Agent) -> None:
    async with asyncio.TaskGroup() as work:
        ending = work.create_task(_drain_when_asked(agent))
        try:
            await claim_until_stopped(agent, work)
        except ExceptionGroup:  # claiming broke: give back what runs, while the heart still beats
            agent.hurry()
            agent.stop()
            await ending
            raise
        await ending


async def _drain_when_asked(agent: Agent) -> None:
    """Let jobs finish until drain_s is over or a second signal comes; then give the rest back."""
    await agent.stopping.wait()
    notify.tell("STOPPING=1")
    log.info("agent.stopping", jobs=[job.id for job in agent.held.values()])
    await _until_idle(agent, agent.config.drain_s, unless=agent.hurrying)
    for job in list(agent.held.values()):
        job.end(Stop.DRAIN)
    await _until_idle(agent, agent.config.kill_grace_s + DELIVER_S)
    agent.give_up()


async def _until_idle(agent: Agent, within_s: float, unless: asyncio.Event | None = None) -> None:
    async def idle() -> None:
        while agent.held:
            agent.freed.clear()
            await agent.freed.wait()

    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(idle())]
        if unless is not None:
            waits.append(group.create_task(_wait(unless)))
        await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _watch_stop_file(agent: Agent) -> None:
    path = agent.config.stop_file
    while path is not None and not agent.stopping.is_set():
        if path.exists():
            log.info("stop_file.appeared", path=str(path))
            agent.stopping.set()
        await asyncio.sleep(STOP_FILE_S)


async def _watchdog() -> None:
    every_s = notify.watchdog_s()
    while every_s is not None:
        notify.tell("WATCHDOG=1")
        await asyncio.sleep(every_s)


def _work_dir(config: Config) -> Path:
    """Make a folder for this process's jobs alone: what an earlier one left is not in it."""
    parent = config.work_dir
    try:
        if parent is not None:
            parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="umbra-agent-", dir=parent))
    except OSError as exc:
        where = tempfile.gettempdir() if parent is None else parent
        raise ConfigurationError(f"work_dir {where} cannot be used: {exc.strerror}.") from None
