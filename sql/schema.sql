-- Generated from sql/migrations by `make generate`. Not applied by anything.

--
-- PostgreSQL database dump
--

--
-- Name: api_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_keys (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    key_prefix text NOT NULL,
    key_hash text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_name_check CHECK ((name <> ''::text)),
    CONSTRAINT api_keys_scopes_check CHECK ((cardinality(scopes) > 0))
);

--
-- Name: compute_devices; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.compute_devices (
    node_id uuid NOT NULL,
    label text NOT NULL,
    "position" integer NOT NULL,
    kind text NOT NULL,
    vram_total_mb bigint,
    vram_free_mb bigint,
    ram_total_mb bigint,
    ram_free_mb bigint,
    compute_units double precision,
    throughput_factor double precision DEFAULT 1.0 NOT NULL,
    supports_accelerators text[] DEFAULT '{}'::text[] NOT NULL,
    healthy boolean DEFAULT true NOT NULL,
    health_reason text,
    CONSTRAINT compute_devices_compute_units_check CHECK ((compute_units >= (0)::double precision)),
    CONSTRAINT compute_devices_kind_check CHECK ((kind = ANY (ARRAY['cpu'::text, 'gpu_integrated'::text, 'gpu_discrete'::text]))),
    CONSTRAINT compute_devices_label_check CHECK ((label <> ''::text)),
    CONSTRAINT compute_devices_ram_free_mb_check CHECK ((ram_free_mb >= 0)),
    CONSTRAINT compute_devices_ram_total_mb_check CHECK ((ram_total_mb >= 0)),
    CONSTRAINT compute_devices_throughput_factor_check CHECK ((throughput_factor > (0)::double precision)),
    CONSTRAINT compute_devices_vram_free_mb_check CHECK ((vram_free_mb >= 0)),
    CONSTRAINT compute_devices_vram_total_mb_check CHECK ((vram_total_mb >= 0))
);

--
-- Name: compute_nodes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.compute_nodes (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    is_controller boolean DEFAULT false NOT NULL,
    trust_domain text DEFAULT 'local'::text NOT NULL,
    locality text,
    transport text DEFAULT 'https'::text NOT NULL,
    status text DEFAULT 'provisioning'::text NOT NULL,
    status_since timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    agent_version text,
    agent_instance_id uuid,
    agent_started_at timestamp with time zone,
    last_heartbeat_at timestamp with time zone,
    heartbeat_sequence bigint,
    heartbeat_interval_s double precision,
    max_jobs integer DEFAULT 1 NOT NULL,
    kinds text[],
    placement_version bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT compute_nodes_heartbeat_interval_s_check CHECK ((heartbeat_interval_s > (0)::double precision)),
    CONSTRAINT compute_nodes_max_jobs_check CHECK ((max_jobs >= 0)),
    CONSTRAINT compute_nodes_name_check CHECK ((name <> ''::text)),
    CONSTRAINT compute_nodes_status_check CHECK ((status = ANY (ARRAY['provisioning'::text, 'online'::text, 'draining'::text, 'offline'::text, 'retired'::text])))
)
WITH (fillfactor='70');

--
-- Name: credential_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.credential_version (
    only_row boolean DEFAULT true NOT NULL,
    value bigint NOT NULL,
    CONSTRAINT credential_version_only_row_check CHECK (only_row)
);

--
-- Name: job_events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.job_events (
    id bigint NOT NULL,
    job_id uuid NOT NULL,
    at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    event text NOT NULL,
    node_id uuid,
    attempt integer,
    lease_id uuid,
    detail jsonb,
    CONSTRAINT job_events_event_check CHECK ((event = ANY (ARRAY['queued'::text, 'claimed'::text, 'completed'::text, 'requeued'::text, 'failed'::text, 'decomposed'::text, 'lease_expired'::text, 'blocked'::text, 'unblocked'::text, 'settled'::text, 'released'::text, 'cancel_requested'::text, 'cancelled'::text, 'retried'::text])))
);

--
-- Name: job_events_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.job_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.job_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

--
-- Name: jobs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.jobs (
    id uuid NOT NULL,
    seq bigint NOT NULL,
    organization_id uuid NOT NULL,
    class_id bigint NOT NULL,
    parent_job_id uuid,
    kind text NOT NULL,
    state text NOT NULL,
    priority integer NOT NULL,
    not_before timestamp with time zone NOT NULL,
    claimable_at timestamp with time zone,
    start_by timestamp with time zone,
    attempt integer DEFAULT 0 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    releases integer DEFAULT 0 NOT NULL,
    max_runtime_s integer,
    project_id text,
    lang text,
    requested_by text,
    idempotency_key text,
    idempotency_hash bytea,
    lease_id uuid,
    lease_owner uuid,
    lease_expires_at timestamp with time zone,
    lease_seconds integer,
    lease_device text,
    reserved_vram_mb bigint,
    reserved_ram_mb bigint,
    run_until timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    last_node_id uuid,
    avoid_node_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    payload jsonb NOT NULL,
    placement jsonb,
    progress jsonb,
    result jsonb,
    error text,
    CONSTRAINT jobs_attempt_check CHECK ((attempt >= 0)),
    CONSTRAINT jobs_check CHECK (((idempotency_key IS NULL) = (idempotency_hash IS NULL))),
    CONSTRAINT jobs_check1 CHECK (((state = 'running'::text) = (lease_owner IS NOT NULL))),
    CONSTRAINT jobs_check2 CHECK ((num_nulls(lease_owner, lease_expires_at, lease_seconds, lease_device, reserved_vram_mb, reserved_ram_mb) = ANY (ARRAY[0, 6]))),
    CONSTRAINT jobs_check3 CHECK (((lease_owner IS NULL) OR (lease_id IS NOT NULL))),
    CONSTRAINT jobs_check4 CHECK (((state = ANY (ARRAY['partial'::text, 'complete'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
    CONSTRAINT jobs_max_attempts_check CHECK ((max_attempts >= 1)),
    CONSTRAINT jobs_max_runtime_s_check CHECK ((max_runtime_s > 0)),
    CONSTRAINT jobs_priority_check CHECK ((priority >= 0)),
    CONSTRAINT jobs_releases_check CHECK ((releases >= 0)),
    CONSTRAINT jobs_reserved_ram_mb_check CHECK ((reserved_ram_mb >= 0)),
    CONSTRAINT jobs_reserved_vram_mb_check CHECK ((reserved_vram_mb >= 0)),
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'scheduled'::text, 'running'::text, 'decomposed'::text, 'partial'::text, 'complete'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='20000', autovacuum_vacuum_cost_delay='0');

--
-- Name: jobs_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.jobs ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

--
-- Name: requirement_classes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.requirement_classes (
    id bigint NOT NULL,
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    requires jsonb NOT NULL,
    prefer jsonb NOT NULL,
    hash bytea NOT NULL,
    blocked_at timestamp with time zone,
    blocked_reason text,
    blocked_verdicts jsonb,
    unblocked_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT requirement_classes_check CHECK (((blocked_at IS NULL) = (blocked_reason IS NULL)))
);

--
-- Name: jobs_shown; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.jobs_shown AS
 SELECT j.id,
    j.organization_id,
    j.class_id,
    j.project_id,
    j.lang,
    j.kind,
        CASE
            WHEN ((j.state = ANY (ARRAY['ready'::text, 'scheduled'::text])) AND (c.blocked_at IS NOT NULL)) THEN 'blocked'::text
            WHEN (j.state = ANY (ARRAY['ready'::text, 'scheduled'::text])) THEN 'queued'::text
            WHEN (j.state = 'decomposed'::text) THEN 'running'::text
            ELSE j.state
        END AS status,
    j.requested_by,
    j.priority,
        CASE
            WHEN (j.max_runtime_s IS NULL) THEN c.requires
            ELSE (c.requires || jsonb_build_object('max_runtime_s', j.max_runtime_s))
        END AS requires,
    c.prefer,
    j.payload,
    j.not_before,
    j.start_by,
    j.attempt,
    j.max_attempts,
        CASE
            WHEN (j.lease_owner IS NOT NULL) THEN j.lease_id
            ELSE NULL::uuid
        END AS lease_id,
    j.lease_owner,
    j.lease_expires_at,
    ((j.cancel_requested_at IS NOT NULL) AND (j.finished_at IS NULL)) AS cancel_requested,
        CASE
            WHEN (j.state = ANY (ARRAY['ready'::text, 'scheduled'::text])) THEN c.blocked_reason
            ELSE NULL::text
        END AS blocked,
    j.parent_job_id,
    j.idempotency_key,
    j.placement,
    j.progress,
    j.result,
    j.error,
    j.created_at,
    j.started_at,
    j.finished_at
   FROM (public.jobs j
     JOIN public.requirement_classes c ON ((c.id = j.class_id)));

--
-- Name: model_registry; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.model_registry (
    organization_id uuid NOT NULL,
    slug text NOT NULL,
    kind text,
    vram_min_mb bigint,
    vram_preferred_mb bigint,
    ram_min_mb bigint,
    requires_accelerators text[] DEFAULT '{}'::text[] NOT NULL,
    reference_throughput double precision,
    load_seconds double precision,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT model_registry_load_seconds_check CHECK ((load_seconds >= (0)::double precision)),
    CONSTRAINT model_registry_ram_min_mb_check CHECK ((ram_min_mb >= 0)),
    CONSTRAINT model_registry_reference_throughput_check CHECK ((reference_throughput > (0)::double precision)),
    CONSTRAINT model_registry_slug_check CHECK ((slug <> ''::text)),
    CONSTRAINT model_registry_vram_min_mb_check CHECK ((vram_min_mb >= 0)),
    CONSTRAINT model_registry_vram_preferred_mb_check CHECK ((vram_preferred_mb >= 0))
);

--
-- Name: node_credentials; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.node_credentials (
    id uuid NOT NULL,
    node_id uuid NOT NULL,
    agent_name text,
    key_prefix text NOT NULL,
    key_hash text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT node_credentials_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['compute:read'::text, 'compute:heartbeat'::text, 'compute:claim'::text, 'compute:complete'::text])))
);

--
-- Name: node_heartbeats; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.node_heartbeats (
    node_id uuid NOT NULL,
    received_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    active_jobs integer,
    measurements jsonb,
    lease_use jsonb
)
WITH (fillfactor='70');

--
-- Name: node_models; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.node_models (
    node_id uuid NOT NULL,
    slug text NOT NULL,
    device text DEFAULT ''::text NOT NULL,
    state text NOT NULL,
    vram_held_mb bigint,
    ram_held_mb bigint,
    busy boolean DEFAULT false NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT node_models_ram_held_mb_check CHECK ((ram_held_mb >= 0)),
    CONSTRAINT node_models_slug_check CHECK ((slug <> ''::text)),
    CONSTRAINT node_models_state_check CHECK ((state = ANY (ARRAY['loading'::text, 'loaded'::text, 'unloading'::text]))),
    CONSTRAINT node_models_vram_held_mb_check CHECK ((vram_held_mb >= 0))
);

--
-- Name: organizations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.organizations (
    id uuid NOT NULL,
    name text NOT NULL,
    registry_version bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT organizations_name_check CHECK ((name <> ''::text))
);

--
-- Name: requirement_classes_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.requirement_classes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.requirement_classes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

--
-- Name: schema_migrations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL
);

--
-- Name: sweep_rounds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sweep_rounds (
    name text NOT NULL,
    succeeded_at timestamp with time zone NOT NULL,
    hold_until timestamp with time zone
)
WITH (fillfactor='50');

--
-- Name: api_keys api_keys_key_prefix_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_key_prefix_key UNIQUE (key_prefix);

--
-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

--
-- Name: compute_devices compute_devices_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.compute_devices
    ADD CONSTRAINT compute_devices_pkey PRIMARY KEY (node_id, label);

--
-- Name: compute_nodes compute_nodes_organization_id_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.compute_nodes
    ADD CONSTRAINT compute_nodes_organization_id_name_key UNIQUE (organization_id, name);

--
-- Name: compute_nodes compute_nodes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.compute_nodes
    ADD CONSTRAINT compute_nodes_pkey PRIMARY KEY (id);

--
-- Name: credential_version credential_version_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.credential_version
    ADD CONSTRAINT credential_version_pkey PRIMARY KEY (only_row);

--
-- Name: job_events job_events_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.job_events
    ADD CONSTRAINT job_events_pkey PRIMARY KEY (id);

--
-- Name: jobs jobs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

--
-- Name: model_registry model_registry_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.model_registry
    ADD CONSTRAINT model_registry_pkey PRIMARY KEY (organization_id, slug);

--
-- Name: node_credentials node_credentials_key_prefix_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_credentials
    ADD CONSTRAINT node_credentials_key_prefix_key UNIQUE (key_prefix);

--
-- Name: node_credentials node_credentials_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_credentials
    ADD CONSTRAINT node_credentials_pkey PRIMARY KEY (id);

--
-- Name: node_heartbeats node_heartbeats_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_heartbeats
    ADD CONSTRAINT node_heartbeats_pkey PRIMARY KEY (node_id);

--
-- Name: node_models node_models_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_models
    ADD CONSTRAINT node_models_pkey PRIMARY KEY (node_id, slug, device);

--
-- Name: organizations organizations_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_name_key UNIQUE (name);

--
-- Name: organizations organizations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);

--
-- Name: requirement_classes requirement_classes_organization_id_hash_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.requirement_classes
    ADD CONSTRAINT requirement_classes_organization_id_hash_key UNIQUE (organization_id, hash);

--
-- Name: requirement_classes requirement_classes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.requirement_classes
    ADD CONSTRAINT requirement_classes_pkey PRIMARY KEY (id);

--
-- Name: schema_migrations schema_migrations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

--
-- Name: sweep_rounds sweep_rounds_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sweep_rounds
    ADD CONSTRAINT sweep_rounds_pkey PRIMARY KEY (name);

--
-- Name: api_keys_list; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_list ON public.api_keys USING btree (organization_id, created_at, id);

--
-- Name: compute_nodes_list; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX compute_nodes_list ON public.compute_nodes USING btree (organization_id, created_at, id);

--
-- Name: job_events_job; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX job_events_job ON public.job_events USING btree (job_id, id);

--
-- Name: jobs_cancelling; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_cancelling ON public.jobs USING btree (cancel_requested_at, id) WHERE ((cancel_requested_at IS NOT NULL) AND (finished_at IS NULL));

--
-- Name: jobs_children; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_children ON public.jobs USING btree (parent_job_id, created_at, id) WHERE (parent_job_id IS NOT NULL);

--
-- Name: jobs_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_expiry ON public.jobs USING btree (lease_expires_at, id) WHERE (lease_expires_at IS NOT NULL);

--
-- Name: jobs_holder; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_holder ON public.jobs USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);

--
-- Name: jobs_idempotency; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX jobs_idempotency ON public.jobs USING btree (organization_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

--
-- Name: jobs_list; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_list ON public.jobs USING btree (organization_id, created_at DESC, id DESC);

--
-- Name: jobs_ready; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_ready ON public.jobs USING btree (class_id, priority, not_before, seq) WHERE (state = 'ready'::text);

--
-- Name: jobs_run_until; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_run_until ON public.jobs USING btree (run_until, id) WHERE (run_until IS NOT NULL);

--
-- Name: jobs_scheduled; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_scheduled ON public.jobs USING btree (not_before, id) WHERE (state = 'scheduled'::text);

--
-- Name: jobs_start_by; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX jobs_start_by ON public.jobs USING btree (start_by, id) WHERE ((start_by IS NOT NULL) AND (state = ANY (ARRAY['ready'::text, 'scheduled'::text])));

--
-- Name: node_credentials_list; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX node_credentials_list ON public.node_credentials USING btree (node_id, created_at, id);

--
-- Name: api_keys api_keys_organization_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);

--
-- Name: compute_devices compute_devices_node_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.compute_devices
    ADD CONSTRAINT compute_devices_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.compute_nodes(id) ON DELETE CASCADE;

--
-- Name: compute_nodes compute_nodes_organization_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.compute_nodes
    ADD CONSTRAINT compute_nodes_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);

--
-- Name: model_registry model_registry_organization_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.model_registry
    ADD CONSTRAINT model_registry_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);

--
-- Name: node_credentials node_credentials_node_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_credentials
    ADD CONSTRAINT node_credentials_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.compute_nodes(id) ON DELETE CASCADE;

--
-- Name: node_heartbeats node_heartbeats_node_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_heartbeats
    ADD CONSTRAINT node_heartbeats_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.compute_nodes(id) ON DELETE CASCADE;

--
-- Name: node_models node_models_node_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.node_models
    ADD CONSTRAINT node_models_node_id_fkey FOREIGN KEY (node_id) REFERENCES public.compute_nodes(id) ON DELETE CASCADE;

--
-- Name: requirement_classes requirement_classes_organization_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.requirement_classes
    ADD CONSTRAINT requirement_classes_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);

--
-- PostgreSQL database dump complete
--
