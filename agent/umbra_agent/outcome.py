"""What a job's run came to, and what the controller is told of it. Pure."""

import signal
from enum import StrEnum
from typing import Any, Final

import attrs

GIVE_BACK: Final = 75  # EX_TEMPFAIL of sysexits.h: not now, not here


class Stop(StrEnum):
    """Why the agent ends work that has not ended by itself."""

    CANCEL = "cancel"  # the controller asked
    LOST = "lost"  # the lease is somebody else's, or nobody's
    FENCED = "fenced"  # the lease may have run out, and nobody can be asked
    DRAIN = "drain"  # the agent stops
    RUNTIME = "runtime"  # max_runtime_s


@attrs.frozen
class Complete:
    result: Any


@attrs.frozen
class Fail:
    error: str
    retry: bool


@attrs.frozen
class Release:
    reason: str


@attrs.frozen
class Nothing:
    """The lease is lost: whatever is said under it counts for nothing."""


Outcome = Complete | Fail | Release | Nothing


@attrs.frozen(kw_only=True)
class Ended:
    """How a program ended. `result` is what it left, if that can be read; `flaw` why not."""

    status: int
    has_result: bool
    result: Any
    flaw: str | None
    tail: str


def of(
    ended: Ended, stop: Stop | None, permanent: frozenset[int], max_runtime_s: int | None
) -> Outcome:
    """Return what to tell the controller.

    A result that was written before the agent ended the program is a result; a program that was
    told to stop and left none has not done its work, whatever its exit status says.
    """
    match stop:
        case Stop.LOST | Stop.FENCED:
            return Nothing()
        case Stop.CANCEL:
            return Release("cancelled")
        case Stop.RUNTIME:
            late = f"Ran longer than max_runtime_s = {max_runtime_s}."
            return Fail(f"{late}{_said(ended)}", retry=True)
        case Stop.DRAIN:
            return Complete(ended.result) if ended.has_result else Release("the agent stops")
        case None:
            return _by_itself(ended, permanent)


def _by_itself(ended: Ended, permanent: frozenset[int]) -> Outcome:
    if ended.status == GIVE_BACK:
        return Release(f"the program gave it back (exit code {GIVE_BACK})")
    if ended.status != 0:
        return Fail(f"{_how(ended.status)}{_said(ended)}", retry=ended.status not in permanent)
    if not ended.has_result:
        return Fail(f"Exit code 0 without a result: {ended.flaw}.{_said(ended)}", retry=False)
    return Complete(ended.result)


def _how(status: int) -> str:
    if status >= 0:
        return f"Exit code {status}."
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"Killed by signal {name}."


def _said(ended: Ended) -> str:
    return f"\n{ended.tail}" if ended.tail else ""
