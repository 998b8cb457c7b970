"""Jobs: what was asked for, and what a class of them needs."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import attrs


class JobState(StrEnum):
    """The words of the CHECK on jobs.state; a test compares the two.

    submit ──> scheduled ──> ready ──> running ──> complete
                   ^          ^  ^        │  │ └──> failed, cancelled
                   └─ backoff ┘  └release─┘  └────> decomposed ──> complete, partial, cancelled
    """

    READY = "ready"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    DECOMPOSED = "decomposed"
    PARTIAL = "partial"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({JobState.PARTIAL, JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED})


class JobStatus(StrEnum):
    """What the API shows (SPEC §3)."""

    QUEUED = "queued"
    RUNNING = "running"
    BLOCKED = "blocked"
    PARTIAL = "partial"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        return self.value in TERMINAL

    @classmethod
    def of(cls, state: JobState) -> "JobStatus":
        """Return what the API calls a state, blocked classes aside."""
        if state in (JobState.READY, JobState.SCHEDULED):
            return cls.QUEUED
        return cls.RUNNING if state is JobState.DECOMPOSED else cls(state.value)


class Event(StrEnum):
    """The words of the CHECK on job_events.event."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    COMPLETED = "completed"
    REQUEUED = "requeued"
    FAILED = "failed"
    DECOMPOSED = "decomposed"
    LEASE_EXPIRED = "lease_expired"
    BLOCKED = "blocked"
    UNBLOCKED = "unblocked"
    SETTLED = "settled"
    RELEASED = "released"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"
    RETRIED = "retried"


@attrs.frozen(kw_only=True)
class Requires:
    """What a job asks of the machine. Lists are sorted and hold nothing twice."""

    vram_min_mb: int | None = None
    ram_min_mb: int | None = None
    models: tuple[str, ...] = ()
    trust_domains: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Prefer:
    """Where a job would rather run: a node's id or name, a locality."""

    node: str | None = None
    locality: str | None = None


@attrs.frozen(kw_only=True)
class ClassKey:
    """What makes two jobs of one organization alike for placement."""

    organization_id: UUID
    kind: str
    requires: str  # canonical JSON
    prefer: str  # canonical JSON
    hash: bytes


@attrs.frozen(kw_only=True)
class NewJob:
    """One accepted submission. Delays are seconds from when the database stores it."""

    organization_id: UUID
    class_key: ClassKey
    payload: str  # JSON
    priority: int = 100
    project_id: str | None = None
    lang: str | None = None
    requested_by: str | None = None
    not_before: datetime | None = None
    delay_s: float | None = None
    start_by_s: float | None = None
    max_attempts: int = 3
    max_runtime_s: int | None = None
    idempotency_key: str | None = None
    idempotency_hash: bytes | None = None


@attrs.frozen(kw_only=True)
class Job:
    """A job as the API shows it: the columns of the view jobs_shown. JSON stays text."""

    id: UUID
    organization_id: UUID
    class_id: int
    project_id: str | None
    lang: str | None
    kind: str
    status: JobStatus = attrs.field(converter=JobStatus)
    requested_by: str | None
    priority: int
    requires: str
    prefer: str
    payload: str
    not_before: datetime
    start_by: datetime | None
    attempt: int
    max_attempts: int
    lease_id: UUID | None
    lease_owner: UUID | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    blocked: str | None
    parent_job_id: UUID | None
    idempotency_key: str | None
    placement: str | None
    progress: str | None
    result: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@attrs.frozen(kw_only=True)
class JobEvent:
    """One line of a job's history."""

    id: int
    event: Event = attrs.field(converter=Event)
    at: datetime
    node_id: UUID | None
    attempt: int | None
    detail: str | None


@attrs.frozen(kw_only=True)
class Submitted:
    """An accepted submission: the job, and whether this call made it."""

    job: Job
    created: bool
