"""Whether a job can run on a device at all: every reason against. Source: SPEC §5."""

from collections.abc import Callable
from typing import Final

from umbra_compute.model.nodes import Device, DeviceKind, NodeStatus
from umbra_compute.model.placement import Need, NodeView, Scope, Verdict
from umbra_compute.policy.memory import Room

SYSTEM_MEMORY: Final = frozenset({DeviceKind.CPU, DeviceKind.GPU_INTEGRATED})
"""Devices whose memory is system memory: a VRAM floor may be met by RAM, the slow path."""

Rule = Callable[[Need, NodeView, Device, Room], Verdict | None]


def verdicts(need: Need, node: NodeView, device: Device, room: Room) -> tuple[Verdict, ...]:
    """Return every reason against; () means eligible. Static first, then state, then capacity."""
    return tuple(v for rule in RULES if (v := rule(need, node, device, room)) is not None)


def refuses_now(node: NodeView) -> Verdict | None:
    """Return why the node takes nothing at all just now, whatever the job; None if it may."""
    if node.status is not NodeStatus.ONLINE:
        return Verdict(code=str(node.status), scope=Scope.STATE, have=node.silent_since)
    if not node.fresh:
        return Verdict(code="offline", scope=Scope.STATE, have=node.silent_since)
    return None


def carried_by_vram(need: Need, room: Room) -> bool:
    """Tell whether the job would be carried by this device's VRAM as it is now."""
    return need.vram_floor_mb is not None and _fits(need.vram_floor_mb, room.vram_mb)


def _kind(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    if node.kinds is None or need.kind in node.kinds:
        return None
    return Verdict(code="kind", scope=Scope.STATIC, need=need.kind, have=sorted(node.kinds))


def _trust_domain(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    if need.trust_domains is None or node.trust_domain in need.trust_domains:
        return None
    wanted = sorted(need.trust_domains)
    return Verdict(code="trust_domain", scope=Scope.STATIC, need=wanted, have=node.trust_domain)


def _models(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    if not need.unknown_models:
        return None
    return Verdict(code="unknown_model", scope=Scope.STATIC, need=list(need.unknown_models))


def _accelerators(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    if need.accelerators <= set(device.supports_accelerators):
        return None
    return Verdict(
        code="accelerators",
        scope=Scope.STATIC,
        need=sorted(need.accelerators),
        have=list(device.supports_accelerators),
    )


def _memory(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    """Judge what carries the job: VRAM, or RAM where there is no floor for it or it may stand in.

    A discrete card never falls back to system RAM under the GPU's name. Too small in all is
    static; enough in all, and taken just now, is capacity. Unknown is static: until the node
    says more, it cannot be known to fit.
    """
    by_ram = Verdict(code="ram", scope=Scope.CAPACITY, need=need.ram_floor_mb, have=room.ram_mb)
    by_ram = _scoped(by_ram, need.ram_floor_mb, room.ram_total_mb, room.ram_mb)
    ram_fits = need.ram_floor_mb == 0 or _fits(need.ram_floor_mb, room.ram_mb)
    if need.vram_floor_mb is None:
        return None if ram_fits else by_ram
    if _fits(need.vram_floor_mb, room.vram_mb):
        return None
    may_stand_in = device.kind in SYSTEM_MEMORY
    if may_stand_in and ram_fits:
        return None
    by_vram = Verdict(code="vram", scope=Scope.CAPACITY, need=need.vram_floor_mb, have=room.vram_mb)
    by_vram = _scoped(by_vram, need.vram_floor_mb, room.vram_total_mb, room.vram_mb)
    if not may_stand_in or by_vram.scope is Scope.CAPACITY:
        return by_vram
    return by_ram


def _health(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    if device.healthy:
        return None
    return Verdict(code="unhealthy", scope=Scope.STATE, have=device.health_reason)


def _node_state(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    return refuses_now(node)


def _slots(need: Need, node: NodeView, device: Device, room: Room) -> Verdict | None:
    if room.free_slots > 0:
        return None
    return Verdict(code="slots", scope=Scope.CAPACITY, need=1, have=max(0, room.free_slots))


RULES: Final[tuple[Rule, ...]] = (
    _kind,
    _trust_domain,
    _models,
    _accelerators,
    _memory,
    _health,
    _node_state,
    _slots,
)


def _fits(floor_mb: int, available_mb: int | None) -> bool:
    return available_mb is not None and available_mb >= floor_mb


def _scoped(verdict: Verdict, floor_mb: int, total_mb: int | None, now_mb: int | None) -> Verdict:
    """Give the verdict its scope; a static one shows the total, which is what falls short."""
    if total_mb is not None and total_mb < floor_mb:
        return Verdict(code=verdict.code, scope=Scope.STATIC, need=floor_mb, have=total_mb)
    if now_mb is None:
        return Verdict(code=verdict.code, scope=Scope.STATIC, need=floor_mb, have=None)
    return verdict
