"""What a call may end in. Each message is a sentence that says what to do."""

from collections.abc import Sequence
from typing import Any


class ClientError(Exception):
    """Superclass of what the client raises."""


class NotReachable(ClientError):
    """The controller did not answer, or says that it cannot work just now."""


class ApiError(ClientError):
    """The controller refused the request."""

    def __init__(
        self, status: int, code: str, detail: str, faults: Sequence[dict[str, Any]] = ()
    ) -> None:
        told = "".join(f"\n  {fault['path']}: {fault['detail']}" for fault in faults)
        super().__init__(f"{detail}{told}")
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = tuple(faults)


class RefusedCredentials(ApiError):
    """The key is unknown, or not allowed to do this."""
