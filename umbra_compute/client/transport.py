"""Calls by the standard library's HTTP: one connection, kept open."""

import http.client
import random
import ssl
import time
from typing import TypeVar

from umbra_compute.client import exchange
from umbra_compute.client.errors import ApiError, NotReachable
from umbra_compute.client.exchange import Address, Call

T = TypeVar("T")


class Transport:
    """A connection to one controller. The key is in no message and no repr.

    Not for several threads at once.
    """

    def __init__(self, url: str, api_key: str, *, insecure: bool = False) -> None:
        self._address = Address.parse(url, insecure=insecure)
        self._headers = exchange.headers(api_key)
        self._connection = _connection(self._address)

    def close(self) -> None:
        self._connection.close()

    def call(self, call: Call[T]) -> T:
        """Return what was answered; try again where that is safe.

        Raises RefusedCredentials, ApiError, NotReachable.
        """
        attempt = 1
        while True:
            try:
                return self._once(call)
            except (NotReachable, ApiError) as exc:
                pause_s = exchange.pause_s(call, attempt, exc, random.random())  # noqa: S311
                if pause_s is None:
                    raise
            time.sleep(pause_s)
            attempt += 1

    def _once(self, call: Call[T]) -> T:
        self._connect(fresh=not call.repeat)
        self._connection.sock.settimeout(exchange.DEADLINE_S + call.waits_s)
        content = call.content
        headers = self._headers | ({} if content is None else {"Content-Type": "application/json"})
        try:
            self._connection.request(
                call.method, self._address.prefix + call.path, content, headers
            )
            answer = self._connection.getresponse()
            payload = answer.read()
        except (OSError, http.client.HTTPException) as exc:
            self._connection.close()
            raise exchange.silent(self._address, exc, sent=True) from None
        told: T = exchange.answered(
            self._address, answer.status, payload, answer.headers["Retry-After"]
        )
        return told

    def _connect(self, *, fresh: bool) -> None:
        """A kept connection may have been closed at the other end, which shows only by sending.

        What cannot be sent twice gets a new one.
        """
        if fresh:
            self._connection.close()
        if self._connection.sock is not None:
            return
        try:
            self._connection.connect()
        except OSError as exc:
            self._connection.close()
            raise exchange.silent(self._address, exc, sent=False) from None


def _connection(address: Address) -> http.client.HTTPConnection:
    if address.parts.scheme == "http":
        return http.client.HTTPConnection(address.host, address.port, timeout=exchange.DEADLINE_S)
    return http.client.HTTPSConnection(
        address.host,
        address.port,
        timeout=exchange.DEADLINE_S,
        context=ssl.create_default_context(),
    )
