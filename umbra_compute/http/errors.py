"""Refusals as application/problem+json (RFC 9457)."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import asyncpg
import attrs
import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from umbra_compute import errors
from umbra_compute.db import AWAY, CONFLICTS
from umbra_compute.http.context import CODE, REQUEST_ID

log = structlog.get_logger(__name__)

STATUS: Final[Mapping[type[errors.UmbraError], int]] = {
    errors.InvalidBody: 422,
    errors.InvalidQuery: 422,
    errors.MalformedJson: 422,
    errors.UnsupportedMediaType: 415,
    errors.TooLarge: 413,
    errors.RouteNotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.Unauthorized: 401,
    errors.MissingScope: 403,
    errors.ScopeNotHeld: 403,
    errors.RateLimited: 429,
    errors.JobNotFound: 404,
    errors.NodeNotFound: 404,
    errors.ModelNotFound: 404,
    errors.CredentialNotFound: 404,
    errors.KeyNotFound: 404,
    errors.LeaseLost: 409,
    errors.IdempotencyMismatch: 409,
    errors.NodeNameTaken: 409,
    errors.NodeHasLeases: 409,
    errors.NodeRetired: 409,
    errors.OrganizationNameTaken: 409,
    errors.OnlineIsEarned: 422,
    errors.DatabaseUnavailable: 503,
    errors.SchemaNotCurrent: 503,
    errors.ShuttingDown: 503,
}

AWAY_RETRY_S: Final = 1
"""A restart or failover of PostgreSQL takes about this long; clients back off by themselves."""

_LOCKED_OUT: Final = (asyncpg.InvalidAuthorizationSpecificationError,)
"""The server's password was changed under us: for a caller it is as good as away."""

_PATH_SHOWN: Final = 200  # characters
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_encoder: Final = msgspec.json.Encoder()


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn what a handler raised into its answer. What nobody foresaw is a bug: 500, logged."""
    try:
        _refuse_unsayable(request)
        return await handler(request)
    except errors.UmbraError as exc:
        return problem(request, exc)
    except web.HTTPException as exc:
        return _of_aiohttp(request, exc)
    except Exception as exc:
        if request.writer.output_size > 0:  # a stream: its headers cannot be taken back
            log.warning("stream.broken", error=type(exc).__name__)
            raise ConnectionError("the answer had begun") from exc
        if _is_away(exc):
            log.debug("database.away", error=type(exc).__name__)
            return problem(request, errors.DatabaseUnavailable())
        log.exception("request.failed", path=_shown(request.path))
        return _answer(request, _Told(500, "internal_error", "A bug: tell us the request_id."))


def problem(request: web.Request, refusal: errors.UmbraError) -> web.Response:
    """Return the answer that says what was refused, why, and what to do."""
    told = _Told(STATUS[type(refusal)], refusal.code, str(refusal))
    headers: dict[str, str] = {}
    match refusal:
        case errors.Unauthorized():
            headers["WWW-Authenticate"] = "Bearer"
        case errors.MethodNotAllowed():
            headers["Allow"] = refusal.allowed
        case errors.RateLimited():
            headers["Retry-After"] = str(refusal.retry_after_s)
        case errors.DatabaseUnavailable() | errors.SchemaNotCurrent() | errors.ShuttingDown():
            headers["Retry-After"] = str(AWAY_RETRY_S)
        case errors.InvalidBody() | errors.InvalidQuery() | errors.MalformedJson():
            told = attrs.evolve(told, faults=refusal.faults)
    return _answer(request, told, headers)


@attrs.frozen
class _Told:
    status: int
    code: str
    detail: str
    faults: tuple[errors.Fault, ...] | None = None


def _answer(
    request: web.Request, told: _Told, headers: Mapping[str, str] | None = None
) -> web.Response:
    request[CODE] = told.code
    content: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(told.status).phrase,
        "status": told.status,
        "code": told.code,
        "detail": _shown(told.detail),
        "request_id": request.get(REQUEST_ID),
    }
    if told.faults is not None:
        content["errors"] = [
            {"path": _shown(path), "detail": _shown(detail)} for path, detail in told.faults
        ]
    return web.Response(
        body=_encoder.encode(content),
        status=told.status,
        headers=headers,
        content_type="application/problem+json",
    )


def _of_aiohttp(request: web.Request, exc: web.HTTPException) -> web.StreamResponse:
    match exc:
        case web.HTTPNotFound():
            return problem(request, errors.RouteNotFound(_shown(request.path)[:_PATH_SHOWN]))
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(exc.allowed_methods))
            return problem(request, errors.MethodNotAllowed(request.method, allowed))
        case _ if exc.status >= HTTPStatus.BAD_REQUEST:
            return _answer(request, _Told(exc.status, "bad_request", exc.reason))
        case _:
            raise exc  # a redirect is an answer, not a refusal


def _is_away(exc: Exception) -> bool:
    return isinstance(exc, (*AWAY, *CONFLICTS, *_LOCKED_OUT))


def _refuse_unsayable(request: web.Request) -> None:
    """No name holds a NUL or bytes that are no UTF-8, so such a path leads nowhere."""
    if _UNSTORABLE.search(request.path):
        raise errors.RouteNotFound(_shown(request.path)[:_PATH_SHOWN])


def _shown(text: str) -> str:
    """Return `text` so that it can be encoded: a caller's bytes may be no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
