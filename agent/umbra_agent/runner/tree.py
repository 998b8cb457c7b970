"""All processes of one run, found by a mark in their environment.

A process group does not hold what calls setsid, and a parent's children do not hold what forks
twice. The environment of a process is copied to whatever it starts, so the mark is.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

JOB_MARK: Final = "UMBRA_RUN"
"""One run of one job."""

AGENT_MARK: Final = "UMBRA_AGENT_RUN"
"""Everything that one agent process started."""

_PROC: Final = "/proc"  # elsewhere the process group is all there is


def marked(mark: str) -> Iterator[int]:
    """Yield the process ids whose environment holds `mark`, a NAME=value of random value."""
    wanted = mark.encode()
    for name in os.listdir(_PROC) if os.path.isdir(_PROC) else ():
        if not name.isdigit():
            continue
        with suppress(OSError):  # it ended meanwhile, or is another account's
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
            if environment.startswith(wanted) or b"\0" + wanted in environment:
                yield int(name)


def signal_all(mark: str, number: signal.Signals, besides: int = 0) -> int:
    """Send the signal to every process of the run; return how many there were.

    Not to those of the process group `besides`, which have had it already: to many programs a
    second one means something else.
    """
    count = 0
    for pid in marked(mark):
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) != besides:
                os.kill(pid, number)
                count += 1
    return count
