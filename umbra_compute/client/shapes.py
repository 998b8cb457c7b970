"""What the API answers, as types. At run time they are the JSON objects themselves.

A newer controller may add fields. Times are RFC 3339 texts in UTC; absent is None, zero is zero.
"""

from typing import Any, TypedDict


class Job(TypedDict):
    id: str
    organization_id: str
    project_id: str | None
    lang: str | None
    kind: str
    status: str
    requested_by: str | None
    priority: int  # lower goes first
    requires: dict[str, Any]
    prefer: dict[str, Any]
    payload: Any
    not_before: str | None
    start_by: str | None
    attempt: int  # counted at the claim: 1 while the first attempt runs
    max_attempts: int
    lease_id: str | None
    lease_owner: str | None
    lease_expires_at: str | None
    cancel_requested: bool
    blocked: str | None  # a sentence: why nothing can run it
    parent_job_id: str | None
    idempotency_key: str | None
    placement: dict[str, Any] | None
    progress: dict[str, Any] | None
    result: Any
    error: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class Submitted(TypedDict):
    id: str
    status: str
    created: bool  # False: its idempotency key was known, this is the job it named
    blocked: str | None


class Batch(TypedDict):
    jobs: list[Submitted]  # in the order given


class Event(TypedDict):
    event: str
    at: str
    node_id: str | None
    attempt: int | None
    detail: Any


class QueueClass(TypedDict):
    class_id: int
    kind: str
    requires: dict[str, Any]
    prefer: dict[str, Any]
    queued: int
    scheduled: int
    running: int
    oldest_queued_s: float | None
    blocked: str | None


class Queue(TypedDict):
    queued: int
    scheduled: int
    blocked: int
    running: int
    oldest_queued_s: float | None
    classes: list[QueueClass]


class Device(TypedDict):
    label: str
    kind: str
    vram_total_mb: int | None
    vram_free_mb: int | None
    ram_total_mb: int | None
    ram_free_mb: int | None
    compute_units: float | None
    throughput_factor: float
    supports_accelerators: list[str]
    healthy: bool
    health_reason: str | None


class Resident(TypedDict):
    slug: str
    device: str | None
    state: str
    vram_held_mb: int | None
    ram_held_mb: int | None
    busy: bool
    last_used_s: float | None


class Node(TypedDict):
    id: str
    organization_id: str
    name: str
    is_controller: bool
    trust_domain: str
    locality: str | None
    transport: str
    status: str
    agent_version: str | None
    agent_instance_id: str | None
    agent_started_at: str | None
    last_heartbeat_at: str | None
    max_jobs: int
    kinds: list[str] | None  # None: any kind
    running_jobs: int
    devices: list[Device]
    resident_models: list[Resident]
    measurements: dict[str, Any] | None
    created_at: str
    updated_at: str


class Model(TypedDict):
    slug: str
    kind: str | None
    vram_min_mb: int | None
    vram_preferred_mb: int | None
    ram_min_mb: int | None
    requires_accelerators: list[str]
    reference_throughput: float | None
    load_seconds: float | None
    created_at: str
    updated_at: str


class NodeKey(TypedDict):
    id: str
    node_id: str
    agent_name: str | None
    key_prefix: str
    scopes: list[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class NewNodeKey(NodeKey):
    node_key: str  # the answer that made it shows it, and none after


class ApiKey(TypedDict):
    id: str
    name: str
    key_prefix: str
    scopes: list[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None


class NewApiKey(ApiKey):
    api_key: str  # the answer that made it shows it, and none after


class Alive(TypedDict):
    status: str


class Ready(TypedDict):
    status: str
    database: str
    schema: str
