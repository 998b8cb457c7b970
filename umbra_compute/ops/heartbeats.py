"""A node speaks: one transaction on one connection (S08)."""

import json
from collections.abc import Sequence

import asyncpg
import attrs
import structlog

from umbra_compute.db import Conn, Pool, repeated
from umbra_compute.errors import NodeNotFound
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.nodes import Device, HeartbeatReply, LeaseUse, NodeStatus, Report
from umbra_compute.ops import ending
from umbra_compute.ops.leases import tell
from umbra_compute.policy import liveness
from umbra_compute.store import heartbeats, leases
from umbra_compute.store.heartbeats import LockedNode
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
        node = await heartbeats.lock(conn, caller.node_id)
        if node is None:
            raise NodeNotFound(caller.node_id)
        promised_s = liveness.interval_s(report.heartbeat_interval_s, default_s=interval_s)
        # 2. store, unless it is old news
        given_back: list[ending.Ending] = []
        status, changed = node.status, False
        if not _is_old(node, report):
            if node.agent_instance_id not in (None, report.agent_instance_id):
                given_back = await ending.give_back(conn, node.id)
            changed = await _store(conn, node, report)
            status = await heartbeats.touch(
                conn, node.id, report, interval_s=promised_s, changed=changed
            )
        # 3. what it should know of its leases
        live = await leases.live_of_node(conn, node.id)
    _log(node, report, status, given_back)
    tell(given_back, wake, node.organization_id)
    if changed:
        wake.node_changed(node.organization_id, node.id)
    reported = () if report.leases is None else report.leases
    return HeartbeatReply(
        node_id=node.id,
        status=NodeStatus(status),
        heartbeat_interval_s=promised_s,
        lost_leases=tuple(use.lease_id for use in reported if use.lease_id not in live),
        cancel=tuple(lease_id for lease_id, asked in live.items() if asked),
    )


def _is_old(node: LockedNode, report: Report) -> bool:
    return (
        node.agent_instance_id == report.agent_instance_id
        and node.heartbeat_sequence is not None
        and report.sequence <= node.heartbeat_sequence
    )


async def _store(conn: Conn, node: LockedNode, report: Report) -> bool:
    """Store what differs; tell whether anything did that placement looks at."""
    changed = (
        node.status in (NodeStatus.PROVISIONING, NodeStatus.OFFLINE)
        or report.max_jobs not in (None, node.max_jobs)
        or (report.kinds_given and _listed(report.kinds) != node.kinds)
    )
    if report.devices is not None:
        now = await heartbeats.devices_of(conn, node.id)
        if _plain(now) != [_fields(device) for device in report.devices]:
            await heartbeats.put_devices(conn, node.id, report.devices)
            changed = True
    if report.residents is not None:
        rows = await heartbeats.residents_of(conn, node.id)
        told = sorted(
            (r.slug, "" if r.device is None else r.device, str(r.state), r.vram_held_mb,
             r.ram_held_mb, r.busy)
            for r in report.residents
        )  # fmt: skip
        if [tuple(row) for row in rows] != told:
            changed = True
        if rows or told:
            await heartbeats.put_residents(conn, node.id, report.residents)
    uses = None if report.leases is None else [_use(use) for use in report.leases]
    await heartbeats.put_measurements(
        conn,
        node.id,
        report.active_jobs,
        None if report.measurements is None else json.dumps(report.measurements),
        None if uses is None else json.dumps(uses),
    )
    return changed


def _listed(kinds: Sequence[str] | None) -> list[str] | None:
    return None if kinds is None else list(kinds)


def _plain(rows: Sequence[asyncpg.Record]) -> list[dict[str, object]]:
    return [dict(row) for row in rows]


def _fields(device: Device) -> dict[str, object]:
    told = attrs.asdict(device, recurse=False)
    return told | {
        "kind": str(told["kind"]),
        "supports_accelerators": list(told["supports_accelerators"]),
    }


def _use(use: LeaseUse) -> dict[str, object]:
    told = attrs.asdict(use, recurse=False)
    return told | {"lease_id": str(told["lease_id"])}


def _log(node: LockedNode, report: Report, status: str, given_back: Sequence[object]) -> None:
    fields = {"node_id": node.id, "agent_instance_id": report.agent_instance_id}
    if node.agent_instance_id != report.agent_instance_id:
        log.info("agent.started", **fields, given_back=len(given_back))
    if node.status != status:
        log.info("node.online" if status == NodeStatus.ONLINE else "node.changed", **fields)
