"""Which waiting jobs a node is given, and on which device. Source: SPEC §5.

score = throughput_factor x (1 resident | 0.7 must load) x 1.5 if affine x 0.5 on the slow path
"""

from collections.abc import Mapping, Sequence
from typing import Final

from umbra_compute.model.nodes import Device
from umbra_compute.model.placement import (
    Grant,
    Head,
    Need,
    NodeView,
    Scope,
    Score,
)
from umbra_compute.policy import eligibility
from umbra_compute.policy.memory import Ledger, Room, is_resident, room_on

MUST_LOAD: Final = 0.7
AFFINE: Final = 1.5
SLOW_PATH: Final = 0.5  # a model held in RAM runs; a real device of half the speed does as well


def choose(
    node: NodeView, needs: Mapping[int, Need], heads: Sequence[Head], limit: int
) -> tuple[Grant, ...]:
    """Return what the node may start, at most `limit`, in the order of the line.

    `heads` are in the order priority, not_before, seq over all classes. Each grant takes its
    slot and its memory before the next is judged, so that jobs which fit one by one and not
    together are not handed out together (N01).
    """
    ledger = Ledger.of(node)
    granted: list[Grant] = []
    full: set[int] = set()  # what did not fit does not fit behind another job either
    weightless: dict[int, Grant] = {}  # what takes no memory stands as long as there is a place
    for head in heads:
        if len(granted) == limit or ledger.jobs >= node.max_jobs:
            break
        if head.class_id in full:
            continue
        grant = weightless.get(head.class_id)
        if grant is None:
            grant = place(node, head.class_id, needs[head.class_id], ledger)
        if grant is None:
            full.add(head.class_id)
            continue
        if grant.vram_mb == 0 and grant.ram_mb == 0:
            weightless[head.class_id] = grant
        granted.append(grant)
        ledger.add(grant.device.label, vram_mb=grant.vram_mb, ram_mb=grant.ram_mb)
    return tuple(granted)


def place(node: NodeView, class_id: int, need: Need, ledger: Ledger | None = None) -> Grant | None:
    """Return the best device of the node for one job of a class, None if none is eligible.

    `ledger` is what is promised so far; None: what the node's live leases were promised.
    Ties are broken by the device's label, so that equal values give equal answers.
    """
    promised = Ledger.of(node) if ledger is None else ledger
    rooms = [(device, room_on(node, promised, device, need.models)) for device in node.devices]
    grants = [g for one in rooms if (g := _on(node, *one, class_id, need)) is not None]
    return min(grants, key=lambda g: (-g.score.value, g.device.label), default=None)


def might_run(node: NodeView, need: Need) -> bool:
    """Tell whether any device could run it but for what is full or unwell just now."""
    ledger = Ledger.of(node)
    rooms = [(device, room_on(node, ledger, device, need.models)) for device in node.devices]
    return any(
        all(v.scope is not Scope.STATIC for v in eligibility.verdicts(need, node, *one))
        for one in rooms
    )


def _on(node: NodeView, device: Device, room: Room, class_id: int, need: Need) -> Grant | None:
    if eligibility.verdicts(need, node, device, room):
        return None
    by_vram = eligibility.carried_by_vram(need, room)
    slow = need.vram_floor_mb is not None and not by_vram
    affine = _is_affine(need, node)
    resident = is_resident(node, device, need.models)
    return Grant(
        class_id=class_id,
        device=device,
        vram_mb=need.vram_floor_mb if by_vram and need.vram_floor_mb is not None else 0,
        ram_mb=0 if by_vram else need.ram_floor_mb,
        reason=_reason(device, slow=slow, affine=affine),
        score=_score(device, need, resident=resident, affine=affine, slow=slow),
        resident=resident,
    )


def _score(device: Device, need: Need, *, resident: bool, affine: bool, slow: bool) -> Score:
    parts = (
        ("throughput", device.throughput_factor),
        ("resident", 1.0 if resident or not need.models else MUST_LOAD),
        ("affine", AFFINE if affine else 1.0),
        ("slow_path", SLOW_PATH if slow else 1.0),
    )
    value = 1.0
    for _, factor in parts:
        value *= factor
    return Score(value=value, parts=parts)


def _is_affine(need: Need, node: NodeView) -> bool:
    by_node = need.prefer.node is not None and need.prefer.node in (str(node.node_id), node.name)
    by_place = need.prefer.locality is not None and need.prefer.locality == node.locality
    return by_node or by_place


def _reason(device: Device, *, slow: bool, affine: bool) -> str:
    how = "local_affinity" if affine else "placed"
    return f"{how}:{'slow_path:ram_not_vram' if slow else device.kind}"
