"""What the loops and the jobs share: the configuration, the connection, and what is held."""

import asyncio
import uuid
from pathlib import Path

import attrs

from umbra_agent.config import Config
from umbra_agent.controller import Controller
from umbra_agent.devices.detection import Detector
from umbra_agent.fence import Clock, boot_clock
from umbra_agent.held import Job
from umbra_agent.outcome import Stop


@attrs.define(eq=False)
class Agent:
    """One agent process. Everything runs on one event loop, so plain attributes are enough."""

    config: Config
    controller: Controller
    detector: Detector
    environment: dict[str, str]  # what jobs inherit, with the agent's mark
    work_dir: Path
    power_cut_on_claim: bool = False
    clock: Clock = boot_clock
    instance_id: str = attrs.Factory(lambda: str(uuid.uuid4()))
    held: dict[str, Job] = attrs.Factory(dict)  # by lease id
    undelivered: list[str] = attrs.Factory(list)  # ids of jobs of which nobody heard
    heartbeat_s: float = 15.0
    has_devices: bool = False  # a report with devices was accepted
    is_draining: bool = False
    gives_up: bool = False  # no time left to say anything
    stopping: asyncio.Event = attrs.Factory(asyncio.Event)
    hurrying: asyncio.Event = attrs.Factory(asyncio.Event)  # a second signal
    changed: asyncio.Event = attrs.Factory(asyncio.Event)  # report at once
    freed: asyncio.Event = attrs.Factory(asyncio.Event)  # a slot, or the right to claim
    heard: asyncio.Event = attrs.Factory(asyncio.Event)  # the controller is back; one for each time

    @property
    def free_slots(self) -> int:
        return self.config.max_jobs - len(self.held)

    @property
    def may_claim(self) -> bool:
        ready = self.has_devices and self.detector.last.is_usable and not self.is_draining
        return ready and self.free_slots > 0 and bool(self.config.kinds)

    def hold(self, job: Job) -> None:
        self.held[job.lease_id] = job

    def forget(self, job: Job) -> None:
        self.held.pop(job.lease_id, None)
        self.freed.set()

    def hear(self) -> None:
        """The controller is back: whoever waits for it need not wait out its pause."""
        self.heard.set()
        self.heard = asyncio.Event()

    def doubt(self, reason: str) -> None:
        """Work cannot be done here: claim nothing and say so, until a detection finds otherwise."""
        self.detector.doubt(reason)
        self.changed.set()

    def stop(self) -> None:
        """Stop in order; asked a second time, at once."""
        if self.stopping.is_set():
            self.hurry()
        self.stopping.set()

    def hurry(self) -> None:
        self.hurrying.set()
        for job in self.held.values():
            if job.stop is Stop.DRAIN and job.command is not None:  # in its grace
                job.command.kill()

    def give_up(self) -> None:
        """End all attempts to say what became of jobs."""
        self.gives_up = True
        now = asyncio.get_running_loop().time()
        for job in self.held.values():
            if job.patience is not None:
                job.patience.reschedule(now)
