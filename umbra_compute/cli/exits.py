"""Exit statuses: 0 fine, 1 failed, 2 usage, 3 configuration, 4 credentials, 5 not reachable."""

import sys
from typing import Final

FAILED: Final = 1
CONFIGURATION: Final = 3
CREDENTIALS: Final = 4
NOT_REACHABLE: Final = 5


class Failed(Exception):
    """The command did not do what it was asked to. The message says why and what to do."""


class NoKey(Exception):
    """No key was given."""

    def __init__(self) -> None:
        super().__init__("There is no key: set UMBRA_API_KEY, or give it by --api-key-stdin.")


class DatabaseNotReachable(Exception):
    """The database did not answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The database cannot be reached ({reason}): is it running, is the DSN right?"
        )


def exit_code_of(exc: Exception) -> int | None:
    """Return the status for what a command raised; None: a bug, to be shown with its traceback.

    Looks at modules that are loaded already: what was never imported was not raised.
    """
    if isinstance(exc, Failed):
        return FAILED
    if isinstance(exc, NoKey):
        return CREDENTIALS
    if isinstance(exc, DatabaseNotReachable):
        return NOT_REACHABLE
    known = {
        ("umbra_compute.config", "ConfigurationError"): CONFIGURATION,
        ("umbra_compute.client.errors", "RefusedCredentials"): CREDENTIALS,
        ("umbra_compute.client.errors", "NotReachable"): NOT_REACHABLE,
        ("umbra_compute.client.errors", "ApiError"): FAILED,
        ("umbra_compute.client.errors", "ClientError"): CONFIGURATION,
        ("umbra_compute.errors", "UmbraError"): FAILED,
    }
    for (module, name), code in known.items():
        if module in sys.modules and isinstance(exc, getattr(sys.modules[module], name)):
            return code
    return None
