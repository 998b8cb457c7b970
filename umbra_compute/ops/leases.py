"""Holding a job: renewing, completing, failing, releasing."""

from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg
import structlog

from umbra_compute.db import Conn, Pool, repeated
from umbra_compute.errors import JobNotFound, LeaseLost, UmbraError
from umbra_compute.model.jobs import JobStatus
from umbra_compute.model.leases import Completion, Ended, Fate, Held, LiveLease, Renewal, Renewed
from umbra_compute.ops import ending
from umbra_compute.policy import fate, replay
from umbra_compute.store import events, leases
from umbra_compute.wake import Wake

log = structlog.get_logger(__name__)

Decide = Callable[[LiveLease], Fate]
_TOLD = ("job_id", "event", "attempt", "detail")


@repeated
async def renew(pool: Pool, renewals: Sequence[Renewal]) -> list[Renewed | UmbraError]:
    """Extend leases to their length from now, by the database's clock; one verdict each.

    Safe to repeat: it only moves the expiry. The verdict is JobNotFound if the caller's
    organization has no such job, LeaseLost if the lease is not the job's live one. An expired
    lease is lost, also when nobody took the job yet.
    """
    async with pool.acquire() as conn, conn.transaction():
        rows = {(row["id"], row["lease_id"]): row for row in await leases.renew(conn, renewals)}
        lost = [r.held for r in renewals if (r.held.job_id, r.held.lease_id) not in rows]
        refusals = await _refusals(conn, lost)
    log.debug("leases.renewed", renewed=len(rows), lost=len(lost))
    return [
        _renewed(rows[key]) if (key := (r.held.job_id, r.held.lease_id)) in rows else refusals[key]
        for r in renewals
    ]


@repeated
async def complete(
    pool: Pool, wake: Wake, completions: Sequence[Completion]
) -> list[Ended | UmbraError]:
    """Store results under their leases; one verdict each, and a lost one harms no neighbour.

    A completion counts as long as its lease was not ended, even past its expiry. The same call
    again after a lost reply gets the same answer, and the result stays the first one.
    """
    async with pool.acquire() as conn, conn.transaction():
        rows = {(r["id"], r["lease_id"]): r for r in await leases.complete(conn, completions)}
        others = [c.held for c in completions if (c.held.job_id, c.held.lease_id) not in rows]
        replays = await _replays(conn, others, replay.COMPLETE)
        lost = [held for held in others if (held.job_id, held.lease_id) not in replays]
        refusals = await _refusals(conn, lost)
    _log_completed(list(rows.values()))
    wake.finished(row["id"] for row in rows.values())
    verdicts: dict[tuple[UUID, UUID], Ended | UmbraError] = {**replays, **refusals}
    for key, row in rows.items():
        verdicts[key] = Ended(job_id=row["id"], status=JobStatus.COMPLETE, attempt=row["attempt"])
    return [verdicts[c.held.job_id, c.held.lease_id] for c in completions]


def _log_completed(rows: Sequence[asyncpg.Record]) -> None:
    if len(rows) == 1:
        [row] = rows
        log.info(
            "job.completed", job_id=row["id"], lease_id=row["lease_id"], attempt=row["attempt"]
        )
    elif rows:
        log.info("jobs.completed", jobs=len(rows), job_ids=[str(row["id"]) for row in rows])


@repeated
async def fail(
    pool: Pool,
    wake: Wake,
    held: Held,
    *,
    error: str,
    retry: bool,
    retry_after_s: float | None,
    jitter: float,
) -> Ended:
    """End the attempt as failed; the job waits for its next attempt or is over.

    `jitter` in [-1, 1] spreads the backoff. The same call again gets the same answer.

    Raises JobNotFound, or LeaseLost if the lease expired or was ended otherwise.
    """

    def decide(lease: LiveLease) -> Fate:
        return fate.after_failure(
            lease, error=error, retry=retry, retry_after_s=retry_after_s, jitter=jitter
        )

    return await _end(pool, wake, held, decide, fate.BY_FAIL)


@repeated
async def release(pool: Pool, wake: Wake, held: Held, *, reason: str | None) -> Ended:
    """Give the job back unrun: it keeps its place in the line, and its attempt.

    The same call again gets the same answer. Raises JobNotFound or LeaseLost as `fail` does.
    """
    return await _end(
        pool, wake, held, lambda lease: fate.after_release(lease, reason=reason), fate.BY_RELEASE
    )


async def _end(pool: Pool, wake: Wake, held: Held, decide: Decide, call: str) -> Ended:
    async with pool.acquire() as conn, conn.transaction():
        lease = await leases.lock_held(conn, held)
        if lease is None or lease.overdue_s > 0:
            replays = await _replays(conn, [held], call)
            if replays:
                return replays[held.job_id, held.lease_id]
            raise (await _refusals(conn, [held]))[held.job_id, held.lease_id]
        [done] = await ending.end(conn, [(lease, decide(lease))])
    tell([done], wake, held.node.organization_id)
    return done.ended


def tell(endings: Sequence[ending.Ending], wake: Wake, organization_id: UUID | None = None) -> None:
    """Log what was committed, and wake who waits for it."""
    for done in endings:
        log.info(
            "lease.ended",
            how=done.fate.event,
            job_id=done.lease.job_id,
            lease_id=done.lease.lease_id,
            node_id=done.lease.node_id,
            attempt=done.lease.attempt,
            status=done.ended.status,
            wait_s=done.fate.wait_s,
        )
        if done.is_ready and organization_id is not None:
            wake.ready(organization_id, done.lease.class_id, 1)
    wake.finished(done.lease.job_id for done in endings if done.is_final)


async def _replays(conn: Conn, held: Sequence[Held], call: str) -> dict[tuple[UUID, UUID], Ended]:
    """Return the answers already given to those leases that ended by this very call."""
    if not held:
        return {}
    rows = await events.ended_by(conn, [(h.job_id, h.lease_id, h.node.node_id) for h in held])
    return {
        key: told
        for key, row in rows.items()
        if (told := replay.answer(call, *(row[k] for k in _TOLD))) is not None
    }


async def _refusals(conn: Conn, lost: Sequence[Held]) -> dict[tuple[UUID, UUID], UmbraError]:
    """Tell a lost lease from a job that the caller's organization does not have."""
    if not lost:
        return {}
    exist = await leases.jobs_that_exist(conn, [(h.node.organization_id, h.job_id) for h in lost])
    return {
        (h.job_id, h.lease_id): LeaseLost(h.job_id, h.lease_id)
        if h.job_id in exist
        else JobNotFound(h.job_id)
        for h in lost
    }


def _renewed(row: asyncpg.Record) -> Renewed:
    return Renewed(
        lease_id=row["lease_id"],
        lease_seconds=row["lease_seconds"],
        expires_in_s=row["expires_in_s"],
        cancel_requested=row["cancel_requested"],
    )
