"""When work must stop and when calls are repeated, by values alone; and the clock that decides."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from umbra_agent import fence
from umbra_agent.agent import Agent
from umbra_agent.backoff import Backoff
from umbra_agent.config import Config
from umbra_agent.controller import Controller
from umbra_agent.devices.detection import Detector
from umbra_agent.errors import Away, KeyRefused
from umbra_agent.held import Job, of_claim
from umbra_agent.loops.renewal import fence_overdue
from umbra_agent.outcome import Stop

CLAIMED: dict[str, Any] = {
    "job": {"id": "j", "kind": "work", "attempt": 1, "requires": {}, "payload": None},
    "lease": {"lease_id": "l", "lease_seconds": 60, "expires_in_s": 60.0},
    "placement": {"device_label": "cpu"},
}


@given(st.floats(0, 1e6), st.floats(5, 3600))
def test_work_stops_before_its_lease_ends_and_not_long_before(
    asked_at: float, lease: float
) -> None:
    left = asked_at + lease - fence.stop_at(asked_at, lease, lease)
    assert 0.7 <= left <= 3.0 + 1e-6


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_grow_to_a_cap_and_never_spin(failures: int, draw: float) -> None:
    wait_s = fence.backoff_s(failures, draw)
    assert 0.1 <= wait_s <= 15.0
    assert wait_s <= max(0.1, 0.5 * 2.0 ** min(failures, 10))


@pytest.mark.parametrize(
    ("asked_s", "least", "most"), [(7.0, 7.0, 7.5), (0.0, 0.1, 1.0), (1e9, 60.0, 60.5)]
)
def test_what_the_controller_asked_for_is_waited_at_least_and_within_reason(
    asked_s: float, least: float, most: float
) -> None:
    waits = [fence.backoff_s(1, draw / 10, asked_s) for draw in range(10)]
    assert least <= min(waits) <= max(waits) <= most


def test_two_renewals_may_be_slow_and_one_lost_and_the_next_still_counts_q07() -> None:
    for lease in (5.0, 10.0, 60.0):
        answer_s = 0.4 * lease
        sends = [2 * fence.tick_s(lease), 3 * fence.tick_s(lease)]  # the first of the two is lost
        assert sends[-1] - sends[0] + answer_s < lease
        assert 2 * fence.tick_s(lease) + answer_s < fence.stop_at(0.0, lease, lease)
        assert fence.is_slow(answer_s, lease)


def test_calm_renewals_come_at_a_third_of_the_lease() -> None:
    assert fence.CALM_TICKS * fence.tick_s(60.0) == pytest.approx(20.0)
    assert not fence.is_slow(0.1, 60.0)


def test_a_quick_answer_counts_from_the_question_and_a_late_one_is_not_believed() -> None:
    quick = of_claim(CLAIMED, asked_at=100.0, answered_at=100.4)
    assert (quick.stop_at, quick.is_confirmed) == (157.0, True)
    late = of_claim(CLAIMED, asked_at=100.0, answered_at=7300.0)
    assert not late.is_confirmed
    late.renewed(late.stop_at - 5)
    assert late.is_confirmed


def test_an_answer_that_was_overtaken_takes_nothing_back() -> None:
    job = of_claim(CLAIMED, 100.0, 100.0)
    job.renewed(200.0)
    job.renewed(180.0)
    assert job.stop_at == 200.0


def test_the_first_reason_stands_but_a_lost_lease_outweighs_it() -> None:
    job = of_claim(CLAIMED, 0.0, 0.0)
    stops = []
    for why in (Stop.DRAIN, Stop.CANCEL, Stop.LOST, Stop.CANCEL):
        job.end(why)
        stops.append(job.stop)
    assert stops == [Stop.DRAIN, Stop.DRAIN, Stop.LOST, Stop.LOST]
    delivering = of_claim(CLAIMED, 0.0, 0.0)
    delivering.is_delivering = True
    delivering.lose()
    assert delivering.stop is None


class Killed:
    """Stands for a running program."""

    def __init__(self) -> None:
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1


async def test_a_machine_that_slept_kills_by_the_boot_clock_before_it_asks_p29(
    tmp_path: Path,
) -> None:
    """Boot clock + 120 s while the monotonic clock stood still: no wait, no request."""
    clock = [1000.0]
    async with Controller("http://127.0.0.1:9", "umn_none") as controller:
        agent = Agent(
            config=Config(),
            controller=controller,
            detector=Detector(1.0, tmp_path, {}),
            environment={},
            work_dir=tmp_path,
            clock=lambda: clock[0],
        )
        job: Job = of_claim(CLAIMED, 1000.0, 1000.0)
        killed = Killed()
        job.command = killed  # type: ignore[assignment]
        agent.hold(job)
        clock[0] += 56.9
        fence_overdue(agent)
        assert (job.stop, killed.kills) == (None, 0)
        clock[0] += 120
        fence_overdue(agent)
        assert (job.stop, killed.kills) == (Stop.FENCED, 1)


def test_the_agents_clock_counts_suspended_time() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= fence.boot_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_reason_is_news_once_until_it_changes_or_is_over() -> None:
    backoff = Backoff()
    told = [
        backoff.is_news(exc) for exc in (Away("a"), Away("b"), KeyRefused("c"), KeyRefused("c"))
    ]
    assert told == [True, False, True, False]
    backoff.pause_s(Away("a"))
    assert backoff.over() == 1
    assert backoff.is_news(KeyRefused("c"))
