-- The least that a job table can be: what PostgreSQL itself allows on this machine.
CREATE TABLE least (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state      smallint    NOT NULL DEFAULT 0,
    priority   smallint    NOT NULL DEFAULT 0,
    run_at     timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    ended_at   timestamptz,
    payload    jsonb       NOT NULL
);
CREATE INDEX least_ready ON least (priority, id) WHERE state = 0;
