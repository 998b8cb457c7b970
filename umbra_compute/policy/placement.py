"""Which waiting jobs a node is given, and on which device. Source: SPEC §5.

score = throughput_factor x (1 resident | 0.7 must load) x 1.5 if affine x 0.5 on the slow path
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import attrs

from umbra_compute.model.nodes import Device
from umbra_compute.model.placement import (
    Grant,
    Head,
    Need,
    NodeView,
    Reservation,
    Scope,
    Score,
)
from umbra_compute.policy import eligibility
from umbra_compute.policy.memory import is_resident, room_on

MUST_LOAD: Final = 0.7
AFFINE: Final = 1.5
SLOW_PATH: Final = 0.5  # a model held in RAM runs; a real device of half the speed does as well

_PENDING: Final = UUID(int=0)  # no report can show a lease that does not exist yet


def choose(
    node: NodeView, needs: Mapping[int, Need], heads: Sequence[Head], limit: int
) -> tuple[Grant, ...]:
    """Return what the node may start, at most `limit`, in the order of the line.

    `heads` are in the order priority, not_before, seq over all classes. Each grant takes its
    slot and its memory before the next is judged, so that jobs which fit one by one and not
    together are not handed out together (N01).
    """
    granted: list[Grant] = []
    full: set[int] = set()  # what did not fit does not fit behind another job either
    for head in heads:
        if len(granted) == limit:
            break
        if head.class_id in full:
            continue
        grant = place(node, head.class_id, needs[head.class_id])
        if grant is None:
            full.add(head.class_id)
            continue
        granted.append(grant)
        node = _with(node, grant)
    return tuple(granted)


def place(node: NodeView, class_id: int, need: Need) -> Grant | None:
    """Return the best device of the node for one job of a class, None if none is eligible.

    Ties are broken by the device's label, so that equal values give equal answers.
    """
    grants = [g for device in node.devices if (g := _on(node, device, class_id, need)) is not None]
    return min(grants, key=lambda g: (-g.score.value, g.device.label), default=None)


def might_run(node: NodeView, need: Need) -> bool:
    """Tell whether any device could run it but for what is full or unwell just now."""
    return any(
        not any(
            v.scope is Scope.STATIC
            for v in eligibility.verdicts(need, node, device, room_on(node, device, need.models))
        )
        for device in node.devices
    )


def count_by_class(grants: Sequence[Grant]) -> Counter[int]:
    return Counter(grant.class_id for grant in grants)


def _on(node: NodeView, device: Device, class_id: int, need: Need) -> Grant | None:
    room = room_on(node, device, need.models)
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


def _with(node: NodeView, grant: Grant) -> NodeView:
    promised = Reservation(
        lease_id=_PENDING,
        device_label=grant.device.label,
        vram_mb=grant.vram_mb,
        ram_mb=grant.ram_mb,
    )
    return attrs.evolve(node, reservations=(*node.reservations, promised))
