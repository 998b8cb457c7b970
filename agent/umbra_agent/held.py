"""What the agent holds: a job, its lease, and the program that does it."""

import asyncio
from typing import Any, Final

import attrs

from umbra_agent import fence
from umbra_agent.handlers.command import Command
from umbra_agent.outcome import Stop

FRESH_S: Final = 1.0
"""An answer that took no longer is counted from the question. See `of_claim`."""


@attrs.define(eq=False)
class Job:
    """A claimed job. Renewals move `stop_at`; whoever ends it early says why, once."""

    id: str
    lease_id: str
    lease_seconds: float
    body: dict[str, Any]
    device: str
    stop_at: float  # on the boot clock
    is_confirmed: bool
    is_renewed: bool = False
    stop: Stop | None = None
    stopping: asyncio.Event = attrs.Factory(asyncio.Event)
    command: Command | None = None
    is_delivering: bool = False
    patience: asyncio.Timeout | None = None  # of the delivery

    def end(self, why: Stop) -> None:
        """Ask for its end; the first reason stands, but a lost lease outweighs any other."""
        if self.stop is None or why in (Stop.LOST, Stop.FENCED):
            self.stop = why
        self.stopping.set()

    def lose(self) -> None:
        """The lease does not hold it any more. What is being delivered may count all the same."""
        if not self.is_delivering:
            self.end(Stop.LOST)

    def renewed(self, stop_at: float) -> None:
        self.stop_at = max(self.stop_at, stop_at)  # answers may overtake each other
        self.is_confirmed = self.is_renewed = True


def of_claim(claimed: dict[str, Any], asked_at: float, answered_at: float) -> Job:
    """Return the job of one item of a claim's reply.

    A lease runs from the moment it was granted. Behind a quick answer that was not before
    `asked_at`. A long poll may have waited, so nothing tells how old its answer is: a machine
    that slept finds it in its buffers, hours late. Such a lease is renewed before work begins.
    """
    lease = claimed["lease"]
    fresh = answered_at - asked_at <= FRESH_S
    begins_at = asked_at if fresh else answered_at
    return Job(
        id=claimed["job"]["id"],
        lease_id=lease["lease_id"],
        lease_seconds=lease["lease_seconds"],
        body=claimed["job"],
        device=claimed["placement"]["device_label"],
        stop_at=fence.stop_at(begins_at, lease["expires_in_s"], lease["lease_seconds"]),
        is_confirmed=fresh,
    )
