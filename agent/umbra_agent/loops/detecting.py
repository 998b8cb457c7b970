"""Looking at the devices again and again, in a child that may hang."""

import asyncio

from umbra_agent.agent import Agent


async def detect(agent: Agent) -> None:
    """Keep the detector's figures fresh; a change of health is reported at once."""
    while True:
        before = agent.detector.last
        after = await agent.detector.detect()
        if _health(after.devices) != _health(before.devices):
            agent.changed.set()
        await asyncio.sleep(agent.heartbeat_s)


def _health(devices: tuple[dict[str, object], ...] | None) -> list[tuple[object, object]] | None:
    return None if devices is None else [(d["label"], d["healthy"]) for d in devices]
