"""What becomes of a job whose lease ends without a result."""

from uuid import UUID

import attrs
import pytest

from umbra_compute.model.jobs import Event, JobState
from umbra_compute.model.leases import Fate, LiveLease
from umbra_compute.policy import fate

LEASE = LiveLease(
    job_id=UUID(int=1),
    class_id=1,
    lease_id=UUID(int=2),
    node_id=UUID(int=3),
    attempt=1,
    max_attempts=3,
    releases=0,
    cancel_requested=False,
    max_runtime_s=60,
    overdue_s=-1.0,
)
LAST = attrs.evolve(LEASE, attempt=3)
CANCELLING = attrs.evolve(LAST, cancel_requested=True)


def failed(lease: LiveLease, *, retry: bool = True, after_s: float | None = None) -> Fate:
    return fate.after_failure(lease, error="boom", retry=retry, retry_after_s=after_s, jitter=0.0)


def test_a_failure_waits_for_its_backoff_while_attempts_are_left() -> None:
    assert (failed(LEASE).state, failed(LEASE).wait_s) == (JobState.SCHEDULED, 5.0)
    assert failed(LAST).state is JobState.FAILED


def test_a_failure_without_retry_is_final_at_once() -> None:
    assert failed(LEASE, retry=False).state is JobState.FAILED


def test_the_holder_may_say_when_to_try_again_and_zero_is_now() -> None:
    assert failed(LEASE, after_s=0.0).wait_s == 0.0


def test_an_expiry_names_the_holder_the_attempt_and_the_reason_also_at_the_last() -> None:
    for lease in (LEASE, LAST):
        ended = fate.after_expiry(lease, jitter=0.0)
        assert ended.event is Event.LEASE_EXPIRED
        assert ended.error is not None
        for part in ("expired", str(lease.node_id), f"attempt {lease.attempt}"):
            assert part in ended.error
    assert fate.after_expiry(LAST, jitter=0.0).state is JobState.FAILED


def test_a_release_keeps_the_place_and_the_attempt() -> None:
    ended = fate.after_release(LAST, reason="drain")
    assert (ended.state, ended.wait_s, ended.attempt_given_back) == (JobState.READY, None, True)


def test_twenty_releases_burn_one_attempt() -> None:
    nineteenth = attrs.evolve(LEASE, releases=18)
    twentieth = attrs.evolve(LEASE, releases=19)
    assert fate.after_release(nineteenth, reason=None).attempt_given_back
    assert not fate.after_release(twentieth, reason=None).attempt_given_back
    spent = attrs.evolve(twentieth, attempt=3)
    assert fate.after_release(spent, reason=None).state is JobState.FAILED


def test_a_restarted_agent_returns_the_job_at_once_and_the_attempt_stays_spent() -> None:
    ended = fate.after_restart(LEASE)
    assert (ended.state, ended.attempt_given_back) == (JobState.READY, False)
    assert fate.after_restart(LAST).state is JobState.FAILED


@pytest.mark.parametrize(
    "ended",
    [
        failed(CANCELLING),
        fate.after_expiry(CANCELLING, jitter=0.0),
        fate.after_runtime(CANCELLING, jitter=0.0),
        fate.after_release(CANCELLING, reason="told to"),
        fate.after_restart(CANCELLING),
        fate.after_unheard_cancel(CANCELLING, grace_s=30),
    ],
)
def test_whatever_ends_a_lease_that_was_asked_to_cancel_ends_it_cancelled(ended: Fate) -> None:
    assert (ended.state, ended.event) == (JobState.CANCELLED, Event.CANCELLED)


def test_an_overrun_names_the_limit_and_is_retried_like_an_expiry() -> None:
    ended = fate.after_runtime(LEASE, jitter=0.0)
    assert (ended.state, ended.wait_s) == (JobState.SCHEDULED, 5.0)
    assert ended.error is not None
    assert "max_runtime_s = 60" in ended.error
    assert fate.after_runtime(LAST, jitter=0.0).event is Event.FAILED
