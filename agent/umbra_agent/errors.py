"""What ends the agent, and what a call to the controller may end in."""

from collections.abc import Sequence
from typing import Any, Final

FAILED: Final = 1
USAGE: Final = 2
CONFIGURATION: Final = 3
CREDENTIALS: Final = 4
NOT_REACHABLE: Final = 5


class ConfigurationError(Exception):
    """The configuration cannot be used. One sentence that says what to change."""


class CallError(Exception):
    """Superclass of what a call to the controller raises."""


class Away(CallError):
    """The controller cannot be reached, or says that it cannot work just now."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class KeyRefused(CallError):
    """The controller does not accept the key, or not for this; or the node is gone."""


class LeaseLost(CallError):
    """The lease does not hold the job any more: nothing that is said under it counts."""


class Refused(CallError):
    """The controller answered no to this very request; to repeat it is of no use."""

    def __init__(
        self, status: int, code: str, detail: str, faults: Sequence[dict[str, Any]] = ()
    ) -> None:
        paths = ", ".join(str(fault["path"]) for fault in faults if "path" in fault)
        super().__init__(f"{detail} ({paths})" if paths else detail)
        self.status = status
        self.code = code
