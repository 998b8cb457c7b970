"""Who is woken by what."""

from uuid import UUID, uuid4

from umbra_compute.wake import ClaimWaiter, Wake
from umbra_compute.wake.relay import hear, messages

ORG = UUID(int=1)


def test_a_job_wakes_one_of_many_waiting_nodes_n22() -> None:
    wake = Wake()
    with (
        wake.claim(ORG, UUID(int=1), lambda _: True) as one,
        wake.claim(ORG, UUID(int=2), lambda _: True) as two,
    ):
        wake.ready(ORG, 7, 1)
        assert [one.is_woken, two.is_woken] == [True, False]
        wake.ready(ORG, 7, 1)
        assert two.is_woken


def test_a_node_that_cannot_run_it_is_not_woken() -> None:
    wake = Wake()
    with (
        wake.claim(ORG, UUID(int=1), lambda _: False) as small,
        wake.claim(ORG, UUID(int=2), lambda _: True) as large,
    ):
        wake.ready(ORG, 7, 5)
        assert [small.is_woken, large.is_woken] == [False, True]


def test_a_signal_goes_on_until_a_node_takes_it() -> None:
    wake = Wake()
    with (
        wake.claim(ORG, UUID(int=1), lambda _: True) as one,
        wake.claim(ORG, UUID(int=2), lambda _: True) as two,
    ):
        wake.ready(ORG, 7, 1)
        wake.pass_on(one.take_signal(), one.node_id)
        assert two.is_woken
        wake.pass_on(two.take_signal(), two.node_id)
        assert [one.is_woken, two.is_woken] == [False, False]  # both have looked


def test_a_waiter_that_leaves_hands_its_signal_on() -> None:
    wake = Wake()
    with wake.claim(ORG, UUID(int=2), lambda _: True) as two:

        def leave() -> ClaimWaiter:
            # The first in line is the one that has waited longest; make that the leaver.
            with wake.claim(ORG, UUID(int=1), lambda _: True) as one:
                two.wake(None)
                wake.ready(ORG, 7, 1)
                two.take_signal()
                assert one.is_woken
                return one

        leave()
        assert two.is_woken


def test_another_organizations_work_wakes_nobody() -> None:
    wake = Wake()
    with wake.claim(ORG, UUID(int=1), lambda _: True) as waiter:
        wake.ready(UUID(int=99), 7, 10)
        assert not waiter.is_woken


def test_stopping_wakes_everybody() -> None:
    wake = Wake()
    with wake.claim(ORG, UUID(int=1), lambda _: True) as waiter, wake.job(UUID(int=5)) as ended:
        wake.stop()
        assert waiter.is_woken
        assert ended.is_set()


def test_what_one_controller_tells_wakes_the_waiters_of_another() -> None:
    here, there = Wake(), Wake()
    with there.claim(ORG, UUID(int=1), lambda c: c == 7) as waiter, there.job(UUID(int=5)) as ended:
        here.ready(ORG, 7, 1)
        here.finished([UUID(int=5)])
        told = list(messages("here", *here.take_told()))
        for message in told:
            hear(there, "here", message)
        assert not waiter.is_woken  # a controller's own words come back to it, and are old
        for message in told:
            hear(there, "there", message)
        assert waiter.is_woken
        assert ended.is_set()


def test_no_message_is_larger_than_a_notification_can_be_n23() -> None:
    wake = Wake()
    for class_id in range(10_000):
        wake.ready(uuid4(), 10**15 + class_id, 10**6)
    wake.finished(uuid4() for _ in range(10_000))
    told = list(messages("x" * 32, *wake.take_told()))
    assert max(len(message.encode()) for message in told) < 8000
    assert list(messages("x", *wake.take_told())) == []
