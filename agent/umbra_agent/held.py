"""What the agent holds: a job, its lease, and the program that does it."""

import asyncio
from typing import Any

import attrs

from umbra_agent import fence
from umbra_agent.handlers.command import Command
from umbra_agent.outcome import Stop


@attrs.define(eq=False)
class Job:
    """A claimed job. Renewals move `stop_at`; whoever ends it early says why, once."""

    id: str
    lease_id: str
    lease_seconds: float
    body: dict[str, Any]
    device: str
    stop_at: float  # on the boot clock
    stop: Stop | None = None
    stopping: asyncio.Event = attrs.Factory(asyncio.Event)
    command: Command | None = None
    is_delivering: bool = False

    def end(self, why: Stop) -> None:
        """Ask for its end; the first reason stands, but a lost lease outweighs any other."""
        if self.stop is None or why in (Stop.LOST, Stop.FENCED):
            self.stop = why
        self.stopping.set()


def of_claim(claimed: dict[str, Any], asked_at: float) -> Job:
    """Return the job of one item of a claim's reply; `asked_at` is when the claim was sent."""
    lease = claimed["lease"]
    return Job(
        id=claimed["job"]["id"],
        lease_id=lease["lease_id"],
        lease_seconds=lease["lease_seconds"],
        body=claimed["job"],
        device=str(claimed["placement"]["device_label"]),
        stop_at=fence.stop_at(asked_at, lease["expires_in_s"], lease["lease_seconds"]),
    )
