"""The HTTP client: one method per route. Every request has a deadline."""

import asyncio
import json
from types import TracebackType
from typing import Any, Final, Self, TypeGuard

import aiohttp

from umbra_agent.errors import Away, KeyRefused, LeaseLost, Refused

CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0  # beyond what a long poll waits on purpose

Json = dict[str, Any]

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_SERVER: Final = 500


class Controller:
    """Calls the controller as one node. The key is in the session's headers and nowhere else."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def myself(self) -> Json:
        return await self._call("GET", "/v1/node")

    async def heartbeat(self, report: Json) -> Json:
        return await self._call("POST", "/v1/node/heartbeat", report)

    async def claim(self, ask: Json) -> Json:
        return await self._call("POST", "/v1/node/claim", ask, waits_s=ask["wait_s"])

    async def renew(self, leases: list[Json]) -> Json:
        return await self._call("POST", "/v1/node/renew", {"leases": leases})

    async def complete(self, job_id: str, lease_id: str, result: Any) -> Json:
        body = {"lease_id": lease_id, "result": result}
        return await self._call("POST", f"/v1/node/jobs/{job_id}/complete", body)

    async def fail(self, job_id: str, lease_id: str, error: str, *, retry: bool) -> Json:
        body = {"lease_id": lease_id, "error": error, "retry": retry}
        return await self._call("POST", f"/v1/node/jobs/{job_id}/fail", body)

    async def release(self, job_id: str, lease_id: str, reason: str) -> Json:
        body = {"lease_id": lease_id, "reason": reason}
        return await self._call("POST", f"/v1/node/jobs/{job_id}/release", body)

    async def _call(
        self, method: str, path: str, body: Json | None = None, *, waits_s: float = 0.0
    ) -> Json:
        """Return the answer. Raises Away, KeyRefused, LeaseLost, Refused."""
        sent = {} if body is None else {"data": json.dumps(body).encode(), "headers": _JSON}
        try:
            async with (
                asyncio.timeout(ANSWER_S + waits_s),
                self._session.request(method, self._url + path, **sent) as answer,  # type: ignore[arg-type]
            ):
                payload = await answer.read()
                status, retry_after = answer.status, answer.headers.get("Retry-After")
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise Away(str(exc) or type(exc).__name__) from None
        return _answer(status, payload, retry_after)


_JSON: Final = {"Content-Type": "application/json"}


def _answer(status: int, payload: bytes, retry_after: str | None) -> Json:
    try:
        told = json.loads(payload) if payload else {}
    except ValueError:
        raise Away("what answers is no controller") from None
    if not isinstance(told, dict):
        raise Away("what answers is no controller")
    if status < 400:  # noqa: PLR2004
        return told
    code, detail = str(told.get("code", status)), str(told.get("detail", f"status {status}"))
    if status >= _SERVER or status == _TOO_MANY:
        raise Away(detail, float(retry_after) if _is_seconds(retry_after) else None)
    if status in (_UNAUTHORIZED, _FORBIDDEN) or code == "node_not_found":
        raise KeyRefused(detail)
    if code in ("lease_lost", "job_not_found"):
        raise LeaseLost(detail)
    faults = told.get("errors", ())
    raise Refused(status, code, detail, faults if isinstance(faults, list) else ())


def _is_seconds(text: str | None) -> TypeGuard[str]:
    return text is not None and text.isascii() and text.isdigit()
