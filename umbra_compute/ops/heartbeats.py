"""A node speaks: one transaction on one connection (S08)."""

import json
from collections.abc import Sequence

import attrs
import structlog

from umbra_compute.db import Conn, Pool, repeated
from umbra_compute.errors import NodeNotFound
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.nodes import HeartbeatReply, Known, LeaseUse, NodeStatus, Report
from umbra_compute.ops import ending
from umbra_compute.ops.leases import tell
from umbra_compute.policy import liveness, reports, views
from umbra_compute.store import devices, heartbeats, leases
from umbra_compute.wake import Wake

log = structlog.get_logger(__name__)


@repeated
async def beat(
    pool: Pool, wake: Wake, caller: NodeIdentity, report: Report, *, interval_s: float
) -> HeartbeatReply:
    """Store what the node reports and tell it what to do. Safe to repeat.

    A report that is not newer than the last of the same agent process changes nothing. Another
    process gives the leases of the old one back. `interval_s` is the rhythm that the node is
    told to keep, unless it says that it keeps a slower one.

    Raises NodeNotFound if the node is gone.
    """
    async with pool.acquire() as conn, conn.transaction():
        # 1. lock the node
        known = await heartbeats.lock(conn, caller.node_id)
        if known is None:
            raise NodeNotFound(caller.node_id)
        promised_s = liveness.interval_s(report.heartbeat_interval_s, default_s=interval_s)
        # 2. end what a process that is gone held, 3. store what is new
        given_back: list[ending.Ending] = []
        status, changed = known.status, False
        if not reports.is_old(known, report):
            if reports.is_restart(known, report):
                given_back = await ending.give_back(conn, known.id)
            status, changed = await _store(conn, known, report, promised_s)
        # 4. what it should know of its leases
        live = await leases.live_of_node(conn, known.id)
    _log(known, report, status, given_back)
    tell(given_back, wake, known.organization_id)
    if changed:
        wake.node_changed(known.organization_id, known.id)
    reported = () if report.leases is None else report.leases
    return HeartbeatReply(
        node_id=known.id,
        status=status,
        heartbeat_interval_s=promised_s,
        lost_leases=tuple(use.lease_id for use in reported if use.lease_id not in live),
        cancel=tuple(lease_id for lease_id, asked in live.items() if asked),
    )


async def _store(
    conn: Conn, known: Known, report: Report, promised_s: float
) -> tuple[NodeStatus, bool]:
    """Store what differs; return the status, and whether anything that placement looks at did."""
    stored = await heartbeats.stored(conn, known.id)
    had = views.devices_of(stored["devices"]), views.residents_of(stored["residents"])
    news = reports.news(known, *had, report)
    if news.devices and report.devices is not None:
        await devices.put(conn, known.id, report.devices)
    if news.residents and report.residents is not None:
        await devices.put_residents(conn, known.id, report.residents)
    uses = None if report.leases is None else [_use(use) for use in report.leases]
    status = await heartbeats.touch(
        conn,
        report,
        node_id=known.id,
        interval_s=promised_s,
        changed=news.placement,
        measurements=None if report.measurements is None else json.dumps(report.measurements),
        use=None if uses is None else json.dumps(uses),
    )
    return status, news.placement


def _use(use: LeaseUse) -> dict[str, object]:
    told = attrs.asdict(use, recurse=False)
    return told | {"lease_id": str(told["lease_id"])}


def _log(known: Known, report: Report, status: NodeStatus, given_back: Sequence[object]) -> None:
    fields = {"node_id": known.id, "agent_instance_id": report.agent_instance_id}
    if known.agent_instance_id != report.agent_instance_id:
        log.info("agent.started", **fields, given_back=len(given_back))
    if known.status is not status:
        log.info("node.online", **fields, was=known.status)
