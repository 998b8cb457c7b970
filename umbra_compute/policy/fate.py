"""What becomes of a job whose lease ends without a result. Source: SPEC §6.

cancel asked for          -> cancelled, whatever ended the lease
failed, attempts left     -> scheduled after the backoff, if a retry was asked for
lease or runtime ran out  -> scheduled after the backoff, while attempts are left
released                  -> ready at its old place, the attempt given back
agent restarted           -> ready at once, the attempt spent
otherwise                 -> failed
"""

from typing import Final

from umbra_compute.model.jobs import Event, JobState
from umbra_compute.model.leases import Fate, LiveLease
from umbra_compute.policy.retry import RELEASES_PER_ATTEMPT, backoff_s

BY_FAIL: Final = "fail"
BY_RELEASE: Final = "release"
BY_SWEEP: Final = "controller"
"""Who ended the lease: a repeated call is answered from the event of the first, if it was that."""


def after_failure(
    lease: LiveLease, *, error: str, retry: bool, retry_after_s: float | None, jitter: float
) -> Fate:
    """The holder says that the attempt failed; retry_after_s replaces the backoff if given."""
    if lease.cancel_requested:
        return _cancelled(error, by=BY_FAIL)
    if not retry or lease.attempt >= lease.max_attempts:
        detail = {"error": error, "by": BY_FAIL}
        return Fate(state=JobState.FAILED, event=Event.FAILED, error=error, detail=detail)
    wait_s = backoff_s(lease.attempt, jitter) if retry_after_s is None else retry_after_s
    return _requeued(Event.REQUEUED, wait_s, error, by=BY_FAIL)


def after_expiry(lease: LiveLease, *, jitter: float) -> Fate:
    """Nobody renewed in time. The event says who held it; the last attempt says so too."""
    error = (
        f"Lease expired in attempt {lease.attempt} of {lease.max_attempts}: "
        f"node {lease.node_id} did not renew it."
    )
    return _lost(lease, Event.LEASE_EXPIRED, error, jitter)


def after_runtime(lease: LiveLease, *, jitter: float) -> Fate:
    """The attempt ran longer than the job allows, and its agent did not end it."""
    error = f"Attempt {lease.attempt} ran longer than max_runtime_s = {lease.max_runtime_s}."
    return _lost(lease, Event.REQUEUED, error, jitter)


def after_unheard_cancel(lease: LiveLease, *, grace_s: float) -> Fate:
    """The holder was asked to cancel and did not answer."""
    return _cancelled(f"Cancelled: node {lease.node_id} did not confirm within {grace_s:g} s.")


def after_release(lease: LiveLease, *, reason: str | None) -> Fate:
    """The holder gives the job back unrun. Each 20th time the attempt is spent all the same."""
    if lease.cancel_requested:
        return _cancelled(reason, by=BY_RELEASE)
    detail = {"by": BY_RELEASE} if reason is None else {"by": BY_RELEASE, "reason": reason}
    burns = (lease.releases + 1) % RELEASES_PER_ATTEMPT == 0
    if burns and lease.attempt >= lease.max_attempts:
        error = f"Given back {lease.releases + 1} times, and its attempts are spent."
        error = error if reason is None else f"{error} Last reason: {reason}"
        return Fate(state=JobState.FAILED, event=Event.FAILED, error=error, detail=detail)
    return Fate(
        state=JobState.READY,
        event=Event.RELEASED,
        attempt_given_back=not burns,
        detail=detail,
    )


def after_restart(lease: LiveLease) -> Fate:
    """The agent came back as another process: what the old one ran is gone.

    The attempt stays spent, or a job that kills its agent would do so for ever.
    """
    if lease.cancel_requested:
        return _cancelled(None)
    error = f"Node {lease.node_id} restarted during attempt {lease.attempt}."
    if lease.attempt >= lease.max_attempts:
        return Fate(state=JobState.FAILED, event=Event.FAILED, error=error, detail={"error": error})
    return Fate(state=JobState.READY, event=Event.REQUEUED, error=error, detail={"error": error})


def _lost(lease: LiveLease, event: Event, error: str, jitter: float) -> Fate:
    if lease.cancel_requested:
        return _cancelled(error)
    if lease.attempt >= lease.max_attempts:
        # N10 counts three lease_expired events for three attempts: the last is one too.
        ended = event if event is Event.LEASE_EXPIRED else Event.FAILED
        return Fate(state=JobState.FAILED, event=ended, error=error, detail={"error": error})
    return _requeued(event, backoff_s(lease.attempt, jitter), error)


def _requeued(event: Event, wait_s: float, error: str, *, by: str = BY_SWEEP) -> Fate:
    return Fate(
        state=JobState.SCHEDULED,
        event=event,
        wait_s=wait_s,
        error=error,
        detail={"error": error, "by": by, "wait_s": round(wait_s, 3)},
    )


def _cancelled(error: str | None, *, by: str = BY_SWEEP) -> Fate:
    detail = {"by": by} if error is None else {"by": by, "error": error}
    return Fate(state=JobState.CANCELLED, event=Event.CANCELLED, error=error, detail=detail)
