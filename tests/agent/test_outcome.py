"""What is said of a program's end, as a table (P39, SPEC §9)."""

import signal
from typing import Any

import pytest
from umbra_agent import outcome
from umbra_agent.outcome import Complete, Ended, Fail, Nothing, Outcome, Release, Stop

TERM = -signal.SIGTERM


def ended(status: int, result: Any = None, *, has_result: bool = False, tail: str = "") -> Ended:
    flaw = None if has_result else "it wrote no file"
    return Ended(status=status, has_result=has_result, result=result, flaw=flaw, tail=tail)


@pytest.mark.parametrize(
    ("how", "stop", "expected"),
    [
        (ended(0, 5, has_result=True), None, Complete(5)),
        (ended(0, None, has_result=True), None, Complete(None)),
        (ended(0), None, Fail("Exit code 0 without a result: it wrote no file.", retry=False)),
        (ended(3, tail="no"), None, Fail("Exit code 3.\nno", retry=True)),
        (ended(3, 5, has_result=True), None, Fail("Exit code 3.", retry=True)),
        (ended(4), None, Fail("Exit code 4.", retry=False)),
        (ended(TERM), None, Fail("Killed by signal SIGTERM.", retry=True)),
        (ended(-60), None, Fail("Killed by signal 60.", retry=True)),
        (ended(75), None, Release("the program gave it back (exit code 75)")),
        (ended(0), Stop.DRAIN, Release("the agent stops")),
        (ended(TERM), Stop.DRAIN, Release("the agent stops")),
        (ended(0, 5, has_result=True), Stop.DRAIN, Complete(5)),
        (ended(TERM, 5, has_result=True), Stop.DRAIN, Complete(5)),
        (ended(0, 5, has_result=True), Stop.CANCEL, Release("cancelled")),
        (ended(TERM), Stop.RUNTIME, Fail("Ran longer than max_runtime_s = 9.", retry=True)),
        (ended(0, 5, has_result=True), Stop.LOST, Nothing()),
        (ended(0, 5, has_result=True), Stop.FENCED, Nothing()),
    ],
)
def test_what_is_said_of_an_end(how: Ended, stop: Stop | None, expected: Outcome) -> None:
    assert outcome.of(how, stop, frozenset({4}), 9) == expected
