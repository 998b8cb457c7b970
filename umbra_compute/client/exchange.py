"""What both clients do alike: where to call, what an answer means, when to call again. Pure."""

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar
from urllib.parse import SplitResult, urlsplit

import attrs

from umbra_compute.client.errors import (
    ApiError,
    BadAddress,
    Fault,
    NotReachable,
    RefusedCredentials,
)

T = TypeVar("T")

ATTEMPTS: Final = 4
BACKOFF_S: Final = 0.25  # doubled each time: a restart of the controller takes about a second
LONGEST_PAUSE_S: Final = 10.0
"""A controller that asks for more is told of at once: whoever waits wants to know why."""

DEADLINE_S: Final = 15.0
"""Of one answer, beyond what the route itself waits for: statements of the controller end at 10."""

_AWAY: Final = frozenset({502, 503, 504})
_KEY: Final = re.compile(r"[!-~]{1,200}")  # what the controller takes for one


@attrs.frozen
class Call(Generic[T]):
    """One request, answered by a T. `repeat`: made twice it does no more than made once.

    `waits_s` is how long the route itself may take on purpose.
    """

    method: str
    path: str  # with its query, encoded
    body: Mapping[str, Any] | None = None
    repeat: bool = True
    waits_s: float = 0.0

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).encode()


@attrs.frozen
class Address:
    """Where the controller is."""

    url: str  # as it was given, without a slash at its end
    parts: SplitResult
    host: str
    port: int | None

    @classmethod
    def parse(cls, url: str, *, insecure: bool) -> "Address":
        """Read http(s)://HOST[:PORT][/PREFIX].

        Raises BadAddress, also for an address that would send the key in the clear over a
        network, unless `insecure`.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise _no_address(url) from None
        if parts.scheme not in ("http", "https") or not host or not url.isprintable():
            raise _no_address(url)
        if "@" in parts.netloc:
            raise BadAddress("Give the address without a name and password: the key suffices.")
        if " " in url or parts.query or parts.fragment:
            raise _no_address(url)
        if parts.scheme == "http" and not insecure and not _is_loopback(host):
            raise BadAddress(
                f"{url} would send the key unprotected: use https, or say insecure if you must."
            )
        return cls(url.rstrip("/"), parts, host, port)

    @property
    def prefix(self) -> str:
        return self.parts.path.rstrip("/")


def headers(api_key: str) -> dict[str, str]:
    """Return what every request carries. Raises BadAddress for a key that cannot be one."""
    if not _KEY.fullmatch(api_key):
        raise BadAddress("The key holds characters that no key has: copy it once more, whole.")
    return {"Authorization": f"Bearer {api_key}", "Accept": "application/json"}


def silent(address: Address, exc: BaseException, *, sent: bool) -> NotReachable:
    """Return the refusal for a controller that could not be talked to."""
    if isinstance(exc, ConnectionError) and exc.errno is not None:
        reason = os.strerror(exc.errno)
    else:
        reason = str(exc) if str(exc) else type(exc).__name__
    return NotReachable(
        f"The controller at {address.url} does not answer ({reason}): "
        "is it running, and is the address right?",
        sent=sent,
    )


def answered(address: Address, status: int, payload: bytes, retry_after: str | None) -> Any:
    """Return the object that was answered, {} for an empty answer.

    Raises RefusedCredentials, ApiError, NotReachable.
    """
    told, is_object = _parsed(payload)
    pause_s = _seconds(retry_after)
    if status in _AWAY:
        detail = _detail(told, f"The controller at {address.url} is away (status {status}).")
        raise NotReachable(detail, retry_after_s=pause_s)
    redirects = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    if not is_object or redirects:
        raise NotReachable(
            f"What answers at {address.url} (status {status}) is no controller: check the address."
        )
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return told
    refused = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    raise (RefusedCredentials if refused else ApiError)(
        status,
        str(told.get("code", "unknown")),
        _detail(told, f"The controller refused with status {status}."),
        _faults(told),
        retry_after_s=pause_s,
    )


def pause_s(
    call: Call[Any], attempt: int, exc: NotReachable | ApiError, draw: float
) -> float | None:
    """Return how long to wait before attempt number `attempt` + 1; None: give up.

    `attempt` counts from 1, `draw` is a number in [0, 1): without it all clients of a controller
    that restarts would come back at the same moment.
    """
    if isinstance(exc, NotReachable):
        safe = call.repeat or not exc.sent
    else:
        # Nobody looked at the request; but without a word when, guessing would not help.
        safe = exc.status == HTTPStatus.TOO_MANY_REQUESTS and exc.retry_after_s is not None
    asked_s = 0.0 if exc.retry_after_s is None else exc.retry_after_s
    if not safe or attempt >= ATTEMPTS or asked_s > LONGEST_PAUSE_S:
        return None
    return asked_s + BACKOFF_S * 2.0 ** (attempt - 1) * (0.5 + draw / 2)


def _no_address(url: str) -> BadAddress:
    return BadAddress(f"{url!r} is no address of a controller: give http(s)://HOST:PORT.")


def _parsed(payload: bytes) -> tuple[Mapping[str, Any], bool]:
    if not payload:
        return {}, True
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError):
        return {}, False
    return (told, True) if isinstance(told, dict) else ({}, False)


def _detail(told: Mapping[str, Any], otherwise: str) -> str:
    detail = told.get("detail")
    return detail if isinstance(detail, str) else otherwise


def _faults(told: Mapping[str, Any]) -> list[Fault]:
    given = told.get("errors")
    if not isinstance(given, list):
        return []
    return [
        Fault(path=str(one["path"]), detail=str(one["detail"]))
        for one in given
        if isinstance(one, dict) and {"path", "detail"} <= one.keys()
    ]


def _seconds(retry_after: str | None) -> float | None:
    """The header may also hold a date, which would need a clock that agrees: not read."""
    if retry_after is None or not re.fullmatch(r"[0-9]{1,9}", retry_after):
        return None
    return float(retry_after)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
