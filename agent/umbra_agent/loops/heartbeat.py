"""The heartbeat. It waits for nothing: not for a job, not for detection, not for a claim."""

import asyncio
import os
import random
import shutil
from contextlib import suppress
from typing import Any

from umbra_agent import __version__, fence, log
from umbra_agent.agent import Agent
from umbra_agent.devices.memory import MIB, memory
from umbra_agent.errors import Away, Refused
from umbra_agent.outcome import Stop


async def beat(agent: Agent) -> None:
    """Report at the rhythm that the controller asks for, and at once when something changed.

    Raises KeyRefused: an agent that may not speak may not work either.
    """
    sequence, failures = 0, 0
    while True:
        sequence += 1
        agent.changed.clear()
        try:
            reply = await agent.controller.heartbeat(_report(agent, sequence))
        except (Away, Refused) as exc:
            failures += 1
            if failures == 1:
                log.warning("controller.away", reason=str(exc))
            retry_after_s = exc.retry_after_s if isinstance(exc, Away) else None
            wait_s = fence.backoff_s(failures, random.random(), retry_after_s)  # noqa: S311
        else:
            if failures or sequence == 1:
                log.info("controller.heard", status=reply["status"], failures=failures)
            failures = 0
            _obey(agent, reply)
            wait_s = agent.heartbeat_s
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await agent.changed.wait()


def _obey(agent: Agent, reply: dict[str, Any]) -> None:
    own = agent.config.heartbeat_s
    agent.heartbeat_s = reply["heartbeat_interval_s"] if own is None else own
    agent.is_draining = reply["draining"]
    if agent.detector.last.devices is not None and not agent.has_devices:
        agent.has_devices = True
        agent.freed.set()
    for lease_id in reply["lost_leases"]:
        if lease_id in agent.held:
            agent.held[lease_id].end(Stop.LOST)
    for lease_id in reply["cancel"]:
        if lease_id in agent.held:
            agent.held[lease_id].end(Stop.CANCEL)


def _report(agent: Agent, sequence: int) -> dict[str, Any]:
    report: dict[str, Any] = {
        "agent_version": __version__,
        "agent_instance_id": agent.instance_id,
        "sequence": sequence,
        "measurements": _measurements(agent),
        "active_jobs": len(agent.held),
        "leases": [{"lease_id": lease_id} for lease_id in agent.held],
        "max_jobs": agent.config.max_jobs,
        "kinds": list(agent.config.kinds),
        "resident_models": [],
    }
    if agent.config.heartbeat_s is not None:
        report["heartbeat_interval_s"] = agent.config.heartbeat_s
    devices = agent.detector.last.report()
    return report if devices is None else {**report, "devices": devices}


def _measurements(agent: Agent) -> dict[str, float | int | None]:
    ram = memory()
    try:
        disk_mb: int | None = shutil.disk_usage(agent.work_dir).free // MIB
    except OSError:
        disk_mb = None
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "ram_total_mb": ram.total_mb,
        "ram_free_mb": ram.free_mb,
        "disk_free_mb": disk_mb,
        "load_avg_1m": load,
    }
