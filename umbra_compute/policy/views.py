"""From the rows of a claim's snapshot to the values that placement decides on."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from umbra_compute.model.nodes import Device, DeviceKind, LeaseUse, Node, NodeStatus, Resident
from umbra_compute.model.nodes import ResidentState as State
from umbra_compute.model.placement import NodeView, Reservation


def node_view(row: Mapping[str, Any]) -> NodeView:
    """Return the node of `claiming.snapshot`, whose nested columns are JSON text or None."""
    measured = _read(row["measurements"], {})
    return NodeView(
        node_id=row["node_id"],
        organization_id=row["organization_id"],
        name=row["name"],
        status=NodeStatus(row["status"]),
        fresh=row["fresh"],
        silent_since=row["silent_since"],
        trust_domain=row["trust_domain"],
        locality=row["locality"],
        kinds=None if row["kinds"] is None else frozenset(row["kinds"]),
        max_jobs=row["max_jobs"],
        ram_total_mb=measured.get("ram_total_mb"),
        ram_free_mb=measured.get("ram_free_mb"),
        devices=tuple(_device(d) for d in _read(row["devices"], [])),
        residents=tuple(_resident(r) for r in _read(row["residents"], [])),
        reservations=tuple(
            Reservation(
                lease_id=UUID(r["lease_id"]),
                device_label=r["device_label"],
                vram_mb=r["vram_mb"],
                ram_mb=r["ram_mb"],
            )
            for r in _read(row["reservations"], [])
        ),
        uses=tuple(
            LeaseUse(
                lease_id=UUID(u["lease_id"]),
                vram_used_mb=u.get("vram_used_mb"),
                ram_used_mb=u.get("ram_used_mb"),
            )
            for u in _read(row["lease_use"], [])
        ),
    )


def shown_node(row: Mapping[str, Any]) -> Node:
    """Return the node of `nodes.show`, whose nested columns are JSON text or None."""
    told = dict(row)
    return Node(
        **told
        | {
            "status": NodeStatus(told["status"]),
            "kinds": None if told["kinds"] is None else tuple(told["kinds"]),
            "measurements": _read(told["measurements"], None),
            "devices": devices_of(told["devices"]),
            "residents": residents_of(told["residents"]),
        }
    )


def devices_of(text: str | None) -> tuple[Device, ...]:
    """Return the devices that a column of JSON holds; None is none."""
    return tuple(_device(row) for row in _read(text, []))


def residents_of(text: str | None) -> tuple[Resident, ...]:
    """Return the resident models that a column of JSON holds; None is none."""
    return tuple(_resident(row) for row in _read(text, []))


def _device(row: dict[str, Any]) -> Device:
    return Device(
        label=row["label"],
        kind=DeviceKind(row["kind"]),
        vram_total_mb=row["vram_total_mb"],
        vram_free_mb=row["vram_free_mb"],
        ram_total_mb=row["ram_total_mb"],
        ram_free_mb=row["ram_free_mb"],
        compute_units=None if row["compute_units"] is None else float(row["compute_units"]),
        throughput_factor=float(row["throughput_factor"]),  # JSON says 1 for 1.0
        supports_accelerators=tuple(row["supports_accelerators"]),
        healthy=row["healthy"],
        health_reason=row["health_reason"],
    )


def _resident(row: dict[str, Any]) -> Resident:
    return Resident(
        slug=row["slug"],
        device=None if row["device"] == "" else row["device"],
        state=State(row["state"]),
        vram_held_mb=row["vram_held_mb"],
        ram_held_mb=row["ram_held_mb"],
        busy=row["busy"],
        last_used_s=_age(row.get("last_used_s")),  # the claim's snapshot does not ask for it
    )


def _age(told: float | None) -> float | None:
    return None if told is None else float(told)


def _read(text: str | None, absent: Any) -> Any:
    return absent if text is None else json.loads(text)
