-- Organizations, credentials, nodes, models, and the queue in its final shape: one wide row per job,
-- partial indexes per state (docs/decisions/0003-claim-design.md has the measurements).

CREATE TABLE organizations (
    id               uuid        PRIMARY KEY,
    name             text        NOT NULL UNIQUE CHECK (name <> ''),
    -- Grows with each change of the model registry: what was decided from an older one is stale.
    registry_version bigint      NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp()
);

CREATE TABLE api_keys (
    id              uuid        PRIMARY KEY,
    organization_id uuid        NOT NULL REFERENCES organizations (id),
    name            text        NOT NULL CHECK (name <> ''),
    key_prefix      text        NOT NULL UNIQUE,
    key_hash        text        NOT NULL,
    scopes          text[]      NOT NULL CHECK (cardinality(scopes) > 0),
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at      timestamptz,
    revoked_at      timestamptz,
    last_used_at    timestamptz
);
CREATE INDEX api_keys_list ON api_keys (organization_id, created_at, id);

-- One row. It grows with each revocation, and controllers compare it at least every 2 s.
CREATE TABLE credential_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    value    bigint  NOT NULL
);
INSERT INTO credential_version (value) VALUES (0);

CREATE TABLE compute_nodes (
    id                   uuid        PRIMARY KEY,
    organization_id      uuid        NOT NULL REFERENCES organizations (id),
    name                 text        NOT NULL CHECK (name <> ''),
    is_controller        boolean     NOT NULL DEFAULT false,
    trust_domain         text        NOT NULL DEFAULT 'local',
    locality             text,
    transport            text        NOT NULL DEFAULT 'https',
    status               text        NOT NULL DEFAULT 'provisioning'
        CHECK (status IN ('provisioning', 'online', 'draining', 'offline', 'retired')),
    -- When the status became what it is: "offline since".
    status_since         timestamptz NOT NULL DEFAULT statement_timestamp(),
    agent_version        text,
    agent_instance_id    uuid,
    agent_started_at     timestamptz,
    last_heartbeat_at    timestamptz,
    heartbeat_sequence   bigint,
    -- What the controller last told the agent to keep to; staleness allows 3.5 of them.
    heartbeat_interval_s double precision CHECK (heartbeat_interval_s > 0),
    max_jobs             integer     NOT NULL DEFAULT 1 CHECK (max_jobs >= 0),
    kinds                text[],
    -- Grows when something changes that placement looks at; a heartbeat alone does not move it.
    placement_version    bigint      NOT NULL DEFAULT 0,
    created_at           timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at           timestamptz NOT NULL DEFAULT statement_timestamp(),
    UNIQUE (organization_id, name)
) WITH (fillfactor = 70);  -- room for the heartbeat's update on the same page
CREATE INDEX compute_nodes_list ON compute_nodes (organization_id, created_at, id);

CREATE TABLE compute_devices (
    node_id               uuid             NOT NULL REFERENCES compute_nodes (id) ON DELETE CASCADE,
    label                 text             NOT NULL CHECK (label <> ''),
    position              integer          NOT NULL,
    kind                  text             NOT NULL
        CHECK (kind IN ('cpu', 'gpu_integrated', 'gpu_discrete')),
    vram_total_mb         bigint           CHECK (vram_total_mb >= 0),
    vram_free_mb          bigint           CHECK (vram_free_mb >= 0),
    ram_total_mb          bigint           CHECK (ram_total_mb >= 0),
    ram_free_mb           bigint           CHECK (ram_free_mb >= 0),
    compute_units         double precision CHECK (compute_units >= 0),
    throughput_factor     double precision NOT NULL DEFAULT 1.0 CHECK (throughput_factor > 0),
    supports_accelerators text[]           NOT NULL DEFAULT '{}',
    healthy               boolean          NOT NULL DEFAULT true,
    health_reason         text,
    PRIMARY KEY (node_id, label)
);

CREATE TABLE node_credentials (
    id           uuid        PRIMARY KEY,
    node_id      uuid        NOT NULL REFERENCES compute_nodes (id) ON DELETE CASCADE,
    agent_name   text,
    key_prefix   text        NOT NULL UNIQUE,
    key_hash     text        NOT NULL,
    scopes       text[]      NOT NULL CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['compute:read', 'compute:heartbeat', 'compute:claim', 'compute:complete']
    ),
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
CREATE INDEX node_credentials_list ON node_credentials (node_id, created_at, id);

-- The last report of each node, beside what placement uses of it.
CREATE TABLE node_heartbeats (
    node_id      uuid        PRIMARY KEY REFERENCES compute_nodes (id) ON DELETE CASCADE,
    received_at  timestamptz NOT NULL DEFAULT statement_timestamp(),
    active_jobs  integer,
    measurements jsonb,
    lease_use    jsonb
) WITH (fillfactor = 70);

CREATE TABLE model_registry (
    organization_id       uuid             NOT NULL REFERENCES organizations (id),
    slug                  text             NOT NULL CHECK (slug <> ''),
    kind                  text,
    vram_min_mb           bigint           CHECK (vram_min_mb >= 0),
    vram_preferred_mb     bigint           CHECK (vram_preferred_mb >= 0),
    ram_min_mb            bigint           CHECK (ram_min_mb >= 0),
    requires_accelerators text[]           NOT NULL DEFAULT '{}',
    reference_throughput  double precision CHECK (reference_throughput > 0),
    load_seconds          double precision CHECK (load_seconds >= 0),
    created_at            timestamptz      NOT NULL DEFAULT statement_timestamp(),
    updated_at            timestamptz      NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (organization_id, slug)
);

CREATE TABLE node_models (
    node_id      uuid             NOT NULL REFERENCES compute_nodes (id) ON DELETE CASCADE,
    slug         text             NOT NULL CHECK (slug <> ''),
    -- '' is a server that does not tell on which device: a primary key has no nulls.
    device       text             NOT NULL DEFAULT '',
    state        text             NOT NULL CHECK (state IN ('loading', 'loaded', 'unloading')),
    vram_held_mb bigint           CHECK (vram_held_mb >= 0),
    ram_held_mb  bigint           CHECK (ram_held_mb >= 0),
    busy         boolean          NOT NULL DEFAULT false,
    last_used_at timestamptz,
    PRIMARY KEY (node_id, slug, device)
);

-- All jobs of one organization that are alike for placement. A class is blocked by this one row,
-- however many jobs wait in it; claims never ask for a blocked class.
CREATE TABLE requirement_classes (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id  uuid        NOT NULL REFERENCES organizations (id),
    kind             text        NOT NULL,
    requires         jsonb       NOT NULL,
    prefer           jsonb       NOT NULL,
    hash             bytea       NOT NULL,
    blocked_at       timestamptz,
    blocked_reason   text,
    blocked_verdicts jsonb,
    -- "Waiting since" of its jobs counts from here if it is later than their own (N34).
    unblocked_at     timestamptz,
    created_at       timestamptz NOT NULL DEFAULT statement_timestamp(),
    UNIQUE (organization_id, hash),
    CHECK ((blocked_at IS NULL) = (blocked_reason IS NULL))
);

-- No foreign keys: each would cost a look-up and a shared lock per job on the busiest path, and
-- nothing deletes an organization or a class. Jobs and their events are pruned together.
CREATE TABLE jobs (
    id                  uuid        PRIMARY KEY,
    seq                 bigint      GENERATED ALWAYS AS IDENTITY,
    organization_id     uuid        NOT NULL,
    class_id            bigint      NOT NULL,
    parent_job_id       uuid,
    kind                text        NOT NULL,
    -- ready: may run now; scheduled: later. The API shows both as queued (or blocked, by class).
    -- decomposed: a container with open children; the API shows it as running.
    state               text        NOT NULL CHECK (state IN (
        'ready', 'scheduled', 'running', 'decomposed', 'partial', 'complete', 'failed', 'cancelled')),
    priority            integer     NOT NULL CHECK (priority >= 0),
    not_before          timestamptz NOT NULL,
    -- First moment at which it could be claimed; the bounded wait for locality is never reset.
    claimable_at        timestamptz,
    start_by            timestamptz,
    attempt             integer     NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    max_attempts        integer     NOT NULL DEFAULT 3 CHECK (max_attempts >= 1),
    releases            integer     NOT NULL DEFAULT 0 CHECK (releases >= 0),
    max_runtime_s       integer     CHECK (max_runtime_s > 0),
    project_id          text,
    lang                text,
    requested_by        text,
    idempotency_key     text,
    idempotency_hash    bytea,
    -- The lease. Its id stays after the end, to answer a call repeated after a lost reply.
    lease_id            uuid,
    lease_owner         uuid,
    lease_expires_at    timestamptz,
    lease_seconds       integer,
    lease_device        text,
    reserved_vram_mb    bigint      CHECK (reserved_vram_mb >= 0),
    reserved_ram_mb     bigint      CHECK (reserved_ram_mb >= 0),
    run_until           timestamptz,
    cancel_requested_at timestamptz,
    -- The node of the latest attempt, and until when the next one waits for another machine.
    last_node_id        uuid,
    avoid_node_until    timestamptz,
    created_at          timestamptz NOT NULL DEFAULT statement_timestamp(),
    started_at          timestamptz,
    finished_at         timestamptz,
    payload             jsonb       NOT NULL,
    placement           jsonb,
    progress            jsonb,
    result              jsonb,
    error               text,
    CHECK ((idempotency_key IS NULL) = (idempotency_hash IS NULL)),
    -- A lease is whole or absent, and only a running job has one.
    CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
    CHECK (num_nulls(lease_owner, lease_expires_at, lease_seconds, lease_device,
                     reserved_vram_mb, reserved_ram_mb) IN (0, 6)),
    CHECK (lease_owner IS NULL OR lease_id IS NOT NULL),
    CHECK ((state IN ('partial', 'complete', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0
);

-- No index has the predicate state = 'running': completing implies it, and the planner would read
-- every running row through that index (measured: docs/decisions/0003-claim-design.md).
CREATE INDEX jobs_ready ON jobs (class_id, priority, not_before, seq) WHERE state = 'ready';
CREATE INDEX jobs_scheduled ON jobs (not_before, id) WHERE state = 'scheduled';
CREATE INDEX jobs_expiry ON jobs (lease_expires_at, id) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX jobs_holder ON jobs (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX jobs_run_until ON jobs (run_until, id) WHERE run_until IS NOT NULL;
CREATE INDEX jobs_start_by ON jobs (start_by, id)
    WHERE start_by IS NOT NULL AND state IN ('ready', 'scheduled');
CREATE INDEX jobs_cancelling ON jobs (cancel_requested_at, id)
    WHERE cancel_requested_at IS NOT NULL AND finished_at IS NULL;
CREATE INDEX jobs_list ON jobs (organization_id, created_at DESC, id DESC);
CREATE INDEX jobs_children ON jobs (parent_job_id, created_at, id) WHERE parent_job_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_idempotency ON jobs (organization_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE job_events (
    id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id   uuid        NOT NULL,
    at       timestamptz NOT NULL DEFAULT statement_timestamp(),
    event    text        NOT NULL CHECK (event IN (
        'queued', 'claimed', 'completed', 'requeued', 'failed', 'decomposed', 'lease_expired',
        'blocked', 'unblocked', 'settled', 'released', 'cancel_requested', 'cancelled', 'retried')),
    node_id  uuid,
    attempt  integer,
    -- Which lease ended by it: a repeated complete, fail or release finds its answer here.
    lease_id uuid,
    detail   jsonb
);
CREATE INDEX job_events_job ON job_events (job_id, id);

-- When each sweep last went well, whichever controller ran it; and until when, after an outage,
-- it leaves leases alone so that finished work can be delivered.
CREATE TABLE sweep_rounds (
    name         text        PRIMARY KEY,
    succeeded_at timestamptz NOT NULL,
    hold_until   timestamptz
) WITH (fillfactor = 50);

-- A job as the API shows it: its state in the contract's words, its class's needs, and the lease
-- only while it lives.
CREATE VIEW jobs_shown AS
SELECT j.id, j.organization_id, j.class_id, j.project_id, j.lang, j.kind,
       CASE
           WHEN j.state IN ('ready', 'scheduled') AND c.blocked_at IS NOT NULL THEN 'blocked'
           WHEN j.state IN ('ready', 'scheduled') THEN 'queued'
           WHEN j.state = 'decomposed' THEN 'running'
           ELSE j.state
       END AS status,
       j.requested_by, j.priority,
       CASE
           WHEN j.max_runtime_s IS NULL THEN c.requires
           ELSE c.requires || jsonb_build_object('max_runtime_s', j.max_runtime_s)
       END AS requires,
       c.prefer, j.payload, j.not_before, j.start_by, j.attempt, j.max_attempts,
       CASE WHEN j.lease_owner IS NOT NULL THEN j.lease_id END AS lease_id,
       j.lease_owner, j.lease_expires_at,
       j.cancel_requested_at IS NOT NULL AND j.finished_at IS NULL AS cancel_requested,
       CASE WHEN j.state IN ('ready', 'scheduled') THEN c.blocked_reason END AS blocked,
       j.parent_job_id, j.idempotency_key, j.placement, j.progress, j.result, j.error,
       j.created_at, j.started_at, j.finished_at
  FROM jobs j
  JOIN requirement_classes c ON c.id = j.class_id;
