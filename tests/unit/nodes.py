"""Nodes, devices and needs for the tests of placement."""

from typing import Any
from uuid import UUID

from umbra_compute.model.jobs import Prefer, Requires
from umbra_compute.model.nodes import Device, DeviceKind, Model, NodeStatus
from umbra_compute.model.placement import ClassRow, Need, NodeView, Reservation
from umbra_compute.policy.needs import need_of

CARD = Device(
    label="card",
    kind=DeviceKind.GPU_DISCRETE,
    vram_total_mb=12000,
    vram_free_mb=12000,
    ram_total_mb=60000,
    ram_free_mb=60000,
    supports_accelerators=("cuda",),
)
CPU = Device(label="cpu", kind=DeviceKind.CPU, ram_total_mb=32000, ram_free_mb=32000)


def node(*devices: Device, **fields: Any) -> NodeView:
    told: dict[str, Any] = {
        "node_id": UUID(int=1),
        "organization_id": UUID(int=2),
        "name": "n1",
        "status": NodeStatus.ONLINE,
        "fresh": True,
        "silent_since": None,
        "trust_domain": "local",
        "locality": None,
        "kinds": None,
        "max_jobs": 8,
        "ram_total_mb": None,
        "ram_free_mb": None,
        "devices": devices,
        "residents": (),
        "reservations": (),
        "uses": (),
    }
    return NodeView(**(told | fields))


def need(*models: Model, kind: str = "work", prefer: Prefer | None = None, **asked: Any) -> Need:
    requires = Requires(models=tuple(m.slug for m in models), **asked)
    chosen = Prefer() if prefer is None else prefer
    return need_of(ClassRow(id=1, kind=kind, requires=requires, prefer=chosen, models=models))


def reservation(n: int, *, device: str = "card", vram_mb: int = 0, ram_mb: int = 0) -> Reservation:
    return Reservation(lease_id=UUID(int=n), device_label=device, vram_mb=vram_mb, ram_mb=ram_mb)
