"""All processes of one run, found by a mark in their environment.

A process group does not hold what calls setsid, and a parent's children do not hold what forks
twice. The environment of a process is copied to whatever it starts, so the mark is.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

JOB_MARK: Final = "UMBRA_RUN"
"""One run of one job."""

AGENT_MARK: Final = "UMBRA_AGENT_RUN"
"""Everything that one agent process started."""

_PROC: Final = "/proc"  # elsewhere the process group is all there is
_POLL_S: Final = 0.02


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


def signal_all(mark: str, number: signal.Signals) -> int:
    """Send the signal to every process of the run; return how many there were."""
    count = 0
    for pid in marked(mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            count += 1
    return count


async def end(mark: str, within_s: float) -> bool:
    """Kill every process of the run; True when none is left. Repeats: they may be forking."""
    deadline = time.monotonic() + within_s
    while signal_all(mark, signal.SIGKILL):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True
