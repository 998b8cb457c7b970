"""Jobs and leases on the wire."""

from typing import Annotated, Self
from uuid import UUID

import msgspec

from umbra_compute.http import wire
from umbra_compute.http.wire import Json, Name, Seconds, Slug, Text, Timestamp
from umbra_compute.model.jobs import Job, JobEvent, JobStatus, Submitted
from umbra_compute.model.leases import Claimed, Ended, Renewed

Models = Annotated[list[Slug], msgspec.Meta(max_length=100)]
Names = Annotated[list[Name], msgspec.Meta(max_length=100)]
SomeNames = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=100)]
LeaseSeconds = Annotated[int, msgspec.Meta(ge=5, le=3600)]  # SPEC §6
WaitSeconds = Annotated[float, msgspec.Meta(ge=0, le=30)]  # SPEC §6
RuntimeSeconds = Annotated[int, msgspec.Meta(ge=1, le=365 * 86_400)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request may hold: these fields and no others."""


class RequiresBody(Frozen, frozen=True, kw_only=True):
    vram_min_mb: wire.Megabytes | None = None
    min_vram_mb: wire.Megabytes | None = None  # the older spelling
    ram_min_mb: wire.Megabytes | None = None
    min_ram_mb: wire.Megabytes | None = None
    models: Models | None = None
    trust_domains: SomeNames | None = None
    accelerators: Names | None = None
    max_runtime_s: RuntimeSeconds | None = None


class PreferBody(Frozen, frozen=True, kw_only=True):
    node: Name | None = None
    locality: Name | None = None


class JobBody(Frozen, frozen=True, kw_only=True):
    kind: Name
    payload: Json = Json("null")
    project_id: Name | None = None
    lang: Name | None = None
    requested_by: Name | None = None
    priority: wire.NotNegativeInt = 100
    requires: RequiresBody = RequiresBody()
    prefer: PreferBody = PreferBody()
    not_before: Timestamp | None = None
    delay_s: Seconds | None = None
    start_by_s: Seconds | None = None
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    idempotency_key: Name | None = None


class BatchBody(Frozen, frozen=True, kw_only=True):
    jobs: Annotated[list[JobBody], msgspec.Meta(min_length=1, max_length=1000)]


class JobsQuery(Frozen, frozen=True, kw_only=True):
    status: JobStatus | None = None
    kind: Name | None = None
    project_id: Name | None = None
    parent_job_id: UUID | None = None
    node_id: UUID | None = None
    limit: wire.PageLimit = 50
    cursor: str | None = None


class JobQuery(Frozen, frozen=True, kw_only=True):
    wait_s: WaitSeconds = 0


class EventsQuery(Frozen, frozen=True, kw_only=True):
    limit: wire.PageLimit = 100
    cursor: str | None = None


class ClaimBody(Frozen, frozen=True, kw_only=True):
    kinds: Names | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    lease_seconds: LeaseSeconds = 60
    wait_s: WaitSeconds = 0


class ProgressBody(Frozen, frozen=True, kw_only=True):
    fraction: Fraction | None = None
    message: Text | None = None


class RenewBody(Frozen, frozen=True, kw_only=True):
    lease_id: UUID
    lease_seconds: LeaseSeconds | None = None
    progress: ProgressBody | None = None


class RenewItem(Frozen, frozen=True, kw_only=True):
    job_id: UUID
    lease_id: UUID
    progress: ProgressBody | None = None


class RenewManyBody(Frozen, frozen=True, kw_only=True):
    leases: Annotated[list[RenewItem], msgspec.Meta(max_length=1000)]
    lease_seconds: LeaseSeconds | None = None


class CompleteBody(Frozen, frozen=True, kw_only=True):
    lease_id: UUID
    result: Json = Json("null")


class CompleteItem(Frozen, frozen=True, kw_only=True):
    job_id: UUID
    lease_id: UUID
    result: Json = Json("null")


class CompleteManyBody(Frozen, frozen=True, kw_only=True):
    jobs: Annotated[list[CompleteItem], msgspec.Meta(min_length=1, max_length=1000)]


class FailBody(Frozen, frozen=True, kw_only=True):
    lease_id: UUID
    error: str
    retry: bool = False
    retry_after_s: Seconds | None = None


class ReleaseBody(Frozen, frozen=True, kw_only=True):
    lease_id: UUID
    reason: str | None = None


class JobReply(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    organization_id: UUID
    project_id: str | None
    lang: str | None
    kind: str
    status: JobStatus
    requested_by: str | None
    priority: int
    requires: msgspec.Raw
    prefer: msgspec.Raw
    payload: msgspec.Raw
    not_before: str | None
    start_by: str | None
    attempt: int
    max_attempts: int
    lease_id: UUID | None
    lease_owner: UUID | None
    lease_expires_at: str | None
    cancel_requested: bool
    blocked: str | None
    parent_job_id: UUID | None
    idempotency_key: str | None
    placement: msgspec.Raw
    progress: msgspec.Raw
    result: msgspec.Raw
    error: str | None
    created_at: str | None
    started_at: str | None
    finished_at: str | None

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls(
            id=job.id,
            organization_id=job.organization_id,
            project_id=job.project_id,
            lang=job.lang,
            kind=job.kind,
            status=job.status,
            requested_by=job.requested_by,
            priority=job.priority,
            requires=wire.raw(job.requires),
            prefer=wire.raw(job.prefer),
            payload=wire.raw(job.payload),
            not_before=wire.time(job.not_before),
            start_by=wire.time(job.start_by),
            attempt=job.attempt,
            max_attempts=job.max_attempts,
            lease_id=job.lease_id,
            lease_owner=job.lease_owner,
            lease_expires_at=wire.time(job.lease_expires_at),
            cancel_requested=job.cancel_requested,
            blocked=job.blocked,
            parent_job_id=job.parent_job_id,
            idempotency_key=job.idempotency_key,
            placement=wire.raw(job.placement),
            progress=wire.raw(job.progress),
            result=wire.raw(job.result),
            error=job.error,
            created_at=wire.time(job.created_at),
            started_at=wire.time(job.started_at),
            finished_at=wire.time(job.finished_at),
        )


class JobsReply(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[JobReply]
    next_cursor: str | None


class SubmittedItem(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    status: JobStatus
    created: bool
    blocked: str | None

    @classmethod
    def of(cls, submitted: Submitted) -> Self:
        return cls(
            id=submitted.job.id,
            status=submitted.job.status,
            created=submitted.created,
            blocked=submitted.job.blocked,
        )


class BatchReply(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[SubmittedItem]


class EventReply(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    at: str | None
    node_id: UUID | None
    attempt: int | None
    detail: msgspec.Raw

    @classmethod
    def of(cls, event: JobEvent) -> Self:
        return cls(
            event=event.event,
            at=wire.time(event.at),
            node_id=event.node_id,
            attempt=event.attempt,
            detail=wire.raw(event.detail),
        )


class EventsReply(msgspec.Struct, frozen=True, kw_only=True):
    events: list[EventReply]
    next_cursor: str | None


class LeaseReply(msgspec.Struct, frozen=True, kw_only=True):
    lease_id: UUID
    lease_seconds: int
    expires_in_s: float


class ClaimedReply(msgspec.Struct, frozen=True, kw_only=True):
    job: JobReply
    lease: LeaseReply
    placement: msgspec.Raw

    @classmethod
    def of(cls, claimed: Claimed) -> Self:
        return cls(
            job=JobReply.of(claimed.job),
            lease=LeaseReply(
                lease_id=claimed.lease_id,
                lease_seconds=claimed.lease_seconds,
                expires_in_s=claimed.expires_in_s,
            ),
            placement=wire.raw(claimed.placement),
        )


class ClaimReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    jobs: list[ClaimedReply]
    draining: bool = False


class RenewReply(msgspec.Struct, frozen=True, kw_only=True):
    lease_id: UUID
    lease_seconds: int
    expires_in_s: float
    cancel: bool

    @classmethod
    def of(cls, renewed: Renewed) -> Self:
        return cls(
            lease_id=renewed.lease_id,
            lease_seconds=renewed.lease_seconds,
            expires_in_s=renewed.expires_in_s,
            cancel=renewed.cancel_requested,
        )


class RenewManyReply(msgspec.Struct, frozen=True, kw_only=True):
    renewed: list[UUID]
    lost: list[UUID]
    cancel: list[UUID]


class EndedReply(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    status: JobStatus
    attempt: int
    not_before: str | None

    @classmethod
    def of(cls, ended: Ended) -> Self:
        waits = ended.status is JobStatus.QUEUED
        return cls(
            id=ended.job_id,
            status=ended.status,
            attempt=ended.attempt,
            not_before=wire.time(ended.not_before) if waits else None,
        )


class CompletedItem(msgspec.Struct, frozen=True, kw_only=True):
    job_id: UUID
    lease_id: UUID
    status: JobStatus | None
    code: str | None


class CompleteManyReply(msgspec.Struct, frozen=True, kw_only=True):
    jobs: list[CompletedItem]


class QueueClass(msgspec.Struct, frozen=True, kw_only=True):
    class_id: int
    kind: str
    requires: msgspec.Raw
    prefer: msgspec.Raw
    queued: int
    scheduled: int
    running: int
    oldest_queued_s: float | None
    blocked: str | None


class QueueReply(msgspec.Struct, frozen=True, kw_only=True):
    queued: int
    scheduled: int
    blocked: int
    running: int
    oldest_queued_s: float | None
    classes: list[QueueClass]
