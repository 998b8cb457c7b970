"""How much memory a device has for another job. Source: SPEC §5, reservations.

available = min(total - all reservations, reported free - what leases reserved and the
report does not show yet), per device for VRAM, per node for RAM.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final
from uuid import UUID

import attrs

from umbra_compute.model.nodes import Device, LeaseUse, Resident, ResidentState
from umbra_compute.model.placement import NodeView

_UNSEEN: Final = LeaseUse(lease_id=UUID(int=0))


@attrs.frozen(kw_only=True)
class Room:
    """Memory in MB, and places. None is unknown, and never passes a test that needs memory."""

    vram_total_mb: int | None
    vram_mb: int | None
    ram_total_mb: int | None
    ram_mb: int | None
    free_slots: int


@attrs.define
class Ledger:
    """What is promised on one node: sums, so that one more promise costs the same as the first.

    Unshown is what leases were promised and the node's own figures do not hold yet.
    """

    jobs: int = 0
    ram_mb: int = 0
    ram_unshown_mb: int = 0
    vram_mb: Counter[str] = attrs.Factory(Counter)  # by device
    vram_unshown_mb: Counter[str] = attrs.Factory(Counter)

    @classmethod
    def of(cls, node: NodeView) -> "Ledger":
        """Return what the node's live leases were promised."""
        ledger = cls()
        uses = {use.lease_id: use for use in node.uses}
        for one in node.reservations:
            use = uses.get(one.lease_id, _UNSEEN)
            ledger.add(
                one.device_label,
                vram_mb=one.vram_mb,
                ram_mb=one.ram_mb,
                vram_used_mb=use.vram_used_mb,
                ram_used_mb=use.ram_used_mb,
            )
        return ledger

    def add(
        self,
        device_label: str,
        *,
        vram_mb: int,
        ram_mb: int,
        vram_used_mb: int | None = None,
        ram_used_mb: int | None = None,
    ) -> None:
        """Promise this much to one more job; used is what a report shows of it already."""
        self.jobs += 1
        self.ram_mb += ram_mb
        self.ram_unshown_mb += _unshown(ram_mb, ram_used_mb)
        self.vram_mb[device_label] += vram_mb
        self.vram_unshown_mb[device_label] += _unshown(vram_mb, vram_used_mb)


def room_on(node: NodeView, ledger: Ledger, device: Device, models: Iterable[str]) -> Room:
    """Return what the device has in all, and what a job that uses `models` may take now.

    Models already loaded on the device count their own held memory in the job's favour.
    """
    ram_total = device.ram_total_mb if device.ram_total_mb is not None else node.ram_total_mb
    ram_free = device.ram_free_mb if device.ram_free_mb is not None else node.ram_free_mb
    vram_held, ram_held = held_by(node, device, models)
    return Room(
        vram_total_mb=device.vram_total_mb,
        vram_mb=_available(
            device.vram_total_mb,
            device.vram_free_mb,
            reserved=ledger.vram_mb[device.label],
            unshown=ledger.vram_unshown_mb[device.label],
            held=vram_held,
        ),
        ram_total_mb=ram_total,
        ram_mb=_available(
            ram_total,
            ram_free,
            reserved=ledger.ram_mb,
            unshown=ledger.ram_unshown_mb,
            held=ram_held,
        ),
        free_slots=node.max_jobs - ledger.jobs,
    )


def held_by(node: NodeView, device: Device, models: Iterable[str]) -> tuple[int, int]:
    """Return the (VRAM, RAM) in MB that `models` hold on the device; unknown counts nothing."""
    wanted = set(models)
    loaded = [r for r in node.residents if r.slug in wanted and _is_loaded_on(r, device)]
    vram = sum(r.vram_held_mb for r in loaded if r.vram_held_mb is not None)
    ram = sum(r.ram_held_mb for r in loaded if r.ram_held_mb is not None)
    return vram, ram


def is_resident(node: NodeView, device: Device, models: Iterable[str]) -> bool:
    """Tell whether every one of `models` (at least one) is loaded on the device now."""
    wanted = set(models)
    loaded = {r.slug for r in node.residents if _is_loaded_on(r, device)}
    return bool(wanted) and wanted <= loaded


def _is_loaded_on(resident: Resident, device: Device) -> bool:
    return resident.state is ResidentState.LOADED and resident.device == device.label


def _unshown(reserved_mb: int, used_mb: int | None) -> int:
    """What a lease was promised and the node's own figures do not hold yet."""
    return reserved_mb if used_mb is None else max(0, reserved_mb - used_mb)


def _available(
    total: int | None, free: int | None, *, reserved: int, unshown: int, held: int
) -> int | None:
    if free is None:
        return None
    by_report = free - unshown + held
    by_promise = by_report if total is None else total - reserved
    return max(0, min(by_report, by_promise))
