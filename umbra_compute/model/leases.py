"""A node's time-limited hold on one attempt of one job, from the claim to its end."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import attrs

from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.jobs import Event, Job, JobState, JobStatus


@attrs.frozen(kw_only=True)
class ClaimAsk:
    """What a node asks for. kinds None: whatever it handles."""

    kinds: tuple[str, ...] | None = None
    limit: int = 1
    lease_seconds: int = 60


@attrs.frozen(kw_only=True)
class Claimed:
    """One job handed to a node, under a lease that begins now."""

    job: Job
    lease_id: UUID
    lease_seconds: int
    expires_in_s: float
    placement: str


@attrs.frozen(kw_only=True)
class Held:
    """A caller's word that it holds this attempt. The database knows whether it does."""

    node: NodeIdentity
    job_id: UUID
    lease_id: UUID


@attrs.frozen(kw_only=True)
class Renewal:
    """A lease to extend, with what the work says of itself. None: leave as it is."""

    held: Held
    lease_seconds: int | None = None
    progress: str | None = None


@attrs.frozen(kw_only=True)
class Renewed:
    """A lease that goes on."""

    lease_id: UUID
    lease_seconds: int
    expires_in_s: float
    cancel_requested: bool


@attrs.frozen(kw_only=True)
class Completion:
    """A result under its lease."""

    held: Held
    result: str  # JSON


@attrs.frozen(kw_only=True)
class Ended:
    """How a lease ended: what the holder hears, the first time and after a lost reply."""

    job_id: UUID
    status: JobStatus
    attempt: int
    not_before: datetime | None = None


@attrs.frozen(kw_only=True)
class LiveLease:
    """A locked running job, with what decides its fate."""

    job_id: UUID
    class_id: int
    lease_id: UUID
    node_id: UUID
    attempt: int  # counted at the claim: 1 while the first attempt runs
    max_attempts: int
    releases: int
    cancel_requested: bool
    max_runtime_s: int | None
    overdue_s: float  # > 0: past its expiry by so much


@attrs.frozen(kw_only=True)
class Fate:
    """The next state of a job whose lease ends without a result, and the event that tells of it.

    wait_s None keeps the job's place in the line; error None keeps the last error.
    """

    state: JobState
    event: Event
    wait_s: float | None = None
    error: str | None = None
    attempt_given_back: bool = False
    detail: Mapping[str, str | float | int] = attrs.Factory(dict)
