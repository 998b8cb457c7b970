"""Jobs: submitting, reading, cancelling."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
import attrs

from umbra_compute.db import Conn
from umbra_compute.model.jobs import Job, NewJob

# A start in the past is now: a job's place in the line is not taken from those before it.
# Conflicting keys are skipped here and answered by BY_KEY, which sees what was committed since.
SUBMIT = """/* jobs.submit */
WITH given AS (
    SELECT g.*, greatest(statement_timestamp(), g.asked_for,
                         statement_timestamp() + make_interval(secs => g.delay_s)) AS not_before
      FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::integer[], $6::jsonb[],
                  $7::timestamptz[], $8::float8[], $9::float8[], $10::integer[], $11::integer[],
                  $12::text[], $13::text[], $14::text[], $15::text[], $16::bytea[])
           WITH ORDINALITY
           AS g (id, organization_id, class_id, kind, priority, payload, asked_for, delay_s,
                 start_by_s, max_attempts, max_runtime_s, project_id, lang, requested_by,
                 idempotency_key, idempotency_hash, position)
), new AS (
    INSERT INTO jobs (id, organization_id, class_id, kind, priority, payload, state, not_before,
                      claimable_at, start_by, max_attempts, max_runtime_s, project_id, lang,
                      requested_by, idempotency_key, idempotency_hash)
    SELECT id, organization_id, class_id, kind, priority, payload,
           CASE WHEN not_before > statement_timestamp() THEN 'scheduled' ELSE 'ready' END,
           not_before,
           CASE WHEN not_before <= statement_timestamp() THEN statement_timestamp() END,
           statement_timestamp() + make_interval(secs => start_by_s),
           max_attempts, max_runtime_s, project_id, lang, requested_by, idempotency_key,
           idempotency_hash
      FROM given
     ORDER BY position
        ON CONFLICT (organization_id, idempotency_key) WHERE idempotency_key IS NOT NULL
        DO NOTHING
    RETURNING id
), told AS (
    INSERT INTO job_events (job_id, event) SELECT id, 'queued' FROM new
)
SELECT id FROM new
"""

BY_KEY = """/* jobs.by_key */
SELECT j.organization_id, j.idempotency_key, j.idempotency_hash, j.id
  FROM unnest($1::uuid[], $2::text[]) AS k (organization_id, idempotency_key)
  JOIN jobs j ON j.organization_id = k.organization_id AND j.idempotency_key = k.idempotency_key
"""

SHOW = """/* jobs.show */
SELECT * FROM jobs_shown WHERE id = ANY ($1::uuid[])
"""

GET = """/* jobs.get */
SELECT * FROM jobs_shown WHERE organization_id = $1 AND id = $2
"""

# Each filter that is not given drops out; the planner walks jobs_list (or jobs_children).
LIST_PAGE = """/* jobs.list_page */
SELECT *
  FROM jobs_shown
 WHERE organization_id = $1
   AND ($2::text IS NULL OR status = $2)
   AND ($3::text IS NULL OR kind = $3)
   AND ($4::text IS NULL OR project_id = $4)
   AND ($5::uuid IS NULL OR parent_job_id = $5)
   AND ($6::uuid IS NULL OR id IN (SELECT id FROM jobs WHERE lease_owner = $6 OR last_node_id = $6))
   AND ($7::timestamptz IS NULL OR (created_at, id) < ($7, $8::uuid))
 ORDER BY created_at DESC, id DESC
 LIMIT $9
"""

# Waiting jobs end here; a running one is asked, and its holder answers.
CANCEL = """/* jobs.cancel */
WITH up AS (
    UPDATE jobs
       SET state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
           finished_at = CASE WHEN state = 'running' THEN finished_at
                              ELSE statement_timestamp() END,
           cancel_requested_at = statement_timestamp()
     WHERE organization_id = $1 AND id = $2
       AND state IN ('ready', 'scheduled', 'running') AND cancel_requested_at IS NULL
    RETURNING id, state, lease_owner, attempt, class_id
), told AS (
    INSERT INTO job_events (job_id, event, node_id, attempt)
    SELECT id, CASE state WHEN 'running' THEN 'cancel_requested' ELSE 'cancelled' END,
           lease_owner, attempt
      FROM up
)
SELECT state, lease_owner FROM up
"""

FINISHED = """/* jobs.finished */
SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) AND finished_at IS NOT NULL
"""


async def submit(
    conn: Conn, ids: Sequence[UUID], class_ids: Sequence[int], jobs: Sequence[NewJob]
) -> set[UUID]:
    """Store the jobs under `ids`; return the ids stored, without those whose key was taken."""
    rows = await conn.fetch(
        SUBMIT,
        ids,
        [j.organization_id for j in jobs],
        class_ids,
        [j.class_key.kind for j in jobs],
        [j.priority for j in jobs],
        [j.payload for j in jobs],
        [j.not_before for j in jobs],
        [j.delay_s for j in jobs],
        [j.start_by_s for j in jobs],
        [j.max_attempts for j in jobs],
        [j.max_runtime_s for j in jobs],
        [j.project_id for j in jobs],
        [j.lang for j in jobs],
        [j.requested_by for j in jobs],
        [j.idempotency_key for j in jobs],
        [j.idempotency_hash for j in jobs],
    )
    return {row["id"] for row in rows}


async def by_key(
    conn: Conn, keys: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str], tuple[UUID, bytes]]:
    """Return (job id, hash of its body) for each (organization, idempotency key) in use."""
    rows = await conn.fetch(BY_KEY, [k[0] for k in keys], [k[1] for k in keys])
    return {
        (row["organization_id"], row["idempotency_key"]): (row["id"], row["idempotency_hash"])
        for row in rows
    }


async def show(conn: Conn, ids: Sequence[UUID]) -> dict[UUID, Job]:
    """Return the jobs as the API shows them, by id."""
    return {row["id"]: Job(**row) for row in await conn.fetch(SHOW, ids)}


async def get(conn: Conn, organization_id: UUID, job_id: UUID) -> Job | None:
    row = await conn.fetchrow(GET, organization_id, job_id)
    return None if row is None else Job(**row)


@attrs.frozen(kw_only=True)
class Filter:
    """Which jobs to list; None: all."""

    status: str | None = None
    kind: str | None = None
    project_id: str | None = None
    parent_job_id: UUID | None = None
    node_id: UUID | None = None


async def list_page(
    conn: Conn,
    organization_id: UUID,
    wanted: Filter,
    *,
    before: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Job]:
    """Return up to `limit` jobs, newest first, from behind the (created_at, id) `before`."""
    created_at, job_id = (None, None) if before is None else before
    rows = await conn.fetch(
        LIST_PAGE,
        organization_id,
        wanted.status,
        wanted.kind,
        wanted.project_id,
        wanted.parent_job_id,
        wanted.node_id,
        created_at,
        job_id,
        limit,
    )
    return [Job(**row) for row in rows]


async def cancel(conn: Conn, organization_id: UUID, job_id: UUID) -> asyncpg.Record | None:
    """End a waiting job, ask a running one; (state, lease_owner), None if it was neither."""
    return await conn.fetchrow(CANCEL, organization_id, job_id)


async def finished(conn: Conn, ids: Sequence[UUID]) -> list[UUID]:
    """Return those of `ids` that have ended."""
    return [row["id"] for row in await conn.fetch(FINISHED, ids)]
