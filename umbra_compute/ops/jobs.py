"""Jobs: submitting, reading, cancelling."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog

from umbra_compute.db import Conn, Pool, repeated
from umbra_compute.errors import IdempotencyMismatch, JobNotFound, UmbraError
from umbra_compute.ids import uuid7
from umbra_compute.model.jobs import Job, JobEvent, JobState, JobStatus, NewJob, Submitted
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.store import events, jobs
from umbra_compute.store.jobs import Filter
from umbra_compute.wake import Wake

log = structlog.get_logger(__name__)


@repeated
async def submit(
    pool: Pool, catalogue: Catalogue, wake: Wake, new: Sequence[NewJob]
) -> list[Submitted | UmbraError]:
    """Store each job, or find the one that its idempotency key made before; a verdict each.

    The verdict is IdempotencyMismatch if that one had another body; its neighbours are stored.
    """
    async with pool.acquire() as conn, conn.transaction():
        class_ids, verdicts = await _store(conn, catalogue, new)
    _tell(catalogue, wake, new, class_ids, verdicts)
    return verdicts


@repeated
async def submit_all(
    pool: Pool, catalogue: Catalogue, wake: Wake, new: Sequence[NewJob]
) -> list[Submitted]:
    """Store all jobs or none, in the order given. Safe to repeat if every job has a key.

    Raises IdempotencyMismatch for the first job whose key belongs to another body.
    """
    async with pool.acquire() as conn, conn.transaction():
        class_ids, verdicts = await _store(conn, catalogue, new)
        stored = [v for v in verdicts if isinstance(v, Submitted)]
        for verdict in verdicts:
            if isinstance(verdict, UmbraError):
                raise verdict
    _tell(catalogue, wake, new, class_ids, verdicts)
    return stored


async def _store(
    conn: Conn, catalogue: Catalogue, new: Sequence[NewJob]
) -> tuple[list[int], list[Submitted | UmbraError]]:
    class_ids = await catalogue.ids_of(conn, [job.class_key for job in new])
    ids = [uuid7() for _ in new]
    created = await jobs.submit(conn, ids, class_ids, new)
    taken = {
        (job.organization_id, job.idempotency_key)
        for job_id, job in zip(ids, new, strict=True)
        if job_id not in created and job.idempotency_key is not None
    }
    earlier = await jobs.by_key(conn, list(taken)) if taken else {}
    shown = await jobs.show(conn, [*created, *(job_id for job_id, _ in earlier.values())])
    verdicts: list[Submitted | UmbraError] = []
    for job_id, job in zip(ids, new, strict=True):
        if job_id in created:
            verdicts.append(Submitted(job=shown[job_id], created=True))
            continue
        if job.idempotency_key is None:
            raise AssertionError("a job without a key was not stored")
        there, body_hash = earlier[job.organization_id, job.idempotency_key]
        if body_hash == job.idempotency_hash:
            verdicts.append(Submitted(job=shown[there], created=False))
        else:
            verdicts.append(IdempotencyMismatch(job.idempotency_key, there))
    return class_ids, verdicts


def _tell(
    catalogue: Catalogue,
    wake: Wake,
    new: Sequence[NewJob],
    class_ids: Sequence[int],
    verdicts: Sequence[Submitted | UmbraError],
) -> None:
    catalogue.remember([job.class_key for job in new], class_ids)
    made = [v.job for v in verdicts if isinstance(v, Submitted) and v.created]
    if len(made) == 1:
        log.info("job.submitted", job_id=made[0].id, kind=made[0].kind)
    elif made:
        log.info("jobs.submitted", jobs=len(made), first_job_id=made[0].id)
    waiting = Counter((j.organization_id, j.class_id) for j in made if j.not_before <= j.created_at)
    for (organization_id, class_id), count in waiting.items():
        wake.ready(organization_id, class_id, count)


async def get(pool: Pool, organization_id: UUID, job_id: UUID) -> Job:
    """Return the job as it is now. Raises JobNotFound."""
    async with pool.acquire() as conn:
        job = await jobs.get(conn, organization_id, job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


async def list_page(
    pool: Pool,
    organization_id: UUID,
    wanted: Filter,
    *,
    before: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Job]:
    """Return up to `limit` jobs, newest first, from behind the (created_at, id) `before`."""
    async with pool.acquire() as conn:
        return await jobs.list_page(conn, organization_id, wanted, before=before, limit=limit)


async def history(
    pool: Pool, organization_id: UUID, job_id: UUID, *, after: int, limit: int
) -> list[JobEvent]:
    """Return up to `limit` events, oldest first, with ids greater than `after`.

    Raises JobNotFound.
    """
    async with pool.acquire() as conn:
        if await jobs.get(conn, organization_id, job_id) is None:
            raise JobNotFound(job_id)
        return await events.page(conn, job_id, after=after, limit=limit)


@repeated
async def cancel(pool: Pool, wake: Wake, organization_id: UUID, job_id: UUID) -> Job:
    """End a waiting job at once; ask the holder of a running one to stop. Safe to repeat.

    A job that has ended stays as it is. Raises JobNotFound.
    """
    async with pool.acquire() as conn, conn.transaction():
        changed = await jobs.cancel(conn, organization_id, job_id)
        job = await jobs.get(conn, organization_id, job_id)
        if job is None:
            raise JobNotFound(job_id)
    if changed is not None:
        running = JobStatus.of(JobState(changed["state"])) is JobStatus.RUNNING
        log.info("job.cancel_requested" if running else "job.cancelled", job_id=job_id)
        if not running:
            wake.finished([job_id])
    return job
