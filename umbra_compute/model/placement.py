"""What placement looks at, and what it answers."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import attrs

from umbra_compute.model.jobs import Prefer, Requires
from umbra_compute.model.nodes import Device, LeaseUse, Model, NodeStatus, Resident


class Scope(StrEnum):
    """How lasting a refusal is (SPEC §5)."""

    STATIC = "static"  # could never run here
    STATE = "state"  # not while the node or device is as it is
    CAPACITY = "capacity"  # full just now


@attrs.frozen(kw_only=True)
class Verdict:
    """One reason against, with what was needed and what is there."""

    code: str
    scope: Scope
    need: Any = None
    have: Any = None


@attrs.frozen(kw_only=True)
class Need:
    """What any job of a class asks of a node, its models' needs counted in.

    Memory in MB. vram_floor_mb None: carried by RAM alone. `unknown_models` are not registered.
    """

    kind: str
    vram_floor_mb: int | None
    ram_floor_mb: int
    accelerators: frozenset[str]
    trust_domains: frozenset[str] | None
    models: tuple[str, ...]
    unknown_models: tuple[str, ...]
    prefer: Prefer


@attrs.frozen(kw_only=True)
class ClassRow:
    """A requirement class as it is stored, with the registry's rows of its models."""

    id: int
    kind: str
    requires: Requires
    prefer: Prefer
    models: tuple[Model, ...]


@attrs.frozen(kw_only=True)
class Reservation:
    """What a live lease was promised."""

    lease_id: UUID
    device_label: str
    vram_mb: int
    ram_mb: int


@attrs.frozen(kw_only=True)
class NodeView:
    """One node at the moment of a claim, by the database's clock.

    `ram_*` are the node's own figures, for devices that report none.
    """

    node_id: UUID
    organization_id: UUID
    name: str
    status: NodeStatus
    fresh: bool
    silent_since: datetime | None
    trust_domain: str
    locality: str | None
    kinds: frozenset[str] | None
    max_jobs: int
    ram_total_mb: int | None
    ram_free_mb: int | None
    devices: tuple[Device, ...]
    residents: tuple[Resident, ...]
    reservations: tuple[Reservation, ...]
    uses: tuple[LeaseUse, ...]


@attrs.frozen(kw_only=True)
class Head:
    """A job at the front of its class's line: what orders it among the others."""

    class_id: int
    priority: int
    not_before: datetime
    seq: int


@attrs.frozen(kw_only=True)
class Score:
    """How well a job would run on a device, and the factors it is the product of."""

    value: float
    parts: tuple[tuple[str, float], ...]


@attrs.frozen(kw_only=True)
class Grant:
    """One job of a class may start on this device, with this much promised to it."""

    class_id: int
    device: Device
    vram_mb: int
    ram_mb: int
    reason: str
    score: Score
    resident: bool
