"""Machines, what they compute with, and what they last said."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import attrs


class NodeStatus(StrEnum):
    """The words of the CHECK on compute_nodes.status; a test compares the two."""

    PROVISIONING = "provisioning"
    ONLINE = "online"
    DRAINING = "draining"
    OFFLINE = "offline"
    RETIRED = "retired"


class DeviceKind(StrEnum):
    """The words of the CHECK on compute_devices.kind."""

    CPU = "cpu"
    GPU_INTEGRATED = "gpu_integrated"
    GPU_DISCRETE = "gpu_discrete"


class ResidentState(StrEnum):
    """The words of the CHECK on node_models.state."""

    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"


@attrs.frozen(kw_only=True)
class Device:
    """One thing on a node that computes. Memory of None is unknown, which is not zero."""

    label: str
    kind: DeviceKind
    vram_total_mb: int | None = None
    vram_free_mb: int | None = None
    ram_total_mb: int | None = None
    ram_free_mb: int | None = None
    compute_units: float | None = None
    throughput_factor: float = 1.0
    supports_accelerators: tuple[str, ...] = ()
    healthy: bool = True
    health_reason: str | None = None


@attrs.frozen(kw_only=True)
class Resident:
    """A model that a node said it holds. A device of None: the server does not tell which."""

    slug: str
    device: str | None = None
    state: ResidentState = ResidentState.LOADED
    vram_held_mb: int | None = None
    ram_held_mb: int | None = None
    busy: bool = False
    last_used_s: float | None = None


@attrs.frozen(kw_only=True)
class LeaseUse:
    """What a lease uses by the node's own measurement."""

    lease_id: UUID
    vram_used_mb: int | None = None
    ram_used_mb: int | None = None


@attrs.frozen(kw_only=True)
class Report:
    """One heartbeat. None for devices, residents, max_jobs, leases: not spoken of, unchanged.

    `kinds_given` tells "any kind" (kinds None, given) from "not spoken of".
    """

    agent_version: str
    agent_instance_id: UUID
    sequence: int
    heartbeat_interval_s: float | None = None
    measurements: dict[str, float | int | None] | None = None
    devices: tuple[Device, ...] | None = None
    residents: tuple[Resident, ...] | None = None
    active_jobs: int | None = None
    leases: tuple[LeaseUse, ...] | None = None
    max_jobs: int | None = None
    kinds: tuple[str, ...] | None = None
    kinds_given: bool = False


@attrs.frozen(kw_only=True)
class Known:
    """A node as it was before its report. None for instance and sequence: it never spoke."""

    id: UUID
    organization_id: UUID
    status: NodeStatus
    agent_instance_id: UUID | None
    heartbeat_sequence: int | None
    max_jobs: int
    kinds: tuple[str, ...] | None


@attrs.frozen(kw_only=True)
class HeartbeatReply:
    """What a node hears back."""

    node_id: UUID
    status: NodeStatus
    heartbeat_interval_s: float
    lost_leases: tuple[UUID, ...]
    cancel: tuple[UUID, ...]

    @property
    def draining(self) -> bool:
        return self.status is NodeStatus.DRAINING


@attrs.frozen(kw_only=True)
class Node:
    """A node as the API shows it."""

    id: UUID
    organization_id: UUID
    name: str
    is_controller: bool
    trust_domain: str
    locality: str | None
    transport: str
    status: NodeStatus
    agent_version: str | None
    agent_instance_id: UUID | None
    agent_started_at: datetime | None
    last_heartbeat_at: datetime | None
    max_jobs: int
    kinds: tuple[str, ...] | None
    running_jobs: int
    measurements: dict[str, float | int | None] | None
    created_at: datetime
    updated_at: datetime
    devices: tuple[Device, ...] = ()
    residents: tuple[Resident, ...] = ()


@attrs.frozen(kw_only=True)
class Model:
    """A registered model: what it needs. A figure of None is not known and asks for nothing."""

    slug: str
    kind: str | None = None
    vram_min_mb: int | None = None
    vram_preferred_mb: int | None = None
    ram_min_mb: int | None = None
    requires_accelerators: tuple[str, ...] = ()
    reference_throughput: float | None = None
    load_seconds: float | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
