"""Ending leases without a result: what fail, release, the sweeps and a restarted agent share.

A part of the caller's transaction: jobs and events change here and nowhere else.
"""

from collections.abc import Sequence
from uuid import UUID

import attrs

from umbra_compute.db import Conn
from umbra_compute.model.jobs import JobState, JobStatus
from umbra_compute.model.leases import Ended, Fate, LiveLease
from umbra_compute.policy import fate
from umbra_compute.store import leases


@attrs.frozen(kw_only=True)
class Ending:
    """One lease that was ended, and what became of its job."""

    lease: LiveLease
    fate: Fate
    ended: Ended
    is_ready: bool

    @property
    def is_final(self) -> bool:
        return self.ended.status.terminal


async def end(conn: Conn, fates: Sequence[tuple[LiveLease, Fate]]) -> list[Ending]:
    """Apply the fates to jobs that the caller has locked."""
    if not fates:
        return []
    rows = {row["id"]: row for row in await leases.end(conn, fates)}
    if len(rows) != len(fates):
        raise AssertionError("a lease was changed while its row was locked")
    return [
        Ending(
            lease=lease,
            fate=chosen,
            ended=Ended(
                job_id=lease.job_id,
                status=JobStatus.of(JobState(rows[lease.job_id]["state"])),
                attempt=lease.attempt,
                not_before=rows[lease.job_id]["not_before"],
            ),
            is_ready=rows[lease.job_id]["state"] == JobState.READY,
        )
        for lease, chosen in fates
    ]


async def give_back(conn: Conn, node_id: UUID) -> list[Ending]:
    """End every lease of a node whose agent came back as another process."""
    held = await leases.lock_of_node(conn, node_id)
    return await end(conn, [(lease, fate.after_restart(lease)) for lease in held])
