"""The HTTP client: one method per route. Every request has a deadline."""

import asyncio
import json
from types import TracebackType
from typing import Any, Final, Self, TypeGuard

import aiohttp

from umbra_agent import replies
from umbra_agent.errors import Away, KeyRefused, LeaseLost, Refused
from umbra_agent.replies import Shape

CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0  # beyond what a long poll waits on purpose

Json = dict[str, Any]

_REDIRECT: Final = 300
_CLIENT: Final = 400
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_TOO_MANY: Final = 429
_SERVER: Final = 500

_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}


class Controller:
    """Calls the controller as one node. The key is in the session's headers and nowhere else.

    Every method raises Away, KeyRefused or Refused; those that name a lease raise LeaseLost too.
    """

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._session = aiohttp.ClientSession(
            headers={**_HEADERS, "Authorization": f"Bearer {key}"},
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
        return await self._call("GET", "/v1/node", None, replies.NODE)

    async def heartbeat(self, report: Json) -> Json:
        """Report. That the controller knows no such node is a refusal of the key (P37)."""
        try:
            return await self._call("POST", "/v1/node/heartbeat", report, replies.HEARD)
        except Refused as exc:
            if exc.status == _NOT_FOUND:
                raise KeyRefused(str(exc)) from None
            raise

    async def claim(self, ask: Json) -> Json:
        limit_s = ANSWER_S + ask["wait_s"]
        return await self._call("POST", "/v1/node/claim", ask, replies.CLAIMED, within_s=limit_s)

    async def renew(self, leases: list[Json], within_s: float) -> Json:
        body = {"leases": leases}
        return await self._call("POST", "/v1/node/renew", body, replies.RENEWED, within_s=within_s)

    async def complete(self, job_id: str, lease_id: str, result: Any) -> Json:
        return await self._end(job_id, "complete", {"lease_id": lease_id, "result": result})

    async def fail(self, job_id: str, lease_id: str, error: str, *, retry: bool) -> Json:
        body = {"lease_id": lease_id, "error": error, "retry": retry}
        return await self._end(job_id, "fail", body)

    async def release(self, job_id: str, lease_id: str, reason: str) -> Json:
        return await self._end(job_id, "release", {"lease_id": lease_id, "reason": reason})

    async def may(self, path: str) -> bool:
        """Tell whether the key has the scope of a route, by a body that no route accepts.

        The scope is looked at before the body, so nothing changes whatever the answer.
        """
        try:
            await self._call("POST", path, {"": None}, replies.ANYTHING)
        except KeyRefused:
            return False
        except (Refused, LeaseLost):
            return True
        return True

    async def _end(self, job_id: str, how: str, body: Json) -> Json:
        path = f"/v1/node/jobs/{job_id}/{how}"
        try:
            return await self._call("POST", path, body, replies.ANYTHING)
        except Refused as exc:
            if exc.status in (_NOT_FOUND, _CONFLICT):  # final: to repeat it is of no use (N20)
                raise LeaseLost(str(exc)) from None
            raise

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None,
        shape: Shape,
        *,
        within_s: float = ANSWER_S,
    ) -> Json:
        data = None if body is None else _encoded(body)
        try:
            async with (
                asyncio.timeout(within_s),
                self._session.request(
                    method, self._url + path, data=data, allow_redirects=False
                ) as answer,
            ):
                payload = await answer.read()
                status, retry_after = answer.status, answer.headers.get("Retry-After")
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise Away(str(exc) or type(exc).__name__) from None
        told = _parsed(payload)
        if status >= _REDIRECT:
            raise _refusal(status, told, retry_after)
        flaw = replies.flaw(told, shape)
        if told is None or flaw is not None:
            raise Away(f"what answers at {self._url} is no controller ({flaw})")
        return told


def _encoded(body: Json) -> bytes:
    """Return the body as UTF-8: escaped, text that is not ASCII would outgrow the limit."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate: the controller says where
        return json.dumps(body, separators=(",", ":")).encode()
    except RecursionError:
        raise Refused(422, "invalid_body", "The body is nested too deeply.") from None


def _parsed(payload: bytes) -> Json | None:
    try:
        told = json.loads(payload) if payload else {}
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _refusal(
    status: int, told: Json | None, retry_after: str | None
) -> Away | KeyRefused | LeaseLost | Refused:
    code = str(told["code"]) if told is not None and "code" in told else str(status)
    detail = str(told["detail"]) if told is not None and "detail" in told else f"status {status}"
    if status >= _SERVER or status == _TOO_MANY or status < _CLIENT:
        return Away(detail, float(retry_after) if _is_seconds(retry_after) else None)
    if status in (_UNAUTHORIZED, _FORBIDDEN) or code == "node_not_found":
        return KeyRefused(detail)
    if told is None:  # a proxy's page: the controller's refusals are JSON
        return Away(f"status {status} from something that is no controller")
    if code in ("lease_lost", "job_not_found"):
        return LeaseLost(detail)
    faults = told.get("errors", ())
    return Refused(status, code, detail, faults if isinstance(faults, list) else ())


def _is_seconds(text: str | None) -> TypeGuard[str]:
    return text is not None and text.isascii() and text.isdigit()
