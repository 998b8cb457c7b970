"""What the loops and the jobs share: the configuration, the connection, and what is held."""

import asyncio
import uuid
from pathlib import Path

import attrs

from umbra_agent.config import Config
from umbra_agent.controller import Controller
from umbra_agent.devices import Detector
from umbra_agent.fence import Clock, boot_clock
from umbra_agent.held import Job


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
    heartbeat_s: float = 15.0
    has_devices: bool = False  # a report with devices was accepted
    is_draining: bool = False
    stopping: asyncio.Event = attrs.Factory(asyncio.Event)
    hurrying: asyncio.Event = attrs.Factory(asyncio.Event)  # a second signal, or drain_s is over
    giving_up: asyncio.Event = attrs.Factory(asyncio.Event)
    changed: asyncio.Event = attrs.Factory(asyncio.Event)  # report at once
    freed: asyncio.Event = attrs.Factory(asyncio.Event)  # a slot, or the right to claim

    @property
    def free_slots(self) -> int:
        return self.config.max_jobs - len(self.held)

    def hold(self, job: Job) -> None:
        self.held[job.lease_id] = job

    def forget(self, job: Job) -> None:
        self.held.pop(job.lease_id, None)
        self.freed.set()
