"""Nodes, heartbeats and models on the wire."""

from typing import Annotated, Self
from uuid import UUID

import msgspec

from umbra_compute.http import wire
from umbra_compute.http.wire import Megabytes, Name, NotNegativeFloat, Slug, Text
from umbra_compute.model import nodes as values
from umbra_compute.model.nodes import DeviceKind, NodeStatus, ResidentState

Names = Annotated[list[Name], msgspec.Meta(max_length=500)]
MaxJobs = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
Sequence = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
IntervalSeconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Factor = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
"""Times faster than the reference. Scores are products of it, and must stay numbers."""

Throughput = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
StorableSlug = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern="^[^\0]*$")]
"""A slug from a cursor, which no body's checks have seen."""

Version = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request may hold: these fields and no others."""


class MeasurementsBody(Frozen, frozen=True, kw_only=True):
    cpu_busy_pct: Percent | None = None
    ram_total_mb: Megabytes | None = None
    ram_free_mb: Megabytes | None = None
    vram_total_mb: Megabytes | None = None
    vram_free_mb: Megabytes | None = None
    disk_free_mb: Megabytes | None = None
    load_avg_1m: NotNegativeFloat | None = None


class DeviceBody(Frozen, frozen=True, kw_only=True):
    label: Name
    kind: DeviceKind
    vram_total_mb: Megabytes | None = None
    vram_free_mb: Megabytes | None = None
    ram_total_mb: Megabytes | None = None
    ram_free_mb: Megabytes | None = None
    compute_units: NotNegativeFloat | None = None
    throughput_factor: Factor = 1.0
    supports_accelerators: Annotated[list[Name], msgspec.Meta(max_length=100)] = []
    healthy: bool = True
    health_reason: Text | None = None

    def value(self) -> values.Device:
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        return values.Device(
            **told | {"supports_accelerators": tuple(sorted(set(self.supports_accelerators)))}
        )


class ResidentBody(Frozen, frozen=True, kw_only=True):
    slug: Slug
    device: Name | None = None
    state: ResidentState = ResidentState.LOADED
    vram_held_mb: Megabytes | None = None
    ram_held_mb: Megabytes | None = None
    busy: bool = False
    last_used_s: wire.Seconds | None = None

    def value(self) -> values.Resident:
        return values.Resident(**{name: getattr(self, name) for name in self.__struct_fields__})


class LeaseUseBody(Frozen, frozen=True, kw_only=True):
    lease_id: UUID
    vram_used_mb: Megabytes | None = None
    ram_used_mb: Megabytes | None = None


class HeartbeatBody(Frozen, frozen=True, kw_only=True):
    agent_version: Version
    agent_instance_id: UUID
    sequence: Sequence
    heartbeat_interval_s: IntervalSeconds | None = None
    measurements: MeasurementsBody | None = None
    devices: Annotated[list[DeviceBody], msgspec.Meta(max_length=256)] | None = None
    resident_models: Annotated[list[Slug | ResidentBody], msgspec.Meta(max_length=1000)] | None = (
        None
    )
    active_jobs: wire.NotNegativeInt | None = None
    leases: Annotated[list[LeaseUseBody], msgspec.Meta(max_length=10_000)] | None = None
    max_jobs: MaxJobs | None = None
    kinds: Names | msgspec.UnsetType | None = msgspec.UNSET


class HeartbeatReply(msgspec.Struct, frozen=True, kw_only=True):
    node_id: UUID
    status: NodeStatus
    heartbeat_interval_s: float
    lost_leases: tuple[UUID, ...]
    cancel: tuple[UUID, ...]
    draining: bool

    @classmethod
    def of(cls, reply: values.HeartbeatReply) -> Self:
        return cls(
            node_id=reply.node_id,
            status=reply.status,
            heartbeat_interval_s=reply.heartbeat_interval_s,
            lost_leases=reply.lost_leases,
            cancel=reply.cancel,
            draining=reply.draining,
        )


class NodeBody(Frozen, frozen=True, kw_only=True):
    name: Name
    trust_domain: Name = "local"
    locality: Name | None = None
    transport: Name = "https"
    is_controller: bool = False
    max_jobs: MaxJobs = 1
    kinds: Names | None = None


class NodePatch(Frozen, frozen=True, kw_only=True):
    name: Name | msgspec.UnsetType = msgspec.UNSET
    status: NodeStatus | msgspec.UnsetType = msgspec.UNSET
    trust_domain: Name | msgspec.UnsetType = msgspec.UNSET
    locality: Name | msgspec.UnsetType | None = msgspec.UNSET
    max_jobs: MaxJobs | msgspec.UnsetType = msgspec.UNSET
    kinds: Names | msgspec.UnsetType | None = msgspec.UNSET


class NodesQuery(Frozen, frozen=True, kw_only=True):
    status: NodeStatus | None = None
    limit: wire.PageLimit = 50
    cursor: str | None = None


class ModelBody(Frozen, frozen=True, kw_only=True):
    kind: Name | None = None
    vram_min_mb: Megabytes | None = None
    vram_preferred_mb: Megabytes | None = None
    ram_min_mb: Megabytes | None = None
    requires_accelerators: Annotated[list[Name], msgspec.Meta(max_length=100)] = []
    reference_throughput: Throughput | None = None
    load_seconds: wire.Seconds | None = None


class ModelsQuery(Frozen, frozen=True, kw_only=True):
    limit: wire.PageLimit = 50
    cursor: str | None = None


class DeviceReply(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    kind: DeviceKind
    vram_total_mb: int | None
    vram_free_mb: int | None
    ram_total_mb: int | None
    ram_free_mb: int | None
    compute_units: float | None
    throughput_factor: float
    supports_accelerators: tuple[str, ...]
    healthy: bool
    health_reason: str | None

    @classmethod
    def of(cls, device: values.Device) -> Self:
        return cls(**{name: getattr(device, name) for name in cls.__struct_fields__})


class ResidentReply(msgspec.Struct, frozen=True, kw_only=True):
    slug: str
    device: str | None
    state: ResidentState
    vram_held_mb: int | None
    ram_held_mb: int | None
    busy: bool
    last_used_s: float | None

    @classmethod
    def of(cls, resident: values.Resident) -> Self:
        return cls(**{name: getattr(resident, name) for name in cls.__struct_fields__})


class NodeReply(msgspec.Struct, frozen=True, kw_only=True):
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
    agent_started_at: str | None
    last_heartbeat_at: str | None
    max_jobs: int
    kinds: tuple[str, ...] | None
    running_jobs: int
    devices: list[DeviceReply]
    resident_models: list[ResidentReply]
    measurements: dict[str, float | int | None] | None
    created_at: str | None
    updated_at: str | None

    @classmethod
    def of(cls, node: values.Node) -> Self:
        return cls(
            id=node.id,
            organization_id=node.organization_id,
            name=node.name,
            is_controller=node.is_controller,
            trust_domain=node.trust_domain,
            locality=node.locality,
            transport=node.transport,
            status=node.status,
            agent_version=node.agent_version,
            agent_instance_id=node.agent_instance_id,
            agent_started_at=wire.time(node.agent_started_at),
            last_heartbeat_at=wire.time(node.last_heartbeat_at),
            max_jobs=node.max_jobs,
            kinds=node.kinds,
            running_jobs=node.running_jobs,
            devices=[DeviceReply.of(device) for device in node.devices],
            resident_models=[ResidentReply.of(resident) for resident in node.residents],
            measurements=node.measurements,
            created_at=wire.time(node.created_at),
            updated_at=wire.time(node.updated_at),
        )


class NodesReply(msgspec.Struct, frozen=True, kw_only=True):
    nodes: list[NodeReply]
    next_cursor: str | None


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    slug: str
    kind: str | None
    vram_min_mb: int | None
    vram_preferred_mb: int | None
    ram_min_mb: int | None
    requires_accelerators: tuple[str, ...]
    reference_throughput: float | None
    load_seconds: float | None
    created_at: str | None
    updated_at: str | None

    @classmethod
    def of(cls, model: values.Model) -> Self:
        told = {name: getattr(model, name) for name in cls.__struct_fields__}
        times = {name: wire.time(told[name]) for name in ("created_at", "updated_at")}
        return cls(**told | times)


class ModelsReply(msgspec.Struct, frozen=True, kw_only=True):
    models: list[ModelReply]
    next_cursor: str | None
