"""HTTP by the standard library: one connection kept open, problems turned into exceptions."""

import http.client
import ipaddress
import json
import random
import ssl
import time
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from umbra_compute.client.errors import ApiError, ClientError, NotReachable, RefusedCredentials

ATTEMPTS: Final = 4
BACKOFF_S: Final = 0.25  # doubled each time: a restart of the controller takes about a second
DEADLINE_S: Final = 15.0  # of one answer, beyond what the call itself waits for

_AWAY: Final = {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}


class Transport:
    """A connection to one controller. The key is in no message and no repr."""

    def __init__(self, url: str, api_key: str, *, insecure: bool = False) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ClientError(f"{url} is no address of a controller: give http(s)://HOST:PORT.")
        if parts.scheme == "http" and not insecure and not _is_loopback(parts.hostname):
            raise ClientError(
                f"{url} would send the key unprotected: use https, or say insecure if you must."
            )
        self.url = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "Accept": "application/json"}
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=DEADLINE_S, context=ssl.create_default_context()
            )
        else:
            self._connection = http.client.HTTPConnection(
                parts.hostname, parts.port, timeout=DEADLINE_S
            )

    def close(self) -> None:
        self._connection.close()

    def call(
        self, method: str, path: str, body: Any = None, *, repeat: bool, waits_s: float = 0.0
    ) -> Any:
        """Return the answer's JSON, None for an empty one.

        With `repeat` a lost connection or a controller that is away is tried again a few times.
        `waits_s` is how long the route itself may take on purpose.

        Raises RefusedCredentials, ApiError, NotReachable.
        """
        for attempt in range(ATTEMPTS):
            try:
                return self._once(method, path, body, waits_s)
            except NotReachable:
                if not repeat or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(BACKOFF_S * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, path: str, body: Any, waits_s: float) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({} if sent is None else {"Content-Type": "application/json"})
        self._connection.timeout = DEADLINE_S + waits_s
        if self._connection.sock is not None:
            self._connection.sock.settimeout(DEADLINE_S + waits_s)
        try:
            self._connection.request(method, self._prefix + path, sent, headers)
            answer = self._connection.getresponse()
            payload = answer.read()
        except (OSError, http.client.HTTPException) as exc:
            self._connection.close()
            reason = str(exc) or type(exc).__name__
            raise NotReachable(
                f"The controller at {self.url} does not answer ({reason}): "
                "is it running, and is the address right?"
            ) from None
        return _answer(answer.status, payload, self.url)


def _answer(status: int, payload: bytes, url: str) -> Any:
    try:
        told = json.loads(payload) if payload else None
    except ValueError:
        raise NotReachable(f"What answers at {url} is no controller: check the address.") from None
    if status < HTTPStatus.BAD_REQUEST:
        return told
    problem = told if isinstance(told, dict) else {}
    code = str(problem.get("code", "unknown"))
    detail = str(problem.get("detail", f"The controller answered with status {status}."))
    if status in _AWAY:
        raise NotReachable(detail)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise RefusedCredentials(status, code, detail)
    raise ApiError(status, code, detail, problem.get("errors", ()))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
