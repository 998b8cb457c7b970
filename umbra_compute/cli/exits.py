"""Exit statuses: 0 fine, 1 failed, 2 usage, 3 configuration, 4 credentials, 5 not reachable."""

import sys
from typing import Final

FAILED: Final = 1
CONFIGURATION: Final = 3
CREDENTIALS: Final = 4
NOT_REACHABLE: Final = 5
INTERRUPTED: Final = 130  # as a shell counts SIGINT


class Failed(Exception):
    """The command did not do what it was asked to. The message says why and what to do."""


class DatabaseNotReachable(Exception):
    """The database did not answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The database cannot be reached ({reason}): is it running, is the DSN right?"
        )


_STATUS: Final = {
    ("umbra_compute.cli.exits", "Failed"): FAILED,
    ("umbra_compute.cli.exits", "DatabaseNotReachable"): NOT_REACHABLE,
    ("umbra_compute.config", "ConfigurationError"): CONFIGURATION,
    ("umbra_compute.client.errors", "BadAddress"): CONFIGURATION,
    ("umbra_compute.client.errors", "NotReachable"): NOT_REACHABLE,
    ("umbra_compute.client.errors", "RefusedCredentials"): CREDENTIALS,
    ("umbra_compute.client.errors", "ApiError"): FAILED,
    ("umbra_compute.errors", "UmbraError"): FAILED,
    ("umbra_compute.app", "DatabaseEnded"): FAILED,
}
"""By name, for what was never imported was not raised. A subclass stands before its class."""


def foreseen() -> tuple[type[Exception], ...]:
    """Return what has a status; anything else is a bug, to be shown with its traceback."""
    return tuple(kind for kind, _ in _loaded())


def status_of(exc: Exception) -> int:
    """Return the exit status for one of `foreseen`."""
    return next(status for kind, status in _loaded() if isinstance(exc, kind))


def _loaded() -> list[tuple[type[Exception], int]]:
    return [
        (getattr(sys.modules[module], name), status)
        for (module, name), status in _STATUS.items()
        if module in sys.modules
    ]
