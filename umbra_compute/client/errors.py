"""What a call may end in. Each message is a sentence that says what to do; none holds the key."""

from collections.abc import Sequence
from typing import TypedDict


class Fault(TypedDict):
    """Where in a request and what: {"path": "$.kind", "detail": "required"}."""

    path: str
    detail: str


class ClientError(Exception):
    """Superclass of what the client raises."""


class BadAddress(ClientError):
    """The address or the key cannot be used; nothing was sent."""


class NotReachable(ClientError):
    """The controller did not answer, or says that it cannot work just now.

    `sent` False: the request never left, so that any may be made again.
    """

    def __init__(self, told: str, *, sent: bool = True, retry_after_s: float | None = None) -> None:
        super().__init__(told)
        self.sent = sent
        self.retry_after_s = retry_after_s


class ApiError(ClientError):
    """The controller refused the request. `errors` names each bad field."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        errors: Sequence[Fault] = (),
        *,
        retry_after_s: float | None = None,
    ) -> None:
        told = "".join(f"\n  {fault['path']}: {fault['detail']}" for fault in errors)
        super().__init__(f"{detail}{told}")
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after_s = retry_after_s


class RefusedCredentials(ApiError):
    """The key is unknown (401), or not allowed to do this (403)."""
