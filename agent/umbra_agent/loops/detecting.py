"""Looking at the devices again and again, in a child that may hang."""

import asyncio
from typing import Any

from umbra_agent.agent import Agent
from umbra_agent.devices.detection import Detection


async def detect(agent: Agent) -> None:
    """Keep the detector's figures fresh; a change of health is reported at once."""
    while True:
        before = agent.detector.last
        after = await agent.detector.detect()
        if _health(after) != _health(before):
            agent.changed.set()
            agent.freed.set()
        await asyncio.sleep(agent.heartbeat_s)


def _health(found: Detection) -> list[tuple[Any, ...]] | None:
    devices = found.report()
    if devices is None:
        return None
    return [(d["label"], d["healthy"], d.get("health_reason")) for d in devices]
