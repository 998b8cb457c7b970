"""The heartbeat. It waits for nothing: not for a job, not for detection, not for a claim."""

import os
from typing import Any, Final

from umbra_agent import __version__, backoff, log
from umbra_agent.agent import Agent
from umbra_agent.backoff import Backoff
from umbra_agent.devices.busy import Busy
from umbra_agent.devices.memory import memory
from umbra_agent.errors import Away, Refused
from umbra_agent.outcome import Stop

LEAST_S: Final = 0.1  # a controller that asks for less asks for a storm
MOST_S: Final = 3600.0  # and for more, for silence


async def beat(agent: Agent) -> None:
    """Report at the rhythm that the controller asks for, and at once when something changed.

    Raises KeyRefused: an agent that may not speak may not work either.
    """
    sequence, pauses, busy = 0, Backoff(), Busy()
    while True:
        sequence += 1
        agent.changed.clear()
        report = _report(agent, sequence, busy)
        try:
            reply = await agent.controller.heartbeat(report)
        except (Away, Refused) as exc:
            if pauses.is_news(exc):
                log.warning("controller.away", reason=str(exc))
            wait_s = pauses.pause_s(exc)
        else:
            failures = pauses.over()
            if failures:
                agent.hear()
            if failures or sequence == 1:
                log.info("controller.heard", status=reply["status"], failures=failures)
            _obey(agent, reply, told_devices="devices" in report)
            wait_s = agent.heartbeat_s
        await backoff.until(agent.changed, wait_s)


def _obey(agent: Agent, reply: dict[str, Any], *, told_devices: bool) -> None:
    own = agent.config.heartbeat_s
    agent.heartbeat_s = _within(reply["heartbeat_interval_s"]) if own is None else own
    could_claim = agent.may_claim
    agent.is_draining = reply["draining"]
    agent.has_devices = agent.has_devices or told_devices
    if agent.may_claim and not could_claim:
        agent.freed.set()
    for lease_id in agent.held.keys() & set(reply["lost_leases"]):
        agent.held[lease_id].lose()
    for lease_id in agent.held.keys() & set(reply["cancel"]):
        agent.held[lease_id].end(Stop.CANCEL)


def _within(asked_s: float) -> float:
    return min(MOST_S, max(LEAST_S, asked_s))


def _report(agent: Agent, sequence: int, busy: Busy) -> dict[str, Any]:
    report: dict[str, Any] = {
        "agent_version": __version__,
        "agent_instance_id": agent.instance_id,
        "sequence": sequence,
        "measurements": _measurements(agent, busy),
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


def _measurements(agent: Agent, busy: Busy) -> dict[str, float | int | None]:
    ram = memory()
    return {
        "cpu_busy_pct": busy.since_last_pct(),
        "ram_total_mb": ram.total_mb,
        "ram_free_mb": ram.free_mb,
        "disk_free_mb": agent.detector.last.disk_free_mb,
        "load_avg_1m": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }
